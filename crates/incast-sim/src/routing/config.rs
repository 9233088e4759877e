//! The configuration of routing.

/// Choice among equal-cost ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadBalancing {
    /// By a seeded hash of the flow.
    #[default]
    Ecmp,
    /// Each packet draws a port.
    Spray,
    /// The sender chooses: see [`Pinned`](crate::routing::Pinned). Flows that are not pinned choose by a hash, once for
    /// all switches.
    SourceRouted,
    /// The sender chooses for each packet: per-packet spraying over a permutation of all paths, drawn anew each round.
    /// Control packets take any path.
    SprayPermutation,
}

impl LoadBalancing {
    /// Packets of a flow take several paths.
    pub fn sprays(self) -> bool {
        matches!(self, Self::Spray | Self::SprayPermutation)
    }
}
