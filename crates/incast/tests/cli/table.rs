//! `incast table`, and tables that scenarios choose.

use crate::common::{folder, incast, json, scenario, stderr, succeed, text};
use std::fs;

/// The scenario `small` with a table of its own and a grid.
fn results(test: &str) -> std::path::PathBuf {
    let out = folder(test);
    let file = out.join("small.toml");
    let chosen = "\n[table]\ncolumns = [{ metric = \"slowdown.p99\" }, { metric = \"drops\" }]\n\
                  [grid]\n\"host.rto_min\" = [\"1ms\", \"2ms\"]\n";
    fs::write(&file, fs::read_to_string(scenario("small")).expect("a scenario") + chosen).expect("written");
    let printed = succeed(&["run", "--quiet", "--out", text(&out), text(&file)]);
    assert!(printed.contains("drops") && !printed.contains("FCT"), "{printed}");
    out.join("small")
}

#[test]
fn tables_are_of_the_numbers_of_the_summary() {
    let results = results("table_numbers");
    let rows = &json(&results.join("summary.json"))["rows"];
    let printed = succeed(&["table", "--markdown", "--columns", "fct_us.max,all:completed", text(&results)]);
    let pooled: Vec<_> =
        rows.as_array().expect("rows").iter().filter(|row| row["seed"] == "all" && row["class"] == "all").collect();
    assert_eq!(pooled.len(), 4, "two schemes at two points");
    for row in pooled {
        let (scheme, value) = (row["scheme"].as_str(), row["fct_us"]["max"].as_f64());
        let (scheme, value) = (scheme.expect("a name"), value.expect("a number"));
        let mut cells = printed.lines().filter_map(|line| line.strip_prefix(&format!("| {scheme} | ")));
        // Three digits, and an interval.
        let shown = |cell: &str| cell.split(' ').next().and_then(|text| text.parse::<f64>().ok());
        assert!(
            cells.any(|cell| shown(cell).is_some_and(|shown| (shown / value - 1.0).abs() < 0.005)),
            "{scheme} {value}\n{printed}"
        );
    }
    assert_eq!(printed.matches("host.rto_min = ").count(), 2, "{printed}");
    assert!(printed.contains("2 seeds"), "{printed}");
    // Without columns, those of the scenario; by number, a column for each point.
    let printed = succeed(&["table", "--by-number", "--markdown", text(&results)]);
    assert!(printed.contains("**all slowdown p99, by rto_min**\n\n| scheme | 1ms | 2ms |"), "{printed}");
    assert!(printed.contains("**drops, by rto_min**"), "{printed}");
    assert!(succeed(&["table", text(&results)]).contains("scheme"));
    // Some rows.
    let some = succeed(&["table", "--markdown", "--only", "scheme=cubic,rto_min=2ms", text(&results)]);
    assert_eq!((some.matches("rto_min = 2ms").count(), some.matches("\n| cubic |").count()), (1, 1), "{some}");
    assert!(!some.contains("dctcp") && !some.contains("1ms,"), "{some}");
    let output = incast(&["table", "--only", "seed=1", text(&results)]);
    assert_eq!(output.status.code(), Some(2), "tables have rows of all seeds");
    let output = incast(&["table", "--only", "scheme=cubci", text(&results)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean \"cubic\"?"), "{}", stderr(&output));
}

#[test]
fn without_columns_a_table_has_the_numbers_of_the_verdict() {
    let out = folder("table_judged");
    succeed(&["run", "--quiet", "--seeds", "1", "--out", text(&out), &scenario("small")]);
    let results = out.join("small");
    assert!(json(&results.join("summary.json"))["scenario"].pointer("/table/columns").is_none());
    let printed = succeed(&["table", "--markdown", text(&results)]);
    assert!(printed.contains("background slowdown p99") && printed.contains("dctcp"), "{printed}");
}

#[test]
fn tables_in_pages_are_rewritten_where_they_are() {
    let results = results("table_pages");
    let page = results.with_file_name("page.md");
    let begin = "<!-- incast table small --columns drops --by-number --only scheme=cubic,\"dctcp\" -->";
    let other = "<!-- incast table other -->\nkept\n<!-- end of table -->";
    let before = format!("# Title\n\n{begin}\nold\n<!-- end of table -->\n\nmore\n{other}\nend");
    fs::write(&page, &before).expect("a page");
    let said = succeed(&["table", text(&results), "--update", text(&page)]);
    assert!(said.ends_with("page.md: 1 table, 0 claims\n"), "{said}");
    let after = fs::read_to_string(&page).expect("the page");
    let only = "scheme=cubic,dctcp";
    let table = succeed(&["table", "--columns", "drops", "--by-number", "--markdown", "--only", only, text(&results)]);
    assert_eq!(after, before.replace("\nold\n", &format!("\n\n{table}\n")));
    succeed(&["table", text(&results), "--update", text(&page)]);
    assert_eq!(fs::read_to_string(&page).expect("the page"), after, "again, and nothing changes");

    for (wrong, message) in [
        ("nothing", "has no table of small"),
        ("\n<!-- incast table small -->\nno end", "line 2: the table has no"),
        ("<!-- incast table small --column drops -->\n<!-- end of table -->", "line 1: error: unexpected"),
        ("<!-- incast table small --columns drosp -->\n<!-- end of table -->", "did you mean \"drops\"?"),
        ("<!-- incast table small --columns x:drops -->\n<!-- end of table -->", "there is no class \"x\""),
        ("<!-- incast table small -->\n<!-- incast table small -->\n<!-- end of table -->", "another table"),
    ] {
        fs::write(&page, wrong).expect("a page");
        let output = incast(&["table", text(&results), "--update", text(&page)]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains(message), "{wrong}: {}", stderr(&output));
        assert_eq!(fs::read_to_string(&page).expect("the page"), wrong, "nothing is written");
    }
    assert_eq!(incast(&["table", text(&results.with_file_name("none"))]).status.code(), Some(2));
}

#[test]
fn a_table_of_claims_has_what_was_published_and_measured() {
    let out = folder("table_of_claims");
    let file = out.join("small.toml");
    let claims = "\n[[paper.claim]]\nmetric = \"fct_us.p50\"\nscheme = \"cubic\"\nat_least = 1\nnote = \"Fig. 1\"\n\
                  [[paper.claim]]\nmetric = \"drops\"\nscheme = \"dctcp\"\nvalue = 1e9\n";
    fs::write(&file, fs::read_to_string(scenario("small")).expect("a scenario") + claims).expect("written");
    succeed(&["run", "--quiet", "--out", text(&out), text(&file)]);
    let results = out.join("small");
    let row = &json(&results.join("summary.json"))["rows"];
    let mut rows = row.as_array().expect("rows").iter();
    let cubic = rows.find(|row| row["seed"] == "all" && row["class"] == "all" && row["scheme"] == "cubic");
    let median = cubic.and_then(|row| row["fct_us"]["p50"].as_f64()).expect("a number");
    let printed = succeed(&["table", "--claims", "--markdown", text(&results)]);
    let lines: Vec<&str> = printed.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(lines[0], "| claim | published | measured | status |");
    assert!(lines[1].starts_with("| fct_us.p50: cubic (Fig. 1) | at least 1.00 | "), "{printed}");
    let measured = lines[1].split(" | ").nth(2).and_then(|cell| cell.split(' ').next()?.parse::<f64>().ok());
    assert!(measured.is_some_and(|measured| (measured / median - 1.0).abs() < 0.005), "{median}: {printed}");
    assert!(lines[2].contains("drops: dctcp") && lines[2].ends_with(" not reproduced |"), "{printed}");
    let some = succeed(&["table", "--claims", "--only", "scheme=dctcp", text(&results)]);
    assert!(some.contains("drops: dctcp") && !some.contains("cubic"), "{some}");
    let output = incast(&["table", "--claims", "--columns", "drops", text(&results)]);
    assert_eq!(output.status.code(), Some(2));
    fs::write(&file, fs::read_to_string(scenario("small")).expect("a scenario")).expect("written");
    succeed(&["run", "--quiet", "--force", "--out", text(&out), text(&file)]);
    let output = incast(&["table", "--claims", text(&results)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("small has no claims"), "{}", stderr(&output));
}

#[test]
fn claims_in_pages_hold_or_are_refused() {
    let results = results("claims_in_pages");
    let page = results.with_file_name("page.md");
    let claim = |claim: &str| format!("A sentence <!-- claim small {claim} -->, and more.\n");
    let point = "grid = { \"host.rto_min\" = \"1ms\" }";
    let update = |text_of: &str| {
        fs::write(&page, text_of).expect("a page");
        incast(&["table", text(&results), "--update", text(&page)])
    };
    let holds = claim(&format!("{{ metric = \"completed\",\n  scheme = \"dctcp\", at_least = 1.0, {point} }}"));
    let output = update(&holds);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("page.md: 0 tables, 1 claim\n"));
    assert_eq!(fs::read_to_string(&page).expect("the page"), holds, "it holds, and is kept");
    let output = incast(&["table", "--check", text(&page)]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0 tables and 1 claim, 0 stale, 0 stale as the page says\n");
    assert!(stderr(&output).contains("there is no bundled scenario small"), "{}", stderr(&output));
    for (wrong, message) in [
        (claim("{ metric = \"completed\", scheme = \"dctcp\", at_most = 0.0 }"), "line 1: completed: dctcp is "),
        (claim("{ metric = \"completed\", scheme = \"dctpc\", at_least = 0.0 }"), "about no scheme and grid point"),
        (claim("{ metric = \"completed\", scheme = \"dctcp\", at_last = 0.0 }"), "unknown field `at_last`"),
        (claim("dctcp is good"), "line 1: the claim is not in braces"),
        ("<!-- claim small { metric".to_owned(), "line 1: the comment has no -->"),
    ] {
        let output = update(&wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains(message), "{wrong}: {}", stderr(&output));
        assert_eq!(fs::read_to_string(&page).expect("the page"), wrong, "nothing is written");
    }
}

#[test]
fn a_table_says_what_it_was_made_of_and_when_it_is_stale() {
    let out = folder("table_state");
    let page = out.join("page.md");
    let begin = "<!-- incast table mercury-fig04 --columns flows -->";
    fs::write(&page, format!("{begin}\n<!-- end of table -->\n```text\n{begin}\n```\n")).expect("a page");
    let check = || incast(&["table", "--check", text(&page)]);
    let output = check();
    assert_eq!(output.status.code(), Some(1), "it has no state yet");
    let message = stderr(&output);
    assert!(message.contains("page.md: line 1: the table of mercury-fig04 is stale"), "{message}");
    assert!(message.contains("incast run mercury/fig04,"), "{message}");

    let run = |more: &[&str]| {
        let results = out.join(more.len().to_string());
        succeed(&[&["run", "mercury/fig04", "--quiet", "--out", text(&results)], more].concat());
        results.join("mercury-fig04")
    };
    let results = run(&[]);
    succeed(&["table", text(&results), "--update", text(&page)]);
    let made = fs::read_to_string(&page).expect("the page");
    assert!(made.contains("<!-- end of table: scenario "), "{made}");
    assert_eq!(
        String::from_utf8_lossy(&check().stdout),
        "1 table and 0 claims, 0 stale, 0 stale as the page says\n",
        "not that in the code"
    );

    // A claim that is edited has to be judged again; its lines may be broken elsewhere.
    let claim = "<!-- claim mercury-fig04 { metric = \"max_queue_bytes\", scheme = \"mercury\", at_least = 1 } -->";
    fs::write(&page, claim).expect("a page");
    assert_eq!(check().status.code(), Some(1), "it was never judged");
    succeed(&["table", text(&results), "--update", text(&page)]);
    let judged = fs::read_to_string(&page).expect("the page");
    for (text, code) in [
        (judged.clone(), 0),
        (judged.replace(", scheme", ",\n  scheme"), 0),
        (judged.replace("at_least = 1", "at_least = 0"), 1),
    ] {
        fs::write(&page, &text).expect("a page");
        assert_eq!(check().status.code(), Some(code), "{text}");
    }
    fs::write(&page, &made).expect("the page");

    // Another scenario, or another result.
    let other = run(&["--set", "host.rto_min=2ms"]);
    let output = incast(&["table", text(&other), "--update", text(&page)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("not of the bundled scenario as it is"), "{}", stderr(&output));
    let other = made.replace("short form ", "short form 0");
    fs::write(&page, &other).expect("a page");
    assert_eq!(check().status.code(), Some(1));

    // The page says so itself, which has to be true.
    let said = |page: &str| page.replacen(" -->\n```text", ", stale since 2026-11-27 -->\n```text", 1);
    fs::write(&page, said(&other)).expect("a page");
    let output = check();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 table and 0 claims, 0 stale, 1 stale as the page says\n");
    assert!(output.status.success() && stderr(&output).contains("warning: "), "{}", stderr(&output));
    fs::write(&page, said(&made)).expect("a page");
    let output = check();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is said to be stale, and is not"), "{}", stderr(&output));
}
