//! The rows of `summary.json`, computed from runs.

use super::row::{ALL, Row, Seed};
use crate::{
    metrics::{
        ClassRun, FlowStatistics, Values,
        backlog::{self, Load},
        requests::{self, Request},
        values::intervals,
    },
    scenario::SizeRow,
};
use incast_sim::{Outcome, outcome::FlowRecord};
use incast_units::Time;
use serde_json::{Map, Value};
use std::ops::Range;

/// What identifies a run's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Name of the scheme.
    pub scheme: String,
    /// The grid point.
    pub grid: Map<String, Value>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Which of them are workloads of long flows.
    pub long: Vec<bool>,
    /// Flows of some sizes that have rows of their own.
    pub sizes: Vec<SizeRow>,
    /// Flows count if they start in this time.
    pub counted: Range<Time>,
    /// Period of the samples of rates, where there are some.
    pub sampled_every: Option<Time>,
    /// What the workloads put on links.
    pub load: Option<Load>,
}

/// Which flows a row is about.
#[derive(Clone, Copy, Debug)]
enum Of<'k> {
    Class(u16),
    Sizes(&'k SizeRow),
    All,
}

impl Of<'_> {
    fn has(self, flow: &FlowRecord) -> bool {
        match self {
            Self::Class(class) => class == flow.class,
            Self::Sizes(sizes) => sizes.class == flow.class && sizes.range.contains(flow.bytes),
            Self::All => true,
        }
    }

    /// Requests are not of one size.
    fn has_requests_of(self, class: u16) -> bool {
        match self {
            Self::Class(own) => own == class,
            Self::Sizes(_) => false,
            Self::All => true,
        }
    }
}

impl Key {
    /// The classes of rows, in their order: each class, each of the sizes, and all.
    fn row_classes(&self) -> impl Iterator<Item = (Of<'_>, &str)> {
        let each = self.classes.iter().enumerate();
        let sizes = self.sizes.iter().map(|sizes| (Of::Sizes(sizes), sizes.name.as_str()));
        each.map(|(index, name)| (Of::Class(index as u16), name.as_str())).chain(sizes).chain([(Of::All, ALL)])
    }

    fn is_long(&self, class: u16) -> bool {
        self.long.get(usize::from(class)).copied().unwrap_or(false)
    }

    fn counts(&self, of: Of<'_>, request: &Request) -> bool {
        of.has_requests_of(request.class) && self.counted.contains(&request.start)
    }

    fn row(&self, class: &str, seed: Seed, runs: usize, values: Values) -> Row {
        Row {
            scheme: self.scheme.clone(),
            class: class.to_owned(),
            seed,
            grid: self.grid.clone(),
            runs: runs as u64,
            by_size: Vec::new(),
            values,
            ci95: None,
        }
    }
}

/// Groups flows into requests and computes the rows of a run: one per class, then `all`.
pub fn measure(key: &Key, seed: u64, outcome: &Outcome) -> (Vec<Request>, Vec<Row>) {
    let requests = requests::group(&outcome.flows);
    let rows = key.row_classes().map(|(of, name)| {
        let flows: Vec<&FlowRecord> = outcome.flows.iter().filter(|flow| of.has(flow)).collect();
        let counted = requests.iter().filter(|request| key.counts(of, request));
        let is_long = |class| key.is_long(class);
        let run = ClassRun::new(outcome, &flows, counted, &key.counted, is_long, key.sampled_every, key.load);
        let values = Values::of_run(&run, matches!(of, Of::All));
        Row { by_size: run.statistics.by_size, ..key.row(name, Seed::One(seed), 1, values) }
    });
    let rows = rows.collect();
    (requests, rows)
}

/// Flows of one run, and when it ended.
#[derive(Clone, Copy, Debug)]
pub struct RunFlows<'a> {
    /// All flows.
    pub flows: &'a [FlowRecord],
    /// Their groups.
    pub requests: &'a [Request],
    /// What was not delivered took at least until then.
    pub ended_at: Time,
}

/// Rows that pool the runs of one grid point and scheme: `rows` are those of the single runs, `runs` their flows.
pub fn pooled_rows(key: &Key, rows: &[Vec<Row>], runs: &[RunFlows<'_>]) -> Vec<Row> {
    let pooled = key.row_classes().map(|(of, name)| {
        let single = rows.iter().filter_map(|run| run.iter().find(|row| row.class == name));
        let single: Vec<&Values> = single.map(|row| &row.values).collect();
        let flows = runs.iter().flat_map(|run| run.flows.iter().map(|flow| (flow, run.ended_at)));
        let requests = runs.iter().flat_map(|run| run.requests.iter().map(|request| (request, run.ended_at)));
        let series = runs.iter().map(|run| {
            let passing = run.flows.iter().filter(|flow| of.has(flow) && !key.is_long(flow.class));
            backlog::series(passing, &key.counted, run.ended_at)
        });
        // Of the runs that have enough flows.
        let series: Vec<backlog::Series> = series.flatten().collect();
        let statistics = FlowStatistics::new(
            flows.filter(|(flow, _)| of.has(flow) && key.counted.contains(&flow.start)),
            requests.filter(|(request, _)| key.counts(of, request)),
            backlog::trend(&series),
        );
        let values = Values::pooled(&statistics, &single);
        let ci95 = Some(intervals(&values, &single));
        let row = key.row(name, Seed::Pooled(ALL.to_owned()), single.len(), values);
        Row { ci95, by_size: statistics.by_size, ..row }
    });
    pooled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{metrics::statistics::Interval, scenario::SizeRange};
    use incast_sim::outcome::{RateSample, Totals};
    use incast_units::Bytes;
    use proptest::{collection::vec, prelude::*};

    fn key() -> Key {
        Key {
            scheme: "dctcp".into(),
            grid: Map::new(),
            classes: vec!["a".into(), "b".into()],
            long: vec![false, false],
            sizes: Vec::new(),
            counted: Time::from_us(10)..Time::from_us(100),
            sampled_every: None,
            load: None,
        }
    }

    fn flow(class: u16, start: u64, fct: Option<u64>) -> FlowRecord {
        FlowRecord {
            class,
            bytes: 1000,
            delivered_bytes: if fct.is_some() { 1000 } else { 500 },
            start: Time::from_us(start),
            delivered: fct.map(|fct| Time::from_us(start + fct)),
            ideal: Some(Time::from_us(2)),
            request: incast_sim::FlowSpec::NO_REQUEST,
            ..FlowRecord::default()
        }
    }

    fn outcome(flows: Vec<FlowRecord>) -> Outcome {
        let totals = Totals { packet_hops: 100, drops: 3, ..Totals::default() };
        Outcome { flows, totals, ended_at: Time::from_us(1000), ..Outcome::default() }
    }

    #[test]
    fn only_flows_between_warmup_and_duration_count() {
        let all = outcome(vec![
            flow(0, 9, Some(4)),
            flow(0, 10, Some(4)),
            flow(1, 99, None),
            flow(1, 50, Some(6)),
            flow(0, 100, Some(4)),
        ]);
        let (_, rows) = measure(&key(), 1, &all);
        assert_eq!(
            rows.iter().map(|row| (row.class.as_str(), row.flows(), row.completed())).collect::<Vec<_>>(),
            [("a", 1, 1), ("b", 2, 1), ("all", 3, 2)]
        );
        assert_eq!((rows[0].number("fct_us.mean"), rows[0].number("slowdown.p99")), (Some(4.0), Some(2.0)));
        assert_eq!((rows[1].number("fct_us.max"), rows[1].bound("fct_us.max")), (None, Some(901.0)));
        assert_eq!(
            (rows[1].number("slowdown.mean"), rows[1].bound("slowdown.mean")),
            (None, Some((3.0 + 450.5) / 2.0))
        );
        assert_eq!((rows[0].count("drops"), rows[2].count("drops")), (None, Some(3)));
        // 2,500 bytes in 990 us.
        assert!((rows[2].number("goodput_gbps").expect("measured") - 2500.0 * 8.0 / 990e3).abs() < 1e-12);
    }

    #[test]
    fn sizes_have_rows_of_their_own() {
        let sizes = |class: u16, name: &str, over: Option<u64>, upto: Option<u64>| {
            let range =
                SizeRange { name: name.into(), class: None, over: over.map(Bytes::new), upto: upto.map(Bytes::new) };
            SizeRow { name: name.into(), class, range }
        };
        let short = |class, name| sizes(class, name, None, Some(1000));
        let rows = vec![short(0, "a short"), short(1, "b short"), sizes(1, "long", Some(1000), None)];
        let key = Key { sizes: rows, ..key() };
        let mut large = flow(1, 20, Some(50));
        large.bytes = 1001;
        let (_, rows) = measure(&key, 1, &outcome(vec![flow(0, 20, Some(4)), flow(1, 20, Some(6)), large]));
        let found: Vec<_> =
            rows.iter().map(|row| (row.class.as_str(), row.flows(), row.number("fct_us.mean"))).collect();
        let expected = [
            ("a", 1, 4.0),
            ("b", 2, 28.0),
            ("a short", 1, 4.0),
            ("b short", 1, 6.0),
            ("long", 1, 50.0),
            ("all", 3, 20.0),
        ];
        assert_eq!(found, expected.map(|(class, flows, mean)| (class, flows, Some(mean))));
        assert!(rows[..5].iter().all(|row| row.number("drops").is_none()));
    }

    #[test]
    fn pooling_takes_all_flows_and_adds_up() {
        let runs: Vec<Outcome> =
            [[4, 6], [8, 10]].map(|fct| outcome(fct.map(|fct| flow(0, 20, Some(fct))).to_vec())).to_vec();
        let rows: Vec<Vec<Row>> =
            runs.iter().enumerate().map(|(seed, run)| measure(&key(), seed as u64, run).1).collect();
        let flows: Vec<RunFlows<'_>> =
            runs.iter().map(|run| RunFlows { flows: &run.flows, requests: &[], ended_at: run.ended_at }).collect();
        let pooled = pooled_rows(&key(), &rows, &flows);
        let all = pooled.last().expect("a row for all classes");
        assert!(all.is_pooled());
        assert_eq!(
            (all.flows(), all.number("fct_us.mean"), all.number("fct_us.p50"), all.count("drops")),
            (4, Some(7.0), Some(6.0), Some(6))
        );
        let Interval(low, high) = all.interval("fct_us.mean").expect("two seeds");
        // By a factor either way.
        assert!(low > 0.0 && (low * high - 49.0).abs() < 1e-9, "{low} {high}");
        assert_eq!(all.interval("max_queue_bytes"), None, "the largest of two seeds says nothing of that of three");
        assert_eq!(all.interval("drops"), Some(Interval(6.0, 6.0)));
        assert_eq!(pooled[1].flows(), 0);
    }

    proptest! {
        #[test]
        fn every_interval_contains_its_number(seeds in vec(vec(1_u64..1_000_000, 1..40), 2..8)) {
            let run = |times: &Vec<u64>| outcome(times.iter().map(|fct| flow(0, 20, Some(*fct))).collect());
            let runs: Vec<Outcome> = seeds.iter().map(run).collect();
            let rows: Vec<Vec<Row>> =
                runs.iter().enumerate().map(|(seed, run)| measure(&key(), seed as u64, run).1).collect();
            let flows: Vec<RunFlows<'_>> =
                runs.iter().map(|run| RunFlows { flows: &run.flows, requests: &[], ended_at: run.ended_at }).collect();
            for row in pooled_rows(&key(), &rows, &flows) {
                for (metric, value) in row.values.iter() {
                    let (Some(number), Some(interval)) = (value.number, row.interval(metric.name)) else { continue };
                    prop_assert!(interval.0 >= 0.0 && interval.contains(number.real()), "{} {number:?} {interval:?}", metric.name);
                }
            }
        }
    }

    #[test]
    fn rates_are_those_of_a_class_and_average_over_seeds() {
        let key = Key { sampled_every: Some(Time::from_us(10)), ..key() };
        let run = |gbps: [u64; 2]| {
            let flows = vec![flow(0, 0, None), flow(1, 0, None)]
                .into_iter()
                .zip(0..)
                .map(|(flow, source)| FlowRecord { source, ..flow });
            let rates = [(20, 0), (30, 0), (20, 1)].map(|(us, source)| RateSample {
                time: Time::from_us(us),
                source,
                assigned_bps: gbps[source as usize] * us * 1_000_000_000,
                measured_bps: gbps[source as usize] * 1_000_000_000,
                window_bytes: u64::MAX,
                estimate: None,
                sequence: 0,
            });
            Outcome { rates: rates.to_vec(), ..outcome(flows.collect()) }
        };
        let runs = [run([1, 2]), run([3, 2])];
        let rows: Vec<Vec<Row>> =
            runs.iter().enumerate().map(|(seed, run)| measure(&key, seed as u64, run).1).collect();
        let of =
            |rows: &[Row], metric: &str| -> Vec<Option<f64>> { rows.iter().map(|row| row.number(metric)).collect() };
        assert_eq!(of(&rows[0], "assigned_gbps.min"), [Some(20.0), Some(40.0), Some(30.0)]);
        assert_eq!(of(&rows[0], "assigned_gbps.mean"), [Some(25.0), Some(40.0), Some(45.0)]);
        assert_eq!(of(&rows[0], "measured_gbps.min"), [Some(1.0), Some(2.0), Some(1.0)]);
        assert_eq!(of(&rows[0], "measured_gbps.mean"), [Some(1.0), Some(2.0), Some(2.0)]);
        let flows = runs.each_ref().map(|run| RunFlows { flows: &run.flows, requests: &[], ended_at: run.ended_at });
        let pooled = pooled_rows(&key, &rows, &flows);
        assert_eq!(of(&pooled, "assigned_gbps.min"), [Some(40.0), Some(40.0), Some(60.0)]);
        let interval = pooled[0].interval("measured_gbps.min").expect("two seeds");
        assert!(interval.contains(2.0) && interval.0 < 1.0, "{interval:?}");
        let unsampled = measure(&Key { sampled_every: None, ..key }, 1, &runs[0]).1;
        assert_eq!(of(&unsampled, "assigned_gbps.min"), [None; 3]);
    }

    #[test]
    fn rows_survive_the_way_to_the_file_and_back() {
        let (_, rows) = measure(&key(), 3, &outcome(vec![flow(0, 20, Some(5)), flow(1, 30, None)]));
        let text = serde_json::to_string(&rows).expect("written");
        assert_eq!(serde_json::from_str::<Vec<Row>>(&text).expect("read"), rows);
        assert!(text.contains("\"seed\":3"));
    }
}
