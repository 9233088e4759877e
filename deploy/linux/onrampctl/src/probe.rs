//! `onrampctl probe`: in which unit a peer stamps towards this host.
//!
//! Each end chooses its unit by its own route, and tells nobody (Linux 6.7). It shows in how fast its stamps grow: from the
//! handshake's to that of the acknowledgement of our FIN.

use crate::arguments;
use hostctl::{
    failure::{Failure, Outcome, While},
    say, view,
};
use std::{
    fmt, io,
    net::{IpAddr, Shutdown, SocketAddr, TcpStream},
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// So long a connection may take, and an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between the two stamps: long for microseconds, a few of milliseconds.
const BETWEEN: Duration = Duration::from_millis(100);
/// RFC 7323, 3.2.
const TIME_STAMPS: u8 = 8;

/// A unit of stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// RTAX_FEATURE_TCP_USEC_TS of the peer's route.
    Microseconds,
    /// As Linux does without.
    Milliseconds,
    /// Of another clock.
    Other,
    /// It does not stamp.
    None,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Microseconds => "stamps in microseconds",
            Self::Milliseconds => "stamps in milliseconds",
            Self::Other => "stamps in a unit that is neither microseconds nor milliseconds",
            Self::None => "does not stamp (net.ipv4.tcp_timestamps = 0 at one end)",
        })
    }
}

/// Asks a peer and says what it does.
pub fn probe(arguments: &arguments::Probe) -> Outcome {
    view::root()?;
    let unit = ask(arguments.peer)?;
    say!("{} {unit}", arguments.peer);
    if unit == Unit::Microseconds { Ok(()) } else { Err(Failure::failed("On-Ramp needs stamps in microseconds")) }
}

/// Times that a peer is asked whose stamps fit no unit: a busy host reads packets late, so that less time seems to have passed, or more.
const TIMES: usize = 3;

/// Asks a peer.
pub fn ask(peer: SocketAddr) -> Outcome<Unit> {
    let mut found = connect(peer)?;
    for _ in 1..TIMES {
        if found == Unit::Other {
            found = connect(peer)?;
        }
    }
    Ok(found)
}

/// One connection that says nothing.
fn connect(peer: SocketAddr) -> Outcome<Unit> {
    let doing = format!("cannot probe {peer}");
    let packets = listen().during(&doing)?;
    // Packets are read as they come, so that they are as old as they seem.
    thread::scope(|scope| {
        let (tell, own) = mpsc::channel();
        let connection = scope.spawn(move || {
            let stream = TcpStream::connect_timeout(&peer, PATIENCE)?;
            let _ = tell.send(stream.local_addr()?.port());
            thread::sleep(BETWEEN);
            stream.shutdown(Shutdown::Write)
        });
        let seen = read(&packets, peer, &own);
        connection.join().map_err(|_| Failure::failed(&doing))?.during(&doing)?;
        ends(&seen)
            .map(|((first, start), (last, end))| unit(first, last, end - start))
            .ok_or_else(|| Failure::failed(format!("{doing}: no two packets of it were seen here")))
    })
}

/// The stamp of a packet, and when it came.
type Seen = (Option<u32>, Instant);

/// The first packet and one that came long enough after it. A bond, a VLAN or an ifb shows each packet more than once.
fn ends(seen: &[Seen]) -> Option<(Seen, Seen)> {
    let (first, last) = (*seen.first()?, *seen.last()?);
    (last.1 - first.1 > BETWEEN / 2).then_some((first, last))
}

/// Those of the peer, until there are both ends.
fn read(packets: &OwnedFd, peer: SocketAddr, own: &mpsc::Receiver<u16>) -> Vec<Seen> {
    let deadline = Instant::now() + 2 * PATIENCE;
    // The handshake's answer may be read before the connection knows its port.
    let (mut port, mut early, mut seen) = (None, Vec::<(u16, Seen)>::new(), Vec::new());
    let mut buffer = [0; 256];
    while Instant::now() < deadline {
        // SAFETY: the descriptor is open, and the kernel writes at most as much as the buffer has.
        let length = unsafe { libc::recv(packets.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let now = Instant::now();
        let found = usize::try_from(length).ok().and_then(|length| segment(&buffer[..length]));
        let found = found.filter(|segment| segment.source == (peer.ip(), peer.port()));
        early.extend(found.map(|segment| (segment.destination_port, (segment.stamp, now))));
        port = match (port, own.try_recv()) {
            (None, Ok(port)) => Some(port),
            // It failed: nothing more comes.
            (None, Err(mpsc::TryRecvError::Disconnected)) => break,
            (known, _) => known,
        };
        if let Some(port) = port {
            seen.extend(early.drain(..).filter(|(destination, _)| *destination == port).map(|(_, one)| one));
            if ends(&seen).is_some() {
                break;
            }
        }
    }
    seen
}

fn unit(first: Option<u32>, last: Option<u32>, passed: Duration) -> Unit {
    let (Some(first), Some(last)) = (first, last) else { return Unit::None };
    match f64::from(last.wrapping_sub(first)) / passed.as_micros().max(1) as f64 {
        // No other unit is near.
        0.2..5.0 => Unit::Microseconds,
        0.000_5..0.002 => Unit::Milliseconds,
        _ => Unit::Other,
    }
}

/// Packets of all devices of this network namespace, without their link's header.
fn listen() -> io::Result<OwnedFd> {
    let every = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: plain numbers.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, i32::from(every)) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just made, and is nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let patience = libc::timeval { tv_sec: 0, tv_usec: 100_000 };
    // SAFETY: the option takes such a structure.
    let refused = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const patience).cast(),
            size_of_val(&patience) as libc::socklen_t,
        )
    };
    if refused == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// What is read of a packet.
#[derive(Debug, PartialEq, Eq)]
struct Segment {
    source: (IpAddr, u16),
    destination_port: u16,
    stamp: Option<u32>,
}

/// Of TCP directly behind IP; of SYN and later.
fn segment(packet: &[u8]) -> Option<Segment> {
    let (source, tcp): (IpAddr, &[u8]) = match packet.first()? >> 4 {
        4 if *packet.get(9)? == libc::IPPROTO_TCP as u8 => {
            let octets = <[u8; 4]>::try_from(packet.get(12..16)?).ok()?;
            (octets.into(), packet.get(usize::from(packet[0] & 15) * 4..)?)
        }
        6 if *packet.get(6)? == libc::IPPROTO_TCP as u8 => {
            let octets = <[u8; 16]>::try_from(packet.get(8..24)?).ok()?;
            (octets.into(), packet.get(40..)?)
        }
        _ => return None,
    };
    let port = |at: usize| Some(u16::from_be_bytes(tcp.get(at..at + 2)?.try_into().ok()?));
    let mut options = tcp.get(20..usize::from(tcp.get(12)? >> 4) * 4)?;
    let mut stamp = None;
    while let Some((&kind, rest)) = options.split_first() {
        match kind {
            0 => break,
            1 => options = rest,
            _ => {
                let length = usize::from(*rest.first()?);
                if kind == TIME_STAMPS {
                    stamp = Some(u32::from_be_bytes(options.get(2..6)?.try_into().ok()?));
                }
                options = options.get(length.max(2)..).unwrap_or(&[]);
            }
        }
    }
    Some(Segment { source: (source, port(0)?), destination_port: port(2)?, stamp })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_told_by_how_fast_stamps_grow() {
        let after = |ticks: u32| unit(Some(u32::MAX - 7), Some(ticks.wrapping_sub(8)), Duration::from_millis(100));
        assert_eq!(after(100_100), Unit::Microseconds);
        assert_eq!((after(99), after(25), after(0)), (Unit::Milliseconds, Unit::Other, Unit::Other));
        assert_eq!(unit(None, None, BETWEEN), Unit::None);
    }

    #[test]
    fn what_is_seen_twice_is_no_second_packet() {
        let start = Instant::now();
        let seen: Vec<Seen> = [0, 0, 2, 101].map(|after| (Some(7), start + Duration::from_millis(after))).into();
        assert_eq!((ends(&seen[..1]), ends(&seen[..3])), (None, None));
        assert_eq!(ends(&seen), Some((seen[0], seen[3])));
    }

    #[test]
    fn a_stamp_is_found_behind_other_options() {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0, 80, 0x9c, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0xa0, 0x12, 0, 0, 0, 0, 0, 0]);
        packet.extend([2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 1, 2, 0, 0, 0, 0, 1, 3, 3, 7]);
        let found = segment(&packet).expect("a segment");
        assert_eq!(found, Segment { source: ([10, 0, 0, 1].into(), 80), destination_port: 40_000, stamp: Some(258) });
        // Cut anywhere, it is read or not, and nothing else.
        assert!((0..packet.len()).all(|length| segment(&packet[..length]).is_none()));
        // An option of no length.
        packet[47] = 0;
        assert_eq!(segment(&packet).map(|segment| segment.stamp), Some(Some(258)));
    }
}
