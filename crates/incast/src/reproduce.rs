//! `incast reproduce`: the scenarios of published tables and figures, and what became of their claims.
//!
//! They lie in a folder for each system: `scenarios/<system>/<name>.toml`, of which `<system>/<name>` is the name here.

use crate::{
    End,
    arguments::Reproduce,
    bundled::{self, Head, Unpacked},
    output, plan, run, running,
};
use incast_lab::{
    results::claims::Status,
    run::{Finished, Plan, only::Only},
    scenario::{Form, Scenario, tree::nearest::nearest},
};
use serde_json::{Value, json};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// One scenario.
#[derive(Clone, Debug)]
struct Entry {
    /// `marimo/table1`.
    name: String,
    /// Where it is below the folder of all.
    file: PathBuf,
    head: Head,
}

/// Lists, or runs and judges.
pub fn reproduce(arguments: &Reproduce) -> End {
    let entries = match &arguments.from {
        None => Ok(bundled_entries()),
        Some(folder) => entries_in(folder),
    };
    let chosen = entries.and_then(|entries| choose(arguments, entries));
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(message) => {
            output::error(&message);
            return End::BadInput;
        }
    };
    // Scenarios read the files beside them while they are loaded; then everything is in memory.
    let unpacked = match &arguments.from {
        Some(_) => None,
        None => match Unpacked::new(bundled::files()) {
            Ok(unpacked) => Some(unpacked),
            Err(error) => {
                output::error(&format!("{}: {error}", std::env::temp_dir().display()));
                return End::Failed;
            }
        },
    };
    let folder = unpacked.as_ref().map(Unpacked::folder).or(arguments.from.as_deref()).unwrap_or(Path::new("."));
    if arguments.list || (arguments.names.is_empty() && !arguments.all) {
        output::data(&list(&chosen, folder, arguments.json));
        return End::Done;
    }
    let files: Vec<(String, PathBuf)> =
        chosen.iter().map(|entry| (entry.name.clone(), folder.join(&entry.file))).collect();
    let plans = plan::load(&files, &arguments.sets, arguments.short, arguments.seeds, &Only::default());
    drop(unpacked);
    running::end(plans.and_then(|plans| {
        let (finished, end) = run::run_all(&plans, &arguments.running, arguments.json)?;
        output::data(&if arguments.json { to_json(&plans, &finished) } else { overview(&plans, &finished) });
        Ok(end)
    }))
}

fn bundled_entries() -> Vec<Entry> {
    let files = bundled::files().iter();
    files.filter_map(|(path, content)| entry(path, || String::from_utf8_lossy(content).into_owned())).collect()
}

/// The scenarios of the systems in a folder.
fn entries_in(folder: &Path) -> Result<Vec<Entry>, String> {
    let mut files = Vec::new();
    collect(folder, "", &mut files).map_err(|error| format!("{}: cannot be read: {error}", folder.display()))?;
    files.sort();
    // What cannot be read now is reported when it is loaded.
    let read = |path: &String| entry(path, || fs::read_to_string(folder.join(path)).unwrap_or_default());
    let entries: Vec<Entry> = files.iter().filter_map(read).collect();
    if entries.is_empty() {
        return Err(format!("{}: no scenarios: expected <system>/<name>.toml", folder.display()));
    }
    Ok(entries)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.push(name);
        }
    }
    Ok(())
}

/// A file as a scenario; none if it is something else, or belongs to no system.
fn entry(path: &str, text: impl FnOnce() -> String) -> Option<Entry> {
    let name = path.strip_suffix(".toml")?;
    let of_a_system = name.contains('/');
    of_a_system.then(|| Entry { name: name.to_owned(), file: path.into(), head: Head::of(&text()) })
}

/// The selected ones: by name, all of a system, or everything.
fn choose(arguments: &Reproduce, entries: Vec<Entry>) -> Result<Vec<Entry>, String> {
    if arguments.names.is_empty() {
        return Ok(entries);
    }
    let matches = |entry: &Entry, name: &str| {
        let name = name.trim_end_matches('/');
        let name = name.strip_suffix(".toml").unwrap_or(name);
        entry.name == name || entry.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
    };
    for name in &arguments.names {
        if !entries.iter().any(|entry| matches(entry, name)) {
            return Err(unknown(name, &entries));
        }
    }
    let wanted = |entry: &Entry| arguments.names.iter().any(|name| matches(entry, name));
    Ok(entries.into_iter().filter(wanted).collect())
}

fn unknown(name: &str, entries: &[Entry]) -> String {
    let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let mut systems: Vec<&str> = names.iter().filter_map(|name| name.split('/').next()).collect();
    systems.dedup();
    let allowed = if systems.is_empty() { "none: there are no such scenarios".to_owned() } else { systems.join(", ") };
    names.extend(systems);
    let hint = nearest(name, names).map(|near| format!(" (did you mean \"{near}\"?)"));
    format!("{name}: no such scenario or system, systems are {allowed}; --list shows all{}", hint.unwrap_or_default())
}

/// Runs and CPU seconds of a form of a scenario; `None` if it cannot be loaded.
fn cost(file: &Path, form: Form) -> Option<(usize, f64)> {
    let scenario = Scenario::load_form(file, &[], form).ok()?;
    let plan = Plan::new(scenario, None, &Only::default()).ok()?;
    Some((plan.runs.len(), plan.expected_cost().1))
}

fn list(entries: &[Entry], folder: &Path, json: bool) -> String {
    let costs = |entry: &Entry| {
        let file = folder.join(&entry.file);
        let short = entry.head.short.then(|| cost(&file, Form::Short)).flatten();
        (cost(&file, Form::Full), short)
    };
    if json {
        let facts = entries.iter().map(|entry| {
            let Head { name, describe, source, short } = &entry.head;
            let (full, of_short) = costs(entry);
            json!({"scenario": entry.name, "name": name, "describe": describe, "source": source, "short": short,
                "runs": full.map(|(runs, _)| runs), "cpu_s": full.map(|(_, cpu_s)| cpu_s),
                "short_runs": of_short.map(|(runs, _)| runs), "short_cpu_s": of_short.map(|(_, cpu_s)| cpu_s)})
        });
        return format!("{:#}\n", Value::from(facts.collect::<Vec<_>>()));
    }
    if entries.is_empty() {
        return "no scenarios of published tables or figures are bundled\n".to_owned();
    }
    let text = entries.iter().map(|entry| {
        let say = |(runs, cpu_s): (usize, f64)| format!("{runs} runs, about {} of CPU", span(cpu_s));
        let (full, short) = costs(entry);
        let full = full.map_or_else(|| "cannot be loaded: see `incast check`".to_owned(), say);
        let short = short.map_or_else(String::new, |cost| format!("; --short: {}", say(cost)));
        format!("{}\n    {}\n    source: {}\n    {full}{short}\n", entry.name, entry.head.describe, entry.head.source)
    });
    text.collect::<Vec<_>>().join("\n")
}

/// Seconds, minutes or hours, with two digits.
fn span(seconds: f64) -> String {
    match seconds {
        _ if seconds < 9.95 => format!("{seconds:.1} s"),
        _ if seconds < 100.0 => format!("{seconds:.0} s"),
        _ if seconds < 6_000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}

/// The rows of all summaries with their scenario, and all claims.
fn to_json(plans: &[(String, Plan)], finished: &[Finished]) -> String {
    let with = |scenario: &str, value: serde_json::Result<Value>| {
        let mut value = value.unwrap_or_default();
        if let Some(table) = value.as_object_mut() {
            table.insert("scenario".to_owned(), scenario.into());
        }
        value.to_string()
    };
    let all = || plans.iter().zip(finished);
    let rows: Vec<String> =
        all().flat_map(|((name, _), one)| one.rows.iter().map(|row| with(name, serde_json::to_value(row)))).collect();
    let claims: Vec<String> = all()
        .flat_map(|((name, _), one)| one.claims.iter().map(|claim| with(name, serde_json::to_value(claim))))
        .collect();
    let list = |lines: &[String]| {
        if lines.is_empty() { "[]".to_owned() } else { format!("[\n{}\n]", lines.join(",\n")) }
    };
    format!("{{\n\"rows\": {},\n\"claims\": {}\n}}\n", list(&rows), list(&claims))
}

/// How many claims of each scenario became what.
fn overview(plans: &[(String, Plan)], finished: &[Finished]) -> String {
    let mut text = String::from("claims\n");
    for ((name, _), one) in plans.iter().zip(finished) {
        let count = |status| one.claims.iter().filter(|claim| claim.status == status).count();
        let counts = Status::ALL.map(|status| format!("{} {status}", count(status)));
        let trivial = one.claims.iter().filter(|claim| claim.trivial).count();
        text.push_str(&format!(
            "  {name}: {}\n",
            match (one.claims.is_empty(), trivial) {
                (true, _) => "none".into(),
                (false, 0) => counts.join(", "),
                (false, trivial) => format!("{} ({trivial} trivial)", counts.join(", ")),
            }
        ));
    }
    text
}
