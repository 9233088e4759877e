//! Sizes of a law's frames: those of its transport, of the `profile`, or of `host.frames`.

use crate::scenario::document::{host::Frames, profile::Profile};
use crate::scenario::tree::{error::Problem, place::keys};
use incast_cc::{law::LawInfo, registry::LawParameters};
use incast_sim::fabric::format::Format;
use incast_units::Bytes;

/// Most bytes of a header or a control frame.
const MOST: u64 = 1000;

/// Sizes of a law's frames. Faults are those of `host.frames`.
pub fn format(law: &LawInfo, profile: Profile, frames: Option<&Frames>) -> Result<Format, Problem> {
    let standard = match profile {
        Profile::Standard => Format::of(law.framing),
        Profile::HpccLineage => hpcc_lineage(law),
    };
    let Some(frames) = frames else { return Ok(standard) };
    let size = |key: &str, given: Option<Bytes>, least: u64, otherwise: u32| {
        bytes(given, least, otherwise).map_err(|problem| problem.at(&keys!["host", "frames", key]))
    };
    Ok(Format {
        header: size("header", frames.header, 0, standard.header)?,
        control: size("control", frames.control, 1, standard.control)?,
        notification: size("notification", frames.notification, 1, standard.notification)?,
        smallest: size("min_size", frames.min_size, 1, standard.smallest)?,
        blocks: standard.blocks,
    })
}

fn bytes(given: Option<Bytes>, least: u64, otherwise: u32) -> Result<u32, Problem> {
    match given {
        None => Ok(otherwise),
        Some(size) if (least..=MOST).contains(&size.get()) => Ok(size.get() as u32),
        Some(size) => Err(Problem::value(size, format!("{least}B to {MOST}B"))),
    }
}

/// Frames of HPCC's ns-3 simulator: PPP 14, IPv4 20, UDP 8 and sequence 6 bytes, then what the law carries in band; an
/// acknowledgement has 12 in place of UDP and sequence, and at least 60 bytes. Data is not padded.
fn hpcc_lineage(law: &LawInfo) -> Format {
    let in_band = LawParameters::hpcc_in_band(law.name);
    let control = (14 + 20 + 12 + in_band).max(60);
    Format { header: 14 + 20 + 8 + 6 + in_band, control, notification: 60, smallest: 1, blocks: false }
}
