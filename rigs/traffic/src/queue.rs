//! What the root queueing discipline of a device holds, asked from the kernel over rtnetlink.

use crate::sys::{self, Namespaces};
use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;

/// The queue that is watched.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Where the device is.
    pub namespace: Option<String>,
    /// The device.
    pub device: String,
    /// Time between two samples.
    pub interval_ns: u64,
}

/// One look at the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// When, in ns since the start of the play.
    pub time_ns: u64,
    /// Bytes that wait.
    pub backlog_bytes: u32,
    /// Packets that wait.
    pub backlog_packets: u32,
    /// Packets dropped so far.
    pub drops: u32,
}

/// The first line of the samples.
pub const HEADER: &str = "time_ns,backlog_bytes,backlog_packets,drops";

/// The samples as CSV.
pub fn csv(samples: &[Sample]) -> String {
    let mut text = format!("{HEADER}\n");
    for sample in samples {
        writeln!(text, "{},{},{},{}", sample.time_ns, sample.backlog_bytes, sample.backlog_packets, sample.drops)
            .expect("strings take everything");
    }
    text
}

/// A netlink socket in the device's namespace.
pub struct Queue {
    socket: OwnedFd,
    device: u32,
    buffer: Vec<u8>,
}

// linux/netlink.h, linux/rtnetlink.h, linux/gen_stats.h, linux/pkt_sched.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
/// Length of `struct nlmsghdr`.
const NLMSG: usize = 16;
/// Length of `struct tcmsg`.
const TCMSG: usize = 20;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The payload of the first attribute of a kind.
fn attribute(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(bytes, 0)?);
        // The two highest bits are flags.
        if u16_at(bytes, 2)? & 0x3fff == kind {
            return bytes.get(4..length);
        }
        bytes = bytes.get(length.max(4).next_multiple_of(4)..)?;
    }
}

/// What a message of the dump says: nothing of interest, the end, or the sample.
enum Said {
    Other,
    Done,
    Sample(Sample),
}

fn read(message: &[u8], device: u32) -> io::Result<Said> {
    let kind = u16_at(message, 4).unwrap_or(NLMSG_DONE);
    if kind == NLMSG_ERROR {
        let code = u32_at(message, NLMSG).unwrap_or(0).cast_signed();
        return Err(io::Error::from_raw_os_error(-code));
    }
    if kind == NLMSG_DONE {
        return Ok(Said::Done);
    }
    if kind != RTM_NEWQDISC
        || u32_at(message, NLMSG + 4) != Some(device)
        || u32_at(message, NLMSG + 12) != Some(TC_H_ROOT)
    {
        return Ok(Said::Other);
    }
    let queue = message
        .get(NLMSG + TCMSG..)
        .and_then(|attributes| attribute(attributes, TCA_STATS2))
        .and_then(|statistics| attribute(statistics, TCA_STATS_QUEUE))
        .ok_or_else(|| io::Error::other("the kernel says nothing of the queue"))?;
    let word = |index: usize| u32_at(queue, 4 * index).unwrap_or(0);
    Ok(Said::Sample(Sample { time_ns: 0, backlog_packets: word(0), backlog_bytes: word(1), drops: word(2) }))
}

impl Queue {
    /// Finds the device.
    pub fn open(watch: &Watch, namespaces: &mut Namespaces) -> io::Result<Self> {
        let (socket, device) = namespaces
            .inside(watch.namespace.as_deref(), || Ok((sys::netlink()?, sys::interface(&watch.device)?)))
            .map_err(|error| io::Error::new(error.kind(), format!("device {}: {error}", watch.device)))?;
        Ok(Self { socket, device, buffer: vec![0; 64 << 10] })
    }

    /// What the queue holds now.
    pub fn sample(&mut self, time_ns: u64) -> io::Result<Sample> {
        let mut request = [0; NLMSG + TCMSG];
        let length = u32::try_from(request.len()).expect("small");
        request[..4].copy_from_slice(&length.to_ne_bytes());
        request[4..6].copy_from_slice(&RTM_GETQDISC.to_ne_bytes());
        request[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
        request[NLMSG + 4..NLMSG + 8].copy_from_slice(&self.device.to_ne_bytes());
        sys::send(&self.socket, &request)?;
        let mut found = None;
        loop {
            let length = sys::receive(&self.socket, &mut self.buffer)?;
            let mut rest = &self.buffer[..length];
            while let Some(length) = u32_at(rest, 0) {
                let length = usize::try_from(length).expect("32 bits").clamp(NLMSG, rest.len());
                match read(&rest[..length], self.device)? {
                    Said::Sample(sample) => found = Some(Sample { time_ns, ..sample }),
                    Said::Done => {
                        return found.ok_or_else(|| io::Error::other("the device has no queueing discipline"));
                    }
                    Said::Other => {}
                }
                rest = &rest[length.next_multiple_of(4).min(rest.len())..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute_of(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(4 + payload.len()).expect("small").to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(device: u32, parent: u32) -> Vec<u8> {
        let words: Vec<u8> = [7_u32, 10_598, 3, 0, 9].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let statistics = [attribute_of(1, &[0; 12]), attribute_of(TCA_STATS_QUEUE, &words)].concat();
        let mut bytes = vec![0; NLMSG + TCMSG];
        bytes[4..6].copy_from_slice(&RTM_NEWQDISC.to_ne_bytes());
        bytes[NLMSG + 4..NLMSG + 8].copy_from_slice(&device.to_ne_bytes());
        bytes[NLMSG + 12..NLMSG + 16].copy_from_slice(&parent.to_ne_bytes());
        bytes.extend(attribute_of(1, b"htb\0"));
        bytes.extend(attribute_of(0x8000 | TCA_STATS2, &statistics));
        bytes
    }

    #[test]
    fn the_root_queue_of_the_device_is_read() {
        let Said::Sample(sample) = read(&message(4, TC_H_ROOT), 4).expect("sound") else { panic!() };
        assert_eq!(sample, Sample { time_ns: 0, backlog_packets: 7, backlog_bytes: 10_598, drops: 3 });
        assert!(matches!(read(&message(5, TC_H_ROOT), 4), Ok(Said::Other)));
        assert!(matches!(read(&message(4, 0x1_0001), 4), Ok(Said::Other)));
    }

    #[test]
    fn cut_messages_are_no_samples() {
        let whole = message(4, TC_H_ROOT);
        for length in 0..whole.len() {
            assert!(!matches!(read(&whole[..length], 4), Ok(Said::Sample(sample)) if sample.drops == 3));
        }
    }
}
