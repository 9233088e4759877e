//! The scenario file of an import: every value with the key that it comes from.

use super::{
    Inputs, Simulation,
    config::{Config, Mode, Red},
};
use crate::import::{ImportError, Names, page::Page};
use incast_lab::scenario::document::profile::{HPCC_LINEAGE, HPCC_PFC};
use incast_units::{Bytes, Time};

/// Writes it.
///
/// # Errors
/// A link that goes down does not exist.
pub fn write(
    simulation: &Simulation,
    inputs: &Inputs<'_>,
    names: &Names,
    warnings: &mut Vec<String>,
) -> Result<String, ImportError> {
    let Simulation { config, origin, flows, .. } = simulation;
    let mut page = Page::default();
    page.line(format_args!(
        "# Imported from {}, {} and {} of HPCC's ns-3 simulator. Behind a value is the key that it comes from.",
        inputs.topology.name(),
        inputs.flows.name(),
        inputs.config.name()
    ));
    page.text("name", &names.name, "");
    let last = flows.iter().map(|flow| flow.start).max().unwrap_or(*origin) - origin;
    let stop = config.simulator_stop_time - origin;
    let duration = Time::from_ns((last + 1).min(stop));
    page.text("duration", duration, "the last flow starts before");
    page.text("drain", Time::from_ns(stop).saturating_sub(duration), "SIMULATOR_STOP_TIME");
    page.text("profile", HPCC_LINEAGE, "whole nanoseconds, the peer's frames");

    page.table("[topology]");
    page.text("kind", "file", "");
    page.path(&names.topology(), "TOPOLOGY_FILE");

    switch(&mut page, simulation);

    page.table("[host]");
    page.text("mtu", Bytes::new(config.packet_payload_size), "PACKET_PAYLOAD_SIZE");
    page.key("ack_every", 1, "the peer acknowledges every packet whatever L2_ACK_INTERVAL is");
    if config.enable_irn {
        page.text("recovery", "selective-repeat", "ENABLE_IRN");
        page.text("rto_min", "320us", "the peer's IrnRtoHigh");
    } else {
        page.text("recovery", "go-back-n", "");
        page.text("rto_min", "10ms", "the peer has no timeout: a flow whose last packet is lost hangs");
    }

    page.table("[[workload]]");
    page.text("class", "background", "");
    page.text("kind", "trace", "");
    page.path(&names.flows(), "FLOW_FILE");

    page.table("[[scheme]]");
    scheme(&mut page, simulation, inputs, warnings);

    if let Some(down) = config.link_down {
        let [a, b] = down.ends;
        let joined = simulation.topology.links.iter().any(|link| link.ends == [a, b] || link.ends == [b, a]);
        if !joined {
            return Err(inputs.config.error(down.line, format!("LINK_DOWN: no link joins {a} and {b}")));
        }
        page.table("[[event]]");
        let start = Time::from_ns(config.flows_from - origin);
        page.text("at", down.after.saturating_add(start), "LINK_DOWN");
        let [a, b] = down.ends.map(|end| simulation.topology.name(end));
        page.text("link_down", format_args!("{a}-{b}"), "LINK_DOWN");
    }

    page.table("[measure]");
    page.key(
        "fct_txt",
        format_args!("{{ origin = \"{}\" }}", Time::from_ns(*origin)),
        "FCT_OUTPUT_FILE: each run writes fct.txt",
    );
    Ok(page.finish())
}

fn switch(page: &mut Page, simulation: &Simulation) {
    let Simulation { config, .. } = simulation;
    page.table("[switch]");
    buffer(page, config);
    match (config.enable_qcn, config.cc_mode.has_marks()) {
        (true, true) => {
            let tables = config.red.iter().map(red).collect::<Vec<_>>().join(", ");
            page.key(
                "ecn",
                format_args!("{{ kind = \"red-by-rate\", rates = [{tables}] }}"),
                "KMIN_MAP, KMAX_MAP, PMAX_MAP",
            );
            page.text("ecn_at", "dequeue", "");
        }
        (true, false) => page.text("ecn", "off", "the law does not look at marks"),
        (false, _) => page.text("ecn", "off", "ENABLE_QCN 0"),
    }
    page.key("priorities", 1, "data and acknowledgements share a queue");
    if simulation.paths.is_some() {
        page.text("load_balancing", "source-routed", "the paths of the trace");
    } else {
        page.text("load_balancing", "ecmp", "the peer hashes with another function");
    }
    page.text("ties", "arrivals-first", "the order of the peer's list of events");
}

/// Memory of the switches, and what keeps it from overflowing.
fn buffer(page: &mut Page, config: &Config) {
    page.key("buffer", format_args!("{{ total = \"{}\" }}", Bytes::new(config.buffer_size)), "BUFFER_SIZE");
    if config.enable_pfc {
        page.key("pfc", HPCC_PFC, "the peer's, which takes any BUFFER_SIZE");
    } else {
        page.key("pfc", false, "ENABLE_PFC");
    }
}

fn red(red: &Red) -> String {
    // Without a ramp there is a step at Kmax.
    let (min, p) = if red.p > 0.0 { (red.min, red.p) } else { (red.max, 1.0) };
    format!(
        "{{ rate = \"{}\", min = \"{}\", max = \"{}\", p = {p:?} }}",
        red.rate,
        Bytes::new(min),
        Bytes::new(red.max)
    )
}

/// The law and its parameters.
fn scheme(page: &mut Page, simulation: &Simulation, inputs: &Inputs<'_>, warnings: &mut Vec<String>) {
    let Simulation { config, base_rtt, window, .. } = simulation;
    let law = match config.cc_mode {
        Mode::Dcqcn => "dcqcn",
        Mode::Hpcc => "hpcc",
        Mode::Timely => "timely",
        Mode::Dctcp => "dctcp-rate",
        Mode::Uncontrolled => return uncontrolled(page, config, *window),
    };
    page.text("law", law, "CC_MODE");
    page.text("profile", HPCC_LINEAGE, "");
    let add = |page: &mut Page| page.text("additive_increase", config.rate_ai, "RATE_AI");
    match config.cc_mode {
        Mode::Dcqcn => {
            page.key("gain", format_args!("{:?}", config.ewma_gain), "EWMA_GAIN");
            page.text("alpha_timer", config.alpha_resume_interval, "ALPHA_RESUME_INTERVAL");
            page.text("decrease_timer", config.rate_decrease_interval, "RATE_DECREASE_INTERVAL");
            page.text("increase_timer", config.rp_timer, "RP_TIMER");
            page.key("fast_recovery", config.fast_recovery_times, "FAST_RECOVERY_TIMES");
            add(page);
            page.text("hyper_increase", config.rate_hai, "RATE_HAI");
            let clamp = if config.clamp_target_rate { "always" } else { "after-increase" };
            page.text("clamp_target", clamp, "CLAMP_TARGET_RATE");
        }
        Mode::Hpcc => {
            page.key("target", format_args!("{:?}", config.u_target), "U_TARGET");
            page.key("max_stage", config.mi_thresh, "MI_THRESH");
            page.text("base_rtt", base_rtt, "T, from the topology");
            add(page);
            page.key("fast_react", config.fast_react, "FAST_REACT");
            page.key("int_multiplier", config.int_multi, "INT_MULTI");
        }
        Mode::Timely => {
            add(page);
            let steps = config.rate_hai.as_f64() / config.rate_ai.as_f64();
            if steps < 1.0 {
                warnings.push(inputs.config.warning(0, "RATE_HAI is below RATE_AI: RATE_AI is taken for both"));
            }
            page.key("hyper_steps", format_args!("{:?}", steps.max(1.0)), "RATE_HAI / RATE_AI");
        }
        Mode::Dctcp => {
            page.key("gain", format_args!("{:?}", config.ewma_gain), "EWMA_GAIN");
            page.text("additive_increase", config.dctcp_rate_ai, "DCTCP_RATE_AI");
        }
        // It has returned.
        Mode::Uncontrolled => {}
    }
    page.text("min_rate", config.min_rate, "MIN_RATE");
    let in_flight = match (config.has_win, config.var_win) {
        // IRN has at most a BDP in flight, with a window or without.
        (false, _) if config.enable_irn => "bdp",
        (false, _) => "unlimited",
        (true, false) => "bdp",
        (true, true) => "rate-bdp",
    };
    if config.cc_mode != Mode::Hpcc {
        let from = if config.enable_irn { "HAS_WIN, VAR_WIN, ENABLE_IRN" } else { "HAS_WIN, VAR_WIN" };
        page.text("in_flight", in_flight, from);
    } else if in_flight != "rate-bdp" {
        let message = "HAS_WIN, VAR_WIN: HPCC without a window that follows its rate is not supported";
        warnings.push(inputs.config.warning(0, format!("{message}; here it follows")));
    }
    if config.has_win || config.enable_irn {
        page.text("window", window, "T and the topology");
    }
}

/// Senders that react to nothing. astra-sim/astra-network-ns3 has no reaction for mode 12 (rdma-hw.cc): the rate stays
/// that of the NIC, and so does a window that follows the rate.
fn uncontrolled(page: &mut Page, config: &Config, window: Bytes) {
    page.line(
        "# Assumed of mode 12: no reaction to anything, as in astra-sim's and SimAI's fork; line rate at all times.",
    );
    if !config.has_win && !config.enable_irn {
        page.text("law", "constant-rate", "CC_MODE 12 with HAS_WIN 0: line rate, no window");
        return;
    }
    page.text("law", "constant-window", "CC_MODE 12: no congestion control");
    let packet = config.packet_payload_size;
    let whole = Bytes::new(window.get().div_ceil(packet) * packet);
    let from = if config.enable_irn { "ENABLE_IRN" } else { "HAS_WIN" };
    page.text(
        "window",
        whole,
        &format!("{from}: T and the topology, in whole packets, as one leaves while less than the window is in flight"),
    );
}
