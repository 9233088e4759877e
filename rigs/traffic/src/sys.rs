//! The few system calls that std lacks, behind safe functions.

use std::collections::BTreeMap;
use std::ffi::{CString, c_int, c_void};
use std::fs::File;
use std::io;
use std::mem::{offset_of, size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Takes ownership of a descriptor that a call has just returned.
fn own(result: c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the kernel has just returned `fd` to us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn now() -> u64 {
    // SAFETY: a timespec of zeros is a valid value.
    let mut time: libc::timespec = unsafe { zeroed() };
    // SAFETY: `time` is valid for writes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    u64::try_from(time.tv_sec).expect("positive") * 1_000_000_000 + u64::try_from(time.tv_nsec).expect("positive")
}

/// Lets the process open `files` at once: up to its hard limit, and beyond that where it is privileged.
pub fn raise_file_limit(files: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    let hard = limit.rlim_max;
    limit.rlim_max = hard.max(files);
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is valid for reads.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })
        .map_err(|error| {
            let asked = format!("{files} open files are needed, {hard} are allowed (RLIMIT_NOFILE)");
            io::Error::new(error.kind(), format!("{asked}: {error}"))
        })
        .map(drop)
}

/// Network namespaces by name. A socket stays in the namespace in which it was made, so that one thread can own them
/// all.
pub struct Namespaces {
    own: File,
    named: BTreeMap<String, File>,
}

impl Namespaces {
    /// Remembers the namespace in which the thread is now.
    pub fn new() -> io::Result<Self> {
        Ok(Self { own: File::open("/proc/thread-self/ns/net")?, named: BTreeMap::new() })
    }

    /// Runs `work` with the thread in namespace `name`.
    pub fn inside<T>(&mut self, name: Option<&str>, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let Some(name) = name else { return work() };
        if !self.named.contains_key(name) {
            let path = format!("/run/netns/{name}");
            let file = File::open(&path)
                .map_err(|error| io::Error::new(error.kind(), format!("namespace {name} ({path}): {error}")))?;
            self.named.insert(name.to_owned(), file);
        }
        enter(&self.named[name])
            .map_err(|error| io::Error::new(error.kind(), format!("entering namespace {name}: {error}")))?;
        let result = work();
        // What follows would happen in the wrong network.
        enter(&self.own).expect("a thread may return to its own namespace");
        result
    }
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: setns changes only what namespace the calling thread is in.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

fn set(fd: &OwnedFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let length = socket_length::<c_int>();
    // SAFETY: `value` is valid for reads of `length` bytes.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), length) }).map(drop)
}

fn socket_length<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("small")
}

fn sockaddr(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::sa_family_t::try_from(libc::AF_INET).expect("small"),
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

fn address(raw: &libc::sockaddr_in) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(u32::from_be(raw.sin_addr.s_addr)), u16::from_be(raw.sin_port))
}

/// How connections are set up.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Congestion control, of both ends: the receiver's echoes marks.
    pub congestion: String,
    /// Congestion control of the receiving end instead, to see what a peer of another kind answers.
    pub receiver: Option<String>,
    /// SO_SNDBUF and SO_RCVBUF; `None` leaves them to the kernel's own tuning.
    pub socket_buffer: Option<c_int>,
}

fn socket(settings: &Settings) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let fd = own(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    set_congestion(&fd, &settings.congestion)?;
    // The last segment of a flow is not held back for the acknowledgement of the one before.
    set(&fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    if let Some(bytes) = settings.socket_buffer {
        // The kernel doubles both. Beyond net.core.wmem_max only the privileged may go.
        for (force, plain) in [(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF), (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)] {
            set(&fd, libc::SOL_SOCKET, force, bytes).or_else(|_| set(&fd, libc::SOL_SOCKET, plain, bytes))?;
        }
    }
    Ok(fd)
}

fn set_congestion(fd: &OwnedFd, name: &str) -> io::Result<()> {
    let text = CString::new(name)?;
    let length = libc::socklen_t::try_from(name.len()).map_err(io::Error::other)?;
    // SAFETY: `text` is valid for reads of `length` bytes.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            text.as_ptr().cast::<c_void>(),
            length,
        )
    })
    .map_err(|error| {
        let available =
            std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
        let available = available.trim();
        io::Error::new(error.kind(), format!("congestion control \"{name}\": {error} (available: {available})"))
    })?;
    Ok(())
}

/// Name of the congestion control that a socket has now; it may have fallen back to another one.
pub fn congestion(fd: &OwnedFd) -> io::Result<String> {
    let mut name = [0_u8; 16];
    let mut length = libc::socklen_t::try_from(name.len()).expect("small");
    // SAFETY: `name` is valid for writes of `length` bytes.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &raw mut length,
        )
    })?;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// Whether a socket with these settings can be made at all, in the thread's namespace.
pub fn try_settings(settings: &Settings) -> io::Result<()> {
    socket(settings).map(drop)
}

/// A listening socket.
pub fn listen(at: SocketAddrV4, settings: &Settings) -> io::Result<OwnedFd> {
    let congestion = settings.receiver.as_ref().unwrap_or(&settings.congestion).clone();
    let fd = socket(&Settings { congestion, ..settings.clone() })?;
    set(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    bind(&fd, at)?;
    // SAFETY: no memory is passed. The kernel caps the backlog at net.core.somaxconn.
    check(unsafe { libc::listen(fd.as_raw_fd(), 65_535) })?;
    Ok(fd)
}

fn bind(fd: &OwnedFd, at: SocketAddrV4) -> io::Result<()> {
    let raw = sockaddr(at);
    // SAFETY: `raw` is valid for reads of its size.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const raw).cast(), socket_length::<libc::sockaddr_in>()) })
        .map(drop)
}

/// Starts to connect; returns the socket and the address that the other side will see.
pub fn connect(from: Ipv4Addr, to: SocketAddrV4, settings: &Settings) -> io::Result<(OwnedFd, SocketAddrV4)> {
    let fd = socket(settings)?;
    // The port is chosen when the destination is known: thousands of connections may share it.
    set(&fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
    bind(&fd, SocketAddrV4::new(from, 0))?;
    let raw = sockaddr(to);
    // SAFETY: `raw` is valid for reads of its size.
    let result =
        check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const raw).cast(), socket_length::<libc::sockaddr_in>()) });
    match result {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
        _ => {}
    }
    // SAFETY: a sockaddr_in of zeros is a valid value.
    let mut own: libc::sockaddr_in = unsafe { zeroed() };
    let mut length = socket_length::<libc::sockaddr_in>();
    // SAFETY: `own` is valid for writes of `length` bytes.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), (&raw mut own).cast(), &raw mut length) })?;
    Ok((fd, address(&own)))
}

/// The next connection of a listener and who made it, if one waits.
pub fn accept(listener: &OwnedFd) -> io::Result<(OwnedFd, SocketAddrV4)> {
    // SAFETY: a sockaddr_in of zeros is a valid value.
    let mut peer: libc::sockaddr_in = unsafe { zeroed() };
    let mut length = socket_length::<libc::sockaddr_in>();
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: `peer` is valid for writes of `length` bytes.
    let fd = own(unsafe { libc::accept4(listener.as_raw_fd(), (&raw mut peer).cast(), &raw mut length, flags) })?;
    Ok((fd, address(&peer)))
}

/// The error that a socket has run into, if any.
pub fn take_error(fd: &OwnedFd) -> io::Result<()> {
    let mut error: c_int = 0;
    let mut length = socket_length::<c_int>();
    // SAFETY: `error` is valid for writes of `length` bytes.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut error).cast(), &raw mut length)
    })?;
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Sends what fits.
pub fn send(fd: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: `bytes` is valid for reads of its length.
    check_size(unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) })
}

/// Receives what is there; 0 is the end.
pub fn receive(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `buffer` is valid for writes of its length.
    check_size(unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) })
}

/// Says that nothing more will be sent.
pub fn shut_writing(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) }).map(drop)
}

/// The kernel's `struct tcp_info` as far as it is read here (Linux 4.18 on).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct RawTcpInfo {
    bytes_before_options: [u8; 5],
    options: u8,
    bits: [u8; 2],
    words_before_retransmissions: [u32; 23],
    total_retransmissions: u32,
    words_before_delivered: [u32; 22],
    delivered: u32,
    delivered_ce: u32,
}

const _: () = assert!(offset_of!(RawTcpInfo, options) == 5);
const _: () = assert!(offset_of!(RawTcpInfo, total_retransmissions) == 100);
const _: () = assert!(offset_of!(RawTcpInfo, delivered) == 192);

/// What the kernel says of a connection's sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// ECN was negotiated.
    pub ecn: bool,
    /// Segments sent again.
    pub retransmissions: u32,
    /// Segments known to have arrived; the SYN is one of them.
    pub delivered: u32,
    /// Those of them that were reported as marked.
    pub delivered_ce: u32,
}

/// TCPI_OPT_ECN.
const OPTION_ECN: u8 = 8;

/// TCP_INFO.
pub fn tcp_info(fd: &OwnedFd) -> io::Result<TcpInfo> {
    // SAFETY: every field is an integer, for which zeros are a valid value.
    let mut raw: RawTcpInfo = unsafe { zeroed() };
    let mut length = socket_length::<RawTcpInfo>();
    // SAFETY: `raw` is valid for writes of `length` bytes.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut raw).cast(), &raw mut length)
    })?;
    if length < socket_length::<RawTcpInfo>() {
        return Err(io::Error::other("this kernel's TCP_INFO does not count what was delivered"));
    }
    Ok(TcpInfo {
        ecn: raw.options & OPTION_ECN != 0,
        retransmissions: raw.total_retransmissions,
        delivered: raw.delivered,
        delivered_ce: raw.delivered_ce,
    })
}

/// A socket that asks the kernel about the network of the thread's namespace.
pub fn netlink() -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    own(unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) })
}

/// Number of a network device in the thread's namespace.
pub fn interface(name: &str) -> io::Result<u32> {
    let text = CString::new(name)?;
    // SAFETY: `text` ends with a zero.
    let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
    if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index) }
}

/// A timer on CLOCK_MONOTONIC.
pub fn timer() -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    own(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) })
}

/// Lets a timer expire at an absolute time in ns; `None` stops it.
pub fn set_timer(fd: &OwnedFd, at: Option<u64>) -> io::Result<()> {
    // 0 would stop it.
    let at = at.map_or(0, |at| at.max(1));
    let part = |value: u64| i64::try_from(value).expect("less than 2^63");
    let value = libc::timespec { tv_sec: part(at / 1_000_000_000), tv_nsec: part(at % 1_000_000_000) };
    let setting = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    // SAFETY: `setting` is valid for reads; the old value is not asked for.
    check(unsafe {
        libc::timerfd_settime(fd.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &raw const setting, std::ptr::null_mut())
    })
    .map(drop)
}

/// Forgets that a timer has expired.
pub fn read_timer(fd: &OwnedFd) {
    let mut expirations = [0_u8; 8];
    // SAFETY: `expirations` is valid for writes of its length. Nothing to read is no error here.
    unsafe { libc::read(fd.as_raw_fd(), expirations.as_mut_ptr().cast(), expirations.len()) };
}

/// Readiness of many descriptors.
pub struct Poll(OwnedFd);

/// Data or the end can be read.
pub const READABLE: u32 = libc::EPOLLIN as u32;
/// There is room to send.
pub const WRITABLE: u32 = libc::EPOLLOUT as u32;

impl Poll {
    /// Of none so far.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed.
        own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(Self)
    }

    fn control(&self, operation: c_int, fd: RawFd, interest: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest, u64: token };
        // SAFETY: `event` is valid for reads.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd, &raw mut event) }).map(drop)
    }

    /// Starts to watch `fd`. Closing it ends that.
    pub fn add(&self, fd: &OwnedFd, interest: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd.as_raw_fd(), interest, token)
    }

    /// Changes what `fd` is watched for.
    pub fn change(&self, fd: &OwnedFd, interest: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd.as_raw_fd(), interest, token)
    }

    /// Sleeps until something is ready; returns the tokens of what is.
    pub fn wait(&self) -> io::Result<Vec<u64>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let room = c_int::try_from(events.len()).expect("small");
        // SAFETY: `events` is valid for writes of `room` entries.
        let ready = check(unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, -1) });
        match ready {
            Ok(ready) => {
                let ready = usize::try_from(ready).expect("not negative");
                Ok(events[..ready].iter().map(|event| event.u64).collect())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_has_the_congestion_control_of_the_receiver() {
        let settings =
            Settings { congestion: "of the sender".into(), receiver: Some("reno".into()), socket_buffer: None };
        let listener = listen(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), &settings).expect("loopback");
        assert_eq!(congestion(&listener).expect("a socket"), "reno");
    }
}
