//! `incast calibrate marimo`: learns the map f from shares of marked packets to loads.

use crate::{End, arguments, output};
use incast_cc::window::marimo::core::{KNOTS, LoadTable};
use incast_lab::{
    atomic,
    calibrate::{self, CalibrationError, Fit, sweep::Sweep},
    results::host::cores,
    scenario::Source,
};
use std::{fmt::Write, io::Write as _, ops::RangeInclusive, path::Path};

/// Checks a table, or makes one.
pub fn calibrate(arguments: &arguments::Calibrate) -> End {
    let arguments::Calibrated::Marimo(arguments) = &arguments.what;
    match &arguments.check {
        Some(path) => check(path),
        None => make(arguments),
    }
}

fn refuse(message: &str) -> End {
    output::error(&message);
    End::BadInput
}

fn check(path: &Path) -> End {
    let source = match Source::read(path) {
        Ok(source) => source,
        Err(error) => return refuse(&error.to_string()),
    };
    match LoadTable::parse(&path.display().to_string(), &source.text) {
        Ok(table) => {
            output::data(&describe(&table));
            End::Done
        }
        Err(error) => refuse(&format!("{}:{}: {}", path.display(), error.line, error.message)),
    }
}

fn make(arguments: &arguments::CalibrateMarimo) -> End {
    let mut sweep = Sweep { seed: arguments.seed, ..Sweep::default() };
    sweep.rate = arguments.rate.unwrap_or(sweep.rate);
    sweep.delay = arguments.delay.unwrap_or(sweep.delay);
    sweep.mtu = arguments.mtu.unwrap_or(sweep.mtu);
    sweep.burst = arguments.burst.unwrap_or(sweep.burst);
    sweep.rtts = arguments.rtts.unwrap_or(sweep.rtts);
    let (samples, origin) = match &arguments.samples {
        Some(path) => {
            let source = match Source::read(path) {
                Ok(source) => source,
                Err(error) => return refuse(&error.to_string()),
            };
            match calibrate::read_samples(&source.text) {
                Ok(samples) => (samples, format!("samples of {}", path.display())),
                Err(CalibrationError::Sample { line, message }) => {
                    return refuse(&format!("{}:{line}: {message}", path.display()));
                }
                Err(error) => return refuse(&format!("{}: {error}", path.display())),
            }
        }
        None => {
            let jobs = arguments.jobs.map_or_else(cores, std::num::NonZeroUsize::get);
            let points = sweep.points().len();
            output::message(&format!("calibrating: {points} runs of {} round trips", sweep.rtts));
            match calibrate::simulate(&sweep, jobs) {
                Ok(samples) => (samples, describe_sweep(&sweep)),
                Err(error) => return refuse(&error.to_string()),
            }
        }
    };
    if let Some(path) = &arguments.write_samples
        && let Err(error) = atomic::write(path, |file| file.write_all(calibrate::write_samples(&samples).as_bytes()))
    {
        output::error(&format!("{}: {error}", path.display()));
        return End::Failed;
    }
    let name = arguments.out.as_ref().map_or("-".to_owned(), |path| path.display().to_string());
    let fit = match calibrate::fit(&name, &samples) {
        Ok(fit) => fit,
        // What --out holds is untouched.
        Err(error) => return refuse(&error.to_string()),
    };
    let report = report(&fit);
    let mut comments = vec![
        "Marimo's f: load of the bottleneck at shares of marked packets of 0/64 to 64/64, in 65536ths".to_owned(),
        format!("made by: incast {}", command(arguments)),
        origin,
    ];
    comments.extend(report.lines().map(str::to_owned));
    let text = fit.table.text(&comments);
    match &arguments.out {
        None => output::data(&text),
        Some(path) => {
            if let Err(error) = atomic::write(path, |file| file.write_all(text.as_bytes())) {
                output::error(&format!("{}: {error}", path.display()));
                return End::Failed;
            }
            output::data(&describe(&fit.table));
        }
    }
    output::message(report.trim_end());
    End::Done
}

/// The command that makes the same table again; where it goes does not matter.
fn command(arguments: &arguments::CalibrateMarimo) -> String {
    let mut text = "calibrate marimo".to_owned();
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(text, " --{name} {value}");
        }
    };
    option("samples", arguments.samples.as_ref().map(|path| path.display().to_string()));
    option("rate", arguments.rate.map(|rate| rate.to_string()));
    option("delay", arguments.delay.map(|delay| delay.to_string()));
    option("mtu", arguments.mtu.map(|mtu| mtu.to_string()));
    option("burst", arguments.burst.map(|burst| burst.to_string()));
    option("rtts", arguments.rtts.map(|rtts| rtts.to_string()));
    option("seed", (arguments.seed != 1).then(|| arguments.seed.to_string()));
    text
}

fn describe_sweep(sweep: &Sweep) -> String {
    let list = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<_>>().join(" ");
    let senders: Vec<String> = sweep.senders.iter().map(u32::to_string).collect();
    format!(
        "open-loop bursts of {} packets of {} B over a {} bottleneck, base RTT {}; {} round trips at each of loads {}, senders {}, thresholds {} BDP; seed {}",
        sweep.burst,
        sweep.mtu,
        sweep.rate,
        sweep.base_rtt().map_or_else(|| "unknown".to_owned(), |rtt| rtt.to_string()),
        sweep.rtts,
        list(&sweep.loads),
        senders.join(" "),
        list(&sweep.thresholds),
        sweep.seed
    )
}

fn report(fit: &Fit) -> String {
    let mut text = format!(
        "{} samples; error of f {:.3} (RMS, in units of load), spread of the load {:.3}: the share explains {:.0}% of the variance\n",
        fit.samples,
        fit.rms_error,
        fit.rms_spread,
        100.0 * (1.0 - fit.rms_error * fit.rms_error / (fit.rms_spread * fit.rms_spread))
    );
    let ranges = |ranges: &[RangeInclusive<usize>]| {
        let texts: Vec<String> = ranges
            .iter()
            .map(|range| format!("{}/{last}..{}/{last}", range.start(), range.end(), last = KNOTS - 1))
            .collect();
        if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
    };
    let ends = [fit.counts[0], fit.counts[KNOTS - 1]].map(|count| 100 * count / fit.samples.max(1));
    let _ = writeln!(
        text,
        "at the ends, where f cannot tell loads apart: {}% of samples without marks, {}% all marked",
        ends[0], ends[1]
    );
    let _ = writeln!(text, "without samples of their own: {}", ranges(&fit.empty));
    let _ = writeln!(text, "flat: {}", ranges(&fit.flat));
    text
}

fn describe(table: &LoadTable) -> String {
    let mut text = String::from("share  load\n");
    for eighth in 0..=8 {
        let share = f64::from(eighth) / 8.0;
        let _ = writeln!(text, "{share:<5.3}  {:.3}", table.load(share));
    }
    text
}
