//! Arista EOS, of one switch: marks, flow control and the order of queues.
//!
//! Commands: configurations of RoCE fabrics that vendors of NICs publish, and the schema of Arista's AVD, which renders the
//! same lines. No device was asked.

use super::{
    Refused, Wanted, Written,
    ports::{Class, Port},
    queues::{Order, has_data, orders, ramp, watchdog_note},
    rounding::percent,
    switch::{Switch, Tested, short},
};
use std::fmt::Write as _;

/// The largest threshold.
const MOST_BYTES: u64 = 256_000_000;
/// Seconds in which a watchdog finds a pause that does not end, and in which it lets the queue be.
const WATCHDOG: [(&str, &str); 3] = [("timeout", "0.2"), ("recovery-time", "0.2"), ("polling-interval", "0.1")];

/// The lines for switches of a kind whose device has these ports. `classes` are the queues of the priorities in use.
///
/// # Errors
/// What such a switch cannot be told.
pub fn write(wanted: &Wanted, switch: &Switch, ports: &[Port], classes: &[Class]) -> Result<Written, Refused> {
    let Tested { device, mut notes } = switch.tested(wanted, ports, classes)?;
    let marks = device.iter().filter_map(|(kind, _)| Some((ramp(kind.marking)?.1, kind.rate)));
    if let Some((most, rate)) = marks.max().filter(|(most, _)| *most > MOST_BYTES) {
        return Err(Refused(vec![format!(
            "switch.ecn: {most} B at ports of {rate}, allowed is at most {MOST_BYTES} B"
        )]));
    }
    let mut text = format!(
        "! {}\n! Arista EOS: ECN, flow control, and which queue sends next. Not tried on a device.\n",
        wanted.origin()
    );
    for class in classes {
        let dscp = class.dscp.unwrap_or(0);
        let _ = writeln!(text, "! priority {} of the scenario", class.priority);
        let _ = writeln!(text, "qos map dscp {dscp} to traffic-class {}", class.tc);
    }
    let lossless: Vec<&Class> = classes.iter().filter(|class| switch.is_lossless(class)).collect();
    if !lossless.is_empty() {
        for (what, seconds) in WATCHDOG {
            let _ = writeln!(text, "priority-flow-control pause watchdog default {what} {seconds}");
        }
        text += "priority-flow-control pause watchdog action drop\n";
        notes.push(watchdog_note());
    }
    let orders = orders(&switch.own.scheduler, classes, &mut notes);
    for (kind, found) in &device {
        let profile = format!("INCAST-{}", short(kind.rate).to_uppercase());
        let _ = writeln!(text, "qos profile {profile}\n   qos trust dscp");
        if !lossless.is_empty() {
            text += "   priority-flow-control on\n";
        }
        for class in &lossless {
            let _ = writeln!(text, "   priority-flow-control priority {} no-drop", class.tc);
        }
        for (class, order) in classes.iter().zip(&orders) {
            let _ = writeln!(text, "   uc-tx-queue {}", class.tc);
            match order {
                Order::Strict(_) => text += "      priority strict\n",
                Order::Share(share) => {
                    let _ = writeln!(text, "      no priority\n      bandwidth percent {share}");
                }
            }
            if let Some((min, max, p)) = ramp(kind.marking).filter(|_| has_data(wanted, class)) {
                let (percent, _) = percent(p);
                let _ = writeln!(
                    text,
                    "      random-detect ecn minimum-threshold {min} bytes maximum-threshold {max} bytes \
                     max-mark-probability {percent} weight 0"
                );
            }
        }
        for port in found {
            let _ = writeln!(text, "interface {}\n   service-profile {profile}", port.name);
        }
    }
    notes.push("uc-tx-queue is the word of Trident and Tomahawk; on Jericho it is tx-queue".into());
    Ok(Written { files: vec![("incast.eos", text)], notes })
}
