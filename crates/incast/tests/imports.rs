//! The structure of the source: no import cycles between the folders of a crate, and a rule for each `unsafe`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    PathBuf::from("../..")
}

/// Folders of the crates.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    for place in ["crates", "deploy", "deploy/linux", "rigs"] {
        for entry in fs::read_dir(root().join(place)).expect("a folder") {
            let entry = entry.expect("an entry");
            if entry.path().join("Cargo.toml").is_file() && entry.path().join("src").is_dir() {
                names.push(format!("{place}/{}", entry.file_name().to_str().expect("a name")));
            }
        }
    }
    names.sort();
    assert!(names.len() >= 9, "{names:?}");
    names
}

/// All source files below a folder, without those of tests, by their path relative to `root`.
fn sources(root: &Path, folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        if path.is_dir() {
            sources(root, &path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !["tests", "testing"].contains(&stem) {
            let name = path.strip_prefix(root).expect("below the root").to_str().expect("a name");
            found.insert(name.to_owned(), fs::read_to_string(&path).expect("a text"));
        }
    }
}

/// The module of a file, as a path from the root of its crate.
fn module(file: &str) -> Vec<&str> {
    let mut path: Vec<_> = file.trim_end_matches(".rs").split('/').collect();
    if path.last().is_some_and(|last| ["mod", "lib", "main"].contains(last)) {
        path.pop();
    }
    path
}

/// The folder of a file.
fn folder(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Code without comments and without the tests at the end of a file.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let all = lines.collect::<Vec<_>>().join("\n");
    all.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

/// All paths of a `use` tree.
fn expand(tree: &str, prefix: &[String], paths: &mut Vec<Vec<String>>) {
    let segments = |text: &str| -> Vec<String> {
        let path = text.split(" as ").next().unwrap_or_default().split("::");
        path.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
    };
    let Some((head, body)) = tree.split_once('{') else {
        paths.push([prefix, &segments(tree)].concat());
        return;
    };
    let prefix = [prefix, &segments(head)].concat();
    let body = body.rsplit_once('}').map_or(body, |(body, _)| body);
    let (mut depth, mut from) = (0, 0);
    for (at, letter) in body.char_indices().chain([(body.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !body[from..at].trim().is_empty() {
                    expand(&body[from..at], &prefix, paths);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

/// All paths in code that begin with `crate`, `super` or `self`, those of `use` items included.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let mut items = Vec::new();
    for (at, _) in code.match_indices("use ") {
        if !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
            && let Some(end) = code[at..].find(';')
        {
            expand(&code[at + 4..at + end], &[], &mut paths);
            items.push(at..at + end);
        }
    }
    for start in ["crate::", "super::", "self::"] {
        let outside = code.match_indices(start).filter(|(at, _)| !items.iter().any(|item| item.contains(at)));
        for (at, _) in outside {
            let end = code[at..].find(|letter: char| !letter.is_alphanumeric() && !"_:".contains(letter));
            expand(&code[at..end.map_or(code.len(), |end| at + end)], &[], &mut paths);
        }
    }
    paths
}

/// The file that holds what a path names, seen from a module.
fn target<'f>(path: &[String], from: &[&str], files: &BTreeMap<Vec<&str>, &'f str>) -> Option<&'f str> {
    let mut rest = path;
    let mut place: Vec<&str> = match path.first()?.as_str() {
        "crate" => {
            rest = &path[1..];
            Vec::new()
        }
        "super" | "self" => from.to_vec(),
        _ => return None,
    };
    while let Some(first) = rest.first().filter(|first| ["super", "self"].contains(&first.as_str())) {
        if first == "super" {
            place.pop();
        }
        rest = &rest[1..];
    }
    place.extend(rest.iter().map(String::as_str));
    loop {
        if let Some(file) = files.get(&place) {
            return Some(file);
        }
        place.pop()?;
    }
}

/// Imports between folders: from, to, and the files of one such import.
type Edges<'f> = BTreeMap<(&'f str, &'f str), (&'f str, &'f str)>;

fn edges(files: &BTreeMap<String, String>) -> Edges<'_> {
    let modules = files.keys().map(|file| (module(file), file.as_str())).collect::<BTreeMap<_, _>>();
    let mut edges = BTreeMap::new();
    for (file, text) in files {
        for path in paths(&code(text)) {
            if let Some(other) = target(&path, &module(file), &modules)
                && folder(file) != folder(other)
            {
                edges.entry((folder(file), folder(other))).or_insert((file.as_str(), other));
            }
        }
    }
    edges
}

/// The folders that can be reached from one.
fn reach<'f>(edges: &Edges<'f>, from: &'f str) -> BTreeSet<&'f str> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(folder) = open.pop() {
        for (_, to) in edges.keys().filter(|(start, _)| *start == folder) {
            if found.insert(*to) {
                open.push(to);
            }
        }
    }
    found
}

#[test]
fn folders_do_not_import_each_other_in_cycles() {
    let mut errors = Vec::new();
    for name in names() {
        let mut files = BTreeMap::new();
        let root = root().join(&name).join("src");
        sources(&root, &root, &mut files);
        let edges = edges(&files);
        let in_cycles = edges.iter().filter(|((from, to), _)| reach(&edges, to).contains(from));
        errors.extend(in_cycles.map(|((from, to), (file, other))| {
            format!("{name}: {file} imports {other}, and {to}/ imports {from}/ back")
        }));
    }
    assert!(errors.is_empty(), "import cycles between folders:\n{}", errors.join("\n"));
}

/// Two files that import each other are one. A module that declares another one may use what is in it, and the other way
/// round.
#[test]
fn no_two_files_import_each_other() {
    let mut errors = Vec::new();
    for name in names() {
        let mut files = BTreeMap::new();
        let root = root().join(&name).join("src");
        sources(&root, &root, &mut files);
        let modules = files.keys().map(|file| (module(file), file.as_str())).collect::<BTreeMap<_, _>>();
        let imports = files.iter().flat_map(|(file, text)| {
            let found = paths(&code(text)).into_iter();
            found.filter_map(|path| target(&path, &module(file), &modules)).map(|other| (file.as_str(), other))
        });
        let imports: BTreeSet<(&str, &str)> = imports.filter(|(from, to)| from != to).collect();
        let declares = |from: &str, to: &str| module(to).starts_with(&module(from));
        errors.extend(imports.iter().filter_map(|(from, to)| {
            let is_pair = from < to && imports.contains(&(*to, *from));
            (is_pair && !declares(from, to) && !declares(to, from)).then(|| format!("{name}: {from}, {to}"))
        }));
    }
    assert!(errors.is_empty(), "files that import each other:\n{}", errors.join("\n"));
}

/// Each use of `unsafe` has a comment above it that cites a rule of docs/unsafe.md: `// SAFETY: R4: …`, or a section
/// `# Safety` where it is the caller who must follow one.
#[test]
fn unsafe_code_cites_a_rule() {
    let mut errors = Vec::new();
    // What is deployed calls the kernel by libc; docs/unsafe.md is about the simulator.
    for name in names().into_iter().filter(|name| name.starts_with("crates/")) {
        let mut files = BTreeMap::new();
        let root = root().join(&name);
        sources(&root, &root, &mut files);
        for (file, text) in files {
            let lines: Vec<_> = text.lines().collect();
            for (index, line) in lines.iter().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                let found = ["unsafe {", "unsafe impl"].iter().any(|what| code.contains(what));
                let is_literal = code.contains('"') && code.find('"') < code.find("unsafe");
                // The comment may stand above the statement that holds the block.
                let above = lines[..index].iter().rev().take(8);
                let cites = above
                    .take_while(|line| !line.trim().is_empty())
                    .any(|line| line.contains("SAFETY: ") && has_rule(line));
                if found && !is_literal && !cites {
                    errors.push(format!("{name}/{file}:{}: {}", index + 1, line.trim()));
                }
            }
        }
    }
    assert!(errors.is_empty(), "unsafe code without a rule of docs/unsafe.md:\n{}", errors.join("\n"));
}

/// Whether a comment names a rule: an R and its number, or the caller who promises one.
fn has_rule(comment: &str) -> bool {
    let number = comment.split_once("SAFETY: ").map_or("", |(_, rest)| rest);
    number.starts_with('R') && number[1..].starts_with(|digit: char| digit.is_ascii_digit())
        || number.starts_with("promised by the caller (R")
        || number.starts_with("as above")
}

/// Nothing that is compiled remembers where the tree was: no path of cargo's is taken when a program is compiled (tests
/// and build scripts run in their crate's folder), and whatever is compiled looks at `INCAST_TREE`, by which cargo
/// compiles it again in another tree that shares the target folder.
#[test]
fn another_tree_is_compiled_again() {
    let manifest_of = concat!("env!(\"CARGO_", "MANIFEST_DIR\")");
    for name in names().into_iter().chain(["fuzz".into()]) {
        let folder = root().join(&name);
        let mut files = BTreeMap::new();
        sources(&folder, &folder, &mut files);
        for (file, text) in &files {
            assert!(!text.contains(manifest_of), "{name}/{file}: the path of the tree that was compiled");
        }
        if let Some(script) = files.get("build.rs") {
            assert!(script.contains("rerun-if-env-changed=INCAST_TREE"), "{name}/build.rs");
        }
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        // Of the workspace's crates, all but these are above incast-units.
        let roots = files.values().filter(|text| text.contains("option_env!(\"INCAST_TREE\")"));
        assert!(
            manifest.contains("\nincast") || roots.count() == 1,
            "{name}: nothing below it reads INCAST_TREE, and neither does it"
        );
    }
}

/// A function that does not fit a screen does more than one thing.
#[test]
fn functions_are_short_where_it_is_checked() {
    const MOST: usize = 70;
    let mut errors = Vec::new();
    for place in ["crates/incast-engine/src", "crates/incast-sim/src/simulation/build.rs"] {
        let (place, mut files) = (root().join(place), BTreeMap::new());
        if place.is_dir() {
            sources(&root(), &place, &mut files);
        } else {
            files.insert(place.display().to_string(), fs::read_to_string(&place).expect("a text"));
        }
        for (file, text) in &files {
            let code = code(text);
            let lines: Vec<_> = code.lines().collect();
            for (first, line) in lines.iter().enumerate() {
                let indentation = line.len() - line.trim_start().len();
                let words: Vec<_> = line.split_whitespace().take_while(|word| !word.contains('(')).collect();
                if !line.contains("fn ") || words.contains(&"impl") || line.contains("dyn Fn") {
                    continue;
                }
                // As rustfmt has it: the brace that ends a function stands below its first letter.
                let ends = |line: &&str| line.starts_with(&format!("{}}}", " ".repeat(indentation)));
                let length = lines[first..].iter().position(ends).map_or(0, |last| last + 1);
                if length > MOST {
                    errors.push(format!("{file}:{}: {length} lines: {}", first + 1, line.trim()));
                }
            }
        }
    }
    assert!(errors.is_empty(), "functions of more than {MOST} lines:\n{}", errors.join("\n"));
}

/// Words that are not the field's, and what takes their place (docs/glossary.md).
#[test]
fn words_are_those_of_the_glossary() {
    const INSTEAD: [(&str, &str); 8] = [
        ("carry out", "apply"),
        ("carried out", "applied"),
        ("carries out", "applies"),
        ("circle of", "cycle of"),
        ("described", "say what has a description, or what is written"),
        ("heard", "received"),
        ("hears", "receives"),
        ("deaf", "say what does not answer"),
    ];
    let mut errors = Vec::new();
    for name in names() {
        let mut files = BTreeMap::new();
        let folder = root().join(&name);
        sources(&folder, &folder, &mut files);
        for (file, text) in &files {
            // Names that scenarios once had are told apart from those of today there; and this list is here.
            if file.ends_with("renamed.rs") || file == "tests/imports.rs" {
                continue;
            }
            for (line, text) in text.lines().enumerate() {
                let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
                let found = INSTEAD.iter().find(|(word, _)| {
                    let mut places = text.match_indices(word);
                    places.any(|(at, _)| {
                        !text[..at].ends_with(is_letter) && !text[at + word.len()..].starts_with(is_letter)
                    })
                });
                if let Some((word, other)) = found {
                    errors.push(format!("{name}/{file}:{}: {word}: {other}", line + 1));
                }
            }
        }
    }
    assert!(errors.is_empty(), "words:\n{}", errors.join("\n"));
}

/// The identity of an engine counts the sources of every crate that decides results, and `--version` looks at them, too.
#[test]
fn every_crate_of_the_engine_is_part_of_its_identity() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a text");
    let (identity, version) = (read("crates/incast-lab/build.rs"), read("crates/incast/build.rs"));
    let (mut open, mut seen) = (vec!["incast-lab".to_owned()], BTreeSet::new());
    while let Some(name) = open.pop() {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let dependencies = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
        let lines = dependencies.lines().take_while(|line| !line.starts_with('['));
        let crates = lines.filter_map(|line| line.split(['.', ' ']).next().filter(|name| name.starts_with("incast-")));
        open.extend(crates.map(str::to_owned).filter(|name| seen.insert(name.clone())));
    }
    assert!(seen.len() >= 4, "{seen:?}");
    for name in &seen {
        assert!(identity.contains(&format!("\"../{name}/src\"")), "incast-lab/build.rs lacks {name}");
        assert!(version.contains(&format!("\"crates/{name}/src\"")), "incast/build.rs lacks {name}");
    }
}
