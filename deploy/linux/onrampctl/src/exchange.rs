//! How far the clocks of two hosts are apart that others keep synchronised (chrony, PTP).
//!
//! Stamps are of CLOCK_MONOTONIC, which no two hosts share. Each host knows how far its CLOCK_REALTIME is from it, and by how
//! much that one may be wrong; two hosts that tell each other both numbers know the difference of their stamps. How long a message takes
//! does not matter. What is told is checked by the programs: a difference by which a packet would arrive before it was sent is refused.

use crate::{
    bpf::Loaded,
    layout::{Address, Difference, Path},
    status,
};
use hmac::{Hmac, Mac as _};
use hostctl::{
    complain,
    failure::{Failure, Outcome, While},
};
use incast_units::Time;
use rustix::time::{ClockId, clock_gettime};
use sha2::Sha256;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::unix::fs::PermissionsExt as _,
    path::Path as File,
    process::Command,
    str::FromStr,
    time::{Duration, Instant},
};

/// Between two questions to a peer.
const PAUSE: Duration = Duration::from_secs(1);
/// Of an error that nobody knows a bound of.
const UNKNOWN: u64 = u64::MAX;
/// Stamps are cut to microseconds, ns.
const ROUNDING: u64 = 1_000;
const SECOND: f64 = 1e9;

/// Who says by how much this host's clock may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `maxerror` of adjtimex(2): what the daemon has said, 500 ppm more since then.
    Kernel,
    /// `chronyc tracking`: offset, root dispersion and half of the root delay.
    Chrony,
    /// The operator, ns.
    Stated(u64),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "kernel" => Ok(Self::Kernel),
            "chrony" => Ok(Self::Chrony),
            _ => match text.parse::<Time>().map(|time| time.ps() / 1_000) {
                Ok(ns @ 1..1_000_000_000) => Ok(Self::Stated(ns)),
                _ => Err("allowed is kernel, chrony, or a time below 1s such as 2us".into()),
            },
        }
    }
}

impl Source {
    /// The bound now, ns.
    fn error(self) -> Outcome<u64> {
        match self {
            Self::Stated(ns) => Ok(ns),
            Self::Kernel => {
                // SAFETY: zeroes are such a structure, and a request that changes nothing.
                let mut clock = unsafe { std::mem::zeroed::<libc::timex>() };
                // SAFETY: the structure lives as long as the call.
                match unsafe { libc::adjtimex(&raw mut clock) } {
                    -1 => Err(io::Error::last_os_error()).during("cannot read the clock's error"),
                    _ if clock.status & libc::STA_UNSYNC != 0 => {
                        Err(Failure::failed("the kernel says that nobody synchronises its clock (adjtimex)"))
                    }
                    _ => Ok(u64::try_from(clock.maxerror).unwrap_or_default() * 1_000),
                }
            }
            Self::Chrony => {
                let doing = "cannot run chronyc -c tracking";
                let output = Command::new("chronyc").args(["-c", "tracking"]).output().during(doing)?;
                let text = String::from_utf8_lossy(&output.stdout);
                tracked(&text).ok_or_else(|| Failure::failed(format!("chrony is not synchronised: {}", text.trim())))
            }
        }
    }
}

/// The bound that chronyc(1) gives for the error of a clock, of what `chronyc -c tracking` prints: ns.
fn tracked(text: &str) -> Option<u64> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let number = |place: usize| fields.get(place)?.parse::<f64>().ok().filter(|number| number.is_finite());
    let (offset, delay, dispersion) = (number(4)?, number(10)?, number(11)?);
    let bound = (offset.abs() + dispersion + delay / 2.0) * SECOND;
    (*fields.get(13)? != "Not synchronised" && bound < SECOND).then(|| bound.ceil() as u64)
}

/// What a host says of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, ns.
    ahead: i64,
    /// By how much CLOCK_REALTIME may be wrong, ns; [`UNKNOWN`] if nobody knows.
    error: u64,
}

impl Clock {
    fn own(source: Source) -> Outcome<Self> {
        let read = |id| {
            let time = clock_gettime(id);
            time.tv_sec * 1_000_000_000 + time.tv_nsec
        };
        // Of five the one that was interrupted least.
        let readings = (0..5).map(|_| {
            let before = read(ClockId::Monotonic);
            let real = read(ClockId::Realtime);
            let took = read(ClockId::Monotonic) - before;
            (took, real - before - took / 2)
        });
        let (took, ahead) = readings.min().unwrap_or_default();
        Ok(Self { ahead, error: source.error()?.saturating_add(took.unsigned_abs()) })
    }

    /// The difference of the monotonic clocks, as seen from `self`.
    fn difference(&self, peer: &Self, address: Address) -> Difference {
        let error = self.error.saturating_add(peer.error).saturating_add(ROUNDING);
        Difference {
            address,
            ahead: self.ahead.wrapping_sub(peer.ahead),
            error: u32::try_from(error).unwrap_or(u32::MAX),
            reserved: 0,
        }
    }
}

/// Tells an answer to one question from those to all others.
type Nonce = [u8; 16];

/// A message: 80 octets, numbers in network order.
///
/// ```text
/// 0   "onramp 1"    8   1 if it is an answer, seven of zero    16   nonce of the question
/// 32  ahead         40  error                                  48   HMAC-SHA-256 of what is before (RFC 2104)
/// ```
#[derive(Debug, PartialEq, Eq)]
struct Message {
    nonce: Nonce,
    /// `None` for a question.
    clock: Option<Clock>,
}

const NAME: &[u8; 8] = b"onramp 1";
const TEXT: usize = 48;
const LENGTH: usize = 80;

impl Message {
    fn write(&self, key: &Key) -> [u8; LENGTH] {
        let clock = self.clock.unwrap_or(Clock { ahead: 0, error: 0 });
        let mut octets = [0; LENGTH];
        octets[..8].copy_from_slice(NAME);
        octets[8] = self.clock.is_some().into();
        octets[16..32].copy_from_slice(&self.nonce);
        octets[32..40].copy_from_slice(&clock.ahead.to_be_bytes());
        octets[40..TEXT].copy_from_slice(&clock.error.to_be_bytes());
        let code = key.0.clone().chain_update(&octets[..TEXT]).finalize().into_bytes();
        octets[TEXT..].copy_from_slice(&code);
        octets
    }

    /// `None` if it is none, or of somebody who does not know the key.
    fn read(octets: &[u8], key: &Key) -> Option<Self> {
        let octets: &[u8; LENGTH] = octets.try_into().ok()?;
        key.0.clone().chain_update(&octets[..TEXT]).verify_slice(&octets[TEXT..]).ok()?;
        let eight = |at: usize| octets[at..at + 8].try_into().ok();
        let clock = Clock { ahead: i64::from_be_bytes(eight(32)?), error: u64::from_be_bytes(eight(40)?) };
        let clock = match (octets.starts_with(NAME), octets[8]) {
            (true, 0) => None,
            (true, 1) => Some(clock),
            _ => return None,
        };
        Some(Self { nonce: octets[16..32].try_into().ok()?, clock })
    }
}

/// What both ends share.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl Key {
    /// Reads a file that nobody else can read.
    ///
    /// # Errors
    /// There is none, others may read it, or it is shorter than 16 octets.
    pub fn read(path: &File) -> Outcome<Self> {
        let name = path.display();
        let wrong = |what: &dyn std::fmt::Display| Failure::input(format!("--key {name}: {what}"));
        let mode = fs::metadata(path).map_err(|error| wrong(&error))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(wrong(&format!("found mode {:o}, allowed is 600: others must not read it", mode & 0o777)));
        }
        let octets = fs::read(path).map_err(|error| wrong(&error))?;
        let octets = octets.trim_ascii();
        if octets.len() < 16 {
            return Err(wrong(&format!("found {} octets, allowed are 16 and more", octets.len())));
        }
        Self::of(octets).ok_or_else(|| wrong(&"not a key"))
    }

    fn of(octets: &[u8]) -> Option<Self> {
        Hmac::new_from_slice(octets).ok().map(Self)
    }
}

/// Who exchanges clocks with peers that do so, too.
pub struct Exchange {
    socket: UdpSocket,
    source: Source,
    key: Key,
    port: u16,
    /// Questions of this second.
    asked: BTreeMap<Nonce, Address>,
    /// Of this second.
    own: Option<Clock>,
    complaint: String,
    /// Paths whose delays are counted from the least one again.
    relative: BTreeSet<Address>,
}

impl Exchange {
    /// Begins to listen.
    ///
    /// # Errors
    /// The port is not free, or this process has a monotonic clock of its own.
    pub fn new(source: Source, key: Key, port: u16) -> Outcome<Self> {
        let moved = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        if moved
            .lines()
            .any(|line| line.starts_with("monotonic") && line.split_whitespace().skip(1).any(|of| of != "0"))
        {
            return Err(Failure::failed(
                "this is a time namespace, whose clock is not the one that packets are stamped with",
            ));
        }
        let every = [SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)), SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))];
        let doing = format!("cannot listen at UDP port {port}");
        let socket = UdpSocket::bind(&every[..]).during(&doing)?;
        socket.set_read_timeout(Some(PAUSE / 10)).during(&doing)?;
        let (asked, relative) = (BTreeMap::new(), BTreeSet::new());
        Ok(Self { socket, source, key, port, asked, own: None, complaint: String::new(), relative })
    }

    /// Asks and answers, for as long as the process runs.
    pub fn run(mut self) {
        let mut next = Instant::now();
        loop {
            if Instant::now() >= next {
                next = Instant::now() + PAUSE;
                if let Err(failure) = self.look().and_then(|()| self.ask()) {
                    self.say(failure.to_string());
                }
            }
            let mut octets = [0; LENGTH + 1];
            let Ok((length, from)) = self.socket.recv_from(&mut octets) else { continue };
            match Message::read(&octets[..length], &self.key) {
                Some(Message { nonce, clock: None }) => self.answer(nonce, from),
                Some(Message { nonce, clock: Some(peer) }) => self.learn(nonce, &peer),
                None => {}
            }
        }
    }

    /// Once, however often it is so.
    fn say(&mut self, line: String) {
        if line != self.complaint {
            complain!("watch: clocks: {line}");
            self.complaint = line;
        }
    }

    /// Reads the own clock.
    fn look(&mut self) -> Outcome {
        self.own = None;
        self.own = Some(Clock::own(self.source)?);
        Ok(())
    }

    /// Asks the peers from whom something has come of late.
    fn ask(&mut self) -> Outcome {
        self.asked.clear();
        let Some(loaded) = Loaded::open()? else { return Ok(()) };
        let paths = loaded.paths()?;
        let newest = paths.iter().map(|(_, path)| path.reported).max().unwrap_or(0);
        for (address, _) in paths.iter().filter(|(_, path)| path.reported + 2_000_000_000 > newest) {
            let mut nonce = Nonce::default();
            rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty())
                .during("cannot draw a number")?;
            let question = Message { nonce, clock: None }.write(&self.key);
            // Who cannot be reached does not answer.
            let _ = self.socket.send_to(&question, SocketAddr::new(self.family(address.ip()), self.port));
            self.asked.insert(nonce, *address);
        }
        self.complain(&paths);
        Ok(())
    }

    /// An address as the socket knows it.
    fn family(&self, address: IpAddr) -> IpAddr {
        match (address, self.socket.local_addr()) {
            (IpAddr::V4(four), Ok(SocketAddr::V6(_))) => four.to_ipv6_mapped().into(),
            _ => address,
        }
    }

    /// What is not known is told, too, so that a peer knows why.
    fn answer(&mut self, nonce: Nonce, to: SocketAddr) {
        let mut clock = self.own.unwrap_or(Clock { ahead: 0, error: UNKNOWN });
        if fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps").is_ok_and(|text| text.trim() != "2") {
            self.say("net.ipv4.tcp_timestamps is not 2: stamps of this host are not of its clock alone, which peers are told".into());
            clock.error = UNKNOWN;
        }
        let _ = self.socket.send_to(&Message { nonce, clock: Some(clock) }.write(&self.key), to);
    }

    fn learn(&mut self, nonce: Nonce, peer: &Clock) {
        let Some((address, own)) = self.asked.remove(&nonce).zip(self.own) else { return };
        // It may have been unloaded meanwhile.
        if let Ok(Some(loaded)) = Loaded::open() {
            let _ = loaded.set_difference(&own.difference(peer, address));
        }
    }

    /// Says of which paths the clocks are no longer known well enough, a line each second at most.
    fn complain(&mut self, paths: &[(Address, Path)]) {
        let now: BTreeSet<Address> =
            paths.iter().filter(|(_, path)| path.why_relative().is_some()).map(|(address, _)| *address).collect();
        let new = paths.iter().filter(|(address, _)| now.contains(address) && !self.relative.contains(address));
        if let Some(line) = status::clocks(new) {
            complain!("watch: clocks: {line}");
        }
        self.relative = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_chrony_is_that_of_its_manual() {
        let line = "C0A80001,10.0.0.1,2,1700000000.1,-0.000000300,0.0000001,0.0000002,1.5,0.001,0.02,0.000004000,0.000001500,1.0,Normal\n";
        assert_eq!(tracked(line), Some(3_800));
        assert_eq!(tracked(&line.replace("Normal", "Not synchronised")), None);
        assert_eq!(tracked("506 Cannot talk to daemon\n"), None);
        assert_eq!(tracked(&line.replace("0.000004000", "nan")), None);
    }

    #[test]
    fn a_source_is_named_or_a_time() {
        assert_eq!("chrony".parse(), Ok(Source::Chrony));
        assert_eq!("2us".parse(), Ok(Source::Stated(2_000)));
        for wrong in ["", "ntp", "0us", "1s", "-1us"] {
            assert!(wrong.parse::<Source>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_who_knows_the_key_is_believed() {
        let (key, other) = (Key::of(&[7; 16]).expect("a key"), Key::of(&[8; 16]).expect("a key"));
        let clock = Clock { ahead: -123_456_789_012, error: 900 };
        for clock in [None, Some(clock)] {
            let message = Message { nonce: [9; 16], clock };
            let octets = message.write(&key);
            assert_eq!(Message::read(&octets, &other), None);
            assert!((0..LENGTH).all(|length| Message::read(&octets[..length], &key).is_none()));
            for place in 0..LENGTH {
                let mut forged = octets;
                forged[place] ^= 1;
                assert_eq!(Message::read(&forged, &key), None, "{place}");
            }
            assert_eq!(Message::read(&octets, &key), Some(message));
        }
    }

    #[test]
    fn two_clocks_give_the_difference_of_what_stamps_are_made_by() {
        // The peer was started 10 s later: its monotonic clock is behind.
        let (own, peer) = (Clock { ahead: 50_000_000_000, error: 700 }, Clock { ahead: 60_000_000_000, error: 300 });
        let found = own.difference(&peer, Address([0; 16]));
        assert_eq!((found.ahead, found.error), (-10_000_000_000, 2_000));
        let unknown = own.difference(&Clock { error: UNKNOWN, ..peer }, Address([0; 16]));
        assert_eq!(unknown.error, u32::MAX);
        // Of this machine: both readings differ by what clocks do in between.
        let (first, second) = (Clock::own(Source::Stated(1)), Clock::own(Source::Stated(1)));
        let (first, second) = (first.expect("a clock"), second.expect("a clock"));
        assert!(first.ahead.abs_diff(second.ahead) <= first.error + second.error + 10_000_000, "{first:?} {second:?}");
    }

    #[test]
    fn a_key_that_others_may_read_is_none() {
        let folder = std::env::temp_dir().join(format!("onrampctl-key-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("key");
        let write = |text: &str, mode: u32| {
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            Key::read(&path).err().map(|failure| failure.to_string()).unwrap_or_default()
        };
        assert!(write("0123456789abcdef", 0o640).contains("found mode 640"));
        assert!(write("0123456789abcde\n", 0o600).contains("found 15 octets"));
        assert_eq!(write("0123456789abcdef\n", 0o600), "");
        fs::remove_dir_all(&folder).expect("removed");
        assert!(Key::read(&path).is_err());
    }
}
