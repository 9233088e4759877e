//! `incast config`: what switches and hosts must be told.

use crate::{
    End,
    arguments::{self, Target},
    output,
    plan::Choice,
};
use incast_interop::device::{
    Device, Refused, Wanted, Written, eos, linux, mlnx, nxos,
    ports::{self, Port},
    rounded, sonic, switch,
};
use incast_lab::{
    atomic,
    run::RunError,
    scenario::{Run, Scenario, ScenarioError},
};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

enum Error {
    Run(RunError),
    Refused(Refused),
    Files(PathBuf, std::io::Error),
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl From<ScenarioError> for Error {
    fn from(error: ScenarioError) -> Self {
        Self::Run(error.into())
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// Writes the configuration of a device.
pub fn config(arguments: &arguments::Config) -> End {
    match write(arguments) {
        Ok(()) => End::Done,
        Err(Error::Refused(refused)) => {
            output::error(&refused);
            End::BadInput
        }
        Err(Error::Run(error)) => {
            output::error(&error);
            if error.is_bad_input() { End::BadInput } else { End::Failed }
        }
        Err(Error::Files(path, source)) => {
            output::error(&format!("{}: {source}", path.display()));
            End::Failed
        }
    }
}

fn write(arguments: &arguments::Config) -> Result<(), Error> {
    let refuse = |what: String| Error::Refused(Refused(vec![what]));
    let choice = Choice {
        scenario: &arguments.scenario,
        sets: &arguments.sets,
        only: &arguments.only,
        short: false,
        scheme: arguments.scheme.as_deref(),
        // Settings are those of any seed.
        seed: Some(1),
        options: "--scheme and --only",
    };
    let (scenario, run) = choice.choose("configuring")?;
    let mut wanted = Wanted::of(&run);
    wanted.gives_mtu = gives_mtu(&scenario, &run.scheme);
    if let Some(class) = &arguments.class {
        if !matches!(arguments.target, Target::Linux | Target::Mlnx) {
            return Err(refuse("--class is about hosts: allowed with --for linux and --for mlnx".into()));
        }
        wanted.for_class(class)?;
    }
    if arguments.marks_only && arguments.target != Target::Sonic {
        return Err(refuse("--marks-only is about SONiC: allowed with --for sonic".into()));
    }
    let device = match arguments.target {
        Target::Sonic => Device::Sonic,
        Target::Eos => Device::Eos,
        Target::Nxos => Device::Nxos,
        Target::Linux => Device::Linux,
        Target::Mlnx => Device::Mlnx,
    };
    let written = match device {
        Device::Mlnx => {
            if arguments.switch.is_some() || !arguments.ports.is_empty() {
                return Err(refuse("--switch and --ports are about switches: not with --for mlnx".into()));
            }
            mlnx::write(&wanted, &arguments.queues)?
        }
        Device::Linux => {
            if arguments.switch.is_some() || !arguments.ports.is_empty() || !arguments.queues.is_empty() {
                return Err(refuse("--switch, --ports and --queues are about switches: not with --for linux".into()));
            }
            linux::write(&wanted)?
        }
        Device::Sonic | Device::Eos | Device::Nxos => for_switch(arguments, &wanted, device)?,
    };
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    if let Some(folder) = &arguments.out {
        files.extend(written.files.iter().map(|(name, text)| (folder.join(name), text.clone())));
    }
    if let Some(path) = &arguments.as_rounded {
        files.push((path.clone(), as_rounded(&scenario, &run, &wanted, device)));
    }
    save(&files, arguments)?;
    if arguments.out.is_none() {
        print(&written);
    }
    for note in &written.notes {
        output::message(&format!("note: {note}"));
    }
    for (path, _) in &files {
        output::message(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Whether the scenario has `host.mtu`, for all schemes or for this one, in a table or along the grid.
fn gives_mtu(scenario: &Scenario, scheme: &str) -> bool {
    let has = |table: &toml::Value| table.get("host").is_some_and(|host| host.get("mtu").is_some());
    let written = scenario.written.get("scheme").and_then(toml::Value::as_array);
    let place = scenario.schemes().iter().position(|name| name == scheme);
    let own = written.zip(place).and_then(|(tables, place)| tables.get(place));
    let axes = ["host.mtu".to_owned(), format!("scheme.{scheme}.host.mtu")];
    scenario.written.get("host").is_some_and(|host| host.get("mtu").is_some())
        || own.is_some_and(has)
        || scenario.axes().iter().any(|axis| axes.contains(axis))
}

/// Writes what a switch is told.
fn for_switch(arguments: &arguments::Config, wanted: &Wanted, device: Device) -> Result<Written, Error> {
    let refuse = |what: String| Error::Refused(Refused(vec![what]));
    let kind = switch::kind_of(wanted, arguments.switch.as_deref())?;
    if arguments.ports.is_empty() {
        let counts: Vec<String> = kind.ports.iter().map(|ports| format!("{} of {}", ports.count, ports.rate)).collect();
        return Err(refuse(format!(
            "--ports is missing: the device's config_db.json, or its ports as NAME@RATE; {} has {}",
            kind.describe(),
            counts.join(" and ")
        )));
    }
    let ports = device_ports(&arguments.ports).map_err(|what| refuse(format!("--ports: {what}")))?;
    let classes = switch::classes(&kind, &arguments.queues).map_err(refuse)?;
    let mut written = match device {
        Device::Eos => eos::write(wanted, &kind, &ports, &classes)?,
        Device::Nxos => nxos::write(wanted, &kind, &ports, &classes)?,
        _ => sonic::write(wanted, &kind, &ports, &classes, arguments.marks_only)?,
    };
    written.notes.extend(kind.network_control(&classes).filter(|_| arguments.queues.is_empty()));
    Ok(written)
}

/// What the device's CONFIG_DB has, or what is typed.
fn device_ports(given: &[String]) -> Result<Vec<Port>, String> {
    let mut all: Vec<Port> = Vec::new();
    for text in given {
        if text.contains('@') {
            all.push(text.parse()?);
            continue;
        }
        let path = Path::new(text);
        let opened = atomic::regular(path).and_then(std::io::read_to_string);
        let database = opened.map_err(|error| format!("{text}: {error}; allowed is a config_db.json or NAME@RATE"))?;
        all.extend(ports::of_database(&database).map_err(|what| format!("{text}: {what}"))?);
    }
    for (index, port) in all.iter().enumerate() {
        if all[..index].iter().any(|other| other.name == port.name) {
            return Err(format!("{} is given twice", port.name));
        }
    }
    Ok(all)
}

/// The scenario that the device has: its results have a folder of their own.
fn as_rounded(scenario: &Scenario, run: &Run, wanted: &Wanted, device: Device) -> String {
    let name = scenario.name.strip_suffix("-applied").unwrap_or(&scenario.name);
    let mut table = run.on_its_own(format!("{name}-applied"), &scenario.seeds);
    if let (false, Some(host)) = (wanted.gives_mtu, table.get_mut("host").and_then(toml::Value::as_table_mut)) {
        // Of the applied scenario, too, nobody has asked for it.
        host.remove("mtu");
    }
    // A table of texts and finite numbers is always TOML.
    toml::to_string(&scenario.for_another_folder(rounded::scenario(table, wanted, device))).unwrap_or_default()
}

/// Writes all files or none: what cannot be written is found before the first is.
fn save(files: &[(PathBuf, String)], arguments: &arguments::Config) -> Result<(), Error> {
    if let Some((path, _)) = files.iter().find(|(path, _)| !arguments.force && path.exists()) {
        return Err(Error::Refused(Refused(vec![format!(
            "{} is there already: --force overwrites it",
            path.display()
        )])));
    }
    if let Some(folder) = &arguments.out {
        fs::create_dir_all(folder).map_err(|source| Error::Files(folder.clone(), source))?;
    }
    for (index, (path, _)) in files.iter().enumerate() {
        if files[..index].iter().any(|(other, _)| other == path) {
            return Err(Error::Refused(Refused(vec![format!("{}: two files of one name", path.display())])));
        }
        output::check_file(path)
            .map_err(|what| Error::Refused(Refused(vec![format!("{}: {what}", path.display())])))?;
    }
    for (path, text) in files {
        atomic::write(path, |file| file.write_all(text.as_bytes()))
            .map_err(|source| Error::Files(path.clone(), source))?;
    }
    Ok(())
}

fn print(written: &Written) {
    for (name, text) in &written.files {
        if written.files.len() > 1 {
            output::data(&format!("# ==== {name}\n"));
        }
        output::data(text);
    }
}
