//! The scenario file of an import: the peer's defaults with the values of the files.

use super::{
    Inputs,
    matrix::{Connection, Matrix, PAYLOAD},
    topology::Fabric,
};
use crate::import::{Names, page::Page};
use incast_cc::registry::LAWS;
use incast_units::{Bytes, Time};
use std::collections::BTreeMap;

/// Header bytes of a packet, and the size of a trimmed packet.
const HEADER: u64 = 64;
/// The peer's queue in packets; the bytes are those of so many payloads, and frames have to fit into them.
const QUEUE_PACKETS: u64 = 15;
/// The peer's first window in packets, which are sent unscheduled.
const WINDOW_PACKETS: u64 = 50;
/// A peer's drop-tail queue in packets, for all laws but NDP.
const DROP_TAIL_PACKETS: u64 = 100;
/// How long the peer's programs run unless they are told: `-end 1000` (csg-htsim, main_ndp.cpp).
const END: Time = Time::from_ms(1);
/// The law that the settings of trimming switches are for.
pub const NDP: &str = "ndp";

/// Writes it.
pub fn write(
    matrix: &Matrix,
    endless: &BTreeMap<u64, Vec<&Connection>>,
    fabric: &Fabric,
    inputs: &Inputs<'_>,
    names: &Names,
) -> String {
    let mut page = Page::default();
    let topology = inputs.topology.map(|text| format!(" and {}", text.name())).unwrap_or_default();
    page.line(format_args!("# Imported from {}{topology} of csg-htsim.", inputs.matrix.name()));
    page.line(
        "# The peer sends full packets only: sizes are rounded up to multiples of the mtu, so that as many bytes are sent.",
    );
    page.text("name", &names.name, "");
    if endless.is_empty() {
        page.text("duration", Time::from_ps(matrix.last_start() + 1_000), "the last connection starts before");
        page.text("drain", "10s", "the run ends when every connection has ended");
    } else {
        let end = Time::from_ps(matrix.last_start()).saturating_add(END);
        page.text("duration", end, "1 ms after the last start: the peer's -end is 1000 us unless given");
        page.text("drain", "0ps", "connections without an end last as long as the run");
    }

    page.table("[topology]");
    fabric.write(&mut page);

    let is_ndp = inputs.law == NDP;
    page.table("[switch]");
    if is_ndp {
        trimming(&mut page, fabric.queue());
    } else {
        drop_tail(&mut page, fabric.queue(), inputs.law);
    }

    page.table("[host]");
    page.text("mtu", Bytes::new(PAYLOAD), "");
    let (header, control) = if is_ndp { (HEADER, HEADER) } else { (0, 40) };
    let frames = format!(
        "{{ header = \"{}\", control = \"{c}\", notification = \"{c}\", min_size = \"{c}\" }}",
        Bytes::new(header),
        c = Bytes::new(control)
    );
    page.key("frames", frames, if is_ndp { "the peer's NDP" } else { "the peer's TCP and Swift" });
    page.text("rto_min", "50ms", "the peer's least timeout");
    if is_ndp {
        page.key("path_penalty", PENALTY, "-strat perm leaves no path out");
    }

    page.table("[wire]");
    page.text("gap", "0B", "the peer has neither preamble nor gap");

    if matrix.connections.iter().any(|connection| connection.bytes.is_some()) {
        page.table("[[workload]]");
        page.text("class", "connections", "");
        page.text("kind", "trace", "");
        page.path(&names.flows(), "");
    }
    for (index, (start, connections)) in (1..).zip(endless) {
        without_end(&mut page, index, *start, connections);
    }

    page.table("[[scheme]]");
    page.text("law", inputs.law, "");
    if is_ndp {
        for (key, value, from) in ndp() {
            page.key(key, value, from);
        }
    }
    page.finish()
}

/// The connections without an end of one start.
fn without_end(page: &mut Page, index: usize, start: u64, connections: &[&Connection]) {
    page.table("[[workload]]");
    page.text("class", if index == 1 { "endless".to_owned() } else { format!("endless-{index}") }, "");
    page.text("kind", "long", "no size, or size 0");
    page.text("start", Time::from_ps(start), "");
    page.line("pairs = [");
    for Connection { source, destination, .. } in connections {
        page.line(format_args!("    [\"h{source}\", \"h{destination}\"],"));
    }
    page.line("]");
}

/// How the peer's packets choose their paths, as `switch.load_balancing`.
pub const SPRAY: &str = "spray-permutation";

/// `host.path_penalty`: with these paths the peer leaves none out.
pub const PENALTY: bool = false;

/// Bytes of the peer's queues unless a file has another value.
pub const QUEUE: u64 = QUEUE_PACKETS * PAYLOAD;

/// `switch.trim` for the peer's composite queue of so many bytes. What is in service counts there and not here.
pub fn trim(queue: u64) -> String {
    let waiting = (queue / (PAYLOAD + HEADER)).saturating_sub(1).max(1);
    format!(
        "{{ queue = {waiting}, header_queue = \"{}B\", victim = \"either\", header_weight = \"strict\", return_to_sender = true }}",
        2 * queue
    )
}

/// Keys of the scheme for the peer's NDP, with where they come from.
pub fn ndp() -> [(&'static str, String, &'static str); 2] {
    [
        ("unscheduled", format!("\"{}\"", Bytes::new(WINDOW_PACKETS * PAYLOAD)), "-cwnd 50"),
        ("pull_rate", "0.99".to_owned(), "of the receiver's link"),
    ]
}

/// What the peer's NDP has.
fn trimming(page: &mut Page, queue: Option<u64>) {
    let bytes = queue.unwrap_or(QUEUE);
    let from = match queue {
        Some(_) => "Queue_Up, Queue_Down".to_owned(),
        None => format!("-q {QUEUE_PACKETS}"),
    };
    page.key("trim", trim(bytes), &format!("{from}: {bytes} bytes with the packet in service"));
    page.text("load_balancing", SPRAY, "-strat perm");
    page.key("priorities", 2, "headers and control packets, data");
}

/// What the peers of other transports have.
fn drop_tail(page: &mut Page, queue: Option<u64>, law: &str) {
    let bytes = queue.unwrap_or(DROP_TAIL_PACKETS * PAYLOAD);
    let from = if queue.is_some() { "Queue_Up, Queue_Down" } else { "drop-tail, 100 packets" };
    page.key("buffer", format_args!("{{ per_port = \"{bytes}B\" }}"), from);
    if LAWS.iter().any(|known| known.name == law && known.ecn_capable) {
        page.key("ecn", "{ kind = \"step\", at = \"0.2bdp\" }", "ours: the files say nothing of marks");
    }
    page.text("load_balancing", "ecmp", "the peer draws a path for each connection");
    page.key("priorities", 1, "data and acknowledgements share a queue");
}
