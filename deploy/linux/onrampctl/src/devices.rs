//! Network devices that On-Ramp is attached to, and the queueing discipline that keeps what it holds.

use hostctl::{
    failure::{Failure, Outcome, While},
    netlink::{self, attributes, number},
};
use rustix::net::netdevice::name_to_index;
use std::{fs, os::unix::net::UnixDatagram};

/// `struct tcmsg`: family, device, handle, parent, information.
const TCMSG: usize = 20;
const RTM_GETQDISC: u16 = 38;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_FQ_RATE_ENABLE: u16 = 5;
const ARPHRD_ETHER: u32 = 1;

/// A network device.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
}

/// A queueing discipline of a device.
struct Discipline {
    is_root: bool,
    kind: String,
    /// Of fq: whether it paces by what sockets ask for, too.
    is_pacing: bool,
}

impl Device {
    /// Of this name, in this network namespace.
    pub fn find(name: &str) -> Outcome<Self> {
        let socket = UnixDatagram::unbound().during("cannot ask for a device")?;
        let index =
            name_to_index(socket, name).map_err(|_| Failure::input(format!("found no network device {name:?}")))?;
        let device = Self { name: name.into(), index };
        if device.attribute("type") != Some(ARPHRD_ETHER) || name == "lo" {
            return Err(Failure::input(format!("{name}: found another kind of link, allowed is Ethernet")));
        }
        Ok(device)
    }

    fn attribute(&self, name: &str) -> Option<u32> {
        // Also where no sysfs of this network namespace is mounted: then nothing is known.
        fs::read_to_string(format!("/sys/class/net/{}/{name}", self.name)).ok()?.trim().parse().ok()
    }

    /// Its rate in Mbit/s; `None` if it does not say.
    pub fn megabits(&self) -> Option<u32> {
        self.attribute("speed").filter(|rate| (1..=1_600_000).contains(rate))
    }

    fn disciplines(&self) -> Outcome<Vec<Discipline>> {
        let mut request = vec![0; TCMSG];
        request[4..8].copy_from_slice(&self.index.to_ne_bytes());
        let found = netlink::list(RTM_GETQDISC, &request).during("cannot list queueing disciplines")?;
        let of_device = found.iter().filter(|one| one.get(4..).and_then(number) == Some(self.index));
        Ok(of_device.filter_map(|one| Discipline::read(one)).collect())
    }

    /// What keeps packets here no longer than it should; `None` if all queues have fq, without pacing of its own.
    pub fn lacking(&self) -> Outcome<Option<String>> {
        let all = self.disciplines()?;
        let name = &self.name;
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
        Ok(queues.iter().any(|one| one.is_pacing).then(|| {
            format!("{name}: fq paces sockets itself, and what it keeps for that would be taken for a queue of the network: {remedy}")
        }))
    }
}

impl Discipline {
    fn read(message: &[u8]) -> Option<Self> {
        let parent = number(message.get(12..)?)?;
        let mut found = Self { is_root: parent == u32::MAX, kind: String::new(), is_pacing: true };
        for (kind, content) in attributes(message.get(TCMSG..)?) {
            match kind {
                TCA_KIND => found.kind = String::from_utf8_lossy(content).trim_end_matches('\0').to_owned(),
                TCA_OPTIONS => {
                    let enabled = attributes(content).find(|(kind, _)| *kind == TCA_FQ_RATE_ENABLE);
                    found.is_pacing = enabled.and_then(|(_, content)| number(content)) != Some(0);
                }
                _ => {}
            }
        }
        // Those of ingress and clsact are no queues.
        (found.kind != "clsact" && found.kind != "ingress").then_some(found)
    }
}
