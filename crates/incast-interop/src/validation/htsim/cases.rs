//! The cases and what is aimed at.
//!
//! They are runs of csg-htsim (commit 841d9e7) with one seed, on fat-trees of three tiers with links of 100 Gbps and 1
//! us. Their completion times are in files; trims and drops are those of the whole fabric.

/// Allowed distance of mean and 99th percentile.
pub const TIMES: f64 = 0.03;
/// Allowed distance of trims.
pub const TRIMS: f64 = 0.15;

/// A case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name of its folder.
    pub name: &'static str,
    /// Its connection matrix.
    pub matrix: &'static str,
    /// The law.
    pub law: &'static str,
    /// What differs from an import.
    pub sets: &'static [(&'static str, &'static str)],
    /// The peer's trims, where it trims.
    pub trims: Option<u64>,
    /// The peer's drops, where it drops.
    pub drops: Option<u64>,
    /// Whether the aims are its, too; else it is for information.
    pub judged: bool,
}

const PERMUTATION: &str = "perm_128n_128c_2MB.cm";

/// All of them.
pub const CASES: &[Case] = &[
    // -strat perm: source routes, in turn through a permutation of all paths, which is drawn anew each time.
    Case {
        name: "ndp128_2MB_perm",
        matrix: PERMUTATION,
        law: "ndp",
        sets: &[],
        trims: Some(0),
        drops: None,
        judged: true,
    },
    // Switches hash one of 64 numbers, which each flow goes through in a permutation.
    Case {
        name: "ndp128_2MB_ecmp",
        matrix: PERMUTATION,
        law: "ndp",
        sets: &[("switch.load_balancing", "spray")],
        trims: Some(1_168),
        drops: None,
        judged: true,
    },
    Case {
        name: "ndp432_incast_perm",
        matrix: "incast_432n_100c_450KB.cm",
        law: "ndp",
        sets: &[],
        trims: Some(5_025),
        drops: None,
        judged: true,
    },
    // The peer's authors mark its parameters as guesses.
    Case {
        name: "swift128_2MB",
        matrix: PERMUTATION,
        law: "swift",
        sets: &[
            ("scheme.swift.base_target", "20us"),
            // 20 us / 6.55 and 5 times 20 us.
            ("scheme.swift.hop_target", "3.053435us"),
            ("scheme.swift.scaling_range", "100us"),
            ("scheme.swift.initial_window", "204800B"),
        ],
        trims: None,
        drops: Some(59),
        judged: false,
    },
];

/// The case of a name.
pub fn find(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}
