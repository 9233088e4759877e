//! `[topology]` to nodes and cables.

use super::super::{
    document::topology::{self as described, Topology as Described},
    error::Problem,
    source::Source,
    tree::keys,
};
use incast_sim::topology::{
    Chain, Clos3, Dumbbell, FatTree, LeafSpine, Link, Ring, SingleSwitch, Topology, TopologyError, file,
};
use std::path::Path;

fn link(link: &described::Link) -> Link {
    Link { rate: link.rate.0, delay: link.delay.0, loss: link.loss }
}

/// Builds the fabric; paths are relative to `base`.
pub fn build(topology: &Described, base: &Path) -> Result<Topology, Problem> {
    let mut text_of = None;
    let built = match topology {
        Described::SingleSwitch(t) => SingleSwitch { hosts: t.hosts, link: link(&t.link) }.build(),
        Described::Dumbbell(t) => Dumbbell {
            left: t.left,
            right: t.right,
            host_link: link(&t.host_link),
            bottleneck: link(&t.bottleneck),
        }
        .build(),
        Described::LeafSpine(t) => LeafSpine {
            leaves: t.leaves,
            spines: t.spines,
            hosts_per_leaf: t.hosts_per_leaf,
            host_link: link(&t.host_link),
            fabric_link: link(&t.fabric_link),
        }
        .build(),
        Described::FatTree(t) => FatTree { k: t.k, link: link(&t.link) }.build(),
        Described::Clos3(t) => Clos3 {
            pods: t.pods,
            tors_per_pod: t.tors_per_pod,
            aggs_per_pod: t.aggs_per_pod,
            cores: t.cores,
            hosts_per_tor: t.hosts_per_tor,
            host_link: link(&t.host_link),
            tor_agg_link: link(&t.tor_agg_link),
            agg_core_link: link(&t.agg_core_link),
        }
        .build(),
        Described::Chain(t) => Chain {
            switches: t.switches,
            hosts_per_switch: t.hosts_per_switch,
            host_link: link(&t.host_link),
            fabric_link: link(&t.fabric_link),
        }
        .build(),
        Described::Ring(t) => Ring {
            switches: t.switches,
            hosts_per_switch: t.hosts_per_switch,
            host_link: link(&t.host_link),
            fabric_link: link(&t.fabric_link),
        }
        .build(),
        Described::File(t) => {
            let source = Source::read(&base.join(&t.path))
                .map_err(|error| Problem::new(error.to_string()).at(&keys!["topology", "path"]))?;
            text_of = Some(t.path.as_str());
            file::parse(&source.text)
        }
    };
    let topology = built.map_err(|error| match error {
        TopologyError::Value { key, found, allowed } => {
            let problem = Problem::value(found, allowed);
            key.rsplit('.').fold(problem, |problem, step| problem.under(step)).under("topology")
        }
        error => {
            let file = text_of.map(|path| format!("{path:?} ")).unwrap_or_default();
            Problem::new(format!("{file}{error}")).at(&keys!["topology", "path"])
        }
    })?;
    if topology.hosts < 2 {
        return Err(Problem::value(format!("{} hosts", topology.hosts), "at least 2 hosts").under("topology"));
    }
    Ok(topology)
}
