//! A scenario's flows, and which addresses its hosts have.

use crate::{Failure, arguments::Client};
use incast_lab::{
    results::labels::Labels,
    run::{
        RunError,
        list::{Flows, Listed},
        only::Only,
    },
    scenario::{Form, Scenario},
};
use incast_sim::FlowSpec;
use incast_units::Time;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// A flow to send.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// As the scenario has it, at its stretched time.
    pub spec: FlowSpec,
    /// Number at its source.
    pub sequence: u32,
}

impl Flow {
    /// As `rates.parquet` numbers flows.
    pub fn id(&self) -> u64 {
        u64::from(self.spec.source) << 32 | u64::from(self.sequence)
    }
}

/// What is to be sent from here.
#[derive(Debug)]
pub struct Traffic {
    /// Name of the scenario.
    pub scenario: String,
    /// Its effective values.
    pub effective: toml::Table,
    /// Seed of the flows.
    pub seed: u64,
    /// Names of classes, by the index that flows have.
    pub classes: Vec<String>,
    /// Names of hosts.
    pub labels: Labels,
    /// Those that start from here, by source and sequence.
    pub flows: Vec<Flow>,
    /// Address of each host that has one.
    pub addresses: BTreeMap<u32, IpAddr>,
    /// When flows are given up.
    pub end: Time,
}

impl Traffic {
    /// Address of a host that has been checked to have one.
    pub fn address(&self, host: u32) -> IpAddr {
        self.addresses[&host]
    }

    /// Everything is checked before anything is sent.
    pub fn new(arguments: &Client) -> Result<Self, Failure> {
        let form = if arguments.short { Form::Short } else { Form::Full };
        let scenario = Scenario::load_form(&arguments.scenario, &arguments.sets, form)
            .map_err(|error| Failure::Input(error.to_string()))?;
        for warning in &scenario.warnings {
            eprintln!("warning: {warning}");
        }
        let only = Only::parse(&arguments.only).map_err(|error| Failure::Input(error.to_string()))?;
        let runs = only.select(scenario.runs()).map_err(|error| Failure::Input(error.to_string()))?;
        let Some(mut run) = runs.first().cloned() else {
            return Err(Failure::Input(format!("{}: no run", arguments.scenario.display())));
        };
        // Schemes and seeds of a scenario have the same traffic; grid points need not.
        if let Some(other) = runs.iter().find(|other| other.grid != run.grid) {
            return Err(Failure::Input(format!(
                "{}: grid: {} and {} may differ in their traffic; choose one with --only",
                arguments.scenario.display(),
                run.folder,
                other.folder
            )));
        }
        run.seed = arguments.seed.unwrap_or(run.seed);
        let listed = Flows::of(&run).map_err(|error| {
            Failure::Input(match error {
                RunError::Flows { message, .. } => format!("{}: {message}", arguments.scenario.display()),
                error => error.to_string(),
            })
        })?;
        let labels = listed.labels().clone();
        let names: Vec<&str> = labels.hosts().map(|host| labels.node(host)).collect();
        let addresses = addresses(arguments, &names)?;
        let sources = sources(arguments, &names)?;
        let (flows, last) = flows(&listed.rows, &sources, arguments.stretch);
        for flow in &flows {
            for (key, host) in [("source", flow.spec.source), ("destination", flow.spec.destination)] {
                if !addresses.contains_key(&host) {
                    let name = labels.node(host);
                    return Err(Failure::Input(format!(
                        "--host: {name} is the {key} of a flow and has no address; give --host {name}=ADDRESS or \
                         --first-host"
                    )));
                }
            }
        }
        let stretched = |time: Time| time.saturating_mul(arguments.stretch.into());
        let end = match arguments.drain {
            Some(drain) => last.saturating_add(Time::from_ns(u64::try_from(drain.as_nanos()).unwrap_or(u64::MAX))),
            None => stretched(run.end).max(last),
        };
        Ok(Self {
            scenario: scenario.name.clone(),
            effective: run.effective(),
            seed: run.seed,
            classes: run.classes.clone(),
            labels,
            flows,
            addresses,
            end,
        })
    }
}

/// The flows of some sources at their stretched times, and the last start of all.
fn flows(all: &[Listed], sources: &[u32], stretch: u32) -> (Vec<Flow>, Time) {
    let (mut flows, mut last) = (Vec::new(), Time::ZERO);
    for row in all {
        let start = row.flow.start.saturating_mul(stretch.into());
        last = last.max(start);
        if sources.contains(&row.flow.source) {
            flows.push(Flow { spec: FlowSpec { start, ..row.flow }, sequence: row.sequence });
        }
    }
    (flows, last)
}

fn host(names: &[&str], name: &str, argument: &str) -> Result<u32, Failure> {
    names.iter().position(|known| *known == name).map(|index| index as u32).ok_or_else(|| {
        let (first, last) = (names.first().unwrap_or(&"?"), names.last().unwrap_or(&"?"));
        Failure::Input(format!("{argument} {name}: no such host; allowed are {first} to {last}"))
    })
}

fn sources(arguments: &Client, names: &[&str]) -> Result<Vec<u32>, Failure> {
    if arguments.all {
        return Ok((0..names.len() as u32).collect());
    }
    if arguments.sources.is_empty() {
        return Err(Failure::Input("--source: say which hosts this machine is, or --all".into()));
    }
    arguments.sources.iter().map(|name| host(names, name, "--source")).collect()
}

fn addresses(arguments: &Client, names: &[&str]) -> Result<BTreeMap<u32, IpAddr>, Failure> {
    if let Some(first) = arguments.first_host {
        return (0..names.len() as u32)
            .map(|index| {
                let address = match first {
                    IpAddr::V4(address) => {
                        u32::from(address).checked_add(index).map(|bits| Ipv4Addr::from(bits).into())
                    }
                    IpAddr::V6(address) => {
                        u128::from(address).checked_add(index.into()).map(|bits| Ipv6Addr::from(bits).into())
                    }
                };
                let address = address.ok_or_else(|| {
                    Failure::Input(format!("--first-host {first}: no room for {} hosts after it", names.len()))
                })?;
                Ok((index, address))
            })
            .collect();
    }
    arguments
        .hosts
        .iter()
        .map(|(name, text)| {
            let address = text
                .trim()
                .parse()
                .map_err(|_| Failure::Input(format!("--host {name}={text}: expected an address such as 10.0.0.1")))?;
            Ok((host(names, name, "--host")?, address))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_others_are_left_out_and_times_are_stretched() {
        let row = |source: u32, sequence: u32, start: u64| {
            let flow = FlowSpec {
                start: Time::from_us(start),
                source,
                destination: 9,
                bytes: 1,
                class: 0,
                request: FlowSpec::NO_REQUEST,
                pinned: None,
            };
            Listed { sequence, flow, counted: true }
        };
        let (flows, last) = flows(&[row(0, 0, 8), row(1, 0, 3), row(1, 1, 7)], &[1], 10);
        let found: Vec<_> = flows.iter().map(|flow| (flow.id(), flow.spec.start)).collect();
        assert_eq!(found, [(1 << 32, Time::from_us(30)), (1 << 32 | 1, Time::from_us(70))]);
        assert_eq!(last, Time::from_us(80), "of all, so that several clients end together");
    }
}
