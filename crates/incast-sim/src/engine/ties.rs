//! What happens at one instant: messages that arrive together, or together with an event.

use super::{
    domain::{Context, Domain, Names, Window},
    executor::Shared,
    message::Envelope,
    queue::{Event, Key},
};
use incast_units::Time;

impl<D: Domain> Shared<'_, D> {
    /// Whether the next message comes before an event of the same instant.
    #[cold]
    pub(super) fn arrives_first(&self, arrivals: &[u64], event: Key, context: &Context<'_, D>) -> bool {
        arrivals.first().is_some_and(|key| {
            // SAFETY: R5: visited in this window by this thread.
            let Envelope { time, entity, .. } = *unsafe { self.mailboxes.read(*key as u32) }.0;
            let tie = self.executor.ties.of(context.names.of(entity), time);
            Key::new(Event { class: D::ARRIVAL, entity, payload: 0 }, tie) < event
        })
    }

    /// Orders messages that arrive at the same instant, in a list that is sorted by time.
    #[inline(never)] // rare: kept out of the path of packets
    pub(super) fn break_ties(&self, mut keys: &mut [u64], names: &Names, window: Window) {
        while let Some(first) = keys.array_windows().position(|[one, other]| one ^ other < 1 << 32) {
            let time = keys[first] >> 32;
            let count = 2 + keys[first + 2..].iter().take_while(|key| *key >> 32 == time).count();
            let (tied, later) = keys[first..].split_at_mut(count);
            self.break_tie(tied, window.start + Time::from_ps(time), names);
            keys = later;
        }
    }

    /// Orders messages that all arrive at `time`.
    fn break_tie(&self, keys: &mut [u64], time: Time, names: &Names) {
        let order = |key: &u64| {
            // SAFETY: R5: visited in this window by this thread.
            let entity = unsafe { self.mailboxes.read(*key as u32) }.0.entity;
            (self.executor.ties.of(names.of(entity), time), entity)
        };
        match keys {
            [one, other] => {
                if order(other) < order(one) {
                    std::mem::swap(one, other);
                }
            }
            // Each is hashed once.
            _ => keys.sort_by_cached_key(order),
        }
    }
}
