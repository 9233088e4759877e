//! What happens at one instant: messages that arrive together, or together with an event.

use super::{
    arrivals::Ties,
    domain::{Context, Domain, Names, Window},
    message::Envelope,
    queue::{Event, Key},
    shared::Shared,
};
use incast_units::Time;

/// Bits of a place among messages that arrive together: as many as the tie-break and the entity leave of 64.
const PLACE_BITS: u32 = 48 - Key::ENTITIES.ilog2();

impl<D: Domain> Shared<'_, D> {
    /// Whether the next message comes before an event of the same instant.
    #[cold]
    pub(super) fn arrives_first(&self, arrivals: &[u64], event: Key, context: &Context<'_, D>) -> bool {
        arrivals.first().is_some_and(|key| {
            // SAFETY: R5: visited in this window by this thread.
            let Envelope { time, entity, .. } = *unsafe { self.mailboxes.read(*key as u32) }.0;
            let tie = self.rules.ties.of(context.names.of(entity), time);
            Key::new(Event { class: D::ARRIVAL, entity, payload: 0 }, tie) < event
        })
    }

    /// Orders messages that arrive at the same instant, in a list that is sorted by time, in the memory `scratch`.
    #[inline(never)]
    pub(super) fn break_ties(&self, mut keys: &mut [u64], scratch: &mut Ties, names: &Names, window: Window) {
        while let Some(first) = keys.array_windows().position(|[one, other]| one ^ other < 1 << 32) {
            let time = keys[first] >> 32;
            let count = 2 + keys[first + 2..].iter().take_while(|key| *key >> 32 == time).count();
            let (tied, later) = keys[first..].split_at_mut(count);
            self.break_tie(tied, scratch, window.start + Time::from_ps(time), names);
            keys = later;
        }
    }

    /// Orders messages that all arrive at `time`.
    fn break_tie(&self, keys: &mut [u64], scratch: &mut Ties, time: Time, names: &Names) {
        let order = |key: &u64| {
            // SAFETY: R5: visited in this window by this thread.
            let entity = unsafe { self.mailboxes.read(*key as u32) }.0.entity;
            order(self.rules.ties.of(names.of(entity), time), entity)
        };
        match keys {
            [one, other] => {
                if order(other) < order(one) {
                    std::mem::swap(one, other);
                }
            }
            _ => sort_stable(keys, scratch, order),
        }
    }
}

/// The order of messages that arrive together, which leaves [`PLACE_BITS`] bits.
fn order(tie: u16, entity: u32) -> u64 {
    debug_assert!(entity < Key::ENTITIES, "entity {entity} of a domain");
    u64::from(tie) << 48 | u64::from(entity) << PLACE_BITS
}

/// Sorts keys by their order, which is asked for once for each; of those with one order the first stays the first.
fn sort_stable(keys: &mut [u64], scratch: &mut Ties, order: impl Fn(&u64) -> u64) {
    debug_assert!(keys.len() < 1 << PLACE_BITS, "{} messages arrive together", keys.len());
    scratch.clear();
    scratch.extend((0u64..).zip(&*keys).map(|(place, key)| (order(key) | place, *key)));
    scratch.sort_unstable_by_key(|(order, _)| *order);
    keys.iter_mut().zip(scratch).for_each(|(key, (_, sorted))| *key = *sorted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_that_arrive_together_keep_their_order_at_one_entity(
            messages in proptest::collection::vec((0u16..4, prop_oneof![0u32..4, Key::ENTITIES - 4..Key::ENTITIES]), 2..40),
        ) {
            let of = |key: u64| messages[key as usize];
            let mut keys: Vec<u64> = (0..messages.len() as u64).collect();
            let mut expected = keys.clone();
            expected.sort_by_key(|key| of(*key));
            sort_stable(&mut keys, &mut vec![(7, 7); 3], |key| order(of(*key).0, of(*key).1));
            prop_assert_eq!(keys, expected);
        }
    }
}
