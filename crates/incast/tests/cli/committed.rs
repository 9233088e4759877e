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
