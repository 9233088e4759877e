//! `incast list`: what there is to write into a scenario, and what its results are.

mod metrics;
mod profiles;
mod scenarios;
mod schemes;
mod topologies;
mod workloads;

use crate::{End, arguments::List, arguments::Listed, output};
use serde_json::Value;

/// One entry: its facts for machines, and its text for people.
struct Entry {
    facts: Value,
    text: String,
}

/// Longest line: two fit side by side on a wide screen, and one in a mail.
const WIDTH: usize = 100;

/// Text in lines that are indented and, where words allow, not longer than [`WIDTH`].
fn wrap(indent: usize, text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && indent + line + 1 + word.chars().count() > WIDTH {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("{:indent$}{line}\n", "")).collect()
}

/// Prints a list.
pub fn list(arguments: &List) -> End {
    let entries = match arguments.what {
        Listed::Schemes => schemes::entries(),
        Listed::Workloads => workloads::entries(),
        Listed::Topologies => topologies::entries(),
        Listed::Scenarios => scenarios::entries(),
        Listed::Metrics => metrics::entries(),
        Listed::Profiles => profiles::entries(),
    };
    let text = if arguments.json {
        let facts: Vec<Value> = entries.into_iter().map(|entry| entry.facts).collect();
        format!("{:#}\n", Value::from(facts))
    } else {
        entries.into_iter().map(|entry| entry.text).collect::<Vec<_>>().join("\n")
    };
    output::data(&text);
    End::Done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_scheme_has_a_line_that_is_too_long() {
        for entry in schemes::entries() {
            for line in entry.text.lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
            }
        }
    }

    #[test]
    fn words_are_kept_and_wrapped() {
        let long = "word ".repeat(60);
        let wrapped = wrap(4, &long);
        assert_eq!(wrapped.split_whitespace().count(), 60);
        assert!(wrapped.lines().all(|line| line.starts_with("    word") && line.len() <= WIDTH));
        assert_eq!(wrap(2, "one two"), "  one two\n");
        let endless = "x".repeat(150);
        assert_eq!(wrap(0, &format!("a {endless} b")), format!("a\n{endless}\nb\n"));
    }
}
