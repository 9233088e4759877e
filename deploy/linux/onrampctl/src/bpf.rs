//! The BPF programs: their pins, their maps, and what the kernel needs for them.
//!
//! ```text
//! /sys/fs/bpf/onramp/NAMESPACE/     a folder of each network namespace (its cookie)
//!     paths, prefixes, config, counters, bounds    maps
//!     set_rate, set_difference                     programs that take what is known of clocks
//!     egress-DEVICE, ingress-DEVICE                links: without them nothing is held or told
//!     qdisc                                        of the form qdisc, in the place of egress-DEVICE
//! ```

use crate::{
    devices::{Device, Form, qdisc},
    layout::{Address, Config, Counters, Difference, Path, Prefix, Rate},
};
use hostctl::{
    failure::{Failure, Outcome, While},
    journal::namespace,
    plain::Plain,
};
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder,
    btf::{Btf, types},
    libbpf_sys,
    query::LinkTypeInfo,
};
use std::{
    ffi::CString,
    fs,
    os::{
        fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::PathBuf,
    thread,
    time::Duration,
};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/onramp.bpf.o"));
/// Its map of operations, and where they have their name (`struct Qdisc_ops` of `../onramp/qdisc.h`).
const OPERATIONS: &str = "onramp";
const QDISC_NAME: usize = 5 * size_of::<usize>();
/// Empty if there was no compiler for it.
const QDISC_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/qdisc.bpf.o"));
/// Maps that are pinned.
const MAPS: [&str; 5] = ["paths", "prefixes", "config", "counters", "bounds"];
/// Programs that user space calls.
const CALLED: [&str; 2] = ["set_rate", "set_difference"];
/// What libbpf's header says of `enum bpf_attach_type`.
const SIDES: [(&str, &str, u32); 2] =
    [("ingress", "report", libbpf_sys::BPF_TCX_INGRESS), ("egress", "depart", libbpf_sys::BPF_TCX_EGRESS)];

/// What this kernel lacks, by its own description of itself; `None` if nothing.
pub fn lacking() -> Option<String> {
    let Ok(btf) = Btf::from_vmlinux() else {
        return Some("this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)".into());
    };
    let socket = btf.type_by_name::<types::Struct<'_>>("tcp_sock")?;
    let stamps = socket.iter().any(|member| member.name.is_some_and(|name| name == "tcp_usec_ts"));
    (!stamps).then(|| "this kernel has no time stamps in microseconds (Linux 6.7)".into())
}

/// What it lacks for a form.
pub fn lacking_for(form: Form) -> Option<String> {
    lacking().or_else(|| {
        if form == Form::Edt {
            return None;
        }
        if QDISC_OBJECT.is_empty() {
            return Some("this onrampctl was built without the form qdisc: no clang of 17 or later was there".into());
        }
        let known = Btf::from_vmlinux().ok()?.type_by_name::<types::Struct<'_>>("bpf_struct_ops_Qdisc_ops").is_some();
        (!known).then(|| "this kernel has no queueing disciplines of BPF (CONFIG_NET_SCH_BPF, Linux 6.16)".into())
    })
}

/// The folder of all network namespaces' pins.
const FOLDER: &str = "/sys/fs/bpf/onramp";

/// The folder of this network namespace's pins.
pub fn folder() -> Outcome<PathBuf> {
    Ok(PathBuf::from(FOLDER).join(namespace()?))
}

/// What is attached in this network namespace.
pub struct Loaded {
    folder: PathBuf,
}

impl Loaded {
    /// What is pinned; `None` if nothing is.
    pub fn open() -> Outcome<Option<Self>> {
        let folder = folder()?;
        Ok(fs::metadata(folder.join("set_rate")).is_ok().then_some(Self { folder }))
    }

    /// The same, or why not.
    pub fn needed() -> Outcome<Self> {
        Self::open()?.ok_or_else(|| Failure::failed("On-Ramp is not loaded in this network namespace (onrampctl load)"))
    }

    /// Loads the programs and attaches them to devices. What a failure leaves is to be removed by the caller.
    pub fn load(form: Form, devices: &[Device], config: &Config) -> Outcome<Self> {
        let folder = folder()?;
        let doing = "cannot load the BPF programs";
        let explained = |error| explained(doing, error);
        let open = ObjectBuilder::default().open_memory(OBJECT).map_err(explained)?;
        let mut object = open.load().map_err(explained)?;
        fs::create_dir_all(&folder).during(format!("cannot make {}", folder.display()))?;
        for mut map in object.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name == "config" {
                map.update(&0_u32.to_ne_bytes(), config.bytes(), MapFlags::ANY)
                    .during("cannot write the configuration")?;
            }
            if MAPS.contains(&name.as_str()) {
                map.pin(folder.join(&name)).during(format!("cannot pin {name}"))?;
            }
        }
        // Reports first: nothing is held that nobody tells of.
        for (side, program, kind) in SIDES {
            if (side, form) == ("egress", Form::Qdisc) {
                register(&object, &folder.join("qdisc"))?;
                devices.iter().try_for_each(Device::replace)?;
                continue;
            }
            for device in devices {
                attach(&object, program, kind, device, &folder.join(format!("{side}-{}", device.name)))?;
            }
        }
        for name in CALLED {
            let called = object.progs_mut().find(|program| program.name() == name);
            let mut called = called.ok_or_else(|| Failure::failed(format!("{doing}: {name} is missing")))?;
            called.pin(folder.join(name)).during(format!("cannot pin {name}"))?;
        }
        Ok(Self { folder })
    }

    /// Who keeps packets.
    pub fn form(&self) -> Form {
        if self.folder.join("qdisc").exists() { Form::Qdisc } else { Form::Edt }
    }

    /// Devices that programs were attached to, by the names that they have now.
    pub fn devices(&self) -> Vec<Device> {
        let pins = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut devices: Vec<Device> = pins
            .filter_map(|pin| {
                let name = pin.file_name().to_str()?.strip_prefix("ingress-")?.to_owned();
                Some(match attached_to(&pin.path()) {
                    Some(index) => Device::at(index, name),
                    // Its name is what is known of it.
                    None => Device::find(&name).unwrap_or(Device { name, index: Device::GONE }),
                })
            })
            .collect();
        devices.sort_by(|one, other| one.name.cmp(&other.name));
        devices
    }

    /// Detaches the programs of one side.
    pub fn detach(&self, side: &str) -> Outcome {
        for pin in fs::read_dir(&self.folder).during("cannot list pins")?.flatten() {
            if pin.file_name().as_bytes().starts_with(format!("{side}-").as_bytes()) {
                if let Ok(link) = Link::open(pin.path()) {
                    let _ = link.detach();
                }
                fs::remove_file(pin.path()).during(format!("cannot remove {}", pin.path().display()))?;
            }
        }
        Ok(())
    }

    /// A map.
    pub fn map(&self, name: &str) -> Outcome<MapHandle> {
        MapHandle::from_pinned_path(self.folder.join(name)).during(format!("cannot open {name}"))
    }

    /// The configuration in use.
    pub fn config(&self) -> Outcome<Config> {
        let bytes = self.map("config")?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).during("cannot read config")?;
        bytes.and_then(|bytes| Config::read(&bytes)).ok_or_else(other_version)
    }

    /// What was counted.
    pub fn counters(&self) -> Outcome<Counters> {
        let cpus =
            self.map("counters")?.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY).during("cannot read counters")?;
        Ok(Counters::sum(&cpus.unwrap_or_default()))
    }

    /// Destinations that packets are held for.
    pub fn prefixes(&self) -> Outcome<Vec<Prefix>> {
        Ok(self.map("prefixes")?.keys().filter_map(|key| Prefix::read(&key)).collect())
    }

    /// Packets to these are held from now on.
    pub fn hold(&self, prefixes: &[Prefix]) -> Outcome {
        let map = self.map("prefixes")?;
        let before = self.prefixes()?;
        let new: Vec<Prefix> = prefixes.iter().filter(|prefix| !before.contains(prefix)).copied().collect();
        for (done, prefix) in new.iter().enumerate() {
            if let Err(error) = map.update(prefix.bytes(), &1_u32.to_ne_bytes(), MapFlags::ANY) {
                self.release(&new[..done])?;
                return Err(error).during(format!("cannot hold packets to {}", prefix.describe()));
            }
        }
        Ok(())
    }

    /// Has nothing more held, and waits until what is has left, so that nothing overtakes it.
    pub fn drain(&self) -> Outcome {
        let config = Config { drain: 1, ..self.config()? };
        self.set_config(&config)?;
        thread::sleep(Duration::from_nanos(config.max_hold.into()));
        Ok(())
    }

    fn set_config(&self, config: &Config) -> Outcome {
        let map = self.map("config")?;
        map.update(&0_u32.to_ne_bytes(), config.bytes(), MapFlags::ANY).during("cannot write the configuration")
    }

    /// And to these no more: paths that are known are forgotten, once what is held has left.
    pub fn release(&self, prefixes: &[Prefix]) -> Outcome {
        let map = self.map("prefixes")?;
        for prefix in prefixes {
            // Of one that is not there the kernel says so.
            let _ = map.delete(prefix.bytes());
        }
        self.drain()?;
        let (paths, left) = (self.map("paths")?, self.prefixes()?);
        for key in paths.keys().collect::<Vec<_>>() {
            let address = Address::read(&key);
            if address.is_some_and(|address| !left.iter().any(|prefix| prefix.covers(&address))) {
                let _ = paths.delete(&key);
            }
        }
        self.set_config(&Config { drain: 0, ..self.config()? })
    }

    /// All paths.
    pub fn paths(&self) -> Outcome<Vec<(Address, Path)>> {
        let map = self.map("paths")?;
        let mut paths = Vec::new();
        for key in map.keys() {
            // It may have gone meanwhile.
            let Some(value) = map.lookup(&key, MapFlags::LOCK).during("cannot read paths")? else { continue };
            let address = Address::read(&key).ok_or_else(other_version)?;
            paths.push((address, Path::read(&value).ok_or_else(other_version)?));
        }
        paths.sort_by_key(|(address, _)| *address);
        Ok(paths)
    }

    /// Tells a path the rate of its peer's clock.
    pub fn set_rate(&self, rate: &Rate) -> Outcome {
        self.tell("set_rate", rate.bytes())
    }

    /// Tells a path by how much its peer's clock is ahead.
    pub fn set_difference(&self, difference: &Difference) -> Outcome {
        self.tell("set_difference", difference.bytes())
    }

    /// Runs a program that user space calls.
    fn tell(&self, program: &str, what: &[u8]) -> Outcome {
        let doing = format!("cannot run {program}");
        let program = libbpf_rs::Program::fd_from_pinned_path(self.folder.join(program)).during(&doing)?;
        let mut context = what.to_vec();
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
            ctx_in: context.as_mut_ptr().cast(),
            ctx_size_in: context.len() as u32,
            ..Default::default()
        };
        // SAFETY: the descriptor is open, and the structure points to a buffer of the size that it names.
        let refused = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
        if refused != 0 {
            return Err(std::io::Error::last_os_error()).during(doing);
        }
        Ok(())
    }
}

fn other_version() -> Failure {
    Failure::failed("another version of onrampctl has loaded On-Ramp; onrampctl unload, onrampctl load")
}

/// With what libbpf and the verifier said.
fn explained(doing: &str, error: libbpf_rs::Error) -> Failure {
    Failure::failed(format!("{doing}: {error}\n{}", hostctl::bpf::said()))
}

/// Makes the queueing discipline known to the kernel, with the maps of the programs, and pins its link.
fn register(programs: &Object, pin: &std::path::Path) -> Outcome {
    let doing = "cannot register the queueing discipline";
    let explained = |error| explained(doing, error);
    let mut open = ObjectBuilder::default().open_memory(QDISC_OBJECT).map_err(explained)?;
    for mut map in open.maps_mut() {
        if map.name() == OPERATIONS {
            name(&mut map).ok_or_else(|| Failure::failed(format!("{doing}: it has no name")))??;
        } else if let Some(shared) =
            programs.maps().find(|other| other.name() == map.name() && !is_of_one_object(map.name()))
        {
            map.reuse_fd(shared.as_fd()).map_err(explained)?;
        }
    }
    let mut object = open.load().map_err(explained)?;
    let mut operations = object.maps_mut().find(|map| map.name() == OPERATIONS);
    let operations = operations.as_mut().ok_or_else(|| Failure::failed(format!("{doing}: it is missing")))?;
    let mut link = operations.attach_struct_ops().map_err(explained)?;
    link.pin(pin).map_err(explained)
}

/// Gives it the name of this network namespace; `None` if it has none to begin with.
fn name(operations: &mut libbpf_rs::OpenMapMut<'_>) -> Option<Outcome> {
    let field = operations.initial_value_mut()?.get_mut(QDISC_NAME..)?;
    if !field.starts_with(OPERATIONS.as_bytes()) {
        return None;
    }
    Some(qdisc().map(|name| {
        field.fill(0);
        field[..name.len()].copy_from_slice(name.as_bytes());
    }))
}

/// Sections of variables, which each object has for itself.
fn is_of_one_object(map: &std::ffi::OsStr) -> bool {
    map.as_bytes().contains(&b'.')
}

/// Attaches a program and pins the link, which keeps it attached.
fn attach(object: &Object, program: &str, kind: u32, device: &Device, pin: &std::path::Path) -> Outcome {
    let doing = format!("cannot attach to {}", device.name);
    let found = object.progs().find(|one| one.name() == program);
    let found = found.ok_or_else(|| Failure::failed(format!("{doing}: {program} is missing")))?;
    let (program, index) = (found.as_fd().as_raw_fd(), device.index as i32);
    // SAFETY: the descriptor is open; no options is what a null pointer says.
    let link = unsafe { libbpf_sys::bpf_link_create(program, index, kind, std::ptr::null()) };
    if link < 0 {
        return Err(std::io::Error::last_os_error()).during(doing);
    }
    // SAFETY: it was just made, and is nobody else's.
    let link = unsafe { OwnedFd::from_raw_fd(link) };
    let path = CString::new(pin.as_os_str().as_bytes()).during(&doing)?;
    // SAFETY: the descriptor is open, the path a string of C.
    if unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), path.as_ptr()) } != 0 {
        return Err(std::io::Error::last_os_error()).during(format!("cannot pin {}", pin.display()));
    }
    Ok(())
}

/// The number of the device that a pinned link is attached to, 0 once that is gone; `None` if the kernel does not say.
fn attached_to(pin: &std::path::Path) -> Option<u32> {
    match Link::open(pin).ok()?.info().ok()?.info {
        LinkTypeInfo::Tcx(link) => Some(link.ifindex),
        _ => None,
    }
}

/// Devices that a load which did not end was attached to.
pub fn leftover() -> Outcome<Vec<Device>> {
    Ok(Loaded { folder: folder()? }.devices())
}

/// Removes the pins of this network namespace, and with them what is attached.
pub fn remove() -> Outcome {
    let folder = folder()?;
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).during(format!("cannot remove {}", folder.display()))
        }
        _ => {
            // The folder of all namespaces goes with the last one.
            let _ = fs::remove_dir(FOLDER);
            Ok(())
        }
    }
}
