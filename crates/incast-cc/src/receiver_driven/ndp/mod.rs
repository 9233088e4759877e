//! NDP: switches trim packets that do not fit to their headers, and the receiver pulls everything after the first
//! window.
//!
//! Source: M. Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance",
//! SIGCOMM 2017. Packet trimming is a setting of the switches; hosts spray packets over a random permutation of the
//! paths.
//!
//! - The sender sends its first window without PULLs; after that, a packet for each PULL, trimmed ones first. Each
//!   packet that arrives whole is acknowledged, each trimmed one is answered with a NACK (sections 3.2 and 3.3).
//! - The receiver adds a PULL to its pull queue for each packet that arrives, whole or trimmed. It sends them at the
//!   pace of its link, to senders in turn (section 3.3). PULLs are numbered from the start of the flow, so that the
//!   next one makes up for a lost one. When a flow is complete, its PULLs are removed from the queue.
//! - The paper does not treat the loss of a flow's last PULL. Here the receiver repeats it when no packet has arrived
//!   for a timeout; that is idempotent.
//!
//! This file is the sender half, with the parameters; `receiver` is the receiver half, `messages` what it sends.

mod messages;
mod receiver;
#[cfg(test)]
mod tests;

pub use messages::Message;
pub use receiver::Receiver;

use super::Profile;
use crate::{
    Path,
    law::{Acknowledges, Framing, LawCapabilities, LawInfo, ReceiverDriven, Recovery, SendOrder, SenderLaw, Transport},
    message::Instruction,
    parameters::{ParameterError, Period, Raw, chosen},
};
use incast_units::{Bytes, Time};

crate::parameters!(Parameters {
    profile: Profile {
        doc: "Where the defaults of the constants come from.",
        default: "\"scaled\"",
        value: |_| Profile::Scaled,
        source: "ours: one scenario fits every rate; \"paper\" is the evaluation of Polo, ICPP 2020"
    },
    unscheduled: Bytes {
        doc: "Unscheduled payload bytes: one packet at least, as a receiver pulls only flows of \
            which a packet has arrived.",
        default: "BDP; paper: 12 packets",
        value: |path| path.bdp(),
        source: "SIGCOMM 2017, section 3.2: enough to fill the path; Polo, ICPP 2020: 12 packets"
    },
    pull_rate: f64 {
        doc: "Pace of PULLs, as a fraction of the rate at which full packets can arrive.",
        default: "1",
        value: |_| 1.0,
        allowed: "in (0, 1]",
        check: |rate| *rate > 0.0 && *rate <= 1.0,
        source: "SIGCOMM 2017, section 3.3; its authors' simulator runs with 0.99"
    },
    pull_timeout: Period {
        doc: "A PULL of which nothing has come for so long is repeated, if no other one is due.",
        default: "max(host.rto_min, 3 base RTT)",
        value: |path| Period::of(path.timeout()),
        source: "ours: the paper has no remedy for a lost last PULL"
    },
});

/// The sender of a flow.
#[derive(Clone, Debug)]
pub struct Ndp {
    unscheduled: u64,
}

impl SenderLaw for Ndp {
    type Parameters = Parameters;
    const INFO: LawInfo = LawInfo {
        name: "ndp",
        title: "NDP",
        source: "Handley et al., SIGCOMM 2017",
        framing: Framing::Tcp,
        recovery: Recovery::SelectiveRepeat,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities::NONE;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Parameters, ParameterError> {
        let mut defaults = Parameters::on(path);
        if chosen("profile", Profile::Scaled, given)? == Profile::Paper {
            defaults.unscheduled = Bytes::new(12 * u64::from(path.mss));
        }
        defaults.with(given)
    }
    fn values(parameters: &Parameters) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn transport(_parameters: &Parameters) -> Transport {
        Transport {
            acknowledges: Acknowledges::Packets,
            order: SendOrder::RoundRobin,
            trimmable: true,
            in_any_order: true,
            reminded: true,
            priority: 1,
            control_priority: Some(0),
            ..Transport::of(&Self::INFO)
        }
    }
    fn start(parameters: &Parameters, path: &Path, _now: Time, _random: u32) -> Self {
        Self { unscheduled: parameters.unscheduled.get().max(path.mss.into()) }
    }
}

impl ReceiverDriven for Ndp {
    type Receiver = Receiver;

    fn receiver(parameters: &Parameters, path: &Path) -> Receiver {
        Receiver::new(parameters, path)
    }
    #[inline]
    fn unscheduled(&self) -> u64 {
        self.unscheduled
    }
    #[inline]
    fn on_message(&mut self, _now: Time, message: Message) -> Option<Instruction> {
        Some(match message {
            Message::Pull { number } => Instruction::Tokens { in_all: number },
            // One byte stands for the packet at this position: its length is not in the message.
            Message::Nack { position } => Instruction::Resend { position, bytes: 1, priority: None },
        })
    }
}
