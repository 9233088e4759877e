//! Paths such as `workload.incast.fan_in` that address one value of a document. Tables of a list are found by their
//! names.

use super::{
    error::Problem,
    node::{Entry, Node, Value, name_of},
    place::Step,
};

/// Splits `a."b.c".d` at its dots; names in quotes keep theirs.
///
/// # Errors
/// An empty step, or a quote that does not end.
pub fn split(path: &str) -> Result<Vec<String>, Problem> {
    let wrong = || {
        Problem::new(format!(
            "found the path {path:?}, allowed are keys and names joined by dots, such as workload.incast.fan_in"
        ))
    };
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        let trimmed = rest.trim_start();
        let (step, after) = match trimmed.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let inner = &trimmed[1..];
                let end = inner.find(quote).ok_or_else(wrong)?;
                (&inner[..end], &inner[end + 1..])
            }
            _ => {
                let end = trimmed.find('.').unwrap_or(trimmed.len());
                (trimmed[..end].trim_end(), &trimmed[end..])
            }
        };
        if step.is_empty() {
            return Err(wrong());
        }
        steps.push(step.to_owned());
        let after = after.trim_start();
        if after.is_empty() {
            return Ok(steps);
        }
        rest = after.strip_prefix('.').ok_or_else(wrong)?;
    }
}

/// Keys of tables for which the name of their `kind` may stand alone.
const KINDS: &[&str] = &["agent", "ecn", "pfc", "underlay"];

/// Puts `value` where `path` leads; tables on this path are made if they are missing, and names that stand for tables
/// become these.
///
/// # Errors
/// No table of a list has the name, or something on the path is neither a table nor a list. The place is the value's.
pub fn set(root: &mut Node, path: &str, value: Node) -> Result<Vec<Step>, Problem> {
    let origin = value.origin;
    let steps = split(path).map_err(|problem| problem.from(origin))?;
    let mut walked: Vec<Step> = Vec::new();
    let mut node = root;
    let mut value = Some(value);
    for (index, step) in steps.iter().enumerate() {
        let last = index + 1 == steps.len();
        if let Value::Array(items) = &node.value {
            let found = find(items, step, &walked).map_err(|problem| problem.at(&walked).from(origin))?;
            walked.push(Step::Index(found));
            let Value::Array(items) = &mut node.value else { break };
            if last {
                if let Some(value) = value.take() {
                    items[found] = value;
                }
                break;
            }
            node = &mut items[found];
            continue;
        }
        if let (Value::Text(_), Some(Step::Key(key))) = (&node.value, walked.last())
            && KINDS.contains(&key.as_str())
        {
            let (origin, kind) = (node.origin, node.clone());
            *node = Node { origin, value: Value::Table(vec![Entry { key: "kind".to_owned(), origin, node: kind }]) };
        }
        if !matches!(node.value, Value::Table(_)) {
            return Err(Problem::new(format!("found {}, which has no key `{step}`", node.value))
                .at(&walked)
                .from(origin));
        }
        walked.push(Step::Key(step.clone()));
        if last {
            if let Some(value) = value.take() {
                node.insert(step, value);
            }
            break;
        }
        if node.get(step).is_none() {
            node.insert(step, Node { origin, value: Value::Table(Vec::new()) });
        }
        let Value::Table(entries) = &mut node.value else { break };
        let Some(entry) = entries.iter_mut().find(|entry| &entry.key == step) else { break };
        node = &mut entry.node;
    }
    Ok(walked)
}

fn find(items: &[Node], name: &str, walked: &[Step]) -> Result<usize, Problem> {
    if let Some(index) = items.iter().position(|item| name_of(item) == Some(name)) {
        return Ok(index);
    }
    if let Some(index) = name.parse::<usize>().ok().filter(|index| *index < items.len()) {
        return Ok(index);
    }
    let what = match walked.last() {
        Some(Step::Key(key)) => key.as_str(),
        _ => "entry",
    };
    Err(Problem::unknown(format!("there is no {what} {name:?}"), name, items.iter().filter_map(name_of)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Node {
        Node::parse("[[scheme]]\nlaw = \"dctcp\"\n[[scheme]]\nname = \"DCTCP, 2.0\"\nlaw = \"dctcp\"\n[switch]\npriorities = 2\n").expect("valid")
    }
    fn seven() -> Node {
        Node::parse_argument("7", 0).expect("valid")
    }

    #[test]
    fn lists_go_by_name() {
        let mut root = tree();
        set(&mut root, "scheme.dctcp.gain", seven()).expect("found");
        set(&mut root, "scheme.\"DCTCP, 2.0\".gain", seven()).expect("found");
        set(&mut root, "switch.buffer.total", seven()).expect("made");
        let schemes = root.get("scheme").expect("there").items();
        assert!(schemes.iter().all(|scheme| scheme.get("gain").is_some_and(|gain| gain.value == Value::Integer(7))));
        assert!(root.get("switch").and_then(|switch| switch.get("buffer")?.get("total")).is_some());
    }

    #[test]
    fn a_name_that_stands_for_a_table_becomes_it() {
        let mut root = Node::parse("[switch]\npfc = \"dynamic\"\nties = \"seeded\"\n").expect("valid");
        set(&mut root, "switch.pfc.alpha", seven()).expect("made");
        let pfc = root.get("switch").and_then(|switch| switch.get("pfc")).expect("there");
        assert_eq!((pfc.text("kind"), pfc.entries().len()), (Some("dynamic"), 2));
        assert!(set(&mut root, "switch.ties.alpha", seven()).is_err());
    }

    #[test]
    fn wrong_paths_say_what_there_is() {
        let mut root = tree();
        let problem = set(&mut root, "scheme.dctpc.gain", seven()).expect_err("typo");
        assert_eq!(problem.nearest.as_deref(), Some("dctcp"));
        for wrong in ["", "a..b", "a.\"b", "switch.priorities.x", ".", "a.", "\"a\"b"] {
            assert!(set(&mut root, wrong, seven()).is_err(), "{wrong}");
        }
    }
}
