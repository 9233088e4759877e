//! The effective values of a scenario: defaults filled in, formulas of laws evaluated.

use super::document::{profile, scheme::Scheme};
use super::resolve::{Point, resolved::Resolved, scheme::toml_value};
use super::tree::{node::Node, path};
use incast_cc::{
    parameters::{ParameterInfo, Raw},
    registry::UnderlayParameters,
};
use incast_sim::config::Chip;
use incast_units::Bytes;
use toml::{Table, Value};

/// The document at a grid point with every default spelled out.
pub fn table(point: &Point) -> Table {
    // Serialisation of these types cannot fail: they hold nothing that TOML does not.
    let mut table = Table::try_from(&point.document).unwrap_or_default();
    // It is applied or it is not.
    table.remove("short");
    flatten(table.get_mut("topology"));
    table.get_mut("switch").into_iter().for_each(flatten_switch);
    flatten(table.get_mut("host").and_then(|host| host.get_mut("pace_credit")));
    if let Some(Value::Array(workloads)) = table.get_mut("workload") {
        for (workload, written) in workloads.iter_mut().zip(&point.document.workload) {
            flatten(Some(workload));
            if let Value::Table(table) = workload {
                // The class comes right behind the kind, given or not.
                let rest = std::mem::take(table);
                table.extend(rest.get("kind").map(|kind| ("kind".to_owned(), kind.clone())));
                table.insert("class".into(), Value::String(written.class().to_owned()));
                table.extend(rest.into_iter().filter(|(key, _)| key != "kind" && key != "class"));
            }
        }
    }
    let schemes = point.schemes.iter().zip(&point.document.scheme);
    table.insert("scheme".into(), Value::Array(schemes.map(|(resolved, written)| scheme(resolved, written)).collect()));
    table
}

/// The document at the first grid point, without what changes along the grid and would be written in its place: what schemes
/// take from the common tables, and what a profile fills in.
pub fn with_grid(point: &Point, root: &Node, axes: &[&str]) -> Table {
    let mut table = table(point);
    let axes: Vec<Vec<String>> = axes.iter().filter_map(|axis| path::split(axis).ok()).collect();
    if axes.is_empty() {
        return table;
    }
    let varies =
        |path: &[&str]| axes.iter().any(|axis| axis.len() >= path.len() && axis.iter().zip(path).all(|(a, b)| a == b));
    let written = root.get("scheme").map_or(&[][..], Node::items);
    let schemes = table.get_mut("scheme").and_then(Value::as_array_mut);
    for (scheme, written) in schemes.into_iter().flatten().filter_map(Value::as_table_mut).zip(written) {
        let name = scheme.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        for part in ["switch", "host"] {
            let Some(Value::Table(own)) = scheme.get_mut(part) else { continue };
            own.retain(|key, _| {
                written.get(part).is_some_and(|own| own.get(key).is_some())
                    || varies(&["scheme", &name, part, key])
                    // What an agent's parameters come to depends on the scheme.
                    || key == "agent" && !varies(&["switch", "agent"])
            });
            if own.is_empty() {
                scheme.remove(part);
            }
        }
    }
    let is_of_override =
        |axis: &Vec<String>| axis.iter().any(|step| step == "override") && axis.ends_with(&["profile".into()]);
    if axes.iter().any(is_of_override) {
        table.get_mut("switch").into_iter().for_each(forget_filled);
        let schemes = table.get_mut("scheme").and_then(Value::as_array_mut);
        schemes.into_iter().flatten().filter_map(|scheme| scheme.get_mut("switch")).for_each(forget_filled);
    }
    for part in ["switch", "host"].into_iter().filter(|part| varies(&[part, "profile"])) {
        let given = |key: &str| root.get(part).is_some_and(|table| table.get(key).is_some());
        if let Some(Value::Table(common)) = table.get_mut(part) {
            common.retain(|key, _| given(key) || !profile::fills(part, key));
        }
    }
    table
}

/// Leaves thresholds that profiles of some switches give to these.
fn forget_filled(switch: &mut Value) {
    let overrides = switch.get_mut("override").and_then(Value::as_array_mut);
    for own in overrides.into_iter().flatten().filter_map(Value::as_table_mut) {
        if own.contains_key("profile") {
            own.remove("ecn");
        }
    }
}

/// A scheme with all parameters of its law as resolved.
fn scheme(resolved: &Resolved, written: &Scheme) -> Value {
    let mut table = Table::new();
    table.insert("law".into(), Value::String(written.law.clone()));
    table.insert("name".into(), Value::String(resolved.name.clone()));
    let own = resolved.classes.iter().find(|class| {
        class.law.info().name == written.law && !written.by_class.iter().any(|(name, _)| *name == class.name)
    });
    if let Some(class) = own {
        table.insert("priority".into(), Value::Integer(class.priority.into()));
        table.insert("ack_priority".into(), Value::Integer(class.ack_priority.unwrap_or(class.priority).into()));
        table.insert("notification_priority".into(), Value::Integer(class.notification_priority.into()));
        table.extend(values(class.law.info().parameters, &class.law.values(), &Table::new()));
    }
    table.extend(own.and_then(|class| underlay(&class.underlay)).map(|it| ("underlay".to_owned(), it)));
    let mut by_class = Table::new();
    for class in resolved.classes.iter().filter(|class| written.by_class.iter().any(|(name, _)| *name == class.name)) {
        let mut refined = Table::new();
        refined.insert("law".into(), Value::String(class.law.info().name.into()));
        refined.insert("priority".into(), Value::Integer(class.priority.into()));
        refined.insert("ack_priority".into(), Value::Integer(class.ack_priority.unwrap_or(class.priority).into()));
        refined.insert("notification_priority".into(), Value::Integer(class.notification_priority.into()));
        refined.extend(values(class.law.info().parameters, &class.law.values(), &table));
        // Without one it would have the scheme's.
        let none = || (!written.underlay.is_none()).then(|| Value::String("none".into()));
        refined.extend(underlay(&class.underlay).or_else(none).map(|it| ("underlay".to_owned(), it)));
        by_class.insert(class.name.clone(), Value::Table(refined));
    }
    if !by_class.is_empty() {
        table.insert("by_class".into(), Value::Table(by_class));
    }
    // What an agent's parameters come to depends on the scheme: on its headers.
    if written.switch.is_some() || !resolved.switch.agent.is_none() {
        let mut switch = Value::try_from(&resolved.merged.0).unwrap_or_else(|_| Value::Table(Table::new()));
        flatten_switch(&mut switch);
        if let (Some(info), Value::Table(switch)) = (resolved.switch.agent.info(), &mut switch) {
            let kind = ("kind".to_owned(), Value::String(info.name.to_owned()));
            let parameters = values(info.parameters, &resolved.switch.agent.values(), &Table::new());
            switch.insert("agent".into(), Value::Table([kind].into_iter().chain(parameters).collect()));
        }
        table.insert("switch".into(), switch);
    }
    if written.host.is_some() {
        let mut host = Value::try_from(&resolved.merged.1).unwrap_or_else(|_| Value::Table(Table::new()));
        flatten(host.get_mut("pace_credit"));
        table.insert("host".into(), host);
    }
    Value::Table(table)
}

/// An underlay with all parameters as resolved.
fn underlay(resolved: &UnderlayParameters) -> Option<Value> {
    let info = resolved.info()?;
    let kind = ("kind".to_owned(), Value::String(info.name.to_owned()));
    Some(Value::Table([kind].into_iter().chain(values(info.parameters, &resolved.values(), &Table::new())).collect()))
}

/// Parameters as resolved, without those that came later and do nothing, unless they would be `inherited` otherwise.
fn values(parameters: &[ParameterInfo], resolved: &[(&'static str, Raw)], inherited: &Table) -> Vec<(String, Value)> {
    let is_unset = |key: &str, raw: &Raw| parameters.iter().any(|row| row.name == key && row.is_unset(raw));
    let kept = resolved.iter().filter(|(key, raw)| !is_unset(key, raw) || inherited.contains_key(*key));
    kept.map(|(key, raw)| ((*key).to_owned(), toml_value(raw))).collect()
}

/// Everything in a table of switches that has a kind.
fn flatten_switch(switch: &mut Value) {
    for key in ["ecn", "pfc", "scheduler"] {
        flatten(switch.get_mut(key));
    }
    buffer_of_chip(switch);
    let overrides = switch.get_mut("override").and_then(Value::as_array_mut);
    for own in overrides.into_iter().flatten() {
        flatten(own.get_mut("ecn"));
        buffer_of_chip(own);
    }
}

/// Says how much buffer a chip gives, where it does.
fn buffer_of_chip(switch: &mut Value) {
    let Value::Table(switch) = switch else { return };
    let Some(chip) = switch.get("chip").and_then(Value::as_str).and_then(|chip| chip.parse::<Chip>().ok()) else {
        return;
    };
    let buffer = switch.entry("buffer").or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(buffer) = buffer
        && ["total", "per_port", "per_port_packets"].iter().all(|key| !buffer.contains_key(*key))
    {
        buffer.insert("total".into(), Value::String(Bytes::new(chip.pool()).to_string()));
    }
}

/// Writes `{ leaf-spine = { … } }` as `{ kind = "leaf-spine", … }`.
fn flatten(value: Option<&mut Value>) {
    let Some(Value::Table(table)) = value else { return };
    let Some((kind, _)) = table.iter().next() else { return };
    let kind = kind.clone();
    if let Some(Value::Table(content)) = table.remove(&kind) {
        let mut flat = Table::new();
        flat.insert("kind".into(), Value::String(kind));
        flat.extend(content);
        *table = flat;
    }
}
