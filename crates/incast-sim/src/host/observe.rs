//! Samples of a host, and its records at the end of a run.

use super::{Host, SentFlow, send::summary};
use crate::{
    fabric::link::{Receiver, Transmitter},
    flow_control::credits::End,
    probe::{ArrivedSample, PacketTrace, RateSample},
    receiver::ReceivedFlow,
};
use incast_units::Time;

impl Host<'_> {
    /// When the first flow starts.
    pub fn first_start(&self) -> Option<Time> {
        self.upcoming.last().map(|spec| spec.start)
    }

    /// When the next sample is due.
    #[inline]
    pub fn next_sample(&self) -> Time {
        self.next_sample
    }

    /// Takes the samples that are due.
    pub fn sample(&mut self) {
        let (settings, node, time) = (self.settings, self.node, self.next_sample);
        let Some((every, least)) = settings.rates else { return };
        for sender in self.senders.iter() {
            let flow = &sender.flow;
            if flow.spec.bytes >= least && settings.samples_rates_of((node, flow.sequence)) {
                self.samples.push(sender.sample(time, settings));
            }
        }
        self.receiver.sample(time, &mut self.arrived_samples);
        self.next_sample = time + every;
    }

    /// What was sampled until `end`, the time included: of the flows of this host, and of those that arrive here.
    pub fn take_samples(&mut self, end: Time) -> (Vec<RateSample>, Vec<ArrivedSample>) {
        while self.next_sample <= end {
            self.sample();
        }
        let (mut rates, mut arrived) = (std::mem::take(&mut self.samples), std::mem::take(&mut self.arrived_samples));
        // To the end of its last window, which is another one with other windows, it has taken some more.
        rates.retain(|sample| sample.time <= end);
        arrived.retain(|sample| sample.time <= end);
        (rates, arrived)
    }

    /// Records of all flows that this host started, finished or not, at the end of the run.
    pub fn sent(&self, end: Time) -> Vec<SentFlow> {
        let unfinished = self.senders.iter().map(|sender| summary(sender, end, None));
        self.sent.iter().copied().chain(unfinished).collect()
    }

    /// Flows that had not started at the end.
    pub fn unstarted(&self) -> usize {
        self.upcoming.len()
    }

    /// Records of all flows that arrived here.
    pub fn received(&self) -> &[ReceivedFlow] {
        &self.receiver.records
    }

    /// Recorded steps of packets.
    pub fn traces(&mut self) -> Vec<&mut PacketTrace> {
        self.nic.trace().into_iter().chain(self.recorder.trace.as_deref_mut()).collect()
    }

    /// Priorities that its switch has paused, or has no buffer for, and since when.
    pub fn paused(&self) -> impl Iterator<Item = (u8, Time)> {
        self.nic.flow_control().paused().map(|(_, priority, since)| (priority, since))
    }

    /// The end of its link, where there are credits.
    pub fn credits(&self) -> Option<&End> {
        self.nic.flow_control().credits(0)
    }

    /// Pause edges and paused time of its NIC, until `now`.
    pub fn pauses(&self, now: Time) -> (u64, Time) {
        (self.nic.pauses().edges(), self.nic.pauses().paused(now))
    }

    /// Its node.
    pub fn node(&self) -> u32 {
        self.node
    }

    /// Both ends of its link.
    pub fn link(&self) -> (&Transmitter, &Receiver) {
        (self.nic.link(), self.nic.input())
    }

    /// Control packets and their bytes lost with a link.
    pub fn lost(&self) -> (u64, u64) {
        self.lost
    }

    /// Conservation: every byte that was created was sent, waits, or was lost.
    pub fn conserves(&self) -> bool {
        // Packets in an underlay's stage are not created before they reach the NIC.
        self.created_bytes == self.nic.link().sent_bytes() + self.nic.waiting_bytes() + self.lost.1
    }
}
