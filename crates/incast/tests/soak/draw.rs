//! Random scenarios: which features are on, then values by the scenarios' own schema.

use incast_cc::{
    parameters::{ParameterInfo, Raw},
    registry::{AGENTS, LAWS, UNDERLAYS},
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Random numbers: SplitMix64.
pub struct Draw(pub u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }
    /// True `percent` times of a hundred.
    fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
    pub fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }
}

// ---- Values by the schema ------------------------------------------------------------------------------------

/// Values of what the schema has as a text of a certain form, mostly small ones.
fn texts(kind: &str) -> &'static [&'static str] {
    match kind {
        "Duration" => &["0ps", "1ps", "1ns", "700ns", "3us", "10us", "77us", "1ms", "12ms"],
        "Size" => &["0B", "1B", "64B", "1000B", "4KB", "9KB", "33333B", "200KB", "4MB"],
        "Depth" => &["0B", "1B", "4KB", "30KB", "0.01bdp", "0.2bdp", "1bdp"],
        "Headroom" => &["computed", "20KB", "3 rate*delay"],
        "Speed" => &["1Gbps", "7777777777bps", "25Gbps", "56Gbps", "100Gbps"],
        _ => &[],
    }
}

/// A value of a part of the schema; `None` where it has no value that could be drawn.
fn value(part: &Value, root: &Value, draw: &mut Draw) -> Option<Value> {
    if let Some(name) = part.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next()?;
        let known = texts(name);
        if !known.is_empty() {
            return Some(json!(draw.of(known)));
        }
        return value(&root["$defs"][name], root, draw);
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(parts) = part.get(key).and_then(Value::as_array) {
            let parts: Vec<&Value> = parts.iter().filter(|one| one["type"] != "null").collect();
            return value(draw.of(&parts), root, draw);
        }
    }
    if let Some(fixed) = part.get("const") {
        return Some(fixed.clone());
    }
    if let Some(list) = part.get("enum").and_then(Value::as_array) {
        return Some(draw.of(list));
    }
    let kind = match &part["type"] {
        Value::Array(kinds) => kinds.iter().find_map(|kind| kind.as_str().filter(|kind| *kind != "null"))?,
        kind => kind.as_str()?,
    };
    Some(match kind {
        "boolean" => json!(draw.chance(50)),
        "string" => json!("h0->*"),
        "integer" => json!(draw.of(&[0, 1, 2, 3, 8, 100])),
        "number" => json!(draw.of(&[0.0, 0.001, 0.1, 0.5, 1.0, 2.0, 8.0])),
        "array" => {
            let items = part.get("items")?;
            let count = draw.of(&[1, 2, 8]);
            Value::Array((0..count).map(|_| value(items, root, draw)).collect::<Option<_>>()?)
        }
        "object" => {
            let required: BTreeSet<&str> =
                part["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let mut table = Map::new();
            let Some(properties) = part["properties"].as_object() else {
                // One entry, of the class that every scenario has.
                return Some(json!({"a": value(part.get("additionalProperties")?, root, draw)?}));
            };
            for (key, part) in properties {
                if key == "at" && part["type"] == "string" {
                    table.insert(key.clone(), json!(draw.of(&["*", "edge", "fabric"])));
                } else if required.contains(key.as_str()) || draw.chance(30) {
                    table.insert(key.clone(), value(part, root, draw)?);
                }
            }
            Value::Object(table)
        }
        _ => return None,
    })
}

/// A small value of a law's, an underlay's or an agent's parameter, in the form of its default.
fn parameter(info: &ParameterInfo, default: &Raw, draw: &mut Draw) -> Option<Value> {
    if info.bundled.is_some() {
        return None;
    }
    let choices: Vec<&str> = info.kind.split('"').skip(1).step_by(2).collect();
    Some(match default {
        _ if info.kind.starts_with("a time") => json!(draw.of(texts("Duration"))),
        _ if info.kind.starts_with("a size") => json!(draw.of(texts("Size"))),
        _ if info.kind.starts_with("a rate") => json!(draw.of(texts("Speed"))),
        _ if info.kind.starts_with("one of") => json!(draw.of(&choices)),
        Raw::Flag(_) => json!(draw.chance(50)),
        Raw::Integer(_) => json!(draw.of(&[0, 1, 2, 3, 8, 100])),
        Raw::Float(_) => json!(draw.of(&[0.0, 0.001, 0.1, 0.5, 0.9, 1.0, 2.0, 50.0])),
        _ => return None,
    })
}

/// A kind of thing that has a name and parameters, with one or two of these given.
fn with_parameters(infos: &[ParameterInfo], draw: &mut Draw) -> Map<String, Value> {
    let path = incast_cc::Path {
        rate: incast_units::Rate::from_gbps(100),
        base_rtt: incast_units::Time::from_us(8),
        least_delay: incast_units::Time::from_us(3),
        mss: 4096,
        wire_mss: 4186,
        rto_min: incast_units::Time::from_ms(1),
    };
    let mut table = Map::new();
    for _ in 0..draw.of(&[0, 0, 1, 2]) {
        if infos.is_empty() {
            break;
        }
        let info = &infos[draw.below(infos.len())];
        if let Some(value) = parameter(info, &(info.default_on)(&path), draw) {
            table.insert(info.name.to_owned(), value);
        }
    }
    table
}

// ---- Features ------------------------------------------------------------------------------------------------

/// Parts of the schema whose keys are features, with their names there.
const SECTIONS: [(&str, &str); 5] =
    [("host", "Host"), ("switch", "Switch"), ("wire", "Wire"), ("measure", "Measure"), ("scheme", "Scheme")];
/// Keys that are drawn by other means.
const ELSEWHERE: [&str; 7] = ["agent", "law", "name", "underlay", "host", "switch", "rates"];

/// The kinds that a key can have, by name, if it has several: texts, and tables with a `kind`.
fn kinds<'v>(part: &'v Value, root: &'v Value) -> Vec<(&'v str, &'v Value)> {
    if let Some(name) = part.get("$ref").and_then(Value::as_str) {
        return kinds(&root["$defs"][name.rsplit('/').next().unwrap_or_default()], root);
    }
    let parts = ["oneOf", "anyOf"].iter().find_map(|key| part.get(*key)?.as_array());
    let parts: Vec<&Value> = parts.into_iter().flatten().filter(|one| one["type"] != "null").collect();
    if let [only] = parts[..] {
        return kinds(only, root);
    }
    let named = |one: &&'v Value| {
        let name = one.get("const").or_else(|| one.pointer("/properties/kind/const"))?.as_str()?;
        (name != "off").then_some((name, *one))
    };
    parts.iter().filter_map(named).collect()
}

/// The features that a key of a section has: itself, or one for each kind.
fn features_of(section: &str, key: &str, part: &Value, root: &Value) -> Vec<String> {
    let kinds = kinds(part, root);
    if kinds.len() < 2 {
        return vec![format!("{section}.{key}")];
    }
    kinds.iter().map(|(kind, _)| format!("{section}.{key} {kind}")).collect()
}

/// Features of which a scenario has one at most: agents, and the kinds of a key.
pub fn group(feature: &str) -> &str {
    match feature.split_once(' ') {
        Some((key, _)) if key == "agent" || key.contains('.') => key,
        _ => feature,
    }
}

/// Features that exclude each other by their nature: of each list a scenario has one.
pub fn alternatives() -> Vec<Vec<String>> {
    let named = |prefix: &str, names: &mut dyn Iterator<Item = &'static str>| {
        names.map(|name| format!("{prefix} {name}")).collect::<Vec<_>>()
    };
    vec![
        named("law", &mut LAWS.iter().map(|law| law.name)),
        named(
            "topology",
            &mut ["single-switch", "dumbbell", "leaf-spine", "fat-tree", "clos3", "chain", "ring"].into_iter(),
        ),
        named("workload", &mut ["poisson", "incast", "permutation", "all-to-all", "long", "rpc"].into_iter()),
    ]
}

/// Features each of which is on or off.
pub fn options(root: &Value) -> Vec<String> {
    let mut all: Vec<String> =
        ["loss", "zero delay", "unequal links", "link events", "parameters", "rates", "second class"]
            .map(str::to_owned)
            .into();
    all.extend(UNDERLAYS.iter().filter(|one| one.name != "none").map(|one| format!("underlay {}", one.name)));
    all.extend(AGENTS.iter().filter(|one| one.name != "none").map(|one| format!("agent {}", one.name)));
    for (section, name) in SECTIONS {
        let keys = root["$defs"][name]["properties"].as_object().expect("a section with keys");
        let keys = keys.iter().filter(|(key, _)| !ELSEWHERE.contains(&key.as_str()));
        all.extend(keys.flat_map(|(key, part)| features_of(section, key, part, root)));
    }
    all
}

/// The features of a scenario: one of each list of alternatives, and the options that the swarm allows and that are drawn.
pub fn features(options: &[String], draw: &mut Draw) -> BTreeSet<String> {
    let mut on: BTreeSet<String> = alternatives().iter().map(|list| draw.of(list)).collect();
    // From a scenario with next to nothing to one with every third option.
    let share = draw.of(&[3, 6, 12, 30]);
    on.extend(options.iter().filter(|_| draw.chance(share)).cloned());
    // Two at least, so that pairs are met.
    on.insert(draw.of(options));
    on.insert(draw.of(options));
    // One of each group: any of them.
    let mut kept: Vec<String> = on.into_iter().collect();
    (1..kept.len()).rev().for_each(|index| kept.swap(index, draw.below(index + 1)));
    let mut groups = BTreeSet::new();
    kept.retain(|name| groups.insert(group(name).to_owned()));
    kept.into_iter().collect()
}

fn link(on: &BTreeSet<String>, draw: &mut Draw) -> Value {
    let rate =
        if on.contains("unequal links") { draw.of(&["10Gbps", "25Gbps", "56Gbps", "400Gbps"]) } else { "100Gbps" };
    let delay = if on.contains("zero delay") { draw.of(&["0ns", "1ps", "1us"]) } else { draw.of(&["1us", "300ns"]) };
    let mut link = json!({"rate": rate, "delay": delay});
    if on.contains("loss") {
        link["loss"] = json!(draw.of(&[0.001, 0.02, 0.1]));
    }
    link
}

/// A scenario with these features, as TOML.
pub fn scenario(on: &BTreeSet<String>, root: &Value, draw: &mut Draw) -> Option<String> {
    let of = |prefix: &str| {
        on.iter().filter_map(|name| name.strip_prefix(prefix)?.strip_prefix(' ')).next().map(str::to_owned)
    };
    let link = |draw: &mut Draw| link(on, draw);
    let topology = of("topology").unwrap_or_else(|| "leaf-spine".into());
    let counts: &[(&str, i32)] = match topology.as_str() {
        "single-switch" => &[("hosts", 6)],
        "dumbbell" => &[("left", 3), ("right", 3)],
        "leaf-spine" => &[("leaves", 2), ("spines", 2), ("hosts_per_leaf", 3)],
        "fat-tree" => &[("k", 4)],
        "clos3" => &[("pods", 2), ("tors_per_pod", 2), ("aggs_per_pod", 2), ("cores", 2), ("hosts_per_tor", 2)],
        _ => &[("switches", 3), ("hosts_per_switch", 2)],
    };
    let links: &[&str] = match topology.as_str() {
        "single-switch" | "fat-tree" => &["link"],
        "dumbbell" => &["host_link", "bottleneck"],
        "clos3" => &["host_link", "tor_agg_link", "agg_core_link"],
        _ => &["host_link", "fabric_link"],
    };
    let mut fabric = json!({"kind": topology});
    counts.iter().for_each(|(key, count)| fabric[*key] = json!(count));
    links.iter().for_each(|key| fabric[*key] = link(draw));
    let size = draw.of(&["1B", "1000B", "30KB", "100KB"]);
    let kind = of("workload").unwrap_or_else(|| "permutation".into());
    let mut workloads = vec![match kind.as_str() {
        "poisson" => {
            json!({"kind": kind, "class": "a", "sizes": {"fixed": size}, "load": draw.of(&[0.1, 0.5, 0.9])})
        }
        "incast" => {
            json!({"kind": kind, "class": "a", "fan_in": 3, "size": size, "every": draw.of(&["20us", "70us"])})
        }
        "long" => json!({"kind": kind, "class": "a", "flows": 3, "size": draw.of(&["30KB", "300KB"])}),
        "rpc" => {
            json!({"kind": kind, "class": "a", "request": {"fixed": "1000B"}, "response": {"fixed": size}, "think": "5us"})
        }
        _ => json!({"kind": kind, "class": "a", "size": size}),
    }];
    if on.contains("second class") {
        workloads.push(json!({"kind": "incast", "class": "b", "fan_in": 2, "size": "20KB", "every": "50us"}));
    }
    let name = of("law")?;
    let law = LAWS.iter().find(|law| law.name == name)?;
    let with = |infos: &[ParameterInfo], draw: &mut Draw| {
        if on.contains("parameters") { with_parameters(infos, draw) } else { Map::new() }
    };
    let mut scheme = with(law.parameters, draw);
    for needed in [("constant-window", "window", "64KB"), ("constant-rate", "rate", "20Gbps")] {
        if law.name == needed.0 {
            scheme.insert(needed.1.into(), json!(needed.2));
        }
    }
    scheme.insert("law".into(), json!(law.name));
    if let Some(info) = of("underlay").and_then(|name| UNDERLAYS.iter().find(|one| one.name == name)) {
        let mut underlay = with(info.parameters, draw);
        underlay.insert("kind".into(), json!(info.name));
        underlay.entry("threshold").or_insert_with(|| json!(draw.of(&["3us", "9us", "30us"])));
        scheme.insert("underlay".into(), Value::Object(underlay));
    }
    let mut document = json!({
        "name": "soak", "duration": draw.of(&["30us", "200us"]), "drain": draw.of(&["1ms", "20ms"]),
        "seeds": [1 + draw.below(1000)], "topology": fabric, "workload": workloads, "scheme": [scheme],
        "switch": {}, "host": {}, "measure": {},
    });
    for (section, definition) in SECTIONS {
        let keys = root["$defs"][definition]["properties"].as_object()?;
        for (key, part) in keys {
            let feature = format!("{section}.{key}");
            let kind = kinds(part, root).into_iter().find(|(kind, _)| on.contains(&format!("{feature} {kind}")));
            let part = match kind {
                Some((_, part)) => part,
                None if on.contains(&feature) => part,
                None => continue,
            };
            let value = value(part, root, draw)?;
            match section {
                "scheme" => document["scheme"][0][key] = value,
                _ => document[section][key] = value,
            }
        }
    }
    if !on.contains("switch.buffer") {
        document["switch"]["buffer"] = json!({"total": draw.of(&["60KB", "4MB"]), "alpha": 1.0});
    }
    if let Some(info) = of("agent").and_then(|name| AGENTS.iter().find(|one| one.name == name)) {
        let mut agent = with(info.parameters, draw);
        agent.insert("kind".into(), json!(info.name));
        document["switch"]["agent"] = Value::Object(agent);
    }
    if on.contains("link events") {
        let cable = match topology.as_str() {
            "single-switch" => "h0-s0",
            "leaf-spine" => draw.of(&["leaf0-spine0", "h0-leaf0"]),
            "dumbbell" | "chain" | "ring" => "s0-s1",
            _ => "agg0-core0",
        };
        let (down, up) = draw.of(&[("5us", "6us"), ("10us", "300us"), ("0us", "90us")]);
        document["event"] = json!([{"at": down, "link_down": cable}, {"at": up, "link_up": cable}]);
    }
    if on.contains("rates") {
        document["measure"]["rates"] = json!({"every": "10us", "flows": "all"});
    }
    toml::to_string(&document).ok()
}
