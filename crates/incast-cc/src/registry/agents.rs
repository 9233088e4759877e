//! Every in-switch algorithm: an enum, not a trait object, so that its state is in the switch's own memory and calls
//! are direct.

#[cfg(any(test, feature = "testing"))]
use crate::testing::exerciser::Exerciser;
use crate::{
    Path,
    agent::{
        AgentInfo, Effects, Notification, PacketView, PortView, Site, SwitchAgent, SwitchView, Verdict,
        rerouting::{Action, Rerouting},
    },
    parameters::{Condition, ParameterError, Raw},
};
use incast_units::Time;

/// Makes [`Agent`] (state) and [`AgentParameters`] (resolved parameters) of the list, and of [`Exerciser`], which no
/// scenario can name.
macro_rules! agents {
    (
        window $window:tt rate $rate:tt receiver_driven $driven:tt
        switch { $($module:ident::$agent:ident,)* }
        $($rest:tt)*
    ) => {
        $(use crate::switch::$module::$agent;)*
        /// Every agent by name, for listings.
        pub const AGENTS: &[AgentInfo] = &[$(<$agent as SwitchAgent>::INFO,)*];

        impl AgentParameters {
            /// Resolves the parameters of the agent called `name`; `None` if there is no such agent.
            ///
            /// # Errors
            /// An unknown parameter, a wrong kind, or a value that is not allowed.
            pub fn resolve(name: &str, path: &Path, given: &[(String, Raw)]) -> Option<Result<Self, ParameterError>> {
                $(if name == <$agent as SwitchAgent>::INFO.name {
                    return Some(<$agent as SwitchAgent>::resolve(path, given).map(Self::$agent));
                })*
                let _ = (name, path, given);
                None
            }
        }

        agent_types! { $($agent,)* #[cfg(any(test, feature = "testing"))] Exerciser, }
    };
}

/// The types of [`agents`], of agents that may depend on the configuration of the build.
macro_rules! agent_types {
    ($($(#[$attr:meta])* $agent:ident,)*) => {
        /// The parameters of some agent, resolved for a fabric.
        #[derive(Clone, Debug, Default)]
        pub enum AgentParameters {
            /// No agent.
            #[default]
            None,
            $($(#[$attr])* #[doc = concat!("Of [`", stringify!($agent), "`].")] $agent(<$agent as SwitchAgent>::Parameters),)*
        }

        /// The agent of one switch.
        #[derive(Clone, Debug, Default)]
        pub enum Agent {
            /// There is no agent.
            #[default]
            None,
            $($(#[$attr])* #[doc = concat!("[`", stringify!($agent), "`].")] $agent($agent),)*
        }

        impl AgentParameters {
            /// There is no agent.
            pub fn is_none(&self) -> bool {
                matches!(self, Self::None)
            }

            /// What a listing has about the agent.
            pub fn info(&self) -> Option<&'static AgentInfo> {
                match self {
                    Self::None => None,
                    $($(#[$attr])* Self::$agent(_) => Some(&<$agent as SwitchAgent>::INFO),)*
                }
            }

            /// The effective values, as a scenario would write them.
            pub fn values(&self) -> Vec<(&'static str, Raw)> {
                match self {
                    Self::None => Vec::new(),
                    $($(#[$attr])* Self::$agent(parameters) => <$agent as SwitchAgent>::values(parameters),)*
                }
            }

            /// See [`SwitchAgent::CONDITIONS`].
            pub fn conditions(&self) -> &'static [Condition] {
                match self {
                    Self::None => &[],
                    $($(#[$attr])* Self::$agent(_) => <$agent as SwitchAgent>::CONDITIONS,)*
                }
            }

            /// See [`SwitchAgent::effects`].
            pub fn effects(&self) -> Effects {
                match self {
                    Self::None => Effects::default(),
                    $($(#[$attr])* Self::$agent(parameters) => <$agent as SwitchAgent>::effects(parameters),)*
                }
            }

            /// See [`SwitchAgent::REROUTES`].
            pub fn reroutes(&self) -> bool {
                match self {
                    Self::None => false,
                    $($(#[$attr])* Self::$agent(_) => <$agent as SwitchAgent>::REROUTES,)*
                }
            }

            /// The agent of one switch.
            pub fn install(&self, site: &Site<'_>) -> Agent {
                match self {
                    Self::None => Agent::None,
                    $($(#[$attr])* Self::$agent(parameters) => Agent::$agent(<$agent as SwitchAgent>::install(parameters, site)),)*
                }
            }
        }

        impl Agent {
            /// There is no agent.
            #[inline]
            pub fn is_none(&self) -> bool {
                matches!(self, Self::None)
            }
            /// See [`SwitchAgent::on_enqueue`].
            #[inline]
            pub fn on_enqueue(&mut self, port: &PortView, packet: &PacketView, switch: &impl SwitchView, verdict: &mut Verdict) {
                match self {
                    Self::None => {}
                    $($(#[$attr])* Self::$agent(agent) => agent.on_enqueue(port, packet, switch, verdict),)*
                }
            }
            /// See [`SwitchAgent::on_dequeue`].
            #[inline]
            pub fn on_dequeue(&mut self, port: &PortView, packet: &PacketView, switch: &impl SwitchView, verdict: &mut Verdict) {
                match self {
                    Self::None => {}
                    $($(#[$attr])* Self::$agent(agent) => agent.on_dequeue(port, packet, switch, verdict),)*
                }
            }
            /// See [`SwitchAgent::skips_up_to`].
            #[inline]
            pub fn skips_up_to(&self, port: u16) -> Option<u64> {
                match self {
                    Self::None => None,
                    $($(#[$attr])* Self::$agent(agent) => agent.skips_up_to(port),)*
                }
            }
            /// See [`SwitchAgent::on_drop`].
            pub fn on_drop(&mut self, port: &PortView, packet: &PacketView) {
                match self {
                    Self::None => {}
                    $($(#[$attr])* Self::$agent(agent) => agent.on_drop(port, packet),)*
                }
            }
            /// See [`SwitchAgent::on_pause`].
            pub fn on_pause(&mut self, port: &PortView) {
                match self {
                    Self::None => {}
                    $($(#[$attr])* Self::$agent(agent) => agent.on_pause(port),)*
                }
            }
            /// See [`SwitchAgent::on_resume`].
            pub fn on_resume(&mut self, port: &PortView) {
                match self {
                    Self::None => {}
                    $($(#[$attr])* Self::$agent(agent) => agent.on_resume(port),)*
                }
            }
            /// See [`SwitchAgent::on_timer`].
            pub fn on_timer(&mut self, now: Time, switch: &impl SwitchView, send: &mut dyn FnMut(Notification)) {
                match self {
                    Self::None => {}
                    $($(#[$attr])* Self::$agent(agent) => agent.on_timer(now, switch, send),)*
                }
            }
            /// See [`Rerouting::on_answer`].
            pub fn on_answer(&mut self, now: Time, name: u64) {
                match self {
                    Self::None => {},
                    $($(#[$attr])* Self::$agent(agent) => agent.rerouting().into_iter().for_each(|rerouting| rerouting.on_answer(now, name)),)*
                }
            }
            /// See [`Rerouting::on_isolation`].
            pub fn on_isolation(&mut self, now: Time, port: u16, source: u32, sequence: u32) {
                match self {
                    Self::None => {},
                    $($(#[$attr])* Self::$agent(agent) => agent.rerouting().into_iter().for_each(|rerouting| rerouting.on_isolation(now, port, source, sequence)),)*
                }
            }
            /// See [`Rerouting::on_routes`].
            pub fn on_routes(&mut self, switch: &impl SwitchView) {
                match self {
                    Self::None => {},
                    $($(#[$attr])* Self::$agent(agent) => agent.rerouting().into_iter().for_each(|rerouting| rerouting.on_routes(switch)),)*
                }
            }
            /// See [`Rerouting::next_action`].
            pub fn next_action(&mut self) -> Option<Action> {
                match self {
                    Self::None => None,
                    $($(#[$attr])* Self::$agent(agent) => agent.rerouting().and_then(Rerouting::next_action),)*
                }
            }
            /// See [`SwitchAgent::next_timer`].
            #[inline]
            pub fn next_timer(&self) -> Time {
                match self {
                    Self::None => Time::MAX,
                    $($(#[$attr])* Self::$agent(agent) => agent.next_timer(),)*
                }
            }
        }
    };
}
algorithms!(agents);
