//! The line between two clouds of bounds, by a support vector machine.
//!
//! Packets from A to B give an upper bound of how much B is ahead (too large by their delay), packets from B to A a
//! lower bound: the upper cloud and the lower one. With equal propagation delays the difference of the clocks runs in
//! the middle between the clouds' inner edges, and the line that separates them with the widest margin estimates it.
//!
//! **Which machine.** The soft-margin machine in its ν form: the widest margin between the two reduced convex hulls, in
//! which no point weighs more than `1/m` (K. Bennett, E. Bredensteiner, "Duality and Geometry in SVM Classifiers", ICML
//! 2000; D. Crisp, C. Burges, "A Geometric Interpretation of ν-SVM Classifiers", NIPS 1999). With `m = 1` it is the
//! hard-margin machine. Its parameter is a share of the points, which has no unit, where `C` of the other form would
//! have to be chosen anew for each noise. Clouds that overlap have a negative margin, and are no special case.
//!
//! **How it is solved.** Both axes are times and slopes are below 1e-4, so distances to the line are vertical distances
//! up to a factor of 1 − 5e-9. For a slope b let
//!
//! ```text
//! h(b) = mean of the m smallest  (y − b x)  of the upper cloud
//! H(b) = mean of the m largest   (y − b x)  of the lower cloud
//! φ(b) = h(b) − H(b)                        the margin
//! ```
//!
//! φ is concave and linear in pieces (a smallest mean over subsets, minus a largest one). Its maximum is found by
//! intersecting the tangents at both ends of a bracket until neither improves: finitely many steps, each linear in the
//! points, without a random choice or a tolerance to tune.

use super::{Line, Point};

/// A separating line and how it was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Envelope {
    /// The line in the middle of the margin.
    pub line: Line,
    /// Vertical distance between the edges of the clouds, in nanoseconds: the round trip of an empty network. Below
    /// zero if the clouds overlap.
    pub margin_ns: f64,
}

/// Slopes beyond this are not clocks.
const STEEPEST: f64 = 1e-2;
/// Bisection of a bracket of 2e-2 reaches neighbouring floats far earlier.
const MOST_STEPS: usize = 200;

/// The line with the widest margin between `upper` and `lower`; in each cloud the mean of its innermost share `soft`
/// (at least one point) makes the edge.
///
/// `soft` = 0 is the hard margin; it may not exceed 1. `None` if a cloud has fewer than two points, a number is not
/// finite, or either cloud has all its points at one time, which leaves the slope open.
pub fn envelope(upper: &[Point], lower: &[Point], soft: f64) -> Option<Envelope> {
    let finite = |point: &Point| point.at_ns.is_finite() && point.ahead_ns.is_finite();
    if !soft.is_finite() || !upper.iter().chain(lower).all(finite) {
        return None;
    }
    let mut above = Edge::new(upper, 1.0, soft)?;
    let mut below = Edge::new(lower, -1.0, soft)?;
    let mut left = Tangent::new(-STEEPEST, &mut above, &mut below);
    let mut right = Tangent::new(STEEPEST, &mut above, &mut below);
    let mut width = right.slope - left.slope;
    // Bracketed: φ rises at the left end and falls at the right one.
    if left.slope_of_margin <= 0.0 || right.slope_of_margin >= 0.0 {
        return None;
    }
    let mut best = if left.margin > right.margin { left } else { right };
    for _ in 0..MOST_STEPS {
        let crossing = left.crossing(&right);
        if !(crossing > left.slope && crossing < right.slope) {
            break;
        }
        let middle = Tangent::new(crossing, &mut above, &mut below);
        if middle.margin > best.margin {
            best = middle;
        }
        // The tangents bound φ from above: when φ reaches their crossing it is the maximum.
        let bound = left.margin + left.slope_of_margin * (crossing - left.slope);
        if middle.margin >= bound - 1e-9 * bound.abs().max(1e-3) {
            best = middle;
            break;
        }
        if middle.slope_of_margin > 0.0 {
            left = middle;
        } else if middle.slope_of_margin < 0.0 {
            right = middle;
        } else {
            break;
        }
        if right.slope - left.slope < 0.1 * width {
            width = right.slope - left.slope;
            above.narrow(left.slope, right.slope);
            below.narrow(left.slope, right.slope);
        }
    }
    Some(Envelope { line: Line { offset_ns: best.offset_ns, rate: best.slope }, margin_ns: best.margin })
}

/// φ at a slope, with one of its tangents.
#[derive(Clone, Copy, Debug)]
struct Tangent {
    slope: f64,
    margin: f64,
    slope_of_margin: f64,
    offset_ns: f64,
}

impl Tangent {
    fn new(slope: f64, above: &mut Edge, below: &mut Edge) -> Self {
        let (above, below) = (above.at(slope), below.at(slope));
        let (high, low) = (above.ahead_ns - slope * above.at_ns, below.ahead_ns - slope * below.at_ns);
        Self { slope, margin: high - low, slope_of_margin: below.at_ns - above.at_ns, offset_ns: 0.5 * (high + low) }
    }

    fn crossing(&self, other: &Self) -> f64 {
        let gap = other.margin - other.slope_of_margin * (other.slope - self.slope) - self.margin;
        self.slope + gap / (self.slope_of_margin - other.slope_of_margin)
    }
}

/// The inner edge of a cloud.
struct Edge {
    /// Those that can still be among the innermost.
    points: Vec<Point>,
    /// 1 for the upper cloud, whose edge is its lowest points; −1 for the lower one.
    sign: f64,
    count: usize,
    /// Sign × (y − b x) and the point's index, so that ties have an order.
    keys: Vec<(f64, usize)>,
}

impl Edge {
    fn new(points: &[Point], sign: f64, soft: f64) -> Option<Self> {
        let first = points.first()?;
        if points.iter().all(|point| point.at_ns == first.at_ns) {
            return None;
        }
        let count = (soft.clamp(0.0, 1.0) * points.len() as f64).round() as usize;
        let count = count.clamp(1, points.len());
        Some(Self { points: points.to_vec(), sign, count, keys: Vec::new() })
    }

    fn key(&self, point: &Point, slope: f64) -> f64 {
        self.sign * (point.ahead_ns - slope * point.at_ns)
    }

    /// The mean of the innermost points as a line of this slope sees them.
    fn at(&mut self, slope: f64) -> Point {
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        keys.extend(self.points.iter().enumerate().map(|(index, point)| (self.key(point, slope), index)));
        let compare = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let last = *keys.select_nth_unstable_by(self.count - 1, compare).1;
        // Summed in the order of the points: the selection's order is none to rely on.
        let (mut at, mut ahead) = (0.0, 0.0);
        for (index, point) in self.points.iter().enumerate() {
            if compare(&(self.key(point, slope), index), &last).is_le() {
                at += point.at_ns;
                ahead += point.ahead_ns;
            }
        }
        self.keys = keys;
        let count = self.count as f64;
        Point { at_ns: at / count, ahead_ns: ahead / count }
    }

    /// Forgets points that are among the innermost for no slope between `left` and `right`: as many as are needed are
    /// further in at both ends, so everywhere between, than the point is at its better end.
    fn narrow(&mut self, left: f64, right: f64) {
        let ends = |point: &Point| (self.key(point, left), self.key(point, right));
        let mut worse: Vec<f64> = self.points.iter().map(|p| ends(p).0.max(ends(p).1)).collect();
        let limit = *worse.select_nth_unstable_by(self.count - 1, f64::total_cmp).1;
        let stays: Vec<Point> = self.points.iter().copied().filter(|p| ends(p).0.min(ends(p).1) <= limit).collect();
        self.points = stays;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(list: &[(f64, f64)]) -> Vec<Point> {
        list.iter().map(|(at_ns, ahead_ns)| Point { at_ns: *at_ns, ahead_ns: *ahead_ns }).collect()
    }

    /// φ as its definition has it.
    fn margin(upper: &[Point], lower: &[Point], soft: f64, slope: f64) -> f64 {
        let mean = |cloud: &[Point], sign: f64| {
            let mut keys: Vec<f64> = cloud.iter().map(|p| sign * (p.ahead_ns - slope * p.at_ns)).collect();
            keys.sort_by(f64::total_cmp);
            let count = ((soft * keys.len() as f64).round() as usize).clamp(1, keys.len());
            keys[..count].iter().sum::<f64>() / count as f64
        };
        mean(upper, 1.0) + mean(lower, -1.0)
    }

    /// The largest φ over all slopes at which the order of two points of a cloud changes, which is where φ can bend.
    fn by_enumeration(upper: &[Point], lower: &[Point], soft: f64) -> f64 {
        let mut best = f64::NEG_INFINITY;
        for cloud in [upper, lower] {
            for (index, a) in cloud.iter().enumerate() {
                for b in &cloud[..index] {
                    let slope = (a.ahead_ns - b.ahead_ns) / (a.at_ns - b.at_ns);
                    if slope.abs() <= STEEPEST {
                        best = best.max(margin(upper, lower, soft, slope));
                    }
                }
            }
        }
        best
    }

    /// The distance of two convex hulls in the plane: the smallest among points and segments of either.
    fn distance_of_hulls(upper: &[Point], lower: &[Point]) -> f64 {
        let to_segment = |p: &Point, a: &Point, b: &Point| {
            let (dx, dy) = (b.at_ns - a.at_ns, b.ahead_ns - a.ahead_ns);
            let along = ((p.at_ns - a.at_ns) * dx + (p.ahead_ns - a.ahead_ns) * dy) / (dx * dx + dy * dy).max(1e-30);
            let along = along.clamp(0.0, 1.0);
            (p.at_ns - a.at_ns - along * dx).hypot(p.ahead_ns - a.ahead_ns - along * dy)
        };
        let mut best = f64::INFINITY;
        for (one, other) in [(upper, lower), (lower, upper)] {
            for p in one {
                for a in other {
                    for b in other {
                        best = best.min(to_segment(p, a, b));
                    }
                }
            }
        }
        best
    }

    /// Two clouds whose times reach from 0 to 1 ms at least, around a line of up to 100 ppm.
    fn clouds(shift: std::ops::Range<f64>) -> impl Strategy<Value = (Vec<Point>, Vec<Point>)> {
        let cloud = || prop::collection::vec((0.0..1e6f64, 0.0..3_000.0f64), 3..14);
        (cloud(), cloud(), shift, -1e-4..1e-4f64).prop_map(|(above, below, shift, rate)| {
            let make = |list: Vec<(f64, f64)>, sign: f64| {
                let ends = [(0.0, 700.0), (1e6, 900.0)];
                let all = list.into_iter().chain(ends);
                all.map(|(x, y)| Point { at_ns: x, ahead_ns: rate * x + sign * (shift + y) }).collect()
            };
            (make(above, 1.0), make(below, -1.0))
        })
    }

    #[test]
    fn without_noise_the_line_is_exact() {
        let line = Line { offset_ns: 123_456.0, rate: 17e-6 };
        let cloud = |delay: f64| -> Vec<Point> {
            (0..200)
                .map(|n| f64::from(n) * 1e7)
                // Some packets wait; the others make the edge.
                .map(|x| Point { at_ns: x, ahead_ns: line.at(x) + delay * if x % 3e7 == 0.0 { 4.0 } else { 1.0 } })
                .collect()
        };
        for soft in [0.0, 0.1, 0.5] {
            let found = envelope(&cloud(2_000.0), &cloud(-2_000.0), soft).expect("a line");
            assert!((found.line.offset_ns - line.offset_ns).abs() < 1e-3, "{found:?}");
            assert!((found.line.rate - line.rate).abs() < 1e-12, "{found:?}");
            assert!((found.margin_ns - 4_000.0).abs() < 1e-3, "{found:?}");
        }
    }

    #[test]
    fn clouds_that_overlap_have_a_negative_margin() {
        let upper = points(&[(0.0, -100.0), (5e5, 50.0), (1e6, -100.0)]);
        let lower = points(&[(0.0, 100.0), (5e5, -50.0), (1e6, 100.0)]);
        let found = envelope(&upper, &lower, 0.0).expect("a line");
        assert!((found.margin_ns + 200.0).abs() < 1e-6, "{found:?}");
        assert!(found.line.offset_ns.abs() < 1e-6 && found.line.rate.abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn what_has_no_answer_gets_none() {
        let good = points(&[(0.0, 10.0), (1e6, 10.0)]);
        assert!(envelope(&[], &good, 0.1).is_none());
        assert!(envelope(&good, &good[..1], 0.1).is_none());
        assert!(envelope(&good, &points(&[(5.0, 1.0), (5.0, 2.0)]), 0.1).is_none());
        assert!(envelope(&good, &points(&[(0.0, f64::NAN), (1.0, 2.0)]), 0.1).is_none());
        assert!(envelope(&good, &good, f64::NAN).is_none());
        // One cloud behind the other: every slope would do.
        assert!(envelope(&good, &points(&[(2e6, 1.0), (3e6, 1.0)]), 0.0).is_none());
    }

    proptest! {
        #[test]
        fn the_margin_is_the_widest_there_is(
            (upper, lower) in clouds(-2_000.0..2_000.0),
            soft in prop_oneof![Just(0.0), 0.0..1.0f64],
        ) {
            // Hulls that are reduced to almost a point can lie one behind the other, and then any slope would do.
            let Some(found) = envelope(&upper, &lower, soft) else {
                prop_assert!(soft > 0.3, "no line");
                return Ok(());
            };
            let best = by_enumeration(&upper, &lower, soft);
            prop_assert!((found.margin_ns - best).abs() < 1e-5, "{found:?}, {best}");
            // The line has the margin that it claims.
            let own = margin(&upper, &lower, soft, found.line.rate);
            prop_assert!((own - found.margin_ns).abs() < 1e-5);
        }

        /// The geometric machine: with both axes in the same unit its margin is the distance of the hulls. A vertical
        /// distance is longer by the factor √(1 + b²), which slopes of up to 1e-2 make visible.
        #[test]
        fn the_hard_margin_is_the_distance_of_the_convex_hulls((upper, lower) in clouds(10.0..2_000.0)) {
            let found = envelope(&upper, &lower, 0.0).expect("a line");
            let distance = distance_of_hulls(&upper, &lower);
            let margin = found.margin_ns / found.line.rate.hypot(1.0);
            prop_assert!((margin - distance).abs() < 1e-6 * distance + 1e-6, "{found:?}, {distance}");
        }

        #[test]
        fn the_order_of_the_points_does_not_matter((upper, lower) in clouds(-500.0..500.0)) {
            let reversed: Vec<Point> = upper.iter().rev().copied().collect();
            let (one, other) = (envelope(&upper, &lower, 0.2), envelope(&reversed, &lower, 0.2));
            prop_assert_eq!(one.is_some(), other.is_some());
            if let (Some(one), Some(other)) = (one, other) {
                prop_assert!((one.margin_ns - other.margin_ns).abs() < 1e-6);
            }
        }
    }
}
