//! On-Ramp on a Linux host: what `onrampctl load --config` reads (`deploy/linux/onrampctl/README.md`).

use super::Wanted;
use incast_cc::{Path, parameters::Raw};
use incast_sim::config::ClassConfig;
use incast_units::Time;
use std::fmt::Write as _;

/// Half of Linux's least retransmission timeout: `onrampctl` holds no packet for longer.
const HOLD_MAX: Time = Time::from_ms(100);
/// `floor` of `onrampctl`: no threshold of a path is less.
const FLOOR: Time = Time::from_us(50);
/// What a host has whatever a scenario says, and as what.
pub(super) const OF_THE_HOST: [(&str, &str); 4] =
    [("scope", "destination"), ("reports", "acks"), ("rtt", "stack"), ("base_delay", "path")];
/// Releases that a host has.
const RELEASES: [&str; 2] = ["burst", "paced"];

/// The file of a scheme whose packets are held; `None` without an underlay. Notes say what a host does otherwise.
///
/// # Errors
/// What a host cannot be told.
pub fn write(wanted: &Wanted, notes: &mut Vec<String>) -> Result<Option<String>, Vec<String>> {
    let classes = wanted.classes();
    let mut found: Vec<_> = classes.iter().map(|class| class.underlay.values()).collect();
    found.dedup();
    let [values] = &found[..] else {
        return Err(vec![
            "underlay: classes have different ones; a host holds all packets to a destination alike: --class NAME is for hosts of one class"
                .into(),
        ]);
    };
    if values.is_empty() {
        return Ok(None);
    }
    let of = |name: &str| values.iter().find(|(key, _)| *key == name).map(|(_, raw)| text(raw)).unwrap_or_default();
    let time = |name: &str| of(name).parse::<Time>().unwrap_or_default();
    let mut refused = Vec::new();
    if !RELEASES.contains(&of("release").as_str()) {
        refused.push(format!("underlay.release: found {}, a host has {}", of("release"), RELEASES.join(" or ")));
    }
    if time("max_hold") > HOLD_MAX {
        refused.push(format!(
            "underlay.max_hold: found {}, a host holds for at most {HOLD_MAX}, half of Linux's least retransmission timeout",
            time("max_hold")
        ));
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    let other = OF_THE_HOST.iter().filter(|(key, value)| of(key) != *value);
    let other: Vec<String> = other.map(|(key, value)| format!("{key} = \"{value}\"")).collect();
    if !other.is_empty() {
        notes.push(format!("underlay: hosts have {}; simulate that to see what it does", other.join(", ")));
    }
    if let Some((spread, usual)) = classes.first().and_then(|class| other_spread(class, &wanted.path)) {
        notes.push(format!(
            "underlay.spread: {spread} in the scenario, {usual} on the host, a fifth of what the threshold leaves for the queue (--as-rounded writes it back)"
        ));
    }
    if wanted.config.clocks.is_empty() {
        notes.push(
            "underlay: clocks were simulated as exact; host.clock has what those of hosts are (docs/clocks.md)".into(),
        );
    }
    if is_of_the_path(&wanted.path, time("threshold")) {
        notes.extend(floor(&wanted.path));
    }
    notes.push(
        "On-Ramp: fq nopacing at the device, `onrampctl load --config onramp.conf DEVICE`, then `onrampctl enable` after routes.sh, \
         which takes off what enable has set; receivers first (deploy/linux/onrampctl/README.md, Rollout)"
            .into(),
    );
    Ok(Some(file(wanted, &of, time("threshold"))))
}

/// The spread of a class's underlay, and that of hosts, where they differ and matter.
pub(super) fn other_spread(class: &ClassConfig, path: &Path) -> Option<(Time, Time)> {
    let values = class.underlay.values();
    let of = |name: &str| values.iter().find(|(key, _)| *key == name).map(|(_, raw)| text(raw));
    let time = |name: &str| of(name)?.parse::<Time>().ok();
    let spread = time("spread").filter(|_| of("release").as_deref() == Some("paced"))?;
    let usual = Time::from_ps(time("threshold")?.saturating_sub(path.least_delay).ps() / 5);
    (spread != usual).then_some((spread, usual))
}

/// Whether a threshold is the delay without a queue and two round trips of it.
fn is_of_the_path(path: &Path, threshold: Time) -> bool {
    threshold == path.base_rtt.saturating_mul(5) / 2
}

/// Where the thresholds of paths are less than hosts allow.
fn floor(path: &Path) -> Option<String> {
    let (least, most) = (path.least_delay.saturating_mul(4), path.base_rtt.saturating_mul(2));
    let which = if most < FLOOR { "all paths" } else { "the shortest paths" };
    (least.min(most) < FLOOR).then(|| {
        format!(
            "underlay.threshold: twice the least round trip is {} on {which}, and a host's threshold = path is never below its floor, {FLOOR}: \
             there it is {FLOOR}. In onramp.conf `threshold` gives another one, and `floor` a lower bound where time stamps are exact enough",
            least.min(most)
        )
    })
}

/// Hosts count delays from the least one, so that their threshold is of the queue alone; by default twice the least round trip.
fn file(wanted: &Wanted, of: &dyn Fn(&str) -> String, threshold: Time) -> String {
    let mut text = format!("# {}\n# Into /etc/onramp, or for onrampctl load --config.\n\n", wanted.origin());
    let path = &wanted.path;
    let queue = threshold.saturating_sub(path.least_delay);
    if is_of_the_path(path, threshold) {
        text += "# Twice the least round trip of each path.\nthreshold = path\n";
    } else {
        let _ = writeln!(text, "# {threshold} in the scenario, of which {} are the path.", path.least_delay);
        let _ = writeln!(text, "threshold = {}", nanoseconds(queue));
    }
    for key in ["max_hold", "reference"] {
        let _ = writeln!(text, "{key} = {}", nanoseconds(of(key).parse().unwrap_or_default()));
    }
    for key in ["variant", "beta", "release"] {
        let _ = writeln!(text, "{key} = {}", of(key));
    }
    text
}

fn nanoseconds(time: Time) -> String {
    format!("{}ns", (time.ps() / 1_000).max(1))
}

fn text(raw: &Raw) -> String {
    match raw {
        Raw::Text(text) => text.clone(),
        raw => raw.to_string(),
    }
}
