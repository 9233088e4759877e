//! What On-Ramp needs of a route: time stamps in microseconds, and an acknowledgement for each packet.

use hostctl::{
    Tool,
    failure::{Failure, Outcome},
    netlink::{Metrics, Setting},
};

/// Metrics of a route that libc does not name (`linux/rtnetlink.h`).
const RTAX_FEATURES: u16 = 12;
const RTAX_QUICKACK: u16 = 15;
/// Connections over the route stamp in microseconds, since Linux 6.7.
const RTAX_FEATURE_TCP_USEC_TS: u32 = 1 << 4;

/// The setting's name: that of `ip route`, whose `quickack 1` belongs to it.
pub const NAME: &str = "tcp_usec_ts";

/// The two attributes of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    microseconds: bool,
    quickack: Option<u32>,
}

fn number(content: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(content.get(..4)?.try_into().ok()?))
}

impl Setting for Stamps {
    const KIND: &'static str = "attributes";

    fn read(metrics: &Metrics) -> Self {
        let features = metrics.get(RTAX_FEATURES).and_then(number).unwrap_or(0);
        Self {
            microseconds: features & RTAX_FEATURE_TCP_USEC_TS != 0,
            quickack: metrics.get(RTAX_QUICKACK).and_then(number),
        }
    }

    fn write(&self, metrics: &mut Metrics) {
        let others = metrics.get(RTAX_FEATURES).and_then(number).unwrap_or(0) & !RTAX_FEATURE_TCP_USEC_TS;
        let features = if self.microseconds { others | RTAX_FEATURE_TCP_USEC_TS } else { others };
        metrics.set(RTAX_FEATURES, (features != 0).then(|| features.to_ne_bytes().to_vec()));
        metrics.set(RTAX_QUICKACK, self.quickack.map(|quickack| quickack.to_ne_bytes().to_vec()));
    }

    fn name(&self) -> Option<String> {
        (self.microseconds && self.quickack == Some(1)).then(|| NAME.to_owned())
    }

    fn named(self, _name: &str) -> Self {
        Self { microseconds: true, quickack: Some(1) }
    }

    fn in_words(&self) -> String {
        let features = self.microseconds.then(|| format!("features {NAME}"));
        let quickack = self.quickack.map(|quickack| format!("quickack {quickack}"));
        let words: Vec<_> = features.into_iter().chain(quickack).collect();
        if words.is_empty() { "none".into() } else { words.join(" ") }
    }
}

/// This program, for what it shares with others.
pub struct OnRamp;

impl Tool for OnRamp {
    type Setting = Stamps;
    const PROGRAM: &'static str = "onrampctl";
    const SUBJECT: &'static str = "On-Ramp";
    const RUN: &'static str = "/run/onramp";
    const STATE: &'static str = "/var/lib/onramp";
    const INSTEAD: &'static str = "";

    fn registered() -> Outcome<Vec<String>> {
        match crate::bpf::lacking() {
            Some(lacking) => Err(Failure::failed(lacking)),
            None => Ok(vec![NAME.into()]),
        }
    }

    /// An administrator may stamp in microseconds for other reasons: only the journal knows what is ours.
    fn is_own(_name: &str) -> bool {
        false
    }
}
