//! An agent without a purpose of its own: it uses each thing that an agent may do, so that tests can.

use super::{PacketView, PortView, SwitchAgent, Verdict};

/// Acts on each n-th data packet that it sees; zero switches an action off.
#[derive(Clone, Debug, Default)]
pub struct Exerciser {
    /// Mark each n-th packet when it leaves.
    pub mark_every: u64,
    /// Notify the source of each n-th packet when it enters, with a window of 64 KiB.
    pub notify_every: u64,
    /// Deflect each n-th packet when it enters.
    pub deflect_every: u64,
    /// Packets that entered, packets that left, pauses and resumes seen.
    pub seen: [u64; 4],
}

fn due(count: u64, every: u64) -> bool {
    every != 0 && count.is_multiple_of(every)
}

impl SwitchAgent for Exerciser {
    fn on_enqueue(&mut self, _port: &PortView, packet: &PacketView, verdict: &mut Verdict) {
        if packet.is_data {
            self.seen[0] += 1;
            if due(self.seen[0], self.notify_every) {
                verdict.notify = Some(Some(64 << 10));
            }
            verdict.deflect = packet.deflections == 0 && due(self.seen[0], self.deflect_every);
        }
    }
    fn on_dequeue(&mut self, _port: &PortView, packet: &PacketView, verdict: &mut Verdict) {
        if packet.is_data {
            self.seen[1] += 1;
            verdict.mark = due(self.seen[1], self.mark_every);
        }
    }
    fn on_pause(&mut self, _port: &PortView) {
        self.seen[2] += 1;
    }
    fn on_resume(&mut self, _port: &PortView) {
        self.seen[3] += 1;
    }
}
