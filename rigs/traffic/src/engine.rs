//! One thread, one epoll set, any number of transfers: each a connection that is opened, carries its bytes one way,
//! and is closed. The thread sleeps whenever there is nothing to do; where time is virtual, that is what lets it pass.

use crate::payload;
use crate::plan::Host;
use crate::sys::{self, Namespaces, Poll, READABLE, Settings, TcpInfo, WRITABLE};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

/// Most that is generated for one `send`.
const SEND_CHUNK: usize = 64 << 10;
/// Chunks that one transfer sends before the others get their turn.
const SEND_CHUNKS: usize = 4;
/// Most that one `recv` takes.
const RECEIVE_CHUNK: usize = 256 << 10;

/// Files of the program itself: the standard three, its namespace, the poll, the timer, the watched queue, and spare.
const OWN_FILES: usize = 32;

/// What is to be transferred. Its `id` is the key of its bytes.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Name; no two transfers at a time have the same.
    pub id: u64,
    /// Who sends.
    pub source: Host,
    /// Who receives.
    pub destination: Host,
    /// Port at which the receiver listens.
    pub port: u16,
    /// What is sent.
    pub bytes: u64,
    /// Congestion control of its own, instead of the engine's.
    pub congestion: Option<String>,
}

impl Transfer {
    fn to(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.destination.address, self.port)
    }

    fn settings(&self, common: &Settings) -> Settings {
        let congestion = self.congestion.clone().unwrap_or_else(|| common.congestion.clone());
        Settings { congestion, ..common.clone() }
    }
}

/// How a transfer went. Times are ns since the engine's origin.
#[derive(Clone, Debug)]
pub struct Record {
    /// Of the transfer.
    pub id: u64,
    /// When the connection was asked for.
    pub start_ns: u64,
    /// When the sender knew that it was open.
    pub connected_ns: Option<u64>,
    /// When the receiver had the last byte.
    pub end_ns: Option<u64>,
    /// The longest time without a byte for the receiver, from when the connection was open for it to the last byte, or to the
    /// failure.
    pub stall_ns: u64,
    /// Bytes that arrived as sent.
    pub received: u64,
    /// The sender's counts when all was acknowledged.
    pub info: TcpInfo,
    /// Congestion control that the sender had at the end.
    pub congestion: String,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// Where a sender is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Sending,
    /// All is in the socket; the receiver's end of the stream says that all has arrived.
    Draining,
    Closed,
}

struct Running {
    bytes: u64,
    expected: (usize, SocketAddrV4),
    phase: Phase,
    sender: Option<OwnedFd>,
    sent: u64,
    receiver: Option<OwnedFd>,
    /// When bytes arrived last, or the connection was accepted.
    arrived: u64,
    record: Record,
}

/// What a token of the poll stands for.
const SENDER: u64 = 0;
const RECEIVER: u64 = 1;
const LISTENER: u64 = 2;
const TIMER: u64 = 3;

fn token(index: u64, kind: u64) -> u64 {
    index << 2 | kind
}

/// Plays transfers.
pub struct Engine {
    settings: Settings,
    ecn_check: bool,
    namespaces: Namespaces,
    poll: Poll,
    timer: OwnedFd,
    listeners: Vec<OwnedFd>,
    places: BTreeMap<(Option<String>, SocketAddrV4), usize>,
    running: BTreeMap<u64, Running>,
    /// Whose connection will come from where.
    expected: BTreeMap<(usize, SocketAddrV4), u64>,
    finished: Vec<Record>,
    origin: u64,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
}

impl Engine {
    /// Listens wherever `transfers` go, and checks that every namespace exists and accepts the settings. At most `most`
    /// of them will be under way at a time.
    pub fn new(settings: Settings, ecn_check: bool, transfers: &[Transfer], most: usize) -> io::Result<Self> {
        // Both ends of each, at most a listener and two namespaces of each, and a few of our own.
        let files = 2 * most + 3 * transfers.len() + OWN_FILES;
        sys::raise_file_limit(u64::try_from(files).map_err(io::Error::other)?)?;
        let mut namespaces = Namespaces::new()?;
        let poll = Poll::new()?;
        let senders: BTreeSet<_> =
            transfers.iter().map(|transfer| (&transfer.source.namespace, &transfer.congestion)).collect();
        for (namespace, congestion) in senders {
            let congestion = congestion.as_ref().unwrap_or(&settings.congestion).clone();
            let settings = Settings { congestion, ..settings.clone() };
            namespaces.inside(namespace.as_deref(), || sys::try_settings(&settings))?;
        }
        let mut listeners = Vec::new();
        let mut places = BTreeMap::new();
        let mut controls = Vec::new();
        for transfer in transfers {
            let at = transfer.to();
            let place = (transfer.destination.namespace.clone(), at);
            let settings = transfer.settings(&settings);
            if let Some(&listener) = places.get(&place) {
                // Connections inherit it from the listener.
                if controls[listener] != settings.congestion {
                    let (one, other) = (&controls[listener], &settings.congestion);
                    return Err(io::Error::other(format!("flows to {at} are of {one} and of {other}")));
                }
                continue;
            }
            let listener = namespaces
                .inside(transfer.destination.namespace.as_deref(), || sys::listen(at, &settings))
                .map_err(|error| io::Error::new(error.kind(), format!("listening at {at}: {error}")))?;
            poll.add(&listener, READABLE, token(listeners.len() as u64, LISTENER))?;
            places.insert(place, listeners.len());
            listeners.push(listener);
            controls.push(settings.congestion);
        }
        let timer = sys::timer()?;
        poll.add(&timer, READABLE, token(0, TIMER))?;
        Ok(Self {
            settings,
            ecn_check,
            namespaces,
            poll,
            timer,
            listeners,
            places,
            running: BTreeMap::new(),
            expected: BTreeMap::new(),
            finished: Vec::new(),
            origin: sys::now(),
            buffer: vec![0; RECEIVE_CHUNK],
            scratch: vec![0; RECEIVE_CHUNK],
        })
    }

    /// CLOCK_MONOTONIC at time 0.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// Nanoseconds since the origin.
    pub fn now(&self) -> u64 {
        sys::now() - self.origin
    }

    /// The namespaces, for others who look into them.
    pub fn namespaces(&mut self) -> &mut Namespaces {
        &mut self.namespaces
    }

    /// How many transfers are under way.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Opens a transfer's connection. False if that failed at once; the next turn says why.
    pub fn start(&mut self, transfer: &Transfer) -> bool {
        let to = transfer.to();
        let settings = transfer.settings(&self.settings);
        let listener = self.places[&(transfer.destination.namespace.clone(), to)];
        let mut record = Record {
            id: transfer.id,
            start_ns: self.now(),
            connected_ns: None,
            end_ns: None,
            stall_ns: 0,
            received: 0,
            info: TcpInfo::default(),
            congestion: String::new(),
            failure: None,
        };
        let from = transfer.source.address;
        let connected = self
            .namespaces
            .inside(transfer.source.namespace.as_deref(), || sys::connect(from, to, &settings))
            .and_then(|(fd, seen_as)| {
                self.poll.add(&fd, WRITABLE, token(transfer.id, SENDER))?;
                Ok((fd, seen_as))
            });
        match connected {
            Ok((fd, seen_as)) => {
                let expected = (listener, seen_as);
                self.expected.insert(expected, transfer.id);
                let running = Running {
                    bytes: transfer.bytes,
                    expected,
                    phase: Phase::Connecting,
                    sender: Some(fd),
                    sent: 0,
                    receiver: None,
                    arrived: 0,
                    record,
                };
                let before = self.running.insert(transfer.id, running);
                assert!(before.is_none(), "transfer {} runs already", transfer.id);
                true
            }
            Err(error) => {
                record.failure = Some(format!("connecting from {from} to {to}: {error}"));
                self.finished.push(record);
                false
            }
        }
    }

    /// Sleeps until something happens or `alarm` (ns since the origin) comes, deals with it, and returns what has
    /// ended.
    pub fn turn(&mut self, alarm: Option<u64>) -> io::Result<Vec<Record>> {
        if self.finished.is_empty() {
            sys::set_timer(&self.timer, alarm.map(|alarm| self.origin + alarm))?;
            for token in self.poll.wait()? {
                let index = token >> 2;
                match token & 3 {
                    SENDER => self.step(index, Self::serve_sender),
                    RECEIVER => self.step(index, Self::serve_receiver),
                    LISTENER => self.accept(usize::try_from(index).expect("an index"))?,
                    _ => sys::read_timer(&self.timer),
                }
            }
        }
        Ok(std::mem::take(&mut self.finished))
    }

    /// Ends what still runs, as a failure.
    pub fn abandon(&mut self, reason: &str) -> Vec<Record> {
        let ids: Vec<u64> = self.running.keys().copied().collect();
        for id in ids {
            self.end(id, Some(reason.to_owned()));
        }
        std::mem::take(&mut self.finished)
    }

    fn end(&mut self, id: u64, failure: Option<String>) {
        let Some(mut running) = self.running.remove(&id) else { return };
        // The port is free once the sender's FIN is acknowledged, which may be before the receiver is served here: the
        // next transfer may have it already.
        if self.expected.get(&running.expected) == Some(&id) {
            self.expected.remove(&running.expected);
        }
        if failure.is_some()
            && let Some(sender) = &running.sender
        {
            // What the kernel still knows helps to see why.
            running.record.info = sys::tcp_info(sender).unwrap_or_default();
            running.record.congestion = sys::congestion(sender).unwrap_or_default();
        }
        if running.record.end_ns.is_none() && running.receiver.is_some() {
            running.record.stall_ns = running.record.stall_ns.max(self.now() - running.arrived);
        }
        running.record.failure = failure;
        self.finished.push(running.record);
    }

    fn accept(&mut self, listener: usize) -> io::Result<()> {
        loop {
            let (fd, peer) = match sys::accept(&self.listeners[listener]) {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The connection went away before it was accepted; its sender will be told.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            // A connection that nobody expects belongs to a transfer that has failed already: closed by dropping it.
            let Some(&id) = self.expected.get(&(listener, peer)) else { continue };
            let running = self.running.get_mut(&id).expect("what is expected runs");
            self.poll.add(&fd, READABLE, token(id, RECEIVER))?;
            running.receiver = Some(fd);
            running.arrived = sys::now() - self.origin;
        }
    }

    /// Runs one side's handler; an error of its ends the transfer.
    fn step(&mut self, id: u64, serve: fn(&mut Self, u64, &mut Running) -> Result<(), String>) {
        // The event may be older than the end of the transfer.
        let Some(mut running) = self.running.remove(&id) else { return };
        let result = serve(self, id, &mut running);
        let done = running.phase == Phase::Closed && running.receiver.is_none();
        self.running.insert(id, running);
        match result {
            Err(failure) => self.end(id, Some(failure)),
            Ok(()) if done => self.end(id, None),
            Ok(()) => {}
        }
    }

    fn serve_sender(&mut self, id: u64, running: &mut Running) -> Result<(), String> {
        let Some(fd) = &running.sender else { return Ok(()) };
        let sending = |error: io::Error| format!("sending: {error}");
        if running.phase == Phase::Connecting {
            sys::take_error(fd).map_err(|error| format!("connecting: {error}"))?;
            running.record.connected_ns = Some(self.now());
            running.phase = Phase::Sending;
        }
        if running.phase == Phase::Sending {
            for _ in 0..SEND_CHUNKS {
                let left = running.bytes - running.sent;
                let length = usize::try_from(left).map_or(SEND_CHUNK, |left| left.min(SEND_CHUNK));
                let chunk = &mut self.buffer[..length];
                payload::fill(id, running.sent, chunk);
                let sent = match sys::send(fd, chunk) {
                    Ok(sent) => sent,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(sending(error)),
                };
                running.sent += sent as u64;
                if running.sent == running.bytes {
                    running.phase = Phase::Draining;
                    self.poll.change(fd, READABLE, token(id, SENDER)).map_err(sending)?;
                    return Ok(());
                }
                if sent < length {
                    break;
                }
            }
            return Ok(());
        }
        // Draining. The receiver's FIN acknowledges everything, so that the counts are complete; our own is not yet
        // sent.
        let mut nothing = [0];
        match sys::receive(fd, &mut nothing) {
            Ok(0) => {}
            Ok(_) => return Err("the receiver sent data".to_owned()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(format!("waiting for the receiver: {error}")),
        }
        if running.record.end_ns.is_none() {
            return Err("the receiver closed early".to_owned());
        }
        running.record.info = sys::tcp_info(fd).map_err(|error| format!("TCP_INFO: {error}"))?;
        running.record.congestion = sys::congestion(fd).map_err(|error| format!("TCP_CONGESTION: {error}"))?;
        if self.ecn_check && !running.record.info.ecn {
            return Err("ECN was not negotiated".to_owned());
        }
        running.phase = Phase::Closed;
        running.sender = None;
        Ok(())
    }

    fn serve_receiver(&mut self, id: u64, running: &mut Running) -> Result<(), String> {
        let Some(fd) = &running.receiver else { return Ok(()) };
        let received = match sys::receive(fd, &mut self.buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(format!("receiving: {error}")),
        };
        let record = &mut running.record;
        if received == 0 {
            if record.end_ns.is_none() {
                return Err(format!("the stream ended after {} of {} bytes", record.received, running.bytes));
            }
            running.receiver = None;
            return Ok(());
        }
        let data = &self.buffer[..received];
        if let Some(place) = payload::first_difference(id, record.received, data, &mut self.scratch) {
            record.received = place;
            return Err(format!("byte {place} is not what was sent"));
        }
        record.received += received as u64;
        let now = sys::now() - self.origin;
        record.stall_ns = record.stall_ns.max(now - running.arrived);
        running.arrived = now;
        if record.received > running.bytes {
            return Err(format!("more than {} bytes arrived", running.bytes));
        }
        if record.received == running.bytes {
            record.end_ns = Some(now);
            sys::shut_writing(fd).map_err(|error| format!("closing: {error}"))?;
        }
        Ok(())
    }
}
