//! Which link has different delays in its two directions.
//!
//! No exchange between two hosts distinguishes an asymmetric link from a clock that is ahead. Other paths between the
//! two do: loops through the edge do not add up to nothing, and loops without it do. The edge whose residual is too
//! large for the noise of all others is the one.
//!
//! Source: the observation is of Geng et al., NSDI 2018, section 4; the test is the usual one for an outlier of a
//! regression, the externally studentised residual (R. Cook, S. Weisberg, "Residuals and Influence in Regression",
//! 1982). With residual r, leverage h and weight w of an edge, leaving it out would leave
//!
//! ```text
//! b = r / (1 − h)                                          its difference from what all others imply
//! s² = (Σ w r² − w r² / (1 − h)) / (edges − nodes)         variance of the others, for weight 1
//! t = b √(w (1 − h)) / s
//! ```

use super::Graph;

/// A link whose two directions differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asymmetry {
    /// The edge, by its place among the edges of the graph.
    pub edge: usize,
    /// Delay from the edge's `a` to its `b` minus the delay back, in nanoseconds: twice the error of its estimate.
    pub forward_minus_reverse_ns: f64,
    /// The edge's studentised residual, in standard deviations; positive.
    pub deviations: f64,
}

/// Below a tenth of a nanosecond an asymmetry is rounding.
const SMALLEST_NS: f64 = 0.1;

/// The edge that the others contradict most, if by `threshold` standard deviations or more; `differences` has the
/// measurement of each edge, in nanoseconds. Among some hundred edges with normal errors, 6 is exceeded by chance once
/// in a million graphs.
///
/// `None` also if there are too few loops to decide (at least two edges more than a tree with one loop has). A bridge
/// is in no loop and never named.
pub fn asymmetry(graph: &Graph, differences: &[f64], threshold: f64) -> Option<Asymmetry> {
    let freedom = graph.edges().len().checked_sub(graph.nodes()).filter(|freedom| *freedom >= 2)?;
    let residuals = graph.residuals(differences, &graph.corrected(differences));
    let leverages = graph.leverages();
    let squares = |(edge, residual): (&super::Edge, &f64)| edge.weight * residual * residual;
    let sum: f64 = graph.edges().iter().zip(&residuals).map(squares).sum();
    let mut worst: Option<Asymmetry> = None;
    for (index, edge) in graph.edges().iter().enumerate() {
        let free = 1.0 - leverages[index];
        if free < 1e-6 {
            continue;
        }
        let bias = residuals[index] / free;
        let own = edge.weight * residuals[index] * bias;
        let variance = ((sum - own) / freedom as f64).max(0.0);
        // Without noise every difference would be infinitely many deviations.
        let deviation = (variance / (edge.weight * free)).sqrt().max(SMALLEST_NS / 10.0);
        let found = Asymmetry { edge: index, forward_minus_reverse_ns: 2.0 * bias, deviations: bias.abs() / deviation };
        if bias.abs() >= SMALLEST_NS && worst.is_none_or(|worst| found.deviations > worst.deviations) {
            worst = Some(found);
        }
    }
    worst.filter(|worst| worst.deviations >= threshold)
}

#[cfg(test)]
mod tests {
    use super::super::Edge;
    use super::*;
    use proptest::prelude::*;

    /// Nodes in a ring, each joined with the next `reach`.
    fn circulant(nodes: usize, reach: usize) -> Graph {
        let edge = |a: usize, step: usize| Edge { a, b: (a + step) % nodes, weight: 1.0 };
        let edges = (0..nodes).flat_map(|a| (1..=reach).map(move |step| edge(a, step))).collect();
        Graph::new(nodes, edges).expect("a graph")
    }

    /// Sums of uniform numbers, nearly normal, with deviation `sigma`.
    fn noise(uniform: &[f64], edges: usize, sigma: f64) -> Vec<f64> {
        let sum = |chunk: &[f64]| chunk.iter().map(|u| u - 0.5).sum::<f64>() * (12.0 / chunk.len() as f64).sqrt();
        uniform.chunks_exact(uniform.len() / edges).take(edges).map(|chunk| sigma * sum(chunk)).collect()
    }

    #[test]
    fn without_noise_it_is_exact() {
        let graph = circulant(8, 3);
        let mut differences = vec![0.0; graph.edges().len()];
        assert_eq!(asymmetry(&graph, &differences, 6.0), None);
        differences[13] = -750.0;
        let found = asymmetry(&graph, &differences, 6.0).expect("found");
        assert_eq!(found.edge, 13);
        assert!((found.forward_minus_reverse_ns + 1_500.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_bridge_and_a_single_loop_cannot_be_judged() {
        let edge = |a, b| Edge { a, b, weight: 1.0 };
        let triangle = Graph::new(3, vec![edge(0, 1), edge(1, 2), edge(2, 0)]).expect("a graph");
        assert_eq!(asymmetry(&triangle, &[100.0, 0.0, 0.0], 3.0), None);
        // Nodes 0 to 4 are all joined, node 5 hangs on node 4.
        let mut edges: Vec<Edge> = (0..5).flat_map(|a| (a + 1..5).map(move |b| edge(a, b))).collect();
        edges.push(edge(4, 5));
        let mut differences = vec![0.0; edges.len()];
        differences[10] = 1e6;
        let graph = Graph::new(6, edges).expect("a graph");
        assert_eq!(asymmetry(&graph, &differences, 3.0), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn one_asymmetric_edge_is_named_and_none_without(
            uniform in prop::collection::vec(0.0..1.0f64, 96 * 12),
            which in 0usize..96,
            forward in any::<bool>(),
        ) {
            let graph = circulant(24, 4);
            let mut differences = noise(&uniform, 96, 50.0);
            prop_assert_eq!(asymmetry(&graph, &differences, 6.0), None);
            let bias = if forward { 1_000.0 } else { -1_000.0 };
            differences[which] += bias;
            let found = asymmetry(&graph, &differences, 6.0).expect("found");
            prop_assert_eq!(found.edge, which);
            prop_assert!((found.forward_minus_reverse_ns - 2.0 * bias).abs() < 600.0, "{:?}", found);
        }
    }

    /// The network effect: with k edges a node, noise sigma of the edges becomes about sigma / √k at the nodes. The
    /// correction is linear, so that the variance at the nodes is the sum of what a unit at each edge does there.
    #[test]
    fn loop_correction_divides_noise_by_the_root_of_the_degree() {
        // 64 nodes with 2 × 5 edges each, far and near; against the mean clock, since node 0's own error is in all.
        let edge = |a: usize, step: usize| Edge { a, b: (a + step) % 64, weight: 1.0 };
        let edges = (0..64).flat_map(|a| [1, 6, 14, 23, 29].map(|step| edge(a, step))).collect();
        let graph = Graph::new(64, edges).expect("a graph");
        let square = |index: usize| {
            let mut unit = vec![0.0; 320];
            unit[index] = 1.0;
            let clocks = graph.corrected(&unit);
            let mean = clocks.iter().sum::<f64>() / 64.0;
            clocks.iter().map(|clock| (clock - mean) * (clock - mean)).sum::<f64>() / 64.0
        };
        let deviation = (0..320).map(square).sum::<f64>().sqrt();
        // 1 / √10 is 0.316; that the graph is not complete adds a little.
        assert!((0.316..0.36).contains(&deviation), "{deviation}");
    }
}
