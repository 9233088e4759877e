//! The plan: one row per flow, as CSV.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The first line of a plan. A last column `congestion` may follow.
pub const HEADER: &str = "flow,source_namespace,source,destination_namespace,destination,port,start_ns,bytes";

/// Flow numbers are below this: the engine's tokens are a number and two more bits.
pub const MOST_FLOWS: u64 = 1 << 62;

/// One flow of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Number of the flow, its name in the results.
    pub id: u64,
    /// Who sends.
    pub source: Host,
    /// Who receives.
    pub destination: Host,
    /// Port at which the receiver listens.
    pub port: u16,
    /// When the connection is opened, in ns from the start of the play.
    pub start_ns: u64,
    /// What is sent.
    pub bytes: u64,
    /// Congestion control of its own, instead of the play's.
    pub congestion: Option<String>,
}

/// An address in a network namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    /// Name below /run/netns; `None` is the program's own namespace.
    pub namespace: Option<String>,
    /// IPv4 address.
    pub address: Ipv4Addr,
}

/// A namespace as plans and arguments write it: a name, or `-` for the own one.
pub fn namespace(text: &str) -> Result<Option<String>, String> {
    match text {
        "-" => Ok(None),
        "" | "." | ".." => Err(format!("a namespace is a name below /run/netns, or -; found \"{text}\"")),
        name if name.contains('/') => Err(format!("a namespace is a name, not a path; found \"{name}\"")),
        name => Ok(Some(name.to_owned())),
    }
}

fn field<T: std::str::FromStr>(name: &str, text: &str, allowed: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name} is {allowed}; found \"{text}\""))
}

/// A name of a congestion control: at most TCP_CA_NAME_MAX, with its final zero.
pub fn congestion(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 15 {
        return Err(format!("congestion is a name of 1 to 15 bytes; found \"{text}\""));
    }
    Ok(text.to_owned())
}

fn row(line: &str, columns: usize) -> Result<Flow, String> {
    let mut fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let found = fields.len();
    let own = if columns == 9 { fields.pop() } else { None };
    let [id, source_namespace, source, destination_namespace, destination, port, start, bytes] = fields[..] else {
        return Err(format!("{found} fields instead of {columns}"));
    };
    let number = "a whole number below 2^64";
    let flow = Flow {
        id: field("flow", id, "a whole number below 2^62")?,
        source: Host { namespace: namespace(source_namespace)?, address: field("source", source, "an IPv4 address")? },
        destination: Host {
            namespace: namespace(destination_namespace)?,
            address: field("destination", destination, "an IPv4 address")?,
        },
        port: field("port", port, "a number from 1 to 65535")?,
        start_ns: field("start_ns", start, number)?,
        bytes: field("bytes", bytes, number)?,
        congestion: own.filter(|name| !matches!(*name, "" | "-")).map(congestion).transpose()?,
    };
    if flow.id >= MOST_FLOWS {
        return Err(format!("flow is a whole number below 2^62; found \"{id}\""));
    }
    if flow.port == 0 {
        return Err("port is a number from 1 to 65535; found \"0\"".to_owned());
    }
    if flow.bytes == 0 {
        return Err("bytes is at least 1".to_owned());
    }
    if flow.start_ns > 1 << 62 {
        return Err(format!("start_ns is at most 2^62; found {}", flow.start_ns));
    }
    Ok(flow)
}

/// Reads a plan; the flows are returned by their start, those of one instant in the plan's order.
///
/// # Errors
/// Says which line is at fault, and what is allowed there.
pub fn read(text: &str) -> Result<Vec<Flow>, String> {
    let mut lines = text.lines().enumerate();
    let first = lines.next().map_or("nothing", |(_, line)| line.trim());
    let columns = match first.strip_prefix(HEADER) {
        Some("") => 8,
        Some(",congestion") => 9,
        _ => return Err(format!("line 1: the header is \"{HEADER}[,congestion]\"; found \"{first}\"")),
    };
    let mut flows = Vec::new();
    let mut ids = BTreeSet::new();
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let flow = row(line, columns).map_err(|fault| format!("line {}: {fault}", index + 1))?;
        if !ids.insert(flow.id) {
            return Err(format!("line {}: flow {} stands there twice", index + 1, flow.id));
        }
        flows.push(flow);
    }
    if flows.is_empty() {
        return Err("no flow".to_owned());
    }
    flows.sort_by_key(|flow| flow.start_ns);
    Ok(flows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_come_by_start_then_as_written() {
        let text = format!(
            "{HEADER}\n7,a,10.0.0.1,-,10.0.0.2,5000,20,1\n3,-,10.0.0.1,b,10.0.0.2,5000,10,2\n\n2,a,10.0.0.1,b,10.0.0.2,5001,20,3\n"
        );
        let flows = read(&text).expect("sound");
        assert_eq!(flows.iter().map(|flow| flow.id).collect::<Vec<_>>(), [3, 7, 2]);
        assert_eq!(flows[0].source.namespace, None);
        assert_eq!(flows[0].destination.namespace.as_deref(), Some("b"));
        assert_eq!((flows[2].port, flows[2].start_ns, flows[2].bytes), (5001, 20, 3));
    }

    #[test]
    fn a_flow_may_have_a_congestion_control_of_its_own() {
        let text =
            format!("{HEADER},congestion\n1,a,10.0.0.1,b,10.0.0.2,1,0,1,cubic\n2,a,10.0.0.1,b,10.0.0.2,2,0,1,-\n");
        let flows = read(&text).expect("sound");
        assert_eq!(flows[0].congestion.as_deref(), Some("cubic"));
        assert_eq!(flows[1].congestion, None);
        let fault = read(&format!("{HEADER},congestion\n1,a,10.0.0.1,b,10.0.0.2,1,0,1\n")).unwrap_err();
        assert_eq!(fault, "line 2: 8 fields instead of 9");
        let fault = read(&format!("{HEADER},congestion\n1,a,10.0.0.1,b,10.0.0.2,1,0,1,sixteen-letters-\n"));
        assert!(fault.unwrap_err().starts_with("line 2: congestion is a name of 1 to 15 bytes"));
    }

    #[test]
    fn faults_name_their_line() {
        let with = |row: &str| read(&format!("{HEADER}\n1,a,10.0.0.1,b,10.0.0.2,1,0,1\n{row}\n")).unwrap_err();
        for (row, says) in [
            ("2,a,10.0.0.1,b,10.0.0.2,1,0", "line 3: 7 fields instead of 8"),
            ("2,a,10.0.0,b,10.0.0.2,1,0,1", "line 3: source is an IPv4 address; found \"10.0.0\""),
            ("2,a,::1,b,10.0.0.2,1,0,1", "line 3: source is an IPv4 address"),
            ("2,a,10.0.0.1,b,10.0.0.2,0,0,1", "line 3: port is a number from 1 to 65535"),
            ("2,a,10.0.0.1,b,10.0.0.2,65536,0,1", "line 3: port is a number from 1 to 65535"),
            (
                "4611686018427387904,a,10.0.0.1,b,10.0.0.2,1,0,1",
                "line 3: flow is a whole number below 2^62; found \"4611686018427387904\"",
            ),
            ("2,a,10.0.0.1,b,10.0.0.2,1,-5,1", "line 3: start_ns is a whole number"),
            ("2,a,10.0.0.1,b,10.0.0.2,1,0,0", "line 3: bytes is at least 1"),
            ("2,../a,10.0.0.1,b,10.0.0.2,1,0,1", "line 3: a namespace is a name, not a path"),
            ("2,,10.0.0.1,b,10.0.0.2,1,0,1", "line 3: a namespace is a name below /run/netns, or -"),
            ("1,a,10.0.0.1,b,10.0.0.2,1,0,1", "line 3: flow 1 stands there twice"),
        ] {
            let fault = with(row);
            assert!(fault.starts_with(says), "{row}: {fault}");
        }
        assert!(read("").unwrap_err().starts_with("line 1: the header is"));
        assert_eq!(read(HEADER).unwrap_err(), "no flow");
    }
}
