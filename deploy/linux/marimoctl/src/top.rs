//! `marimoctl top`.

use crate::{
    arguments::{self, Form},
    bpf::Loaded,
    epoch::Entry,
    layout::{NAME, Record},
    module,
    tracefs::Instance,
    view,
};
use hostctl::{
    failure::{Failure, Outcome, While},
    plain::Plain,
    view::{clock_ahead, root},
};
use libbpf_rs::RingBufferBuilder;
use rustix::time::{ClockId, clock_gettime};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// How often a table is drawn.
const FRAME: Duration = Duration::from_secs(1);
/// How long a connection stays in the table after its last epoch.
const QUIET: f64 = 10.0;
/// How long the trace is waited for at once.
const POLL: Duration = Duration::from_millis(50);

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_signal: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// The kernel's CLOCK_MONOTONIC, seconds: that of records.
fn now() -> f64 {
    let time = clock_gettime(ClockId::Monotonic);
    let nanoseconds = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec) - clock_ahead();
    nanoseconds as f64 / 1e9
}

/// Newest entry of each connection, and how many of each kind it has had.
#[derive(Default)]
struct Table {
    rows: BTreeMap<String, Row>,
}

struct Row {
    newest: Entry,
    losses: u32,
    timeouts: u32,
    first: f64,
    epochs_at_first: u32,
}

impl Table {
    fn add(&mut self, entry: Entry) {
        let row = self.rows.entry(entry.connection.clone()).or_insert_with(|| Row {
            newest: entry.clone(),
            losses: 0,
            timeouts: 0,
            first: entry.time,
            epochs_at_first: entry.epochs,
        });
        row.losses += u32::from(entry.kind == "loss");
        row.timeouts += u32::from(entry.kind == "timeout");
        row.newest = entry;
    }

    fn forget(&mut self, now: f64) {
        self.rows.retain(|_, row| now - row.newest.time < QUIET);
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        writeln!(
            to,
            "{:<47} {:>7} {:>8} {:>6} {:>6} {:>8} {:>5} {:>8} {:>7} {:>4} {:>4}",
            "connection", "epochs", "epochs/s", "share", "load", "window", "cwnd", "srtt us", "retrans", "loss", "rto"
        )?;
        let mut rows: Vec<_> = self.rows.values().collect();
        rows.sort_by(|a, b| b.newest.rho.total_cmp(&a.newest.rho));
        for Row { newest, losses, timeouts, first, epochs_at_first } in rows {
            if newest.kind == "fallback" {
                writeln!(to, "{:<47} no ECN: handed to another congestion control", newest.connection)?;
                continue;
            }
            let seconds = newest.time - first;
            let rate = f64::from(newest.epochs.wrapping_sub(*epochs_at_first)) / seconds.max(1e-3);
            let more = |of: fn(&crate::epoch::More) -> u32| {
                newest.more.as_ref().map_or_else(|| "-".into(), |more| of(more).to_string())
            };
            writeln!(
                to,
                "{:<47} {:>7} {:>8.0} {:>6.3} {:>6.3} {:>8.2} {:>5} {:>8} {:>7} {:>4} {:>4}",
                newest.connection,
                newest.epochs,
                rate,
                newest.share,
                newest.rho,
                newest.window,
                newest.cwnd,
                more(|more| more.srtt_us),
                more(|more| more.retransmits),
                losses,
                timeouts
            )?;
        }
        Ok(())
    }
}

/// The module's events go to those who watch, and are kept by nobody before.
fn nothing_recorded() -> Failure {
    Failure::input(format!("--recorded: found with {}, allowed is {NAME}", module::NAME))
}

/// Shows epochs as they come.
pub fn top(arguments: &arguments::Top) -> Outcome {
    if arguments.recorded && arguments.form == Some(Form::Module) {
        return Err(nothing_recorded());
    }
    root()?;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let handler: extern "C" fn(libc::c_int) = on_signal;
        // SAFETY: the handler only touches an atomic.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
    let wanted = |form| arguments.form.is_none_or(|only| only == form);
    if wanted(Form::Bpf)
        && let Some(loaded) = Loaded::open()
    {
        return of_ring(&loaded, arguments);
    }
    if wanted(Form::Module) && module::loaded() {
        if arguments.recorded {
            return Err(nothing_recorded());
        }
        let mut instance = Instance::new()?;
        return show(arguments, |since| {
            thread::sleep(POLL);
            Ok(instance.read()?.into_iter().filter(|entry| entry.time >= since).collect())
        });
    }
    view::not_loaded(format!("neither {NAME} nor {} is loaded", module::NAME))
}

fn of_ring(loaded: &Loaded, arguments: &arguments::Top) -> Outcome {
    let entries = RefCell::new(Vec::new());
    let is_other = Cell::new(false);
    let mut builder = RingBufferBuilder::new();
    builder
        .add(loaded.map("trace")?, |bytes| {
            match Record::read(bytes) {
                Some(record) => entries.borrow_mut().push(Entry::of(&record)),
                None => is_other.set(true),
            }
            0
        })
        .during("cannot read the trace")?;
    let ring = builder.build().during("cannot read the trace")?;
    show(arguments, |since| {
        // An interrupted wait is no error: the signal is looked at by the caller.
        let _ = ring.poll(POLL);
        if is_other.get() {
            return Err(loaded.other_version("has records of another size"));
        }
        Ok(entries.take().into_iter().filter(|entry| entry.time >= since).collect())
    })
}

/// Draws what `next` returns, until it is time to end.
fn show(arguments: &arguments::Top, mut next: impl FnMut(f64) -> Outcome<Vec<Entry>>) -> Outcome {
    let seconds = arguments.seconds.or(arguments.once.then_some(1));
    let since = if arguments.recorded { 0.0 } else { now() };
    let start = Instant::now();
    let mut drawn = start;
    let mut table = Table::default();
    let mut out = io::stdout().lock();
    let clear = io::stdout().is_terminal();
    let ended = |result: io::Result<()>| match result {
        Ok(()) => Ok(true),
        // Whoever reads us has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).during("cannot write"),
    };
    loop {
        let over = STOP.load(Ordering::Relaxed) || seconds.is_some_and(|most| start.elapsed().as_secs() >= most);
        for entry in next(since)? {
            if arguments.json {
                let line = serde_json::to_string(&entry).during("cannot write")?;
                if !ended(writeln!(out, "{line}"))? {
                    return Ok(());
                }
            } else {
                table.add(entry);
            }
        }
        if arguments.json {
            if !ended(out.flush())? {
                return Ok(());
            }
        } else if over || (!arguments.once && drawn.elapsed() >= FRAME) {
            drawn = Instant::now();
            if !arguments.once {
                table.forget(now());
            }
            if clear && !arguments.once && !ended(write!(out, "\x1b[H\x1b[2J"))? {
                return Ok(());
            }
            if !ended(table.write(&mut out))? {
                return Ok(());
            }
        }
        if over {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout;

    fn entry(kind: u32, port: u32, epochs: u32, time: u64) -> Entry {
        Entry::of(&Record { kind, epochs, time, family: 2, source_port: port, rho: port, ..Record::default() })
    }

    #[test]
    fn the_table_keeps_the_newest_entry_of_each_connection() {
        let mut table = Table::default();
        table.add(entry(layout::EPOCH, 1, 5, 1_000_000_000));
        table.add(entry(layout::LOSS, 1, 5, 1_500_000_000));
        table.add(entry(layout::EPOCH, 1, 25, 3_000_000_000));
        table.add(entry(layout::FALLBACK, 2, 0, 9_000_000_000));
        let mut text = Vec::new();
        table.write(&mut text).expect("memory");
        let text = String::from_utf8(text).expect("text");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].contains("no ECN"), "{text}");
        let fields: Vec<_> = lines[2].split_whitespace().collect();
        assert_eq!(&fields[..5], ["0.0.0.0:1", ">", "0.0.0.0:0", "25", "10"], "{text}");
        assert_eq!(&fields[fields.len() - 2..], ["1", "0"], "{text}");
        table.forget(14.0);
        assert_eq!(table.rows.len(), 1);
    }
}
