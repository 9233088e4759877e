//! What the runs cost.

use super::scrolling;
use crate::results::read::{FinishedRun, Results};
use crate::{
    metrics::ns_per_packet_hop,
    report::chart::series_class,
    text::{bytes, grouped, number},
};
use maud::{Markup, html};

/// The costs.
pub fn section(results: &Results) -> Markup {
    let host = &results.first().record.host;
    let summary = html! {
        table {
            thead { tr {
                th scope="col" { "scheme" }
                @for heading in ["simulated runs", "packet-hops", "events", "CPU s", "wall s", "ns per packet-hop", "peak memory"] {
                    th.number scope="col" { (heading) }
                }
            } }
            tbody {
                @for (series, scheme) in results.schemes.iter().enumerate() {
                    (row(Some(series), scheme, results.runs.iter().filter(|run| run.record.scheme == *scheme)))
                }
                @if results.schemes.len() > 1 { (row(None, "all", results.runs.iter())) }
            }
        }
    };
    let runs = html! {
        table {
            thead { tr {
                th scope="col" { "run" }
                th scope="col" { "every flow done" }
                @for heading in ["simulated ms", "packet-hops", "CPU s", "ns per packet-hop"] { th.number scope="col" { (heading) } }
                th scope="col" { "digest" }
                th scope="col" { "simulated as" }
            } }
            tbody {
                @for run in &results.runs {
                    @let record = &run.record;
                    tr {
                        th scope="row" { (run.name()) }
                        td class=[(!record.complete).then_some("warn")] { (if record.complete { "yes" } else { "no" }) }
                        td.number { (number(record.ended_at_ps as f64 / 1e9)) }
                        td.number { (grouped(record.cost.packet_hops)) }
                        td.number { (number(record.cost.cpu_s)) }
                        td.number { (record.cost.ns_per_packet_hop.map(number).unwrap_or_default()) }
                        td { code { (record.digest.chars().take(16).collect::<String>()) } }
                        td { (record.same_as.as_deref().unwrap_or_default()) }
                    }
                }
            }
        }
    };
    html! {
        section.cost {
            h2 { "Cost" }
            (scrolling("Cost by scheme", &summary))
            p.note {
                "One packet-hop is one traversal of a link. CPU time is user and system time of the event loop, set-up apart; peak memory is of the process, runs beside it included. "
                (host.cpu) @if !host.cpu.is_empty() { ", " } (host.cores) " cores, " (host.os) "."
            }
            details {
                summary { "Every run" }
                (scrolling("Every run", &runs))
            }
        }
    }
}

fn row<'a>(series: Option<usize>, name: &str, runs: impl Iterator<Item = &'a FinishedRun>) -> Markup {
    let costs: Vec<_> = runs.filter(|run| run.record.same_as.is_none()).map(|run| run.record.cost).collect();
    let hops: u64 = costs.iter().map(|cost| cost.packet_hops).sum();
    let events: u64 = costs.iter().map(|cost| cost.events).sum();
    let cpu_s: f64 = costs.iter().map(|cost| cost.cpu_s).sum();
    let wall_s: f64 = costs.iter().map(|cost| cost.wall_s).sum();
    let memory = costs.iter().map(|cost| cost.peak_rss_bytes).max().unwrap_or(0);
    html! {
        tr data-series=[series] {
            th scope="row" { @if let Some(series) = series { span.dot.{ (series_class(series)) } {} } (name) }
            td.number { (costs.len()) }
            td.number { (grouped(hops)) }
            td.number { (grouped(events)) }
            td.number { (number(cpu_s)) }
            td.number { (number(wall_s)) }
            td.number { (ns_per_packet_hop(cpu_s, hops).map(number).unwrap_or_default()) }
            td.number { (bytes(memory)) }
        }
    }
}
