//! The table of metrics as a page of the book.

use super::METRICS;
use std::fmt::Write;

/// What stands before the table.
const HEAD: &str = "# Metrics

Generated from the table of metrics; do not edit.

The numbers of a row of [`summary.json`](results.md#summaryjson). Claims (`metric = \"fct_us.p99\"`) and the columns of
tables name them as they stand here; `group.member` is `member` of the object `group` in a row.

- **FCT** is the time from the start of a flow to the delivery of its last byte, **slowdown** that time over the time of
  the same flow alone, and **request completion** the time from the start of a request's first flow to the delivery of its
  last. Percentiles are exact, by nearest rank: the p-th of n values is the ⌈p·n⌉-th smallest.
- **scope** is what the number is about: the flows of the row's class; the fabric during the whole run, from 0 to its end;
  or the process that simulates. Numbers of the fabric and of the process are `null` in rows of a class, as a queue belongs
  to no class. No claim can be about the process.
- **seeds** is how the row with `\"seed\": \"all\"` pools the seeds: the number over all flows of all seeds together, the sum,
  the mean (`null` if one of them is), or the largest.

| metric | unit | scope | seeds | meaning |
|---|---|---|---|---|
";

/// The page.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    for metric in METRICS {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            metric.name,
            metric.unit.symbol(),
            metric.scope.name(),
            metric.measure.pooling(),
            metric.describe()
        );
    }
    page
}
