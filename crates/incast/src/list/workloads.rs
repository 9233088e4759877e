//! The bundled flow-size distributions.

use super::Entry;
use incast_lab::workload::builtin::{BUILTIN, head};
use serde_json::json;

pub(super) fn entries() -> Vec<Entry> {
    BUILTIN
        .iter()
        .map(|(name, text)| {
            let source = head(text, "source").unwrap_or_default();
            let note = head(text, "note").unwrap_or_default();
            // `mean_bytes_linear_interp: A ; mean_bytes_step: B ; points: N`
            let means = head(text, "mean_bytes_linear_interp").unwrap_or_default();
            let mean: Option<f64> = means.split(';').next().and_then(|mean| mean.trim().parse().ok());
            let largest: Option<f64> = text
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty() && !line.starts_with('#'))
                .and_then(|line| line.split(',').next()?.trim().parse().ok());
            let shown = |bytes: Option<f64>| bytes.map_or_else(|| "?".to_owned(), |bytes| format!("{bytes:.0} B"));
            Entry {
                facts: json!({
                    "name": name,
                    "source": source,
                    "describe": note,
                    "mean_bytes": mean,
                    "max_bytes": largest,
                }),
                text: format!(
                    "{name}  mean {}, largest {}\n    {note}\n    source: {source}\n",
                    shown(mean),
                    shown(largest)
                ),
            }
        })
        .collect()
}
