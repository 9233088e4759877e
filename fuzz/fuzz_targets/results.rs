//! Damaged results: a report of them is refused or made. The input is a list of edits of a real run.json, each of five
//! bytes: which value, two bytes, and what becomes of it. An input that is JSON itself is read as it is.
#![no_main]

use incast_lab::{
    report,
    results::{read, record::RunRecord},
    run::{Observer, Options, Plan, execute, folder::Existing, only::Only},
    scenario::{Scenario, Source},
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::{
    fs,
    path::PathBuf,
    sync::{OnceLock, atomic::AtomicBool},
};

struct Silent;
impl Observer for Silent {}

/// Folders of a small scenario's results and of its first run, and that run's record.
fn real() -> &'static (PathBuf, PathBuf, Value) {
    static REAL: OnceLock<(PathBuf, PathBuf, Value)> = OnceLock::new();
    REAL.get_or_init(|| {
        let out = std::env::temp_dir().join(format!("incast-fuzz-{}", std::process::id()));
        let source = Source { path: "results.toml".into(), text: include_str!("../seeds/results.toml").into() };
        let scenario = Scenario::parse(source, &[]).expect("a scenario");
        let plan = Plan::new(scenario, None, &Only::default()).expect("a plan");
        let export = |_: &_, _: &_| Vec::new();
        let options = Options {
            out,
            jobs: Some(1),
            threads: 1,
            run_timeout: None,
            existing: Existing::Overwrite,
            export,
            extent: incast_lab::results::table::Extent::Fitting(80),
        };
        let folder = execute(&plan, &options, &Silent, &AtomicBool::new(false)).expect("it runs").folder;
        let run = folder.join(&plan.runs[0].folder);
        let record = serde_json::from_slice(&fs::read(run.join("run.json")).expect("a record")).expect("JSON");
        (folder, run, record)
    })
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(entries) => entries.values().map(count).sum(),
        _ => 0,
    }
}

/// The value with that number, in the order of the file.
fn find<'v>(value: &'v mut Value, at: &mut usize) -> Option<&'v mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| find(item, at)),
        Value::Object(entries) => entries.values_mut().find_map(|item| find(item, at)),
        _ => None,
    }
}

fn edit(value: &mut Value, edit: &[u8; 5]) {
    let [high, low, x, y, what] = *edit;
    let number = u16::from_be_bytes([x, y]);
    *value = match what % 16 {
        0 => Value::Null,
        1 => json!(""),
        2 => json!("a\u{0}é<&\"/../"),
        3 => json!(-1),
        4 => json!(u64::MAX),
        5 => json!(1e308),
        6 => json!(-1e-308),
        7 => json!([]),
        8 => json!({}),
        9 => json!(number),
        10 => json!(f64::from(number) / 7.0),
        11 => json!(true),
        12 => json!([value.take()]),
        13 => json!("99999999999ms"),
        14 => json!({ "name": value.take() }),
        _ => match value {
            Value::Array(items) if !items.is_empty() => {
                let first = items[usize::from(high ^ low) % items.len()].clone();
                json!([first, first])
            }
            Value::Object(entries) if !entries.is_empty() => {
                let key = entries.keys().nth(usize::from(number) % entries.len()).cloned();
                entries.retain(|other, _| Some(other) != key.as_ref());
                return;
            }
            _ => Value::Null,
        },
    };
}

fuzz_target!(|input: &[u8]| {
    let (folder, run, record) = real();
    let record = if input.first() == Some(&b'{') {
        input.to_vec()
    } else {
        let mut record = record.clone();
        for bytes in input.as_chunks::<5>().0.iter().take(8) {
            let mut at = usize::from(u16::from_be_bytes([bytes[0], bytes[1]])) % count(&record);
            if let Some(value) = find(&mut record, &mut at) {
                edit(value, bytes);
            }
        }
        record.to_string().into_bytes()
    };
    fs::write(run.join("run.json"), &record).expect("written");
    if let Ok(record) = serde_json::from_slice::<RunRecord>(&record) {
        let rows = serde_json::to_vec(&record.rows).expect("JSON");
        fs::write(folder.join("summary.json"), rows).expect("written");
    }
    let _ = read::summary(folder);
    let _ = report::write(folder);
});
