//! Reports of small runs, and of results that somebody damaged.

use super::*;
use crate::{
    results::table::Extent,
    run::{Observer, Options, Plan, execute, folder::Existing, only::Only},
    scenario::{Scenario, Source},
};
use std::{fs, sync::atomic::AtomicBool};

struct Silent;
impl Observer for Silent {}

const SCENARIO: &str = r#"
name = "report"
describe = "a <script>alert(1)</script> & more"
duration = "200us"
drain = "100ms"
seeds = [1, 2]
[topology]
kind = "single-switch"
hosts = 4
link = { rate = "10Gbps", delay = "1us" }
[switch]
buffer = { total = "1MB" }
[[workload]]
class = "background"
kind = "poisson"
sizes = { lognormal = { mean = "20KB", sigma = 1.5 } }
load = 0.2
[[workload]]
kind = "incast"
fan_in = 3
size = "20KB"
every = "50us"
[[scheme]]
law = "dctcp"
switch.ecn = { kind = "step", at = "30KB" }
[[scheme]]
law = "cubic"
[measure]
ports = { every = "1us", which = ["s0->h*"] }
rates = { every = "10us", flows = "all" }
[[paper.claim]]
metric = "fct_us.p99"
scheme = "dctcp"
value = 100
"#;

/// Runs a scenario into a fresh folder of its own; the folder of its results.
fn results(test: &str, text: &str) -> PathBuf {
    let out = std::env::temp_dir().join(format!("incast-report-{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&out);
    let source = Source { path: "report.toml".into(), text: text.to_owned() };
    let scenario = Scenario::parse(source, &[]).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::new(scenario, None, &Only::default()).expect("everything is wanted");
    let options = Options {
        out,
        jobs: Some(1),
        threads: 1,
        run_timeout: None,
        existing: Existing::Refuse,
        export: |_, _| Vec::new(),
        extent: Extent::Wide,
    };
    let finished = execute(&plan, &options, &Silent, &AtomicBool::new(false)).expect("it runs");
    finished.report.expect("rows").expect("a report");
    finished.folder
}

fn removed(folder: &Path) {
    fs::remove_dir_all(folder.parent().expect("a folder of the test")).expect("removed");
}

#[test]
fn every_section_is_there_and_names_are_text() {
    let folder = results("sections", SCENARIO);
    let first = fs::read_to_string(folder.join(FILE)).expect("written by the run");
    for part in [
        "comparison",
        "bars",
        "distributions",
        "requests",
        "sizes",
        "queues",
        "rates",
        "estimates",
        "claims",
        "scenario",
        "cost",
    ] {
        assert!(first.contains(&format!("<section class=\"{part}\">")), "{part}");
    }
    assert!(!first.contains("<section class=\"sweep\">"), "there is no grid");
    assert!(first.contains("&lt;script&gt;alert(1)") && !first.contains("<script>alert"));
    for wrong in ["NaN", "http://", "https://", "url(", "@import", "src="] {
        assert!(!first.contains(wrong), "{wrong}");
    }
    // An attribute that is given twice counts once: nothing may be in the second.
    for tag in first.split('<').filter_map(|tag| tag.split('>').next()) {
        assert!(tag.matches(" class=\"").count() <= 1, "{tag}");
    }
    assert_eq!(write(&folder).expect("again"), folder.join(FILE));
    assert_eq!(fs::read_to_string(folder.join(FILE)).expect("written"), first, "the same results, the same page");
    removed(&folder);
}

/// A victim and a culprit under several schemes: each has figures in which the schemes are compared.
#[test]
fn few_flows_are_compared_by_scheme() {
    let long =
        |class: &str, pair: &str| format!("[[workload]]\nkind = \"long\"\nclass = {class:?}\npairs = [[{pair}]]\n");
    let flows = long("F1", "\"h0\", \"h3\"") + &long("F2", "\"h1\", \"h3\"");
    let (before, after) = SCENARIO.split_once("[[workload]]").expect("there");
    let schemes = after.find("[[scheme]]").expect("there");
    let text = format!("{before}{flows}{}", &after[schemes..]).replace("flows = \"all\"", "flows = \"long\"");
    let folder = results("compared", &text.replace("drain = \"100ms\"", "drain = \"1us\""));
    let page = fs::read_to_string(folder.join(FILE)).expect("written");
    for flow in ["F1", "F2"] {
        for what in ["measured", "assigned"] {
            let title = format!("<figcaption>{flow}: {what} rate</figcaption>");
            let figure = page.split("<figure").find(|figure| figure.contains(&title)).expect("a figure");
            for (series, scheme) in ["dctcp", "cubic"].iter().enumerate() {
                assert!(figure.contains(&format!("data-series=\"{series}\"")), "{title}");
                assert!(figure.contains(&format!("<title>{scheme}: at least ")), "{title}");
            }
        }
    }
    assert!(page.contains("<figcaption>dctcp: rates of flows</figcaption>") && page.contains("F1, assigned: "));
    assert!(page.contains("<figcaption>queue of s0-&gt;h3</figcaption>"));
    removed(&folder);
}

#[test]
fn what_did_not_finish_is_shown() {
    // The drain is too short for the last flows.
    let folder = results("unfinished", &SCENARIO.replace("100ms", "1us"));
    let page = fs::read_to_string(folder.join(FILE)).expect("written");
    for part in ["did not finish.", "≥ ", "a lower bound: not every flow finished", "class=\"bar bound\""] {
        assert!(page.contains(part), "{part}");
    }
    removed(&folder);
}

#[test]
fn a_large_grid_stays_small() {
    let loads: Vec<String> = (1..=120).map(|step| format!("{}", f64::from(step) / 200.0)).collect();
    let grid = format!("\n[grid]\n\"workload.background.load\" = [{}]\n", loads.join(", "));
    // Without samples: 120 × 2 × 2 runs are enough work as it is.
    let text = SCENARIO.replace("seeds = [1, 2]", "seeds = [1]").replace("[1, 2]", "[1]");
    let text = format!("{}{grid}", text.replace("[measure]\nports = { every = \"1us\", which = [\"s0->h*\"] }\nrates = { every = \"10us\", flows = \"all\" }\n", ""));
    let folder = results("large", &text);
    let page = fs::read_to_string(folder.join(FILE)).expect("written");
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert!(page.contains("<section class=\"sweep\">") && page.contains("of 120 grid points are shown in detail"));
    removed(&folder);
}

#[test]
fn damaged_results_are_refused_and_nothing_is_written() {
    let folder = results("damaged", SCENARIO);
    let run = folder.join("dctcp+seed1");
    let whole = fs::read(folder.join("summary.json")).expect("a summary");
    let refused = |file: &Path, content: Option<&[u8]>, expected: &str| {
        let kept = fs::read(file).expect("a file");
        let _ = fs::remove_file(folder.join(FILE));
        match content {
            Some(content) => fs::write(file, content).expect("damaged"),
            None => fs::remove_file(file).expect("removed"),
        }
        let error = write(&folder).expect_err("refused");
        assert!(error.is_bad_input());
        let message = error.to_string();
        assert!(message.contains(expected), "{message}\nshould contain {expected}");
        assert!(!folder.join(FILE).exists() && !folder.join("report.html.tmp").exists());
        fs::write(file, kept).expect("repaired");
    };
    refused(&folder.join("summary.json"), None, "no summary.json");
    refused(&folder.join("summary.json"), Some(&whole[..whole.len() / 2]), "summary.json: not a summary");
    refused(&folder.join("summary.json"), Some(b"[]"), "has no checksum");
    refused(&run.join("run.json"), Some(b"{}"), "run.json: not a record of a run");
    refused(&run.join("run.json"), None, "whose folder is missing");
    let record = fs::read_to_string(run.join("run.json")).expect("a record");
    let other = record.replace("\"version\": \"", "\"version\": \"9");
    refused(&run.join("run.json"), Some(other.as_bytes()), "SHA-256");
    for table in ["flows.parquet", "ports.parquet", "rates.parquet"] {
        let bytes = fs::read(run.join(table)).expect("a table");
        refused(&run.join(table), Some(&bytes[..bytes.len() / 2]), table);
        refused(&run.join(table), Some(b"PAR1"), table);
    }
    refused(&run.join("flows.parquet"), None, "flows.parquet");
    // A table of another kind has other columns.
    let requests = fs::read(run.join("requests.parquet")).expect("requests");
    refused(&run.join("ports.parquet"), Some(&requests), "ports.parquet: has changed");
    assert!(write(&folder).is_ok(), "repaired");
    assert!(write(&folder.join("nothing")).expect_err("no such folder").is_bad_input());
    let above = write(folder.parent().expect("above")).expect_err("not the scenario's folder").to_string();
    assert!(above.contains("there is") && above.contains("report"), "{above}");
    removed(&folder);
}
