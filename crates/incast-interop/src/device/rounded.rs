//! A scenario with the values that devices take.

use super::{
    Device, Wanted,
    linux::{Parameter, microseconds, parameters, segments},
    mlnx, nxos, onramp, queues, rounding, trimming,
};
use incast_cc::marking::Marking;
use incast_lab::scenario::toml_value;
use incast_sim::{
    base_rtt,
    config::{ClassConfig, Ecn, Limit, RedAtRate, Size},
    used_priorities,
};
use incast_units::{Bytes, Rate, Time};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// What rounding needs to know of a fabric.
struct Fabric {
    base_rtt: Time,
    /// Of all its links.
    rates: Vec<Rate>,
    /// Priorities in use, one bit each.
    used: u8,
    /// Bytes of a full packet.
    full_packet: u64,
}

/// A run's scenario, with one scheme, as a device takes it, hosts always as Linux does or NVIDIA's NICs: thresholds of
/// marks in bytes or what the device counts in, probabilities in whole per cent, alphas as powers of two, weights up to 100
/// or in per cent; initial windows in whole segments, the least timeout in whole milliseconds or microseconds, and what
/// parameters of the kernel's modules or of the NIC stand for.
pub fn scenario(mut table: Table, wanted: &Wanted, device: Device) -> Table {
    let rates: BTreeSet<u64> = wanted.config.topology.cables.iter().map(|cable| cable.link.rate.bps()).collect();
    let fabric = Fabric {
        base_rtt: base_rtt((&wanted.config).into()),
        rates: rates.into_iter().map(Rate::from_bps).collect(),
        used: used_priorities((&wanted.config).into()),
        full_packet: trimming::full_packet(wanted),
    };
    let round = |switch: &mut Table| {
        round_switch(switch, &fabric, device);
        for own in switch.get_mut("override").and_then(Value::as_array_mut).into_iter().flatten() {
            own.as_table_mut().into_iter().for_each(|own| round_switch(own, &fabric, device));
        }
    };
    let tables = |table: &mut Table| {
        // A NIC is told of its law alone.
        if device == Device::Mlnx {
            return;
        }
        table.get_mut("switch").and_then(Value::as_table_mut).into_iter().for_each(round);
        table.get_mut("host").and_then(Value::as_table_mut).into_iter().for_each(round_host);
    };
    tables(&mut table);
    for scheme in table.get_mut("scheme").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(scheme) = scheme.as_table_mut() else { continue };
        tables(scheme);
        let classes = &wanted.config.classes;
        let by_class: Vec<String> = scheme
            .get("by_class")
            .and_then(Value::as_table)
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect();
        let own = classes.iter().find(|class| wanted.is_for(class) && !by_class.contains(&class.name));
        round_law(scheme, own, wanted, device);
        round_underlay(scheme, own, wanted, device);
        let refined = scheme.get_mut("by_class").and_then(Value::as_table_mut).into_iter().flatten();
        for (name, refined) in refined {
            let class = classes.iter().find(|class| wanted.is_for(class) && class.name == *name);
            if let Some(it) = refined.as_table_mut() {
                round_law(it, class, wanted, device);
                round_underlay(it, class, wanted, device);
            }
        }
    }
    table
}

/// Rounds the parameters of a law that a table has, where the class is under that law.
fn round_law(table: &mut Table, class: Option<&ClassConfig>, wanted: &Wanted, device: Device) {
    if class.is_none() && wanted.class.is_some() {
        return;
    }
    let mtu = wanted.config.host.mtu;
    if device == Device::Mlnx {
        let class = class.filter(|class| class.law.info().name == mlnx::LAW);
        for setting in class.and_then(|class| mlnx::settings(class, wanted.path.rate).ok()).into_iter().flatten() {
            if table.contains_key(setting.key) {
                table.insert(setting.key.into(), toml_value(&setting.taken));
            }
        }
        return;
    }
    let bytes = table.get("initial_window").and_then(Value::as_str).and_then(|text| text.parse::<Bytes>().ok());
    if let Some(bytes) = bytes {
        let whole = Bytes::new(segments(bytes.get(), mtu) * u64::from(mtu));
        table.insert("initial_window".into(), Value::String(format!("{}B", whole.get())));
    }
    for parameter in class.map(parameters).unwrap_or_default().into_iter().filter(Parameter::is_rounded) {
        let found = table.get(parameter.key).and_then(Value::as_float);
        if found.is_some_and(|found| found.to_bits() == parameter.exact.to_bits()) {
            table.insert(parameter.key.into(), Value::Float(parameter.taken));
        }
    }
}

/// What a host has of an underlay whatever the scenario says.
fn round_underlay(table: &mut Table, class: Option<&ClassConfig>, wanted: &Wanted, device: Device) {
    if class.is_none() && wanted.class.is_some() {
        return;
    }
    let underlay = table.get_mut("underlay").and_then(Value::as_table_mut).filter(|_| device == Device::Linux);
    let Some(underlay) = underlay else { return };
    for (key, value) in onramp::OF_THE_HOST {
        underlay.insert(key.into(), Value::String(value.into()));
    }
    if let Some((_, usual)) = class.and_then(|class| onramp::other_spread(class, &wanted.path)) {
        underlay.insert("spread".into(), Value::String(usual.to_string()));
    }
}

/// Rounds the least timeout.
fn round_host(host: &mut Table) {
    let rto_min = host.get("rto_min").and_then(Value::as_str).and_then(|text| text.parse::<Time>().ok());
    if let Some(rto_min) = rto_min {
        host.insert("rto_min".into(), Value::String(Time::from_us(microseconds(rto_min)).to_string()));
    }
}

/// Rounds what a table of switches gives.
fn round_switch(switch: &mut Table, fabric: &Fabric, device: Device) {
    // Of these numbers others write none.
    let is_sonic = matches!(device, Device::Sonic | Device::Linux);
    for key in ["buffer", "pfc"].into_iter().filter(|_| is_sonic) {
        let alpha = switch.get_mut(key).and_then(|part| part.get_mut("alpha"));
        if let Some(alpha @ Value::Float(_)) = alpha {
            let (exponent, _) = rounding::exponent(alpha.as_float().unwrap_or(1.0));
            *alpha = Value::Float(rounding::power(exponent));
        }
    }
    if let Some(Value::Table(trim)) = switch.get_mut("trim").filter(|_| is_sonic) {
        for key in ["queue", "header_queue"] {
            if let Some(packets) =
                trim.get(key).and_then(Value::as_integer).and_then(|packets| u32::try_from(packets).ok())
            {
                let bytes = trimming::bytes(Limit::Packets(packets), fabric.full_packet);
                trim.insert(key.into(), Value::String(Bytes::new(bytes).to_string()));
            }
        }
    }
    if let Some(Value::Table(scheduler)) = switch.get_mut("scheduler") {
        round_weights(scheduler, fabric.used, device);
    }
    let Some(ecn) = switch.get("ecn").and_then(read) else { return };
    let unit = |bytes: u64| if device == Device::Nxos { nxos::kbytes(bytes) * nxos::UNIT } else { bytes };
    let at = |rate: &Rate| {
        let marking = match ecn.marking(*rate, fabric.base_rtt) {
            Marking::Off => Marking::Off,
            Marking::Step { at } => Marking::Step { at: unit(at) },
            Marking::Red { min, max, p } => Marking::Red { min: unit(min), max: unit(max), p },
        };
        (*rate, marking)
    };
    if let Some(rounded) = written(&fabric.rates.iter().map(at).collect::<Vec<_>>()) {
        switch.insert("ecn".into(), rounded);
        switch.remove("profile");
    }
}

/// Rounds the weights of the priorities in use, one bit each; those of others do nothing.
fn round_weights(scheduler: &mut Table, used: u8, device: Device) {
    let strict = match scheduler.get("kind").and_then(Value::as_str) {
        Some("dwrr") => 0,
        _ => scheduler
            .get("strict")
            .and_then(Value::as_integer)
            .and_then(|strict| usize::try_from(strict).ok())
            .unwrap_or(1),
    };
    let Some(Value::Array(weights)) = scheduler.get_mut("weights") else { return };
    let is_used = |index: &usize| {
        device == Device::Sonic
            || device == Device::Linux
            || used & 1u8.checked_shl((index + strict) as u32).unwrap_or(0) != 0
    };
    let indices: Vec<usize> = (0..weights.len()).filter(is_used).collect();
    let given = |index: &usize| weights[*index].as_integer().and_then(|weight| u16::try_from(weight).ok());
    let Some(given) = indices.iter().map(given).collect::<Option<Vec<u16>>>() else { return };
    let rounded = match device {
        Device::Eos | Device::Nxos if queues::are_percentages(&given) => return,
        Device::Eos | Device::Nxos => queues::percentages(&given),
        Device::Sonic | Device::Linux | Device::Mlnx => rounding::weights(&given),
    };
    for (index, weight) in indices.into_iter().zip(rounded) {
        weights[index] = Value::Integer(weight.into());
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
