//! Damage to results: whatever happens to their files, each command says so or prints what it printed before, and
//! `--resume` makes them whole.

use super::{Observer, Options, Plan, execute, folder::Existing, only::Only};
use crate::{
    report,
    results::{
        RunRecord, checksums,
        export::{Format, export},
        read::{self, UNVERIFIED},
        record::TABLES,
        table::Extent,
    },
    scenario::{Scenario, Source},
};
use std::{
    fs, io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::AtomicBool,
};

const SCENARIO: &str = r#"
name = "damage"
duration = "40us"
drain = "10ms"
seeds = [1, 2]
[topology]
kind = "single-switch"
hosts = 4
link = { rate = "10Gbps", delay = "1us" }
[switch]
buffer = { total = "40KB" }
[[workload]]
class = "background"
kind = "poisson"
sizes = { fixed = "20KB" }
load = 0.2
[[workload]]
kind = "incast"
fan_in = 3
size = "20KB"
every = "20us"
[[scheme]]
law = "dctcp"
switch.ecn = { kind = "step", at = "10KB" }
[[scheme]]
law = "cubic"
[measure]
ports = { every = "10us", which = ["s0->h*"] }
rates = { every = "10us", flows = "all" }
traces = true
"#;

struct Silent;
impl Observer for Silent {}

fn run(out: &Path, existing: Existing) -> Result<(), String> {
    let source = Source { path: "damage.toml".into(), text: SCENARIO.to_owned() };
    let scenario = Scenario::parse(source, &[]).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::new(scenario, None, &Only::default()).expect("everything is wanted");
    let options = Options {
        out: out.to_owned(),
        jobs: Some(1),
        threads: 1,
        run_timeout: None,
        existing,
        export: |_, _| vec![("notes.txt", "a file of an export\n".to_owned())],
        extent: Extent::Wide,
    };
    let finished = execute(&plan, &options, &Silent, &AtomicBool::new(false)).map_err(|error| error.to_string())?;
    assert_eq!((finished.done, finished.planned, &finished.failures), (4, 4, &Vec::new()));
    match finished.report {
        Some(Ok(_)) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// What each command makes of the results: its output, or what it says is wrong.
fn outputs(results: &Path) -> Vec<Result<String, String>> {
    let text = |error: &dyn ToString| error.to_string();
    let mut outputs = vec![
        read::summary(results).map(|summary| format!("{summary:?}").replace(UNVERIFIED, "")).map_err(|e| text(&e)),
        read::read(results).map(|results| format!("{:?}{:?}", results.rows, results.verdicts)).map_err(|e| text(&e)),
        report::write(results).map_err(|e| text(&e)).and_then(|page| fs::read_to_string(page).map_err(|e| text(&e))),
    ];
    let csv = results.with_extension("csv");
    for table in TABLES {
        let exported = export(results, table, &csv, Format::Csv).map_err(|e| text(&e));
        outputs.push(exported.and_then(|_| fs::read_to_string(&csv).map_err(|e| text(&e))));
    }
    outputs
}

/// What a run done again leaves equal: tables, and rows but for their cost.
fn resumed(results: &Path) -> Vec<Result<String, String>> {
    let mut all = outputs(results);
    let mut rows = read::read(results).map_or_else(|error| panic!("{error}"), |results| results.rows);
    for row in &mut rows {
        let mut json = serde_json::to_value(&*row).expect("a row");
        json["cpu_s"] = 0.into();
        json["ns_per_packet_hop"] = 0.into();
        *row = serde_json::from_value(json).expect("a row");
        row.ci95 = None;
    }
    let page = std::mem::replace(&mut all[2], Ok(String::new()));
    assert!(page.is_ok(), "{page:?}");
    all[0] = Ok(format!("{rows:?}"));
    all[1] = Ok(String::new());
    all
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("listed").flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to)
        } else {
            fs::copy(entry.path(), to).map(drop).expect("copied")
        }
    }
}

/// xorshift64*: the same damages each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// All files below a folder, by path.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).expect("listed").flatten().map(|it| it.path()).collect();
    entries.sort();
    entries.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Damages the results; says how.
fn damage(results: &Path, random: &mut Random) -> String {
    let all = files(results);
    let file = random.of(&all).clone();
    let runs: Vec<PathBuf> =
        all.iter().filter(|it| it.ends_with("run.json")).filter_map(|it| Some(it.parent()?.into())).collect();
    let (run, other) = (random.of(&runs).clone(), random.of(&runs).clone());
    let swap = |a: &Path, b: &Path| {
        let aside = results.join("aside");
        let moves = [(a, &*aside), (b, a), (&aside, b)];
        moves.into_iter().for_each(|(from, to)| drop(fs::rename(from, to)));
    };
    let put = |make: &dyn Fn(&Path) -> io::Result<()>| {
        fs::remove_file(&file).expect("removed");
        make(&file).expect("put there");
    };
    let what = match random.below(18) {
        0..4 => {
            let mut bytes = fs::read(&file).expect("read");
            for _ in 0..=random.below(3) {
                let place = random.below(bytes.len());
                bytes[place] ^= 1 << random.below(8);
            }
            fs::write(&file, bytes).expect("written");
            "bits"
        }
        4 => {
            // A digit for another one, as an editor would.
            let mut bytes = fs::read(&file).expect("read");
            let digits: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place].is_ascii_digit()).collect();
            if !digits.is_empty() {
                let place = *random.of(&digits);
                bytes[place] = b'0' + (bytes[place] - b'0' + 1 + random.below(8) as u8) % 10;
            }
            fs::write(&file, bytes).expect("written");
            "a digit"
        }
        5 => {
            let bytes = fs::read(&file).expect("read");
            fs::write(&file, &bytes[..random.below(bytes.len())]).expect("written");
            "truncated"
        }
        6 => {
            fs::write(&file, b"").expect("written");
            "empty"
        }
        7 => {
            fs::remove_file(&file).expect("removed");
            "deleted"
        }
        8 => {
            fs::remove_dir_all(&run).expect("removed");
            "a run deleted"
        }
        9 => {
            let name = random.of(&["run.json", "flows.parquet", "requests.parquet", "rates.parquet", "events.parquet"]);
            swap(&run.join(name), &other.join(name));
            return format!("{name} of {} and {} swapped", run.display(), other.display());
        }
        10 => {
            swap(&run, &other);
            return format!("{} and {} swapped", run.display(), other.display());
        }
        11 => {
            copy(&run, &results.join("a copy"));
            return format!("{} copied", run.display());
        }
        12 => {
            let mut record = RunRecord::read(&run.join("run.json")).expect("whole");
            record.version.push('1');
            record.write(&run.join("run.json")).expect("written");
            return format!("{} of another build", run.display());
        }
        13 => {
            put(&|path| Command::new("mkfifo").arg(path).status().map(drop));
            "a FIFO"
        }
        14 => {
            put(&|path| symlink(path, path));
            "a loop"
        }
        15 => {
            // As an earlier build wrote it, of other numbers.
            let path = results.join("summary.json");
            let summary = fs::read_to_string(&path).expect("read");
            let (text, _) = summary.split_once(",\n\"sha256\"").expect("sealed");
            let text = text
                .replace("\"schema\": 5", "\"schema\": 3")
                .replace("\"seed\":\"all\"", "\"seed\":\"all\",\"runs\":7");
            fs::write(&path, text + "\n}").expect("written");
            return "an unsealed summary".to_owned();
        }
        16 => {
            put(&|path| fs::create_dir(path));
            "a folder"
        }
        _ => {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("set");
            "no permissions"
        }
    };
    format!("{what}: {}", file.display())
}

#[test]
fn damage_is_named_or_harmless_and_resumed_results_are_whole() {
    damages(1, 200);
}

/// The other half, beside it.
#[test]
fn more_damage_is_named_or_harmless() {
    damages(2, 200);
}

fn damages(seed: u64, count: usize) {
    // In memory: every file is synchronised with the disk.
    let shm = Path::new("/dev/shm");
    let shm = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
    let out = shm.join(format!("incast-damage-{seed}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&out);
    run(&out.join("whole"), Existing::Refuse).expect("a run");
    let whole = out.join("whole/damage");
    let expected = outputs(&whole);
    assert!(expected.iter().all(Result::is_ok), "{expected:?}");
    let again = resumed(&whole);
    let (mut random, mut named, mut repaired) = (Random(seed), 0, 0);
    for number in 0..count {
        let copied = out.join("copy");
        copy(&whole, &copied.join("damage"));
        let what = damage(&copied.join("damage"), &mut random);
        let found = outputs(&copied.join("damage"));
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.is_err() || found == expected, "{number}, {what}: {found:?}");
        }
        named += usize::from(found.iter().any(Result::is_err));
        // Another build's results are not joined with: --resume refuses them.
        let ended = run(&copied, Existing::Resume);
        if ended.is_ok() {
            assert_eq!(resumed(&copied.join("damage")), again, "{number}, {what}: resumed");
            repaired += 1;
        } else {
            // A copy is nobody's run: who made it has to remove it.
            let refused = ["another build", "run.json", "copied", "a folder"].iter().any(|kind| what.contains(kind));
            assert!(refused, "{number}, {what}: {ended:?}");
        }
        fs::remove_dir_all(&copied).expect("removed");
    }
    assert!(2 * named > count && 3 * repaired > 2 * count, "{named} named, {repaired} repaired");
    fs::remove_dir_all(out).expect("removed");
}

/// Results of builds before checksums are read, and called unverified.
#[test]
fn results_without_checksums_are_unverified() {
    let out = std::env::temp_dir().join(format!("incast-unverified-{}", std::process::id()));
    let _ = fs::remove_dir_all(&out);
    run(&out, Existing::Refuse).expect("a run");
    let results = out.join("damage");
    let expected = outputs(&results);
    for file in files(&results).iter().filter(|it| it.ends_with("run.json")) {
        let mut record = RunRecord::read(file).expect("whole");
        record.files = None;
        fs::write(file, serde_json::to_string(&record).expect("written")).expect("written");
    }
    let summary = fs::read_to_string(results.join("summary.json")).expect("read");
    let (text, _) = summary.split_once(",\n\"sha256\"").expect("sealed");
    let lines = text.lines().filter(|line| !line.starts_with("\"runs\""));
    let text = lines.collect::<Vec<_>>().join("\n").replace("\"schema\": 5", "\"schema\": 3");
    fs::write(results.join("summary.json"), format!("{text}\n}}")).expect("written");
    assert!(read::read(&results).expect("read").unverified);
    assert!(read::summary(&results).expect("read").provenance.contains(UNVERIFIED));
    assert!(export(&results, "flows", &out.join("flows.csv"), Format::Csv).expect("written").unverified);
    let found = outputs(&results);
    for place in [0, 1, 3, 4, 5, 6, 7] {
        assert_eq!(found[place], expected[place]);
    }
    assert_eq!(checksums::check_seal(text.as_bytes()), checksums::Seal::None);
    fs::remove_dir_all(out).expect("removed");
}
