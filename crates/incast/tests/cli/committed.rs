//! What is committed because it is generated, and the scenarios that come with the project.

use crate::common::succeed;
use std::{fs, path::Path};

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn the_schema_and_the_reference_page_are_up_to_date() {
    for (file, arguments) in [
        ("docs/scenario.schema.json", &["schema"][..]),
        ("docs/scenario-reference.md", &["schema", "--reference"]),
    ] {
        let committed = fs::read_to_string(repository().join(file)).expect("a committed file");
        assert!(committed == succeed(arguments), "{file} is out of date: run `make generate`");
    }
}

#[test]
fn the_readme_shows_measured_numbers() {
    let readme = fs::read_to_string(repository().join("README.md")).expect("README.md");
    for case in incast_lab::bench::CASES {
        let row = readme.lines().find(|line| line.starts_with(&format!("| `{}`", case.name)));
        let row = row.unwrap_or_else(|| panic!("README has a row of {}", case.name));
        assert!(row.bytes().any(|byte| byte.is_ascii_digit()), "{row}");
    }
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
    for page in ["README.md", "docs/comparison.md"] {
        let text = fs::read_to_string(repository().join(page)).expect("a page");
        for table in text.split("<!-- incast table ").skip(1) {
            let (head, rest) = table.split_once("-->").expect("options");
            let (body, _) = rest.split_once("<!-- end of table -->").expect("an end");
            let name = head.split_whitespace().next().expect("a name");
            let scenario = scenarios.iter().find(|scenario| scenario.name == name).expect("a scenario");
            let (schemes, mut rows) = (scenario.schemes(), 0);
            let lines = body.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
            for (scheme, cells) in lines.filter(|(first, _)| *first != "scheme") {
                assert!(schemes.iter().any(|known| known == scheme), "{page}: {scheme}");
                assert!(cells.bytes().any(|byte| byte.is_ascii_digit()), "{page}: {scheme} | {cells}");
                rows += 1;
            }
            assert!(rows > 0, "{page}: the table of {name} is empty");
            assert!(
                body.contains(&format!("\n{name}")) && body.contains("incast "),
                "{page}: what {name} is of"
            );
            found.push((page, name.to_owned()));
        }
    }
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn every_bundled_scenario_passes_check() {
    let mut folders = vec![repository().join("scenarios")];
    let mut checked = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of scenarios") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                succeed(&["check", path.to_str().expect("UTF-8")]);
                succeed(&["check", "--short", path.to_str().expect("UTF-8")]);
                checked += 1;
            }
        }
    }
    assert!(checked > 0);
}
