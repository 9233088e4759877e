//! Shortest: a receiver gives credit to the flow of which the least is missing, and to no other.
//!
//! Source: none, it is an example. The order is that of SRPT (L. Schrage, "A Proof of the Optimality of the Shortest
//! Remaining Processing Time Discipline", Operations Research 16(3), 1968); the unscheduled start is that of Homa
//! (B. Montazeri et al., SIGCOMM 2018, section 3.2). Unlike Homa, it uses no priorities, and a sender that is slow
//! leaves the receiver's link idle.

use crate::{
    Path,
    law::{Framing, LawCapabilities, LawInfo, ReceiverDriven, Recovery, SenderLaw},
    message::Instruction,
    parameters::{ParameterError, Raw},
    scheduler::{Arrival, End, NewFlow, ReceiverScheduler},
};
use incast_units::{Bytes, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
};

crate::parameters!(Parameters {
    unscheduled: Bytes {
        doc: "Payload bytes that are sent without credit, and that credit is ahead of what has arrived.",
        default: "max(BDP, MSS)",
        value: |path| path.bdp().max(Bytes::new(path.mss.into())),
        allowed: "at least 1B",
        check: |u| u.get() > 0,
        source: "Homa, SIGCOMM 2018, section 3.2 (RTTbytes)"
    },
    repeat_after: Time {
        doc: "Credit is repeated when nothing has arrived for so long: it may have been lost.",
        default: "4 base RTT",
        value: |path| path.base_rtt + path.base_rtt + path.base_rtt + path.base_rtt,
        allowed: "at least 1us",
        check: |t| *t >= Time::from_us(1),
        source: "ours"
    },
});

/// Sender half: state of a flow.
#[derive(Clone, Debug)]
pub struct Shortest {
    unscheduled: u64,
}

impl SenderLaw for Shortest {
    type Parameters = Parameters;
    const INFO: LawInfo = LawInfo {
        name: "shortest",
        title: "Shortest",
        source: "an example, after Schrage, Operations Research 1968",
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

impl ReceiverDriven for Shortest {
    type Receiver = Receiver;

    fn receiver(parameters: &Parameters, _path: &Path) -> Receiver {
        Receiver {
            ahead: parameters.unscheduled.get(),
            repeat_after: parameters.repeat_after,
            flows: BTreeMap::new(),
            order: BTreeSet::new(),
            repeat_at: Time::MAX,
        }
    }
    fn unscheduled(&self) -> u64 {
        self.unscheduled
    }
    fn on_message(&mut self, _now: Time, instruction: Instruction) -> Option<Instruction> {
        Some(instruction)
    }
}

/// Receiver half: state of a host.
#[derive(Clone, Debug)]
pub struct Receiver {
    ahead: u64,
    repeat_after: Time,
    /// By flow: bytes that are missing, and the position below which all have arrived.
    flows: BTreeMap<u32, (u64, u64)>,
    /// The flows by bytes that are missing.
    order: BTreeSet<(u64, u32)>,
    repeat_at: Time,
}

impl Receiver {
    /// Credit for the flow of which the least is missing.
    fn grant(&mut self, now: Time, send: &mut dyn FnMut(u32, Instruction)) {
        let first = self.order.first().and_then(|(_, flow)| Some((*flow, self.flows.get(flow)?.1)));
        self.repeat_at = first.map_or(Time::MAX, |_| now.saturating_add(self.repeat_after));
        if let Some((flow, arrived)) = first {
            send(flow, Instruction::Credit { position: arrived.saturating_add(self.ahead), priority: None });
        }
    }

    fn set(&mut self, flow: u32, missing: u64, arrived: u64) {
        if let Some((old, _)) = self.flows.insert(flow, (missing, arrived)) {
            self.order.remove(&(old, flow));
        }
        self.order.insert((missing, flow));
    }
}

impl ReceiverScheduler for Receiver {
    type Message = Instruction;
    type Signal = Infallible;

    fn on_flow(&mut self, new: &NewFlow, _send: &mut dyn FnMut(u32, Instruction)) {
        self.set(new.flow, new.bytes, 0);
    }
    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(u32, Instruction)) {
        // Duplicates may come after the end of their flow.
        if self.flows.contains_key(&arrival.flow) {
            self.set(arrival.flow, arrival.remaining, arrival.expected);
            self.grant(arrival.now, send);
        }
    }
    fn on_end(&mut self, now: Time, flow: u32, _end: End, send: &mut dyn FnMut(u32, Instruction)) {
        if let Some((missing, _)) = self.flows.remove(&flow) {
            self.order.remove(&(missing, flow));
        }
        self.grant(now, send);
    }
    fn on_timer(&mut self, now: Time, send: &mut dyn FnMut(u32, Instruction)) {
        if now >= self.repeat_at {
            self.grant(now, send);
        }
    }
    fn next_timer(&self) -> Time {
        self.repeat_at
    }
}
