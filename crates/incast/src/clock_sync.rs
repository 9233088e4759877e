//! `incast clock-sync`: how well the clocks of modelled hosts agree, method by method.

use crate::{End, arguments, output};
use comfy_table::{Cell, CellAlignment, Table, presets};
use incast_lab::clocks::{self, Named, NoiseShape, SyncError, SyncSettings, Synchronisation};
use std::fmt::Write;

/// Synchronises and prints a table or JSON.
pub fn clock_sync(arguments: &arguments::ClockSync) -> End {
    let settings = settings(arguments);
    let found = match clocks::synchronise(&settings) {
        Ok(found) => found,
        Err(error @ (SyncError::Setting { .. } | SyncError::Unconnected { .. })) => {
            output::error(&format!("--{error}"));
            return End::BadInput;
        }
        Err(error) => {
            output::error(&error);
            return End::Failed;
        }
    };
    if arguments.json {
        match serde_json::to_string_pretty(&found) {
            Ok(text) => output::data(&format!("{text}\n")),
            Err(error) => {
                output::error(&error);
                return End::Failed;
            }
        }
    } else {
        output::data(&format!("{}\n{}", table(&found), describe(&settings, &found)));
    }
    End::Done
}

fn settings(arguments: &arguments::ClockSync) -> SyncSettings {
    let default = SyncSettings::default();
    let hosts = arguments.hosts.unwrap_or(default.hosts);
    SyncSettings {
        hosts,
        peers: arguments.peers.unwrap_or(default.peers.min(hosts.saturating_sub(1))),
        offset: arguments.offset.unwrap_or(default.offset),
        drift_ppm: arguments.drift_ppm.unwrap_or(default.drift_ppm),
        noise: arguments.noise.unwrap_or(default.noise),
        noise_shape: match arguments.noise_shape {
            arguments::NoiseShape::Normal => NoiseShape::Normal,
            arguments::NoiseShape::Uniform => NoiseShape::Uniform,
            arguments::NoiseShape::Exponential => NoiseShape::Exponential,
        },
        delay: arguments.delay.unwrap_or(default.delay),
        busy: arguments.busy.unwrap_or(default.busy),
        queueing: arguments.queueing.unwrap_or(default.queueing),
        gap: arguments.gap.unwrap_or(default.gap),
        guard: arguments.guard,
        interval: arguments.interval.unwrap_or(default.interval),
        window: arguments.window.unwrap_or(default.window),
        windows: arguments.windows.unwrap_or(default.windows),
        soft: arguments.soft.unwrap_or(default.soft),
        threshold: arguments.threshold.unwrap_or(default.threshold),
        asymmetric: arguments.asymmetric,
        seed: arguments.seed,
    }
}

fn table(found: &Synchronisation) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header([
        "method",
        "window",
        "mean ns",
        "p99 ns",
        "max ns",
        "next: mean ns",
        "p99 ns",
        "max ns",
    ]);
    for row in &found.rows {
        let window = row.window.map_or("all".to_owned(), |window| window.to_string());
        let errors = [row.mean_ns, row.p99_ns, row.max_ns, row.next_mean_ns, row.next_p99_ns, row.next_max_ns];
        let mut cells = vec![Cell::new(row.method.name())];
        let numbers = [window].into_iter().chain(errors.iter().map(|error| format!("{error:.1}")));
        cells.extend(numbers.map(|text| Cell::new(text).set_alignment(CellAlignment::Right)));
        table.add_row(cells);
    }
    table
}

fn describe(settings: &SyncSettings, found: &Synchronisation) -> String {
    let mut text = format!(
        "errors of {} clocks against host 0's when a window of {} ends, and, \"next\", a window later; {} links, seed {}\n",
        found.hosts - 1,
        settings.window,
        found.links,
        settings.seed
    );
    let _ = writeln!(
        text,
        "coded pairs: {:.1}% changed their gap by less than the guard of {}",
        100.0 * found.accepted,
        settings.guard()
    );
    if found.asymmetric.is_empty() {
        let _ = writeln!(text, "asymmetric links: none found");
    }
    for named in &found.asymmetric {
        let Named { from, to, windows, extra_ns, deviations } = named;
        let _ = writeln!(
            text,
            "asymmetric link: {from}-{to} takes {extra_ns:.0} ns longer than {to}-{from} ({deviations:.1} deviations; named in {} of {} windows)",
            windows.len(),
            settings.windows
        );
    }
    text
}
