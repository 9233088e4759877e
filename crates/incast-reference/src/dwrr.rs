//! Deficit weighted round robin of one port, one queue at a time.

use super::Packet;
use incast_sim::Config;
use incast_units::Bytes;
use std::collections::VecDeque;

/// See the module.
#[derive(Default)]
pub struct Dwrr {
    /// Bytes that each queue may still send in its visit.
    deficits: Vec<u64>,
    /// The queue that is visited, and whether its quantum has been added.
    visited: usize,
    has_quantum: bool,
}

impl Dwrr {
    /// The queue that sends next, of those that are `ready`.
    pub fn choose(&mut self, config: &Config, queues: &[VecDeque<Packet>], ready: &[usize]) -> Option<usize> {
        let Some(rules) = config.switch.scheduler.dwrr() else { return ready.first().copied() };
        let strict = usize::from(rules.strict);
        if let Some(first) = ready.first().filter(|first| **first < strict) {
            return Some(*first);
        }
        if ready.is_empty() {
            return None;
        }
        self.deficits.resize(queues.len(), 0);
        let frames = config.classes.iter().map(|class| u64::from(class.format.data(config.host.mtu)));
        let quantum = rules.quantum.map_or_else(|| frames.max().unwrap_or(0), Bytes::get);
        loop {
            let queue = self.visited;
            if ready.contains(&queue) {
                if !self.has_quantum {
                    self.deficits[queue] += quantum * u64::from(rules.weights[queue - strict]);
                    self.has_quantum = true;
                }
                let head = u64::from(queues[queue].front()?.wire);
                if head <= self.deficits[queue] {
                    self.deficits[queue] -= head;
                    if queues[queue].len() == 1 {
                        self.deficits[queue] = 0;
                        self.go_on(queues.len());
                    }
                    return Some(queue);
                }
            }
            self.go_on(queues.len());
        }
    }

    fn go_on(&mut self, queues: usize) {
        self.visited = (self.visited + 1) % queues;
        self.has_quantum = false;
    }
}
