//! Parts of runs that cost about the same, each for one machine.

use super::Plan;
use std::{
    fmt::{self, Display},
    path::{Path, PathBuf},
    str::FromStr,
};

/// One of several parts, as `3/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 1.
    pub number: usize,
    /// Of so many.
    pub of: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        parts
            .filter(|(number, of)| (1..=*of).contains(number))
            .map(|(number, of)| Self { number, of })
            .ok_or_else(|| "expected NUMBER/SHARDS, from 1/8 to 8/8".to_owned())
    }
}

impl Shard {
    /// Folder of its results, in the one that all shards have as `--out`.
    pub fn folder(self, out: &Path) -> PathBuf {
        out.join(format!("shard-{}-of-{}", self.number, self.of))
    }
}

impl Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// The shard of each run, from 1, by the cost of each: the most expensive first, each to the shard with the least load (LPT; Graham,
/// SIAM J. Appl. Math. 17, 1969: at most 4/3 of the best there is). Equal input has equal output.
pub fn divide(costs: &[f64], shards: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by(|a, b| costs[*b].total_cmp(&costs[*a]).then(a.cmp(b)));
    let mut loads = vec![0.0_f64; shards.max(1)];
    let mut divided = vec![0; costs.len()];
    for run in order {
        let least = (0..loads.len()).min_by(|a, b| loads[*a].total_cmp(&loads[*b])).unwrap_or(0);
        loads[least] += costs[run];
        divided[run] = least + 1;
    }
    divided
}

/// The same for the runs of some plans; those that are one simulation are in one shard.
pub fn divide_runs(plans: &[&Plan], shards: usize) -> Vec<Vec<usize>> {
    let simulations: Vec<_> = plans.iter().map(|plan| plan.simulations()).collect();
    let all = || plans.iter().zip(&simulations);
    let cost = |plan: &Plan, same: &[usize]| plan.runs[same[0]].expected_cpu_s();
    let costs: Vec<f64> = all().flat_map(|(plan, own)| own.iter().map(|same| cost(plan, same))).collect();
    let mut divided = divide(&costs, shards).into_iter();
    let of_plan = |(plan, own): (&&Plan, &Vec<Vec<usize>>)| {
        let mut of_runs = vec![0; plan.runs.len()];
        for (same, shard) in own.iter().zip(&mut divided) {
            same.iter().for_each(|run| of_runs[*run] = shard);
        }
        of_runs
    };
    all().map(of_plan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shard_is_a_number_of_a_number() {
        assert_eq!("3/8".parse(), Ok(Shard { number: 3, of: 8 }));
        assert_eq!(Shard { number: 3, of: 8 }.to_string(), "3/8");
        for wrong in ["", "3", "0/8", "9/8", "-1/8", "3/8/8", "a/b", "3/0", "3 /8"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_run_is_in_one_shard_and_none_has_much_more_than_its_part(
            costs in prop::collection::vec(0.01f64..100.0, 1..60),
            shards in 1usize..9,
        ) {
            let divided = divide(&costs, shards);
            prop_assert_eq!(divided.len(), costs.len());
            prop_assert!(divided.iter().all(|shard| (1..=shards).contains(shard)));
            let load = |shard| costs.iter().zip(&divided).filter(|(_, of)| **of == shard).map(|(cost, _)| cost).sum();
            let most = (1..=shards).map(load).fold(0.0, f64::max);
            // No division is better than these, and LPT is at most 4/3 of the best; the sum of the two is enough here.
            let largest = costs.iter().copied().fold(0.0, f64::max);
            let part = costs.iter().sum::<f64>() / shards as f64;
            prop_assert!(most <= part + largest + 1e-9, "{most} of {part}, {largest}");
            if costs.len() >= shards {
                prop_assert!((1..=shards).all(|shard| divided.contains(&shard)));
            }
        }
    }
}
