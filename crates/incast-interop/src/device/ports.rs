//! The ports of a device, and its queues.

use incast_units::Rate;
use serde_json::Value;
use std::{fmt, str::FromStr};

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
    !name.is_empty() && name.len() <= 128 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
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
            return Err(format!("PORT|{name}: allowed are letters, digits, -, _, . and /"));
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

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}:{}", self.priority, self.tc, self.dscp.unwrap_or(0))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
