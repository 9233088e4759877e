//! The ports of a device, and which queue is whose.

use super::switch::Switch;
use incast_units::Rate;
use serde_json::Value;
use std::str::FromStr;

/// A port of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its rate.
    pub rate: Rate,
}

impl FromStr for Port {
    type Err = String;
    /// Of `Ethernet0@25Gbps`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('@').and_then(|(name, rate)| Some((name, rate.parse::<Rate>().ok()?)));
        match parts {
            Some((name, rate)) if is_name(name) => Ok(Self { name: name.to_owned(), rate }),
            _ => Err(format!("{text:?}, allowed is NAME@RATE, such as Ethernet0@25Gbps, or a config_db.json")),
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 128 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// The ports that a CONFIG_DB has, by its table PORT.
///
/// # Errors
/// It has none, or one without a rate.
pub fn of_database(text: &str) -> Result<Vec<Port>, String> {
    let database: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let table = database.get("PORT").and_then(Value::as_object).filter(|table| !table.is_empty());
    let table = table.ok_or("no table PORT with ports in it")?;
    let mut ports = Vec::new();
    for (name, fields) in table {
        let speed = fields.get("speed").and_then(Value::as_str).and_then(|speed| speed.parse::<u64>().ok());
        let speed = speed.filter(|speed| (1..=10_000_000).contains(speed));
        let speed = speed.ok_or_else(|| format!("PORT|{name}: `speed` is missing, or no number of Mbit/s"))?;
        if !is_name(name) {
            return Err(format!("PORT|{name}: allowed are letters, digits, -, _ and ."));
        }
        ports.push(Port { name: name.clone(), rate: Rate::from_bps(speed * 1_000_000) });
    }
    ports.sort_by_key(|port| {
        let digits = port.name.trim_start_matches(|c: char| !c.is_ascii_digit());
        (digits.parse::<u64>().unwrap_or(u64::MAX), port.name.clone())
    });
    Ok(ports)
}

/// The traffic class and queue of a priority of the scenario, and the DSCP of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Priority of the scenario, of which 0 is the highest.
    pub priority: u8,
    /// Traffic class, queue, and priority of pauses, of which 7 is the highest.
    pub tc: u8,
    /// The packets' DSCP; none where all packets are of this class.
    pub dscp: Option<u8>,
}

impl FromStr for Class {
    type Err = String;
    /// Of `1=3:26`: priority 1 is traffic class 3, with DSCP 26.
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let (priority, rest) = text.split_once('=')?;
            let (tc, dscp) = rest.split_once(':')?;
            let within = |text: &str, most: u8| text.trim().parse::<u8>().ok().filter(|number| *number <= most);
            Some(Self { priority: within(priority, 7)?, tc: within(tc, 7)?, dscp: Some(within(dscp, 63)?) })
        };
        parsed().ok_or_else(|| {
            format!("{text:?}, allowed is PRIORITY=QUEUE:DSCP with 0 to 7, 0 to 7 and 0 to 63, such as 1=3:26")
        })
    }
}

/// The classes of a switch's priorities, the highest first: as given, or priority p is queue 7 − p with the class selector
/// of that number as DSCP (RFC 2474). A single priority has all packets, in queue 0, or in 3 where it is lossless.
///
/// # Errors
/// A priority that is not in use, one that lacks, or a queue or DSCP that is given twice.
pub fn classes(switch: &Switch, given: &[Class]) -> Result<Vec<Class>, String> {
    let mut classes = match switch.priorities[..] {
        _ if !given.is_empty() => given.to_vec(),
        [priority] => vec![Class { priority, tc: if switch.lossless == 0 { 0 } else { 3 }, dscp: None }],
        ref all => all.iter().map(|p| Class { priority: *p, tc: 7 - p, dscp: Some(8 * (7 - p)) }).collect(),
    };
    classes.sort_by_key(|class| class.priority);
    let priorities: Vec<u8> = classes.iter().map(|class| class.priority).collect();
    if priorities != switch.priorities {
        let used: Vec<String> = switch.priorities.iter().map(u8::to_string).collect();
        return Err(format!("--queues: each priority that the scheme uses is given once: {}", used.join(", ")));
    }
    for (index, class) in classes.iter().enumerate() {
        if classes[..index].iter().any(|other| other.tc == class.tc || other.dscp == class.dscp) {
            return Err(format!("--queues: queue {} or its DSCP is given twice", class.tc));
        }
    }
    let is_lossless = |class: &Class| switch.lossless & 1 << class.priority != 0;
    let apart = classes.last().is_some_and(|class| is_lossless(class) && class.dscp.is_some());
    if classes.iter().any(|class| class.tc == 0 && (apart || is_lossless(class))) {
        return Err(
            "--queues: queue 0 and its priority group are for what is not lossless, and for what is in no class".into(),
        );
    }
    // Queues that are strict go in the order of their numbers, before those that take turns.
    let strict = switch.own.scheduler.dwrr().map_or(8, |dwrr| dwrr.strict);
    let above = classes.iter().filter(|class| class.priority < strict);
    if above
        .flat_map(|above| classes.iter().map(move |other| (above, other)))
        .any(|(above, other)| above.priority < other.priority && above.tc < other.tc)
    {
        return Err("--queues: a higher strict priority of the scenario (0 is the highest) needs a higher queue".into());
    }
    Ok(classes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_sim::config::SwitchConfig;

    fn switch(priorities: &[u8], lossless: u8) -> Switch {
        let (names, ports) = (vec!["s0".into()], Vec::new());
        Switch { names, own: SwitchConfig::plain(), ports, priorities: priorities.to_vec(), lossless }
    }

    #[test]
    fn ports_are_typed_or_read() {
        let port = |text: &str| text.parse::<Port>();
        assert_eq!(port("Ethernet4@25Gbps"), Ok(Port { name: "Ethernet4".into(), rate: Rate::from_gbps(25) }));
        for wrong in ["Ethernet4", "@25Gbps", "a b@25Gbps", "Ethernet4@fast"] {
            assert!(port(wrong).is_err(), "{wrong}");
        }
        let database = r#"{"PORT": {"Ethernet8": {"speed": "100000"}, "Ethernet0": {"speed": "25000", "lanes": "1"}}}"#;
        let names: Vec<String> = of_database(database).expect("ports").into_iter().map(|port| port.name).collect();
        assert_eq!(names, ["Ethernet0", "Ethernet8"]);
        for wrong in
            ["", "{}", r#"{"PORT": {}}"#, r#"{"PORT": {"a": {}}}"#, r#"{"PORT": {"a": {"speed": "fast"}}}"#, "[1]"]
        {
            assert!(of_database(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn priorities_have_queues_of_their_own() {
        let class = |priority, tc, dscp| Class { priority, tc, dscp };
        assert_eq!(classes(&switch(&[2], 0), &[]), Ok(vec![class(2, 0, None)]));
        assert_eq!(classes(&switch(&[0], 1), &[]), Ok(vec![class(0, 3, None)]));
        assert_eq!(classes(&switch(&[0, 1], 0), &[]), Ok(vec![class(0, 7, Some(56)), class(1, 6, Some(48))]));
        let given = |texts: &[&str]| texts.iter().map(|text| text.parse().expect("a class")).collect::<Vec<Class>>();
        let good = classes(&switch(&[0, 1], 2), &given(&["1=3:26", "0=6:48"]));
        assert_eq!(good, Ok(vec![class(0, 6, Some(48)), class(1, 3, Some(26))]));
        for (wrong, expected) in [
            (given(&["1=3:26"]), "each priority that the scheme uses is given once: 0, 1"),
            (given(&["1=3:26", "0=3:48"]), "given twice"),
            (given(&["1=3:26", "0=6:26"]), "given twice"),
            (given(&["1=6:26", "0=3:48"]), "needs a higher queue"),
            (given(&["1=0:0", "0=3:48"]), "queue 0 and its priority group"),
        ] {
            let found = classes(&switch(&[0, 1], 2), &wrong).expect_err("refused");
            assert!(found.contains(expected), "{found}");
        }
        for wrong in ["1", "1=3", "8=3:26", "1=8:26", "1=3:64", "a=b:c"] {
            assert!(wrong.parse::<Class>().is_err(), "{wrong}");
        }
    }
}
