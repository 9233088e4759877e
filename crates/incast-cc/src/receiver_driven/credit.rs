//! The sender of receiver-driven protocols: an unscheduled first window, then only what the receiver allows.
//!
//! Sources: P. X. Gao et al., "pHost", CoNEXT 2015 (free tokens at the start of a flow); M. Handley et al., "NDP",
//! SIGCOMM 2017 (the first window); B. Montazeri et al., "Homa", SIGCOMM 2018 (unscheduled bytes, `RTTbytes`).
//! All three send about one BDP before the receiver can have answered. [`WindowCredit`] sets the pace afterwards; it
//! repeats credit that is lost.

use crate::law::{Framing, LawCapabilities, LawInfo, ReceiverDriven, Recovery, SenderLaw};
use crate::{
    Path,
    message::Instruction,
    parameters::{ParameterError, Raw},
    scheduler::{Arrival, ReceiverScheduler},
};
use incast_units::{Bytes, Time};
use std::convert::Infallible;

crate::parameters!(Parameters {
    unscheduled: Bytes {
        doc: "Payload bytes that are sent without credit.",
        default: "BDP",
        value: |path| path.bdp(),
        source: "Homa, SIGCOMM 2018, section 3.2 (RTTbytes)"
    },
});

/// State of a flow.
#[derive(Clone, Debug)]
pub struct Credit {
    unscheduled: u64,
}

impl SenderLaw for Credit {
    type Parameters = Parameters;
    const INFO: LawInfo = LawInfo {
        name: "credit",
        title: "receiver credit",
        source: "pHost, CoNEXT 2015; NDP, SIGCOMM 2017; Homa, SIGCOMM 2018: their sender side",
        framing: Framing::Tcp,
        recovery: Recovery::SelectiveRepeat,
        ecn_capable: false,
        parameters: Parameters::TABLE,
    };
    const CAPABILITIES: LawCapabilities = LawCapabilities::NONE;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Parameters, ParameterError> {
        Parameters::resolve(path, given)
    }
    fn values(parameters: &Parameters) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn start(parameters: &Parameters, _path: &Path, _now: Time, _random: u32) -> Self {
        Self { unscheduled: parameters.unscheduled.get() }
    }
}

impl ReceiverDriven for Credit {
    type Receiver = WindowCredit;

    fn receiver(parameters: &Parameters, _path: &Path) -> WindowCredit {
        // Receivers keep as much credit ahead of what has arrived as is sent unscheduled.
        WindowCredit { ahead: parameters.unscheduled.get(), priority: None }
    }
    #[inline]
    fn unscheduled(&self) -> u64 {
        self.unscheduled
    }
    fn on_message(&mut self, _now: Time, instruction: Instruction) -> Option<Instruction> {
        Some(instruction)
    }
}

/// The receiver: answers each data packet of an unfinished flow with credit ahead of what has arrived.
#[derive(Clone, Debug, Default)]
pub struct WindowCredit {
    /// Bytes that each flow may be ahead.
    pub ahead: u64,
    /// Priority of what is sent on credit; `None` leaves it to the flow's class.
    pub priority: Option<u8>,
}

impl ReceiverScheduler for WindowCredit {
    type Message = Instruction;
    type Signal = Infallible;

    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(u32, Instruction)) {
        if arrival.remaining > 0 {
            let position = arrival.position + u64::from(arrival.bytes) + self.ahead;
            send(arrival.flow, Instruction::Credit { position, priority: self.priority });
        }
    }
    fn priorities(&self) -> u8 {
        self.priority.map_or(0, |priority| priority + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_units::Rate;

    #[test]
    fn a_bdp_goes_unscheduled_and_each_packet_brings_credit_for_the_next() {
        let path = Path::new(Rate::from_gbps(100), Time::from_us(10), 1000, 1000);
        let parameters = Parameters::resolve(&path, &[]).expect("defaults");
        let law = Credit::start(&parameters, &path, Time::ZERO, 0);
        assert_eq!((law.window(), law.unscheduled()), (u64::MAX, 125_000));
        let mut receiver = Credit::receiver(&parameters, &path);
        let mut sent = Vec::new();
        for remaining in [8_000, 0] {
            let arrival = Arrival {
                now: Time::ZERO,
                flow: 3,
                position: 2_000,
                bytes: 1_000,
                expected: 3_000,
                remaining,
                marked: false,
                duplicate: false,
            };
            receiver.on_data(&arrival, &mut |flow, message| sent.push((flow, message)));
        }
        assert_eq!(sent, [(3, Instruction::Credit { position: 128_000, priority: None })]);
    }
}
