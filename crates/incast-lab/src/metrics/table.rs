//! The table of metrics, in the order of `summary.json`.

use super::{
    Basis, Better, ClassRun, FlowStatistics, Measure, Metric, Number, Scope, Unit, ns_per_packet_hop,
    statistics::Statistic,
};
use incast_units::Time;

/// Every number of a row. `summary.json` and `summary.csv` have them in this order.
pub const METRICS: &[Metric] = &[
    class("flows", Unit::Number, "flows", "counted flows", Measure::Count(|of| of.flows))
        .detail("flows that start from `warmup` on and before `duration`"),
    class(
        "completed",
        Unit::Number,
        "finished",
        "counted flows that were delivered",
        Measure::Count(|of| of.completed),
    ),
    time("fct_us.mean", "FCT mean", "mean FCT", |of| of.fct_us.mean()),
    time("fct_us.p50", "FCT p50", "median FCT", |of| of.fct_us.percentile(500)),
    time("fct_us.p95", "FCT p95", "95th percentile of FCT", |of| of.fct_us.percentile(950)),
    time("fct_us.p99", "FCT p99", "99th percentile of FCT", |of| of.fct_us.percentile(990)),
    time("fct_us.p999", "FCT p999", "99.9th percentile of FCT", |of| of.fct_us.percentile(999)),
    time("fct_us.max", "FCT max", "largest FCT", |of| of.fct_us.percentile(1000)),
    slowdown("slowdown.mean", "slowdown mean", "mean slowdown", |of| of.slowdown.mean()),
    slowdown("slowdown.p50", "slowdown p50", "median slowdown", |of| of.slowdown.percentile(500)),
    slowdown("slowdown.p95", "slowdown p95", "95th percentile of the slowdown", |of| of.slowdown.percentile(950)),
    slowdown("slowdown.p99", "slowdown p99", "99th percentile of the slowdown", |of| of.slowdown.percentile(990)),
    slowdown("slowdown.p999", "slowdown p999", "99.9th percentile of the slowdown", |of| of.slowdown.percentile(999)),
    slowdown("slowdown.max", "slowdown max", "largest slowdown", |of| of.slowdown.percentile(1000)),
    class("requests", Unit::Number, "requests", "counted requests", Measure::Count(|of| of.rct_us.len() as u64))
        .detail(
            "groups of flows, such as an incast or a call, that start from `warmup` on and before \
             `duration`",
        ),
    time("rct_us.mean", "request mean", "mean request completion", |of| of.rct_us.mean()),
    time("rct_us.p50", "request p50", "median request completion", |of| of.rct_us.percentile(500)),
    time("rct_us.p95", "request p95", "95th percentile of request completion", |of| of.rct_us.percentile(950)),
    time("rct_us.p99", "request p99", "99th percentile of request completion", |of| of.rct_us.percentile(990)),
    time("rct_us.p999", "request p999", "99.9th percentile of request completion", |of| of.rct_us.percentile(999)),
    time("rct_us.max", "request max", "largest request completion", |of| of.rct_us.percentile(1000)),
    class(
        "goodput_gbps",
        Unit::Gbps,
        "goodput",
        "goodput until the last delivery",
        Measure::Mean(|run| run.goodput_gbps()),
    )
    .better(Better::High)
    .detail(
        "payload of counted flows that arrived, over the time from `warmup` to the last \
             delivery among them, or to the end of the run if one did not finish",
    ),
    class(
        "backlog_growth",
        Unit::Number,
        "backlog growth",
        "growth of the backlog over the counted arrivals",
        Measure::Trend(|trend| trend.growth),
    )
    .detail(
        "by how much the payload that waits rises from the first half of the counted arrivals \
             to the second, as a part of its mean, by the line of least squares through eight \
             parts. `null` if fewer than 30 flows start in one of the halves. [Was the run long \
             enough?](reading-results.md#was-the-run-long-enough)",
    ),
    class(
        "backlog_growth_low",
        Unit::Number,
        "backlog growth, at least",
        "lower limit of the growth of the backlog",
        Measure::Trend(|trend| trend.at_least),
    )
    .detail(
        "at a nominal 99%. Above 0.2 the run was too short for a steady state (`too_short` of \
             the row)",
    ),
    class(
        "nominal_load",
        Unit::Number,
        "nominal load",
        "nominal load of the most loaded link",
        Measure::Mean(|run| run.load.map(|load| load.nominal)),
    )
    .fabric_wide()
    .detail(
        "of workloads with a mean rate, spread evenly over equal-cost paths, headers included. \
             `null` if there are only batches, lists of flows and closed loops",
    ),
    class(
        "duration_needed_us",
        Unit::Microseconds,
        "duration needed",
        "duration that the nominal load needs",
        Measure::Mean(|run| run.load?.duration_needed.map(Time::as_us_f64)),
    )
    .fabric_wide()
    .detail(
        "`duration` after which links of this nominal load are close to their steady state, \
             where the scenario's is shorter",
    ),
    class("long_flow_gbps", Unit::Gbps, "long flow", "rate of long flows", Measure::Mean(|run| run.long_flow_gbps()))
        .better(Better::High)
        .detail(
            "mean over all flows of `long` workloads, counted or not: payload that arrived over the \
                  life of the flow",
        ),
    fabric("drops", Unit::Packets, "drops", "packets dropped for lack of buffer", |run| run.totals.drops.into()),
    fabric("lost", Unit::Packets, "lost", "packets lost outside of buffers", |run| run.totals.lost.into())
        .detail("on a lossy link, on a link that went down, or without a route"),
    fabric("trims", Unit::Packets, "trims", "packets trimmed", |run| run.totals.trims.into()),
    fabric("marks.edge", Unit::Packets, "marks edge", "packets marked at ports that lead to hosts", |run| {
        run.totals.marks_edge.into()
    })
    .detail("a packet is marked once"),
    fabric("marks.fabric", Unit::Packets, "marks fabric", "packets marked at all other ports of switches", |run| {
        run.totals.marks_fabric.into()
    }),
    class(
        "retransmitted_bytes",
        Unit::Bytes,
        "retransmitted",
        "payload of counted flows that was retransmitted",
        Measure::Sum(|run| run.sum(|flow| flow.retransmitted_bytes)),
    ),
    class(
        "timeouts",
        Unit::Number,
        "timeouts",
        "retransmission timeouts of counted flows",
        Measure::Sum(|run| run.sum(|flow| u64::from(flow.timeouts))),
    ),
    class(
        "marked_packets",
        Unit::Packets,
        "marked packets",
        "marked packets of counted flows",
        Measure::Sum(|run| run.sum(|flow| u64::from(flow.marked_packets))),
    )
    .detail("data packets that arrived with CE; congestion controls react to these"),
    class(
        "reordered_packets",
        Unit::Packets,
        "reordered packets",
        "reordered packets of counted flows",
        Measure::Sum(|run| run.sum(|flow| u64::from(flow.reordered_packets))),
    )
    .detail("data packets that arrived after one with a later position"),
    class(
        "deflections",
        Unit::Number,
        "deflections",
        "deflections of data packets of counted flows that arrived",
        Measure::Sum(|run| run.sum(|flow| u64::from(flow.deflections))),
    ),
    fabric("pfc_pauses", Unit::Number, "pauses", "pauses by flow control", |run| run.totals.pauses.into())
        .detail("times that a priority of a port, ports of hosts included, was paused or had no credits"),
    fabric("pfc_paused_us", Unit::Microseconds, "paused", "time that ports were paused", |run| {
        run.totals.paused.as_us_f64().into()
    })
    .detail("added up over all ports: the time that at least one of a port's priorities was paused"),
    fabric("pfc_cycles", Unit::Number, "pfc cycles", "cycles of paused queues that wait for each other", |run| {
        run.totals.pfc_cycles.into()
    })
    .detail("as seen when the fabric is searched for [deadlocks](fabric.md)"),
    fabric("pfc_stranded", Unit::Number, "pfc stranded", "pauses without a reason", |run| {
        run.totals.pfc_stranded.into()
    })
    .detail(
        "pauses that lasted for `deadlock_after` although the switch that sent them held no \
             packet of the paused priority, or had sent the resume frame and it was lost",
    ),
    fabric("lossless_drops", Unit::Packets, "lossless drops", "dropped packets of lossless priorities", |run| {
        run.totals.lossless_drops.into()
    })
    .detail(
        "packets that found no headroom, which `drops` counts too. With `strict` flow control a \
                  run that has any fails",
    ),
    class(
        "max_queue_bytes",
        Unit::Bytes,
        "longest queue",
        "longest egress queue",
        Measure::Largest(|run| run.totals.max_queue_bytes),
    )
    .fabric_wide()
    .detail("of any switch port, all its priorities and the packet in service included"),
    class(
        "busiest_link",
        Unit::Number,
        "busiest link",
        "use of the busiest link",
        Measure::Mean(|run| Some(run.busiest_link())),
    )
    .fabric_wide()
    .detail(
        "the largest part of its rate that any link carried in one direction, from the start to \
                  the end of the run: frames without preamble and gap",
    ),
    sampled("assigned_gbps.min", "assigned min", "lowest assigned rate", |run| run.assigned_gbps.min),
    sampled("assigned_gbps.mean", "assigned mean", "mean assigned rate", |run| run.assigned_gbps.mean),
    sampled("measured_gbps.min", "measured min", "lowest measured rate", |run| run.measured_gbps.min)
        .better(Better::High),
    sampled("measured_gbps.mean", "measured mean", "mean measured rate", |run| run.measured_gbps.mean)
        .better(Better::High),
    class("jain", Unit::Number, "jain", "Jain's index", Measure::Mean(|run| run.jain())).better(Better::High).detail(
        "(Σx)²/(nΣx²) of the rates of flows over their lives: of the long flows if there are \
             two, else of counted flows if all have one size, else `null`",
    ),
    class(
        "convergence_us",
        Unit::Microseconds,
        "convergence",
        "time to convergence",
        Measure::Mean(|run| run.convergence(0.95).map(Time::as_us_f64)),
    )
    .from(Basis::EqualRates)
    .better(Better::Low)
    .detail(
        "time until Jain's index of the assigned rates stays at 0.95, with 90% of the link in \
             use",
    ),
    convergence("convergence_rtts.j90", "convergence j90", "round trips to a Jain's index of 0.90", |run| {
        run.convergence_rtts(0.9)
    }),
    convergence("convergence_rtts.j95", "convergence j95", "round trips to a Jain's index of 0.95", |run| {
        run.convergence_rtts(0.95)
    }),
    convergence("convergence_rtts.j99", "convergence j99", "round trips to a Jain's index of 0.99", |run| {
        run.convergence_rtts(0.99)
    }),
    fabric("packet_hops", Unit::Number, "packet hops", "link traversals of data and control packets", |run| {
        run.totals.packet_hops.into()
    }),
    class("cpu_s", Unit::Seconds, "cpu", "CPU time", Measure::Sum(|run| run.cpu_s.into()))
        .of_process()
        .detail("user and system time of the event loop without set-up"),
    class(
        "ns_per_packet_hop",
        Unit::Nanoseconds,
        "per packet hop",
        "CPU time per link traversal",
        Measure::Derived(|row| ns_per_packet_hop(row.number("cpu_s")?, row.count("packet_hops")?)),
    )
    .of_process(),
];

impl Metric {
    const fn detail(self, detail: &'static str) -> Self {
        Self { detail, ..self }
    }
    const fn from(self, basis: Basis) -> Self {
        Self { basis, ..self }
    }
    const fn better(self, better: Better) -> Self {
        Self { better, ..self }
    }
    const fn fabric_wide(self) -> Self {
        Self { scope: Scope::Fabric, ..self }
    }
    const fn of_process(self) -> Self {
        Self { scope: Scope::Process, ..self }
    }
}

/// A metric of the flows of a class.
const fn class(name: &'static str, unit: Unit, heading: &'static str, title: &'static str, measure: Measure) -> Metric {
    Metric {
        name,
        unit,
        scope: Scope::Class,
        basis: Basis::Run,
        heading,
        title,
        detail: "",
        better: Better::Neither,
        measure,
    }
}

/// A statistic of times of flows or requests.
const fn time(
    name: &'static str,
    heading: &'static str,
    title: &'static str,
    of: fn(&FlowStatistics) -> Statistic,
) -> Metric {
    class(name, Unit::Microseconds, heading, title, Measure::Statistic(of)).better(Better::Low)
}

/// A statistic of slowdowns.
const fn slowdown(
    name: &'static str,
    heading: &'static str,
    title: &'static str,
    of: fn(&FlowStatistics) -> Statistic,
) -> Metric {
    class(name, Unit::Ratio, heading, title, Measure::Statistic(of)).better(Better::Low)
}

/// A counter of the fabric.
const fn fabric(
    name: &'static str,
    unit: Unit,
    heading: &'static str,
    title: &'static str,
    of: fn(&ClassRun<'_>) -> Number,
) -> Metric {
    class(name, unit, heading, title, Measure::Sum(of)).fabric_wide()
}

/// A number of the sampled rates, added up over the flows of the class.
const fn sampled(
    name: &'static str,
    heading: &'static str,
    title: &'static str,
    of: fn(&ClassRun<'_>) -> Option<f64>,
) -> Metric {
    class(name, Unit::Gbps, heading, title, Measure::Mean(of)).from(Basis::Rates)
}

/// Time to convergence in base round trips.
const fn convergence(
    name: &'static str,
    heading: &'static str,
    title: &'static str,
    of: fn(&ClassRun<'_>) -> Option<f64>,
) -> Metric {
    class(name, Unit::RoundTrips, heading, title, Measure::Mean(of)).from(Basis::EqualRates).better(Better::Low)
}
