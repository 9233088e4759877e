//! How far the runs are: a bar on a terminal, plain lines elsewhere, nothing with `--quiet`.

use crate::{interrupt, output};
use incast_lab::{run::Observer, scenario::Run};
use incast_sim::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::{IsTerminal, stderr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Time between plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The observer that fits where stderr goes.
pub fn observer(scenario: &str, quiet: bool) -> Box<dyn Observer> {
    if quiet {
        return Box::new(Silent);
    }
    let bar = stderr().is_terminal().then(|| {
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{prefix} {wide_bar} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(scenario.to_owned());
        bar
    });
    Box::new(Reporter { scenario: scenario.to_owned(), bar, state: Mutex::default() })
}

struct Silent;

impl Observer for Silent {
    fn on_start(&self, _to_do: &[&Run], _found: usize) {
        interrupt::computing(true);
    }
    fn on_simulated(&self, _run: usize) {
        interrupt::writing(true);
    }
    fn on_end(&self, _run: usize, _failure: Option<&str>) {
        interrupt::writing(false);
    }
    fn on_summary(&self) {
        interrupt::computing(false);
    }
}

/// Steps of the bar.
const STEPS: u64 = 10_000;

struct Reporter {
    scenario: String,
    bar: Option<ProgressBar>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    runs: Vec<One>,
    done: usize,
    found: usize,
    started: Option<Instant>,
    last_line: Option<Instant>,
}

#[derive(Default)]
struct One {
    name: String,
    /// Share of the work of all runs.
    weight: f64,
    /// Link traversals that it is expected to take.
    expected: f64,
    /// How much of it is done, from 0 to 1.
    share: f64,
    packet_hops: u64,
    simulated: String,
}

impl State {
    fn line(&self) -> (f64, String) {
        let share: f64 = self.runs.iter().map(|run| run.weight * run.share).sum();
        let hops: u64 = self.runs.iter().map(|run| run.packet_hops).sum();
        let seconds = self.started.map_or(0.0, |started| started.elapsed().as_secs_f64());
        let speed = if seconds > 0.0 { hops as f64 / seconds / 1e6 } else { 0.0 };
        let eta = if share > 0.01 { clock(seconds * (1.0 - share) / share) } else { "?".to_owned() };
        let at = self.runs.iter().filter(|run| run.share < 1.0).find(|run| !run.simulated.is_empty());
        let at = at.map(|run| format!(", {}", run.simulated)).unwrap_or_default();
        let (done, all) = (self.done + self.found, self.runs.len() + self.found);
        (share, format!("{done}/{all} runs{at}, {speed:.1} M packet-hops/s, ETA {eta}"))
    }
}

/// Minutes and seconds.
fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Simulated time in units that people read.
fn simulated(progress: &Progress) -> String {
    format!("{:.3} ms simulated", progress.now.as_us_f64() / 1000.0)
}

impl Reporter {
    fn show(&self, state: &mut State, now: bool) {
        let (share, line) = state.line();
        if let Some(bar) = &self.bar {
            bar.set_position((share * STEPS as f64) as u64);
            bar.set_message(line);
        } else if now || state.last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
            state.last_line = Some(Instant::now());
            output::message(&format!("{}: {line}", self.scenario));
        }
    }
}

impl Observer for Reporter {
    fn on_summary(&self) {
        interrupt::computing(false);
    }

    fn on_start(&self, to_do: &[&Run], found: usize) {
        interrupt::computing(true);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let expected: Vec<f64> = to_do.iter().map(|run| run.expected_packet_hops().max(1.0)).collect();
        let all: f64 = expected.iter().sum();
        state.runs = to_do
            .iter()
            .zip(expected)
            .map(|(run, hops)| One {
                name: run.folder.clone(),
                weight: hops / all,
                expected: hops,
                ..One::default()
            })
            .collect();
        state.found = found;
        state.started = Some(Instant::now());
        self.show(&mut state, true);
    }

    fn on_progress(&self, run: usize, progress: &Progress) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = state.runs.get_mut(run) {
            // Simulated time is a poor measure: a run ends when its flows are done, usually long before `end`.
            one.share = (progress.packet_hops as f64 / one.expected).clamp(one.share, 0.99);
            one.packet_hops = progress.packet_hops;
            one.simulated = simulated(progress);
        }
        self.show(&mut state, false);
    }

    fn on_simulated(&self, _run: usize) {
        interrupt::writing(true);
    }

    fn on_end(&self, run: usize, failure: Option<&str>) {
        interrupt::writing(false);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.done += 1;
        if let Some(one) = state.runs.get_mut(run) {
            one.share = 1.0;
            if self.bar.is_none() && failure.is_some() {
                output::message(&format!("{}: {} failed", self.scenario, one.name));
            }
        }
        let all = state.done == state.runs.len();
        self.show(&mut state, all);
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
