//! `rig-traffic churn`: short connections one after another, so many at a time.

use crate::engine::{Engine, Transfer};
use crate::payload;
use crate::plan::Host;
use crate::sys::Settings;
use std::io;

/// Ports over which connections are spread, so that those just closed are not in the way of new ones.
const PORTS: u64 = 16;
/// The first of them.
pub const FIRST_PORT: u16 = 5900;

/// What to do.
pub struct Churn {
    /// Connections at a time.
    pub connections: u64,
    /// For how long new ones are opened.
    pub duration_ns: u64,
    /// Most bytes of one.
    pub most_bytes: u64,
    /// How long those under way at the end may still take.
    pub grace_ns: u64,
    /// Who sends.
    pub source: Host,
    /// Who receives.
    pub destination: Host,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Churned {
    /// Connections that did what they should.
    pub complete: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their retransmissions.
    pub retransmissions: u64,
    /// Those of their segments that were marked.
    pub marked: u64,
    /// The first few of those that failed, and why.
    pub failures: Vec<String>,
    /// How many failed.
    pub failed: u64,
    /// Why the churn ended before its time, if it did.
    pub broke: Option<String>,
}

/// Failures after which it is given up, if nothing else has come of it.
const MOST_FAILURES: u64 = 64;
/// Failures that are kept to be shown.
const MOST_SHOWN: usize = 64;
/// How long nothing is opened after a connection could not even begin: what was missing (a port, memory) may come back.
const PAUSE_NS: u64 = 10_000_000;

/// Churns.
///
/// # Errors
/// If it cannot begin: a namespace, the receiver's address or the congestion control is not there.
pub fn churn(churn: &Churn, settings: Settings) -> io::Result<Churned> {
    let port = |id: u64| FIRST_PORT + u16::try_from(id % PORTS).expect("few");
    let transfer = |id: u64| Transfer {
        id,
        source: churn.source.clone(),
        destination: churn.destination.clone(),
        port: port(id),
        bytes: payload::size(u64::MAX, id, churn.most_bytes),
        congestion: None,
    };
    let first: Vec<_> = (0..PORTS).map(transfer).collect();
    let most = usize::try_from(churn.connections).map_err(io::Error::other)?;
    let mut engine = Engine::new(settings, false, &first, most)?;
    let mut started = 0;
    let mut pause_until = 0;
    let mut result = Churned::default();
    loop {
        let open = engine.now() < churn.duration_ns;
        while open && engine.now() >= pause_until && engine.running() < most {
            started += 1;
            if !engine.start(&transfer(started - 1)) {
                pause_until = engine.now() + PAUSE_NS;
            }
        }
        if !open && engine.running() == 0 {
            break;
        }
        let mut alarm = if open { churn.duration_ns } else { churn.duration_ns + churn.grace_ns };
        if open && engine.now() < pause_until {
            alarm = alarm.min(pause_until);
        }
        let mut ended = match engine.turn(Some(alarm)) {
            Ok(ended) => ended,
            Err(error) => {
                result.broke = Some(error.to_string());
                engine.abandon("the churn broke")
            }
        };
        if engine.now() >= churn.duration_ns + churn.grace_ns {
            ended.extend(engine.abandon("not done in time"));
        }
        for record in ended {
            match record.failure {
                None => {
                    result.complete += 1;
                    result.bytes += record.received;
                    result.retransmissions += u64::from(record.info.retransmissions);
                    result.marked += u64::from(record.info.delivered_ce);
                }
                Some(failure) => {
                    result.failed += 1;
                    if result.failures.len() < MOST_SHOWN {
                        // Who gave up is known by when: each of the kernel's retries has its own time.
                        let seconds = engine.now().saturating_sub(record.start_ns) / 1_000_000_000;
                        let state = if record.connected_ns.is_some() { "connected" } else { "not connected" };
                        result.failures.push(format!(
                            "connection {}: {failure} ({state}, {seconds} s after it was asked for)",
                            record.id
                        ));
                    }
                }
            }
        }
        if result.broke.is_some() || (result.failed >= MOST_FAILURES && result.complete == 0) {
            break;
        }
    }
    Ok(result)
}
