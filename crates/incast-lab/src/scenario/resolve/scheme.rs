//! `[[scheme]]` to switches, hosts and classes.

use super::{
    super::{
        document::{
            Document,
            host::{Host, HostProfile},
            profile::{self, HPCC_LINEAGE, Profile},
            scheme::{self as document, Scheme},
            switch::Switch,
        },
        tree::{
            de,
            error::{Problem, list},
            nearest::nearest,
            node::{Node, empty, inline},
            place::{Step, keys},
        },
    },
    agent, credits, degenerate,
    files::Files,
    frames, host, marks,
    nominal::nominal,
    parameters::{given_parameters, parameter_problem, void_parameters},
    pfc, requirements,
    resolved::Resolved,
    switches,
    traffic::Traffic,
    trim, underlay,
};
use incast_cc::{
    Path,
    law::{Acknowledges, LawInfo, Recovery, SizeClass},
    parameters::Raw,
    registry::{LAWS, LawParameters, Scheduler},
};
use incast_sim::{
    Fabric,
    config::{self, ClassConfig, Echo, Ecn, NotEct, SwitchConfig, Wire},
    pfc_rules,
    topology::Topology,
};
use incast_units::Time;
use std::sync::Arc;

/// The scenario around a scheme.
#[derive(Debug)]
pub struct Context<'a> {
    /// The document.
    pub document: &'a Document,
    /// The document with the places of its values.
    pub root: &'a Node,
    /// `[host]` as it is written, without what profiles fill in.
    pub host: Option<&'a Node>,
    /// The fabric.
    pub topology: &'a Arc<Topology>,
    /// The traffic.
    pub traffic: &'a Traffic,
}

/// Checks and converts the scheme at `index`.
pub fn resolve(context: &Context<'_>, index: usize, files: &mut Files) -> Result<Resolved, Problem> {
    let scheme = &context.document.scheme[index];
    let written = context.root.get("scheme").and_then(|schemes| schemes.items().get(index));
    let at = |problem: Problem| problem.at(&keys!["scheme", index]);
    // Faults in a merged table are looked up in the merged table, where every value still has its own place.
    let merged = |key: &str| merge(context.root.get(key), written.and_then(|scheme| scheme.get(key)));
    let (switch_node, mut host_node) = (merged("switch"), merge(context.host, written.and_then(|it| it.get("host"))));
    let given_of_host: Vec<String> = host_node.entries().iter().map(|entry| entry.key.clone()).collect();
    if context.document.host.profile == HostProfile::Linux && host_node.text("profile") == Some("standard") {
        let problem = Problem::new(
            "[host] has `profile = \"linux\"`, whose values a scheme cannot take back; allowed is to leave it out there, and give it to the schemes that have it",
        );
        return Err(at(problem.at(&keys!["host", "profile"])));
    }
    profile::fill_host(&mut host_node, profile::lineage(context.root));
    let place = |problem: Problem| {
        let found = match problem.path.first() {
            Some(Step::Key(key)) if key == "switch" => switch_node.origin_of(&problem.path[1..]),
            Some(Step::Key(key)) if key == "host" => host_node.origin_of(&problem.path[1..]),
            _ => return problem,
        };
        Problem { origin: problem.origin.or(Some(found)), ..problem }
    };
    let switch_table: Switch = de::read(&switch_node).map_err(|problem| place(problem.under("switch")))?;
    let host_table: Host = de::read(&host_node).map_err(|problem| place(problem.under("host")))?;

    let law = find_law(&scheme.law).map_err(|problem| at(problem.under("law")))?;
    let mtu = host::mtu(&host_table).map_err(place)?;
    let wire = context.document.wire;
    let format = frames::format(law, context.document.profile, host_table.frames.as_ref()).map_err(place)?;
    let network = files.path(context.topology, mtu, host_table.rto_min, &format, wire.gap);
    let switch =
        switches::resolve(&switch_table, context.topology, &network, format.data(mtu), files).map_err(place)?;
    let mut host = host::resolve(&host_table, switch.load_balancing, &network, context.topology).map_err(place)?;

    for (class, _) in &scheme.by_class {
        if !context.traffic.classes.contains(class) {
            let names = context.traffic.classes.iter().map(String::as_str);
            let problem = Problem::unknown(format!("there is no class {class:?}"), class, names);
            return Err(at(problem.at(&keys!["by_class", class.as_str()])));
        }
    }
    let common = Common { context, scheme, switch: &switch, host: &host_table, mtu, wire };
    let (mut classes, mut receivers) = (Vec::new(), Vec::new());
    for name in &context.traffic.classes {
        let refinement = scheme.by_class.iter().find(|(class, _)| class == name).map(|(_, refinement)| refinement);
        let place = match refinement {
            Some(_) => vec!["by_class".into(), Step::from(name.as_str())],
            None => Vec::new(),
        };
        let class = class_config(&common, refinement, name, files);
        let (class, receiver) = class.map_err(|problem| at(problem.at(&place)))?;
        classes.push(class);
        receivers.push(receiver);
    }
    host.schedulers = schedulers(&mut classes, receivers);
    let beside = join_priorities(scheme, &mut classes);
    let fabric = Fabric { topology: context.topology, switch: &switch, host: &host, classes: &classes, wire };
    pfc::check(fabric).map_err(place)?;
    credits::check(fabric).map_err(place)?;
    pfc::check_channels(fabric).map_err(place)?;
    let mut footnotes = footnotes(written, context.root);
    footnotes.extend(agent::footnotes(scheme, &switch.agent, &classes));
    footnotes.extend(beside);
    let warmup = context.document.warmup;
    let nominal = nominal(context.traffic, context.topology, &classes, mtu, wire, warmup);
    Ok(Resolved {
        name: scheme.name().to_owned(),
        nominal,
        ties: switch_table.ties,
        switch,
        host,
        classes,
        wire,
        path: network,
        merged: (switch_table, host_table),
        given_of_host,
        footnotes,
    })
}

/// The receivers of receiver-driven protocols: classes under one law share them where the receivers' parameters are the
/// same.
fn schedulers(classes: &mut [ClassConfig], receivers: Vec<Scheduler>) -> Vec<Scheduler> {
    let mut schedulers = Vec::new();
    let mut known: Vec<(&str, Vec<(&str, Raw)>)> = Vec::new();
    for (class, scheduler) in classes.iter_mut().zip(receivers) {
        if scheduler.is_none() {
            continue;
        }
        let law = (class.law.info().name, class.law.receiver_values());
        let index = known.iter().position(|other| *other == law).unwrap_or_else(|| {
            known.push(law);
            schedulers.push(scheduler);
            known.len() - 1
        });
        class.scheduler = Some(index as u8);
    }
    schedulers
}

/// Sender-driven classes beside receiver-driven ones have the lowest priority of these, unless a priority is given: at
/// their own default, the highest, their data would go before all that receivers let come, and where switches trim,
/// among the headers. Says which.
fn join_priorities(scheme: &Scheme, classes: &mut [ClassConfig]) -> Vec<String> {
    let driven = classes.iter().filter(|class| class.scheduler.is_some());
    let Some((lowest, law)) = driven.map(|class| (class.priority, class.law.info().name)).max() else {
        return Vec::new();
    };
    let given = |class: &ClassConfig| {
        let refinement = scheme.by_class.iter().find(|(name, _)| *name == class.name);
        scheme.priority.is_some() || refinement.is_some_and(|(_, refinement)| refinement.priority.is_some())
    };
    let joins = |class: &ClassConfig| class.scheduler.is_none() && class.priority < lowest && !given(class);
    let joining = classes.iter_mut().filter(|class| joins(class));
    let notes = joining.map(|class| {
        class.priority = lowest;
        format!("by_class.{}.priority = {lowest}, that of data under {law}, as none is given", class.name)
    });
    notes.collect()
}

/// The top-level table with the keys of the scheme's own in place of its own.
fn merge(base: Option<&Node>, own: Option<&Node>) -> Node {
    let mut merged = base.cloned().unwrap_or_else(empty);
    if let Some(own) = own {
        // Thresholds of the scheme's own are not those of the common profile.
        if own.get("ecn").is_some() {
            merged.remove("profile");
        }
        for entry in own.entries() {
            merged.insert(&entry.key, entry.node.clone());
        }
    }
    merged
}

/// A law by name.
pub fn find_law(name: &str) -> Result<&'static LawInfo, Problem> {
    let names: Vec<&str> = LAWS.iter().map(|law| law.name).collect();
    LAWS.iter().find(|law| law.name == name).ok_or_else(|| Problem {
        nearest: nearest(name, names.iter().copied()).map(str::to_owned),
        allowed: Some(list(&names, true)),
        ..Problem::new(format!("found {name:?}"))
    })
}

/// What the classes of a scheme have in common.
struct Common<'a> {
    context: &'a Context<'a>,
    scheme: &'a Scheme,
    switch: &'a SwitchConfig,
    host: &'a Host,
    mtu: u32,
    wire: Wire,
}

fn class_config(
    common: &Common<'_>,
    refinement: Option<&document::Refinement>,
    name: &str,
    files: &mut Files,
) -> Result<(ClassConfig, Scheduler), Problem> {
    let Common { context, scheme, switch, host, mtu, wire } = *common;
    let own_law = refinement.and_then(|refinement| refinement.law.as_deref());
    let law = own_law.unwrap_or(&scheme.law);
    let info = find_law(law).map_err(|problem| problem.under("law"))?;
    let mut given = given_parameters(scheme, name, info);
    let of_agent: Vec<_> = agent::sender_defaults(&switch.agent, info, &given).collect();
    given.extend(of_agent);
    if context.document.profile == Profile::HpccLineage
        && given.iter().all(|(key, _)| key != "profile")
        && info.parameters.iter().any(|row| row.name == "profile" && row.allowed.contains(HPCC_LINEAGE))
    {
        given.push(("profile".to_owned(), Raw::Text(HPCC_LINEAGE.to_owned())));
    }
    let format = frames::format(info, context.document.profile, host.frames.as_ref())?;
    let path = files.path(context.topology, mtu, host.rto_min, &format, wire.gap);
    if host.profile == HostProfile::Linux {
        let missing = |key: &str| given.iter().all(|(other, _)| other != key);
        let linux: Vec<_> = LawParameters::linux(law, &path).into_iter().filter(|(key, _)| missing(key)).collect();
        given.extend(linux.into_iter().map(|(key, raw)| (key.to_owned(), raw)));
    }
    files.read_parameters(info.parameters, &mut given)?;
    let resolved = |rate, given: &[(String, Raw)]| match LawParameters::resolve(law, &Path { rate, ..path }, given) {
        Some(Ok(resolved)) => Ok(resolved),
        Some(Err(error)) => {
            let others = if refinement.is_some() { document::REFINEMENT_KEYS } else { document::SCHEME_KEYS };
            Err(parameter_problem(error, &format!("law {}", info.name), others))
        }
        None => Err(find_law(law).err().unwrap_or_else(|| Problem::new("no such law")).under("law")),
    };
    // The sizes of the flows may decide about what is not given.
    let by_traffic = resolved(path.rate, &given)?.by_traffic(&given, &|| sizes_under(context, scheme, law));
    given.extend(by_traffic.into_iter().map(|(key, raw)| (key.to_owned(), raw)));
    let resolved = |rate| resolved(rate, &given);
    let others = context.topology.host_rates().into_iter().filter(|rate| *rate != path.rate);
    let law_at = others.map(|rate| Ok((rate, resolved(rate)?))).collect::<Result<_, Problem>>()?;
    let highest = switch.class_priorities().saturating_sub(1);
    let priority = |key: &str, own: Option<u8>, schemes: Option<u8>| match own.or(schemes) {
        Some(priority) if priority > highest => {
            let allowed = format!("0 to {highest}: switches have {} priorities", switch.class_priorities());
            Err(Problem::value(priority, allowed).under(key))
        }
        given => Ok(given),
    };
    let data = priority("priority", refinement.and_then(|refinement| refinement.priority), scheme.priority)?;
    let acks =
        priority("ack_priority", refinement.and_then(|refinement| refinement.ack_priority), scheme.ack_priority)?;
    let notifications = priority(
        "notification_priority",
        refinement.and_then(|refinement| refinement.notification_priority),
        scheme.notification_priority,
    )?;
    let law = resolved(path.rate)?;
    let transport = law.transport();
    let data = data.unwrap_or(transport.priority);
    if data > highest {
        let needed =
            format!("law {} sends data at priority {data}, and switches have {}", info.name, switch.class_priorities());
        let least = (u32::from(data) + 1) * u32::from(switch.virtual_channels);
        let allowed = format!("switch.priorities = {least} or more, or a lower `priority`");
        return Err(Problem { allowed: Some(allowed), ..Problem::new(needed) }.under("law"));
    }
    let receiver = law.receiver(&path);
    if receiver.priorities() > switch.class_priorities() {
        let (least, have) = (receiver.priorities(), switch.class_priorities());
        let what =
            format!("receivers under law {} assign priorities 0 to {}, and switches have {have}", info.name, least - 1);
        let least = u32::from(least) * u32::from(switch.virtual_channels);
        let allowed = format!("switch.priorities = {least} or more, or fewer by the law's own parameters");
        return Err(Problem { allowed: Some(allowed), ..Problem::new(what) }.under("law"));
    }
    let own = refinement.and_then(|refinement| refinement.underlay.as_ref());
    let underlay = underlay::resolve(own.unwrap_or(&scheme.underlay), &path, files)
        .map_err(|problem| problem.under("underlay"))?;
    let class = ClassConfig {
        name: name.to_owned(),
        recovery: host.recovery.unwrap_or(info.recovery),
        law,
        law_at,
        format,
        priority: data,
        ack_priority: acks.or(transport.control_priority),
        notification_priority: notifications.unwrap_or(0),
        underlay,
        trimmable: transport.trimmable,
        scheduler: None,
    };
    Ok((class, receiver))
}

/// The sizes of the flows that a scheme has under a law, as the time before the measurement shows them: of a trace those
/// of the flows that start within the warm-up.
fn sizes_under(context: &Context<'_>, scheme: &Scheme, law: &str) -> Vec<SizeClass> {
    let is_under = |class: u16| {
        let name = context.traffic.classes.get(usize::from(class));
        let refinement = scheme.by_class.iter().find(|(other, _)| Some(other) == name);
        refinement.and_then(|(_, refinement)| refinement.law.as_deref()).unwrap_or(&scheme.law) == law
    };
    let sizes = context.traffic.generators.iter().flat_map(|generator| generator.sizes_until(context.document.warmup));
    sizes.filter(|(class, _)| is_under(*class)).map(|(_, size)| size).collect()
}

/// What a scheme gives for switches, hosts and priorities that the scenario does not, one line each, without its name.
fn footnotes(written: Option<&Node>, root: &Node) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(written) = written else { return notes };
    for table in ["switch", "host"] {
        for entry in written.get(table).map_or(&[][..], Node::entries) {
            let before = root.get(table).and_then(|base| base.get(&entry.key)).map(inline);
            let after = inline(&entry.node);
            match before {
                Some(before) if before == after => {}
                Some(before) => notes.push(format!("{table}.{} = {after} instead of {before}", entry.key)),
                None => notes.push(format!("{table}.{} = {after}", entry.key)),
            }
        }
    }
    for key in ["priority", "ack_priority", "notification_priority", "by_class", "underlay"] {
        if let Some(node) = written.get(key) {
            notes.push(format!("{key} = {}", inline(node)));
        }
    }
    notes
}

/// Traffic with and without ECN in one queue, of which only the one gives way.
fn not_ect(topology: &Topology, scheme: &Resolved) -> Option<String> {
    let by_agent = agent::decides_marks(scheme);
    let name = &scheme.name;
    let drops = |switch: &SwitchConfig| switch.not_ect == NotEct::Drop;
    let marks = |switch: &SwitchConfig| switch.ecn != Ecn::Off && !by_agent;
    let any = |is_so: &dyn Fn(&SwitchConfig) -> bool| scheme.any_switch(topology, is_so);
    if any(&drops) && !any(&|switch| drops(switch) && marks(switch)) {
        return Some(format!("scheme {name}: switch.not_ect has no effect, as no queue marks packets"));
    }
    let of = |capable: bool| {
        let classes = scheme.classes.iter();
        classes.filter(move |class| class.law.transport().ecn_capable == capable)
    };
    let pair = of(true).flat_map(|with| of(false).map(move |without| (with, without)));
    let (with, without) = pair.into_iter().find(|(with, without)| with.priority == without.priority)?;
    any(&|switch| marks(switch) && !drops(switch)).then(|| {
        format!(
            "scheme {name}: class {} is not ECN-capable and shares a queue with {}, which alone gives way: switch.not_ect = \"drop\" drops its packets where others are marked, as switches do, and priority = … gives it a queue of its own",
            without.name, with.name
        )
    })
}

/// Things that have no effect or look wrong in one scheme.
pub fn warnings(context: &Context<'_>, schemes: &[Arc<Resolved>]) -> Vec<String> {
    let mut warnings = Vec::new();
    let capable = |scheme: &Resolved| scheme.classes.iter().any(|class| class.law.transport().ecn_capable);
    let on = |switch: &Switch| {
        let mut own = switch.overrides.iter().filter_map(|own| own.ecn.as_ref());
        switch.ecn != Ecn::Off || own.any(|ecn| *ecn != Ecn::Off)
    };
    let any = |scheme: &Resolved, is_so: fn(&SwitchConfig) -> bool| scheme.any_switch(context.topology, is_so);
    let drops = |scheme: &Resolved| any(scheme, |switch| switch.not_ect == NotEct::Drop);
    if on(&context.document.switch) && !schemes.iter().any(|scheme| agent::uses_thresholds(scheme) || drops(scheme)) {
        warnings.push("switch.ecn has no effect: no scheme has a law or an agent that uses it".into());
    }
    // What a profile fills in has the place of the profile: the user did not give it.
    let of_profile = context.root.get("profile").map(|profile| profile.origin);
    let gives_ecn_at = |switch: Option<&Node>| {
        let given = switch.and_then(|switch| switch.get("ecn_at"));
        given.is_some_and(|given| Some(given.origin) != of_profile)
    };
    if gives_ecn_at(context.root.get("switch")) && schemes.iter().all(|scheme| agent::decides_marks(scheme)) {
        warnings.push("switch.ecn_at has no effect: the agent of each scheme decides about marks itself".into());
    }
    let tables = context.root.get("scheme").map_or(&[][..], Node::items);
    for (index, (scheme, written)) in schemes.iter().zip(&context.document.scheme).enumerate() {
        let name = &scheme.name;
        let own = tables.get(index).and_then(|scheme| scheme.get("switch"));
        if gives_ecn_at(own) && agent::decides_marks(scheme) {
            warnings
                .push(format!("scheme {name}: switch.ecn_at has no effect, as its agent decides about marks itself"));
        }
        if written.switch.as_ref().is_some_and(on) && !agent::uses_thresholds(scheme) && !drops(scheme) {
            let why = if capable(scheme) { "only its agent marks" } else { "its law does not use ECN" };
            warnings.push(format!("scheme {name}: switch.ecn has no effect, as {why}"));
        }
        warnings.extend(requirements::warnings(context.topology, scheme));
        warnings.extend(not_ect(context.topology, scheme));
        warnings.extend(marks::warnings(context.topology, scheme));
        warnings.extend(agent::warnings(scheme));
        warnings.extend(agent::idle(context.topology, scheme));
        warnings.extend(trim::warnings(scheme));
        warnings.extend(lossy(context, scheme));
        warnings.extend(priorities_without_effect(scheme, written));
        warnings.extend(receiver_driven(scheme));
        warnings.extend(underlay::warnings(context.topology, scheme, written));
        warnings.extend(hosts_without_effect(scheme));
        let host = &scheme.merged.1;
        if !scheme.receivers_notify() {
            if written.notification_priority.is_some() && !scheme.has_notifications() {
                warnings.push(format!(
                    "scheme {name}: no packet has the notification_priority, as its receivers send no notifications"
                ));
            }
            if host.notification_delay > Time::ZERO {
                warnings.push(format!(
                    "scheme {name}: host.notification_delay has no effect, as its receivers send no notifications"
                ));
            }
        }
        if host.path_penalty.is_some() && scheme.switch.load_balancing != config::LoadBalancing::SprayPermutation {
            warnings.push(format!(
                "scheme {name}: host.path_penalty has no effect, as load_balancing is not \"spray-permutation\""
            ));
        }
        if scheme.switch.load_balancing == config::LoadBalancing::SourceRouted && !context.traffic.pinned {
            warnings
                .push(format!("scheme {name}: load_balancing = \"source-routed\" without effect: no flow has a path"));
        }
        warnings.extend(degenerate::warnings(scheme, |class, key| {
            let refinement = written.by_class.iter().find(|(other, _)| *other == class);
            let own = refinement.map_or(&[][..], |(_, refinement)| &refinement.parameters);
            own.iter().chain(&written.parameters).any(|(other, _)| other == key)
        }));
        for class in &scheme.classes {
            let refinement = written.by_class.iter().find(|(other, _)| *other == class.name);
            let own = refinement.map_or(&[][..], |(_, refinement)| &refinement.parameters);
            let shared = if class.law.info().name == written.law { &written.parameters[..] } else { &[] };
            let given = |key: &str| own.iter().chain(shared).any(|(other, _)| other == key);
            let ungranted = agent::ungranted(scheme, given);
            let counts = |key: &str| given(key) && !ungranted.contains(&key);
            let void = void_parameters(class.law.conditions(), &class.law.values(), counts);
            let ungranted = ungranted.iter().map(|key| format!("{key} has no effect, as no switch grants windows"));
            for void in void.into_iter().chain(ungranted) {
                let warning = format!("scheme {name}: {void}");
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        let laws: Vec<&str> = scheme.classes.iter().map(|class| class.law.info().name).collect();
        if !written.parameters.is_empty() && !laws.contains(&written.law.as_str()) {
            warnings.push(format!(
                "scheme {name}: the parameters of {} have no effect, as by_class gives every class another law",
                written.law
            ));
        }
    }
    warnings
}

/// What is given for hosts and does nothing there. What a profile gives is not said.
fn hosts_without_effect(scheme: &Resolved) -> Vec<String> {
    let (name, host) = (&scheme.name, &scheme.merged.1);
    let by_flows = !scheme.classes.is_empty()
        && scheme.classes.iter().all(|class| class.law.transport().acknowledges == Acknowledges::Flows);
    let of_flows = "its receivers acknowledge whole flows and request what is missing";
    let paces = |class: &ClassConfig| class.law.start(&scheme.path, Time::ZERO, 0).pacing_rate().is_some();
    let in_any_order = |class: &ClassConfig| class.law.transport().in_any_order;
    let at_once = "every packet is acknowledged at once";
    let all = [
        ("host.recovery", by_flows && host.recovery.is_some(), of_flows),
        ("host.prr", by_flows && host.prr, of_flows),
        ("host.ack_every", by_flows && host.ack_every > 1, of_flows),
        ("host.ack_delay", by_flows && host.ack_delay.is_some() && host.ack_every > 1, of_flows),
        ("host.prr", !by_flows && host.prr && scheme.classes.iter().all(paces), "its laws pace"),
        (
            "host.recovery = \"rack-tlp\"",
            !by_flows && host.recovery == Some(Recovery::RackTlp) && scheme.classes.iter().all(in_any_order),
            "its packets may arrive in any order",
        ),
        ("host.ack_delay", host.ack_delay.is_some() && host.ack_every == 1, at_once),
        ("host.quick_acks", host.quick_acks > 0 && host.ack_every == 1, at_once),
        ("host.echo", host.echo != Echo::Counts && host.ack_every == 1, at_once),
        (
            "host.handshake",
            host.handshake && scheme.classes.iter().all(|class| class.scheduler.is_some()),
            "connections of receiver-driven laws are open from the start",
        ),
    ];
    let is_given = |key: &str| {
        let key = key.trim_start_matches("host.").split(' ').next().unwrap_or(key);
        host.profile.is_standard() || scheme.given_of_host.iter().any(|given| given == key)
    };
    let void = all.into_iter().filter(|(key, is_void, _)| *is_void && is_given(key));
    let linux = |class: &ClassConfig| LawParameters::linux(class.law.info().name, &scheme.path).is_empty();
    let foreign = scheme.classes.iter().find(|class| !host.profile.is_standard() && linux(class));
    let foreign = foreign.map(|class| {
        let law = class.law.info().name;
        format!("scheme {name}: host.profile = \"linux\" gives {law} the timers and acknowledgements of Linux, which has no {law}")
    });
    foreign
        .into_iter()
        .chain(void.map(|(key, _, why)| format!("scheme {name}: {key} has no effect, as {why}")))
        .collect()
}

/// Priorities that are given and do nothing, as a law assigns them itself.
fn priorities_without_effect(scheme: &Resolved, written: &Scheme) -> Vec<String> {
    let name = &scheme.name;
    let mut warnings = Vec::new();
    for class in scheme.classes.iter().filter(|class| class.law.capabilities().priorities) {
        let refinement = written.by_class.iter().find(|(other, _)| *other == class.name);
        let own = refinement.and_then(|(_, refinement)| refinement.priority);
        if own.or(written.priority).is_some() {
            let law = class.law.info().name;
            let warning =
                format!("scheme {name}: priority is not that of data, as law {law} assigns it packet by packet");
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}

/// Receiver-driven laws in a fabric that they are not made for.
fn receiver_driven(scheme: &Resolved) -> Vec<String> {
    let Resolved { name, classes, .. } = scheme;
    let mut warnings = Vec::new();
    let mut warn = |warning: String| {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    };
    for class in classes {
        let (law, transport) = (class.law.info().name, class.law.transport());
        // A larger number is a lower priority.
        let control = class.ack_priority.filter(|_| transport.control_priority.is_some());
        if let Some(control) = control.filter(|control| *control > class.priority) {
            warn(format!(
                "scheme {name}: control packets of {law} have priority {control} and wait behind its data, which has {}",
                class.priority
            ));
        }
        let others = classes.iter().filter(|other| other.law.info().name == law && other.scheduler != class.scheduler);
        let tags_acks = |other: &&ClassConfig| {
            let scheduler = other.scheduler.and_then(|index| scheme.host.schedulers.get(usize::from(index)));
            scheduler.is_some_and(Scheduler::tags_acks)
        };
        if let Some(other) = others.filter(tags_acks).find(|other| other.name > class.name) {
            warn(format!(
                "scheme {name}: receivers count the senders of {} and {} apart, as their parameters of {law} differ in what receivers go by",
                class.name, other.name
            ));
        }
    }
    warnings
}

/// Laws that do not slow down at a loss.
pub const FOR_LOSSLESS: [&str; 4] = ["dcqcn", "hpcc", "timely", "dctcp-rate"];
/// Laws of hosts' TCP, which slow down at one.
const OF_TCP: [&str; 4] = ["cubic", "dctcp", "bbr", "marimo"];

/// Flow control that protects none of the packets, or not those of some classes.
fn lossy(context: &Context<'_>, scheme: &Resolved) -> Vec<String> {
    let Resolved { name, switch, host, classes, wire, .. } = scheme;
    let Some(pfc) = &switch.pfc else { return Vec::new() };
    let fabric = Fabric { topology: context.topology, switch, host, classes, wire: *wire };
    if pfc_rules(fabric).is_some_and(|rules| rules.lossless == 0) {
        let lossless: Vec<String> =
            (0..8u8).filter(|bit| pfc.priorities & 1 << bit != 0).map(|bit| bit.to_string()).collect();
        return vec![format!(
            "scheme {name}: switch.pfc has no effect: none of its packets has a lossless priority ({})",
            lossless.join(", ")
        )];
    }
    // Beside a lossless class a law of TCP has its lossy priority on purpose.
    let is_lossless = |class: &&ClassConfig| pfc.priorities & 1 << class.priority != 0;
    let is_beside = classes.iter().any(|class| is_lossless(&class));
    let is_meant = |class: &&ClassConfig| is_beside && OF_TCP.contains(&class.law.info().name);
    let lossy = classes.iter().filter(|class| !is_lossless(class) && !is_meant(class));
    lossy
        .map(|class| {
            format!("scheme {name}: the class {} has priority {}, which is not lossless", class.name, class.priority)
        })
        .collect()
}

/// A parameter as TOML.
pub fn toml_value(raw: &Raw) -> toml::Value {
    match raw {
        Raw::Text(text) => toml::Value::String(text.clone()),
        Raw::Integer(number) => toml::Value::Integer(*number),
        Raw::Float(number) => toml::Value::Float(*number),
        Raw::Flag(flag) => toml::Value::Boolean(*flag),
        Raw::File { path, .. } => toml::Value::String(path.clone()),
    }
}
