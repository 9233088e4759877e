//! How far the clocks of two hosts are apart that others keep synchronised (chrony, PTP).
//!
//! Stamps are of CLOCK_MONOTONIC, which no two hosts share. Each host knows how far its CLOCK_REALTIME is from it, and by how
//! much that one may be wrong; two hosts that tell each other both numbers know the difference of their stamps. How long a message takes
//! does not matter. What is told is checked by the programs: a difference by which a packet would arrive before it was sent is refused.
//! Who has the key is believed to be any host that has the address which was asked.

use crate::{
    arguments,
    bpf::Loaded,
    layout::{Address, Path, Relative},
    message::{Key, LENGTH, Message, Nonce},
    status,
    synchronised::{Clock, Source, UNKNOWN},
};
use hostctl::{
    complain,
    failure::{Failure, Outcome, While},
    say,
};
use rustix::time::{ClockId, clock_gettime};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Between two questions to a peer.
const PAUSE: Duration = Duration::from_secs(1);
/// A fault that was away for so long is said again.
const QUIET: Duration = Duration::from_secs(60);
/// Questions in one go: answers to all of them find room in a socket.
const BATCH: usize = 32;

/// This host's clock, read by a thread of its own each second, and whether its stamps are of that clock alone.
#[derive(Clone, Copy)]
struct Own {
    clock: Clock,
    are_plain: bool,
    at: Instant,
}

/// Who exchanges clocks with peers that do so, too.
pub struct Exchange {
    socket: UdpSocket,
    source: Source,
    key: Key,
    port: u16,
    own: Arc<Mutex<Option<Own>>>,
    /// Whom to ask in this second.
    due: Vec<Address>,
    /// Questions of this second.
    asked: BTreeMap<Nonce, Address>,
    loaded: Option<Loaded>,
    /// Messages of this second that were not to be believed, and answers.
    refused: u64,
    answers: u64,
    /// Faults, and when each was there last.
    said: BTreeMap<String, Instant>,
    /// Paths whose delays are counted from the least one again.
    relative: BTreeMap<Address, Relative>,
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
        Ok(Self {
            socket: listen(port).during(format!("cannot listen at UDP port {port}"))?,
            source,
            key,
            port,
            own: Arc::default(),
            due: Vec::new(),
            asked: BTreeMap::new(),
            loaded: None,
            refused: 0,
            answers: 0,
            said: BTreeMap::new(),
            relative: BTreeMap::new(),
        })
    }

    /// Asks and answers, for as long as the process runs.
    pub fn run(mut self) {
        let (source, own) = (self.source, Arc::clone(&self.own));
        thread::spawn(move || follow(source, &own));
        let mut next = Instant::now();
        loop {
            if Instant::now() >= next {
                next = Instant::now() + PAUSE;
                if let Err(failure) = self.look() {
                    self.say(failure.to_string());
                }
            }
            let due = self.due.len().saturating_sub(BATCH);
            for address in self.due.split_off(due) {
                self.ask(address);
            }
            let patience = if self.due.is_empty() { PAUSE / 10 } else { Duration::from_millis(2) };
            let _ = self.socket.set_read_timeout(Some(patience));
            // A flood must not keep it from asking.
            for _ in 0..8 * BATCH {
                if !self.receive() {
                    break;
                }
            }
        }
    }

    /// Takes a message; false if none comes.
    fn receive(&mut self) -> bool {
        let mut octets = [0; LENGTH + 1];
        let (length, from) = match self.socket.recv_from(&mut octets) {
            Ok(received) => received,
            Err(error) => {
                // A peer's host may have refused what was sent; whatever it is, it does not come at once again.
                if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
                    thread::sleep(Duration::from_millis(1));
                }
                return false;
            }
        };
        match Message::read(&octets[..length], &self.key) {
            Some(Message { nonce, asked, clock: None }) => self.answer(nonce, asked, from),
            Some(Message { nonce, asked, clock: Some(peer) }) => self.learn(nonce, asked, &peer),
            None => self.refused += 1,
        }
        true
    }

    /// A fault, once until it has been away for a while.
    fn say(&mut self, line: String) {
        let now = Instant::now();
        let before = self.said.insert(line.clone(), now);
        if before.is_none_or(|before| now - before > QUIET) {
            complain!("watch: clocks: {line}");
        }
    }

    /// The own clock, if it was read of late.
    fn own(&self) -> Option<Own> {
        let own = *self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.filter(|own| own.at.elapsed() < 3 * PAUSE)
    }

    /// Once a second: what has become of the last questions, and whom to ask next.
    fn look(&mut self) -> Outcome {
        if !self.asked.is_empty() && self.answers == 0 {
            self.say("no peer answers (UDP port, key, onrampctl watch --clock there)".into());
        }
        if self.refused > 0 {
            self.say("messages came whose code is not that of the key".into());
        }
        (self.refused, self.answers) = (0, 0);
        self.asked.clear();
        self.loaded = Loaded::open()?;
        let Some(loaded) = &self.loaded else { return Ok(()) };
        let paths = loaded.paths()?;
        let now = clock_gettime(ClockId::Monotonic);
        let late = (now.tv_sec as u64).saturating_sub(2) * 1_000_000_000;
        self.due = paths.iter().filter(|(_, path)| path.reported > late).map(|(address, _)| *address).collect();
        self.complain(&paths);
        Ok(())
    }

    fn ask(&mut self, asked: Address) {
        let Some(nonce) = draw() else { return };
        let question = Message { nonce, asked, clock: None }.write(&self.key);
        // Who cannot be reached does not answer.
        let _ = self.socket.send_to(&question, SocketAddr::new(as_known(&self.socket, asked.ip()), self.port));
        self.asked.insert(nonce, asked);
    }

    /// What is not known is told, too, so that a peer knows why.
    fn answer(&mut self, nonce: Nonce, asked: Address, to: SocketAddr) {
        // Somebody may have sent it on from another host.
        if UdpSocket::bind((asked.ip(), 0)).is_err() {
            self.say("questions came that were for another host".into());
            return;
        }
        let own = self.own();
        if own.is_some_and(|own| !own.are_plain) {
            self.say("net.ipv4.tcp_timestamps is not 2: stamps of this host are not of its clock alone, which peers are told".into());
        }
        let clock = own.filter(|own| own.are_plain).map_or(Clock { ahead: 0, error: UNKNOWN }, |own| own.clock);
        let _ = self.socket.send_to(&Message { nonce, asked, clock: Some(clock) }.write(&self.key), to);
    }

    fn learn(&mut self, nonce: Nonce, asked: Address, peer: &Clock) {
        if self.asked.get(&nonce) != Some(&asked) {
            return;
        }
        self.asked.remove(&nonce);
        self.answers += 1;
        if let (Some(own), Some(loaded)) = (self.own(), &self.loaded) {
            // It may have been unloaded meanwhile.
            let _ = loaded.set_difference(&own.clock.difference(peer, asked));
        }
    }

    /// Says of which paths the clocks are no longer known well enough.
    fn complain(&mut self, paths: &[(Address, Path)]) {
        let now: BTreeMap<Address, Relative> =
            paths.iter().filter_map(|(address, path)| Some((*address, path.why_relative()?))).collect();
        let new = paths.iter().filter(|(address, _)| now.get(address) != self.relative.get(address));
        if let Some(line) = status::clocks(new) {
            complain!("watch: clocks: {line}");
        }
        // A path that is well for a moment is not announced anew each time.
        let all: BTreeSet<Address> = paths.iter().map(|(address, _)| *address).collect();
        self.relative.retain(|address, _| all.contains(address));
        self.relative.extend(now);
    }
}

/// `onrampctl clock`: asks one peer, and prints what comes of it.
///
/// # Errors
/// This host's clock is not known, or no answer comes within two seconds.
pub fn clock(arguments: &arguments::Clock) -> Outcome {
    let key = Key::read(&arguments.key)?;
    let own = Clock::own(arguments.clock)?;
    let doing = format!("cannot ask {}", arguments.peer);
    let socket = listen(0).during(&doing)?;
    let asked = Address::of(arguments.peer);
    let nonce = draw().ok_or_else(|| Failure::failed("the kernel gives no random number"))?;
    let to = SocketAddr::new(as_known(&socket, arguments.peer), arguments.port);
    socket.send_to(&Message { nonce, asked, clock: None }.write(&key), to).during(&doing)?;
    socket.set_read_timeout(Some(2 * PAUSE)).during(&doing)?;
    let mut octets = [0; LENGTH + 1];
    let (length, _) = socket.recv_from(&mut octets).map_err(|error| {
        Failure::failed(format!("{doing}: no answer: {error} (UDP port, key, onrampctl watch --clock there)"))
    })?;
    let Some(Message { nonce: found, clock: Some(peer), .. }) = Message::read(&octets[..length], &key) else {
        return Err(Failure::failed(format!("{doing}: the answer's code is not that of the key")));
    };
    if found != nonce || peer.error == UNKNOWN {
        return Err(Failure::failed(format!("{doing}: it does not know by how much its clock may be wrong")));
    }
    let found = own.difference(&peer, asked);
    say!(
        "{}: its CLOCK_MONOTONIC is {:.6} s ahead, to {} us",
        arguments.peer,
        found.ahead as f64 / 1e9,
        f64::from(found.error) / 1e3
    );
    Ok(())
}

fn draw() -> Option<Nonce> {
    let mut nonce = Nonce::default();
    let drawn = rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty());
    (drawn == Ok(nonce.len())).then_some(nonce)
}

/// An address as a socket of its family knows it.
fn as_known(socket: &UdpSocket, address: IpAddr) -> IpAddr {
    match (address, socket.local_addr()) {
        (IpAddr::V4(four), Ok(SocketAddr::V6(_))) => four.to_ipv6_mapped().into(),
        _ => address,
    }
}

/// A socket of both families, whatever `net.ipv6.bindv6only` says; of IPv4 alone where there is no IPv6.
fn listen(port: u16) -> io::Result<UdpSocket> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt::set_ipv6_v6only};
    let both = || -> io::Result<UdpSocket> {
        let socket = socket_with(AddressFamily::INET6, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        set_ipv6_v6only(&socket, false)?;
        bind(&socket, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))?;
        Ok(socket.into())
    };
    both().or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse => Err(error),
        _ => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)),
    })
}

/// Reads the own clock each second, and says once what stands against it.
fn follow(source: Source, own: &Mutex<Option<Own>>) {
    let mut complaint = String::new();
    loop {
        let read = Clock::own(source);
        let said = read.as_ref().err().map(ToString::to_string).unwrap_or_default();
        if !said.is_empty() && said != complaint {
            complain!("watch: clocks: {said}");
        }
        complaint = said;
        let are_plain = fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps").is_ok_and(|text| text.trim() == "2");
        let read = read.ok().map(|clock| Own { clock, are_plain, at: Instant::now() });
        *own.lock().unwrap_or_else(PoisonError::into_inner) = read;
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_where_it_was_to_go() {
        let key = Key::of(&[7; 16]).expect("a key");
        let free = listen(0).expect("a port").local_addr().expect("an address").port();
        let exchange = Exchange::new(Source::Stated(2_000), key.clone(), free).expect("an exchange");
        thread::spawn(move || exchange.run());
        let socket = listen(0).expect("a port");
        socket.set_read_timeout(Some(10 * PAUSE)).expect("patience");
        let ask = |asked: &str, key: &Key| {
            let asked = Address::of(asked.parse().expect("an address"));
            let question = Message { nonce: [5; 16], asked, clock: None };
            let to = SocketAddr::new(as_known(&socket, Ipv4Addr::LOCALHOST.into()), free);
            socket.send_to(&question.write(key), to).expect("sent");
        };
        // Of another key, and for another host: only the last one is answered.
        ask("127.0.0.1", &Key::of(&[8; 16]).expect("a key"));
        ask("192.0.2.1", &key);
        ask("127.0.0.1", &key);
        let mut octets = [0; LENGTH];
        socket.recv_from(&mut octets).expect("an answer");
        let answer = Message::read(&octets, &key).expect("of that key");
        assert_eq!((answer.nonce, answer.asked.ip()), ([5; 16], Ipv4Addr::LOCALHOST.into()));
        assert!(answer.clock.is_some());
        socket.set_read_timeout(Some(PAUSE / 10)).expect("patience");
        assert!(socket.recv_from(&mut octets).is_err());
    }
}
