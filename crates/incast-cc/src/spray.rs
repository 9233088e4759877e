//! Spraying by the sender: each packet takes the next of all equal-cost paths, in a random order that is drawn anew
//! each round.
//!
//! Source: M. Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance",
//! SIGCOMM 2017 (NDP), sections 3.1.1 (permuted paths) and 3.2.3 (path penalty). The paper says that paths with an
//! outlying number of NACKs or losses are excluded for a while, and gives no numbers. Which path is an outlier
//! follows its authors' simulator (`ndp.cpp`: 1.25 times the mean, and 30 NACKs for 100 ACKs; a returned header
//! counts as three). Ours are: the significance test (theirs waits for 100 packets, more than any path of a short
//! flow carries), the number of rounds of an exclusion, that losses count, and that half of the paths always stay.
//!
//! In a round of n paths, packet k draws one of the n − k that are left (Fisher and Yates), so every packet costs
//! the same.

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrived.
    Arrived,
    /// Its header arrived.
    Trimmed,
    /// Its header came back.
    Bounced,
    /// It was lost.
    Lost,
}

impl Fate {
    /// Its weight as evidence against its path.
    const fn penalty_weight(self) -> u32 {
        match self {
            Self::Arrived => 0,
            Self::Trimmed => 1,
            Self::Bounced | Self::Lost => 3,
        }
    }
}

/// The order of the paths of one flow.
#[derive(Clone, Debug)]
pub struct Spray {
    /// A permutation of the paths; those before `next` have been used in this round.
    order: Vec<u16>,
    next: usize,
    scoreboard: Option<Box<Scoreboard>>,
    /// One bit for each of the last packets: whether it arrived.
    arrived: u16,
    /// Number of valid bits.
    outcomes: u8,
}

/// Number of packets from which the state of the whole network is estimated.
const HISTORY: u8 = 12;

impl Spray {
    /// The order of this number of paths, at least one. With `penalty`, outliers are excluded for a while.
    pub fn new(paths: u16, penalty: bool) -> Self {
        let paths = paths.max(1);
        let scoreboard = (penalty && paths > 1).then(|| Box::new(Scoreboard::new(paths)));
        Self { order: (0..paths).collect(), next: 0, scoreboard, arrived: 0, outcomes: 0 }
    }

    /// The path of the next packet. `random` returns uniformly distributed numbers.
    pub fn next(&mut self, mut random: impl FnMut() -> u32) -> u16 {
        loop {
            if self.next == self.order.len() {
                self.next = 0;
                if let Some(scoreboard) = &mut self.scoreboard {
                    scoreboard.judge();
                }
            }
            let left = (self.order.len() - self.next) as u64;
            let drawn = self.next + ((u64::from(random()) * left) >> 32) as usize;
            self.order.swap(self.next, drawn);
            let path = self.order[self.next];
            self.next += 1;
            if self.scoreboard.as_ref().is_none_or(|scoreboard| scoreboard.paths[usize::from(path)].out == 0) {
                return path;
            }
        }
    }

    /// Records the fate of a packet that took a path.
    pub fn on_fate(&mut self, path: u16, fate: Fate) {
        self.arrived = self.arrived << 1 | u16::from(fate == Fate::Arrived);
        self.outcomes = (self.outcomes + 1).min(HISTORY);
        if let Some(scoreboard) = &mut self.scoreboard {
            scoreboard.note(path, fate);
        }
    }

    /// Whether a header that has just been returned came from a path that is worse than the others: at least a
    /// quarter of the last packets arrived, so the network as a whole is not congested.
    pub fn is_bad_path(&self) -> bool {
        let arrived = (self.arrived & ((1 << HISTORY) - 1)).count_ones();
        arrived > 0 && 4 * arrived >= u32::from(self.outcomes)
    }
}

/// Rounds of the first exclusion of a path. Each further one in a row takes twice as long.
const SHORTEST: u16 = 8;
/// Rounds of the longest exclusion.
const LONGEST: u16 = 128;
/// Packets after which earlier ones count half.
const MOST: u32 = 128;
/// An outlier is this number of standard deviations above the mean.
const DEVIATIONS: u128 = 3;

/// Statistics of a path.
#[derive(Clone, Copy, Debug, Default)]
struct PathRecord {
    arrived: u32,
    penalty_weight: u32,
    /// Rounds of its last exclusion, reduced when it has done well since.
    penalty: u16,
    /// Remaining rounds of its exclusion.
    out: u16,
}

#[derive(Clone, Debug)]
struct Scoreboard {
    paths: Vec<PathRecord>,
}

impl Scoreboard {
    fn new(paths: u16) -> Self {
        Self { paths: vec![PathRecord::default(); usize::from(paths)] }
    }

    fn note(&mut self, path: u16, fate: Fate) {
        let Some(path) = self.paths.get_mut(usize::from(path)) else { return };
        path.arrived += u32::from(fate == Fate::Arrived);
        path.penalty_weight += fate.penalty_weight();
        if path.arrived + path.penalty_weight >= MOST {
            (path.arrived, path.penalty_weight, path.penalty) =
                (path.arrived / 2, path.penalty_weight / 2, path.penalty / 2);
        }
    }

    /// A round begins: decides which paths are excluded from it.
    #[inline(never)]
    fn judge(&mut self) {
        let sum = |of: fn(&PathRecord) -> u32| self.paths.iter().map(|path| u64::from(of(path))).sum::<u64>();
        let (arrived, penalty_weight) = (sum(|path| path.arrived), sum(|path| path.penalty_weight));
        let out = self.paths.iter().filter(|path| path.out > 0).count();
        let mut allowed = (self.paths.len() / 2).saturating_sub(out);
        for path in &mut self.paths {
            if path.out > 0 {
                path.out -= 1;
                if path.out == 0 {
                    // The path may have been repaired: its history is cleared, and a few packets suffice to judge
                    // it again.
                    (path.arrived, path.penalty_weight) = (0, 0);
                }
            } else if allowed > 0 && path.is_outlier(arrived, penalty_weight) {
                path.penalty = (2 * path.penalty).clamp(SHORTEST, LONGEST);
                path.out = path.penalty;
                allowed -= 1;
            }
        }
    }
}

impl PathRecord {
    /// Weight of penalties per arrival above 30%, above 1.25 times that of all paths together, and statistically significant.
    fn is_outlier(&self, all_arrived: u64, all_weight: u64) -> bool {
        let (arrived, penalty_weight) = (u64::from(self.arrived), u64::from(self.penalty_weight));
        if 100 * penalty_weight <= 30 * arrived {
            return false;
        }
        let (all, own) = (all_arrived + all_weight, arrived + penalty_weight);
        // Weight expected of `own` packets is own x all_weight / all. This is the excess over it, times `all`.
        let excess = u128::from((penalty_weight * all).saturating_sub(own * all_weight));
        let variance = u128::from(own) * u128::from(all_weight) * u128::from(all_arrived);
        4 * penalty_weight * all_arrived > 5 * all_weight * arrived
            && excess * excess > DEVIATIONS * DEVIATIONS * variance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pseudo-random numbers for tests.
    fn random(seed: u64) -> impl FnMut() -> u32 {
        let mut state = seed;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        }
    }

    fn round(spray: &mut Spray, random: &mut impl FnMut() -> u32, packets: usize) -> Vec<u16> {
        (0..packets).map(|_| spray.next(&mut *random)).collect()
    }

    #[test]
    fn each_round_takes_each_way_once_in_an_order_of_its_own() {
        let (mut spray, mut random) = (Spray::new(16, true), random(1));
        let mut orders = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let order = round(&mut spray, &mut random, 16);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..16).collect::<Vec<_>>());
            orders.insert(order);
        }
        assert_eq!(orders.len(), 50);
    }

    #[test]
    fn each_way_is_as_likely_in_each_place() {
        let (mut spray, mut random) = (Spray::new(4, false), random(2));
        let mut counts = [[0u32; 4]; 4];
        for _ in 0..10_000 {
            for (place, path) in round(&mut spray, &mut random, 4).into_iter().enumerate() {
                counts[place][usize::from(path)] += 1;
            }
        }
        assert!(counts.iter().flatten().all(|count| count.abs_diff(2_500) < 200), "{counts:?}");
    }

    /// Runs rounds in which packets of one path have the given fate and all others arrive, reported at once.
    /// Returns how many of the last 1,000 packets took that path.
    fn share(penalty: bool, bad: u16, fate: Fate) -> usize {
        let (mut spray, mut random) = (Spray::new(8, penalty), random(3));
        let mut taken = Vec::new();
        for _ in 0..3_000 {
            let path = spray.next(&mut random);
            spray.on_fate(path, if path == bad { fate } else { Fate::Arrived });
            taken.push(path);
        }
        taken[2_000..].iter().filter(|path| **path == bad).count()
    }

    #[test]
    fn a_bad_way_is_left_out_most_of_the_time() {
        for fate in [Fate::Trimmed, Fate::Bounced, Fate::Lost] {
            assert_eq!(share(false, 5, fate), 125, "a packet in eight");
            let with = share(true, 5, fate);
            assert!((1..50).contains(&with), "{with} with {fate:?}");
        }
        assert_eq!(share(true, 5, Fate::Arrived), 125);
    }

    #[test]
    fn a_way_that_was_mended_is_taken_again() {
        let (mut spray, mut random) = (Spray::new(8, true), random(4));
        for _ in 0..1_000 {
            let path = spray.next(&mut random);
            spray.on_fate(path, if path == 2 { Fate::Lost } else { Fate::Arrived });
        }
        let mut taken = 0;
        for packet in 0..4_000 {
            let path = spray.next(&mut random);
            spray.on_fate(path, Fate::Arrived);
            taken += usize::from(packet >= 3_200 && path == 2);
        }
        assert!((98..=102).contains(&taken), "{taken} of 800");
    }

    #[test]
    fn no_way_is_an_outlier_where_all_suffer() {
        let (mut spray, mut random) = (Spray::new(8, true), random(5));
        let mut counts = [0; 8];
        for packet in 0..4_000 {
            let path = spray.next(&mut random);
            counts[usize::from(path)] += 1;
            // Half of a round, the other half in the next one.
            spray.on_fate(path, if (packet / 8 + usize::from(path)) % 2 == 0 { Fate::Trimmed } else { Fate::Arrived });
        }
        assert!(counts.iter().all(|count| *count == 500), "{counts:?}");
        // Nor where nothing arrives at all.
        (0..1_000).for_each(|_| {
            let path = spray.next(&mut random);
            spray.on_fate(path, Fate::Bounced);
        });
        assert_eq!(round(&mut spray, &mut random, 8).len(), 8);
    }

    #[test]
    fn a_single_header_that_comes_back_speaks_against_its_way_alone() {
        let mut spray = Spray::new(4, true);
        assert!(!spray.is_bad_path());
        spray.on_fate(0, Fate::Bounced);
        assert!(!spray.is_bad_path(), "nothing has arrived");
        (0..3).for_each(|path| spray.on_fate(path, Fate::Arrived));
        assert!(spray.is_bad_path());
        (0..9).for_each(|_| spray.on_fate(1, Fate::Trimmed));
        assert!(spray.is_bad_path(), "3 of 12");
        spray.on_fate(1, Fate::Trimmed);
        assert!(!spray.is_bad_path(), "2 of 12");
    }

    proptest! {
        /// For any fates, returned paths exist, and at least half of the paths are used.
        #[test]
        fn half_of_the_ways_always_stay(
            paths in 1u16..40,
            seed: u64,
            fates in proptest::collection::vec(0u8..4, 1..2_000),
        ) {
            let (mut spray, mut random) = (Spray::new(paths, true), random(seed));
            for fate in fates {
                let path = spray.next(&mut random);
                prop_assert!(path < paths);
                // Probabilities depend on the path.
                let fates = [Fate::Arrived, Fate::Arrived, Fate::Trimmed, Fate::Lost];
                spray.on_fate(path, fates[usize::from(fate.min((path % 7) as u8))]);
                let out = spray.scoreboard.as_ref().map_or(0, |board| {
                    board.paths.iter().filter(|path| path.out > 0).count()
                });
                prop_assert!(out <= usize::from(paths) / 2);
            }
        }
    }
}
