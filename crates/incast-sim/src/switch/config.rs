//! The configuration of switches.

use super::scheduler::config::Scheduling;
use crate::{
    fabric::{
        config::{Buffer, Size, also_off},
        trim::config::Trim,
    },
    flow_control::config::{Credits, Headroom, Pfc, Threshold},
    routing::config::LoadBalancing,
};
use incast_cc::{marking::Marking, registry::AgentParameters};
use incast_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::BTreeMap};

/// ECN marking of the egress queue, in bytes of the packet's own priority.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(tag = "kind", transform = also_off)]
pub enum Ecn {
    /// No marks. Also written `"off"` or `false`.
    #[default]
    Off,
    /// Every packet above a threshold is marked.
    Step {
        /// Threshold.
        at: Size,
    },
    /// Random early detection: the probability of a mark rises linearly from 0 at `min` to `p` at `max`, and is 1
    /// above.
    Red {
        /// Lower threshold.
        min: Size,
        /// Upper threshold.
        max: Size,
        /// Probability at `max`, in (0, 1].
        p: f64,
    },
    /// Random early detection with thresholds for each rate of ports.
    RedByRate {
        /// Thresholds, one table for each rate that a port of a switch has.
        rates: Vec<RedAtRate>,
    },
}

impl Ecn {
    /// The thresholds of a port of this rate, in bytes.
    pub fn marking(&self, rate: Rate, base_rtt: Time) -> Marking {
        let red = |min: Size, max: Size, p| Marking::Red {
            min: min.bytes(rate, base_rtt),
            max: max.bytes(rate, base_rtt),
            p,
        };
        match self {
            Self::Off => Marking::Off,
            Self::Step { at } => Marking::Step { at: at.bytes(rate, base_rtt) },
            Self::Red { min, max, p } => red(*min, *max, *p),
            Self::RedByRate { rates } => {
                rates.iter().find(|at| at.rate == rate).map_or(Marking::Off, |at| red(at.min, at.max, at.p))
            }
        }
    }
}

/// Random early detection at the ports of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedAtRate {
    /// The ports' rate.
    pub rate: Rate,
    /// Lower threshold.
    pub min: Size,
    /// Upper threshold.
    pub max: Size,
    /// Probability at `max`, in (0, 1].
    pub p: f64,
}

/// When the queue is compared with the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EcnAt")]
pub enum MarkAt {
    /// As a packet enters, with the queue that it finds (RFC 8257, section 3.1).
    #[default]
    Enqueue,
    /// As a packet leaves, with the queue that it leaves behind.
    Dequeue,
}

/// What becomes of packets that are not ECN-capable where others would be marked: data of laws without ECN, and control
/// packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotEct {
    /// They pass, up to the buffer: the thresholds are for those that can be marked.
    #[default]
    Pass,
    /// They are dropped, as RED of Linux and WRED of switches do (RFC 3168, section 7): where traffic with and without
    /// ECN shares a queue.
    Drop,
}

/// All switches of a fabric.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Buffer.
    pub buffer: Buffer,
    /// Marking.
    pub ecn: Ecn,
    /// When marking looks.
    pub mark_at: MarkAt,
    /// Packets that cannot be marked; dropped only as they enter, and not where flow control keeps them.
    pub not_ect: NotEct,
    /// Queues of each port, 1 to 8: strict priorities, of which 0 is the highest, or with virtual channels so many for
    /// each of them.
    pub priorities: u8,
    /// Which queue of a port sends next; other than strict not together with virtual channels or a weight of headers.
    pub scheduler: Scheduling,
    /// Virtual channels of each priority: queues that flow control pauses apart. Classes have
    /// [`Self::class_priorities`].
    pub virtual_channels: u8,
    /// Choice among equal-cost ports.
    pub load_balancing: LoadBalancing,
    /// In-switch algorithm.
    pub agent: AgentParameters,
    /// Packets carry a record of each hop's queue and rate; always where a class's law needs them.
    pub telemetry: bool,
    /// Priority flow control.
    pub pfc: Option<Pfc>,
    /// Packet trimming; not together with flow control or an in-switch algorithm.
    pub trim: Option<Trim>,
    /// Credit-based flow control; not together with priority flow control.
    pub credits: Option<Credits>,
    /// Switches that differ, by node.
    pub overrides: BTreeMap<u32, Override>,
}

/// What one switch may have of its own. Everything else is the same at all of them: the packet path, and what both ends of
/// a link must agree on.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// Buffer.
    pub buffer: Buffer,
    /// Marking.
    pub ecn: Ecn,
    /// When marking looks.
    pub mark_at: MarkAt,
    /// Packets that cannot be marked.
    pub not_ect: NotEct,
    /// With priority flow control: when neighbours are paused, and the buffer for what still arrives then.
    pub pfc: Option<(Threshold, Headroom)>,
}

impl SwitchConfig {
    /// Switches that do nothing but forward: unlimited buffer, no marks, one priority, ECMP.
    pub fn plain() -> Self {
        Self {
            buffer: Buffer::Unlimited,
            ecn: Ecn::Off,
            mark_at: MarkAt::Enqueue,
            not_ect: NotEct::Pass,
            priorities: 1,
            scheduler: Scheduling::Strict,
            virtual_channels: 1,
            load_balancing: LoadBalancing::Ecmp,
            agent: AgentParameters::None,
            telemetry: false,
            pfc: None,
            trim: None,
            credits: None,
            overrides: BTreeMap::new(),
        }
    }

    /// The configuration of one switch.
    pub fn at(&self, node: u32) -> Cow<'_, Self> {
        let Some(Override { buffer, ecn, mark_at, not_ect, pfc }) = self.overrides.get(&node) else {
            return Cow::Borrowed(self);
        };
        let own = |common: &Pfc| match *pfc {
            Some((threshold, headroom)) => Pfc { threshold, headroom, ..common.clone() },
            None => common.clone(),
        };
        Cow::Owned(Self {
            buffer: *buffer,
            ecn: ecn.clone(),
            mark_at: *mark_at,
            not_ect: *not_ect,
            pfc: self.pfc.as_ref().map(own),
            overrides: BTreeMap::new(),
            ..self.clone()
        })
    }

    /// The different configurations of some switches, each with those that have it.
    pub fn kinds(&self, nodes: impl IntoIterator<Item = u32>) -> Vec<(Cow<'_, Self>, Vec<u32>)> {
        let mut kinds: Vec<(Option<&Override>, Vec<u32>)> = Vec::new();
        for node in nodes {
            let own = self.overrides.get(&node);
            match kinds.iter_mut().find(|(kind, _)| *kind == own) {
                Some((_, alike)) => alike.push(node),
                None => kinds.push((own, vec![node])),
            }
        }
        kinds.into_iter().map(|(_, alike)| (self.at(alike[0]), alike)).collect()
    }

    /// The configurations of the switches that differ.
    pub fn others(&self) -> impl Iterator<Item = Cow<'_, Self>> {
        self.overrides.keys().map(|node| self.at(*node))
    }

    /// Priorities that classes can have.
    pub fn class_priorities(&self) -> u8 {
        self.priorities / self.virtual_channels.max(1)
    }
}
