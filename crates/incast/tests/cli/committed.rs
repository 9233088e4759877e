//! What is committed because it is generated, and the scenarios that come with the project.

use crate::common::{folder, succeed, text};
use incast_lab::scenario::{Run, Scenario, Source};
use std::{
    fs,
    path::{Path, PathBuf},
};

fn repository() -> &'static Path {
    Path::new("../..")
}

#[test]
fn the_schema_and_the_generated_pages_are_up_to_date() {
    for (file, arguments) in [
        ("docs/scenario.schema.json", &["schema"][..]),
        ("docs/scenario-reference.md", &["schema", "--reference"]),
        ("docs/metrics.md", &["schema", "--metrics"]),
    ] {
        let committed = fs::read_to_string(repository().join(file)).expect("a committed file");
        assert!(committed == succeed(arguments), "{file} is out of date: run `make generate`");
    }
}

fn page(name: &str) -> String {
    fs::read_to_string(repository().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn the_readme_names_every_scheme() {
    let (readme, schemes) = (page("README.md"), succeed(&["list", "schemes", "--json"]));
    let schemes: serde_json::Value = serde_json::from_str(&schemes).expect("JSON");
    for scheme in schemes.as_array().expect("a list") {
        let name = scheme["name"].as_str().expect("a name");
        assert!(readme.contains(&format!("`{name}`")), "README.md has no {name}");
    }
}

#[test]
fn scenarios_in_pages_pass_check() {
    let folder = folder("scenarios_in_pages");
    for name in ["README.md", "docs/tutorial.md"] {
        let page = page(name);
        let blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().expect("a block"));
        let mut checked = 0;
        for block in blocks.filter(|block| block.starts_with("name = ")) {
            let file = folder.join("scenario.toml");
            fs::write(&file, block).expect("written");
            succeed(&["check", text(&file)]);
            checked += 1;
        }
        assert!(checked > 0, "{name} shows a scenario");
    }
    assert!(
        page("docs/tutorial.md").contains(&page("scenarios/tutorial.toml")),
        "docs/tutorial.md shows scenarios/tutorial.toml"
    );
}

/// `scripts/comparison-chart.py` draws the numbers of the page.
#[test]
fn the_chart_shows_the_numbers_of_the_comparison() {
    let (chart, page) = (page("docs/comparison.svg"), page("docs/comparison.md"));
    let table = page.split_once("--by-number -->").expect("tables").1;
    let table = table.split_once("<!-- end of table").expect("an end").0;
    let mut points = 0;
    for title in chart.split("<title>").skip(1) {
        let (scheme, value) = title.split("</title>").next().expect("an end").split_once(": ").expect("a value");
        let mut rows = table.lines().filter(|line| line.starts_with(&format!("| {scheme} | ")));
        assert!(rows.any(|row| row.contains(&format!("| {value} |"))), "{scheme}: {value}");
        points += 1;
    }
    assert!(points > 0);
}

/// The id that a heading gets on GitHub and in mdbook.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    heading.trim().to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_anchor(page: &str, id: &str) -> bool {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).any(|heading| heading == id)
}

/// README, CONTRIBUTING and the pages of the book.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![repository().join("README.md"), repository().join("CONTRIBUTING.md")];
    for entry in fs::read_dir(repository().join("docs")).expect("docs") {
        pages.push(entry.expect("an entry").path());
    }
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages
}

#[test]
fn files_named_in_pages_exist() {
    let mut wrong = Vec::new();
    for path in pages() {
        let text = fs::read_to_string(&path).expect("a page");
        for name in text.split('`').skip(1).step_by(2) {
            let folder = match name.split_once('/') {
                Some((first, _)) if first.starts_with("incast-") => repository().join("crates"),
                Some(("deploy" | "scripts" | "scenarios" | "validation" | "workloads", _)) => repository().to_owned(),
                _ => continue,
            };
            if !name.contains(|c: char| c.is_whitespace() || "*…<{".contains(c)) && !folder.join(name).exists() {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Pages beside what they describe.
fn other_pages() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        ["deploy", "rigs", "validation", "workloads"].map(|name| repository().join(name)).into();
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The book is built from `docs` alone: a link that leaves it is dead there, and a page that SUMMARY.md does not name is
/// not in it.
#[test]
fn links_of_the_book_stay_in_it() {
    let summary = page("docs/SUMMARY.md");
    let mut wrong = Vec::new();
    for path in pages().iter().filter(|path| path.parent().is_some_and(|folder| folder.ends_with("docs"))) {
        let name = path.file_name().expect("a file").to_string_lossy();
        if name != "SUMMARY.md" && !summary.contains(&format!("]({name})")) {
            wrong.push(format!("docs/SUMMARY.md: no {name}"));
        }
        let text = fs::read_to_string(path).expect("a page");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("../") {
                wrong.push(format!("docs/{name}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Where this tree is published.
const PUBLISHED: [&str; 2] =
    ["https://github.com/incast/incast/blob/main/", "https://raw.githubusercontent.com/incast/incast/main/"];

/// An index of Python packages shows README alone.
#[test]
fn links_of_readme_lead_out_of_it() {
    let text = page("README.md");
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let wrong: Vec<&str> = links.filter(|link| !link.starts_with("https://")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn links_in_pages_lead_somewhere() {
    let mut wrong = Vec::new();
    for path in pages().iter().chain(&other_pages()) {
        let text = fs::read_to_string(path).expect("a page");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, id) = link.split_once('#').unwrap_or((link, ""));
            let of_tree = PUBLISHED.iter().find_map(|at| file.strip_prefix(at));
            if link.contains(char::is_whitespace) || (of_tree.is_none() && file.contains("://")) {
                continue;
            }
            let to = match of_tree {
                Some(file) => repository().join(file),
                None if file.is_empty() => path.clone(),
                None => path.with_file_name(file),
            };
            let found = match fs::read_to_string(&to) {
                Ok(target) => id.is_empty() || has_anchor(&target, id),
                Err(_) => to.exists() && id.is_empty(),
            };
            if !found {
                wrong.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Tables in pages are of schemes that their scenarios have, and of runs: none is empty, none was typed.
#[test]
fn tables_in_pages_are_of_their_scenarios() {
    let scenario = |file: &str| {
        let path = repository().join("scenarios/all").join(file);
        incast_lab::scenario::Scenario::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"))
    };
    let scenarios = [scenario("leaf-spine-100g.toml"), scenario("settings.toml")];
    let mut found = Vec::new();
    for table in page("docs/comparison.md").split("<!-- incast table ").skip(1) {
        let (head, rest) = table.split_once("-->").expect("options");
        let (body, _) = rest.split_once("<!-- end of table").expect("an end");
        let name = head.split_whitespace().next().expect("a name");
        let scenario = scenarios.iter().find(|scenario| scenario.name == name).expect("a scenario");
        let (schemes, mut rows) = (scenario.schemes(), 0);
        let lines = body.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
        for (scheme, cells) in lines.filter(|(first, _)| *first != "scheme") {
            assert!(schemes.iter().any(|known| known == scheme), "{scheme}");
            assert!(cells.bytes().any(|byte| byte.is_ascii_digit()), "{scheme} | {cells}");
            rows += 1;
        }
        assert!(rows > 0, "the table of {name} is empty");
        assert!(body.contains(&format!("\n{name}")) && body.contains("incast "), "what {name} is of");
        found.push(name.to_owned());
    }
    assert_eq!(found.len(), 6, "{found:?}");
}

/// Every bundled scenario.
fn scenarios() -> Vec<PathBuf> {
    let mut folders = vec![repository().join("scenarios")];
    let mut all = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of scenarios") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                all.push(path);
            }
        }
    }
    assert!(!all.is_empty());
    all
}

#[test]
fn every_bundled_scenario_passes_check() {
    // Short forms are run (scripts/short-forms.py).
    for path in scenarios() {
        succeed(&["check", text(&path)]);
    }
}

/// What is written of a scenario has its runs, along the whole grid, and what is printed of it those of the first point.
#[test]
fn every_bundled_scenario_is_what_is_printed_of_it() {
    for file in scenarios() {
        let load = |text: String| Scenario::parse(Source { path: file.clone(), text }, &[]);
        let text = fs::read_to_string(&file).expect("a scenario");
        let scenario = load(text).unwrap_or_else(|error| panic!("{error}"));
        let printed = load(scenario.effective_toml()).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(printed.effective_toml(), scenario.effective_toml(), "{}", file.display());
        let again = load(scenario.written_toml()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.runs().len(), scenario.runs().len(), "{}", file.display());
        let values = |run: &Run| scenario.for_another_folder(run.effective());
        let (runs, printed) = (scenario.runs(), printed.runs());
        let ends = [runs[0].point(), runs[runs.len() - 1].point()];
        // One seed of each: it is no part of anything else.
        let some = |run: &Run| run.seed == scenario.seeds[0] && ends.contains(&run.point());
        for (one, written) in runs.iter().zip(&again.runs()).filter(|(one, _)| some(one)) {
            assert_eq!((&one.folder, values(one)), (&written.folder, values(written)), "{}", file.display());
            if one.point() == ends[0] {
                let is_it = |run: &&Run| (&run.scheme, run.seed, run.point()) == (&one.scheme, one.seed, one.point());
                let printed = printed.iter().find(is_it).expect("the run");
                assert_eq!(values(one), values(printed), "{}: {}", file.display(), one.folder);
            }
        }
    }
}
