//! Every file of the repository says who holds its copyright and under which licence: by its own SPDX lines or by
//! REUSE.toml, as the REUSE specification 3.3 has it.

use incast_lab::workload::builtin::{BUILTIN, head};
use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// Licences under which a file may be here. Copyleft is not among them: what is embedded is distributed under
/// MIT OR Apache-2.0, with the notices that the BSD licences ask for.
const ALLOWED: [&str; 4] = ["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause"];

fn repository() -> &'static Path {
    Path::new("../..")
}

fn committed() -> Vec<String> {
    let git = Command::new("git").args(["ls-files", "-z"]).current_dir(repository()).output().expect("git");
    assert!(git.status.success(), "git ls-files: {}", String::from_utf8_lossy(&git.stderr));
    let names = String::from_utf8(git.stdout).expect("names in UTF-8");
    // A file that is deleted and not committed yet has no text.
    names.split_terminator('\0').filter(|name| repository().join(name).exists()).map(str::to_owned).collect()
}

/// Whether a path matches a pattern of REUSE.toml: `*` is any text without `/`, `**` any text.
fn matches(pattern: &str, path: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == path };
    let Some(rest) = path.strip_prefix(before) else { return false };
    let (any, after) = match after.strip_prefix('*') {
        Some(after) => (true, after),
        None => (false, after),
    };
    let reach = if any { rest.len() } else { rest.find('/').unwrap_or(rest.len()) };
    // `**/name` also matches a name at the top.
    let nothing = any && after.strip_prefix('/').is_some_and(|after| matches(after, rest));
    nothing || (0..=reach).any(|end| rest.is_char_boundary(end) && matches(after, &rest[end..]))
}

/// What stands before a licence in a file's own lines; not in one piece, or this file had such a line.
const TAG: &str = concat!("SPDX-License", "-Identifier:");

/// The licences of a file by its own lines.
fn own(text: &str) -> Option<&str> {
    let lines = text.lines().take(20);
    let marked = lines.filter_map(|line| line.split_once(TAG)).next()?;
    Some(marked.1.trim().trim_end_matches("*/").trim())
}

#[test]
fn every_file_has_a_licence() {
    let reuse = fs::read_to_string(repository().join("REUSE.toml")).expect("REUSE.toml");
    let reuse: toml::Table = reuse.parse().expect("TOML");
    let mut patterns = Vec::new();
    for annotation in reuse["annotations"].as_array().expect("a list") {
        assert!(annotation["SPDX-FileCopyrightText"].is_str(), "{annotation}");
        let licence = annotation["SPDX-License-Identifier"].as_str().expect("a licence");
        for path in annotation["path"].as_array().expect("paths") {
            patterns.push((path.as_str().expect("a path"), licence, std::cell::Cell::new(false)));
        }
    }
    let (mut lacking, mut used) = (Vec::new(), BTreeSet::new());
    for name in committed() {
        // Licences have none themselves, and a link is what it leads to.
        if name.starts_with("LICENSE") || repository().join(&name).is_symlink() {
            continue;
        }
        let mut licences = Vec::new();
        for (_, licence, hit) in patterns.iter().filter(|(pattern, ..)| matches(pattern, &name)) {
            hit.set(true);
            licences.push(*licence);
        }
        let text = fs::read(repository().join(&name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        match own(&text).or(licences.last().copied()) {
            Some(licence) => used.extend(licence.split(" OR ").map(str::to_owned)),
            None => lacking.push(name),
        }
    }
    assert!(lacking.is_empty(), "without a licence: give them SPDX lines or an entry in REUSE.toml: {lacking:#?}");
    for licence in used {
        assert!(ALLOWED.contains(&licence.as_str()), "{licence} is not among {ALLOWED:?}");
        assert!(repository().join(format!("LICENSES/{licence}.txt")).exists(), "LICENSES has no {licence}.txt");
    }
    let idle: Vec<_> = patterns.iter().filter(|(.., hit)| !hit.get()).map(|(pattern, ..)| pattern).collect();
    assert!(idle.is_empty(), "of no file: {idle:?}");
}

/// Data that others measured: each file names its holder, its licence and its source itself, since it is embedded.
#[test]
fn every_distribution_names_its_holder_licence_and_source() {
    for (name, text) in BUILTIN {
        for key in ["SPDX-FileCopyrightText", "SPDX-License-Identifier", "source", "note"] {
            assert!(head(text, key).is_some_and(|value| !value.is_empty()), "{name} has no {key}");
        }
    }
    let mut files: Vec<_> = fs::read_dir(repository().join("workloads")).expect("workloads").collect();
    files.retain(|file| file.as_ref().is_ok_and(|file| file.path().extension().is_some_and(|is| is == "csv")));
    assert_eq!(files.len(), BUILTIN.len(), "a CSV of workloads/ is not bundled");
}

/// The points of a bundled distribution, as they are written.
fn points(name: &str) -> Vec<(f64, f64)> {
    let text = incast_lab::workload::builtin::text(name).unwrap_or_else(|| panic!("{name}"));
    let lines = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    let number = |text: &str| text.parse().expect("a number");
    lines.filter_map(|line| line.split_once(',')).map(|(size, share)| (number(size), number(share))).collect()
}

/// Two files are other readings of one source, by the rules that their heads state.
#[test]
fn readings_follow_from_their_source() {
    let mut packets = points("websearch_pfabric");
    packets[0] = (0.0, 0.0);
    let to_ten_kilobytes = |(size, share): &(f64, f64)| ((size / 1460.0 * 1500.0 / 1e4).round() * 1e4, *share);
    assert_eq!(points("websearch"), packets.iter().map(to_ten_kilobytes).collect::<Vec<_>>());
    let mut hadoop = vec![(0.0, 0.0)];
    hadoop.extend(points("homa_w4"));
    assert_eq!(points("fb_hadoop_fine"), hadoop);
}

#[test]
fn patterns() {
    for (pattern, path, expected) in [
        ("**/*.rs", "a.rs", true),
        ("**/*.rs", "a/b/c.rs", true),
        ("*.md", "a/b.md", false),
        ("a/*.txt", "a/b.txt", true),
        ("a/*.txt", "a/b/c.txt", false),
        ("a/**", "a/b/c.txt", true),
        ("LICENSE-*", "LICENSE-MIT", true),
        ("**/Makefile", "notMakefile", false),
    ] {
        assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
    }
}
