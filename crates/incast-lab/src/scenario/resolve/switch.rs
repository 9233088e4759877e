//! `[switch]` to what the simulator wants.

use super::{
    super::{
        document::{
            credits::FlowControl,
            switch::{self as described, Switch},
            trim::Trimming,
        },
        error::Problem,
        tree::keys,
    },
    agent, credits,
    files::Files,
    pfc, trim,
};
use incast_cc::Path;
use incast_sim::{
    config::{Buffer, Ecn, LoadBalancing, MarkAt, RedAtRate, Size, SwitchConfig},
    topology::Topology,
};
use incast_units::{Rate, Time};

/// Checks and converts; `path` is for comparing thresholds with the memory and for the defaults of agents, the size of a full
/// packet for those of trimming.
pub fn resolve(
    switch: &Switch,
    topology: &Topology,
    path: &Path,
    full_frame: u32,
    files: &mut Files,
) -> Result<SwitchConfig, Problem> {
    if !(1..=8).contains(&switch.priorities) {
        return Err(Problem::value(switch.priorities, "1 to 8").at(&keys!["switch", "priorities"]));
    }
    if !(1..=switch.priorities).contains(&switch.virtual_channels) {
        let allowed = format!("1 to {}: switch.priorities are the queues of a port", switch.priorities);
        return Err(Problem::value(switch.virtual_channels, allowed).at(&keys!["switch", "virtual_channels"]));
    }
    let agent = agent::resolve(&agent::of(switch)?, path, files)
        .map_err(|problem| problem.at(&keys!["switch", "agent"]))?;
    let pfc = pfc::resolve(&switch.pfc, switch.priorities / switch.virtual_channels)?;
    let trim = trim::resolve(&switch.trim, switch.priorities, full_frame, pfc.as_ref(), !agent.is_none())?;
    let credits = credits::resolve(&switch.credits, pfc.as_ref(), trim.as_ref())?;
    Ok(SwitchConfig {
        buffer: buffer(switch, topology, path.wire_mss)?,
        ecn: ecn(&switch.ecn, topology, path.base_rtt)?,
        mark_at: match switch.ecn_at {
            described::EcnAt::Enqueue => MarkAt::Enqueue,
            described::EcnAt::Dequeue => MarkAt::Dequeue,
        },
        priorities: switch.priorities,
        virtual_channels: switch.virtual_channels,
        load_balancing: match switch.load_balancing {
            described::LoadBalancing::Ecmp | described::LoadBalancing::Iofd => LoadBalancing::Ecmp,
            described::LoadBalancing::Spray => LoadBalancing::Spray,
            described::LoadBalancing::Pinned => LoadBalancing::Pinned,
            described::LoadBalancing::Permuted => LoadBalancing::Permuted,
        },
        agent,
        telemetry: false,
        pfc,
        trim,
        credits,
    })
}

fn buffer(switch: &Switch, topology: &Topology, wire_mtu: u32) -> Result<Buffer, Problem> {
    let at = |key: &str, problem: Problem| problem.at(&keys!["switch", "buffer", key]);
    let Some(buffer) = &switch.buffer else {
        if switch.trim != Trimming::Off || switch.credits != FlowControl::Off {
            return Ok(Buffer::Unlimited);
        }
        return Err(Problem {
            allowed: Some("{ total = \"4MB\" }, { per_port = \"86KB\" } or { per_port_packets = 57 }".into()),
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
    if buffer.total.is_none() {
        for (key, given) in [("alpha", buffer.alpha.is_some()), ("reserve", buffer.reserve.is_some())] {
            if given {
                return Err(at(key, Problem::new("only a memory of `total` bytes has this key")));
            }
        }
    }
    match (buffer.total, buffer.per_port, buffer.per_port_packets) {
        (Some(total), None, None) => {
            let total = room("total", total.0.get())?;
            let alpha = buffer.alpha();
            if !(alpha > 0.0 && alpha <= 1024.0) {
                return Err(at("alpha", Problem::value(alpha, "above 0 and at most 1024")));
            }
            let reserve = buffer.reserve().get();
            let ports = topology.ports();
            let most = (topology.hosts..topology.hosts + topology.rules.len() as u32)
                .map(|node| ports.of(node).len() as u64)
                .max();
            let queues = most.unwrap_or(0) * u64::from(switch.priorities);
            if reserve.saturating_mul(queues) > total {
                let allowed = format!("at most {} B: {queues} queues share {total} B", total / queues.max(1));
                return Err(at("reserve", Problem::value(format!("{reserve} B"), allowed)));
            }
            Ok(Buffer::Shared { total, alpha: fraction(alpha), reserve })
        }
        (None, Some(bytes), None) => Ok(Buffer::PerPort { bytes: room("per_port", bytes.0.get())? }),
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
pub(super) fn fraction(alpha: f64) -> (u32, u32) {
    const DENOMINATOR: u32 = 1 << 20;
    let numerator = ((alpha * f64::from(DENOMINATOR)).round() as u32).max(1);
    let shift = numerator.trailing_zeros().min(20);
    (numerator >> shift, DENOMINATOR >> shift)
}

fn ecn(ecn: &described::Ecn, topology: &Topology, base_rtt: Time) -> Result<Ecn, Problem> {
    let at = |problem: Problem| problem.at(&keys!["switch", "ecn"]);
    match ecn {
        described::Ecn::Off => Ok(Ecn::Off),
        described::Ecn::Step(step) => Ok(Ecn::Step { at: step.at.0 }),
        described::Ecn::Red(red) => {
            check_red(red, base_rtt).map_err(at)?;
            Ok(Ecn::Red { min: red.min.0, max: red.max.0, p: red.p })
        }
        described::Ecn::RedByRate(described::RedByRate { rates }) => {
            for (index, at_rate) in rates.iter().enumerate() {
                let here = |problem: Problem| at(problem.at(&keys!["rates", index]));
                let &described::RedAtRate { rate, min, max, p } = at_rate;
                check_red(&described::Red { min, max, p }, base_rtt).map_err(here)?;
                if rates[..index].iter().any(|other| other.rate == rate) {
                    return Err(here(Problem::new(format!("the rate {rate} is given twice")).under("rate")));
                }
            }
            let without = |rate: &Rate| rates.iter().all(|red| red.rate.0 != *rate);
            // A host's port is no switch's, but the other end of its link is.
            if let Some(rate) = topology.cables.iter().map(|cable| cable.link.rate).find(without) {
                let problem = Problem::new(format!("there are ports of {rate}, but no thresholds for them"));
                return Err(at(problem.under("rates")));
            }
            let red = |red: &described::RedAtRate| RedAtRate {
                rate: red.rate.0,
                min: red.min.0,
                max: red.max.0,
                p: red.p,
            };
            Ok(Ecn::RedByRate(rates.iter().map(red).collect()))
        }
    }
}

fn check_red(red: &described::Red, base_rtt: Time) -> Result<(), Problem> {
    if !(red.p > 0.0 && red.p <= 1.0) {
        return Err(Problem::value(red.p, "above 0 and at most 1").under("p"));
    }
    let comparable = |size: Size| size.bytes(Rate::from_gbps(100), base_rtt);
    if comparable(red.min.0) > comparable(red.max.0) {
        return Err(Problem::value(red.min, format!("at most max, {}", red.max)).under("min"));
    }
    Ok(())
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
