//! Routes as rtnetlink(7) has them: raw messages, of which nothing is changed but the metrics.
//!
//! A route is replaced by its own message. What a dump says of a route's state, and the kernel does not take back (`rtnetlink(7)`,
//! `net/ipv4/fib_frontend.c`, `net/ipv6/route.c` of Linux 6.18), is left out: flags of dead next hops, the next hops of a nexthop
//! object beside its id, ages.

use crate::failure::{Failure, Outcome, While};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use std::{
    cmp::Reverse,
    collections::HashMap,
    fmt::Debug,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

/// Octets of `struct nlmsghdr`, `struct rtmsg` and `struct rtnexthop`, and of the header of an attribute.
const HEADER: usize = 16;
const ROUTE: usize = 12;
const NEXT_HOP: usize = 8;
const ATTRIBUTE: usize = 4;

/// Flags of a route and of a next hop that are configuration (`RTNH_F_PERVASIVE`, `RTNH_F_ONLINK`); others are state.
const CONFIGURED: u32 = 2 | 4;
/// Attributes of routes and of their metrics which libc does not name.
const RTA_NH_ID: u16 = 30;
const RTA_EXPIRES: u16 = 23;
const RTA_VIA: u16 = 18;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;
/// The flag of what the kernel has learned of a path (its MTU, a redirect): a copy of a route, not one of them.
const RTM_F_CLONED: u32 = 0x200;
/// Who made a route: the kernel or a daemon, from router advertisements.
const RTPROT_RA: u8 = 9;
const RTAX_LOCK: u16 = 1;
const RTAX_MTU: u16 = 2;
const RTAX_RTO_MIN: u16 = 13;
/// Attributes of an acknowledgement: the kernel's words for what it refuses.
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLM_F_CAPPED: u16 = 0x100;
/// Ticks a second in which the kernel tells ages (`USER_HZ`).
const TICKS: u32 = 100;

/// A list of routes that change meanwhile is asked for so many times more.
const TRIES: usize = 5;

/// Address families.
pub const FAMILIES: [u8; 2] = [libc::AF_INET as u8, libc::AF_INET6 as u8];

/// Attributes one after another: type and content.
pub fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?) & libc::NLA_TYPE_MASK as u16;
        let content = rest.get(ATTRIBUTE..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, content))
    })
}

/// Appends an attribute.
pub fn push(message: &mut Vec<u8>, kind: u16, content: &[u8]) {
    let length = (ATTRIBUTE + content.len()) as u16;
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(content);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// The number of 32 bits that a content begins with.
pub fn number(content: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(content.get(..4)?.try_into().ok()?))
}

/// What tells a route from others: no two are equal in it, unless one was appended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    family: u8,
    table: u32,
    destination: (u8, Vec<u8>),
    source: (u8, Vec<u8>),
    tos: u8,
    priority: u32,
}

/// Attributes of a route's metrics (`RTA_METRICS`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    list: Vec<(u16, Vec<u8>)>,
    /// A bit of each attribute that sockets may not choose for themselves.
    locks: u32,
}

fn bit(kind: u16) -> u32 {
    1_u32.checked_shl(kind.into()).unwrap_or(0)
}

impl Metrics {
    fn new(content: &[u8]) -> Self {
        let mut metrics = Self::default();
        for (kind, content) in attributes(content) {
            match kind {
                RTAX_LOCK => metrics.locks = number(content).unwrap_or(0),
                _ => metrics.list.push((kind, content.to_owned())),
            }
        }
        metrics
    }

    fn bytes(&self) -> Vec<u8> {
        let mut content = Vec::new();
        self.list.iter().for_each(|(kind, one)| push(&mut content, *kind, one));
        if self.locks != 0 {
            push(&mut content, RTAX_LOCK, &self.locks.to_ne_bytes());
        }
        content
    }

    /// The content of an attribute.
    pub fn get(&self, kind: u16) -> Option<&[u8]> {
        self.list.iter().find(|(known, _)| *known == kind).map(|(_, content)| &content[..])
    }

    /// Puts an attribute in the place of the one that is there, or takes that away.
    pub fn set(&mut self, kind: u16, content: Option<Vec<u8>>) {
        self.list.retain(|(known, _)| *known != kind);
        self.list.extend(content.map(|content| (kind, content)));
    }

    /// Whether sockets may not choose this attribute for themselves.
    pub fn is_locked(&self, kind: u16) -> bool {
        self.locks & bit(kind) != 0
    }

    /// Says whether they may not.
    pub fn lock(&mut self, kind: u16, lock: bool) {
        self.locks = self.locks & !bit(kind) | if lock { bit(kind) } else { 0 };
    }
}

/// Part of a route's metrics.
pub trait Setting: Clone + Default + PartialEq + Debug {
    /// What it is, as messages name it: `congestion control`.
    const KIND: &'static str;

    /// That of a route.
    fn read(metrics: &Metrics) -> Self;

    /// Gives it to a route.
    fn write(&self, metrics: &mut Metrics);

    /// Its name, if the route has it.
    fn name(&self) -> Option<String>;

    /// The same with that name.
    fn named(self, name: &str) -> Self;

    /// As messages have it.
    fn in_words(&self) -> String;
}

/// A route: `struct rtmsg` and its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route(Vec<u8>);

impl Route {
    /// Of a message's content; `None` if it is too short for one.
    pub fn new(content: &[u8]) -> Option<Self> {
        (content.len() >= ROUTE).then(|| Self(content.to_owned()))
    }

    /// Its octets.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn attributes(&self) -> impl Iterator<Item = (u16, &[u8])> {
        attributes(&self.0[ROUTE..])
    }

    fn attribute(&self, wanted: u16) -> Option<&[u8]> {
        self.attributes().find(|(kind, _)| *kind == wanted).map(|(_, content)| content)
    }

    /// It leads to hosts: neither local nor a blackhole.
    pub fn is_unicast(&self) -> bool {
        self.0[7] == libc::RTN_UNICAST
    }

    /// See [`Key`].
    pub fn key(&self) -> Key {
        let address = |kind| self.attribute(kind).unwrap_or_default().to_owned();
        Key {
            family: self.0[0],
            table: self.table(),
            destination: (self.0[1], address(libc::RTA_DST)),
            source: (self.0[2], address(libc::RTA_SRC)),
            tos: self.0[3],
            priority: self.attribute(libc::RTA_PRIORITY).and_then(number).unwrap_or(0),
        }
    }

    fn flags(&self) -> u32 {
        number(&self.0[8..]).unwrap_or(0)
    }

    /// The number of the device that an advertised route goes through; `None` of other routes.
    pub fn advertised_on(&self) -> Option<u32> {
        let is_advertised = i32::from(self.0[0]) == libc::AF_INET6 && self.0[5] == RTPROT_RA;
        is_advertised.then(|| self.attribute(libc::RTA_OIF).and_then(number)).flatten()
    }

    /// The number of its table.
    pub fn table(&self) -> u32 {
        self.attribute(libc::RTA_TABLE).and_then(number).unwrap_or(self.0[4].into())
    }

    /// Whether it is the route to these addresses.
    pub fn leads_to(&self, prefix: &Prefix) -> bool {
        let key = self.key();
        let zeros = |octets: &[u8]| octets.iter().all(|octet| *octet == 0);
        let is_same = match prefix.address {
            _ if prefix.length == 0 => zeros(&key.destination.1),
            IpAddr::V4(address) => key.destination.1 == address.octets(),
            IpAddr::V6(address) => key.destination.1 == address.octets(),
        };
        key.family == prefix.family() && key.destination.0 == prefix.length && is_same
    }

    fn metrics(&self) -> Metrics {
        Metrics::new(self.attribute(libc::RTA_METRICS).unwrap_or_default())
    }

    /// What a tool sets at it.
    pub fn setting<S: Setting>(&self) -> S {
        S::read(&self.metrics())
    }

    /// Whether it is as the other one, its state apart.
    pub fn is_as(&self, other: &Self) -> bool {
        // When it expires comes nearer by itself.
        let lasting = |route: &Self| {
            let content = route.message();
            let kept = attributes(&content[ROUTE..]).filter(|(kind, _)| *kind != RTA_EXPIRES);
            let kept: Vec<_> = kept.map(|(kind, content)| (kind, content.to_owned())).collect();
            (content[..ROUTE].to_owned(), kept)
        };
        lasting(self) == lasting(other)
    }

    /// The MTU of the path, of a copy that the kernel keeps for what it has learned.
    pub fn learned_mtu(&self) -> Option<u32> {
        number(self.metrics().get(RTAX_MTU)?)
    }

    /// The least retransmission timeout of its connections, ms; `None` if it is the host's.
    pub fn least_timeout(&self) -> Option<u32> {
        let metrics = self.metrics();
        // TCP takes one that sockets may not choose, as `ip route` sets it.
        metrics.is_locked(RTAX_RTO_MIN).then(|| number(metrics.get(RTAX_RTO_MIN)?)).flatten()
    }

    /// Whether the host that such a copy is about lies in this route.
    fn covers(&self, learned: &Self) -> bool {
        let (own, other) = (self.key(), learned.key());
        let bits = usize::from(own.destination.0);
        let (whole, rest) = (bits / 8, bits % 8);
        let (own_octets, octets) = (&own.destination.1, &other.destination.1);
        let is_same = |at: usize, mask: u8| match (own_octets.get(at), octets.get(at)) {
            (Some(one), Some(two)) => (one ^ two) & mask == 0,
            // The default route has no octets.
            _ => bits == 0,
        };
        own.family == other.family
            && own.table == other.table
            && (0..whole).all(|at| is_same(at, 0xff))
            && (rest == 0 || is_same(whole, 0xff_u8 << (8 - rest)))
    }

    /// The message that replaces this route by one with that setting.
    pub fn with<S: Setting>(&self, setting: &S) -> Vec<u8> {
        let mut metrics = self.metrics();
        setting.write(&mut metrics);
        self.message_with(&metrics)
    }

    /// The message that makes it as it is.
    pub fn message(&self) -> Vec<u8> {
        self.message_with(&self.metrics())
    }

    fn message_with(&self, metrics: &Metrics) -> Vec<u8> {
        let metrics = metrics.bytes();
        let mut message = self.0[..ROUTE].to_owned();
        let flags = self.flags() & CONFIGURED;
        message[8..ROUTE].copy_from_slice(&flags.to_ne_bytes());
        let of_object = self.attribute(RTA_NH_ID).is_some();
        for (kind, content) in self.attributes() {
            match kind {
                libc::RTA_METRICS => {}
                // The id says all of it, and the kernel takes one of the two.
                libc::RTA_OIF | libc::RTA_GATEWAY | libc::RTA_MULTIPATH if of_object => {}
                RTA_VIA | RTA_ENCAP | RTA_ENCAP_TYPE if of_object => {}
                libc::RTA_MULTIPATH => push(&mut message, kind, &without_state(content)),
                // struct rta_cacheinfo: the third of its numbers is when it expires.
                libc::RTA_CACHEINFO => match content.get(8..).and_then(number).unwrap_or(0) as i32 {
                    ticks if ticks > 0 => {
                        let seconds = (ticks as u32 / TICKS).max(1);
                        push(&mut message, RTA_EXPIRES, &seconds.to_ne_bytes());
                    }
                    _ => {}
                },
                _ => push(&mut message, kind, content),
            }
        }
        // Of a nexthop object without metrics the kernel would take over another route's.
        if !metrics.is_empty() || of_object {
            push(&mut message, libc::RTA_METRICS, &metrics);
        }
        message
    }

    /// Where it leads to, as `ip route` says it.
    pub fn describe(&self) -> String {
        let Key { family, destination: (length, address), priority, .. } = self.key();
        let address = match (<[u8; 4]>::try_from(&*address), <[u8; 16]>::try_from(&*address)) {
            (Ok(octets), _) => Ipv4Addr::from(octets).to_string(),
            (_, Ok(octets)) => Ipv6Addr::from(octets).to_string(),
            _ if i32::from(family) == libc::AF_INET6 => "default (IPv6)".into(),
            _ => "default".into(),
        };
        let length = if self.attribute(libc::RTA_DST).is_some() { format!("/{length}") } else { String::new() };
        let metric = if priority == 0 { String::new() } else { format!(" metric {priority}") };
        format!("{address}{length}{metric}")
    }
}

/// All routes of a network namespace at one time, by their keys.
#[derive(Default)]
pub struct Table {
    routes: Vec<Route>,
    /// The first unicast route of a key, and how many there are: of more than one the kernel would replace any.
    by_key: HashMap<Key, (usize, usize)>,
}

impl Table {
    fn new(routes: Vec<Route>) -> Self {
        let mut by_key = HashMap::new();
        for (place, route) in routes.iter().enumerate().filter(|(_, route)| route.is_unicast()) {
            by_key.entry(route.key()).or_insert((place, 0)).1 += 1;
        }
        Self { routes, by_key }
    }

    /// In the kernel's order.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter()
    }

    /// The unicast route of a key.
    pub fn find(&self, key: &Key) -> Option<&Route> {
        self.by_key.get(key).map(|(place, _)| &self.routes[*place])
    }

    /// How many unicast routes have a key.
    pub fn count(&self, key: &Key) -> usize {
        self.by_key.get(key).map_or(0, |(_, count)| *count)
    }

    /// The route that packets to this host take, of those of its table: the longest that covers it, of the least metric.
    pub fn to(&self, host: &Route) -> Option<&Route> {
        let covering = self.iter().filter(|route| route.is_unicast() && route.covers(host));
        covering.max_by_key(|route| (route.0[1], Reverse(route.key().priority)))
    }
}

/// Next hops without the flags that are their state.
fn without_state(content: &[u8]) -> Vec<u8> {
    let mut hops = content.to_owned();
    let mut at = 0;
    while let Some(header) = hops.get_mut(at..at + NEXT_HOP) {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        header[2] &= CONFIGURED as u8;
        at += length.next_multiple_of(4).max(NEXT_HOP);
    }
    hops
}

/// A destination as it is typed: `10.0.0.0/8`, an address, or `default` of both families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// Its first address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// So many bits of which are its.
    pub fn length(&self) -> u8 {
        self.length
    }

    fn family(&self) -> u8 {
        FAMILIES[usize::from(self.address.is_ipv6())]
    }

    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Outcome<Vec<Self>> {
        if text == "default" {
            let all = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
            return Ok(all.map(|address| Self { address, length: 0 }).to_vec());
        }
        let wrong = || Failure::input(format!("found {text:?}, allowed is 10.0.0.0/8, fd00::/8 or default"));
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv6() { 128 } else { 32 };
        let length = length.map_or(Ok(most), |length| length.parse().map_err(|_| wrong()))?;
        if length > most {
            return Err(wrong());
        }
        Ok(vec![Self { address, length }])
    }
}

/// What the kernel tells of changes: of links, and of routes of both families (`rtnetlink(7)`).
const CHANGES: u32 = 0x1 | 0x40 | 0x400;

/// Changes of links and routes of this network namespace, as they come.
pub struct Changes(Socket);

impl Changes {
    /// # Errors
    /// Those of the kernel.
    pub fn open() -> Outcome<Self> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind(&SocketAddr::new(0, CHANGES))?;
            socket.set_non_blocking(true)?;
            io::Result::Ok(socket)
        };
        Ok(Self(open().during("cannot open a netlink socket")?))
    }

    /// Waits until something changes, or so long.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn wait(&self, most: Option<Duration>) -> Outcome {
        let most = most.map(|most| Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() });
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], most.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error).during("cannot wait for changes of routes"),
        }
    }

    /// Forgets what has come: it is looked at as a whole.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn drain(&self) -> Outcome {
        loop {
            match self.0.recv_from_full() {
                Ok(_) => {}
                // More than the socket holds: what was lost is looked at with the rest.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).during("cannot read changes of routes"),
            }
        }
    }
}

/// What the kernel lists of another kind than routes: the content of each message.
///
/// # Errors
/// Those of the kernel.
pub fn list(kind: u16, request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let mut kernel = Routes::open().map_err(|failure| io::Error::other(failure.to_string()))?;
    kernel.ask(kind, (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16, request)
}

/// Tells the kernel something that it acknowledges.
///
/// # Errors
/// What the kernel says.
pub fn tell(kind: u16, flags: i32, request: &[u8]) -> io::Result<()> {
    let mut kernel = Routes::open().map_err(|failure| io::Error::other(failure.to_string()))?;
    kernel.ask(kind, (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16, request).map(drop)
}

/// A conversation with the kernel about the routes of this network namespace.
pub struct Routes {
    socket: Socket,
    sequence: u32,
}

impl Routes {
    /// # Errors
    /// Those of the kernel.
    pub fn open() -> Outcome<Self> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            // The kernel's words for what it refuses, and routes alone; it may be too old for either.
            let _ = socket.set_ext_ack(true);
            let _ = socket.set_netlink_get_strict_chk(true);
            io::Result::Ok(socket)
        };
        Ok(Self { socket: open().during("cannot open a netlink socket")?, sequence: 0 })
    }

    /// All routes of both families and all tables.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn all(&mut self) -> Outcome<Table> {
        let mut routes = Vec::new();
        for family in FAMILIES {
            let found = self.dump(family, 0)?;
            routes.extend(found.into_iter().filter(|route| route.flags() & RTM_F_CLONED == 0));
        }
        Ok(Table::new(routes))
    }

    /// Copies of routes that the kernel keeps for hosts, as it has learned of the path to them. It forgets them when the route is
    /// replaced.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn learned(&mut self) -> Outcome<Vec<Route>> {
        let mut copies = Vec::new();
        for family in FAMILIES {
            let found = self.dump(family, RTM_F_CLONED)?;
            copies.extend(found.into_iter().filter(|route| route.flags() & RTM_F_CLONED != 0));
        }
        Ok(copies)
    }

    fn dump(&mut self, family: u8, flags: u32) -> Outcome<Vec<Route>> {
        let mut request = [0; ROUTE];
        request[0] = family;
        request[8..].copy_from_slice(&flags.to_ne_bytes());
        let dump = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        let mut answers = self.ask(libc::RTM_GETROUTE, dump, &request);
        for _ in 0..TRIES {
            if !matches!(&answers, Err(error) if error.kind() == io::ErrorKind::Interrupted) {
                break;
            }
            answers = self.ask(libc::RTM_GETROUTE, dump, &request);
        }
        let found = answers.during("cannot list routes")?;
        Ok(found.iter().filter_map(|content| Route::new(content)).collect())
    }

    /// Puts a message in the place of the route that has its key.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn replace(&mut self, message: &[u8]) -> io::Result<()> {
        self.put(message, 0)
    }

    /// The same, or makes the route if there is none any more.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn restore(&mut self, message: &[u8]) -> io::Result<()> {
        self.put(message, libc::NLM_F_CREATE)
    }

    fn put(&mut self, message: &[u8], more: i32) -> io::Result<()> {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_REPLACE | more) as u16;
        self.ask(libc::RTM_NEWROUTE, flags, message).map(drop)
    }

    /// Sends a message, and returns what is answered until all of it is said.
    fn ask(&mut self, kind: u16, flags: u16, content: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.sequence += 1;
        let mut message = Vec::new();
        message.extend(((HEADER + content.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend(0_u32.to_ne_bytes());
        message.extend(content);
        self.socket.send(&message, 0)?;
        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while let Some(length) = number(rest).map(|length| length as usize) {
                let Some(one) = rest.get(..length).filter(|one| one.len() >= HEADER) else { break };
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
                let kind = i32::from(u16::from_ne_bytes([one[4], one[5]]));
                let flags = u16::from_ne_bytes([one[6], one[7]]);
                if number(&one[8..]) != Some(self.sequence) {
                    continue;
                }
                if flags & libc::NLM_F_DUMP_INTR as u16 != 0 {
                    return Err(io::Error::new(io::ErrorKind::Interrupted, "routes change while they are listed"));
                }
                match kind {
                    // A list that could not be ended says so here.
                    libc::NLMSG_DONE => match number(&one[HEADER..]).unwrap_or(0) as i32 {
                        error if error < 0 => return Err(refusal(one, flags, error)),
                        _ => return Ok(answers),
                    },
                    libc::NLMSG_ERROR => {
                        return match number(&one[HEADER..]).unwrap_or(0) as i32 {
                            0 => Ok(answers),
                            error => Err(refusal(one, flags, error)),
                        };
                    }
                    _ => answers.push(one[HEADER..].to_owned()),
                }
            }
        }
    }
}

/// What the kernel refuses, in its own words if it has some.
fn refusal(message: &[u8], flags: u16, error: i32) -> io::Error {
    let code = io::Error::from_raw_os_error(-error);
    if flags & NLM_F_ACK_TLVS == 0 {
        return code;
    }
    // Behind the error comes the request: all of it, or its header alone.
    let request = match flags & NLM_F_CAPPED {
        0 => number(message.get(HEADER + 4..).unwrap_or(&[])).unwrap_or(0) as usize,
        _ => HEADER,
    };
    let behind = message.get((HEADER + 4 + request).next_multiple_of(4)..).unwrap_or(&[]);
    let said = attributes(behind).find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG);
    let said = said.map(|(_, text)| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned());
    let kind = code.kind();
    said.map_or(code, |said| io::Error::new(kind, said))
}
