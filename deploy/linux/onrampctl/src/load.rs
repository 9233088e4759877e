//! `onrampctl load` and `unload`.

use crate::{
    arguments,
    bpf::{self, Loaded},
    configuration::{self, Setting},
    devices::{Device, Form},
    layout::Config,
    stamps::OnRamp,
};
use hostctl::{
    failure::{Failure, Outcome, While},
    lock, rollback, say, view,
};
use std::fs;

/// Bits of a full Ethernet frame with what stands around it.
const FRAME: u64 = 1_538 * 8;

/// Loads On-Ramp and attaches it. Nothing is held before a route is enabled.
pub fn load(arguments: &arguments::Load) -> Outcome {
    let settings = settings(arguments)?;
    view::root()?;
    let devices = arguments.devices.iter().map(|name| Device::find(name)).collect::<Outcome<Vec<_>>>()?;
    let form = arguments.form;
    if form == Form::Qdisc && devices.len() > 1 {
        return Err(Failure::input(format!("--form qdisc: found {} devices, allowed is one", devices.len())));
    }
    if let Some(lacking) = bpf::lacking_for(form) {
        return Err(Failure::failed(lacking));
    }
    let config = config(&devices, &settings)?;
    if let Some(least) = least_timeout().filter(|least| *least / 2 < u64::from(config.max_hold)) {
        return Err(Failure::input(format!(
            "max_hold: found {} us, allowed is half of the least retransmission timeout of this host \
             (net.ipv4.tcp_rto_min_us), {} us",
            config.max_hold / 1_000,
            least / 2_000
        )));
    }
    for device in &devices {
        let lacking = if form == Form::Edt { device.lacking(form)? } else { device.configured()? };
        if let Some(lacking) = lacking {
            return Err(Failure::failed(lacking));
        }
    }
    let _lock = lock::hold::<OnRamp>()?;
    if Loaded::open()?.is_some() {
        return Err(Failure::failed("On-Ramp is loaded already (onrampctl status, onrampctl unload)"));
    }
    if !hostctl::bpf::is_mounted() {
        view::may_mount("On-Ramp")?;
        hostctl::bpf::mount()?;
    }
    // Of a load that did not end, of these devices or of others.
    bpf::leftover()?.iter().chain(&devices).try_for_each(Device::give_back)?;
    bpf::remove()?;
    if let Err(failure) = Loaded::load(form, &devices, &config) {
        devices.iter().for_each(|device| drop(device.give_back()));
        let _ = bpf::remove();
        return Err(failure);
    }
    rollback::give_back_due::<OnRamp>().iter().for_each(|line| say!("{line}"));
    say!("On-Ramp is attached to {}: onrampctl enable ROUTE holds packets", arguments.devices.join(", "));
    Ok(())
}

/// Of connections over routes that do not say it, ns; kernels before 6.11 have only what [`configuration::HOLD_MAX`] is half of.
fn least_timeout() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_rto_min_us").ok()?;
    text.trim().parse::<u64>().ok().map(|us| us * 1_000)
}

fn settings(arguments: &arguments::Load) -> Outcome<Vec<Setting>> {
    let mut settings = Vec::new();
    if let Some(path) = &arguments.config {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| Failure::input(format!("cannot read {name}: {error}")))?;
        settings = configuration::parse(&name, &text)?;
    }
    for given in &arguments.set {
        settings.push(configuration::one("--set", given)?);
    }
    // All of it is checked before anything is looked up.
    configuration::resolve(configuration::defaults(), &settings)?;
    Ok(settings)
}

/// The time between full frames at an eighth of the fastest device's rate, unless it is set.
fn config(devices: &[Device], settings: &[Setting]) -> Outcome<Config> {
    let mut start = configuration::defaults();
    if let Some(megabits) = devices.iter().filter_map(Device::megabits).max() {
        start.reference = u32::try_from(8 * FRAME * 1_000 / u64::from(megabits)).unwrap_or(start.reference).max(1);
    }
    configuration::resolve(start, settings)
}

/// Detaches it. What is held leaves first.
pub fn unload() -> Outcome {
    view::root()?;
    let _lock = lock::hold::<OnRamp>()?;
    let given_back = rollback::give_back_due::<OnRamp>();
    if Loaded::open()?.is_none() && bpf::folder()?.exists() {
        bpf::leftover()?.iter().try_for_each(Device::give_back)?;
        bpf::remove()?;
        say!("removed what a load that did not end had left");
        return Ok(());
    }
    let loaded = Loaded::needed()?;
    loaded.drain()?;
    loaded.detach("egress").during("cannot detach")?;
    if loaded.form() == Form::Qdisc {
        loaded.devices().iter().try_for_each(Device::give_back)?;
    }
    bpf::remove()?;
    given_back.iter().for_each(|line| say!("{line}"));
    say!("On-Ramp is detached; routes keep their attributes until onrampctl rollback");
    Ok(())
}
