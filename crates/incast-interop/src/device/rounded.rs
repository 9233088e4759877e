//! A scenario with the values that devices take.

use super::{Wanted, linux::initial_window, rounding};
use incast_cc::marking::Marking;
use incast_lab::scenario::Run;
use incast_sim::config::{Ecn, RedAtRate, Size};
use incast_units::{Bytes, Rate};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// The run's scenario, with one scheme, as a SONiC switch and a Linux host take it: thresholds of marks in bytes,
/// probabilities in whole per cent, alphas as powers of two, the initial window in whole segments, and the least timeout in
/// whole milliseconds, or microseconds below one.
pub fn scenario(run: &Run, wanted: &Wanted) -> Table {
    let mut table = run.effective();
    let rates: BTreeSet<u64> = wanted.config.topology.cables.iter().map(|cable| cable.link.rate.bps()).collect();
    let rates: Vec<Rate> = rates.into_iter().map(Rate::from_bps).collect();
    let round = |switch: &mut Table| {
        round_switch(switch, wanted, &rates);
        for own in switch.get_mut("override").and_then(Value::as_array_mut).into_iter().flatten() {
            own.as_table_mut().into_iter().for_each(|own| round_switch(own, wanted, &rates));
        }
    };
    table.get_mut("switch").and_then(Value::as_table_mut).into_iter().for_each(round);
    for scheme in table.get_mut("scheme").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(scheme) = scheme.as_table_mut() else { continue };
        scheme.get_mut("switch").and_then(Value::as_table_mut).into_iter().for_each(round);
        let first = wanted.config.classes.first();
        let mtu = wanted.config.host.mtu;
        if let Some((segments, _)) = first.and_then(|class| initial_window(class, mtu)) {
            let bytes = Bytes::new(segments * u64::from(mtu));
            scheme.insert("initial_window".into(), Value::String(bytes.to_string()));
        }
    }
    table
}

/// Rounds what a table of switches gives.
fn round_switch(switch: &mut Table, wanted: &Wanted, rates: &[Rate]) {
    for key in ["buffer", "pfc"] {
        let alpha = switch.get_mut(key).and_then(|part| part.get_mut("alpha"));
        if let Some(alpha @ Value::Float(_)) = alpha {
            let (exponent, _) = rounding::exponent(alpha.as_float().unwrap_or(1.0));
            *alpha = Value::Float(rounding::power(exponent));
        }
    }
    let Some(ecn) = switch.get("ecn").and_then(read) else { return };
    let at = |rate: &Rate| (*rate, ecn.marking(*rate, wanted.path.base_rtt));
    if let Some(rounded) = written(&rates.iter().map(at).collect::<Vec<_>>()) {
        switch.insert("ecn".into(), rounded);
    }
}

/// Thresholds as scenarios write them, `kind` among the keys.
fn read(value: &Value) -> Option<Ecn> {
    let table = value.as_table()?;
    let size = |table: &Table, key: &str| table.get(key)?.as_str()?.parse::<Size>().ok();
    let p = |table: &Table| table.get("p")?.as_float();
    match table.get("kind")?.as_str()? {
        "step" => Some(Ecn::Step { at: size(table, "at")? }),
        "red" => Some(Ecn::Red { min: size(table, "min")?, max: size(table, "max")?, p: p(table)? }),
        "red-by-rate" => {
            let of = |at: &Value| {
                let at = at.as_table()?;
                let rate = at.get("rate")?.as_str()?.parse().ok()?;
                Some(RedAtRate { rate, min: size(at, "min")?, max: size(at, "max")?, p: p(at)? })
            };
            let rates = table.get("rates")?.as_array()?.iter().map(of).collect::<Option<_>>()?;
            Some(Ecn::RedByRate { rates })
        }
        _ => None,
    }
}

/// The same in bytes and per cent: one table where all rates agree.
fn written(by_rate: &[(Rate, Marking)]) -> Option<Value> {
    let text = |bytes: u64| Value::String(format!("{bytes}B"));
    let ramp = |marking: Marking| match marking {
        Marking::Off => None,
        Marking::Step { at } => Some((at, at, 100)),
        Marking::Red { min, max, p } => Some((min, max, rounding::percent(p).0)),
    };
    let (_, first) = *by_rate.first()?;
    let entry = |(min, max, percent): (u64, u64, u32)| {
        [
            ("min".to_owned(), text(min)),
            ("max".to_owned(), text(max)),
            ("p".to_owned(), Value::Float(f64::from(percent) / 100.0)),
        ]
    };
    let kind = |name: &str| ("kind".to_owned(), Value::String(name.to_owned()));
    if by_rate.iter().all(|(_, marking)| *marking == first) {
        return match first {
            Marking::Off => None,
            Marking::Step { at } => Some(Value::Table([kind("step"), ("at".into(), text(at))].into_iter().collect())),
            red @ Marking::Red { .. } => {
                Some(Value::Table([kind("red")].into_iter().chain(entry(ramp(red)?)).collect()))
            }
        };
    }
    let rates = by_rate.iter().filter_map(|(rate, marking)| {
        let rate = ("rate".to_owned(), Value::String(rate.to_string()));
        Some(Value::Table([rate].into_iter().chain(entry(ramp(*marking)?)).collect()))
    });
    Some(Value::Table([kind("red-by-rate"), ("rates".into(), Value::Array(rates.collect()))].into_iter().collect()))
}
