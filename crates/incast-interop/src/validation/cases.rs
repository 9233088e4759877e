//! The cases and what is aimed at.
//!
//! They are runs of the HPCC ns-3 simulator (ns-3.17 lineage, commit 9f4be2a). Queues are the largest of its samples of
//! the bottleneck's egress queue, one each microsecond, without the packet in service.

/// What is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Every flow is equal to the nanosecond.
    Exact,
    /// Every flow is within [`EACH_FLOW`].
    EachFlow,
    /// Switches draw marks: the peer's figures are inside our range over the seeds.
    InRange,
    /// Mean and 99th percentile of the slowdown are within [`BINS`] in each bin of sizes.
    Bins,
}

/// Allowed distance of a flow where nothing is random.
pub const EACH_FLOW: f64 = 0.005;
/// Allowed distance of a bin's mean and 99th percentile.
pub const BINS: f64 = 0.05;

impl Aim {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Exact => "equal to the ns",
            Self::EachFlow => "each flow within 0.5%",
            Self::InRange => "inside our range",
            Self::Bins => "bins within 5%",
        }
    }
}

/// A case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name of its folder.
    pub name: &'static str,
    /// What is aimed at.
    pub aim: Aim,
    /// The topology, if the folder has none of its own.
    pub topology: &'static str,
    /// The paths of the flows.
    pub paths: Option<&'static str>,
    /// The port whose queue is sampled.
    pub bottleneck: Option<&'static str>,
    /// The peer's longest queue there, in bytes.
    pub largest_queue: Option<u64>,
    /// The peer's pauses, where they are known.
    pub pauses: Option<u64>,
}

/// On one switch.
const fn star(name: &'static str, aim: Aim, topology: &'static str, largest_queue: Option<u64>) -> Case {
    let bottleneck = if largest_queue.is_some() { Some("s0->h1") } else { None };
    Case { name, aim, topology, paths: None, bottleneck, largest_queue, pauses: None }
}

/// On the fabric of 320 hosts.
const fn fabric(name: &'static str, aim: Aim, paths: Option<&'static str>) -> Case {
    Case { name, aim, topology: "fat.txt", paths, bottleneck: None, largest_queue: None, pauses: Some(0) }
}

const THREE: &str = "star3.txt";
const SEVENTEEN: &str = "star17.txt";
const PATHS: Option<&str> = Some("fat320.paths.csv");

/// All of them.
pub const CASES: &[Case] = &[
    star("single_star_dcqcn", Aim::Exact, THREE, None),
    star("single_star_timely", Aim::Exact, THREE, None),
    star("single_star_dctcp", Aim::Exact, THREE, None),
    star("single_star_hpcc", Aim::Exact, THREE, None),
    fabric("single_fat_dcqcn", Aim::Exact, None),
    fabric("single_fat_timely", Aim::Exact, None),
    fabric("single_fat_dctcp", Aim::Exact, None),
    fabric("single_fat_hpcc", Aim::Exact, None),
    star("incast2_dcqcn", Aim::InRange, THREE, Some(517_712)),
    star("incast2_timely", Aim::EachFlow, THREE, Some(529_056)),
    star("incast2_dctcp", Aim::EachFlow, THREE, Some(56_592)),
    star("incast2_hpcc", Aim::EachFlow, THREE, Some(55_590)),
    star("incast16_dcqcn", Aim::InRange, SEVENTEEN, Some(3_691_056)),
    star("incast16_timely", Aim::EachFlow, SEVENTEEN, Some(7_921_056)),
    star("incast16_dctcp", Aim::EachFlow, SEVENTEEN, Some(818_488)),
    star("incast16_hpcc", Aim::EachFlow, SEVENTEEN, Some(854_560)),
    star("converge2_dcqcn", Aim::InRange, THREE, Some(733_600)),
    star("converge2_hpcc", Aim::EachFlow, THREE, Some(55_590)),
    fabric("fat320_WebSearch_0.3_2ms_dcqcn", Aim::Bins, PATHS),
    fabric("fat320_WebSearch_0.3_2ms_timely", Aim::Bins, PATHS),
    fabric("fat320_WebSearch_0.3_2ms_dctcp", Aim::Bins, PATHS),
    fabric("fat320_WebSearch_0.3_2ms_hpcc", Aim::Bins, PATHS),
];

/// The case of a name.
pub fn find(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}
