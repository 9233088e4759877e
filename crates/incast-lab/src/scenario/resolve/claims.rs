//! Checks of `[[paper.claim]]` and `[table]`: of what there are rows.

use super::{
    super::{
        document::{Document, claim::Bases},
        tree::{
            error::{Problem, list},
            place::keys,
        },
    },
    measure::size_rows,
    traffic::Traffic,
};
use crate::metrics::{self, Basis, Scope};

/// The class that stands for all of them.
const ALL: &str = "all";

/// Every claim is about something that the scenario has.
pub fn check(document: &Document, traffic: &Traffic) -> Vec<Problem> {
    let claims = 0..document.paper.claim.len();
    claims.filter_map(|index| check_one(document, traffic, index).err()).collect()
}

fn check_one(document: &Document, traffic: &Traffic, index: usize) -> Result<(), Problem> {
    let schemes: Vec<&str> = document.scheme.iter().map(|scheme| scheme.name()).collect();
    let axes: Vec<&str> = document
        .zip
        .iter()
        .chain([&document.grid])
        .flat_map(|axes| axes.0.iter().map(|(path, _)| path.as_str()))
        .collect();
    let Some(claim) = document.paper.claim.get(index) else { return Ok(()) };
    let at = |key: &str, problem: Problem| Err(problem.at(&keys!["paper", "claim", index, key]));
    measured(document, traffic, &claim.class, &claim.metric)
        .map_err(|problem| problem.at(&keys!["paper", "claim", index]))?;
    if let Some(problem) = claim.ratio_to_metric.as_deref().and_then(unknown_metric) {
        return at("ratio_to_metric", problem);
    }
    let no_scheme = |name: &String| {
        let unknown = !schemes.contains(&name.as_str());
        unknown.then(|| Problem::unknown(format!("there is no scheme {name:?}"), name, schemes.iter().copied()))
    };
    if let Some(problem) = no_scheme(&claim.scheme) {
        return at("scheme", problem);
    }
    if let Some(bases) = &claim.ratio_to {
        if bases.names().is_empty() {
            return at("ratio_to", Problem::value("no schemes", "at least one"));
        }
        for (place, name) in bases.names().iter().enumerate() {
            if let Some(problem) = no_scheme(name) {
                let of_list = matches!(bases, Bases::Several(_));
                return at("ratio_to", if of_list { problem.at(&keys![place]) } else { problem });
            }
        }
    }
    let forms = [
        ("value", claim.value.is_some()),
        ("at_most", claim.at_most.is_some()),
        ("at_least", claim.at_least.is_some()),
        ("range", claim.range.is_some()),
        ("points", claim.points.is_some()),
    ];
    if forms.iter().filter(|(_, given)| *given).count() != 1 {
        return Err(Problem::exactly_one(&forms).at(&keys!["paper", "claim", index]));
    }
    if let Some(points) = &claim.points {
        if points.is_empty() {
            return at("points", Problem::value("no points", "at least one [x, y]"));
        }
        let free = axes.iter().filter(|axis| !claim.grid.contains_key(**axis)).count();
        if free != 1 {
            let problem =
                Problem::new(format!("a curve needs one grid axis that its `grid` leaves open, found {free}"));
            return at("points", problem);
        }
    }
    if claim.up_to && claim.value.is_none() {
        let problem = Problem::new("only a claim with a `value` can be an \"up to\"".to_owned());
        return at("up_to", problem);
    }
    if let Some((low, high)) = claim.range.filter(|(low, high)| low.partial_cmp(high) != Some(std::cmp::Ordering::Less))
    {
        return at("range", Problem::value(format!("[{low}, {high}]"), "the lower end first"));
    }
    if claim.ours && claim.at_most.is_none() && claim.at_least.is_none() && claim.range.is_none() {
        let what = "only a bound, `at_most` or `at_least`, or a `range` can be ours";
        let problem = Problem::new(what.to_owned());
        return at("ours", problem);
    }
    let ratios = [
        ("ratio_to", claim.ratio_to.is_some()),
        ("ratio_at", !claim.ratio_at.is_empty()),
        ("ratio_to_metric", claim.ratio_to_metric.is_some()),
    ];
    if let Some((second, _)) = ratios.into_iter().filter(|(_, given)| *given).nth(1) {
        let what = "a ratio is to another scheme, to another grid point or to another metric";
        return at(second, Problem::new(what.to_owned()));
    }
    for (table, point) in [("grid", &claim.grid), ("ratio_at", &claim.ratio_at)] {
        grid_point(document, &axes, point, index, table)?;
    }
    Ok(())
}

/// Every column is of a number and of a class that there are.
pub fn check_columns(document: &Document, traffic: &Traffic) -> Vec<Problem> {
    let columns = document.table.columns.iter().enumerate();
    let checked = columns.map(|(index, column)| {
        let measured = measured(document, traffic, &column.class, &column.metric);
        measured.map_err(|problem| problem.at(&keys!["table", "columns", index]))
    });
    checked.filter_map(Result::err).collect()
}

/// There is such a class, and such a number of it.
fn measured(document: &Document, traffic: &Traffic, class: &str, metric: &str) -> Result<(), Problem> {
    if let Some(problem) = unknown_metric(metric) {
        return Err(problem.under("metric"));
    }
    let classes: Vec<&str> = traffic.classes.iter().map(String::as_str).chain([ALL]).collect();
    let sizes = if classes.contains(&class) { Vec::new() } else { size_rows(document, traffic) };
    let classes: Vec<&str> = classes.into_iter().chain(sizes.iter().map(|row| row.name.as_str())).collect();
    if !classes.contains(&class) {
        return Err(Problem::unknown(format!("there is no class {class:?}"), class, classes).under("class"));
    }
    // Whatever never has a value.
    if class == ALL {
        return Ok(());
    }
    if metrics::find(metric).is_some_and(|metric| metric.scope == Scope::Fabric) {
        let what = format!("{metric} is of the whole fabric: a class has none");
        return Err(Problem { allowed: Some(format!("{ALL:?}")), ..Problem::new(what) }.under("class"));
    }
    let with_requests = traffic.request_classes();
    if metric.starts_with("rct_us") && !with_requests.contains(&class) {
        let what = format!("class {class:?} has no requests, whose times {metric} is of");
        let with_requests: Vec<&str> = with_requests.into_iter().chain([ALL]).collect();
        return Err(Problem { allowed: Some(list(&with_requests, true)), ..Problem::new(what) }.under("class"));
    }
    Ok(())
}

/// What is wrong with the name of a metric, if anything is.
fn unknown_metric(metric: &str) -> Option<Problem> {
    let is_known = metrics::claimable().any(|known| known == metric);
    (!is_known).then(|| Problem::unknown(format!("found {metric:?}"), metric, metrics::claimable()))
}

/// Claims about what is not sampled.
pub fn warnings(document: &Document) -> Vec<String> {
    let claims = document
        .paper
        .claim
        .iter()
        .filter(|claim| metrics::find(&claim.metric).is_some_and(|metric| metric.basis != Basis::Run));
    let unsampled = claims.filter(|_| document.measure.rates.is_none());
    unsampled
        .map(|claim| format!("the claim about {} of {} needs [measure] rates", claim.metric, claim.scheme))
        .collect()
}

/// Every key of a claim's table is an axis of the grid, and every value one of its values.
fn grid_point(
    document: &Document,
    axes: &[&str],
    point: &toml::Table,
    index: usize,
    table: &str,
) -> Result<(), Problem> {
    for (key, value) in point {
        let at = |problem: Problem| Err(problem.at(&keys!["paper", "claim", index, table, key.as_str()]));
        if !axes.contains(&key.as_str()) {
            let problem = Problem::unknown("not an axis of the grid", key, axes.iter().copied());
            return at(problem);
        }
        let all = document.zip.iter().chain([&document.grid]).flat_map(|axes| &axes.0);
        let values: Vec<String> =
            all.filter(|(path, _)| path == key).flat_map(|(_, values)| values).map(ToString::to_string).collect();
        if !values.contains(&value.to_string()) {
            let allowed = list(&values.iter().map(String::as_str).collect::<Vec<_>>(), false);
            return at(Problem::value(value, allowed));
        }
    }
    Ok(())
}
