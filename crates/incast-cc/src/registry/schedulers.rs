//! Every receiver's half.

use crate::{
    law::ReceiverDriven,
    scheduler::{Arrival, Control, End, NewFlow, ReceiverScheduler, Signal, TokenName},
    share::Share,
    word::Word,
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

        impl Scheduler {
            /// [`ReceiverScheduler::on_data`]; returns when the timer is wanted then.
            #[inline]
            pub fn take_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(Control)) -> Time {
                match self {
                    Self::None => Time::MAX,
                    $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => {
                        scheduler.on_data(arrival, send);
                        scheduler.next_timer()
                    })*
                }
            }
            /// [`ReceiverScheduler::on_timer`], unless the timer is wanted later than `now`; returns when it is wanted
            /// then.
            #[inline]
            pub fn wake(&mut self, now: Time, send: &mut dyn FnMut(Control)) -> Time {
                match self {
                    Self::None => Time::MAX,
                    $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => {
                        if scheduler.next_timer() <= now {
                            scheduler.on_timer(now, send);
                        }
                        scheduler.next_timer()
                    })*
                }
            }
        }

        impl ReceiverScheduler for Scheduler {
            fn on_blind(&mut self, least: u64, most: u64) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.on_blind(least, most),)* }
            }
            fn on_flow(&mut self, flow: &NewFlow, send: &mut dyn FnMut(Control)) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.on_flow(flow, send),)* }
            }
            fn on_signal(&mut self, now: Time, flow: u32, signal: Signal, send: &mut dyn FnMut(Control)) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.on_signal(now, flow, signal, send),)* }
            }
            fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(Control)) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.on_data(arrival, send),)* }
            }
            fn on_token_used(&mut self, flow: u32, name: TokenName) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.on_token_used(flow, name),)* }
            }
            fn on_word(&mut self, now: Time, flow: u32, word: Word) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.on_word(now, flow, word),)* }
            }
            fn on_end(&mut self, now: Time, flow: u32, end: End, send: &mut dyn FnMut(Control)) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.on_end(now, flow, end, send),)* }
            }
            fn on_timer(&mut self, now: Time, send: &mut dyn FnMut(Control)) {
                match self { Self::None => {} $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.on_timer(now, send),)* }
            }
            fn next_timer(&self) -> Time {
                match self { Self::None => Time::MAX, $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.next_timer(),)* }
            }
            fn share(&mut self, flow: u32) -> Option<Share> {
                match self { Self::None => None, $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.share(flow),)* }
            }
            fn tells_shares(&self) -> bool {
                match self { Self::None => false, $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.tells_shares(),)* }
            }
            fn uses_tokens(&self) -> bool {
                match self { Self::None => false, $($(#[cfg($($cfg)*)])? Self::$name(scheduler) => scheduler.uses_tokens(),)* }
            }
            fn priorities(&self) -> u8 {
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
