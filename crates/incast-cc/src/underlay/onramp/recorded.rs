//! What a Linux kernel's On-Ramp was told and decided, through the simulator's stage.
//!
//! `deploy/core/test/onramp-kernel.txt` was recorded in a virtual machine (`rigs/vm/run.sh --onramp --record` makes one anew);
//! `deploy/linux/test/onramp_replay.c` has the format, and replays it from the time stamps on. Here delays are what the
//! kernel made of these.

use super::OnRamp;
use crate::{
    Path,
    parameters::Raw,
    underlay::{Head, UnderlayStage},
};
use incast_units::{Rate, Time};

const RECORDED: &str = include_str!("../../../core/test/onramp-kernel.txt");

/// What a recording had in it.
#[derive(Debug, Default)]
struct Replayed {
    departures: usize,
    held: usize,
    reports: usize,
    pauses: usize,
}

/// One path of a host: the simulator's stage, and what a host adds to it.
struct Host {
    stage: OnRamp,
    max_hold: u64,
    /// When the packet before leaves, and when the newest report came.
    last: u64,
    reported: u64,
    pause_until: u64,
}

fn numbers(text: &str) -> Result<Vec<u64>, String> {
    text.split_whitespace().map(|word| word.parse().map_err(|error| format!("{word}: {error}"))).collect()
}

fn same(what: &str, found: u64, recorded: u64) -> Result<(), String> {
    if found == recorded { Ok(()) } else { Err(format!("{what}: found {found}, recorded {recorded}")) }
}

impl Host {
    /// The parameters of the simulator that the configuration of a host is.
    fn new(config: &[u64]) -> Result<Self, String> {
        let &[_, max_hold, _, _, beta, _, reference, _, _, variant, release, threshold, _, _] = config else {
            return Err(format!("{config:?} is no configuration"));
        };
        if (variant, release) != (1, 1) || threshold == 0 {
            return Err("another variant or release, or a threshold that moves".into());
        }
        let time = |ns: u64| Raw::Text(format!("{ns}ns"));
        let given = [
            ("threshold", time(threshold)),
            ("spread", time(threshold / 5)),
            ("reference", time(reference)),
            ("max_hold", time(max_hold)),
            ("beta", Raw::Float(beta as f64 / 65_536.0)),
            ("scope", Raw::Text("destination".into())),
            ("reports", Raw::Text("acks".into())),
        ];
        let path = Path::new(Rate::from_gbps(10), Time::from_ms(2), 1448, 1538);
        let constants = OnRamp::resolve(&path, &given.map(|(name, raw)| (name.to_owned(), raw)));
        let constants = constants.map_err(|error| error.to_string())?;
        let stage = OnRamp::start(&constants, &path, Time::ZERO, Time::ZERO);
        Ok(Self { stage, max_hold, last: 0, reported: 0, pause_until: 0 })
    }

    /// A packet is handed over: in order, and held no longer than it may be.
    fn depart(&mut self, now: u64, queued: u64, when: u64) -> Result<(), String> {
        let head = Head { queued: Time::from_ns(queued), wire: 0 };
        let latest = queued + self.max_hold;
        let release = self.stage.release(Time::from_ns(now), &head).ps() / 1000;
        same("departure", release.min(latest).max(self.last).min(latest), when)?;
        self.stage.on_release(Time::from_ns(when), &head);
        self.last = when;
        Ok(())
    }

    /// An acknowledgement told a delay. Stamps are microseconds modulo 2^32.
    fn report(&mut self, now: u64, echo: u64, delay: u64) {
        let ago = ((now / 1000) as u32).wrapping_sub(echo as u32);
        let sent = now - u64::from(ago) * 1000;
        self.reported = self.reported.max(now);
        self.stage.on_report(Time::from_ns(self.reported), Time::from_ns(sent), delay as i64 * 1000);
        self.pause_until = self.stage.decision.state().pause_until;
    }
}

/// Replays a recording; the first call after which the simulator's stage decides otherwise is an error.
fn replay(recording: &str) -> Result<Replayed, String> {
    let mut host = None;
    let mut replayed = Replayed::default();
    for (index, line) in recording.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let at = |error: String| format!("line {}: {error}", index + 1);
        let (kind, rest) = line.split_once(' ').ok_or_else(|| at("a kind is missing".into()))?;
        let fields = numbers(&rest.replacen('=', "", 1)).map_err(at)?;
        if kind == "c" {
            host = Some(Host::new(&fields).map_err(at)?);
            continue;
        }
        let host = host.as_mut().ok_or_else(|| at("a configuration is missing".into()))?;
        match (kind, fields.as_slice()) {
            ("d", &[now, queued, when]) => {
                host.depart(now, queued, when).map_err(at)?;
                replayed.departures += 1;
                replayed.held += usize::from(when > queued);
            }
            ("a", &[now, _, echo, _, _, what, delay, pause_until]) => {
                let before = host.pause_until;
                if what == 0 {
                    host.report(now, echo, delay);
                    replayed.reports += 1;
                }
                same("pause_until", host.pause_until, pause_until).map_err(at)?;
                replayed.pauses += usize::from(pause_until > before);
            }
            _ => return Err(at(format!("found {line:?}"))),
        }
    }
    Ok(replayed)
}

#[test]
fn recorded_acknowledgements_pause_until_the_same_time() {
    let replayed = replay(RECORDED).unwrap_or_else(|error| panic!("{error}"));
    assert!(replayed.departures >= 500 && replayed.reports >= 1000, "{replayed:?}");
    assert!(replayed.held >= 100 && replayed.pauses >= 100, "{replayed:?}");
}

#[test]
fn a_recording_that_was_spoilt_is_noticed() {
    let pauses = |line: &&str| line.starts_with("a ") && !line.ends_with(" 0");
    let paused = RECORDED.lines().filter(pauses).nth(50).expect("a pause");
    let (given, until) = paused.rsplit_once(' ').expect("its end");
    let later = format!("{given} {}", until.parse::<u64>().expect("a time") + 1);
    let error = replay(&RECORDED.replacen(paused, &later, 1)).expect_err("it is not so");
    assert!(error.contains("pause_until"), "{error}");
    let threshold = RECORDED.replacen(" 4000000 ", " 4000001 ", 1);
    assert!(replay(&threshold).is_err(), "another threshold pauses for other times");
}
