//! Cisco NX-OS, of one switch: marks, flow control and the order of queues.
//!
//! Commands: scripts for RoCE fabrics of AMD and Cisco, and Microsoft's switch reference for Azure Local. No device was
//! asked.

use super::{
    Refused, Wanted, Written,
    ports::{Class, Port},
    queues::{Order, has_data, orders, ramp, watchdog_note},
    rounding::percent,
    switch::{Switch, Tested, short},
};
use std::fmt::Write as _;

/// Bytes of the unit of thresholds, `kbytes`.
pub const UNIT: u64 = 1_000;

/// The lines for switches of a kind whose device has these ports. `classes` are the queues of the priorities in use.
///
/// # Errors
/// What such a switch cannot be told.
pub fn write(wanted: &Wanted, switch: &Switch, ports: &[Port], classes: &[Class]) -> Result<Written, Refused> {
    let Tested { device, mut notes } = switch.tested(wanted, ports, classes)?;
    let mut text = format!(
        "! {}\n! Cisco NX-OS: ECN, flow control, and which queue sends next. Not tried on a device.\n",
        wanted.origin()
    );
    for class in classes {
        let dscp = class.dscp.unwrap_or(0);
        let _ = writeln!(text, "! priority {} of the scenario", class.priority);
        let _ = writeln!(text, "class-map type qos match-any INCAST-{}\n  match dscp {dscp}", class.tc);
    }
    text += "policy-map type qos INCAST-IN\n";
    for class in classes {
        let _ = writeln!(text, "  class INCAST-{}\n    set qos-group {}", class.tc, class.tc);
    }
    let lossless: Vec<&Class> = classes.iter().filter(|class| switch.is_lossless(class)).collect();
    if !lossless.is_empty() {
        text += "policy-map type network-qos INCAST-NQ\n";
        for class in &lossless {
            let _ =
                writeln!(text, "  class type network-qos c-8q-nq{0}\n    pause pfc-cos {0}\n    mtu 9216", class.tc);
        }
    }
    let orders = orders(&switch.own.scheduler, classes, &mut notes);
    for (kind, _) in &device {
        let _ = writeln!(text, "policy-map type queuing INCAST-OUT-{}", short(kind.rate).to_uppercase());
        for queue in (0..8u8).rev() {
            let name = if queue == 0 { "c-out-8q-q-default".to_owned() } else { format!("c-out-8q-q{queue}") };
            let _ = writeln!(text, "  class type queuing {name}");
            let used = classes.iter().zip(&orders).find(|(class, _)| class.tc == queue);
            let marked = used.filter(|(class, _)| has_data(wanted, class));
            match used.map(|(_, order)| order) {
                Some(Order::Strict(level)) => {
                    let _ = writeln!(text, "    priority level {level}");
                }
                Some(Order::Share(share)) => {
                    let _ = writeln!(text, "    bandwidth remaining percent {share}");
                }
                None => text += "    bandwidth remaining percent 0\n",
            }
            if let (Some(_), Some((min, max, p))) = (marked, ramp(kind.marking)) {
                let ((least, most), (percent, _)) = ((kbytes(min), kbytes(max)), percent(p));
                for (exact, taken) in [(min, least * UNIT), (max, most * UNIT)] {
                    let note = format!(
                        "switch.ecn: {exact} B in the scenario, {taken} B on the device (--as-rounded writes it back)"
                    );
                    if exact != taken && !notes.contains(&note) {
                        notes.push(note);
                    }
                }
                let _ = writeln!(
                    text,
                    "    random-detect minimum-threshold {least} kbytes maximum-threshold {most} kbytes \
                     drop-probability {percent} weight 0 ecn"
                );
            }
        }
    }
    if !lossless.is_empty() {
        text +=
            "priority-flow-control watch-dog-interval on\nsystem qos\n  service-policy type network-qos INCAST-NQ\n";
        notes.push(watchdog_note());
    }
    for (kind, found) in &device {
        for port in found {
            let _ = writeln!(text, "interface {}", port.name);
            if !lossless.is_empty() {
                text += "  priority-flow-control mode on\n  priority-flow-control watch-dog-interval on\n";
            }
            let out = short(kind.rate).to_uppercase();
            let _ = writeln!(
                text,
                "  service-policy type qos input INCAST-IN\n  service-policy type queuing output INCAST-OUT-{out}"
            );
        }
    }
    if classes.iter().all(|class| class.tc != 0) {
        notes.push("what is in no class, such as routing and storage at DSCP 0, has the default queue, without a share of its own here".into());
    }
    notes.push("kbytes are taken for 1,000 B each: whether the device has 1,024 is not known here".into());
    Ok(Written { files: vec![("incast.nxos", text)], notes })
}

/// Whole units of a threshold, at least one.
pub fn kbytes(bytes: u64) -> u64 {
    ((bytes + UNIT / 2) / UNIT).max(1)
}
