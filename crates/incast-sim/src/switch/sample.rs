//! Samples of the ports.

use super::{FULL, Switch};
use crate::{fabric::node::NodeContext, probe::PortSample};
use incast_units::Time;

impl Switch<'_> {
    /// When the next sample is due.
    #[inline]
    pub fn next_sample(&self) -> Time {
        self.probe.as_ref().map_or(Time::MAX, |probe| probe.next)
    }

    /// Takes the samples that are due.
    pub fn sample(&mut self, context: &mut impl NodeContext) {
        let Some(probe) = self.probe.take() else { return };
        if self.lazy {
            probe.ports.iter().for_each(|port| self.drain::<FULL>(usize::from(*port), probe.next, context));
        }
        self.probe = Some(probe);
        self.take_sample();
    }

    fn take_sample(&mut self) {
        let Some(probe) = &mut self.probe else { return };
        let now = probe.next;
        for port in &probe.ports {
            let (out, pauses) = (&self.ports[usize::from(*port)], &self.pauses[usize::from(*port)]);
            for priority in 0..self.priorities {
                let index = priority * self.ports.len() + usize::from(*port);
                let queue_bytes = self.queues[index].bytes() + out.link.in_service(now, priority as u8);
                if priority == 0 || queue_bytes > 0 || self.sent_by_priority[index] > 0 {
                    probe.samples.push(PortSample {
                        time: now,
                        node: self.node,
                        port: *port,
                        priority: priority as u8,
                        queue_bytes,
                        tx_bytes: self.sent_by_priority[index],
                        paused: pauses.paused(now),
                        marks: self.records[index].marks,
                        drops: self.records[index].drops,
                        trims: self.records[index].trims,
                    });
                }
            }
        }
        probe.next = now + probe.every;
    }

    /// What was sampled until `end`, the time included. Nothing happens any more: samples that are still due show the
    /// present state.
    pub fn take_samples(&mut self, end: Time) -> Vec<PortSample> {
        while self.next_sample() <= end {
            self.take_sample();
        }
        self.probe.as_mut().map(|probe| std::mem::take(&mut probe.samples)).unwrap_or_default()
    }
}
