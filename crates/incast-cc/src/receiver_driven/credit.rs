//! The sender of receiver-driven protocols: a blind first window, then only what the receiver allows.
//!
//! Sources: P. X. Gao et al., "pHost", CoNEXT 2015 (free tokens at the start of a flow); M. Handley et al., "NDP",
//! SIGCOMM 2017 (a blind first window); B. Montazeri et al., "Homa", SIGCOMM 2018 (unscheduled bytes, `RTTbytes`).
//! All three send about one BDP before the receiver can have answered. What sets the pace afterwards is in
//! [`WindowCredit`]; credit that gets lost is for the receiver to repeat.

use crate::law::{Framing, Habits, LawInfo, ReceiverDriven, Recovery, SenderLaw};
use crate::{
    Feedback, Loss, Path,
    parameters::{ParameterError, Raw},
    scheduler::{Arrival, Control, ReceiverScheduler},
};
use incast_units::{Bytes, Time};

crate::parameters! {
    /// Parameters of a credit-driven sender.
    pub struct Parameters {
        /// Payload bytes that are sent without credit.
        unscheduled: Bytes = "BDP", |path| path.bdp(), "any size", |_| true, "Homa, SIGCOMM 2018, section 3.2 (RTTbytes)";
    }
}

/// State of a flow.
#[derive(Clone, Debug)]
pub struct Credit {
    /// The first position that may not be sent yet.
    allowed: u64,
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
    const HABITS: Habits = Habits::NONE;

    fn resolve(path: &Path, given: &[(String, Raw)]) -> Result<Parameters, ParameterError> {
        Parameters::resolve(path, given)
    }
    fn values(parameters: &Parameters) -> Vec<(&'static str, Raw)> {
        parameters.values()
    }
    fn start(parameters: &Parameters, _path: &Path, _now: Time, _random: u32) -> Self {
        Self { allowed: parameters.unscheduled.get() }
    }

    #[inline]
    fn on_ack(&mut self, _feedback: &Feedback<'_>) {}
    fn on_loss(&mut self, _loss: &Loss) {}
    fn on_timeout(&mut self, _now: Time, _next: u64) {}
    fn on_credit(&mut self, _now: Time, position: u64) {
        // Credits may overtake one another; none takes back what an earlier one gave.
        self.allowed = self.allowed.max(position);
    }
    #[inline]
    fn window(&self) -> u64 {
        u64::MAX
    }
    #[inline]
    fn credit(&self) -> u64 {
        self.allowed
    }
}

impl ReceiverDriven for Credit {
    type Receiver = WindowCredit;

    fn receiver(parameters: &Parameters, _path: &Path) -> WindowCredit {
        // What is sent blindly is also what its receivers keep ahead of what has arrived.
        WindowCredit { ahead: parameters.unscheduled.get(), priority: None }
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
    fn on_data(&mut self, arrival: &Arrival, send: &mut dyn FnMut(Control)) {
        if arrival.remaining > 0 {
            let position = arrival.position + u64::from(arrival.bytes) + self.ahead;
            send(Control::Credit { flow: arrival.flow, position, priority: self.priority });
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
    fn credit_only_grows() {
        let path = Path {
            rate: Rate::from_gbps(100),
            base_rtt: Time::from_us(10),
            mss: 1000,
            wire_mss: 1000,
            rto_min: Time::from_ms(1),
        };
        let parameters = Parameters::resolve(&path, &[]).expect("defaults");
        let mut law = Credit::start(&parameters, &path, Time::ZERO, 0);
        assert_eq!((law.window(), law.credit()), (u64::MAX, 125_000));
        for (given, allowed) in
            [(100_000, 125_000), (200_000, 200_000), (150_000, 200_000), (u64::MAX, u64::MAX)]
        {
            law.on_credit(Time::ZERO, given);
            assert_eq!(law.credit(), allowed);
        }
    }
}
