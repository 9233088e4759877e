//! Scheduling of the queues of a port, as configured.

use crate::fabric::config::also;
use incast_units::Bytes;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

/// Which queue of a port sends next. Deficit weighted round robin: M. Shreedhar and G. Varghese, IEEE/ACM Transactions
/// on Networking 1996.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Scheduler", tag = "kind", transform = also_strict)]
pub enum Scheduling {
    /// The highest priority. Also written `"strict"`. With a weight of headers, headers and data alternate; virtual
    /// channels of one priority do.
    #[default]
    Strict,
    /// Deficit weighted round robin of all queues.
    Dwrr {
        /// The weight of each priority, the highest first.
        weights: Vec<u16>,
        /// Bytes that a visit of a queue adds for each unit of its weight. Default: one full frame.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quantum: Option<Bytes>,
    },
    /// The highest priorities are strict, before deficit weighted round robin of the others.
    StrictOverDwrr {
        /// So many of the highest priorities are strict.
        #[serde(default = "one")]
        strict: u8,
        /// The weight of each other priority, the highest first.
        weights: Vec<u16>,
        /// Bytes that a visit of a queue adds for each unit of its weight. Default: one full frame.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quantum: Option<Bytes>,
    },
}

/// `"strict"` stands for the table `{ kind = "strict" }`.
fn also_strict(schema: &mut Schema) {
    also(schema, "strict");
}

fn one() -> u8 {
    1
}

/// What both kinds of deficit round robin have.
#[derive(Clone, Copy, Debug)]
pub struct Dwrr<'a> {
    /// So many of the highest priorities are strict, before all others.
    pub strict: u8,
    /// Weights of the other priorities, in their order.
    pub weights: &'a [u16],
    /// Bytes that a visit adds for each unit of weight; `None` for one full frame.
    pub quantum: Option<Bytes>,
}

impl Scheduling {
    /// Deficit round robin, if there is any.
    pub fn dwrr(&self) -> Option<Dwrr<'_>> {
        match *self {
            Self::Strict => None,
            Self::Dwrr { ref weights, quantum } => Some(Dwrr { strict: 0, weights, quantum }),
            Self::StrictOverDwrr { strict, ref weights, quantum } => Some(Dwrr { strict, weights, quantum }),
        }
    }
}
