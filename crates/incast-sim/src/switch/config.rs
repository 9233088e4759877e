//! The configuration of switches.

use super::scheduler::config::Scheduling;
use crate::{
    fabric::{
        config::{Buffer, Size, also_off},
        trim::config::Trim,
    },
    flow_control::config::{Credits, Pfc},
    routing::config::LoadBalancing,
};
use incast_cc::registry::AgentParameters;
use incast_units::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
        }
    }

    /// Priorities that classes can have.
    pub fn class_priorities(&self) -> u8 {
        self.priorities / self.virtual_channels.max(1)
    }
}
