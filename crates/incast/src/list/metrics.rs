//! The metrics of a run.

use super::{Entry, wrap};
use incast_lab::metrics::METRICS;
use serde_json::json;

pub(super) fn entries() -> Vec<Entry> {
    let entry = |metric: &incast_lab::metrics::Metric| {
        let (unit, scope, seeds) = (metric.unit.symbol(), metric.scope.name(), metric.measure.pooling());
        let unit_shown = if unit.is_empty() { String::new() } else { format!("  {unit}") };
        Entry {
            facts: json!({
                "name": metric.name,
                "unit": unit,
                "scope": scope,
                "seeds": seeds,
                "describe": metric.describe(),
            }),
            text: format!(
                "{}{unit_shown}  of the {scope}; seeds: {seeds}\n{}",
                metric.name,
                wrap(4, &metric.describe())
            ),
        }
    };
    METRICS.iter().map(entry).collect()
}
