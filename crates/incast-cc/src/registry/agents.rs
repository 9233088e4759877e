//! Every in-switch algorithm: an enum, not a trait object, so that its state is in the switch's own memory and calls
//! are direct.

#[cfg(any(test, feature = "testing"))]
use crate::testing::exerciser::Exerciser;
use crate::{
    Path,
    agent::{
        AgentInfo, Effects, Notification, Order, PacketView, PortView, Site, SwitchAgent, SwitchView, Verdict,
    },
    parameters::{Condition, ParameterError, Raw},
};
use incast_units::Time;

/// Makes [`Agent`] (state) and [`AgentParameters`] (resolved parameters) of the list. `testing` is an agent that no
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

        /// The parameters of some agent, resolved for a fabric.
        #[derive(Clone, Debug, Default)]
        pub enum AgentParameters {
            /// No agent.
            #[default]
            None,
            #[cfg(any(test, feature = "testing"))]
            /// For tests: see [`Exerciser`].
            Exerciser(Exerciser),
            $(#[doc = concat!("Of [`", stringify!($agent), "`].")] $agent(<$agent as SwitchAgent>::Parameters),)*
        }

        /// The agent of one switch.
        #[derive(Clone, Debug, Default)]
        pub enum Agent {
            /// There is no agent.
            #[default]
            None,
            #[cfg(any(test, feature = "testing"))]
            /// For tests: see [`Exerciser`].
            Exerciser(Exerciser),
            $(#[doc = concat!("[`", stringify!($agent), "`].")] $agent($agent),)*
        }

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

            /// There is no agent.
            pub fn is_none(&self) -> bool {
                matches!(self, Self::None)
            }

            /// What a listing has about the agent.
            pub fn info(&self) -> Option<&'static AgentInfo> {
                match self {
                    Self::None => None,
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(_) => Some(&<Exerciser as SwitchAgent>::INFO),
                    $(Self::$agent(_) => Some(&<$agent as SwitchAgent>::INFO),)*
                }
            }

            /// The effective values, as a scenario would write them.
            pub fn values(&self) -> Vec<(&'static str, Raw)> {
                match self {
                    Self::None => Vec::new(),
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(_) => Vec::new(),
                    $(Self::$agent(parameters) => <$agent as SwitchAgent>::values(parameters),)*
                }
            }

            /// See [`SwitchAgent::CONDITIONS`].
            pub fn conditions(&self) -> &'static [Condition] {
                match self {
                    Self::None => &[],
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(_) => &[],
                    $(Self::$agent(_) => <$agent as SwitchAgent>::CONDITIONS,)*
                }
            }

            /// See [`SwitchAgent::effects`].
            pub fn effects(&self) -> Effects {
                match self {
                    Self::None => Effects::default(),
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(_) => Effects::default(),
                    $(Self::$agent(parameters) => <$agent as SwitchAgent>::effects(parameters),)*
                }
            }

            /// See [`SwitchAgent::HOLDS`].
            pub fn holds(&self) -> bool {
                match self {
                    Self::None => false,
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(_) => <Exerciser as SwitchAgent>::HOLDS,
                    $(Self::$agent(_) => <$agent as SwitchAgent>::HOLDS,)*
                }
            }

            /// The agent of one switch.
            pub fn install(&self, site: &Site<'_>) -> Agent {
                match self {
                    Self::None => Agent::None,
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(parameters) => Agent::Exerciser(<Exerciser as SwitchAgent>::install(parameters, site)),
                    $(Self::$agent(parameters) => Agent::$agent(<$agent as SwitchAgent>::install(parameters, site)),)*
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
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(agent) => agent.on_enqueue(port, packet, switch, verdict),
                    $(Self::$agent(agent) => agent.on_enqueue(port, packet, switch, verdict),)*
                }
            }
            /// See [`SwitchAgent::on_dequeue`].
            #[inline]
            pub fn on_dequeue(&mut self, port: &PortView, packet: &PacketView, switch: &impl SwitchView, verdict: &mut Verdict) {
                match self {
                    Self::None => {}
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(agent) => agent.on_dequeue(port, packet, switch, verdict),
                    $(Self::$agent(agent) => agent.on_dequeue(port, packet, switch, verdict),)*
                }
            }
            /// See [`SwitchAgent::skips_up_to`].
            #[inline]
            pub fn skips_up_to(&self, port: u16) -> Option<u64> {
                match self {
                    Self::None => None,
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(agent) => agent.skips_up_to(port),
                    $(Self::$agent(agent) => agent.skips_up_to(port),)*
                }
            }
            /// See [`SwitchAgent::on_drop`].
            pub fn on_drop(&mut self, port: &PortView, packet: &PacketView) {
                match self {
                    Self::None => {}
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(agent) => agent.on_drop(port, packet),
                    $(Self::$agent(agent) => agent.on_drop(port, packet),)*
                }
            }
            /// See [`SwitchAgent::on_pause`].
            pub fn on_pause(&mut self, port: &PortView) {
                match self {
                    Self::None => {}
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(agent) => agent.on_pause(port),
                    $(Self::$agent(agent) => agent.on_pause(port),)*
                }
            }
            /// See [`SwitchAgent::on_resume`].
            pub fn on_resume(&mut self, port: &PortView) {
                match self {
                    Self::None => {}
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(agent) => agent.on_resume(port),
                    $(Self::$agent(agent) => agent.on_resume(port),)*
                }
            }
            /// See [`SwitchAgent::on_timer`].
            pub fn on_timer(&mut self, now: Time, switch: &impl SwitchView, send: &mut dyn FnMut(Notification)) {
                match self {
                    Self::None => {}
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(agent) => agent.on_timer(now, switch, send),
                    $(Self::$agent(agent) => agent.on_timer(now, switch, send),)*
                }
            }
            /// See [`SwitchAgent::on_answer`].
            pub fn on_answer(&mut self, now: Time, name: u64) {
                match self {
                    Self::None => {}
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(agent) => agent.on_answer(now, name),
                    $(Self::$agent(agent) => agent.on_answer(now, name),)*
                }
            }
            /// See [`SwitchAgent::on_routes`].
            pub fn on_routes(&mut self, switch: &impl SwitchView) {
                match self {
                    Self::None => {}
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(agent) => agent.on_routes(switch),
                    $(Self::$agent(agent) => agent.on_routes(switch),)*
                }
            }
            /// See [`SwitchAgent::take_order`].
            pub fn take_order(&mut self) -> Option<Order> {
                match self {
                    Self::None => None,
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(agent) => agent.take_order(),
                    $(Self::$agent(agent) => agent.take_order(),)*
                }
            }
            /// See [`SwitchAgent::next_timer`].
            #[inline]
            pub fn next_timer(&self) -> Time {
                match self {
                    Self::None => Time::MAX,
                    #[cfg(any(test, feature = "testing"))]
                    Self::Exerciser(agent) => agent.next_timer(),
                    $(Self::$agent(agent) => agent.next_timer(),)*
                }
            }
        }
    };
}
algorithms!(agents);
