//! Names of earlier versions are refused with the new name.

use super::{super::tree::renamed, *};

#[test]
fn old_names_are_refused_with_the_new_name() {
    for (from, to, expected) in [
        ("[host]", "[host]\nanswers_first = true", "host.answers_first: unknown key: it is called `control_first` now"),
        ("[host]", "[host]\nframes = { smallest = \"60B\" }", "it is called `min_size` now"),
        (
            "pfc = false",
            "pfc = false\nload_balancing = \"permuted\"",
            "switch.load_balancing: found \"permuted\": it is called \"spray-permutation\" now",
        ),
        ("duration = \"20ms\"", "profile = \"faithful\"\nduration = \"20ms\"", "it is called \"standard\" now"),
        ("law = \"cubic\"", "law = \"polo\"\nd_most = 8", "it is called `d_max` now"),
        ("law = \"cubic\"", "law = \"polo\"\npause = \"crowded\"", "it is called \"active-limit\" now"),
        ("pfc = false", "agent = { kind = \"tcd\", drained = \"2KB\" }", "it is called `drained_threshold` now"),
    ] {
        refused(from, to, expected);
    }
}

#[test]
fn every_new_name_exists() {
    let page = reference_markdown();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let names: BTreeSet<&str> = page.split(|c| !is_part(c)).collect();
    for (old, new) in renamed::all() {
        assert!(names.contains(new), "{old} -> {new}");
        assert_ne!(old, new);
    }
}
