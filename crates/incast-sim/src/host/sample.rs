//! Samples of the flows.

use super::{Host, sending::SendFlow};
use crate::probe::RateSample;
use incast_units::Time;

impl Host<'_> {
    /// When the next sample is due.
    #[inline]
    pub fn next_sample(&self) -> Time {
        self.next_sample
    }

    /// Takes the samples that are due.
    pub fn sample(&mut self) {
        let Some((every, least)) = self.settings.rates else { return };
        let (time, mtu) = (self.next_sample, self.settings.host.mtu);
        let only = self.settings.packets.as_ref().and_then(|packets| packets.flow);
        let wanted = |flow: &&mut SendFlow| {
            flow.spec.bytes >= least && only.is_none_or(|only| only == (self.node, flow.sequence))
        };
        for flow in self.flows.iter_mut().flatten().filter(wanted) {
            let acked = flow.position(flow.send.acked(), mtu);
            let (window_bytes, assigned_bps) = flow.assigned(self.settings);
            let measured = (acked - flow.sampled) as f64 * 8.0 / every.as_secs_f64();
            flow.sampled = acked;
            self.samples.push(RateSample {
                time,
                source: self.node,
                sequence: flow.sequence,
                assigned_bps,
                measured_bps: measured as u64,
                window_bytes,
                estimate: flow.law.estimate(),
            });
        }
        self.next_sample = time + every;
    }

    /// What was sampled until `end`, the time included.
    pub fn take_samples(&mut self, end: Time) -> Vec<RateSample> {
        while self.next_sample <= end {
            self.sample();
        }
        std::mem::take(&mut self.samples)
    }
}
