//! What the command lines of switches have in common: which queue sends next, and when queues mark.

use super::{Wanted, ports::Class};
use incast_cc::marking::Marking;
use incast_sim::config::Scheduling;

/// When a queue sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Before all queues with a higher number here, which begins with 1.
    Strict(usize),
    /// Together with the others: so many per cent.
    Share(u16),
}

/// The order of each class, the highest priority first. The lowest strict one has what is left, as a share.
pub fn orders(scheduler: &Scheduling, classes: &[Class], notes: &mut Vec<String>) -> Vec<Order> {
    let (strict, given): (u8, &[u16]) = match scheduler {
        Scheduling::Strict => (8, &[]),
        Scheduling::Dwrr { weights, .. } => (0, weights),
        Scheduling::StrictOverDwrr { strict, weights, .. } => (*strict, weights),
    };
    let weight =
        |class: &Class| class.priority.checked_sub(strict).and_then(|index| given.get(usize::from(index)).copied());
    let weights: Vec<u16> = classes.iter().filter_map(weight).collect();
    let mut shares = percentages(&weights).into_iter();
    let exact = |weight: u16| f64::from(weight) * 100.0 / weights.iter().map(|w| f64::from(*w)).sum::<f64>();
    let last = classes.len().saturating_sub(1);
    let order = |(index, class): (usize, &Class)| match weight(class) {
        Some(weight) => {
            let share = shares.next().unwrap_or(1);
            if (exact(weight) - f64::from(share)).abs() > 1e-9 {
                notes.push(format!(
                    "switch.scheduler.weights: {:.2}% of what is left in the scenario for priority {}, {share}% on the device",
                    exact(weight),
                    class.priority
                ));
            }
            Order::Share(share)
        }
        None if index == last => Order::Share(100),
        None => Order::Strict(index + 1),
    };
    classes.iter().enumerate().map(order).collect()
}

/// Weights in whole per cent, each at least one, of 100 together.
pub fn percentages(weights: &[u16]) -> Vec<u16> {
    let sum: u32 = weights.iter().map(|weight| u32::from(*weight)).sum::<u32>().max(1);
    let mut shares: Vec<u16> = weights.iter().map(|weight| (u32::from(*weight) * 100 / sum).max(1) as u16).collect();
    // What rounding has left goes to those that lost most, and what the least share took comes from the largest.
    while !shares.is_empty() && shares.iter().sum::<u16>() != 100 {
        let error = |index: &usize| f64::from(weights[*index]) * 100.0 / f64::from(sum) - f64::from(shares[*index]);
        let by_error = |a: &usize, b: &usize| error(a).total_cmp(&error(b));
        if shares.iter().sum::<u16>() < 100 {
            let index = (0..shares.len()).max_by(by_error).unwrap_or(0);
            shares[index] += 1;
        } else {
            let index = (0..shares.len()).filter(|index| shares[*index] > 1).min_by(by_error).unwrap_or(0);
            shares[index] -= 1;
        }
    }
    shares
}

/// Whether weights are whole per cent as they are.
pub fn are_percentages(weights: &[u16]) -> bool {
    let sum: u32 = weights.iter().map(|weight| u32::from(*weight)).sum();
    weights.iter().all(|weight| (u32::from(*weight) * 100).is_multiple_of(sum.max(1)))
}

/// Thresholds and the probability at the upper one; nothing without marks.
pub fn ramp(marking: Marking) -> Option<(u64, u64, f64)> {
    match marking {
        Marking::Off => None,
        Marking::Step { at } => Some((at, at, 1.0)),
        Marking::Red { min, max, p } => Some((min, max, p)),
    }
}

/// Whether a queue has data, and not control packets alone, which are not ECN-capable.
pub fn has_data(wanted: &Wanted, class: &Class) -> bool {
    wanted.config.classes.iter().any(|it| it.priority == class.priority || it.law.capabilities().priorities)
}

/// What is said of watchdogs.
pub fn watchdog_note() -> String {
    "the watchdog is the vendor's: switch.pfc.deadlock_after ends a run and is no setting of a device".into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn class(priority: u8) -> Class {
        Class { priority, tc: 7 - priority, dscp: Some(priority) }
    }

    #[test]
    fn queues_are_strict_or_share() {
        let classes = [class(0), class(1), class(2)];
        let mut notes = Vec::new();
        let mut of = |scheduler: Scheduling| orders(&scheduler, &classes, &mut notes);
        assert_eq!(of(Scheduling::Strict), [Order::Strict(1), Order::Strict(2), Order::Share(100)]);
        let over = Scheduling::StrictOverDwrr { strict: 1, weights: vec![3, 1], quantum: None };
        assert_eq!(of(over), [Order::Strict(1), Order::Share(75), Order::Share(25)]);
        let thirds = Scheduling::Dwrr { weights: vec![1, 1, 1], quantum: None };
        assert_eq!(of(thirds), [Order::Share(33), Order::Share(33), Order::Share(34)]);
        assert_eq!(notes.len(), 3, "{notes:?}");
    }

    proptest! {
        #[test]
        fn percentages_are_a_hundred(weights in proptest::collection::vec(1u16..=u16::MAX, 1..9)) {
            let shares = percentages(&weights);
            prop_assert_eq!(shares.iter().sum::<u16>(), 100);
            prop_assert!(shares.iter().all(|share| *share >= 1));
        }
    }
}
