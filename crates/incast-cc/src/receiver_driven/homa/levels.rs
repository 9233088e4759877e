//! How the priorities are split, and which messages have which.

use crate::{
    law::SizeClass,
    parameters::{Raw, Setting},
};
use incast_units::Bytes;

/// Largest sizes of the messages of each priority but the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cutoffs(Vec<u64>);

impl Cutoffs {
    /// How many there are: one fewer than priorities.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Which priority a message of this size has, from the highest one, 0, on.
    pub fn level(&self, bytes: u64) -> u8 {
        self.0.partition_point(|cutoff| *cutoff < bytes) as u8
    }

    /// For `count` priorities: `largest` halved again and again.
    pub(super) fn halving(largest: u64, count: u64) -> Self {
        Self((1..count).rev().map(|times| (largest >> times).max(1)).collect())
    }
}

impl Setting for Cutoffs {
    const KIND: &'static str = "sizes such as \"2KB,8KB\"";
    fn read(raw: &Raw) -> Result<Self, String> {
        let Raw::Text(text) = raw else { return Err(format!("found {raw}, expected {}", Self::KIND)) };
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let sizes: Result<Vec<u64>, _> = parts.map(|part| part.parse::<Bytes>().map(Bytes::get)).collect();
        let sizes = sizes.map_err(|error| error.to_string())?;
        if sizes.is_sorted() {
            Ok(Self(sizes))
        } else {
            Err(format!("found {raw}, allowed are sizes that do not fall"))
        }
    }
    fn write(&self) -> Raw {
        let sizes: Vec<String> = self.0.iter().map(|size| Bytes::new(*size).to_string()).collect();
        Raw::Text(sizes.join(","))
    }
}

/// Splits `priorities` (SIGCOMM 2018, section 3.4): unscheduled data get their share by bytes, one at least, and one is
/// left; a message of s bytes has min(s, R) unscheduled ones:
///
/// U = round(P Σ min(s, R) / Σ s) in 1 to P − 1, unless `count` gives the number.
///
/// Cutoff i is the smallest size up to which messages have i/U of the unscheduled bytes.
pub(super) fn split(priorities: u64, count: Option<u64>, rtt_bytes: u64, sizes: &[SizeClass]) -> (u64, Cutoffs) {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable_by_key(|class| class.bytes);
    let unscheduled_bytes = |class: &SizeClass| class.flows * class.bytes.min(rtt_bytes) as f64;
    let unscheduled: f64 = sizes.iter().map(unscheduled_bytes).sum();
    let all: f64 = sizes.iter().map(|class| class.flows * class.bytes as f64).sum();
    let most = priorities.saturating_sub(1).max(1);
    let by_share = || (priorities as f64 * unscheduled / all.max(f64::MIN_POSITIVE)).round() as u64;
    let count = count.unwrap_or_else(by_share).clamp(1, most);
    let mut cutoffs = Vec::new();
    let mut sum = 0.0;
    for class in &sizes {
        sum += unscheduled_bytes(class);
        while cutoffs.len() as u64 + 1 < count && sum * count as f64 >= unscheduled * (cutoffs.len() + 1) as f64 {
            cutoffs.push(class.bytes);
        }
    }
    (count, Cutoffs(cutoffs))
}
