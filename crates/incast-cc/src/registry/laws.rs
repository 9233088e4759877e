//! Every law: an enum, not a trait object, so that a flow's state is in its own memory and calls are direct.

use crate::{
    Cnp, Feedback, Loss, Path,
    feedback::CnpContent,
    law::{Habits, LawInfo, ReceiverDriven, SenderLaw, SizeClass, Transport},
    parameters::{Condition, ParameterError, Raw},
    registry::Scheduler,
    scheduler::Signal,
    share::Share,
    word::Word,
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

            /// What a listing says about the law.
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

            /// See [`SenderLaw::ASSIGNS_PRIORITIES`].
            pub fn assigns_priorities(&self) -> bool {
                match self { $(Self::$law(_) => <crate::$family::$module::$law as SenderLaw>::ASSIGNS_PRIORITIES,)* }
            }

            /// See [`SenderLaw::HABITS`].
            pub fn habits(&self) -> Habits {
                match self { $(Self::$law(_) => <crate::$family::$module::$law as SenderLaw>::HABITS,)* }
            }

            /// See [`SenderLaw::HEEDS`].
            pub fn heeds(&self) -> CnpContent {
                match self { $(Self::$law(_) => <crate::$family::$module::$law as SenderLaw>::HEEDS,)* }
            }

            /// See [`SenderLaw::by_traffic`].
            pub fn by_traffic(&self, given: &[(String, Raw)], sizes: &dyn Fn() -> Vec<SizeClass>) -> Vec<(&'static str, Raw)> {
                match self { $(Self::$law(parameters) => <crate::$family::$module::$law as SenderLaw>::by_traffic(parameters, given, sizes),)* }
            }

            /// See [`SenderLaw::notification_interval`].
            pub fn notification_interval(&self) -> Option<Time> {
                match self { $(Self::$law(parameters) => <crate::$family::$module::$law as SenderLaw>::notification_interval(parameters),)* }
            }

            /// See [`SenderLaw::ecn_capable`].
            pub fn ecn_capable(&self) -> bool {
                match self { $(Self::$law(parameters) => <crate::$family::$module::$law as SenderLaw>::ecn_capable(parameters),)* }
            }

            /// See [`SenderLaw::repaces`].
            pub fn repaces(&self) -> bool {
                match self { $(Self::$law(parameters) => <crate::$family::$module::$law as SenderLaw>::repaces(parameters),)* }
            }

            /// See [`SenderLaw::transport`].
            pub fn transport(&self) -> Transport {
                match self { $(Self::$law(parameters) => <crate::$family::$module::$law as SenderLaw>::transport(parameters),)* }
            }

            /// See [`SenderLaw::receiver_values`].
            pub fn receiver_values(&self) -> Vec<(&'static str, Raw)> {
                match self { $(Self::$law(parameters) => <crate::$family::$module::$law as SenderLaw>::receiver_values(parameters),)* }
            }

            /// See [`SenderLaw::tells_edge_marks`].
            pub fn tells_edge_marks(&self) -> bool {
                match self { $(Self::$law(parameters) => <crate::$family::$module::$law as SenderLaw>::tells_edge_marks(parameters),)* }
            }

            /// See [`SenderLaw::wants_degree`].
            pub fn wants_degree(&self) -> bool {
                match self { $(Self::$law(parameters) => <crate::$family::$module::$law as SenderLaw>::wants_degree(parameters),)* }
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
            /// See [`SenderLaw::on_open`].
            pub fn on_open(&mut self, bytes: u64) {
                match self { $(Self::$law(law) => law.on_open(bytes),)* }
            }
            /// See [`SenderLaw::on_peer`].
            pub fn on_peer(&mut self, receiver: Rate, degree: u32) {
                match self { $(Self::$law(law) => law.on_peer(receiver, degree),)* }
            }
            /// See [`SenderLaw::on_share`].
            pub fn on_share(&mut self, now: Time, share: Share) {
                match self { $(Self::$law(law) => law.on_share(now, share),)* }
            }
            /// See [`SenderLaw::on_credit`].
            #[inline]
            pub fn on_credit(&mut self, now: Time, position: u64) {
                match self { $(Self::$law(law) => law.on_credit(now, position),)* }
            }
            /// See [`SenderLaw::on_heard`].
            pub fn on_heard(&mut self) {
                match self { $(Self::$law(law) => law.on_heard(),)* }
            }
            /// See [`SenderLaw::on_answer`].
            #[inline]
            pub fn on_answer(&mut self, now: Time) {
                match self { $(Self::$law(law) => law.on_answer(now),)* }
            }
            /// See [`SenderLaw::on_delayed_resend`].
            pub fn on_delayed_resend(&mut self, now: Time) {
                match self { $(Self::$law(law) => law.on_delayed_resend(now),)* }
            }
            /// See [`SenderLaw::take_signal`].
            #[inline]
            pub fn take_signal(&mut self) -> Option<Signal> {
                match self { $(Self::$law(law) => law.take_signal(),)* }
            }
            /// See [`SenderLaw::word`].
            #[inline]
            pub fn word(&self) -> Option<Word> {
                match self { $(Self::$law(law) => law.word(),)* }
            }
            /// See [`SenderLaw::priority`].
            #[inline]
            pub fn priority(&self, position: u64) -> Option<u8> {
                match self { $(Self::$law(law) => law.priority(position),)* }
            }
            /// See [`SenderLaw::resend_priority`].
            pub fn resend_priority(&self, position: u64) -> Option<u8> {
                match self { $(Self::$law(law) => law.resend_priority(position),)* }
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
            /// See [`SenderLaw::pacing_rate`].
            #[inline]
            pub fn pacing_rate(&self) -> Option<Rate> {
                match self { $(Self::$law(law) => law.pacing_rate(),)* }
            }
            /// See [`SenderLaw::credit`].
            #[inline]
            pub fn credit(&self) -> u64 {
                match self { $(Self::$law(law) => law.credit(),)* }
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
            /// The receiver's half for one host: see [`ReceiverDriven::receiver`].
            pub fn receiver(&self, path: &Path) -> Scheduler {
                match self {
                    $(Self::$c(parameters) => {
                        Scheduler::$c(<crate::receiver_driven::$driven::$c as ReceiverDriven>::receiver(parameters, path))
                    })*
                    _ => Scheduler::None,
                }
            }
        }
    };
}
algorithms!(laws);
