//! Every law: an enum, not a trait object, so that a flow's state is in its own memory and calls are direct.

use crate::{
    Cnp, Feedback, Loss, Path,
    law::{LawCapabilities, LawInfo, Opening, ReceiverDriven, Requirements, SenderLaw, SizeClass, Transport},
    message::{Body, DataTag, Instruction, Message, Signal},
    parameters::{Condition, ParameterError, Raw},
    registry::Scheduler,
};
use incast_units::{Rate, Time};

/// Makes [`Law`] (state) and [`LawParameters`] (resolved parameters) of the list.
macro_rules! dispatch {
    ($($family:ident::$module:ident::$law:ident,)*) => {
        /// Every law by name, for listings.
        pub const LAWS: &[LawInfo] = &[$(<crate::$family::$module::$law as SenderLaw>::INFO,)*];

        /// The parameters of some law, resolved for a fabric.
        #[derive(Clone, Debug)]
        pub enum LawParameters {
            $(#[doc = concat!("Of [`crate::", stringify!($family), "::", stringify!($module), "`].")] $law(<crate::$family::$module::$law as SenderLaw>::Parameters),)*
        }

        /// The state of one flow under some law.
        #[derive(Clone, Debug)]
        pub enum Law {
            $(#[doc = concat!("[`crate::", stringify!($family), "::", stringify!($module), "`].")] $law(crate::$family::$module::$law),)*
        }

        impl LawParameters {
            /// Resolves the parameters of the law called `name`; `None` if there is no such law.
            ///
            /// # Errors
            /// An unknown parameter, a wrong kind, or a value that is not allowed.
            pub fn resolve(name: &str, path: &Path, given: &[(String, Raw)]) -> Option<Result<Self, ParameterError>> {
                $(if name == <crate::$family::$module::$law as SenderLaw>::INFO.name {
                    return Some(<crate::$family::$module::$law as SenderLaw>::resolve(path, given).map(Self::$law));
                })*
                None
            }

            /// See [`SenderLaw::linux`]: of the law called `name`.
            pub fn linux(name: &str, path: &Path) -> Vec<(&'static str, Raw)> {
                $(if name == <crate::$family::$module::$law as SenderLaw>::INFO.name {
                    return <crate::$family::$module::$law as SenderLaw>::linux(path);
                })*
                Vec::new()
            }

            /// What a listing has about the law.
            pub fn info(&self) -> &'static LawInfo {
                match self { $(Self::$law(_) => &<crate::$family::$module::$law as SenderLaw>::INFO,)* }
            }

            /// The effective values, as a scenario would write them.
            pub fn values(&self) -> Vec<(&'static str, Raw)> {
                match self { $(Self::$law(parameters) => <crate::$family::$module::$law as SenderLaw>::values(parameters),)* }
            }

            /// See [`SenderLaw::CONDITIONS`].
            pub fn conditions(&self) -> &'static [Condition] {
                match self { $(Self::$law(_) => <crate::$family::$module::$law as SenderLaw>::CONDITIONS,)* }
            }

            /// See [`SenderLaw::CAPABILITIES`].
            pub fn capabilities(&self) -> LawCapabilities {
                match self { $(Self::$law(_) => <crate::$family::$module::$law as SenderLaw>::CAPABILITIES,)* }
            }

            /// See [`SenderLaw::transport`].
            pub fn transport(&self) -> Transport {
                match self { $(Self::$law(parameters) => <crate::$family::$module::$law as SenderLaw>::transport(parameters),)* }
            }

            /// See [`SenderLaw::requirements`].
            pub fn requirements(&self) -> Requirements {
                match self { $(Self::$law(parameters) => <crate::$family::$module::$law as SenderLaw>::requirements(parameters),)* }
            }

            /// See [`SenderLaw::HPCC_IN_BAND`]: of the law called `name`.
            pub fn hpcc_in_band(name: &str) -> u32 {
                $(if name == <crate::$family::$module::$law as SenderLaw>::INFO.name {
                    return <crate::$family::$module::$law as SenderLaw>::HPCC_IN_BAND;
                })*
                0
            }

            /// State of a flow that starts at `now`.
            pub fn start(&self, path: &Path, now: Time, random: u32) -> Law {
                match self { $(Self::$law(parameters) => Law::$law(<crate::$family::$module::$law as SenderLaw>::start(parameters, path, now, random)),)* }
            }
        }

        impl Law {
            /// See [`SenderLaw::on_ack`].
            #[inline]
            pub fn on_ack(&mut self, feedback: &Feedback<'_>) {
                match self { $(Self::$law(law) => law.on_ack(feedback),)* }
            }
            /// See [`SenderLaw::on_loss`].
            pub fn on_loss(&mut self, loss: &Loss) {
                match self { $(Self::$law(law) => law.on_loss(loss),)* }
            }
            /// See [`SenderLaw::on_timeout`].
            pub fn on_timeout(&mut self, now: Time, next: u64) {
                match self { $(Self::$law(law) => law.on_timeout(now, next),)* }
            }
            /// See [`SenderLaw::on_cnp`].
            pub fn on_cnp(&mut self, now: Time, cnp: &Cnp) {
                match self { $(Self::$law(law) => law.on_cnp(now, cnp),)* }
            }
            /// See [`SenderLaw::on_timer`].
            pub fn on_timer(&mut self, now: Time) {
                match self { $(Self::$law(law) => law.on_timer(now),)* }
            }
            /// See [`SenderLaw::on_sent`].
            #[inline]
            pub fn on_sent(&mut self, now: Time, bytes: u32) {
                match self { $(Self::$law(law) => law.on_sent(now, bytes),)* }
            }
            /// See [`SenderLaw::window`].
            #[inline]
            pub fn window(&self) -> u64 {
                match self { $(Self::$law(law) => law.window(),)* }
            }
            /// See [`SenderLaw::assigned_window`].
            pub fn assigned_window(&self) -> u64 {
                match self { $(Self::$law(law) => law.assigned_window(),)* }
            }
            /// See [`SenderLaw::pacing_rate`].
            #[inline]
            pub fn pacing_rate(&self) -> Option<Rate> {
                match self { $(Self::$law(law) => law.pacing_rate(),)* }
            }
            /// See [`SenderLaw::next_timer`].
            #[inline]
            pub fn next_timer(&self) -> Time {
                match self { $(Self::$law(law) => law.next_timer(),)* }
            }
            /// See [`SenderLaw::estimate`].
            pub fn estimate(&self) -> Option<f32> {
                match self { $(Self::$law(law) => law.estimate(),)* }
            }
        }
    };
}

/// Takes the three families of laws from the list.
macro_rules! laws {
    (
        window { $($window:ident::$a:ident,)* }
        rate { $($rate:ident::$b:ident,)* }
        receiver_driven { $($driven:ident::$c:ident,)* }
        $($rest:tt)*
    ) => {
        dispatch! { $(window::$window::$a,)* $(rate::$rate::$b,)* $(receiver_driven::$driven::$c,)* }

        impl LawParameters {
            /// See [`ReceiverDriven::receiver`].
            pub fn receiver(&self, path: &Path) -> Scheduler {
                match self {
                    $(Self::$c(parameters) => {
                        Scheduler::$c(<crate::receiver_driven::$driven::$c as ReceiverDriven>::receiver(parameters, path))
                    })*
                    _ => Scheduler::None,
                }
            }

            /// See [`ReceiverDriven::receiver_values`].
            pub fn receiver_values(&self) -> Vec<(&'static str, Raw)> {
                match self {
                    $(Self::$c(parameters) => <crate::receiver_driven::$driven::$c as ReceiverDriven>::receiver_values(parameters),)*
                    _ => Vec::new(),
                }
            }

            /// See [`ReceiverDriven::by_traffic`].
            pub fn by_traffic(&self, given: &[(String, Raw)], sizes: &dyn Fn() -> Vec<SizeClass>) -> Vec<(&'static str, Raw)> {
                match self {
                    $(Self::$c(parameters) => <crate::receiver_driven::$driven::$c as ReceiverDriven>::by_traffic(parameters, given, sizes),)*
                    _ => Vec::new(),
                }
            }
        }

        /// The methods of [`ReceiverDriven`]. Sender-driven laws ignore messages and send none.
        impl Law {
            /// See [`ReceiverDriven::on_open`].
            pub fn on_open(&mut self, opening: &Opening) {
                match self { $(Self::$c(law) => law.on_open(opening),)* _ => {} }
            }
            /// See [`ReceiverDriven::unscheduled`].
            #[inline]
            pub fn unscheduled(&self) -> u64 {
                match self { $(Self::$c(law) => law.unscheduled(),)* _ => u64::MAX }
            }
            /// See [`ReceiverDriven::on_message`]. A message of another protocol has no effect.
            #[inline]
            pub fn on_message(&mut self, now: Time, body: &Body) -> Option<Instruction> {
                match self {
                    $(Self::$c(law) => Message::decode(body).and_then(|message| law.on_message(now, message)),)*
                    _ => None,
                }
            }
            /// See [`ReceiverDriven::on_deferred_resend`].
            pub fn on_deferred_resend(&mut self, now: Time) {
                match self { $(Self::$c(law) => law.on_deferred_resend(now),)* _ => {} }
            }
            /// See [`ReceiverDriven::take_signal`]: its code.
            #[inline]
            pub fn take_signal(&mut self) -> Option<u8> {
                match self { $(Self::$c(law) => law.take_signal().map(Signal::code),)* _ => None }
            }
            /// See [`ReceiverDriven::has_signal`].
            pub fn has_signal(&self) -> bool {
                match self { $(Self::$c(law) => law.has_signal(),)* _ => false }
            }
            /// See [`ReceiverDriven::tag`].
            #[inline]
            pub fn tag(&self) -> Option<DataTag> {
                match self { $(Self::$c(law) => law.tag(),)* _ => None }
            }
            /// See [`ReceiverDriven::priority`].
            #[inline]
            pub fn priority(&self, position: u64, again: bool) -> Option<u8> {
                match self { $(Self::$c(law) => law.priority(position, again),)* _ => None }
            }
        }
    };
}
algorithms!(laws);
