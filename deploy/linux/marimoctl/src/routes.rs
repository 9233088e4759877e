//! Which connections use Marimo: those over a route, or all of the host; and back.
//!
//! A route names its congestion control (`congctl`), so that a rollout can begin with one destination. `ip` of iproute2
//! reads and changes routes. Neither command touches open connections.

use crate::{
    arguments,
    bpf::registered,
    failure::{Failure, Outcome, While},
    layout::NAME,
    lock,
};
use std::{fs, process::Command};

/// Congestion control of connections whose route names none.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Marimo's names: of the BPF form and of the module.
pub const NAMES: [&str; 2] = [NAME, "marimo"];
const FAMILIES: [&str; 2] = ["-4", "-6"];

/// What `ip route show` prints of a route's state; `ip route change` does not take it.
const STATE: [&str; 8] =
    ["linkdown", "dead", "offload", "offload_failed", "trap", "rt_offload", "rt_trap", "notify"];

/// A line of `ip -oneline route show` as arguments of `ip route change`, with this congestion control or none.
fn changed(line: &str, name: Option<&str>) -> Vec<String> {
    let mut words = line.split_whitespace().filter(|word| *word != "\\" && !STATE.contains(word)).peekable();
    let mut arguments: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        match word.trim_start_matches('\\') {
            "congctl" => {
                words.next_if_eq(&"lock");
                words.next();
            }
            // A least timeout is always locked; the word is no argument.
            "rto_min" => {
                arguments.push("rto_min".into());
                words.next_if_eq(&"lock");
            }
            other => arguments.push(other.to_owned()),
        }
    }
    if let Some(name) = name {
        // Before the next hops of a route with several.
        let place = arguments.iter().position(|word| word == "nexthop").unwrap_or(arguments.len());
        arguments.splice(place..place, ["congctl".to_owned(), name.to_owned()]);
    }
    arguments
}

/// The congestion control that a route names.
fn named(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "congctl").skip(1);
    words.find(|word| *word != "lock")
}

fn ip(family: &str, arguments: &[String]) -> Outcome<String> {
    let done = Command::new("ip")
        .args([family, "-oneline", "route"])
        .args(arguments)
        .output()
        .during("cannot start ip (Debian package iproute2)")?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(Failure::failed(format!(
        "ip {family} route {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&done.stderr).trim()
    )))
}

fn change(family: &str, line: &str, name: Option<&str>) -> Outcome {
    let mut arguments = vec!["change".to_owned()];
    arguments.extend(changed(line, name));
    ip(family, &arguments)?;
    println!("ip {family} route {}", arguments.join(" "));
    Ok(())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// New connections over some routes, or all of them, use Marimo.
pub fn enable(arguments: &arguments::Enable) -> Outcome {
    crate::load::root()?;
    let _lock = lock::hold()?;
    let registered = registered()?;
    let name =
        match &arguments.name {
            Some(name) => name.as_str(),
            None => NAMES.into_iter().find(|name| registered.iter().any(|known| known == name)).ok_or_else(
                || Failure::failed("neither bpf_marimo nor tcp_marimo is loaded (marimoctl load, modprobe)"),
            )?,
        };
    if !registered.iter().any(|known| known == name) {
        return Err(Failure::input(format!(
            "--name: found {name:?}, allowed is one of {}",
            registered.join(", ")
        )));
    }
    // All routes are looked up before the first is changed.
    let mut found = Vec::new();
    for route in &arguments.routes {
        let family = FAMILIES[usize::from(route.contains(':'))];
        let lines = ip(family, &words(&["show", "to", "exact", route, "table", &arguments.table]))?;
        let before = found.len();
        found.extend(lines.lines().map(|line| (family, line.trim().to_owned())));
        if found.len() == before {
            return Err(Failure::input(format!(
                "found no route {route} in table {} (ip {family} route show)",
                arguments.table
            )));
        }
    }
    for (family, line) in &found {
        change(family, line, Some(name))?;
    }
    if arguments.default {
        fs::write(DEFAULT, name).during(format!("cannot write {DEFAULT}"))?;
        println!("sysctl -w net.ipv4.tcp_congestion_control={name}");
    }
    Ok(())
}

/// New connections use what they used before Marimo: no route names it, and it is not the default.
pub fn rollback(arguments: &arguments::Rollback) -> Outcome {
    crate::load::root()?;
    let _lock = lock::hold()?;
    let registered = registered()?;
    let to = &arguments.to;
    if NAMES.contains(&to.as_str()) || !registered.contains(to) {
        return Err(Failure::input(format!(
            "--to: found {to:?}, allowed is one of {}",
            registered
                .iter()
                .filter(|name| !NAMES.contains(&name.as_str()))
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        )));
    }
    let mut nothing = true;
    if NAMES.contains(&default()?.as_str()) {
        fs::write(DEFAULT, to).during(format!("cannot write {DEFAULT}"))?;
        println!("sysctl -w net.ipv4.tcp_congestion_control={to}");
        nothing = false;
    }
    for family in FAMILIES {
        let lines = ip(family, &words(&["show", "table", "all"]))?;
        for line in lines.lines().filter(|line| named(line).is_some_and(|name| NAMES.contains(&name))) {
            change(family, line, None)?;
            nothing = false;
        }
    }
    if nothing {
        println!("nothing to undo: no route names Marimo, and the default is another");
    }
    Ok(())
}

/// The default of this network namespace.
pub fn default() -> Outcome<String> {
    Ok(fs::read_to_string(DEFAULT).during(format!("cannot read {DEFAULT}"))?.trim().to_owned())
}

/// How many routes name Marimo; `None` where `ip` cannot say.
pub fn count() -> Option<usize> {
    let lines = FAMILIES.map(|family| ip(family, &words(&["show", "table", "all"])).ok());
    let named = |lines: String| {
        lines.lines().filter(|line| named(line).is_some_and(|name| NAMES.contains(&name))).count()
    };
    lines.into_iter().map(|lines| lines.map(named)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(line: &str, name: Option<&str>) -> String {
        changed(line, name).join(" ")
    }

    #[test]
    fn a_route_keeps_all_but_its_congestion_control() {
        let line =
            "10.0.0.0/8 via 10.1.0.1 dev eth0 proto static congctl lock cubic rto_min lock 5ms linkdown ";
        assert_eq!(named(line), Some("cubic"));
        assert_eq!(
            joined(line, Some("marimo")),
            "10.0.0.0/8 via 10.1.0.1 dev eth0 proto static rto_min 5ms congctl marimo"
        );
        assert_eq!(joined(line, None), "10.0.0.0/8 via 10.1.0.1 dev eth0 proto static rto_min 5ms");
        assert_eq!(joined("default dev eth0 mtu lock 1400", None), "default dev eth0 mtu lock 1400");
    }

    #[test]
    fn congestion_control_stands_before_next_hops() {
        let line = r"10.2.0.0/16 proto static \	nexthop via 10.1.0.1 dev a weight 1 \	nexthop via 10.1.0.2 dev b weight 1 ";
        let hops = "nexthop via 10.1.0.1 dev a weight 1 nexthop via 10.1.0.2 dev b weight 1";
        assert_eq!(joined(line, Some("marimo")), format!("10.2.0.0/16 proto static congctl marimo {hops}"));
        assert_eq!(named(line), None);
    }
}
