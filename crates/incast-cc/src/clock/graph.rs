//! Loop correction: around any loop of the probe graph the differences of clocks add up to nothing, those of estimates
//! do not. What is left over is spread so that all edges change least.
//!
//! Source: Geng et al., NSDI 2018, section 4 ("network effect"): with the loops of the graph as the rows of A, the
//! estimates Δ of the edges become
//!
//! ```text
//! Δ_f = Δ − Aᵀ (A Aᵀ)⁻¹ A Δ
//! ```
//!
//! the projection of Δ onto what is consistent. Those are the differences of potentials, so the same Δ_f comes from the
//! clocks x that minimise `Σ w (x_b − x_a − Δ)²`, which needs no loops: `L x = Bᵀ W Δ` with the Laplacian L of the
//! graph. It is positive definite once the first node's clock is the reference, and solved by Cholesky's factors.
//! Weights `w` are all 1 in the paper.

use super::Line;
use thiserror::Error;

/// Two nodes that probe each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The node whose clock is the axis of the edge's line.
    pub a: usize,
    /// The node whose clock is compared with it.
    pub b: usize,
    /// Weight of the edge, above zero: the inverse of its variance if that is known.
    pub weight: f64,
}

/// Why a probe graph is of no use.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum GraphError {
    /// No nodes.
    #[error("a probe graph needs a node")]
    Empty,
    /// Too many for dense factors.
    #[error("{nodes} nodes are more than {most}, the most that dense factors are used for")]
    Large {
        /// Number of nodes requested.
        nodes: usize,
        /// [`Graph::MOST_NODES`].
        most: usize,
    },
    /// An edge joins no two nodes, or counts for nothing.
    #[error("edge {index}: it must join two of {nodes} nodes and have a weight above zero")]
    Edge {
        /// Which edge.
        index: usize,
        /// Nodes of the graph.
        nodes: usize,
    },
    /// Some nodes cannot be compared.
    #[error("node {node} is not connected with node 0: their clocks cannot be compared")]
    Disconnected {
        /// The first node that cannot be reached.
        node: usize,
    },
}

/// A connected probe graph; the clock of node 0 is the reference.
#[derive(Clone, Debug)]
pub struct Graph {
    nodes: usize,
    edges: Vec<Edge>,
    /// Lower Cholesky factor of the Laplacian without row and column 0, by rows.
    factor: Vec<f64>,
    /// For each node but 0 in the order of a breadth-first search: the edge to its parent.
    tree: Vec<(usize, usize)>,
}

impl Graph {
    /// Dense factors take `8 n²` bytes and `n³/6` multiplications.
    pub const MOST_NODES: usize = 4_096;

    /// A graph of nodes 0 to `nodes` − 1.
    pub fn new(nodes: usize, edges: Vec<Edge>) -> Result<Self, GraphError> {
        if nodes == 0 {
            return Err(GraphError::Empty);
        }
        if nodes > Self::MOST_NODES {
            return Err(GraphError::Large { nodes, most: Self::MOST_NODES });
        }
        let wrong = |edge: &Edge| {
            edge.a >= nodes || edge.b >= nodes || edge.a == edge.b || !(edge.weight > 0.0 && edge.weight.is_finite())
        };
        if let Some(index) = edges.iter().position(wrong) {
            return Err(GraphError::Edge { index, nodes });
        }
        let tree = breadth_first(nodes, &edges)?;
        let factor = cholesky(nodes - 1, &edges);
        Ok(Self { nodes, edges, factor, tree })
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The edges, in the order in which they were given.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The clocks x that minimise `Σ w (x_b − x_a − Δ)²`, with x = 0 for node 0. `differences` has Δ of each edge.
    pub fn corrected(&self, differences: &[f64]) -> Vec<f64> {
        let mut right = vec![0.0; self.nodes];
        for (edge, difference) in self.edges.iter().zip(differences) {
            right[edge.b] += edge.weight * difference;
            right[edge.a] -= edge.weight * difference;
        }
        right[0] = 0.0;
        self.solve(&mut right[1..]);
        right
    }

    /// The clocks that add up the differences along a shortest path from node 0, without loop correction.
    pub fn along_tree(&self, differences: &[f64]) -> Vec<f64> {
        let mut clocks = vec![0.0; self.nodes];
        for (node, index) in &self.tree {
            let (edge, difference) = (&self.edges[*index], differences[*index]);
            clocks[*node] = if edge.b == *node { clocks[edge.a] + difference } else { clocks[edge.b] - difference };
        }
        clocks
    }

    /// Residual of each edge against the given clocks: `Δ − (x_b − x_a)`.
    pub fn residuals(&self, differences: &[f64], clocks: &[f64]) -> Vec<f64> {
        let residual = |(edge, difference): (&Edge, &f64)| difference - (clocks[edge.b] - clocks[edge.a]);
        self.edges.iter().zip(differences).map(residual).collect()
    }

    /// How much of each edge's estimate is determined by itself, from 0 to 1: a bridge has 1, and the sum is the number
    /// of nodes less one.
    pub fn leverages(&self) -> Vec<f64> {
        let leverage = |edge: &Edge| {
            let mut column = vec![0.0; self.nodes];
            column[edge.b] += 1.0;
            column[edge.a] -= 1.0;
            column[0] = 0.0;
            self.solve(&mut column[1..]);
            column[0] = 0.0;
            edge.weight * (column[edge.b] - column[edge.a])
        };
        self.edges.iter().map(leverage).collect()
    }

    /// How much each node's clock is ahead of node 0's, from a line for each edge, by loop correction or along the
    /// tree.
    ///
    /// Lines of edges have the clock of their own node `a` as axis, and the result that of node 0: an edge is read
    /// where its `a` stands when node 0 reads x. With offsets of a millisecond and rates of 30 ppm this is 30 ns, and
    /// two rounds of a fixed point leave nothing of it.
    pub fn clocks(&self, lines: &[Line], loop_correction: bool) -> Vec<Line> {
        let solve = |differences: &[f64]| {
            if loop_correction { self.corrected(differences) } else { self.along_tree(differences) }
        };
        let mut clocks = vec![Line::default(); self.nodes];
        for _ in 0..4 {
            let shifted: Vec<Line> = self.seen_from_reference(lines, &clocks);
            let offsets = solve(&shifted.iter().map(|line| line.offset_ns).collect::<Vec<_>>());
            let rates = solve(&shifted.iter().map(|line| line.rate).collect::<Vec<_>>());
            clocks = offsets.into_iter().zip(rates).map(|(offset_ns, rate)| Line { offset_ns, rate }).collect();
        }
        clocks
    }

    /// The lines of the edges over the clock of node 0 instead of their own `a`'s, given how far those are ahead of it.
    pub fn seen_from_reference(&self, lines: &[Line], clocks: &[Line]) -> Vec<Line> {
        let shift = |(edge, line): (&Edge, &Line)| Line {
            offset_ns: line.at(clocks[edge.a].offset_ns),
            rate: line.rate * (1.0 + clocks[edge.a].rate),
        };
        self.edges.iter().zip(lines).map(shift).collect()
    }

    /// Solves with both factors in place.
    fn solve(&self, right: &mut [f64]) {
        let n = self.nodes - 1;
        for row in 0..n {
            let known: f64 = (0..row).map(|column| self.factor[row * n + column] * right[column]).sum();
            right[row] = (right[row] - known) / self.factor[row * n + row];
        }
        for row in (0..n).rev() {
            let known: f64 = (row + 1..n).map(|below| self.factor[below * n + row] * right[below]).sum();
            right[row] = (right[row] - known) / self.factor[row * n + row];
        }
    }
}

/// The edge to its parent of each node but 0, in the order of finding; earlier edges first.
fn breadth_first(nodes: usize, edges: &[Edge]) -> Result<Vec<(usize, usize)>, GraphError> {
    let mut neighbours = vec![Vec::new(); nodes];
    for (index, edge) in edges.iter().enumerate() {
        neighbours[edge.a].push((edge.b, index));
        neighbours[edge.b].push((edge.a, index));
    }
    let mut found = vec![false; nodes];
    found[0] = true;
    let mut tree = Vec::with_capacity(nodes - 1);
    let mut next = 0;
    let mut node = 0;
    loop {
        for (neighbour, index) in &neighbours[node] {
            if !found[*neighbour] {
                found[*neighbour] = true;
                tree.push((*neighbour, *index));
            }
        }
        let Some((following, _)) = tree.get(next) else { break };
        node = *following;
        next += 1;
    }
    match found.iter().position(|found| !found) {
        Some(node) => Err(GraphError::Disconnected { node }),
        None => Ok(tree),
    }
}

/// The lower factor of the Laplacian of a connected graph without row and column 0, which is positive definite.
fn cholesky(n: usize, edges: &[Edge]) -> Vec<f64> {
    let mut matrix = vec![0.0; n * n];
    for edge in edges {
        for node in [edge.a, edge.b] {
            if node > 0 {
                matrix[(node - 1) * n + node - 1] += edge.weight;
            }
        }
        if edge.a > 0 && edge.b > 0 {
            matrix[(edge.a - 1) * n + edge.b - 1] -= edge.weight;
            matrix[(edge.b - 1) * n + edge.a - 1] -= edge.weight;
        }
    }
    for row in 0..n {
        for column in 0..=row {
            let known: f64 = (0..column).map(|k| matrix[row * n + k] * matrix[column * n + k]).sum();
            let rest = matrix[row * n + column] - known;
            matrix[row * n + column] = if row == column { rest.sqrt() } else { rest / matrix[column * n + column] };
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edge(a: usize, b: usize) -> Edge {
        Edge { a, b, weight: 1.0 }
    }

    fn close(ours: &[f64], theirs: &[f64]) {
        assert_eq!(ours.len(), theirs.len());
        assert!(ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() < 1e-6), "{ours:?}\n{theirs:?}");
    }

    /// Solves `matrix x = right` by elimination with row exchanges.
    fn eliminate(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
        let n = right.len();
        for column in 0..n {
            let pivot = (column..n)
                .max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))
                .expect("a row");
            matrix.swap(column, pivot);
            right.swap(column, pivot);
            for row in column + 1..n {
                let factor = matrix[row][column] / matrix[column][column];
                let pivot = matrix[column].clone();
                matrix[row].iter_mut().zip(&pivot).for_each(|(own, other)| *own -= factor * other);
                right[row] -= factor * right[column];
            }
        }
        for row in (0..n).rev() {
            let known: f64 = (row + 1..n).map(|k| matrix[row][k] * right[k]).sum();
            right[row] = (right[row] - known) / matrix[row][row];
        }
        right
    }

    /// The paper's formula, with the loops that each edge outside of a spanning tree closes as the rows of A.
    fn by_loops(graph: &Graph, differences: &[f64]) -> Vec<f64> {
        let edges = graph.edges();
        // Signed edges of the way from node 0 to each node.
        let mut paths = vec![vec![0.0; edges.len()]; graph.nodes()];
        for (node, index) in &graph.tree {
            let (parent, sign) =
                if edges[*index].b == *node { (edges[*index].a, 1.0) } else { (edges[*index].b, -1.0) };
            paths[*node] = paths[parent].clone();
            paths[*node][*index] = sign;
        }
        let outside = (0..edges.len()).filter(|index| graph.tree.iter().all(|(_, other)| other != index));
        let loops: Vec<Vec<f64>> = outside
            .map(|index| {
                let mut row: Vec<f64> =
                    paths[edges[index].a].iter().zip(&paths[edges[index].b]).map(|(a, b)| a - b).collect();
                row[index] += 1.0;
                row
            })
            .collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let gram = loops.iter().map(|a| loops.iter().map(|b| dot(a, b)).collect()).collect();
        let surplus = loops.iter().map(|row| dot(row, differences)).collect();
        let share = eliminate(gram, surplus);
        let correction = |e: usize| loops.iter().zip(&share).map(|(row, share)| row[e] * share).sum::<f64>();
        (0..edges.len()).map(|e| differences[e] - correction(e)).collect()
    }

    /// A ring with chords, so that it is connected and has loops.
    fn graphs() -> impl Strategy<Value = (Graph, Vec<f64>)> {
        (3usize..9).prop_flat_map(|nodes| {
            let chords = prop::collection::vec((0..nodes, 1..nodes), 0..12);
            (chords, prop::collection::vec(-100.0..100.0f64, nodes + 12)).prop_map(move |(chords, numbers)| {
                let ring = (0..nodes).map(|node| edge(node, (node + 1) % nodes));
                let all: Vec<Edge> =
                    ring.chain(chords.into_iter().map(|(a, step)| edge(a, (a + step) % nodes))).collect();
                let differences = numbers[..all.len()].to_vec();
                (Graph::new(nodes, all).expect("a graph"), differences)
            })
        })
    }

    proptest! {
        #[test]
        fn least_squares_is_the_papers_loop_correction((graph, differences) in graphs()) {
            let clocks = graph.corrected(&differences);
            let corrected: Vec<f64> = graph.edges().iter().map(|e| clocks[e.b] - clocks[e.a]).collect();
            close(&corrected, &by_loops(&graph, &differences));
        }

        #[test]
        fn consistent_differences_stay_as_they_are((graph, numbers) in graphs()) {
            let truth: Vec<f64> = (0..graph.nodes()).map(|n| if n == 0 { 0.0 } else { numbers[n] }).collect();
            let differences: Vec<f64> = graph.edges().iter().map(|e| truth[e.b] - truth[e.a]).collect();
            close(&graph.corrected(&differences), &truth);
            close(&graph.along_tree(&differences), &truth);
        }

        #[test]
        fn leverages_add_up_to_the_rank((graph, _) in graphs()) {
            let sum: f64 = graph.leverages().iter().sum();
            prop_assert!((sum - (graph.nodes() - 1) as f64).abs() < 1e-9);
        }
    }

    #[test]
    fn weights_decide_what_gives() {
        // A loop of three that is 10 over; the heavy edges keep what they say.
        let heavy = |a, b| Edge { a, b, weight: 1e9 };
        let graph = Graph::new(3, vec![heavy(0, 1), heavy(1, 2), edge(0, 2)]).expect("a graph");
        close(&graph.corrected(&[4.0, 6.0, 0.0]), &[0.0, 4.0, 10.0]);
    }

    #[test]
    fn offsets_do_not_spoil_lines_over_different_clocks() {
        // Node 1 is 1 ms ahead, node 2 is 0.5 ms behind and 60 ppm faster than node 1.
        let truth = [Line::default(), Line { offset_ns: 1e6, rate: -30e-6 }, Line { offset_ns: -5e5, rate: 30e-6 }];
        // Line of b over a's clock: both as functions of node 0's reading, with that eliminated.
        let line = |a: usize, b: usize| {
            let rate = (truth[b].rate - truth[a].rate) / (1.0 + truth[a].rate);
            Line { offset_ns: truth[b].offset_ns - truth[a].offset_ns - rate * truth[a].offset_ns, rate }
        };
        let graph = Graph::new(3, vec![edge(0, 1), edge(1, 2), edge(2, 0)]).expect("a graph");
        let lines = [line(0, 1), line(1, 2), line(2, 0)];
        for loop_correction in [false, true] {
            for (found, true_line) in graph.clocks(&lines, loop_correction).iter().zip(truth) {
                assert!((found.offset_ns - true_line.offset_ns).abs() < 1e-4, "{found:?} {true_line:?}");
                assert!((found.rate - true_line.rate).abs() < 1e-14, "{found:?} {true_line:?}");
            }
        }
    }

    #[test]
    fn graphs_that_are_of_no_use_are_refused() {
        assert_eq!(Graph::new(0, vec![]).err(), Some(GraphError::Empty));
        assert_eq!(Graph::new(3, vec![edge(0, 1)]).err(), Some(GraphError::Disconnected { node: 2 }));
        assert!(matches!(Graph::new(1 << 20, vec![]).err(), Some(GraphError::Large { .. })));
        for wrong in
            [edge(0, 0), edge(0, 2), Edge { weight: 0.0, ..edge(0, 1) }, Edge { weight: f64::NAN, ..edge(0, 1) }]
        {
            assert_eq!(Graph::new(2, vec![edge(0, 1), wrong]).err(), Some(GraphError::Edge { index: 1, nodes: 2 }));
        }
        assert_eq!(Graph::new(1, vec![]).expect("one node").corrected(&[]), [0.0]);
    }
}
