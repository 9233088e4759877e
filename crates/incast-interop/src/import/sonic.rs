//! CONFIG_DB of a SONiC switch as the `[switch]` table of a scenario: the way back of [`crate::device::sonic`].
//!
//! Names and meaning of tables and fields: the YANG models of sonic-buildimage and `doc/swss-schema.md` of sonic-swss. A
//! device has more than a scenario: what has no key is named, and what differs where a scenario has one value is refused.

use super::text::{ImportError, Text};
use crate::device::{
    database::Database,
    rounding::{EXPONENTS, power},
};
use incast_units::{Bytes, Rate};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// What a device's configuration says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// The table `[switch]`.
    pub switch: Table,
    /// How it was read, and what has no key.
    pub notes: Vec<String>,
}

/// Tables that are read.
const READ: [&str; 12] = [
    "DEVICE_METADATA",
    "SWITCH_TRIMMING",
    "DEFAULT_LOSSLESS_BUFFER_PARAMETER",
    "PORT",
    "QUEUE",
    "WRED_PROFILE",
    "SCHEDULER",
    "BUFFER_POOL",
    "BUFFER_PROFILE",
    "BUFFER_QUEUE",
    "BUFFER_PG",
    "PORT_QOS_MAP",
];

/// Tables about switching of packets that have no key, and why.
const WITHOUT_KEY: [(&str, &str); 6] = [
    ("CABLE_LENGTH", "a cable's length is the `delay` of a link of the topology: 5 ns a metre"),
    ("PFC_WD", "ends pauses; switch.pfc.deadlock_after ends a run"),
    ("DSCP_TO_TC_MAP", "a scheme's `priority` says which queue its packets have"),
    ("TC_TO_QUEUE_MAP", "traffic classes are queues here"),
    ("TC_TO_PRIORITY_GROUP_MAP", "a lossless queue has a group of its own"),
    ("MAP_PFC_PRIORITY_TO_QUEUE", "a pause's priority is its queue"),
];

/// Reads a configuration.
///
/// # Errors
/// It is none, contradicts itself, or says of its ports or queues what a scenario says once for all.
pub fn import(text: &Text) -> Result<Imported, ImportError> {
    let database = Database::parse(text.whole()).map_err(|(line, why)| text.error(line, why))?;
    let all = |wrong: Vec<String>| text.error(0, wrong.join("; "));
    database.check().map_err(all)?;
    let mut reader = Reader { database: &database, found: Imported::default(), wrong: Vec::new() };
    reader.read();
    if reader.wrong.is_empty() { Ok(reader.found) } else { Err(all(reader.wrong)) }
}

struct Reader<'a> {
    database: &'a Database,
    found: Imported,
    wrong: Vec<String>,
}

/// The queues that a key such as `Ethernet0,Ethernet4|3-4` names, and the ports.
fn names(key: &str) -> Vec<(&str, u8)> {
    let (ports, queues) = key.rsplit_once('|').unwrap_or(("", key));
    let number = |text: &str| text.parse::<u8>().unwrap_or(0);
    let (first, last) =
        queues.split_once('-').map_or((number(queues), number(queues)), |(a, b)| (number(a), number(b)));
    ports.split(',').flat_map(|port| (first..=last).map(move |queue| (port, queue))).collect()
}

/// The chip of NVIDIA's switches, by their model: SN2700 has Spectrum, SN3700 Spectrum-2, SN4600C Spectrum-3, SN5600
/// Spectrum-4 (SN5610 and SN5640 have another one).
fn spectrum(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let model = lower
        .split("sn")
        .skip(1)
        .find_map(|rest| rest.get(..4).filter(|text| text.bytes().all(|c| c.is_ascii_digit())))?;
    match model.as_bytes() {
        b"5610" | b"5640" => None,
        [b'2', ..] => Some("spectrum"),
        [b'3', ..] => Some("spectrum-2"),
        [b'4', ..] => Some("spectrum-3"),
        [b'5', ..] => Some("spectrum-4"),
        _ => None,
    }
}

fn size(bytes: u64) -> Value {
    Value::String(Bytes::new(bytes).to_string())
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Table {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Thresholds of WRED: bytes, and a probability.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Marks {
    min: u64,
    max: u64,
    p: f64,
}

impl Marks {
    fn table(self) -> Table {
        let text = |kind: &str| Value::String(kind.to_owned());
        if self.min == self.max || self.p == 0.0 {
            return table([("kind", text("step")), ("at", size(self.max))]);
        }
        table([("kind", text("red")), ("min", size(self.min)), ("max", size(self.max)), ("p", Value::Float(self.p))])
    }
}

impl Reader<'_> {
    fn read(&mut self) {
        let queues: BTreeSet<u8> = self.database.keys("QUEUE").flat_map(names).map(|(_, queue)| queue).collect();
        let lossless = self.lossless();
        let queues = &queues | &lossless;
        // The highest queue is our priority 0.
        let queues: Vec<u8> = queues.into_iter().rev().collect();
        if queues.len() > 8 {
            self.wrong.push(format!("QUEUE: {} queues, allowed are 8", queues.len()));
            return;
        }
        self.buffer(&lossless);
        self.trimming();
        self.marks(&queues);
        self.pauses(&lossless, &queues);
        if !queues.is_empty() {
            self.found.switch.insert("priorities".into(), Value::Integer(queues.len() as i64));
            let names: Vec<String> = queues.iter().map(u8::to_string).collect();
            self.found.notes.push(format!("priorities 0 to {} are queues {}", queues.len() - 1, names.join(", ")));
        }
        self.scheduler(&queues);
        for (name, why) in WITHOUT_KEY {
            if self.database.keys(name).next().is_some() {
                self.found.notes.push(format!("{name} has no key: {why}"));
            }
        }
        let others: Vec<&str> = self
            .database
            .tables()
            .filter(|name| !READ.contains(name) && WITHOUT_KEY.iter().all(|(other, _)| other != name))
            .collect();
        if !others.is_empty() {
            self.found.notes.push(format!("not read: {}", others.join(", ")));
        }
    }

    fn text(&self, table: &str, key: &str, field: &str) -> Option<&str> {
        self.database.field(table, key, field)
    }

    /// A number of a field; what is none is said.
    fn number(&mut self, table: &str, key: &str, field: &str) -> Option<i64> {
        let text = self.text(table, key, field)?.to_owned();
        match text.parse::<i64>() {
            Ok(number) => Some(number),
            Err(_) => {
                self.wrong.push(format!("{table}|{key}: `{field}` is {text:?}, expected a whole number"));
                None
            }
        }
    }

    /// Two to the power of a threshold, the field that `place` names.
    fn alpha(&mut self, place: &str, exponent: i64) -> f64 {
        match i32::try_from(exponent).ok().filter(|exponent| EXPONENTS.contains(exponent)) {
            Some(exponent) => power(exponent),
            None => {
                let (least, most) = (EXPONENTS.start(), EXPONENTS.end());
                self.wrong.push(format!("{place} is {exponent}, allowed is {least} to {most}"));
                1.0
            }
        }
    }

    fn bytes(&mut self, table: &str, key: &str, field: &str) -> Option<u64> {
        let number = self.number(table, key, field)?;
        match u64::try_from(number) {
            Ok(bytes) => Some(bytes),
            Err(_) => {
                self.wrong.push(format!("{table}|{key}: `{field}` is {number}, expected bytes"));
                None
            }
        }
    }

    /// The profiles that entries of a table name, with their ports and queues. A profile that is not there is said.
    fn profiles(&mut self, of: &str, field: &str, table: &str) -> BTreeMap<String, Vec<(String, u8)>> {
        let mut found: BTreeMap<String, Vec<(String, u8)>> = BTreeMap::new();
        for key in self.database.keys(of) {
            let Some(profile) = self.database.field(of, key, field).filter(|name| *name != "NULL") else { continue };
            // Until 2020 names were references: `[WRED_PROFILE|AZURE]`.
            let reference = profile.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
            let profile = reference.and_then(|name| name.split_once('|')).map_or(profile, |(_, name)| name);
            if !self.database.has(table, profile) {
                self.wrong.push(format!("{of}|{key}: there is no {table}|{profile}"));
                continue;
            }
            let places = names(key).into_iter().map(|(port, queue)| (port.to_owned(), queue));
            found.entry(profile.to_owned()).or_default().extend(places);
        }
        found
    }

    fn rate(&self, port: &str) -> Option<Rate> {
        // With virtual output queues host and chip stand before it.
        let port = port.rsplit('|').next()?;
        let mbps: u64 = self.text("PORT", port, "speed")?.parse().ok()?;
        Some(Rate::from_bps(mbps.checked_mul(1_000_000)?))
    }

    /// Queues that are lossless at a port.
    fn lossless(&mut self) -> BTreeSet<u8> {
        let database = self.database;
        let mut found: Option<BTreeSet<u8>> = None;
        for port in database.keys("PORT_QOS_MAP").filter(|port| *port != "global") {
            let listed = database.field("PORT_QOS_MAP", port, "pfc_enable").unwrap_or_default();
            let mut own = BTreeSet::new();
            for queue in listed.split(',').filter(|queue| !queue.is_empty()) {
                match queue.parse::<u8>().ok().filter(|queue| *queue < 8) {
                    Some(queue) => _ = own.insert(queue),
                    None => self.wrong.push(format!(
                        "PORT_QOS_MAP|{port}: `pfc_enable` is {listed:?}, expected queues from 0 to 7 such as 3,4"
                    )),
                }
            }
            if found.as_ref().is_some_and(|found| *found != own) {
                self.wrong
                    .push(format!("PORT_QOS_MAP|{port}: `pfc_enable` is {listed:?}, and another one at another port"));
            }
            found = Some(own);
        }
        found.unwrap_or_default()
    }

    fn buffer(&mut self, lossless: &BTreeSet<u8>) {
        let pools: Vec<String> = self.database.keys("BUFFER_POOL").map(str::to_owned).collect();
        let sizes: Vec<(u64, String)> =
            pools.iter().filter_map(|pool| Some((self.bytes("BUFFER_POOL", pool, "size")?, pool.clone()))).collect();
        let Some((total, pool)) = sizes.into_iter().max() else {
            if !pools.is_empty() {
                self.found
                    .notes
                    .push("BUFFER_POOL: no `size`, as the device computes it; give switch.buffer.total".into());
            }
            return;
        };
        self.found.notes.push(format!("switch.buffer.total is the size of BUFFER_POOL|{pool}, the largest one"));
        for pool in &pools {
            if let Some(shared) = self.bytes("BUFFER_POOL", pool, "xoff").filter(|shared| *shared > 0) {
                self.found.notes.push(format!(
                    "BUFFER_POOL|{pool}: ports share {shared} B of headroom; in a scenario each has its own"
                ));
            }
        }
        let mut buffer = table([("total", size(total))]);
        let profiles = self.profiles("BUFFER_QUEUE", "profile", "BUFFER_PROFILE");
        let mut of_queues: Vec<(i64, u64, String)> = Vec::new();
        for (name, places) in profiles {
            if places.iter().all(|(_, queue)| lossless.contains(queue)) {
                continue;
            }
            let own = self.bytes("BUFFER_PROFILE", &name, "size").unwrap_or(0);
            match self.number("BUFFER_PROFILE", &name, "dynamic_th") {
                Some(exponent) => of_queues.push((exponent, own, name)),
                None if self.database.keys("SWITCH_TRIMMING").next().is_some() => {}
                None => self.found.notes.push(format!("BUFFER_PROFILE|{name}: `static_th` of a queue has no key")),
            }
        }
        if let Some((exponent, own, name)) = of_queues.first().cloned() {
            if let Some((.., other)) = of_queues.iter().find(|other| (other.0, other.1) != (exponent, own)) {
                self.wrong.push(format!(
                    "BUFFER_PROFILE: {name} and {other} differ, and all queues have one switch.buffer.alpha"
                ));
            }
            buffer.insert(
                "alpha".into(),
                Value::Float(self.alpha(&format!("BUFFER_PROFILE|{name}: `dynamic_th`"), exponent)),
            );
            buffer.insert("reserve".into(), size(own));
        }
        self.found.switch.insert("buffer".into(), Value::Table(buffer));
    }

    fn marks(&mut self, queues: &[u8]) {
        let (mut drops, mut passes, mut marked) = (false, false, BTreeSet::new());
        let mut by_rate: BTreeMap<u64, Vec<(Marks, String)>> = BTreeMap::new();
        for (name, places) in self.profiles("QUEUE", "wred_profile", "WRED_PROFILE") {
            let ecn = self.text("WRED_PROFILE", &name, "ecn").unwrap_or("ecn_none");
            if ecn != "ecn_all" && !ecn.starts_with("ecn_green") {
                self.found.notes.push(format!("WRED_PROFILE|{name} does not mark green packets, which has no key"));
                continue;
            }
            let least = self.bytes("WRED_PROFILE", &name, "green_min_threshold");
            let most = self.bytes("WRED_PROFILE", &name, "green_max_threshold");
            let Some((min, max)) = least.zip(most).filter(|(min, max)| min <= max) else {
                self.wrong
                    .push(format!("WRED_PROFILE|{name}: expected `green_min_threshold` up to `green_max_threshold`"));
                continue;
            };
            let percent = self.number("WRED_PROFILE", &name, "green_drop_probability").unwrap_or(100);
            if !(0..=100).contains(&percent) {
                self.wrong
                    .push(format!("WRED_PROFILE|{name}: `green_drop_probability` is {percent}, allowed is 0 to 100"));
            }
            match self.text("WRED_PROFILE", &name, "wred_green_enable") == Some("true") {
                true => drops = true,
                false => passes = true,
            }
            marked.extend(places.iter().map(|(_, queue)| *queue));
            for colour in ["yellow", "red"] {
                let other = ["min_threshold", "max_threshold"]
                    .map(|field| self.text("WRED_PROFILE", &name, &format!("{colour}_{field}")).map(str::to_owned));
                if other
                    .iter()
                    .zip([min, max])
                    .any(|(other, own)| other.as_ref().is_some_and(|it| *it != own.to_string()))
                {
                    self.found.notes.push(format!(
                        "WRED_PROFILE|{name}: packets have one colour, green; {colour} has other thresholds"
                    ));
                }
            }
            let marks = Marks { min, max, p: percent as f64 / 100.0 };
            for port in places.iter().map(|(port, _)| port).collect::<BTreeSet<_>>() {
                let rate = self.rate(port).map_or(0, Rate::bps);
                let of_rate = by_rate.entry(rate).or_default();
                if of_rate.iter().all(|(other, _)| *other != marks) {
                    of_rate.push((marks, name.clone()));
                }
            }
        }
        for (rate, all) in &by_rate {
            if let [(_, first), (_, second), ..] = &all[..] {
                let at = match rate {
                    0 => "ports of unknown rate (PORT has no speed of them)".to_owned(),
                    rate => format!("ports of {}", Rate::from_bps(*rate)),
                };
                self.wrong.push(format!(
                    "WRED_PROFILE: {first} and {second} differ at {at}, whose queues have one switch.ecn"
                ));
            }
        }
        let all: Vec<(u64, Marks)> = by_rate.iter().map(|(rate, all)| (*rate, all[0].0)).collect();
        let Some((_, first)) = all.first().copied() else {
            self.found.switch.insert("ecn".into(), Value::String("off".into()));
            return;
        };
        let ecn = if all.iter().all(|(_, marks)| *marks == first) {
            first.table()
        } else {
            if all[0].0 == 0 {
                self.wrong.push("PORT: a port whose queues mark has no `speed`, and others mark elsewhere".into());
            }
            let rates = all.iter().map(|(rate, marks)| {
                // A probability of 0 marks above the upper threshold alone.
                let (min, p) = if marks.p == 0.0 { (marks.max, 1.0) } else { (marks.min, marks.p) };
                let thresholds = [("min", size(min)), ("max", size(marks.max)), ("p", Value::Float(p))];
                let mut own = table(thresholds);
                own.insert("rate".into(), Value::String(Rate::from_bps(*rate).to_string()));
                Value::Table(own)
            });
            table([("kind", Value::String("red-by-rate".into())), ("rates", Value::Array(rates.collect()))])
        };
        self.found.switch.insert("ecn".into(), Value::Table(ecn));
        if drops && passes {
            self.found.notes.push(
                "some WRED_PROFILE drop what is not ECN-capable and others do not: switch.not_ect is \"drop\"".into(),
            );
        }
        let without: Vec<String> = queues.iter().filter(|queue| !marked.contains(queue)).map(u8::to_string).collect();
        if !without.is_empty() {
            self.found
                .notes
                .push(format!("queues {} do not mark on the device; a scenario's do, all of them", without.join(", ")));
        }
        let not_ect = if drops { "drop" } else { "pass" };
        self.found.switch.insert("not_ect".into(), Value::String(not_ect.into()));
    }

    fn pauses(&mut self, lossless: &BTreeSet<u8>, queues: &[u8]) {
        if lossless.is_empty() {
            self.found.switch.insert("pfc".into(), Value::String("off".into()));
            return;
        }
        let priorities = lossless.iter().filter_map(|queue| queues.iter().position(|other| other == queue));
        let mut priorities: Vec<i64> = priorities.map(|priority| priority as i64).collect();
        priorities.sort_unstable();
        let computed = self.computed(lossless);
        let mut largest: Option<(u64, Table, String)> = None;
        for (name, places) in self.profiles("BUFFER_PG", "profile", "BUFFER_PROFILE") {
            if places.iter().all(|(_, group)| !lossless.contains(group)) || self.is_computed(&name) {
                continue;
            }
            let headroom = self.bytes("BUFFER_PROFILE", &name, "xoff").unwrap_or(0);
            let all = self.bytes("BUFFER_PROFILE", &name, "size").unwrap_or(0);
            // Some chips count headroom in `size`, and some do not.
            let own = all.checked_sub(headroom).unwrap_or(all);
            let resume = self.bytes("BUFFER_PROFILE", &name, "xon_offset").unwrap_or(0);
            let pfc = match self.number("BUFFER_PROFILE", &name, "dynamic_th") {
                Some(exponent) => table([
                    ("kind", Value::String("dynamic".into())),
                    ("alpha", Value::Float(self.alpha(&format!("BUFFER_PROFILE|{name}: `dynamic_th`"), exponent))),
                    ("resume_offset", size(resume)),
                    ("reserve", size(own)),
                ]),
                None => {
                    let fixed = self.bytes("BUFFER_PROFILE", &name, "static_th").unwrap_or(0).saturating_add(own);
                    let xon = self.bytes("BUFFER_PROFILE", &name, "xon").unwrap_or(0);
                    table([("kind", Value::String("static".into())), ("xoff", size(fixed)), ("xon", size(xon))])
                }
            };
            if let Some((other, thresholds, first)) = &largest {
                if *thresholds != pfc {
                    self.wrong
                        .push(format!("BUFFER_PROFILE: {first} and {name} differ, and all ports have one switch.pfc"));
                }
                if *other != headroom {
                    self.found
                        .notes
                        .push(format!("headroom is the larger one of {first} and {name}, {other} and {headroom} B"));
                }
            }
            if largest.as_ref().is_none_or(|(other, ..)| *other < headroom) {
                largest = Some((headroom, pfc, name));
            }
        }
        let (headroom, mut pfc) = match (largest, computed) {
            (Some((headroom, pfc, _)), None) => (size(headroom), pfc),
            (None, Some((chip, pfc))) => (chip, pfc),
            (Some((.., fixed)), Some(_)) => {
                return self.wrong.push(format!(
                    "BUFFER_PG: headroom is of {fixed} at some ports and computed at others, and all have one switch.pfc"
                ));
            }
            (None, None) => {
                return self.wrong.push(
                    "PORT_QOS_MAP: `pfc_enable` names queues, and no BUFFER_PG of theirs has a profile: give switch.pfc by hand".into(),
                );
            }
        };
        pfc.insert("headroom".into(), headroom);
        pfc.insert("lossless".into(), Value::Array(priorities.into_iter().map(Value::Integer).collect()));
        self.found.switch.insert("pfc".into(), Value::Table(pfc));
    }

    /// The device computes the headroom of a profile.
    fn is_computed(&self, profile: &str) -> bool {
        self.text("BUFFER_PROFILE", profile, "headroom_type") == Some("dynamic")
    }

    /// NVIDIA's dynamic model: the device computes the headroom of lossless groups from cables and rates, and the scenario
    /// does by its chip. The chip, and the other keys of `switch.pfc`.
    fn computed(&mut self, lossless: &BTreeSet<u8>) -> Option<(Value, Table)> {
        let database = self.database;
        let mut exponents: BTreeMap<i64, String> = BTreeMap::new();
        for key in database.keys("BUFFER_PG").filter(|key| names(key).iter().any(|(_, group)| lossless.contains(group)))
        {
            let (table, name, field) = match database.field("BUFFER_PG", key, "profile") {
                Some("NULL") => {
                    const DEFAULTS: &str = "DEFAULT_LOSSLESS_BUFFER_PARAMETER";
                    let name = database.keys(DEFAULTS).next().unwrap_or_default();
                    (DEFAULTS, name, "default_dynamic_th")
                }
                Some(name) if self.is_computed(name) => ("BUFFER_PROFILE", name, "dynamic_th"),
                _ => continue,
            };
            match self.number(table, name, field) {
                Some(exponent) => _ = exponents.insert(exponent, format!("{table}|{name}: `{field}`")),
                None => self
                    .wrong
                    .push(format!("BUFFER_PG|{key}: the device computes its profile, and {table} has no `{field}`")),
            }
        }
        let (exponent, from) = exponents.pop_first()?;
        if let Some((_, other)) = exponents.pop_first() {
            self.wrong.push(format!("BUFFER_PG: {from} and {other} differ, and all ports have one switch.pfc"));
        }
        let of = |field: &str| database.field("DEVICE_METADATA", "localhost", field).unwrap_or_default();
        let Some(chip) = [of("platform"), of("hwsku")].into_iter().find_map(spectrum) else {
            self.wrong.push(format!(
                "DEVICE_METADATA|localhost: the device computes headroom, and `platform` {:?} and `hwsku` {:?} name no switch with \
                 Spectrum to Spectrum-4: give switch.pfc by hand",
                of("platform"),
                of("hwsku")
            ));
            return None;
        };
        let shares = |ratio: &str| ratio.parse::<f64>().is_ok_and(|ratio| ratio > 0.0);
        let ratio = |key| database.field("DEFAULT_LOSSLESS_BUFFER_PARAMETER", key, "over_subscribe_ratio");
        if database.keys("DEFAULT_LOSSLESS_BUFFER_PARAMETER").filter_map(ratio).any(shares) {
            let note = "DEFAULT_LOSSLESS_BUFFER_PARAMETER: with `over_subscribe_ratio` ports share headroom; in a scenario each has its own";
            self.found.notes.push(note.into());
        }
        self.found.notes.push(format!(
            "the device computes headroom (dynamic buffer model), and so does the scenario, as {chip} does: from the rate and `delay` of each link, 5 ns for each metre in CABLE_LENGTH"
        ));
        let pfc =
            table([("kind", Value::String("dynamic".into())), ("alpha", Value::Float(self.alpha(&from, exponent)))]);
        Some((Value::String(chip.into()), pfc))
    }

    /// What is trimmed.
    fn trimming(&mut self) {
        let profiles = self.profiles("BUFFER_QUEUE", "profile", "BUFFER_PROFILE");
        let trims = |name: &str| self.text("BUFFER_PROFILE", name, "packet_discard_action") == Some("trim");
        let (trimming, others): (Vec<_>, Vec<_>) = profiles.into_iter().partition(|(name, _)| trims(name));
        let Some((name, _)) = trimming.first().cloned() else {
            if self.database.keys("SWITCH_TRIMMING").next().is_some() {
                self.found.notes.push("SWITCH_TRIMMING: no queue's profile has `packet_discard_action` trim".into());
            }
            return;
        };
        if !self.database.has("SWITCH_TRIMMING", "GLOBAL") {
            let note = format!(
                "BUFFER_PROFILE|{name} trims, and there is no SWITCH_TRIMMING|GLOBAL: give switch.trim by hand"
            );
            return self.found.notes.push(note);
        }
        let left = self.bytes("SWITCH_TRIMMING", "GLOBAL", "size");
        if let Some(left) = left.filter(|left| *left < 64) {
            self.wrong
                .push(format!("SWITCH_TRIMMING|GLOBAL: `size` is {left}, allowed is 64 and more, the least frame"));
        }
        let Some(index) = self.number("SWITCH_TRIMMING", "GLOBAL", "queue_index") else {
            let note =
                "SWITCH_TRIMMING|GLOBAL: no `queue_index`, as it follows from the DSCP: give switch.trim by hand";
            return self.found.notes.push(note.into());
        };
        let is_headers = |places: &[(String, u8)]| places.iter().any(|(_, queue)| i64::from(*queue) == index);
        let Some((of_headers, _)) = others.iter().find(|(_, places)| is_headers(places)).cloned() else {
            let note = format!(
                "SWITCH_TRIMMING|GLOBAL: queue {index} has no BUFFER_QUEUE that does not trim: give switch.trim by hand"
            );
            return self.found.notes.push(note);
        };
        let mut limit = |name: &str| match self.bytes("BUFFER_PROFILE", name, "static_th") {
            Some(0) => {
                self.wrong.push(format!("BUFFER_PROFILE|{name}: `static_th` is 0, allowed is at least one packet"));
                None
            }
            Some(limit) => Some(limit),
            None => {
                self.found.notes.push(format!("BUFFER_PROFILE|{name} has no `static_th`: give switch.trim by hand"));
                None
            }
        };
        let limits: Vec<Option<u64>> = trimming.iter().map(|(name, _)| limit(name)).collect();
        let (Some(queue), Some(headers)) = (limits[0], limit(&of_headers)) else { return };
        if let Some(index) = limits.iter().position(|limit| *limit != Some(queue)) {
            let other = &trimming[index].0;
            self.wrong.push(format!("BUFFER_PROFILE: {name} and {other} differ, and all queues have one switch.trim"));
        }
        let mut trim = table([
            ("queue", size(queue)),
            ("header_queue", size(headers)),
            ("victim", Value::String("arriving".into())),
            ("header_weight", Value::String("strict".into())),
            ("return_to_sender", Value::Boolean(false)),
        ]);
        match left {
            Some(left) => _ = trim.insert("size".into(), size(left)),
            None => self
                .found
                .notes
                .push("SWITCH_TRIMMING: no `size`; the device's own default is taken for headers alone".into()),
        }
        self.found.notes.push("the queue of SWITCH_TRIMMING must be the highest one in use, priority 0".into());
        // Fixed thresholds are all that limits a queue.
        if self.found.switch.remove("buffer").is_some() {
            self.found.notes.push("no switch.buffer: with fixed thresholds the queues' limits are all there is".into());
        }
        self.found.switch.insert("trim".into(), Value::Table(trim));
    }

    /// Queues in the order of `queues`: strict ones, then those with weights.
    fn scheduler(&mut self, queues: &[u8]) {
        let mut of_queue: BTreeMap<u8, String> = BTreeMap::new();
        for (name, places) in self.profiles("QUEUE", "scheduler", "SCHEDULER") {
            for queue in places.into_iter().map(|(_, queue)| queue) {
                if let Some(other) = of_queue.insert(queue, name.clone()).filter(|other| *other != name) {
                    self.wrong.push(format!("QUEUE: queue {queue} has the schedulers {other} and {name} at two ports"));
                }
            }
        }
        let without: Vec<String> =
            queues.iter().filter(|queue| !of_queue.contains_key(queue)).map(u8::to_string).collect();
        if !without.is_empty() {
            self.found.notes.push(format!("queues {} have no `scheduler`: taken for strict ones", without.join(", ")));
        }
        let weight = |reader: &mut Self, queue: &u8| {
            let name = of_queue.get(queue)?;
            let kind = reader.text("SCHEDULER", name, "type").unwrap_or("WRR");
            (kind != "STRICT").then(|| {
                let weight = reader.number("SCHEDULER", name, "weight").unwrap_or(1);
                if !(1..=100).contains(&weight) {
                    reader.wrong.push(format!("SCHEDULER|{name}: `weight` is {weight}, allowed is 1 to 100"));
                }
                weight
            })
        };
        let weights: Vec<Option<i64>> = queues.iter().map(|queue| weight(self, queue)).collect();
        let strict = weights.iter().take_while(|weight| weight.is_none()).count();
        if strict == weights.len() {
            return;
        }
        let Some(given) = weights[strict..].iter().map(|weight| weight.map(Value::Integer)).collect::<Option<Vec<_>>>()
        else {
            self.wrong
                .push("SCHEDULER: a strict queue below one with a weight, which a scenario's switch has not".into());
            return;
        };
        let mut scheduler = table([("weights", Value::Array(given))]);
        let kind = if strict == 0 { "dwrr" } else { "strict-over-dwrr" };
        if strict > 0 {
            scheduler.insert("strict".into(), Value::Integer(strict as i64));
        }
        scheduler.insert("kind".into(), Value::String(kind.into()));
        self.found.switch.insert("scheduler".into(), Value::Table(scheduler));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn imported(text: &str) -> Result<Imported, String> {
        let text = Text::new(Path::new("config_db.json"), text.as_bytes().to_vec()).expect("a text");
        import(&text).map_err(|error| error.to_string())
    }

    /// Fields of a Tomahawk's shipped configuration: two speeds with headroom of their own.
    const DEVICE: &str = r#"{
      "PORT": {"Ethernet0": {"speed": "100000", "lanes": "1"}, "Ethernet4": {"speed": "40000", "lanes": "2"}},
      "WRED_PROFILE": {"AZURE": {"ecn": "ecn_all", "wred_green_enable": "true", "green_min_threshold": "250000",
        "green_max_threshold": "2097152", "green_drop_probability": "5", "yellow_min_threshold": "1048576",
        "yellow_max_threshold": "2097152"}},
      "SCHEDULER": {"scheduler.0": {"type": "DWRR", "weight": 14}, "scheduler.1": {"type": "DWRR", "weight": "15"}, "cnp": {"type": "STRICT"}},
      "QUEUE": {"Ethernet0,Ethernet4|3-4": {"scheduler": "scheduler.1", "wred_profile": "AZURE"}, "Ethernet0,Ethernet4|0": {"scheduler": "scheduler.0"},
        "Ethernet0,Ethernet4|6": {"scheduler": "cnp"}},
      "BUFFER_POOL": {"ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "10875072", "xoff": "4194112"},
        "egress_lossless_pool": {"type": "egress", "mode": "static", "size": "15982720"}},
      "BUFFER_PROFILE": {"pg_100": {"pool": "ingress_lossless_pool", "size": "1248", "dynamic_th": "0", "xon": "2288",
          "xoff": "177632", "xon_offset": "2288"},
        "pg_40": {"pool": "ingress_lossless_pool", "size": "1248", "dynamic_th": "0", "xon": "2288", "xoff": "71552", "xon_offset": "2288"},
        "egress_lossy": {"pool": "egress_lossless_pool", "size": "1518", "dynamic_th": "3"},
        "egress_lossless": {"pool": "egress_lossless_pool", "size": "0", "static_th": "15982720"}},
      "BUFFER_PG": {"Ethernet0|3-4": {"profile": "pg_100"}, "Ethernet4|3-4": {"profile": "pg_40"}},
      "BUFFER_QUEUE": {"Ethernet0,Ethernet4|3-4": {"profile": "egress_lossless"}, "Ethernet0,Ethernet4|0": {"profile": "egress_lossy"}},
      "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3,4"}, "Ethernet4": {"pfc_enable": "3,4"}},
      "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "200"}}, "VLAN": {"Vlan1000": {"vlanid": "1000"}}
    }"#;

    #[test]
    fn a_device_is_a_table() {
        let found = imported(DEVICE).expect("a configuration");
        let expected: Table = r#"
            priorities = 4
            not_ect = "drop"
            ecn = { kind = "red", min = "250KB", max = "2097.152KB", p = 0.05 }
            buffer = { total = "15982.72KB", alpha = 8.0, reserve = "1.518KB" }
            pfc = { kind = "dynamic", alpha = 1.0, resume_offset = "2.288KB", reserve = "1.248KB", headroom = "177.632KB", lossless = [1, 2] }
            scheduler = { kind = "strict-over-dwrr", strict = 1, weights = [15, 15, 14] }
        "#
        .parse()
        .expect("a table");
        assert_eq!(found.switch, expected);
        let notes = found.notes.join("\n");
        for told in
            ["queues 6, 4, 3, 0", "yellow has other thresholds", "PFC_WD has no key", "not read: VLAN", "larger one of"]
        {
            assert!(notes.contains(told), "{told}: {notes}");
        }
    }

    #[test]
    fn drops_do_not_depend_on_names_and_lossless_queues_are_queues() {
        let ecn = |enable: &str| {
            format!(
                r#"{{"ecn": "ecn_all", "wred_green_enable": "{enable}", "green_min_threshold": "1", "green_max_threshold": "2"}}"#
            )
        };
        for (a, b) in [("true", "false"), ("false", "true")] {
            let text = format!(
                r#"{{"WRED_PROFILE": {{"a": {}, "b": {}}}, "QUEUE": {{"Ethernet0|1": {{"wred_profile": "[WRED_PROFILE|a]"}}, "Ethernet0|2": {{"wred_profile": "b"}}}}}}"#,
                ecn(a),
                ecn(b)
            );
            let switch = imported(&text).expect("a configuration").switch;
            assert_eq!(switch["not_ect"].as_str(), Some("drop"));
        }
        let text = r#"{"BUFFER_POOL": {"p": {"size": 1000}}, "BUFFER_PROFILE": {"l": {"pool": "p", "size": 10, "xoff": 5, "dynamic_th": 0}},
            "BUFFER_PG": {"Ethernet0|3": {"profile": "l"}}, "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}}"#;
        let switch = imported(text).expect("a configuration").switch;
        assert_eq!(switch["pfc"]["lossless"].as_array().map(Vec::len), Some(1));
        assert_eq!((switch["pfc"]["kind"].as_str(), switch["priorities"].as_integer()), (Some("dynamic"), Some(1)));
    }

    #[test]
    fn headroom_that_the_device_computes_is_its_chips() {
        let device = |sku: &str, profile: &str| {
            format!(
                r#"{{"DEVICE_METADATA": {{"localhost": {{"hwsku": "{sku}", "buffer_model": "dynamic"}}}},
                "CABLE_LENGTH": {{"AZURE": {{"Ethernet0": "40m"}}}}, "DEFAULT_LOSSLESS_BUFFER_PARAMETER": {{"AZURE": {{"default_dynamic_th": "0"}}}},
                "BUFFER_POOL": {{"p": {{"size": 1000}}}}, "BUFFER_PROFILE": {{"own": {{"pool": "p", "headroom_type": "dynamic", "dynamic_th": "-2", "size": "0"}}}},
                "BUFFER_PG": {{"Ethernet0|3-4": {{"profile": "{profile}"}}}}, "PORT_QOS_MAP": {{"Ethernet0": {{"pfc_enable": "3,4"}}}}}}"#
            )
        };
        for (sku, profile, chip, alpha) in [
            ("ACS-MSN2700", "NULL", "spectrum", 1.0),
            ("Mellanox-SN3800-D112C8", "NULL", "spectrum-2", 1.0),
            ("ACS-MSN4600C", "own", "spectrum-3", 0.25),
            ("Mellanox-SN5600-O128", "own", "spectrum-4", 0.25),
        ] {
            let found = imported(&device(sku, profile)).expect("a configuration");
            let pfc = found.switch["pfc"].as_table().expect("a table");
            assert_eq!((pfc["headroom"].as_str(), pfc["alpha"].as_float()), (Some(chip), Some(alpha)), "{sku}");
            assert!(found.notes.iter().any(|note| note.contains("CABLE_LENGTH has no key")), "{:?}", found.notes);
        }
        for sku in ["Mellanox-SN5640-C512S2", "Arista-7060CX-32S-C32", ""] {
            assert!(
                imported(&device(sku, "NULL")).expect_err("refused").contains("name no switch with Spectrum"),
                "{sku}"
            );
        }
        let without = device("ACS-MSN2700", "NULL").replace("default_dynamic_th", "other");
        assert!(imported(&without).expect_err("refused").contains("has no `default_dynamic_th`"));
    }

    #[test]
    fn what_a_scenario_says_once_must_be_one() {
        let with = |from: &str, to: &str| {
            assert!(DEVICE.contains(from), "{from}");
            imported(&DEVICE.replacen(from, to, 1)).expect_err("refused")
        };
        assert!(with("\"3,4\"}, \"Ethernet4\"", "\"3\"}, \"Ethernet4\"").contains("another one at another port"));
        assert!(with("\"size\": \"1518\", \"dynamic_th\": \"3\"", "\"size\": \"1518\"").contains("exactly one of"));
        assert!(with("\"3,4\"}, \"Ethernet4\"", "\"3-4\"}, \"Ethernet4\"").contains("expected queues from 0 to 7"));
        assert!(with("Ethernet4|6", "Ethernet4|banana").contains("is no queue"));
        assert!(with("\"250000\"", "\"many\"").contains("allowed is 0 to"));
        assert!(
            with("\"wred_profile\": \"AZURE\"", "\"wred_profile\": \"BLUE\"").contains("there is no WRED_PROFILE|BLUE")
        );
        let strict_below = with("\"type\": \"DWRR\", \"weight\": 14", "\"type\": \"STRICT\"");
        assert!(strict_below.contains("a strict queue below"), "{strict_below}");
        assert!(
            with(
                "\"dynamic_th\": \"0\", \"xon\": \"2288\", \"xoff\": \"71552\"",
                "\"dynamic_th\": \"1\", \"xon\": \"2288\", \"xoff\": \"71552\""
            )
            .contains("one switch.pfc")
        );
        assert!(imported("{\n\"QUEUE\": 3,").expect_err("refused").contains("config_db.json:2"));
        assert!(imported("[]").expect_err("refused").contains("a table of tables"));
    }
}
