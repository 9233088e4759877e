//! `switch.trim` to what the simulator wants.

use super::{
    super::document::trim::{Room, Trim as Described, Weight},
    resolved::Resolved,
};
use crate::scenario::tree::{error::Problem, place::keys};
use incast_sim::config::{Limit, Pfc, Trim};
use incast_units::Bytes;

fn at(key: &str, problem: Problem) -> Problem {
    problem.at(&keys!["switch", "trim", key])
}

/// Checks and converts. `full_frame` is the size of a full packet.
pub fn resolve(
    trim: Option<&Described>,
    priorities: u8,
    full_frame: u32,
    pfc: Option<&Pfc>,
    has_agent: bool,
) -> Result<Option<Trim>, Problem> {
    let Some(trim) = trim else { return Ok(None) };
    let Described { queue, header_queue, victim, header_weight, return_to_sender } = *trim;
    let here = |problem: Problem| problem.at(&keys!["switch", "trim"]);
    if priorities < 2 {
        let allowed = "at least 2 where switches trim: 0 is that of headers, data has the others";
        return Err(Problem::value(priorities, allowed).at(&keys!["switch", "priorities"]));
    }
    if pfc.is_some() {
        return Err(here(Problem::new(
            "switches that trim have no switch.pfc: what is paused is not trimmed",
        )));
    }
    if has_agent {
        return Err(here(Problem::new("switches that trim have no switch.agent")));
    }
    let headers = header_queue.unwrap_or_else(|| {
        Room::Bytes(Bytes::new(
            2 * match queue {
                Room::Packets(packets) => u64::from(packets) * u64::from(full_frame),
                Room::Bytes(bytes) => bytes.get(),
            },
        ))
    });
    Ok(Some(Trim {
        queue: limit("queue", queue, full_frame)?,
        // Headers are small, and control packets are.
        headers: limit("header_queue", headers, 64)?,
        victim,
        header_weight: match header_weight {
            Weight::Packets(0) => {
                return Err(at("header_weight", Problem::value(0, "1 packet or more, or \"strict\"")));
            }
            Weight::Packets(packets) => Some(packets),
            Weight::Strict => None,
        },
        return_to_sender,
    }))
}

fn limit(key: &str, room: Room, least: u32) -> Result<Limit, Problem> {
    match room {
        Room::Packets(0) => Err(at(key, Problem::value(0, "1 packet or more"))),
        Room::Packets(packets) => Ok(Limit::Packets(packets)),
        Room::Bytes(bytes) if bytes.get() < u64::from(least) => {
            Err(at(key, Problem::value(bytes, format!("at least one packet, {least} B"))))
        }
        Room::Bytes(bytes) => Ok(Limit::Bytes(bytes.get())),
    }
}

/// What makes trimming less than it seems.
pub fn warnings(scheme: &Resolved) -> Vec<String> {
    if scheme.switch.trim.is_none() {
        return Vec::new();
    }
    let name = &scheme.name;
    let trimmable = || scheme.classes.iter().filter(|class| class.trimmable);
    if trimmable().next().is_none() {
        return vec![format!(
            "scheme {name}: switch.trim has no effect, as no law of it has its packets trimmed"
        )];
    }
    let highest = trimmable().filter(|class| class.priority == 0);
    let highest = highest.map(|class| {
        format!(
            "scheme {name}: data of the class {} has priority 0, which is that of headers: it is not trimmed",
            class.name
        )
    });
    highest.collect()
}
