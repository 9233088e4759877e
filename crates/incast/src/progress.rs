//! How far the runs are: a bar on a terminal, plain lines elsewhere, nothing with `--quiet`.

use crate::{interrupt, output};
use incast_lab::{run::Observer, scenario::Run};
use incast_sim::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::{IsTerminal, stderr},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
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
    Box::new(Reporter { scenario: scenario.to_owned(), bar, tracker: Tracker::default(), last_line: Mutex::default() })
}

struct Silent;

/// Says that results are not what was written. Also with `--quiet`.
fn damage(folder: &Path, why: &str) {
    output::message(&format!("damaged: {}: {why}; the run is done again", folder.display()));
}

impl Observer for Silent {
    fn on_damage(&self, folder: &Path, why: &str) {
        damage(folder, why);
    }
    fn on_simulated(&self, _run: usize) {
        interrupt::writing(true);
    }
    fn on_end(&self, _run: usize, _failure: Option<&str>) {
        interrupt::writing(false);
    }
}

/// Steps of the bar.
const STEPS: u64 = 10_000;

/// How far the runs of a scenario are.
#[derive(Debug, Default)]
pub struct Tracker {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    runs: Vec<One>,
    done: usize,
    found: usize,
    started: Option<Instant>,
}

#[derive(Debug, Default)]
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

impl Tracker {
    /// The part of the work that is done, from 0 to 1, and a line about it.
    pub fn line(&self) -> (f64, String) {
        self.lock().line()
    }

    /// Every run has ended, and that took longer than this.
    fn is_done_after(&self, time: Duration) -> bool {
        let state = self.lock();
        state.done == state.runs.len() && state.started.is_some_and(|started| started.elapsed() >= time)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Tracker {
    fn on_damage(&self, folder: &Path, why: &str) {
        damage(folder, why);
    }
    fn on_start(&self, to_do: &[&Run], found: usize) {
        let mut state = self.lock();
        let expected: Vec<f64> = to_do.iter().map(|run| run.expected_packet_hops().max(1.0)).collect();
        let all: f64 = expected.iter().sum();
        let one = |(run, hops): (&&Run, f64)| One {
            name: run.folder.clone(),
            weight: hops / all,
            expected: hops,
            ..One::default()
        };
        state.runs = to_do.iter().zip(expected).map(one).collect();
        state.found = found;
        state.done = 0;
        state.started = Some(Instant::now());
    }

    fn on_progress(&self, run: usize, progress: &Progress) {
        if let Some(one) = self.lock().runs.get_mut(run) {
            // Simulated time is a poor measure: a run ends when its flows are done, usually long before `end`.
            one.share = (progress.packet_hops as f64 / one.expected).clamp(one.share, 0.99);
            one.packet_hops = progress.packet_hops;
            one.simulated = simulated(progress);
        }
    }

    fn on_end(&self, run: usize, _failure: Option<&str>) {
        let mut state = self.lock();
        state.done += 1;
        if let Some(one) = state.runs.get_mut(run) {
            one.share = 1.0;
        }
    }
}

struct Reporter {
    scenario: String,
    bar: Option<ProgressBar>,
    tracker: Tracker,
    last_line: Mutex<Option<Instant>>,
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
        (share.min(1.0), format!("{done}/{all} runs{at}, {speed:.1} M packet-hops/s, ETA {eta}"))
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
    fn show(&self, now: bool) {
        let (share, line) = self.tracker.line();
        if let Some(bar) = &self.bar {
            bar.set_position((share * STEPS as f64) as u64);
            bar.set_message(line);
            return;
        }
        let mut last = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
        if now || last.is_none_or(|last| last.elapsed() >= LINE_EVERY) {
            *last = Some(Instant::now());
            output::message(&format!("{}: {line}", self.scenario));
        }
    }
}

impl Observer for Reporter {
    fn on_damage(&self, folder: &Path, why: &str) {
        damage(folder, why);
    }
    fn on_start(&self, to_do: &[&Run], found: usize) {
        self.tracker.on_start(to_do, found);
        // What is done by then needs no line.
        *self.last_line.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn on_progress(&self, run: usize, progress: &Progress) {
        self.tracker.on_progress(run, progress);
        self.show(false);
    }

    fn on_simulated(&self, _run: usize) {
        interrupt::writing(true);
    }

    fn on_end(&self, run: usize, failure: Option<&str>) {
        interrupt::writing(false);
        self.tracker.on_end(run, failure);
        if self.bar.is_none() && failure.is_some() {
            let name = self.tracker.lock().runs.get(run).map(|one| one.name.clone());
            output::message(&format!("{}: {} failed", self.scenario, name.unwrap_or_default()));
        }
        self.show(self.tracker.is_done_after(LINE_EVERY));
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_runs_are_and_only_long_ones_have_a_last_one() {
        let tracker = Tracker::default();
        tracker.on_start(&[], 3);
        assert!(tracker.line().1.starts_with("3/3 runs, "), "{:?}", tracker.line());
        assert!(tracker.is_done_after(Duration::ZERO) && !tracker.is_done_after(Duration::from_secs(3600)));
    }
}
