//! Flow sizes and sets of hosts.

use super::{
    super::document::workload::{Hosts, Lognormal, Sizes, Spelled},
    files::Files,
};
use crate::scenario::tree::{error::Problem, nearest::nearest};
use crate::workload::distribution::{Distribution, Interpolation};
use incast_sim::topology::Topology;

/// A distribution.
pub fn distribution(sizes: &Sizes, files: &mut Files) -> Result<Distribution, Problem> {
    match sizes {
        Sizes::Named(name) => {
            let (table, interpolation) = files.table(name)?;
            Ok(Distribution::Table { table, interpolation, max: u64::MAX })
        }
        Sizes::Spelled(spelled) => spelled_out(spelled, files),
    }
}

fn spelled_out(spelled: &Spelled, files: &mut Files) -> Result<Distribution, Problem> {
    let max = spelled.max.map_or(u64::MAX, |max| max.get());
    if max == 0 {
        return Err(Problem::value("0B", "at least 1B").under("max"));
    }
    if spelled.interpolation.is_some() && spelled.file.is_none() {
        return Err(Problem::new("only a distribution from a `file` has this key").under("interpolation"));
    }
    match (&spelled.fixed, &spelled.lognormal, &spelled.file) {
        (Some(size), None, None) => match size.get() {
            0 => Err(Problem::value("0B", "at least 1B").under("fixed")),
            size => Ok(Distribution::Fixed(size.min(max))),
        },
        (None, Some(lognormal), None) => self::lognormal(lognormal, max).map_err(|problem| problem.under("lognormal")),
        (None, None, Some(name)) => {
            let (table, default) = files.table(name).map_err(|problem| problem.under("file"))?;
            Ok(Distribution::Table { table, interpolation: spelled.interpolation.unwrap_or(default), max })
        }
        (fixed, lognormal, file) => Err(Problem::exactly_one(&[
            ("fixed", fixed.is_some()),
            ("lognormal", lognormal.is_some()),
            ("file", file.is_some()),
        ])),
    }
}

fn lognormal(lognormal: &Lognormal, max: u64) -> Result<Distribution, Problem> {
    let sigma = lognormal.sigma;
    if !(0.0..=10.0).contains(&sigma) {
        return Err(Problem::value(sigma, "0 to 10").under("sigma"));
    }
    // E[X] = exp(mu + sigma²/2), the median is exp(mu).
    let (key, size, shift) = match (lognormal.mean, lognormal.median) {
        (Some(mean), None) => ("mean", mean, sigma * sigma / 2.0),
        (None, Some(median)) => ("median", median, 0.0),
        (mean, median) => {
            return Err(Problem::exactly_one(&[("mean", mean.is_some()), ("median", median.is_some())]));
        }
    };
    if size.get() == 0 {
        return Err(Problem::value("0B", "at least 1B").under(key));
    }
    Ok(Distribution::Lognormal { mu: libm::log(size.get() as f64) - shift, sigma, max })
}

/// How the distribution is read, for people.
pub fn label(sizes: &Sizes, distribution: &Distribution) -> String {
    let name = match sizes {
        Sizes::Named(name) => name.clone(),
        Sizes::Spelled(Spelled { file: Some(name), .. }) => name.clone(),
        Sizes::Spelled(Spelled { fixed: Some(_), .. }) => "fixed".into(),
        Sizes::Spelled(_) => "log-normal".into(),
    };
    match distribution {
        Distribution::Table { interpolation: Interpolation::Step, .. } => format!("{name} (step)"),
        Distribution::Table { .. } => format!("{name} (linear)"),
        _ => name,
    }
}

/// One host.
pub fn host(name: &str, topology: &Topology) -> Result<u32, Problem> {
    let hosts = &topology.names[..topology.hosts as usize];
    hosts.iter().position(|other| other == name).map(|index| index as u32).ok_or_else(|| Problem {
        nearest: nearest(name, hosts.iter().take(4096).map(String::as_str)).map(str::to_owned),
        allowed: Some(match (hosts.first(), hosts.last()) {
            (Some(first), Some(last)) => format!("a host, {first} to {last}"),
            _ => "a host".into(),
        }),
        ..Problem::new(format!("found {name:?}"))
    })
}

/// A set of hosts, ascending and without repetition; all of them where none are named.
pub fn hosts(hosts: Option<&Hosts>, topology: &Topology) -> Result<Vec<u32>, Problem> {
    let names: &[String] = match hosts {
        None => return Ok((0..topology.hosts).collect()),
        Some(Hosts::One(name)) => std::slice::from_ref(name),
        Some(Hosts::Several(names)) => names,
    };
    let mut found = Vec::new();
    for name in names {
        match name.split_once("..") {
            Some((first, last)) => {
                let (first, last) = (host(first.trim(), topology)?, host(last.trim(), topology)?);
                if first > last {
                    return Err(Problem::value(format!("{name:?}"), "a range with the lower host first"));
                }
                found.extend(first..=last);
            }
            None => found.push(host(name, topology)?),
        }
    }
    found.sort_unstable();
    found.dedup();
    if found.is_empty() { Err(Problem::value("no hosts", "at least one host")) } else { Ok(found) }
}
