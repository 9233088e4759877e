//! Weighted round robin of the header queue and data, for switches that trim.
//!
//! Source: M. Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance",
//! SIGCOMM 2017 (NDP), section 3.1: ten headers for each data packet.

use super::{Discipline, Head};
use crate::fabric::trim::HEADERS;

/// Data priorities are strict among themselves. Only packets sent while both sides compete count.
#[derive(Debug)]
pub struct HeaderWeight {
    /// Headers for each data packet.
    weight: u32,
    /// By port: headers sent since the last data packet, while data waited.
    sent: Vec<u32>,
}

impl HeaderWeight {
    pub fn new(weight: u32, ports: usize) -> Self {
        Self { weight, sent: vec![0; ports] }
    }
}

impl Discipline for HeaderWeight {
    #[inline]
    fn next(&mut self, port: usize, allowed: u8, _head: impl Fn(u8) -> Head) -> u8 {
        let data = allowed & !(1 << HEADERS);
        if data == allowed || data == 0 {
            return allowed.trailing_zeros() as u8;
        }
        let sent = &mut self.sent[port];
        if *sent >= self.weight {
            *sent = 0;
            return data.trailing_zeros() as u8;
        }
        *sent += 1;
        HEADERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_headers_go_for_each_data_packet() {
        let mut scheduler = HeaderWeight::new(10, 3);
        let mut next = |port, allowed| scheduler.next(port, allowed, |_| unreachable!("sizes do not matter"));
        let turns: Vec<u8> = (0..33).map(|_| next(1, 0b1111)).collect();
        let expected: Vec<u8> = (1..34).map(|turn| u8::from(turn % 11 == 0)).collect();
        assert_eq!(turns, expected);
        // Alone, either is sent, and does not count. Each port counts for itself.
        assert_eq!([next(1, 0b1), next(1, 0b1000), next(0, 0b1001)], [0, 3, 0]);
        let data = (0..10).find(|_| next(0, 0b1001) == 3);
        assert_eq!(data, Some(9), "the eleventh packet of port 0");
    }
}
