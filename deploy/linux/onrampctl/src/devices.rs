//! Network devices that On-Ramp is attached to, and the queueing discipline that keeps what it holds.

use hostctl::{
    failure::{Failure, Outcome, While},
    journal::namespace,
    netlink::{self, attributes, number},
};
use rustix::net::netdevice::{index_to_name, name_to_index};
use std::os::{fd::AsRawFd as _, unix::net::UnixDatagram};

/// `struct tcmsg`: family, device, handle, parent, information.
const TCMSG: usize = 20;
const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
/// `TC_H_ROOT`.
const ROOT: u32 = u32::MAX;
/// `IFNAMSIZ`, the kernel's bound of such names, with their zero.
const NAME: usize = 16;

/// The queueing discipline of the form `qdisc`, by its name in the kernel: one for each network namespace, as names are the host's.
pub fn qdisc() -> Outcome<String> {
    let name = format!("onramp_{}", namespace()?);
    if name.len() < NAME {
        Ok(name)
    } else {
        Err(Failure::failed(format!("{name} is too long a name for a queueing discipline")))
    }
}
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_FQ_RATE_ENABLE: u16 = 5;
const TCA_FQ_HORIZON: u16 = 14;
/// What fq looks ahead, us; more than twice as much as anything is held.
const HORIZON: u32 = 1_000_000;
/// `struct ifinfomsg`.
const IFINFOMSG: usize = 16;
/// `struct ethtool_cmd` and the command that fills it (`linux/ethtool.h`).
const ETHTOOL_CMD: usize = 44;
const ETHTOOL_GSET: u32 = 1;

/// Who keeps the packets that are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// fq, until the time of departure that is written into each
    #[default]
    Edt,
    /// A queueing discipline of BPF (Linux 6.16), which asks each time
    Qdisc,
}

/// A network device.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its number; [`Device::GONE`] if there is none any more.
    pub index: u32,
}

/// A queueing discipline of a device.
struct Discipline {
    is_root: bool,
    /// The kernel made it, and makes it again.
    is_default: bool,
    kind: String,
    /// Of fq: whether it paces by what sockets ask for, too.
    is_pacing: bool,
    /// And whether it drops, or lets go, what is to leave later than soon.
    is_short: bool,
}

impl Device {
    /// The number of no device.
    pub const GONE: u32 = 0;

    /// Of this number, which was called `name` once.
    pub fn at(index: u32, name: String) -> Self {
        match UnixDatagram::unbound().ok().and_then(|socket| index_to_name(socket, index).ok()) {
            Some(name) => Self { name, index },
            None => Self { name, index: Self::GONE },
        }
    }

    /// Of this name, in this network namespace.
    pub fn find(name: &str) -> Outcome<Self> {
        let socket = UnixDatagram::unbound().during("cannot ask for a device")?;
        let index =
            name_to_index(socket, name).map_err(|_| Failure::input(format!("found no network device {name:?}")))?;
        let device = Self { name: name.into(), index };
        if device.link()? != Some(libc::ARPHRD_ETHER) {
            return Err(Failure::input(format!("{name}: found another kind of link, allowed is Ethernet")));
        }
        Ok(device)
    }

    /// The kind of its link. By netlink, as a sysfs may be of another network namespace.
    fn link(&self) -> Outcome<Option<u16>> {
        let links = netlink::list(libc::RTM_GETLINK, &[0; IFINFOMSG]).during("cannot list network devices")?;
        let own = links.iter().find(|link| link.get(4..).and_then(number) == Some(self.index));
        Ok(own.and_then(|link| Some(u16::from_ne_bytes(link.get(2..4)?.try_into().ok()?))))
    }

    /// Its rate in Mbit/s; `None` if it does not say.
    pub fn megabits(&self) -> Option<u32> {
        let socket = UnixDatagram::unbound().ok()?;
        let mut command = [0_u8; ETHTOOL_CMD];
        command[..4].copy_from_slice(&ETHTOOL_GSET.to_ne_bytes());
        // SAFETY: a structure of C for which zeroes are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.name.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
        // SAFETY: the request names a buffer of the size of what the kernel writes for this command.
        if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) } != 0 {
            return None;
        }
        let half = |at: usize| u32::from(u16::from_ne_bytes([command[at], command[at + 1]]));
        Some(half(12) | half(28) << 16).filter(|rate| (1..=1_600_000).contains(rate))
    }

    fn disciplines(&self) -> Outcome<Vec<Discipline>> {
        let mut request = vec![0; TCMSG];
        request[4..8].copy_from_slice(&self.index.to_ne_bytes());
        let found = netlink::list(RTM_GETQDISC, &request).during("cannot list queueing disciplines")?;
        let of_device = found.iter().filter(|one| one.get(4..).and_then(number) == Some(self.index));
        Ok(of_device.filter_map(|one| Discipline::read(one)).collect())
    }

    /// Replaces its queueing discipline by On-Ramp's.
    pub fn replace(&self) -> Outcome {
        let mut request = self.root();
        netlink::push(&mut request, TCA_KIND, format!("{}\0", qdisc()?).as_bytes());
        netlink::tell(RTM_NEWQDISC, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &request)
            .during(format!("cannot replace the queueing discipline of {}", self.name))
    }

    /// Removes it, whereupon the kernel makes its default one.
    pub fn give_back(&self) -> Outcome {
        let own = qdisc()?;
        if self.index != Self::GONE && self.disciplines()?.iter().any(|one| one.is_root && one.kind == own) {
            netlink::tell(RTM_DELQDISC, 0, &self.root())
                .during(format!("cannot remove the queueing discipline of {}", self.name))?;
        }
        Ok(())
    }

    fn root(&self) -> Vec<u8> {
        let mut request = vec![0; TCMSG];
        request[4..8].copy_from_slice(&self.index.to_ne_bytes());
        request[12..16].copy_from_slice(&ROOT.to_ne_bytes());
        request
    }

    /// Why the form `qdisc` cannot take its place here: the way back would lose what somebody has configured.
    pub fn configured(&self) -> Outcome<Option<String>> {
        let all = self.disciplines()?;
        // Its own is of a load that did not end.
        let (name, mut all) = (qdisc()?, all.iter());
        let own = all.find(|one| one.is_root && !one.is_default && one.kind != name);
        Ok(own.map(|own| {
            format!("{0} has {1}, which somebody has configured; allowed is the kernel's default: tc qdisc del dev {0} root", self.name, own.kind)
        }))
    }

    /// What keeps packets here no longer than it should; `None` if all queues have what the form needs.
    pub fn lacking(&self, form: Form) -> Outcome<Option<String>> {
        let name = &self.name;
        if self.index == Self::GONE {
            return Ok(Some(format!(
                "{name} is gone from here, and with it what was attached, even if there is a new one of this name: onrampctl unload, onrampctl load"
            )));
        }
        let all = self.disciplines()?;
        if form == Form::Qdisc {
            let found = all.iter().find(|one| one.is_root).map_or("nothing", |root| root.kind.as_str());
            let lost = (found != qdisc()?).then(|| {
                format!("{name} has {found}, which holds nothing: onrampctl unload, tc qdisc del dev {name} root, onrampctl load --form qdisc {name}")
            });
            return Ok(lost);
        }
        let remedy = format!("tc qdisc replace dev {name} root fq nopacing");
        let Some(root) = all.iter().find(|one| one.is_root) else {
            return Ok(Some(format!("{name} has no queueing discipline, and nothing would be held: {remedy}")));
        };
        let queues: Vec<&Discipline> =
            if root.kind == "mq" { all.iter().filter(|one| !one.is_root).collect() } else { vec![root] };
        if let Some(other) = queues.iter().find(|one| one.kind != "fq") {
            let each = if root.kind == "mq" { ", of each queue below mq" } else { "" };
            return Ok(Some(format!("{name} has {}, which keeps nothing: {remedy}{each}", other.kind)));
        }
        if queues.is_empty() {
            return Ok(Some(format!("{name} has mq without fq: {remedy}")));
        }
        if queues.iter().any(|one| one.is_short) {
            return Ok(Some(format!(
                "{name}: fq has a horizon of less than a second, beyond which it drops packets: {remedy}"
            )));
        }
        Ok(queues.iter().any(|one| one.is_pacing).then(|| {
            format!("{name}: fq paces sockets itself, and what it keeps for that would be taken for a queue of the network: {remedy}")
        }))
    }
}

impl Discipline {
    fn read(message: &[u8]) -> Option<Self> {
        let is_root = number(message.get(12..)?)? == ROOT;
        let is_default = number(message.get(8..)?)? == 0;
        let mut found = Self { is_root, is_default, kind: String::new(), is_pacing: true, is_short: false };
        for (kind, content) in attributes(message.get(TCMSG..)?) {
            match kind {
                TCA_KIND => found.kind = String::from_utf8_lossy(content).trim_end_matches('\0').to_owned(),
                TCA_OPTIONS => {
                    let of =
                        |wanted| attributes(content).find(|(kind, _)| *kind == wanted).and_then(|(_, one)| number(one));
                    found.is_pacing = of(TCA_FQ_RATE_ENABLE) != Some(0);
                    found.is_short = of(TCA_FQ_HORIZON).is_some_and(|horizon| horizon < HORIZON);
                }
                _ => {}
            }
        }
        // Those of ingress and clsact are no queues.
        (found.kind != "clsact" && found.kind != "ingress").then_some(found)
    }
}
