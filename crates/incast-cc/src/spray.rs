//! Spraying by the sender: each packet takes the next of all equal-cost ways, in a random order that is drawn anew each round.
//!
//! Source: M. Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance",
//! SIGCOMM 2017 (NDP), sections 3.1.1 (permuted paths) and 3.2.3 (path penalty). The paper says that ways with an outlying
//! number of NACKs or losses are left out for a while, and no numbers. Which way is an outlier follows its authors' simulator
//! (`ndp.cpp`: 1.25 times the mean, and 30 NACKs for 100 ACKs; a header that came back counts as three). Ours: that a
//! way is judged once chance no longer explains what it does (theirs waits for 100 packets, more than a way of a short flow ever
//! has), for how many rounds it is left out, that losses count, and that half of the ways always stay.
//!
//! Of a round of n ways, packet k draws one of the n − k that are left (Fisher and Yates), so no packet costs more than
//! another.

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrived.
    Arrived,
    /// Its header arrived.
    Trimmed,
    /// Its header came back.
    Bounced,
    /// Nothing was heard of it.
    Lost,
}

impl Fate {
    /// How much it speaks against its way.
    const fn trouble(self) -> u32 {
        match self {
            Self::Arrived => 0,
            Self::Trimmed => 1,
            Self::Bounced | Self::Lost => 3,
        }
    }
}

/// The order of the ways of one flow.
#[derive(Clone, Debug)]
pub struct Spray {
    /// A permutation of the ways; those before `next` had their turn in this round.
    order: Vec<u16>,
    next: usize,
    scoreboard: Option<Box<Scoreboard>>,
    /// Of the last packets, a bit each: it arrived.
    arrived: u16,
    /// How many of them there are.
    heard: u8,
}

/// Packets by which the whole network is judged.
const HISTORY: u8 = 12;

impl Spray {
    /// So many ways, at least one. With `penalty`, outliers are left out for a while.
    pub fn new(ways: u16, penalty: bool) -> Self {
        let ways = ways.max(1);
        let scoreboard = (penalty && ways > 1).then(|| Box::new(Scoreboard::new(ways)));
        Self { order: (0..ways).collect(), next: 0, scoreboard, arrived: 0, heard: 0 }
    }

    /// The way of the next packet. `random` gives evenly distributed numbers.
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
            let way = self.order[self.next];
            self.next += 1;
            if self.scoreboard.as_ref().is_none_or(|scoreboard| scoreboard.ways[usize::from(way)].out == 0) {
                return way;
            }
        }
    }

    /// What became of a packet that took a way.
    pub fn on_fate(&mut self, way: u16, fate: Fate) {
        self.arrived = self.arrived << 1 | u16::from(fate == Fate::Arrived);
        self.heard = (self.heard + 1).min(HISTORY);
        if let Some(scoreboard) = &mut self.scoreboard {
            scoreboard.note(way, fate);
        }
    }

    /// A header that just came back came from a way that is worse than the others: at least a quarter of the last packets
    /// arrived, so the network as a whole is not congested.
    pub fn is_bad_way(&self) -> bool {
        let arrived = (self.arrived & ((1 << HISTORY) - 1)).count_ones();
        arrived > 0 && 4 * arrived >= u32::from(self.heard)
    }
}

/// For how many rounds a way is left out at first; twice as long each further time in a row.
const SHORTEST: u16 = 8;
/// And never longer.
const LONGEST: u16 = 128;
/// Packets after which those before count half.
const MOST: u32 = 128;
/// Standard deviations by which an outlier is above the mean.
const DEVIATIONS: u128 = 3;

/// What is known of a way.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    arrived: u32,
    trouble: u32,
    /// Rounds for which it was left out the last time, less when it has done well since.
    penalty: u16,
    /// Rounds for which it is still left out.
    out: u16,
}

#[derive(Clone, Debug)]
struct Scoreboard {
    ways: Vec<Way>,
}

impl Scoreboard {
    fn new(ways: u16) -> Self {
        Self { ways: vec![Way::default(); usize::from(ways)] }
    }

    fn note(&mut self, way: u16, fate: Fate) {
        let Some(way) = self.ways.get_mut(usize::from(way)) else { return };
        way.arrived += u32::from(fate == Fate::Arrived);
        way.trouble += fate.trouble();
        if way.arrived + way.trouble >= MOST {
            (way.arrived, way.trouble, way.penalty) = (way.arrived / 2, way.trouble / 2, way.penalty / 2);
        }
    }

    /// A round begins: who is left out of it.
    #[inline(never)]
    fn judge(&mut self) {
        let sum = |of: fn(&Way) -> u32| self.ways.iter().map(|way| u64::from(of(way))).sum::<u64>();
        let (arrived, trouble) = (sum(|way| way.arrived), sum(|way| way.trouble));
        let out = self.ways.iter().filter(|way| way.out > 0).count();
        let mut allowed = (self.ways.len() / 2).saturating_sub(out);
        for way in &mut self.ways {
            if way.out > 0 {
                way.out -= 1;
                if way.out == 0 {
                    // It may have been mended: what it was is forgotten, and a little is enough to judge it again.
                    (way.arrived, way.trouble) = (0, 0);
                }
            } else if allowed > 0 && way.is_outlier(arrived, trouble) {
                way.penalty = (2 * way.penalty).clamp(SHORTEST, LONGEST);
                way.out = way.penalty;
                allowed -= 1;
            }
        }
    }
}

impl Way {
    /// Trouble per arrival above 30%, above 1.25 times that of all ways together, and by more than chance would have it.
    fn is_outlier(&self, all_arrived: u64, all_trouble: u64) -> bool {
        let (arrived, trouble) = (u64::from(self.arrived), u64::from(self.trouble));
        if 100 * trouble <= 30 * arrived {
            return false;
        }
        let (all, own) = (all_arrived + all_trouble, arrived + trouble);
        // Of `own` packets a share of all_trouble / all would be expected: how much more there is, times `all`.
        let excess = u128::from((trouble * all).saturating_sub(own * all_trouble));
        let variance = u128::from(own) * u128::from(all_trouble) * u128::from(all_arrived);
        4 * trouble * all_arrived > 5 * all_trouble * arrived
            && excess * excess > DEVIATIONS * DEVIATIONS * variance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers that are random enough.
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
            for (place, way) in round(&mut spray, &mut random, 4).into_iter().enumerate() {
                counts[place][usize::from(way)] += 1;
            }
        }
        assert!(counts.iter().flatten().all(|count| count.abs_diff(2_500) < 200), "{counts:?}");
    }

    /// Runs rounds in which packets of one way meet a fate and all others arrive, heard of at once. Returns how many of
    /// the last 1,000 packets took that way.
    fn share(penalty: bool, bad: u16, fate: Fate) -> usize {
        let (mut spray, mut random) = (Spray::new(8, penalty), random(3));
        let mut taken = Vec::new();
        for _ in 0..3_000 {
            let way = spray.next(&mut random);
            spray.on_fate(way, if way == bad { fate } else { Fate::Arrived });
            taken.push(way);
        }
        taken[2_000..].iter().filter(|way| **way == bad).count()
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
            let way = spray.next(&mut random);
            spray.on_fate(way, if way == 2 { Fate::Lost } else { Fate::Arrived });
        }
        let mut taken = 0;
        for packet in 0..4_000 {
            let way = spray.next(&mut random);
            spray.on_fate(way, Fate::Arrived);
            taken += usize::from(packet >= 3_200 && way == 2);
        }
        assert!((98..=102).contains(&taken), "{taken} of 800");
    }

    #[test]
    fn no_way_is_an_outlier_where_all_suffer() {
        let (mut spray, mut random) = (Spray::new(8, true), random(5));
        let mut counts = [0; 8];
        for packet in 0..4_000 {
            let way = spray.next(&mut random);
            counts[usize::from(way)] += 1;
            // Half of a round, another half in the next one.
            spray.on_fate(
                way,
                if (packet / 8 + usize::from(way)) % 2 == 0 { Fate::Trimmed } else { Fate::Arrived },
            );
        }
        assert!(counts.iter().all(|count| *count == 500), "{counts:?}");
        // Nor where nothing arrives at all.
        (0..1_000).for_each(|_| {
            let way = spray.next(&mut random);
            spray.on_fate(way, Fate::Bounced);
        });
        assert_eq!(round(&mut spray, &mut random, 8).len(), 8);
    }

    #[test]
    fn a_single_header_that_comes_back_speaks_against_its_way_alone() {
        let mut spray = Spray::new(4, true);
        assert!(!spray.is_bad_way());
        spray.on_fate(0, Fate::Bounced);
        assert!(!spray.is_bad_way(), "nothing has arrived");
        (0..3).for_each(|way| spray.on_fate(way, Fate::Arrived));
        assert!(spray.is_bad_way());
        (0..9).for_each(|_| spray.on_fate(1, Fate::Trimmed));
        assert!(spray.is_bad_way(), "3 of 12");
        spray.on_fate(1, Fate::Trimmed);
        assert!(!spray.is_bad_way(), "2 of 12");
    }

    proptest! {
        /// Whatever becomes of packets, ways exist, and at least half of them are taken.
        #[test]
        fn half_of_the_ways_always_stay(
            ways in 1u16..40,
            seed: u64,
            fates in proptest::collection::vec(0u8..4, 1..2_000),
        ) {
            let (mut spray, mut random) = (Spray::new(ways, true), random(seed));
            for fate in fates {
                let way = spray.next(&mut random);
                prop_assert!(way < ways);
                // What is likely depends on the way.
                let fates = [Fate::Arrived, Fate::Arrived, Fate::Trimmed, Fate::Lost];
                spray.on_fate(way, fates[usize::from(fate.min((way % 7) as u8))]);
                let out = spray.scoreboard.as_ref().map_or(0, |board| {
                    board.ways.iter().filter(|way| way.out > 0).count()
                });
                prop_assert!(out <= usize::from(ways) / 2);
            }
        }
    }
}
