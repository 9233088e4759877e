//! Coded probes: which packets met no changing queue.
//!
//! Two packets leave a gap `s` apart. If they arrive `s` apart, then most likely both found the path empty; a packet
//! that waited, or that a noisy timestamp misrepresents, changes the gap.
//!
//! Source: Geng et al., NSDI 2018, section 3 ("coded probes").

use super::{CodedPair, Probe};

/// The packets of the pairs that kept their distance: `|receive gap − send gap| < guard_ps`, all in picoseconds.
///
/// Both packets of an accepted pair are kept, in the order of sending. The rates of the two clocks differ by at most
/// 1e-4, which changes a gap of 10 us by a nanosecond: the guard is to be larger.
pub fn accepted(pairs: &[CodedPair], guard_ps: i64) -> impl Iterator<Item = Probe> + '_ {
    pairs.iter().filter(move |pair| keeps_its_gap(pair, guard_ps)).flat_map(|pair| [pair.first, pair.second])
}

fn keeps_its_gap(pair: &CodedPair, guard_ps: i64) -> bool {
    let sent = pair.second.sent_ps.wrapping_sub(pair.first.sent_ps);
    let received = pair.second.received_ps.wrapping_sub(pair.first.received_ps);
    received.wrapping_sub(sent).unsigned_abs() < guard_ps.max(0).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(sent: [i64; 2], received: [i64; 2]) -> CodedPair {
        let probe = |index: usize| Probe { sent_ps: sent[index], received_ps: received[index] };
        CodedPair { first: probe(0), second: probe(1) }
    }

    #[test]
    fn pairs_that_kept_their_gap_are_accepted() {
        let kept = pair([0, 10_000], [500, 10_500]);
        let stretched = pair([0, 10_000], [500, 10_600]);
        let squeezed = pair([0, 10_000], [500, 10_400]);
        let all = [stretched, kept, squeezed];
        assert_eq!(accepted(&all, 100).collect::<Vec<_>>(), [kept.first, kept.second]);
        assert_eq!(accepted(&all, 101).count(), 6);
        assert_eq!(accepted(&all, 0).count(), 0);
        assert_eq!(accepted(&all, -5).count(), 0);
    }

    #[test]
    fn readings_at_the_ends_of_their_range_do_not_panic() {
        let wild = pair([i64::MIN, i64::MAX], [i64::MAX, i64::MIN]);
        assert!(accepted(&[wild], i64::MAX).count() <= 2);
    }
}
