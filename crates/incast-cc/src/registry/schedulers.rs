//! Every receiver half.

use crate::{
    law::ReceiverDriven,
    message::{AckTag, Body, DataTag, Message, Signal},
    scheduler::{Arrival, End, NewFlow, ReceiverScheduler},
};
use incast_units::Time;

/// Makes [`Scheduler`] of the receiver-driven protocols: it passes each call on to the one that it is.
macro_rules! schedulers {
    (
        window $window:tt rate $rate:tt
        receiver_driven { $($module:ident::$law:ident,)* }
        $($rest:tt)*
    ) => {
        dispatch! {
            $($law(<crate::receiver_driven::$module::$law as ReceiverDriven>::Receiver),)*
            #[cfg(any(test, feature = "testing"))]
            PacedTokens(crate::testing::paced_tokens::PacedTokens),
        }
    };
}

/// See [`schedulers`].
macro_rules! dispatch {
    ($($(#[cfg($($cfg:tt)*)])? $name:ident($scheduler:ty),)*) => {
        /// The schedulers by name.
        #[derive(Clone, Debug, Default)]
        pub enum Scheduler {
            /// Sender-driven: the receiver only acknowledges.
            #[default]
            None,
            $($(#[cfg($($cfg)*)])? #[doc = concat!("The receivers of ", stringify!($name), ".")] $name($scheduler),)*
        }

        /// The methods of [`ReceiverScheduler`], with messages as control packets carry them.
        impl Scheduler {
            /// See [`ReceiverScheduler::on_flow`].
            pub fn on_flow(&mut self, flow: &NewFlow, send: &mut dyn FnMut(u32, Body)) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => {
                    scheduler.on_flow(flow, &mut |flow, message| send(flow, message.encode()));
                })* }
            }
            /// See [`ReceiverScheduler::on_signal`].
            pub fn on_signal(&mut self, now: Time, flow: u32, code: u8, send: &mut dyn FnMut(u32, Body)) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => {
                    if let Some(signal) = Signal::from_code(code) {
                        scheduler.on_signal(now, flow, signal, &mut |flow, message| send(flow, message.encode()));
                    }
                })* }
            }
            /// See [`ReceiverScheduler::on_tag`].
            pub fn on_tag(&mut self, now: Time, flow: u32, tag: DataTag) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.on_tag(now, flow, tag),)* }
            }
            /// [`ReceiverScheduler::on_data`]; returns when the timer is due then.
            #[inline]
            pub fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(u32, Body)) -> Time {
                match self {
                    Self::None => Time::MAX,
                    $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => {
                        scheduler.on_data(arrival, &mut |flow, message| send(flow, message.encode()));
                        scheduler.next_timer()
                    })*
                }
            }
            /// See [`ReceiverScheduler::on_ack`].
            pub fn on_ack(&mut self, now: Time, wire: u64) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.on_ack(now, wire),)* }
            }
            /// See [`ReceiverScheduler::on_end`].
            pub fn on_end(&mut self, now: Time, flow: u32, end: End, send: &mut dyn FnMut(u32, Body)) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => {
                    scheduler.on_end(now, flow, end, &mut |flow, message| send(flow, message.encode()));
                })* }
            }
            /// [`ReceiverScheduler::on_timer`], unless the timer is due later than `now`; returns when it is due then.
            #[inline]
            pub fn on_timer(&mut self, now: Time, send: &mut dyn FnMut(u32, Body)) -> Time {
                match self {
                    Self::None => Time::MAX,
                    $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => {
                        if scheduler.next_timer() <= now {
                            scheduler.on_timer(now, &mut |flow, message| send(flow, message.encode()));
                        }
                        scheduler.next_timer()
                    })*
                }
            }
            /// See [`ReceiverScheduler::next_timer`].
            pub fn next_timer(&self) -> Time {
                match self { Self::None => Time::MAX, $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.next_timer(),)* }
            }
            /// See [`ReceiverScheduler::ack_tag`].
            pub fn ack_tag(&mut self, flow: u32) -> Option<AckTag> {
                match self { Self::None => None, $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.ack_tag(flow),)* }
            }
            /// See [`ReceiverScheduler::tags_acks`].
            pub fn tags_acks(&self) -> bool {
                match self { Self::None => false, $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.tags_acks(),)* }
            }
            /// See [`ReceiverScheduler::uses_tokens`].
            pub fn uses_tokens(&self) -> bool {
                match self { Self::None => false, $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.uses_tokens(),)* }
            }
            /// See [`ReceiverScheduler::priorities`].
            pub fn priorities(&self) -> u8 {
                match self { Self::None => 0, $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.priorities(),)* }
            }
        }
    };
}

impl Scheduler {
    /// The law is not receiver-driven.
    #[inline]
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

algorithms!(schedulers);
