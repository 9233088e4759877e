//! `docs/adding-a-law.md` works as it stands: its files and its diffs, applied to a copy of the sources, give two
//! laws that the tests of all laws accept and that simulations run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Everything that the page adds, and where it goes in the copy.
const FILES: [(&str, &str); 4] = [
    ("docs/examples/halve.rs", "crates/incast-cc/src/window/halve.rs"),
    ("docs/examples/halve_simulation.rs", "crates/incast-sim/tests/halve.rs"),
    ("docs/examples/shortest.rs", "crates/incast-cc/src/receiver_driven/shortest.rs"),
    ("docs/examples/shortest_simulation.rs", "crates/incast-sim/tests/shortest.rs"),
];
/// What the page's diffs change.
const REGISTRY: &str = "crates/incast-cc/src/algorithms.rs";

fn repository() -> PathBuf {
    PathBuf::from("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes a file only where that changes it, so that a second run compiles nothing again.
fn write(path: &Path, content: &str) {
    if fs::read_to_string(path).is_ok_and(|old| old == content) {
        return;
    }
    fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder for the copy");
    fs::write(path, content).expect("a file of the copy");
}

/// Copies a folder of text files; files that went away in the original go away in the copy.
fn copy(from: &Path, to: &Path) {
    let names = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.expect("an entry").file_name().into()).collect()
    };
    for name in names(from) {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() { copy(&from, &to) } else { write(&to, &read(&from)) }
    }
    for name in names(to).into_iter().filter(|name| !from.join(name).exists()) {
        let added = FILES.iter().any(|(_, place)| to.join(&name).ends_with(place));
        if !added && to.join(&name).is_file() {
            fs::remove_file(to.join(&name)).expect("removed");
        }
    }
}

/// The lines between "```diff" and "```" of the page: of all such blocks, one after the other.
fn diff(page: &str) -> Vec<&str> {
    let blocks = page.split("```diff\n").skip(1);
    blocks.flat_map(|block| block.lines().take_while(|line| *line != "```")).collect()
}

/// Puts each line that starts with `+` behind the line before it, which must occur exactly once.
fn apply(source: &str, diff: &[&str]) -> String {
    let mut lines: Vec<&str> = source.lines().collect();
    for pair in diff.windows(2).filter(|pair| pair[1].starts_with('+')) {
        let (before, added) = (&pair[0][1..], &pair[1][1..]);
        let places: Vec<usize> = (0..lines.len()).filter(|place| lines[*place] == before).collect();
        assert_eq!(places.len(), 1, "`{before}` of the page's diff in {REGISTRY}");
        lines.insert(places[0] + 1, added);
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_page_shows_the_code_that_is_tested() {
    let page = read(&repository().join("docs/adding-a-law.md"));
    for (example, place) in FILES {
        let include = format!("{{{{#include {}}}}}", example.strip_prefix("docs/").expect("in docs"));
        assert_eq!(page.matches(&include).count(), 1, "the page includes {example}");
        assert!(page.contains(place), "the page says that {example} becomes {place}");
    }
    assert!(page.contains(REGISTRY));
    assert_eq!(diff(&page).iter().filter(|line| line.starts_with('+')).count(), 2, "one line of registration for each");
}

/// Compiles a copy of the simulator's crates, which takes a while the first time.
#[test]
fn laws_are_one_file_and_its_registration() {
    let (original, copied) = (repository(), Path::new(env!("CARGO_TARGET_TMPDIR")).join("adding-a-law"));
    // The copy has the simulator's crates, not what is deployed.
    let manifest = read(&original.join("Cargo.toml"));
    let all = manifest.lines().find(|line| line.starts_with("members = ")).expect("members in one line");
    let (before, defaults) = manifest.split_once("default-members = [").expect("default members");
    let (_, after) = defaults.split_once("]\n").expect("the end of their list");
    let manifest = format!("{before}{after}").replacen(all, "members = [\"crates/*\"]", 1);
    write(&copied.join("Cargo.toml"), &manifest);
    // Cargo takes out of the copy's lock file what the copied crates do not need; start it afresh only when the
    // original has changed.
    let (lock, kept) = (read(&original.join("Cargo.lock")), copied.join("original.lock"));
    if fs::read_to_string(&kept).ok().as_ref() != Some(&lock) {
        write(&copied.join("Cargo.lock"), &lock);
        write(&kept, &lock);
    }
    for name in ["incast-units", "incast-cc", "incast-engine", "incast-sim"] {
        let (from, to) = (original.join("crates").join(name), copied.join("crates").join(name));
        // The page's tests do not compare with the reference simulator.
        write(
            &to.join("Cargo.toml"),
            &read(&from.join("Cargo.toml")).replace("incast-reference.workspace = true\n", ""),
        );
        copy(&from.join("src"), &to.join("src"));
        if let Ok(build) = fs::read_to_string(from.join("build.rs")) {
            write(&to.join("build.rs"), &build);
        }
    }
    // The C that laws share with deployments.
    copy(&original.join("deploy/core"), &copied.join("crates/incast-cc/core"));
    copy(&original.join("crates/incast-sim/tests/common"), &copied.join("crates/incast-sim/tests/common"));
    for (example, place) in FILES {
        write(&copied.join(place), &read(&original.join(example)));
    }
    let page = read(&original.join("docs/adding-a-law.md"));
    write(&copied.join(REGISTRY), &apply(&read(&original.join(REGISTRY)), &diff(&page)));

    let test = |arguments: &[&str]| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .current_dir(&copied)
            .args(["test", "--offline", "--quiet"])
            // A fast build matters more than a fast simulation of four flows.
            .args(["--config", "profile.dev.package.incast-cc.opt-level=0"])
            .args(arguments)
            // What is compiled of the registry's crates is there; the copy's own are other packages, as their path differs.
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder"))
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            // The other laws have had all cases in their own tests.
            .env("PROPTEST_CASES", "16")
            .output()
            .expect("cargo runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, messages) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "cargo test {arguments:?}\n{out}\n{messages}");
        assert!(!FILES.iter().any(|(_, place)| messages.contains(place)), "{messages}");
        out
    };
    let laws = test(&["-p", "incast-cc", "--lib", "registry::testing"]);
    assert!(laws.contains("test result: ok") && !laws.contains(" 0 passed"), "{laws}");
    let simulations = test(&["-p", "incast-sim", "--test", "halve", "--test", "shortest"]);
    assert_eq!(simulations.matches("1 passed").count(), 2, "{simulations}");
}
