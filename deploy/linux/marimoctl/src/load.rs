//! `marimoctl load`.

use crate::{
    arguments,
    bpf::{self, LAYOUT, Loaded, MAPS, OBJECT, PINS, SETTINGS_MAP},
    configuration,
    layout::{Knots, NAME, Settings},
    routes::Marimo,
    table, view,
};
use hostctl::{
    bpf::{is_mounted, mount, remove_pins, said},
    failure::{Failure, Outcome, While},
    lock,
    plain::Plain,
    rollback, say,
    view::{may_mount, root},
};
use incast_cc::window::marimo::core::{Config, LoadTable};
use libbpf_rs::{MapCore, ObjectBuilder};
use std::fs;

/// Everything that was asked for, checked.
struct Request {
    settings: Settings,
    knots: Knots,
}

/// Registers bpf_marimo.
pub fn load(arguments: &arguments::Load) -> Outcome {
    let request = check(arguments)?;
    root()?;
    if let Some(lacking) = bpf::lacking() {
        return Err(Failure::failed(lacking));
    }
    if let (Some(unknown), false) = (bpf::unknown(), arguments.any_kernel) {
        return Err(Failure::failed(format!("{unknown}; --any-kernel loads it all the same")));
    }
    let _lock = lock::hold::<Marimo>()?;
    if let Some(loaded) = Loaded::open() {
        return Err(match loaded.layout {
            LAYOUT => Failure::failed(format!("{NAME} is loaded already (marimoctl status, marimoctl unload)")),
            _ => loaded.other_version("is loaded already"),
        });
    }
    let registered = bpf::registered()?;
    if let Some(hidden) = view::hidden()? {
        return Err(Failure::failed(hidden));
    }
    if !is_mounted() {
        may_mount(NAME)?;
        mount()?;
    }
    if fs::metadata(PINS).is_ok() {
        remove_pins(PINS)?;
        say!("removed {PINS}, which a load that did not end had left");
    }
    if !registered.contains(&request.settings.fallback()) {
        return Err(Failure::input(format!(
            "--fallback: found {:?}, allowed is one of {}",
            request.settings.fallback(),
            registered.join(", ")
        )));
    }
    if let Err(failure) = register(&request) {
        // Nothing half done: a registration without its pins would be nobody's.
        let _ = remove_pins(PINS);
        return Err(failure);
    }
    rollback::give_back_due::<Marimo>().iter().for_each(|line| say!("{line}"));
    say!("{NAME} is loaded: sysctl -w net.ipv4.tcp_congestion_control={NAME}, or per route with congctl {NAME}");
    Ok(())
}

fn check(arguments: &arguments::Load) -> Outcome<Request> {
    let config = config(arguments)?;
    let (name, f) = match &arguments.table {
        Some(path) => (path.display().to_string(), table::read(path)?),
        None => ("the calibrated table".into(), LoadTable::calibrated()),
    };
    table::check(&name, &f, config)?;
    let mut fallback = [0; 16];
    let given = arguments.fallback.as_bytes();
    // One byte is left for the zero at its end.
    if given.is_empty() || given.len() > 15 || given.contains(&0) || arguments.fallback == NAME {
        return Err(Failure::input(format!(
            "--fallback: found {:?}, allowed is a congestion control other than {NAME}",
            arguments.fallback
        )));
    }
    fallback[..given.len()].copy_from_slice(given);
    Ok(Request {
        settings: Settings { config, trace_acks: arguments.trace_acks.into(), fallback },
        knots: Knots(*f.knots()),
    })
}

fn config(arguments: &arguments::Load) -> Outcome<Config> {
    let mut settings = Vec::new();
    if let Some(path) = &arguments.config {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| Failure::input(format!("cannot read {name}: {error}")))?;
        settings = configuration::parse(&name, &text)?;
    }
    for given in &arguments.set {
        settings.push(configuration::one("--set", given)?);
    }
    configuration::resolve(&settings)
}

fn register(request: &Request) -> Outcome {
    let doing = "cannot load the BPF object";
    let explained = |error: libbpf_rs::Error| Failure::failed(format!("{doing}: {error}\n{}", said()));
    let mut open = ObjectBuilder::default().open_memory(OBJECT).map_err(explained)?;
    for mut map in open.maps_mut() {
        if map.name() == SETTINGS_MAP {
            map.set_initial_value(request.settings.bytes()).during("cannot set the settings")?;
        }
        if map.name() == NAME {
            bpf::fit(&mut map);
        }
    }
    let mut object = open.load().map_err(explained)?;
    fs::create_dir(PINS).during(format!("cannot make {PINS}"))?;
    fs::create_dir(bpf::layout_pin(LAYOUT)).during(format!("cannot make {}", bpf::layout_pin(LAYOUT).display()))?;
    let mut link = None;
    for mut map in object.maps_mut() {
        if let Some((pin, _)) = MAPS.iter().find(|(_, name)| map.name() == *name) {
            map.pin(bpf::pin(pin)).during(format!("cannot pin {pin}"))?;
        }
        if map.name() == bpf::TABLES[0] {
            bpf::write_table(&map, &request.knots)?;
        }
    }
    // Only now, with a table to read, may connections begin.
    for mut map in object.maps_mut() {
        if map.name() == NAME {
            link = Some(map.attach_struct_ops().map_err(explained)?);
        }
    }
    let Some(mut link) = link else { return Err(Failure::failed("the BPF object has no operations")) };
    link.pin(bpf::pin("link")).during("cannot pin the registration")
}
