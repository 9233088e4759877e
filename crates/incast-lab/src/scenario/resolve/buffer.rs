//! `switch.buffer` to the simulator's configuration.

use super::group::Group;
use crate::scenario::document::switch::{Buffer as SwitchBuffer, Switch};
use crate::scenario::tree::{error::Problem, place::keys};
use incast_sim::config::Buffer;
use incast_units::Bytes;

/// Checks and converts; a full packet has `wire_mtu` bytes.
pub fn resolve(switch: &Switch, group: &Group<'_>, wire_mtu: u32) -> Result<Buffer, Problem> {
    let at = |key: &str, problem: Problem| problem.at(&keys!["switch", "buffer", key]);
    if let Some(chip) = switch.chip
        && let Some((node, sum)) = group.fastest().filter(|(_, sum)| *sum > chip.rate())
    {
        let name = &group.topology.names[node as usize];
        let allowed = format!("a chip of {sum} or more, or fewer links");
        let found = format!("{chip} of {}, and the ports of {name} have {sum} together", chip.rate());
        return Err(Problem::value(found, allowed).at(&keys!["switch", "chip"]));
    }
    let chips = switch.chip.map(|_| SwitchBuffer::default());
    let Some(buffer) = switch.buffer.as_ref().or(chips.as_ref()) else {
        if switch.trim.0.is_some() || switch.credits.0.is_some() {
            return Ok(Buffer::Unlimited);
        }
        return Err(Problem {
            allowed: Some(
                "{ total = \"4MB\" }, { per_port = \"86KB\" } or { per_port_packets = 57 }, or a `chip` such as \"tomahawk4\""
                    .into(),
            ),
            ..Problem::new("the key `buffer` is missing")
        }
        .under("switch"));
    };
    let least = u64::from(wire_mtu);
    let room = |key: &str, bytes: u64| {
        if bytes < least {
            Err(at(key, Problem::value(format!("{bytes} B"), format!("at least one full packet, {least} B"))))
        } else {
            Ok(bytes)
        }
    };
    let has_size = buffer.total.is_some() || buffer.per_port.is_some() || buffer.per_port_packets.is_some();
    let of_chip = switch.chip.filter(|_| !has_size).map(|chip| Bytes::new(chip.pool()));
    let total = buffer.total.or(of_chip);
    if total.is_none() {
        for (key, given) in [("alpha", buffer.alpha.is_some()), ("reserve", buffer.reserve.is_some())] {
            if given {
                return Err(at(key, Problem::new("only a buffer of `total` bytes has this key")));
            }
        }
    }
    match (total, buffer.per_port, buffer.per_port_packets) {
        (Some(total), None, None) => {
            let total = room("total", total.get())?;
            let alpha = buffer.alpha();
            if !(alpha > 0.0 && alpha <= 1024.0) {
                return Err(at("alpha", Problem::value(alpha, "above 0 and at most 1024")));
            }
            let reserve = buffer.reserve().get();
            let queues = group.most_ports() * u64::from(switch.priorities);
            if reserve.saturating_mul(queues) > total {
                let allowed = format!("at most {} B: {queues} queues share {total} B", total / queues.max(1));
                return Err(at("reserve", Problem::value(format!("{reserve} B"), allowed)));
            }
            Ok(Buffer::Shared { total, alpha: fraction(alpha), reserve })
        }
        (None, Some(bytes), None) => Ok(Buffer::PerPort { bytes: room("per_port", bytes.get())? }),
        (None, None, Some(0)) => Err(at("per_port_packets", Problem::value(0, "1 packet or more"))),
        (None, None, Some(packets)) => Ok(Buffer::PerPortPackets { packets }),
        (total, per_port, packets) => Err(Problem::exactly_one(&[
            ("total", total.is_some()),
            ("per_port", per_port.is_some()),
            ("per_port_packets", packets.is_some()),
        ])
        .at(&keys!["switch", "buffer"])),
    }
}

/// The nearest fraction with a denominator of at most 2^20, in lowest terms.
fn fraction(alpha: f64) -> (u32, u32) {
    const DENOMINATOR: u32 = 1 << 20;
    let numerator = ((alpha * f64::from(DENOMINATOR)).round() as u32).max(1);
    let shift = numerator.trailing_zeros().min(20);
    (numerator >> shift, DENOMINATOR >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphas_are_exact_where_they_are_binary() {
        assert_eq!(fraction(1.0), (1, 1));
        assert_eq!(fraction(0.125), (1, 8));
        assert_eq!(fraction(8.0), (8, 1));
        let (numerator, denominator) = fraction(0.3);
        assert!((f64::from(numerator) / f64::from(denominator) - 0.3).abs() < 1e-6);
    }
}
