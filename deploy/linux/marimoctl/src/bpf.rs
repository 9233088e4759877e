//! The BPF object: its pins, its maps, and what the kernel knows of it.
//!
//! ```text
//! /sys/fs/bpf/marimo/
//!     table_0, table_1   f, twice
//!     active             which of the two is read
//!     counters, trace    what happened
//!     settings           configuration, read-only
//!     counters_2         what layout 2 counts besides
//!     layout-2           an empty folder: which version of all this; 1 has none
//!     link               the registration: made last, so that a folder without it is a leftover
//! ```

use crate::layout::{COUNTERS, COUNTERS_2, Counters, Knots, NAME, Settings};
use hostctl::{
    bpf::series,
    failure::{Failure, Outcome, While},
    plain::Plain,
};
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, ProgramType,
    btf::{Btf, ReferencesType as _, types},
    query,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// What clang made of `bpf_marimo.bpf.c`.
pub const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bpf_marimo.bpf.o"));
/// The pins.
pub const PINS: &str = "/sys/fs/bpf/marimo";
/// Name of the map that holds the settings: the last 15 letters are what the kernel keeps.
pub const SETTINGS_MAP: &str = ".rodata.settings";
/// Pinned maps and the names that libbpf gives them.
pub const MAPS: [(&str, &str); 7] = [
    ("table_0", "table_0"),
    ("table_1", "table_1"),
    ("active", "active"),
    ("counters", "counters"),
    ("counters_2", "counters_2"),
    ("trace", "trace"),
    ("settings", SETTINGS_MAP),
];

/// The version of what is pinned: it changes with the structures in `layout.rs` and with the names of the pins.
pub const LAYOUT: u32 = 2;

/// Name of the folder that tells the version.
pub fn layout_pin(layout: u32) -> PathBuf {
    pin(&format!("layout-{layout}"))
}

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Path of a pin.
pub fn pin(name: &str) -> PathBuf {
    Path::new(PINS).join(name)
}

/// Congestion controls that are registered, in every namespace.
pub fn registered() -> Outcome<Vec<String>> {
    let text = fs::read_to_string(AVAILABLE).during(format!("cannot read {AVAILABLE}"))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// What this kernel lacks for the BPF object, by its own description of itself; `None` if nothing.
pub fn lacking() -> Option<String> {
    let Ok(btf) = Btf::from_vmlinux() else {
        return Some("this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)".into());
    };
    if btf.type_by_name::<types::Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
        return Some("this kernel takes no congestion control of BPF (CONFIG_BPF_JIT, CONFIG_BPF_SYSCALL)".into());
    }
    let operations = btf.type_by_name::<types::Struct<'_>>("tcp_congestion_ops")?;
    let control = operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
    let pointer = btf.type_by_id::<types::Ptr<'_>>(control.ty)?;
    let arguments = types::FuncProto::try_from(pointer.referenced_type()).ok()?.iter().count();
    (arguments != ARGUMENTS).then(|| {
        format!("cong_control of this kernel has {arguments} arguments, needed are {ARGUMENTS} (mainline since 6.10)")
    })
}

/// Operations of `tcp_congestion_ops` in the kernels that this was tried on.
const OPERATIONS: [&str; 19] = [
    "cong_avoid",
    "cong_control",
    "ssthresh",
    "set_state",
    "cwnd_event",
    TX_START,
    "in_ack_event",
    "pkts_acked",
    "min_tso_segs",
    "undo_cwnd",
    "sndbuf_expand",
    "get_info",
    "name",
    "owner",
    "list",
    "key",
    "flags",
    "init",
    "release",
];
/// The operation by which Linux tells of a start after a pause, since 7.1.
const TX_START: &str = "cwnd_event_tx_start";
/// The newest series that this was tried on; the module has the same.
const NEWEST: (u32, u32) = (7, 3);

fn operations() -> Vec<String> {
    let Ok(btf) = Btf::from_vmlinux() else { return Vec::new() };
    let operations = btf.type_by_name::<types::Struct<'_>>("tcp_congestion_ops");
    let names = operations.iter().flat_map(|operations| operations.iter().filter_map(|member| member.name));
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

/// By which operation this kernel tells of a start after a pause.
pub fn start_operation() -> &'static str {
    if operations().iter().any(|name| name == TX_START) { TX_START } else { "cwnd_event" }
}

/// Name of the rule that windows shrink while connections are idle.
pub const RESTART: &str = "restart_after_idle";

/// Rules that rest on what the kernel offers, and by what each is kept: names as the module has them. A BPF congestion
/// control cannot set the ECN field of what its socket sends, so that losses test ECN and a lost SYN's connection is the
/// fallback's.
pub fn rules() -> [(&'static str, &'static str); 5] {
    [
        (RESTART, start_operation()),
        ("ecn_test", "losses"),
        ("lost_syn", "fallback"),
        ("undo", "undo_cwnd"),
        ("pacing", "on"),
    ]
}

/// Why this kernel may tell of something in a way that is not received here, so that a rule would be lost in silence.
pub fn unknown() -> Option<String> {
    let new: Vec<_> = operations().into_iter().filter(|name| !OPERATIONS.contains(&name.as_str())).collect();
    if !new.is_empty() {
        return Some(format!(
            "congestion controls of this kernel have operations that are not known here: {}",
            new.join(", ")
        ));
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    series(&release)
        .is_none_or(|series| series > NEWEST)
        .then(|| format!("kernel {release} is newer than {}.{}, the newest that this was tried on", NEWEST.0, NEWEST.1))
}

/// Takes the operation away that this kernel does not have. It is the first of the object's own structure (kernel.h).
pub fn fit(map: &mut libbpf_rs::OpenMapMut<'_>) {
    if start_operation() != TX_START
        && let Some(first) = map.initial_value_mut().and_then(|operations| operations.first_chunk_mut::<8>())
    {
        *first = [0; 8];
    }
}

/// Of `cong_control`: the socket, the acknowledgement, its flags and the sample.
const ARGUMENTS: usize = 4;

/// The pins, if there is a registration with them.
pub struct Loaded {
    /// The registration.
    pub link: Link,
    /// The version of what is pinned.
    pub layout: u32,
    maps: Vec<(&'static str, MapHandle)>,
}

impl Loaded {
    /// What is pinned; `None` if nothing is, or only leftovers.
    pub fn open() -> Option<Self> {
        let link = Link::open(pin("link")).ok()?;
        let maps = MAPS.iter().filter_map(|(name, _)| Some((*name, MapHandle::from_pinned_path(pin(name)).ok()?)));
        let names =
            fs::read_dir(PINS).into_iter().flatten().flatten().filter_map(|pin| pin.file_name().into_string().ok());
        let layout = names.filter_map(|name| name.strip_prefix("layout-")?.parse().ok()).max().unwrap_or(1);
        Some(Self { link, layout, maps: maps.collect() })
    }
    /// A map.
    ///
    /// # Errors
    /// The version that loaded it has none of this name.
    pub fn map(&self, name: &str) -> Outcome<&MapHandle> {
        let found = self.maps.iter().find(|(known, _)| *known == name);
        found.map(|(_, map)| map).ok_or_else(|| self.other_version(&format!("has no {name}")))
    }
    /// Of what another version of marimoctl has loaded.
    pub fn other_version(&self, what: &str) -> Failure {
        Failure::failed(format!(
            "{NAME} {what}: another version of marimoctl has loaded it (its layout is {}, that of this one {LAYOUT}); \
             marimoctl unload, marimoctl load",
            self.layout
        ))
    }
    /// What it was loaded with; `None` if another version has put it otherwise.
    pub fn settings(&self) -> Outcome<Option<Settings>> {
        let bytes = self.map("settings")?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).during("cannot read settings")?;
        Ok(bytes.and_then(|bytes| Settings::read(&bytes)))
    }
    /// Lets go of everything but the counters.
    pub fn into_counters(self) -> Option<MapHandle> {
        self.maps.into_iter().find(|(name, _)| *name == "counters").map(|(_, map)| map)
    }
    /// What it has counted.
    pub fn counters(&self) -> Outcome<Counters> {
        let counters = counters(self.map("counters")?)?;
        // Of a layout that has it.
        match self.map("counters_2") {
            Ok(map) => Ok(counters.and(counters_of(map, &COUNTERS_2)?)),
            Err(_) => Ok(counters),
        }
    }
    /// Which of the two tables is read.
    pub fn active(&self) -> Outcome<usize> {
        let id = self.map("active")?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).during("cannot read active")?;
        let id = id.and_then(|id| Some(u32::from_ne_bytes(id.try_into().ok()?)));
        for (index, name) in TABLES.iter().enumerate() {
            let info = query_info(self.map(name)?)?;
            if Some(info) == id {
                return Ok(index);
            }
        }
        Err(Failure::failed("the active table is neither of the two"))
    }
    /// The table that is read.
    pub fn knots(&self) -> Outcome<Knots> {
        let table = self.map(TABLES[self.active()?])?;
        let bytes = table.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).during("cannot read the table")?;
        bytes.and_then(|bytes| Knots::read(&bytes)).ok_or_else(|| self.other_version("has a table of another size"))
    }
    /// Writes the table that nobody reads and then has it read. Returns which one that is.
    pub fn replace(&self, knots: &Knots) -> Outcome<usize> {
        let next = 1 - self.active()?;
        write_table(self.map(TABLES[next])?, knots)?;
        activate(self.map("active")?, self.map(TABLES[next])?)?;
        Ok(next)
    }
}

/// The two tables.
pub const TABLES: [&str; 2] = ["table_0", "table_1"];

/// Writes a table into one of the two.
pub fn write_table(map: &impl MapCore, knots: &Knots) -> Outcome {
    map.update(&0_u32.to_ne_bytes(), knots.bytes(), MapFlags::ANY).during("cannot write the table")
}

/// Turns the slot. It returns when no program runs any more that may have seen the other table.
fn activate(active: &MapHandle, table: &MapHandle) -> Outcome {
    use std::os::fd::{AsFd, AsRawFd};
    let descriptor = table.as_fd().as_raw_fd().to_ne_bytes();
    active.update(&0_u32.to_ne_bytes(), &descriptor, MapFlags::ANY).during("cannot activate the table")
}

fn query_info(map: &MapHandle) -> Outcome<u32> {
    Ok(map.info().during("cannot ask for a map's number")?.info.id)
}

/// Sum of the counters of all CPUs that every layout has.
pub fn counters(map: &impl MapCore) -> Outcome<Counters> {
    counters_of(map, &COUNTERS)
}

fn counters_of(map: &impl MapCore, names: &[&'static str]) -> Outcome<Counters> {
    let cpus = map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY).during("cannot read counters")?;
    Ok(Counters::sum(names, &cpus.unwrap_or_default()))
}

/// Copies of bpf_marimo in the kernel that are registered no more.
#[derive(Default)]
pub struct Copies {
    /// With open connections, for which they wait.
    pub draining: usize,
    /// Without: a listener or a socket that is not connected holds them, or the kernel does not let them go. It keeps one
    /// for each default that it refuses in a network namespace
    /// (`tcp_set_default_congestion_control` takes a reference and does not give it back; 7.2 is so, 7.3.4 is
    /// not), until the next boot.
    pub held: usize,
}

/// Looks for copies by their programs, of which each has one for acknowledgements.
pub fn copies(registered: Option<&Loaded>) -> Outcome<Copies> {
    let own = registered.map(|loaded| query_info(loaded.map("counters")?)).transpose()?;
    let with_maps = query::ProgInfoQueryOptions::default().include_map_ids(true);
    let programs = query::ProgInfoIter::with_query_opts(with_maps)
        .filter(|program| program.ty == ProgramType::StructOps && program.name == *PROGRAM);
    let mut copies = Copies::default();
    for program in programs {
        let maps = program.map_ids.iter().filter(|id| Some(**id) != own);
        // Another may have gone since.
        let mut counters =
            maps.filter_map(|id| MapHandle::from_map_id(*id).ok()).filter(|map| map.name() == "counters");
        if let Some(counters) = counters.next() {
            let open = self::counters(&counters)?.open();
            *(if open > 0 { &mut copies.draining } else { &mut copies.held }) += 1;
        }
    }
    Ok(copies)
}

/// What the kernel keeps of the name `marimo_cong_control`.
const PROGRAM: &str = "marimo_cong_con";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_has_tried_the_same_kernels() {
        let source = include_str!("../../tcp_marimo/tcp_marimo.c");
        for (name, number) in [("MAJOR", NEWEST.0), ("MINOR", NEWEST.1)] {
            assert!(source.contains(&format!("#define MARIMO_NEWEST_{name} {number}\n")), "{name}");
        }
    }

    #[test]
    fn the_newest_series_has_all_its_releases() {
        assert!(series("7.10.1") > Some(NEWEST) && series("7.3.99") <= Some(NEWEST));
    }
}
