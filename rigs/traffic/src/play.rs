//! `rig-traffic play`: the flows of a plan, each at its time.

use crate::engine::{Engine, Record, Transfer};
use crate::plan::Flow;
use crate::queue::{Queue, Sample, Watch};
use crate::sys::Settings;
use std::fmt::Write as _;
use std::io;

/// The first line of the results.
pub const HEADER: &str =
    "flow,start_ns,connected_ns,end_ns,bytes,ok,retransmissions,delivered,delivered_ce,congestion,stall_ns";

/// What a play has shown.
pub struct Played {
    /// One record per flow, in the plan's order.
    pub records: Vec<Record>,
    /// CLOCK_MONOTONIC at time 0.
    pub origin: u64,
    /// What the watched queue held.
    pub samples: Vec<Sample>,
    /// Flows that had not ended at the deadline.
    pub unfinished: usize,
    /// Why the play ended before all flows had, if it did.
    pub broke: Option<String>,
}

/// Plays `flows`, which come by their start. What has not ended after `deadline_ns` has failed.
///
/// # Errors
/// If the play cannot begin: a namespace, an address, a device or the congestion control is not there.
pub fn play(
    flows: &[Flow],
    settings: Settings,
    ecn_check: bool,
    deadline_ns: u64,
    watch: Option<&Watch>,
) -> io::Result<Played> {
    let transfers: Vec<_> = flows
        .iter()
        .map(|flow| Transfer {
            id: flow.id,
            source: flow.source.clone(),
            destination: flow.destination.clone(),
            port: flow.port,
            bytes: flow.bytes,
            congestion: flow.congestion.clone(),
        })
        .collect();
    let mut engine = Engine::new(settings, ecn_check, &transfers, transfers.len())?;
    let mut queue = watch.map(|watch| Queue::open(watch, engine.namespaces())).transpose()?;
    let mut samples = Vec::new();
    let mut next_sample = 0;
    let mut records = Vec::with_capacity(flows.len());
    let mut waiting = flows.iter().zip(&transfers).peekable();
    let mut broke = None;
    while records.len() < flows.len() && broke.is_none() {
        let now = engine.now();
        if now >= deadline_ns {
            break;
        }
        let mut alarm = deadline_ns;
        if let (Some(queue), Some(watch)) = (&mut queue, watch) {
            if now >= next_sample {
                match queue.sample(now) {
                    Ok(sample) => samples.push(sample),
                    Err(error) => {
                        broke = Some(format!("sampling the queue: {error}"));
                        break;
                    }
                }
                // Samples that came too late are left out, not made up.
                next_sample = (now / watch.interval_ns + 1) * watch.interval_ns;
            }
            alarm = alarm.min(next_sample);
        }
        while let Some((_, transfer)) = waiting.next_if(|(flow, _)| flow.start_ns <= now) {
            engine.start(transfer);
        }
        let alarm = waiting.peek().map_or(alarm, |(flow, _)| flow.start_ns.min(alarm));
        match engine.turn(Some(alarm)) {
            Ok(ended) => records.extend(ended),
            Err(error) => broke = Some(error.to_string()),
        }
    }
    // What has ended meanwhile, and why, is still the engine's to tell.
    let running = engine.running();
    let end = if broke.is_some() { "when the play broke" } else { "at the deadline" };
    records.extend(engine.abandon(&format!("not done {end}")));
    let mut unfinished = running;
    for (flow, _) in waiting {
        unfinished += 1;
        records.push(Record {
            id: flow.id,
            start_ns: flow.start_ns,
            connected_ns: None,
            end_ns: None,
            stall_ns: 0,
            received: 0,
            info: crate::sys::TcpInfo::default(),
            congestion: String::new(),
            failure: Some(format!("not begun {end}")),
        });
    }
    let place: std::collections::BTreeMap<u64, usize> =
        flows.iter().enumerate().map(|(index, flow)| (flow.id, index)).collect();
    records.sort_by_key(|record| place[&record.id]);
    Ok(Played { records, origin: engine.origin(), samples, unfinished, broke })
}

/// The results as CSV. A time that a failed flow never reached is left out.
pub fn csv(records: &[Record]) -> String {
    let mut text = format!("{HEADER}\n");
    let time = |at: Option<u64>| at.map_or_else(String::new, |at| at.to_string());
    for record in records {
        writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{}",
            record.id,
            record.start_ns,
            time(record.connected_ns),
            time(record.end_ns),
            record.received,
            u8::from(record.failure.is_none()),
            record.info.retransmissions,
            record.info.delivered,
            record.info.delivered_ce,
            record.congestion,
            record.stall_ns,
        )
        .expect("strings take everything");
    }
    text
}
