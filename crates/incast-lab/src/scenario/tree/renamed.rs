//! Names of earlier versions. A message about an old name has the new one.

/// Keys and values of scenarios: the old name and the new one. An old name is recognised where the new one is allowed.
const RENAMED: &[(&str, &str)] = &[
    // profile
    ("faithful", "standard"),
    // [host]
    ("answers_first", "control_first"),
    ("answer_delay", "response_delay"),
    ("smallest", "min_size"),
    // [switch] load_balancing
    ("permuted", "spray-permutation"),
    ("pinned", "source-routed"),
    // dctcp-rate, timely, dcqcn, hpcc
    ("repace", "update_gap"),
    ("grant_quiet", "grant_timeout"),
    ("quiet", "timeout"),
    ("first_notification", "rate_on_first_cnp"),
    ("telemetry", "int"),
    ("telemetry_multiple", "int_multiplier"),
    // dasr
    ("counts", "count"),
    ("heard", "recent"),
    ("tell", "advertise"),
    ("tell_interval", "advertise_interval"),
    ("cut_of", "cut_rate"),
    // ndp
    ("repeat_after", "pull_timeout"),
    // polo
    ("d_floor", "d_min"),
    ("d_most", "d_max"),
    ("most_active", "max_active"),
    ("crowded", "active-limit"),
    ("repair", "recovery2_scope"),
    ("repair_after", "recovery2_timeout"),
    ("wasted_optimisation", "wasted_packet_optimization"),
    // homa
    ("own", "separate"),
    ("place", "original"),
    // phost
    ("waits", "timeouts"),
    // mercury
    ("notified", "notify"),
    ("sharing", "window_sharing"),
    ("trigger", "cnp_trigger"),
    // iofd
    ("max_moves", "max_reroutes"),
    ("guard", "flow_gap"),
    // pacc
    ("least", "min_probability"),
    ("only_above", "only_above_reference"),
    // tcd
    ("drained", "drained_threshold"),
    ("growth", "growth_threshold"),
];

/// What a name of an earlier version is called now, if that is among the `allowed` names.
pub fn renamed<'a>(old: &str, allowed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    allowed.into_iter().find(|new| RENAMED.contains(&(old, *new)))
}

#[cfg(test)]
pub(crate) fn all() -> &'static [(&'static str, &'static str)] {
    RENAMED
}
