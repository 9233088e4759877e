//! `incast trace`: what it writes is what was simulated, and other programs read it.

use crate::common::{command, folder, incast, scenario, stderr, succeed, text};
use incast_lab::{
    run::{Plan, only::Only},
    scenario::Scenario,
    trace::{Request, Traced, trace},
};
use incast_sim::{
    outcome::{EventKind, PacketRecord, Step},
    packet::Kind,
};
use std::{fs, path::Path, process::Command, sync::atomic::AtomicBool};

/// The first run of the scenario, recorded without files: what the files are compared with.
fn recorded(request: &Request) -> Traced {
    let scenario = Scenario::load(Path::new(&scenario("trace")), &[]).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::new(scenario, None, &Only::default()).unwrap_or_else(|error| panic!("{error}"));
    trace(&plan.runs[0], request, &AtomicBool::new(false), &mut |_| ()).unwrap_or_else(|error| panic!("{error}"))
}

fn flow(name: impl ToString) -> Request {
    Request { flow: Some(name.to_string()), ..Request::default() }
}

fn count(traced: &Traced, is: impl Fn(&PacketRecord) -> bool) -> usize {
    traced.outcome.packets.iter().filter(|record| is(record)).count()
}

fn is_sent(record: &PacketRecord) -> bool {
    matches!(record.step, Step::Sent { .. })
}

/// A row whose flow was hit by all that can happen: drops and marks.
fn eventful(least_marks: u32) -> usize {
    let flows = recorded(&flow(0)).outcome.flows;
    let hit = |flow: &incast_sim::outcome::FlowRecord| {
        flow.retransmitted_bytes > 0 && flow.marked_packets >= least_marks && flow.timeouts == 0
    };
    flows.iter().position(hit).expect("the scenario drops and marks")
}

#[test]
fn rows_and_names_lead_to_the_same_flow() {
    let row = eventful(1);
    let by_row = recorded(&flow(row));
    let record = by_row.outcome.flows[row];
    assert_eq!(by_row.flow, Some((record.source, record.sequence)));
    let by_name = recorded(&flow(format!("h{}:{}", record.source, record.sequence)));
    assert_eq!(by_name.outcome.packets, by_row.outcome.packets);
    assert!(by_row.outcome.packets.iter().all(|packet| packet.packet.flow() == (record.source, record.sequence)));
    // Flows that start later at a source come first in the table: rows are not the order of arrival.
    let last = recorded(&flow(by_row.outcome.flows.len() - 1));
    assert_eq!(last.flow, last.outcome.flows.last().map(|flow| (flow.source, flow.sequence)));
}

#[test]
fn the_records_of_a_flow_agree_with_its_row() {
    let row = eventful(1);
    let traced = recorded(&flow(row));
    let record = traced.outcome.flows[row];
    let at_source = |packet: &PacketRecord| packet.node == record.source && is_sent(packet);
    let sent: u64 = traced
        .outcome
        .packets
        .iter()
        .filter(|packet| at_source(packet))
        .map(|packet| u64::from(packet.packet.payload))
        .sum();
    assert_eq!(sent, record.bytes + record.retransmitted_bytes);
    let drops = count(&traced, |packet| packet.step == Step::Event(EventKind::Drop));
    let data = count(&traced, |packet| packet.packet.kind == Kind::Data && at_source(packet));
    let arrived = count(&traced, |packet| {
        packet.packet.kind == Kind::Data
            && is_sent(packet)
            && traced.labels.peer(packet.node, packet.port) == Some(record.destination)
    });
    assert_eq!(data, arrived + drops);
    let traced = recorded(&Request { port: Some("leaf0->h0".into()), ..Request::default() });
    let drops = count(&traced, |packet| packet.step == Step::Event(EventKind::Drop)) as u64;
    assert!(drops > 0 && drops <= traced.outcome.totals.drops);
}

#[test]
fn files_and_a_few_lines_come_out() {
    let out = folder("trace_files");
    let (perfetto, pcapng) = (out.join("flow.pftrace"), out.join("flow.pcapng"));
    let scenario = scenario("trace");
    let arguments =
        ["trace", &scenario, "--quiet", "--flow", "0", "--perfetto", text(&perfetto), "--pcapng", text(&pcapng)];
    let output = incast(&arguments);
    let message = stderr(&output);
    assert!(output.status.success(), "{message}");
    assert!(message.contains("6 runs fit; tracing the first: scheme dctcp, seed 1"), "{message}");
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(said.contains("flow 1:0, h1 to h0, class incast") && said.contains("leaf0->h0"), "{said}");
    // The same bytes again, and others of another run.
    let (first, capture) = (fs::read(&perfetto).expect("written"), fs::read(&pcapng).expect("written"));
    succeed(&arguments);
    assert_eq!((fs::read(&perfetto).expect("written"), fs::read(&pcapng).expect("written")), (first, capture.clone()));
    succeed(&[&arguments[..], &["--only", "scheme=cubic", "--seed", "2"]].concat());
    assert_ne!(fs::read(&pcapng).expect("written"), capture);
    // A pipe is written to, not replaced.
    let piped = command(&["trace", &scenario, "-q", "--flow", "0", "--only", "scheme=dctcp", "--seed", "1"])
        .args(["--pcapng", "/dev/stdout"])
        .output()
        .expect("the binary starts");
    assert!(piped.stdout.starts_with(&capture));
}

#[test]
fn what_is_not_there_is_refused() {
    let scenario = scenario("trace");
    let refused = |arguments: &[&str]| {
        let output = incast(&[&["trace", &scenario, "-q"], arguments].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty() && !message.contains("panicked"), "{message}");
        message
    };
    assert!(refused(&[]).contains("--flow") && refused(&[]).contains("--port"));
    assert!(refused(&["--flow", "1000"]).contains("the run has 12 flows, allowed is 0 to 11"));
    assert!(refused(&["--flow", "1:7"]).contains("h1 opens 2 flows, allowed is 1:0 to 1:1"));
    assert!(refused(&["--flow", "0:0"]).contains("h0 opens no flow"));
    assert!(refused(&["--flow", "x"]).contains("SOURCE:SEQUENCE"));
    assert!(refused(&["--port", "laef0->h0"]).contains("did you mean \"leaf0\""));
    assert!(refused(&["--flow", "0", "--until", "0us"]).contains("after --from"));
    assert!(refused(&["--flow", "0", "--only", "scheme=bbr"]).contains("no run has it"));
    assert!(refused(&["--flow", "0", "--pcapng", "no/such/folder/x"]).contains("there is no folder"));
    assert!(refused(&["--flow", "0", "--perfetto", "/"]).contains("is a folder"));
    assert!(refused(&["--flow", "0", "--snaplen", "96"]).contains("--pcapng"));
}

/// A capture, and tshark to ask about it.
struct Capture<'a>(&'a Path);

impl Capture<'_> {
    /// The fields of the packets that a filter lets through, a line each, every checksum verified.
    fn fields(&self, filter: &str, fields: &[&str]) -> Vec<String> {
        let mut command = Command::new("tshark");
        command.arg("-n").arg("-r").arg(self.0).args(["-Y", filter, "-T", "fields"]);
        for check in ["ip.check_checksum", "tcp.check_checksum", "eth.check_fcs"] {
            command.args(["-o", &format!("{check}:TRUE")]);
        }
        command.args(fields.iter().flat_map(|field| ["-e", field]));
        let output = command.output().expect("tshark starts");
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    fn count(&self, filter: &str) -> usize {
        self.fields(filter, &["frame.number"]).len()
    }

    fn is_well_formed(&self) {
        let wrong = [
            "_ws.malformed",
            "_ws.expert.severity == error",
            "ip.checksum.status == bad",
            "tcp.checksum.status == bad",
            "eth.fcs.status == bad",
        ];
        // tshark takes longer to start than to read.
        assert_eq!(self.fields(&wrong.join(" || "), &["frame.number", "_ws.expert.message"]), [""; 0]);
    }
}

/// Whether there is a tshark; CI must have one.
fn has_tshark() -> bool {
    let found = Command::new("tshark").arg("--version").output().is_ok();
    if !found {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "CI needs tshark: scripts/debian.sh installs it");
        eprintln!("skipped: no tshark to read captures with");
    }
    found
}

#[test]
fn tshark_sees_what_was_simulated() {
    if !has_tshark() {
        return;
    }
    let out = folder("trace_tshark");
    let row = eventful(2);
    let traced = recorded(&flow(row));
    let record = traced.outcome.flows[row];
    let capture = |name: &str, more: &[&str]| {
        let path = out.join(name);
        let (scenario, row) = (scenario("trace"), row.to_string());
        let arguments = ["trace", &scenario, "-q", "--flow", &row, "--pcapng", text(&path)];
        succeed(&[&arguments[..], more].concat());
        path
    };
    let labels = &traced.labels;

    // The whole way: every transmission once where it leaves, and once more at the host that it reaches.
    let path = capture("way.pcapng", &[]);
    let way = Capture(&path);
    way.is_well_formed();
    let reaches_host =
        |packet: &PacketRecord| labels.peer(packet.node, packet.port).is_some_and(|peer| peer < traced.hosts);
    let sent = count(&traced, is_sent);
    let received = count(&traced, |packet| is_sent(packet) && reaches_host(packet));
    assert_eq!(way.count("frame"), sent + received);
    let lengths = way.fields("frame", &["frame.len"]);
    let bytes: u64 = lengths.iter().map(|length| length.parse::<u64>().expect("a number")).sum();
    let expected: u64 = traced
        .outcome
        .packets
        .iter()
        .filter(|packet| is_sent(packet))
        .map(|packet| u64::from(packet.packet.wire) * if reaches_host(packet) { 2 } else { 1 })
        .sum();
    assert_eq!(bytes, expected);
    let (source, destination) = (labels.node(record.source), labels.node(record.destination));
    let marked = format!("ip.dsfield.ecn == 3 && tcp.len > 0 && frame.interface_name == \"{destination}\"");
    assert_eq!(way.count(&marked), record.marked_packets as usize);
    assert_eq!(way.count(&format!("tcp.len > 0 && frame.interface_name == \"{source}\" && ip.dsfield.ecn != 2")), 0);
    // Answers say so too, one for each marked packet.
    let echoes = format!("tcp.flags.ece == 1 && frame.interface_name == \"{destination}\"");
    assert_eq!(way.count(&echoes), record.marked_packets as usize);
    let first = traced.outcome.packets.iter().find(|packet| is_sent(packet)).expect("it was sent");
    let time = format!("0.{:09}", first.time.ps() / 1000);
    assert_eq!(
        way.fields("frame.number == 1", &["frame.time_epoch", "frame.interface_name"]),
        [format!("{time}\t{source}")]
    );

    // As tcpdump would see it at the sender: what tshark takes for sent again was sent again.
    let path = capture("sender.pcapng", &["--port", source]);
    let sender = Capture(&path);
    sender.is_well_formed();
    let mut positions: Vec<u32> = traced
        .outcome
        .packets
        .iter()
        .filter(|packet| packet.node == record.source && is_sent(packet))
        .map(|packet| packet.packet.position)
        .collect();
    let all = positions.len();
    positions.sort_unstable();
    positions.dedup();
    let again = all - positions.len();
    assert!(again > 0);
    assert_eq!(sender.count("tcp.len > 0"), all);
    assert_eq!(sender.count("tcp.analysis.retransmission || tcp.analysis.out_of_order"), again);
    // Each acknowledgement that leaves a gap names what it has beyond.
    let selective = count(&traced, |packet| {
        packet.packet.kind == Kind::Ack
            && is_sent(packet)
            && packet.packet.position >= packet.packet.packets
            && labels.peer(packet.node, packet.port) == Some(record.source)
    });
    assert!(selective > 0);
    assert_eq!(sender.count("tcp.options.sack_le > tcp.ack"), selective);

    // Whole frames: every checksum can be verified, and is right.
    let path = capture("whole.pcapng", &["--port", source, "--snaplen", "65535"]);
    let whole = Capture(&path);
    whole.is_well_formed();
    assert_eq!(whole.count("tcp.checksum.status == good && eth.fcs.status == good"), sender.count("frame"));

    // A law of the other protocol, whose receivers answer marks with notifications.
    let path = out.join("dcqcn.pcapng");
    let scenario = scenario("trace");
    let dcqcn = ["trace", &scenario, "-q", "--only", "scheme=dcqcn", "--port", "h0", "--pcapng", text(&path)];
    succeed(&dcqcn);
    let roce = Capture(&path);
    roce.is_well_formed();
    let count = |filter: &str| roce.count(filter);
    assert_eq!(count("infiniband"), count("frame"));
    assert!(count("infiniband.bth.opcode == 17 && ip.src == 10.0.0.1") > 0, "acknowledgements leave h0");
    assert!(count("infiniband.bth.opcode == 129 && ip.src == 10.0.0.1 && frame.len == 78") > 0);
    assert!(count("infiniband.bth.opcode < 5 && ip.dst == 10.0.0.1 && ip.dsfield.ecn == 3") > 0);

    // And another tool of the family agrees about the file itself.
    if let Ok(output) = Command::new("capinfos").arg("-c").arg(&path).output() {
        assert!(output.status.success(), "{}", stderr(&output));
    }
}
