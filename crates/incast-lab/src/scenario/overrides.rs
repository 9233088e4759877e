//! Values that replace those of the file: `--set` arguments and grid points.

use super::document::Document;
use crate::scenario::tree::{
    error::Problem,
    node::{Node, Value},
    path,
    place::{Origin, keys},
};

/// Keys that a grid cannot vary.
const FIXED: &[&str] =
    &["name", "describe", "source", "seeds", "seed_budget", "grid", "zip", "short", "table", "paper"];

/// More runs than anyone waits for.
const MOST_POINTS: usize = 100_000;

/// Applies `--set` arguments in their order.
pub fn apply_sets(root: &mut Node, sets: &[(String, String)]) -> Result<(), Problem> {
    for (index, (key, text)) in sets.iter().enumerate() {
        let value =
            Node::parse_argument(text, index).map_err(|problem| problem.from(Origin::Argument(index as u32)))?;
        path::set(root, key, value)?;
    }
    Ok(())
}

/// Applies `[short]`, and leaves out claims about grid points that are no more. Says whether there is such a table.
pub fn apply_short(root: &mut Node) -> bool {
    let Some(short) = root.get("short").cloned() else { return false };
    for entry in short.entries() {
        root.insert(&entry.key, entry.node.clone());
    }
    if let Some(grid) = short.get("grid") {
        let axes: Vec<Node> = root.get("zip").map_or(&[][..], Node::items).iter().chain([grid]).cloned().collect();
        if let Some(Value::Array(claims)) = value_mut(root, &["paper", "claim"]) {
            claims.retain(|claim| {
                claim.get("grid").map_or(&[][..], Node::entries).iter().all(|fixed| has(&axes, &fixed.key, &fixed.node))
            });
        }
    }
    true
}

/// One of the axes takes this value.
fn has(axes: &[Node], path: &str, value: &Node) -> bool {
    let mut values = axes.iter().filter_map(|table| table.get(path)).flat_map(Node::items);
    values.any(|other| toml_value(other) == toml_value(value))
}

fn value_mut<'a>(node: &'a mut Node, path: &[&str]) -> Option<&'a mut Value> {
    let Some((key, rest)) = path.split_first() else { return Some(&mut node.value) };
    let Value::Table(entries) = &mut node.value else { return None };
    value_mut(&mut entries.iter_mut().find(|entry| entry.key == *key)?.node, rest)
}

/// One combination of the axes' values.
pub type GridPoint = Vec<(String, Node)>;

/// The values of one group of axes: for each step, a value for each axis.
fn steps(table: &Node, together: bool) -> Vec<Vec<GridPoint>> {
    let axes = table.entries().iter().map(|entry| {
        entry.node.items().iter().map(|value| vec![(entry.key.clone(), value.clone())]).collect::<Vec<GridPoint>>()
    });
    if together {
        let axes: Vec<Vec<GridPoint>> = axes.collect();
        let count = axes.iter().map(Vec::len).min().unwrap_or(0);
        vec![(0..count).map(|index| axes.iter().flat_map(|axis| axis[index].clone()).collect()).collect()]
    } else {
        axes.collect()
    }
}

/// All combinations: the first axis changes slowest.
pub fn grid_points(root: &Node, document: &Document) -> Result<Vec<GridPoint>, Problem> {
    let mut paths: Vec<&String> = Vec::new();
    let tables = document.zip.iter().enumerate().map(|(index, axes)| (keys!["zip", index].to_vec(), axes));
    for (place, axes) in tables.chain([(keys!["grid"].to_vec(), &document.grid)]) {
        for (name, values) in &axes.0 {
            let at = |problem: Problem| Err(problem.under(name.as_str()).at(&place));
            if values.is_empty() {
                return at(Problem::value("no values", "at least one"));
            }
            let first = path::split(name).map_err(|problem| problem.under(name.as_str()).at(&place))?;
            if FIXED.contains(&first[0].as_str()) {
                return at(Problem::new(format!("`{}` cannot vary within a scenario", first[0])));
            }
            if paths.contains(&name) {
                return at(Problem::new("this axis is given twice"));
            }
            let leader = axes.0.first().filter(|(_, others)| place.len() == 2 && others.len() != values.len());
            if let Some((other, others)) = leader {
                let allowed = format!("as many as {other} has, {}", others.len());
                return at(Problem::value(format!("{} values", values.len()), allowed));
            }
            paths.push(name);
        }
    }
    let mut groups = Vec::new();
    for table in root.get("zip").map_or(&[][..], Node::items) {
        groups.extend(steps(table, true));
    }
    if let Some(grid) = root.get("grid") {
        groups.extend(steps(grid, false));
    }
    let mut points: Vec<GridPoint> = vec![Vec::new()];
    for group in groups.iter().filter(|group| !group.is_empty()) {
        if points.len().saturating_mul(group.len()) > MOST_POINTS {
            return Err(Problem::new(format!("found more than {MOST_POINTS} grid points")).under("grid"));
        }
        points = points
            .iter()
            .flat_map(|point| group.iter().map(move |step| point.iter().chain(step).cloned().collect()))
            .collect();
    }
    Ok(points)
}

/// The document at a grid point. Faults of a value point to where the grid has it.
pub fn at_point(root: &Node, point: &GridPoint) -> Result<Node, Problem> {
    let mut root = root.clone();
    for (name, value) in point {
        path::set(&mut root, name, value.clone())?;
    }
    Ok(root)
}

/// A value as TOML holds it.
pub fn toml_value(node: &Node) -> toml::Value {
    match &node.value {
        Value::Table(entries) => {
            toml::Value::Table(entries.iter().map(|entry| (entry.key.clone(), toml_value(&entry.node))).collect())
        }
        Value::Array(items) => toml::Value::Array(items.iter().map(toml_value).collect()),
        Value::Text(text) => toml::Value::String(text.clone()),
        Value::Integer(number) => toml::Value::Integer(*number),
        Value::Float(number) => toml::Value::Float(*number),
        Value::Flag(flag) => toml::Value::Boolean(*flag),
    }
}
