//! `onrampctl top`: what became of packets to each address, second by second.

use crate::{
    arguments,
    bpf::Loaded,
    layout::{Address, Path},
};
use hostctl::{
    failure::{Outcome, While},
    output, say, view,
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _},
    thread,
    time::Duration,
};

const SECOND: Duration = Duration::from_secs(1);

/// A path in one second.
#[derive(Serialize)]
struct Row {
    address: String,
    packets: u64,
    held: u64,
    /// Mean time that a held packet was held, us.
    hold_us: f64,
    /// Of the last acknowledgement, over the least one, us.
    delay_us: f64,
    threshold_us: f64,
    round_trip_us: f64,
    /// Of the peer's clock, beyond ours; `None` before it is estimated.
    clock_ppm: Option<f64>,
    /// By how much the clocks may differ more than hosts have found by comparing them, us; `None` if they have not.
    clock_error_us: Option<f64>,
    /// Delays are counted by that, and not from the least one.
    clock_is_known: bool,
    /// Nothing is held, as something took packets past fq.
    stands_down: bool,
}

impl Row {
    fn new(address: &Address, now: &Path, before: Option<&Path>) -> Self {
        let since = |of: fn(&Path) -> u64| of(now).saturating_sub(before.map_or(0, of));
        let (held, held_ns) = (since(|path| path.held), since(|path| path.held_ns));
        let us = |ns: u32| f64::from(ns) / 1e3;
        Self {
            address: address.ip().to_string(),
            packets: since(|path| path.packets),
            held,
            hold_us: if held == 0 { 0.0 } else { held_ns as f64 / held as f64 / 1e3 },
            delay_us: us(now.delay),
            threshold_us: us(now.threshold),
            round_trip_us: us(now.round_trip),
            clock_ppm: (now.drift > 0).then(|| f64::from(now.rate) / 1_073.741_824),
            clock_error_us: (now.known.told > 0).then(|| us(now.known.error)),
            clock_is_known: now.is_known(),
            stands_down: now.stand_down > now.last,
        }
    }

    fn line(&self) -> String {
        let clock = match (self.clock_error_us, self.clock_ppm) {
            (Some(error), _) if self.clock_is_known => format!("±{error:.1} us"),
            (_, Some(ppm)) => format!("{ppm:.1} ppm"),
            (_, None) => "-".into(),
        };
        let note = if self.stands_down { " stands down" } else { "" };
        format!(
            "{:<24} {:>8} {:>8} {:>8.1} {:>9.1} {:>9.1} {:>8.1} {:>10}{note}",
            self.address,
            self.packets,
            self.held,
            self.hold_us,
            self.delay_us,
            self.threshold_us,
            self.round_trip_us,
            clock
        )
    }
}

const HEADER: [&str; 8] = ["address", "packets", "held", "hold us", "delay us", "thresh us", "RTT us", "clock"];

fn paths(loaded: &Loaded) -> Outcome<BTreeMap<Address, Path>> {
    Ok(loaded.paths()?.into_iter().collect())
}

/// Shows paths until it is ended, those that hold longest first.
pub fn top(arguments: &arguments::Top) -> Outcome {
    view::root()?;
    let mut before = paths(&Loaded::needed()?)?;
    loop {
        thread::sleep(SECOND);
        // It may have been loaded anew meanwhile.
        let now = paths(&Loaded::needed()?)?;
        let mut rows: Vec<Row> =
            now.iter().map(|(address, path)| Row::new(address, path, before.get(address))).collect();
        rows.sort_by(|a, b| (b.held as f64 * b.hold_us).total_cmp(&(a.held as f64 * a.hold_us)));
        before = now;
        if arguments.json {
            for row in &rows {
                say!("{}", serde_json::to_string(row).during("cannot write")?);
            }
        } else {
            let [address, packets, held, hold, delay, threshold, trip, clock] = HEADER;
            let clear = if io::stdout().is_terminal() && !arguments.once { "\x1b[H\x1b[2J" } else { "" };
            let header = format!(
                "{address:<24} {packets:>8} {held:>8} {hold:>8} {delay:>9} {threshold:>9} {trip:>8} {clock:>10}"
            );
            let lines: Vec<String> = rows.iter().map(Row::line).collect();
            output::print("onrampctl", format_args!("{clear}{header}\n{}\n", lines.join("\n")));
        }
        if arguments.once {
            return Ok(());
        }
    }
}
