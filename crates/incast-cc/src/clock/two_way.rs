//! Two-way exchanges, as NTP has them: half the difference of both directions is how much the other clock is ahead.
//!
//! With readings t1 (A sends), t2 (B receives), t3 (B sends), t4 (A receives):
//!
//! ```text
//! ahead = ((t2 − t1) + (t3 − t4)) / 2        round trip = (t4 − t1) − (t3 − t2)
//! ```
//!
//! Half of what the directions' delays differ by, queueing included, is error. Averaging removes noise and keeps the
//! difference of the mean queues; the fastest exchange of many hardly queued.
//!
//! Source: RFC 5905, sections 8 (on-wire protocol) and 10 (clock filter: the sample of the smallest delay of eight).
//! Ours: the rate comes from a line of least squares through a window's exchanges, where NTP has a feedback loop over
//! many.

use super::{Line, Point, Probe};

/// One packet there and one back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// From A to B.
    pub forward: Probe,
    /// From B to A, sent after `forward` came.
    pub reverse: Probe,
}

impl Exchange {
    /// How much B is ahead of A, and when: in the middle between both packets, as A's clock has it.
    pub fn point(&self, start_ps: i64) -> Point {
        let (there, back) = (Point::forward(self.forward, start_ps), Point::reverse(self.reverse, start_ps));
        Point { at_ns: 0.5 * (there.at_ns + back.at_ns), ahead_ns: 0.5 * (there.ahead_ns + back.ahead_ns) }
    }

    /// The round trip without the time that B took, in picoseconds.
    pub fn round_trip_ps(&self) -> i64 {
        let total = self.reverse.received_ps.wrapping_sub(self.forward.sent_ps);
        total.wrapping_sub(self.reverse.sent_ps.wrapping_sub(self.forward.received_ps))
    }
}

/// Joins each packet from A with the next one from B that answers it; both lists in the order of sending. Each packet
/// is used at most once.
pub fn exchanges(forward: &[Probe], reverse: &[Probe]) -> Vec<Exchange> {
    let mut answers = reverse.iter();
    let mut joined = Vec::with_capacity(forward.len().min(reverse.len()));
    for there in forward {
        match answers.find(|back| back.sent_ps >= there.received_ps) {
            Some(back) => joined.push(Exchange { forward: *there, reverse: *back }),
            None => break,
        }
    }
    joined
}

/// The line of least squares through all exchanges. `None` if fewer than two times are among them.
pub fn average(exchanges: &[Exchange], start_ps: i64) -> Option<Line> {
    least_squares(exchanges.iter().map(|exchange| exchange.point(start_ps)))
}

/// The line of least squares through the fastest exchange of each of `parts` equal parts of the list (NTP's filter has
/// the fastest of eight). `None` if fewer than two remain.
pub fn fastest(exchanges: &[Exchange], parts: usize, start_ps: i64) -> Option<Line> {
    let length = exchanges.len().div_ceil(parts.max(1)).max(1);
    let fastest = exchanges.chunks(length).filter_map(|part| part.iter().min_by_key(|e| e.round_trip_ps()));
    least_squares(fastest.map(|exchange| exchange.point(start_ps)))
}

fn least_squares(points: impl Iterator<Item = Point> + Clone) -> Option<Line> {
    let (mut count, mut at, mut ahead) = (0.0, 0.0, 0.0);
    for point in points.clone() {
        count += 1.0;
        at += point.at_ns;
        ahead += point.ahead_ns;
    }
    let (at, ahead) = (at / count, ahead / count);
    let (mut square, mut product) = (0.0, 0.0);
    for point in points {
        square += (point.at_ns - at) * (point.at_ns - at);
        product += (point.at_ns - at) * (point.ahead_ns - ahead);
    }
    // Without a point everything is NaN.
    let rate = (square > 0.0).then(|| product / square)?;
    Some(Line { offset_ns: ahead - rate * at, rate })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B is 5 us ahead and 20 ppm fast; `delays` are those of an exchange every 250 us, there and back, in picoseconds.
    fn exchange(n: i64, delays: [i64; 2]) -> Exchange {
        let b = |a: i64| a + 5_000_000 + a / 50_000;
        let sent = n * 250_000_000;
        let back = sent + delays[0] + 40_000_000;
        Exchange {
            forward: Probe { sent_ps: sent, received_ps: b(sent + delays[0]) },
            reverse: Probe { sent_ps: b(back), received_ps: back + delays[1] },
        }
    }

    #[test]
    fn equal_delays_give_the_exact_line() {
        let all: Vec<Exchange> = (0..80).map(|n| exchange(n, [2_000_000, 2_000_000])).collect();
        for line in [average(&all, 0), fastest(&all, 8, 0)] {
            let line = line.expect("a line");
            assert!((line.offset_ns - 5_000.0).abs() < 0.01, "{line:?}");
            assert!((line.rate - 20e-6).abs() < 1e-9, "{line:?}");
        }
        assert!((all[3].round_trip_ps() - 4_000_000).abs() < 2_000);
    }

    #[test]
    fn queues_of_one_direction_mislead_the_average_and_not_the_fastest() {
        // Three of four forward packets wait 10 us.
        let wait = |n: i64| if n % 4 == 0 { 0 } else { 10_000_000 };
        let all: Vec<Exchange> = (0..80).map(|n| exchange(n, [2_000_000 + wait(n), 2_000_000])).collect();
        let mean = average(&all, 0).expect("a line").at(1e7) - 5_000.0 - 200.0;
        assert!((mean - 3_750.0).abs() < 150.0, "{mean}");
        let best = fastest(&all, 8, 0).expect("a line").at(1e7) - 5_000.0 - 200.0;
        assert!(best.abs() < 1.0, "{best}");
    }

    #[test]
    fn packets_are_joined_with_their_next_answer() {
        let probe = |sent_ps, received_ps| Probe { sent_ps, received_ps };
        let forward = [probe(0, 10), probe(5, 15), probe(100, 110)];
        let reverse = [probe(5, 0), probe(12, 20), probe(40, 50)];
        let joined = exchanges(&forward, &reverse);
        assert_eq!(
            joined,
            [
                Exchange { forward: forward[0], reverse: reverse[1] },
                Exchange { forward: forward[1], reverse: reverse[2] }
            ]
        );
        assert!(exchanges(&forward, &[]).is_empty());
    }

    #[test]
    fn too_few_exchanges_give_no_line() {
        assert!(average(&[], 0).is_none());
        assert!(average(&[exchange(1, [1, 1])], 0).is_none());
        assert!(fastest(&[], 8, 0).is_none());
        let all: Vec<Exchange> = (0..20).map(|n| exchange(n, [5, 5])).collect();
        assert!(fastest(&all, 1, 0).is_none());
        assert!(fastest(&all, 0, 0).is_none());
    }
}
