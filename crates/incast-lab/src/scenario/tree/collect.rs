//! Reads a document to its end although parts of it are wrong, so that all mistakes are reported at once.
//!
//! What is wrong is taken out of a copy of the tree, and the copy is read again. A key that is missing as it was taken
//! out is no mistake of the document: the table around it is taken out, too.

use super::{
    de,
    error::{Problem, Problems},
    node::{Node, Value},
    place::Step,
};

/// More mistakes than anyone corrects at once.
pub const MOST: usize = 20;

/// Reads a `T`.
///
/// # Errors
/// What is wrong, at most [`MOST`] mistakes, with paths from `root`.
pub fn read<T: for<'a> serde::Deserialize<'a>>(root: &Node) -> Result<T, Problems> {
    let first: Problem = match de::read(root) {
        Ok(value) => return Ok(value),
        Err(problem) => problem,
    };
    let mut tree = root.clone();
    let mut more = Vec::new();
    let mut removed: Vec<Vec<Step>> = Vec::new();
    let mut cut = place_to_cut(&tree, &first.path, &first);
    while more.len() + 1 < MOST && cut_out(&mut tree, &cut) {
        removed.push(original(&cut, &removed));
        let Err(mut problem) = de::read::<T>(&tree) else { break };
        cut = place_to_cut(&tree, &problem.path, &problem);
        problem.path = original(&problem.path, &removed);
        let is_consequence = removed.iter().any(|path| is_missing(&problem, path))
            || [&first].into_iter().chain(&more).any(|other| is_misspelt(&problem, other));
        if !is_consequence {
            more.push(problem);
        }
    }
    Err(Problems { first: Box::new(first), more })
}

/// The key at `path`, which was taken out, is what the problem misses.
fn is_missing(problem: &Problem, path: &[Step]) -> bool {
    let Some((Step::Key(key), around)) = path.split_last() else { return false };
    around == problem.path && problem.what == Problem::missing(key).what
}

/// A key that the problem misses is there under another name.
fn is_misspelt(problem: &Problem, other: &Problem) -> bool {
    let around = other.path.split_last().map(|(_, around)| around);
    let is = |key: &String| problem.what == Problem::missing(key).what;
    around == Some(&problem.path[..])
        && (other.nearest.as_ref().is_some_and(is)
            || other.what.split('`').nth(1).is_some_and(|name| is(&name.to_owned())))
}

/// The kind of a table decides which keys it may have: without it, nothing can be said about them.
fn place_to_cut(tree: &Node, path: &[Step], problem: &Problem) -> Vec<Step> {
    let kind = path.last() == Some(&Step::Key("kind".into()));
    let is_unknown_key = problem.what.starts_with("unknown key");
    let around = path.split_last().map_or(path, |(_, around)| around);
    if kind && !is_unknown_key && tree.at(around).is_some() { around.to_vec() } else { path.to_vec() }
}

/// Takes the value at `path` out; whether there was one.
fn cut_out(tree: &mut Node, path: &[Step]) -> bool {
    let Some((last, around)) = path.split_last() else { return false };
    let mut node = tree;
    for step in around {
        let next = match (step, &mut node.value) {
            (Step::Key(key), Value::Table(entries)) => {
                entries.iter_mut().find(|entry| entry.key == *key).map(|entry| &mut entry.node)
            }
            (Step::Index(index), Value::Array(items)) => items.get_mut(*index),
            _ => None,
        };
        let Some(next) = next else { return false };
        node = next;
    }
    match (last, &mut node.value) {
        (Step::Key(key), Value::Table(entries)) => {
            let before = entries.len();
            entries.retain(|entry| entry.key != *key);
            entries.len() < before
        }
        (Step::Index(index), Value::Array(items)) if *index < items.len() => {
            items.remove(*index);
            true
        }
        _ => false,
    }
}

/// A path in a tree without the `removed` values, as it was with them: items of lists have moved up.
fn original(path: &[Step], removed: &[Vec<Step>]) -> Vec<Step> {
    let mut whole: Vec<Step> = Vec::with_capacity(path.len());
    for step in path {
        let Step::Index(index) = step else {
            whole.push(step.clone());
            continue;
        };
        let mut gone: Vec<usize> = removed
            .iter()
            .filter_map(|other| match other.split_last() {
                Some((Step::Index(gone), around)) if around == whole => Some(*gone),
                _ => None,
            })
            .collect();
        gone.sort_unstable();
        let moved = gone.into_iter().fold(*index, |index, gone| if gone <= index { index + 1 } else { index });
        whole.push(Step::Index(moved));
    }
    whole
}
