//! `incast report` and `incast reproduce`, on scenarios of the tests.

use crate::common::{folder, incast, scenario, stderr, succeed, text};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

#[test]
fn run_writes_a_report_and_says_where() {
    let out = folder("report_of_run");
    let printed = succeed(&["run", "--quiet", "--out", text(&out), &scenario("small")]);
    let page = out.join("small/report.html");
    assert!(printed.contains(&format!("report: {}", page.display())), "{printed}");
    let first = fs::read_to_string(&page).expect("a report");
    assert!(first.starts_with("<!DOCTYPE html>") && first.contains("<svg") && first.ends_with("</html>"));

    fs::remove_file(&page).expect("removed");
    let printed = succeed(&["report", text(&out.join("small"))]);
    assert_eq!(printed, format!("report: {}\n", page.display()));
    assert_eq!(fs::read_to_string(&page).expect("written again"), first);

    // With --json, stdout stays JSON.
    let json = incast(&["run", "--json", "--force", "--out", text(&out), &scenario("small")]);
    serde_json::from_slice::<Value>(&json.stdout).expect("JSON");
    assert!(stderr(&json).contains("report: "), "{}", stderr(&json));
}

/// A percentile of the times of flows of very different sizes is drawn nowhere, as no table has it.
#[test]
fn times_of_different_classes_have_no_common_chart() {
    let out = folder("report_mixed");
    let page = |large: &str| {
        let file = out.join("mixed.toml");
        let flows = |class: &str, size: &str| {
            format!(
                "[[workload]]\nclass = \"{class}\"\nkind = \"poisson\"\nsizes = {{ fixed = \"{size}\" }}\nload = 0.2\n"
            )
        };
        let fabric = "name = \"mixed\"\nduration = \"2ms\"\nseeds = [1, 2]\n\
            topology = { kind = \"single-switch\", hosts = 4, link = { rate = \"10Gbps\", delay = \"1us\" } }\n\
            switch = { buffer = { per_port = \"1MB\" } }\nscheme = [{ law = \"cubic\" }]\n\
            grid = { \"topology.hosts\" = [4, 8] }\n";
        fs::write(&file, fabric.to_owned() + &flows("small", "4KB") + &flows("large", large)).expect("written");
        succeed(&["run", "--quiet", "--force", "--out", text(&out), text(&file)]);
        fs::read_to_string(out.join("mixed/report.html")).expect("a report")
    };
    let (mixed, alike) = (page("400KB"), page("8KB"));
    for title in ["99th percentile of FCT, all flows", "median FCT, all flows"] {
        assert!(!mixed.contains(title) && alike.contains(title), "{title}");
    }
    for page in [&mixed, &alike] {
        assert!(page.contains("99th percentile of FCT, large") && page.contains(">topology.hosts</text>"), "{page}");
    }
}

#[test]
fn results_that_are_missing_or_damaged_are_refused() {
    let out = folder("report_damaged");
    let refused = |path: &Path| {
        let output = incast(&["report", text(path)]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(output.stdout.is_empty() && !stderr(&output).contains("panicked"), "{}", stderr(&output));
        assert!(!path.join("report.html").exists());
        stderr(&output)
    };
    assert!(refused(&out.join("nothing")).contains("cannot be read"));
    assert!(refused(&out).contains("no summary.json"));
    #[cfg(unix)]
    {
        let endless = out.join("endless");
        fs::create_dir(&endless).expect("a folder");
        std::os::unix::fs::symlink("/dev/zero", endless.join("summary.json")).expect("a link");
        assert!(refused(&endless).contains("not a regular file"));
    }
    succeed(&["run", "--quiet", "--out", text(&out), &scenario("small")]);
    let results = out.join("small");
    fs::remove_file(results.join("report.html")).expect("removed");
    assert!(refused(&out).contains(text(&results)), "names the folder that is meant");
    fs::write(results.join("cubic+seed2/flows.parquet"), b"PAR1 but no more").expect("damaged");
    assert!(refused(&results).contains("flows.parquet"));
    fs::write(results.join("summary.json"), b"{ not JSON").expect("damaged");
    assert!(refused(&results).contains("summary.json"));
}

/// A folder of scenarios as `reproduce --from` takes it.
fn scenarios(test: &str) -> PathBuf {
    let from = folder(test).join("scenarios");
    fs::create_dir_all(from.join("tests")).expect("a system");
    fs::copy(scenario("report"), from.join("tests/everything.toml")).expect("copied");
    let small = fs::read_to_string(scenario("small")).expect("a scenario");
    fs::write(from.join("tests/small.toml"), small.replace("[[scheme]]\nlaw = \"cubic\"", "")).expect("written");
    fs::write(from.join("tests/notes.txt"), "no scenario").expect("written");
    fs::write(from.join("of-no-system.toml"), "not read").expect("written");
    from
}

#[test]
fn published_scenarios_are_listed_by_system() {
    let from = scenarios("reproduce_list");
    let list = succeed(&["reproduce", "--from", text(&from), "--list"]);
    assert!(list.contains("tests/everything\n") && list.contains("tests/small\n"), "{list}");
    assert_eq!((list.matches(" of CPU").count(), list.matches("; --short: ").count()), (3, 1), "{list}");
    assert!(!list.contains("notes") && !list.contains("of-no-system"), "{list}");
    assert_eq!(succeed(&["reproduce", "--from", text(&from)]), list, "nothing runs without a name");
    let json: Value =
        serde_json::from_str(&succeed(&["reproduce", "--from", text(&from), "--list", "--json"])).expect("JSON");
    assert_eq!(json[0]["scenario"], "tests/everything");
    assert_eq!((json[0]["short"].as_bool(), json[1]["short"].as_bool()), (Some(true), Some(false)));
}

#[test]
fn reproducing_judges_every_claim() {
    let from = scenarios("reproduce_json");
    let out = from.with_file_name("results");
    let arguments = ["reproduce", "tests", "--short", "--json", "--quiet", "--from", text(&from), "--out", text(&out)];
    let output = incast(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("tests/small: --short has no effect"), "{}", stderr(&output));
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = printed["rows"].as_array().expect("rows");
    let of = |name: &str| rows.iter().filter(|row| row["scenario"] == name).count();
    // The short form has one load, one seed and its pool, 3 schemes, 3 classes and all.
    assert_eq!(of("tests/everything"), 2 * 3 * 4);
    assert_eq!(of("tests/small"), 3 * 3);
    let claims = printed["claims"].as_array().expect("claims");
    assert_eq!(claims.len(), 4);
    for claim in claims {
        assert_eq!(claim["scenario"], "tests/everything");
        assert!(claim["claim"].is_string() && claim["published"].is_number() && claim["measured"].is_number());
        let status = claim["status"].as_str().expect("a status");
        assert!(["reproduced", "same direction", "inconclusive", "not reproduced"].contains(&status), "{status}");
        assert!(claim["why"].as_str().is_some_and(|why| !why.is_empty()));
    }
    for name in ["report", "small"] {
        assert!(out.join(name).join("report.html").is_file(), "{name}");
    }
    // Finished runs are kept.
    let again = succeed(&[&arguments[..], &["--resume"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&again).expect("JSON"), printed);
}

/// The scenarios as they are shipped, in their short forms: whatever they leave out, no claim that is left goes
/// unmeasured.
#[test]
fn the_short_forms_of_mercurys_figures_measure_their_claims() {
    let reproduce = |name: &str, names: &[&str], more: &[&str]| -> Value {
        let out = folder(name).join("results");
        let mut arguments = vec!["reproduce", "--short", "--json", "--quiet", "--out", text(&out)];
        arguments.extend(names.iter().chain(more));
        serde_json::from_str(&succeed(&arguments)).expect("JSON")
    };
    let small = ["mercury/fig03", "mercury/fig04", "mercury/fig09", "mercury/detection"];
    let printed = reproduce("reproduce_mercury", &small, &[]);
    // The large fabric takes most of the time: one seed is enough, and a third of the time.
    let less = ["--set", "seeds=[1]", "--set", "duration=\"100us\"", "--set", "warmup=\"20us\""];
    let large = reproduce("reproduce_mercury_large", &["mercury/fig11-14"], &less);
    let claims: Vec<&Value> =
        [&printed, &large].into_iter().flat_map(|all| all["claims"].as_array().expect("claims")).collect();
    for figure in ["fig03", "fig04", "fig09", "fig11-14"] {
        let scenario = format!("mercury/{figure}");
        assert!(claims.iter().any(|claim| claim["scenario"] == scenario.as_str()), "{figure}");
    }
    for claim in claims {
        assert!(claim["measured"].is_number(), "{claim}");
    }
    let rows = printed["rows"].as_array().expect("rows");
    let least = |scenario: &str, scheme: &str, class: &str| {
        let row = rows.iter().find(|row| {
            row["scenario"] == scenario && row["scheme"] == scheme && row["class"] == class && row["seed"] == "all"
        });
        row.and_then(|row| row["assigned_gbps"]["min"].as_f64()).expect("sampled")
    };
    // What Mercury is for: the victim keeps its rate, and the culprit does not.
    let (victim, culprit) = (least("mercury/fig09", "mercury", "F1"), least("mercury/fig09", "mercury", "F2"));
    assert!(victim >= 19.0 && culprit < 5.0, "{victim} and {culprit}");
    // With the paper's Xoff the window alone would do that. Where pauses spread it takes the state of ports: without
    // one that a pause sets, the victim is told to slow down.
    let [detects, does_not] =
        ["mercury", "M3: nothing is set on a pause"].map(|scheme| least("mercury/detection", scheme, "F1"));
    assert!(detects >= 19.0 && does_not < 15.0, "{detects} and {does_not}");
}

/// The same for Polo, whose plots are of goodput and tails against the number of senders.
#[test]
fn the_short_forms_of_polos_slides_measure_their_claims() {
    let out = folder("reproduce_polo").join("results");
    let printed = succeed(&["reproduce", "polo", "--short", "--json", "--quiet", "--out", text(&out)]);
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    let claims = printed["claims"].as_array().expect("claims");
    for name in ["core", "edge", "motivation-core", "motivation-edge-1ms", "incast", "ablation", "websearch", "failure"]
    {
        let scenario = format!("polo/{name}");
        assert!(claims.iter().any(|claim| claim["scenario"] == scenario.as_str()), "{name}");
    }
    for claim in claims {
        assert!(claim["measured"].is_number(), "{claim}");
    }
    // What Polo is for: a thousand senders finish, and the link is used; to the letter, adjoint packets leave nothing
    // of it.
    let rows = printed["rows"].as_array().expect("rows");
    let of = |scheme: &str| {
        let found = rows.iter().find(|row| {
            row["scenario"] == "polo/incast"
                && row["scheme"] == scheme
                && row["class"] == "incast"
                && row["seed"] == "all"
        });
        let row = found.expect("a row");
        (row["completed"].as_u64().expect("a count"), row["goodput_gbps"].as_f64().unwrap_or(0.0))
    };
    let (completed, goodput) = of("polo");
    assert!(completed == 1000 && goodput >= 0.85, "{completed} {goodput}");
    assert_eq!(of("polo to the letter").0, 0);
    // Each ablation completes every flow.
    for row in rows.iter().filter(|row| row["scenario"] == "polo/ablation") {
        assert_eq!(row["completed"], row["flows"], "{}", row["scheme"]);
    }
}

#[test]
fn reproducing_prints_tables_and_counts() {
    let from = scenarios("reproduce_table");
    let out = from.with_file_name("results");
    let table = succeed(&[
        "reproduce",
        "tests/everything",
        "--short",
        "--quiet",
        "--from",
        text(&from),
        "--out",
        text(&out),
        "--set",
        "duration=500us",
        "--set",
        "scheme.dctcp.gain=0.1",
    ]);
    for part in ["(short form)", "dctcp", "published", "report: ", "\nclaims\n  tests/everything: "] {
        assert!(table.contains(part), "{part}\n{table}");
    }
    let page = fs::read_to_string(out.join("report/report.html")).expect("a report");
    assert!(page.contains("short form") && page.contains("duration = &quot;500us&quot;"));
}

#[test]
fn names_that_are_none_are_refused() {
    let from = scenarios("reproduce_refused");
    let out = from.with_file_name("results");
    let refused = |arguments: &[&str]| {
        let mut all = vec!["reproduce", "--quiet", "--out", text(&out)];
        all.extend(arguments);
        let output = incast(&all);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty() && !out.exists(), "something was written");
        stderr(&output)
    };
    let message = refused(&["--from", text(&from), "tests/smal"]);
    assert!(message.contains("did you mean \"tests/small\""), "{message}");
    refused(&["no-such-system"]);
    refused(&["--from", text(&from), "tests", "--all"]);
    refused(&["--from", text(&out), "tests"]);
    let message = refused(&["--from", text(&from), "tests", "--set", "scheme.dctcp.gian=0.1"]);
    assert!(message.contains("gian"), "{message}");
}

#[test]
fn a_short_form_runs_and_is_checked() {
    let check = succeed(&["check", "--short", &scenario("report")]);
    assert!(check.contains("# 3 runs") && check.contains("duration = \"700us\""), "{check}");
    let full = succeed(&["check", &scenario("report")]);
    assert!(full.contains("# 18 runs") && !full.contains("[short]"), "{full}");
}

#[test]
fn which_duration_would_do_is_said_once_for_all_schemes_and_in_the_report() {
    let (out, file) = (folder("report-short"), scenario("small"));
    let sizes = "workload.background.sizes={fixed=\"1MB\"}";
    let set = ["--set", "duration=5ms", "--set", "warmup=0us", "--set", "workload.background.load=0.8", "--set", sizes];
    let own = ["run", "--quiet", "--seeds", "3", "--out", text(&out), &file];
    let printed = succeed(&[&own[..], &set].concat());
    assert_eq!(printed.matches("would do").count(), 1, "{printed}");
    assert!(printed.contains("dctcp and cubic: what waits"), "{printed}");
    let page = fs::read_to_string(out.join("small/report.html")).expect("a report");
    let verdict = page.split("<section class=\"verdict\">").nth(1).expect("a verdict");
    let verdict = verdict.split("</section>").next().expect("its end");
    assert!(verdict.contains("dctcp and cubic: what waits") && verdict.contains(" would do"), "{verdict}");
}

#[test]
fn several_folders_make_one_file() {
    let out = folder("report_several");
    for name in ["a", "b"] {
        succeed(&["run", "--quiet", "--out", text(&out.join(name)), &scenario("small")]);
    }
    let (a, b, page) = (out.join("a/small"), out.join("b/small"), out.join("both.html"));
    let refused = incast(&["report", text(&a), text(&b)]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("--out FILE is missing"), "{}", stderr(&refused));
    let printed = succeed(&["report", text(&a), text(&b), "--out", text(&page)]);
    assert_eq!(printed, format!("report: {}\n", page.display()));
    let both = fs::read_to_string(&page).expect("a report");
    for (number, folder) in [(1, &a), (2, &b)] {
        assert!(both.contains(&format!("<a href=\"#folder-{number}\"><code>{}</code></a>", folder.display())));
        assert_eq!(both.matches(&format!("<article id=\"folder-{number}\">")).count(), 1);
    }
    assert_eq!(both.matches("<section class=\"comparison\">").count(), 2);
    assert!(!both.contains("src=") && both.ends_with("</html>"));
    fs::remove_file(&page).expect("removed");
    let missing = incast(&["report", text(&a), text(&out.join("c")), "--out", text(&page)]);
    assert_eq!(missing.status.code(), Some(2), "{}", stderr(&missing));
    assert!(!page.exists(), "all or nothing");
}

#[test]
fn colours_are_as_asked_for() {
    let coloured = |arguments: &[&str]| stderr(&incast(arguments)).contains('\x1b');
    assert!(coloured(&["--color", "always", "nonsense"]) && coloured(&["run", "--color=always", "--nonsense"]));
    assert!(!coloured(&["--color", "never", "nonsense"]) && !coloured(&["nonsense"]), "no terminal reads");
    assert_eq!(incast(&["--color", "blue", "list", "laws"]).status.code(), Some(2));
}
