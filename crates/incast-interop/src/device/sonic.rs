//! SONiC's CONFIG_DB, of one switch.
//!
//! Names and meaning of tables and fields: the YANG models of sonic-buildimage and `doc/swss-schema.md` of sonic-swss.
//! Thresholds of WRED and ECN are one (`orchagent/qosorch.cpp`), compared with the queue of the moment, and above the upper
//! one every packet is marked.

use super::{
    Refused, Wanted, Written,
    database::{Database, MOST_BYTES},
    ports::{Class, Port},
    queues::ramp,
    rounding::{EXPONENTS, exponent, percent, power, weights},
    switch::{Ports, Switch, short},
    trimming::{self, Trimmed},
};
use incast_cc::marking::Marking;
use incast_sim::{
    config::{Alpha, Buffer, Limit, MarkAt, NotEct, Scheduling, Threshold},
    fabric::trim::HEADERS,
    flow_control::pfc::{Bounds, Limits},
};

/// What `pfcwd start_default` of sonic-utilities sets, in milliseconds, on up to 32 ports.
const WATCHDOG: &str = "200";

/// The tables for switches of a kind whose device has these ports. `classes` are the queues of the priorities in use. With
/// `marks_only` those of marks alone: buffers, maps and schedulers stay as the device has them.
///
/// # Errors
/// What a SONiC switch cannot be told.
pub fn write(
    wanted: &Wanted,
    switch: &Switch,
    ports: &[Port],
    classes: &[Class],
    marks_only: bool,
) -> Result<Written, Refused> {
    let mut refused = switch.inexpressible(wanted);
    let device = switch.assigned(ports, &mut refused);
    refused.extend(ports.iter().find(|port| !is_name(&port.name)).map(|port| {
        format!("--ports: {:?} is no port of SONiC, whose names are Ethernet0, Ethernet4 and so on (`show interfaces status`)", port.name)
    }));
    let trimmed = if marks_only { None } else { trimming::trimmed(wanted, switch, classes, &device, &mut refused) };
    let buffer = match &trimmed {
        _ if marks_only => (u64::MAX, 1.0, 0),
        Some(trimmed) => (trimmed.total, 1.0, 0),
        None => {
            refused.extend(alphas(switch));
            switch.shared_buffer().map_err(|why| refused.push(why)).unwrap_or_default()
        }
    };
    for (kind, _) in &device {
        let marks = ramp(kind.marking).map_or(0, |(_, max, _)| max);
        if marks > MOST_BYTES {
            refused.push(format!("switch.ecn: {marks} B at ports of {}, allowed is at most {MOST_BYTES} B", kind.rate));
        }
    }
    let lossless = u64::from(switch.lossless.count_ones());
    let of_kind = |(kind, found): &(&Ports, Vec<&Port>)| {
        kind.limits.map_or(0, |limits| limits.own()).saturating_mul(found.len() as u64 * lossless)
    };
    let own = device.iter().map(of_kind).fold(0u64, u64::saturating_add);
    if own > buffer.0 && refused.is_empty() {
        refused.push(format!(
            "--ports: reserves and headroom of so many ports come to {own} B, and switch.buffer.total is {} B",
            buffer.0
        ));
    }
    if marks_only && device.iter().all(|(kind, _)| kind.marking == Marking::Off) {
        refused.push("--marks-only: no port of this switch marks; switch.ecn is off".into());
    }
    if !refused.is_empty() {
        return Err(Refused(refused));
    }
    let mut writer = Writer { switch, classes, database: Database::default(), notes: Vec::new() };
    if marks_only {
        for (kind, ports) in &device {
            writer.marks(kind);
            ports.iter().for_each(|port| writer.marked_queues(kind, &port.name));
        }
        writer.notes.push(format!(
            "only what marks, in queues {} of these ports; schedulers, buffers and DSCPs are the device's, which may not be those that were simulated",
            list(classes)
        ));
        writer.notes.extend(switch.not_touched(ports));
        writer.remarks(wanted);
        return writer.written();
    }
    writer.maps();
    writer.schedulers();
    let groups = device
        .iter()
        .map(|(kind, found)| kind.limits.map_or(0, group_size).saturating_mul(found.len() as u64 * lossless));
    writer.buffers(buffer, groups.fold(0u64, u64::saturating_add));
    if let Some(trimmed) = &trimmed {
        writer.trimming(trimmed, wanted);
    }
    for (kind, ports) in &device {
        writer.marks(kind);
        writer.headroom(kind);
        ports.iter().for_each(|port| writer.port(kind, &port.name));
    }
    writer.watchdog(device.iter().flat_map(|(_, ports)| ports.iter().copied()));
    writer.notes.extend(switch.not_touched(ports));
    writer.remarks(wanted);
    writer.written()
}

/// Numbers of queues.
fn list(classes: &[Class]) -> String {
    let all: Vec<String> = classes.iter().map(|class| class.tc.to_string()).collect();
    all.join(", ")
}

/// Whether SONiC calls a port so. Its YANG models let any text pass; its programs know ports by these beginnings
/// (`sonic-py-common`: those of the front, of the backplane, in band, recirculating).
fn is_name(name: &str) -> bool {
    name.strip_prefix("Ethernet").is_some_and(|rest| {
        let rest = ["-BP", "-IB", "-Rec"].iter().find_map(|kind| rest.strip_prefix(kind)).unwrap_or(rest);
        !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit())
    })
}

/// Alphas that are no power of two within what a device has, nor near one.
fn alphas(switch: &Switch) -> Vec<String> {
    let own = &switch.own;
    let mut refused = Vec::new();
    let alphas = match own.pfc.as_ref().map(|pfc| pfc.threshold) {
        Some(Threshold::Dynamic { alpha: Alpha::Fixed(alpha), .. }) => vec![("switch.pfc.alpha", alpha)],
        _ => Vec::new(),
    };
    let of_buffer = switch.shared_buffer().ok().map(|(_, alpha, _)| ("switch.buffer.alpha", alpha));
    for (key, alpha) in alphas.into_iter().chain(of_buffer) {
        let (least, most) = (power(*EXPONENTS.start()), power(*EXPONENTS.end()));
        if !(least..=most).contains(&alpha) {
            refused.push(format!(
                "{key}: {alpha}, allowed is 2^n with n from {} to {}",
                EXPONENTS.start(),
                EXPONENTS.end()
            ));
        }
    }
    refused
}

/// `size` of a lossless priority group: what it has of its own, headroom included. With fixed thresholds what comes before
/// the headroom is in the pool.
fn group_size(limits: Limits) -> u64 {
    match limits.threshold {
        Bounds::Static { .. } => limits.headroom,
        Bounds::Dynamic { reserve, .. } => reserve.saturating_add(limits.headroom),
    }
}

/// The name of what a queue may hold where switches trim.
fn queue_profile(class: &Class) -> String {
    format!("incast_queue_{}", class.tc)
}

/// The fields of a profile of WRED, the same for all colours.
fn wred(min: u64, max: u64, percent: u32, drops: bool) -> Vec<(&'static str, String)> {
    let names = [
        ("wred_green_enable", "green_min_threshold", "green_max_threshold", "green_drop_probability"),
        ("wred_yellow_enable", "yellow_min_threshold", "yellow_max_threshold", "yellow_drop_probability"),
        ("wred_red_enable", "red_min_threshold", "red_max_threshold", "red_drop_probability"),
    ];
    let mut fields = vec![("ecn", "ecn_all".to_owned())];
    for (enable, least, most, probability) in names {
        fields.push((enable, drops.to_string()));
        fields.push((least, min.to_string()));
        fields.push((most, max.to_string()));
        fields.push((probability, percent.to_string()));
    }
    fields
}

struct Writer<'a> {
    switch: &'a Switch,
    classes: &'a [Class],
    database: Database,
    notes: Vec<String>,
}

impl Writer<'_> {
    fn set(&mut self, table: &str, key: &str, fields: &[(&str, String)]) {
        self.database.set(table, key, fields);
    }

    /// Lossless classes have a priority group of their own, the others share group 0.
    fn group(&self, class: &Class) -> u8 {
        if self.switch.is_lossless(class) { class.tc } else { 0 }
    }

    /// Values of `DSCP` to traffic classes, and these to queues, groups and priorities of pauses.
    fn maps(&mut self) {
        let Some(lowest) = self.classes.last() else { return };
        // A packet that nobody thought of pauses nobody.
        let is_apart = self.switch.is_lossless(lowest) && lowest.dscp.is_some();
        let others = if is_apart { 0 } else { lowest.tc };
        let tc_of =
            |dscp: u8| self.classes.iter().find(|class| class.dscp == Some(dscp)).map_or(others, |class| class.tc);
        let all: Vec<(String, String)> = (0..64).map(|dscp| (dscp.to_string(), tc_of(dscp).to_string())).collect();
        let apart = is_apart.then(|| ("0".to_owned(), "0".to_owned()));
        let same = self.classes.iter().map(|class| (class.tc.to_string(), class.tc.to_string()));
        let same: Vec<(String, String)> = apart.clone().into_iter().chain(same).collect();
        let groups = self.classes.iter().map(|class| (class.tc.to_string(), self.group(class).to_string()));
        let groups: Vec<(String, String)> = apart.into_iter().chain(groups).collect();
        let lossless: Vec<(String, String)> = self
            .classes
            .iter()
            .filter(|class| self.switch.is_lossless(class))
            .map(|class| (class.tc.to_string(), class.tc.to_string()))
            .collect();
        self.database.set_all("DSCP_TO_TC_MAP", "incast", all);
        self.database.set_all("TC_TO_QUEUE_MAP", "incast", same);
        self.database.set_all("TC_TO_PRIORITY_GROUP_MAP", "incast", groups);
        if !lossless.is_empty() {
            self.database.set_all("MAP_PFC_PRIORITY_TO_QUEUE", "incast", lossless);
        }
        for class in self.classes {
            let kind = if self.switch.is_lossless(class) { "lossless" } else { "lossy" };
            let from = match class.dscp {
                Some(dscp) if class.priority != lowest.priority => format!("DSCP {dscp}"),
                Some(dscp) if is_apart => format!("DSCP {dscp}; what is in no class has queue 0, as the device has it"),
                Some(dscp) if self.classes.len() > 1 => format!("DSCP {dscp} and whatever is in no other class"),
                _ => "all packets".into(),
            };
            self.notes
                .push(format!("priority {} of the scenario is queue {} ({kind}): {from}", class.priority, class.tc));
        }
    }

    /// Which queue sends next.
    fn schedulers(&mut self) {
        let strict = [("type", "STRICT".to_owned())];
        let (first, given) = match &self.switch.own.scheduler {
            Scheduling::Strict => (u8::MAX, &Vec::new()),
            Scheduling::Dwrr { weights, .. } => (0, weights),
            Scheduling::StrictOverDwrr { strict, weights, .. } => (*strict, weights),
        };
        let scaled = weights(given);
        for class in self.classes {
            let index = class.priority.checked_sub(first).map(usize::from);
            let Some((weight, scaled)) = index.and_then(|index| Some((given.get(index)?, scaled.get(index)?))) else {
                self.set("SCHEDULER", "incast_strict", &strict);
                continue;
            };
            self.rounded("switch.scheduler.weights", f64::from(*weight), f64::from(*scaled), weight != scaled);
            let fields = [("type", "DWRR".to_owned()), ("weight", scaled.to_string())];
            self.database.set("SCHEDULER", &format!("incast_dwrr_{}", class.tc), &fields);
        }
    }

    fn scheduler_of(&self, class: &Class) -> String {
        let dwrr = format!("incast_dwrr_{}", class.tc);
        if self.database.has("SCHEDULER", &dwrr) { dwrr } else { "incast_strict".into() }
    }

    /// The pools, and what queues may take of them. `own` is the size of all lossless priority groups of the device.
    fn buffers(&mut self, (total, alpha, reserve): (u64, f64, u64), own: u64) {
        let shared = total.saturating_sub(own);
        for (name, kind, size) in [("incast_ingress", "ingress", shared), ("incast_egress", "egress", total)] {
            let fields = [("type", kind.to_owned()), ("mode", "dynamic".into()), ("size", size.to_string())];
            self.set("BUFFER_POOL", name, &fields);
        }
        let is_given = self.switch.own.buffer != Buffer::Unlimited;
        let from = if is_given { "switch.buffer.total" } else { "what all queues of the device hold together" };
        self.notes.push(format!(
            "BUFFER_POOL: {total} B is {from}, of which {own} B are the device's lossless priority groups' own (size); a device that has less, or sets parts aside, needs its own numbers there and in the scenario"
        ));
        let whole = |pool: &str| [("pool", pool.to_owned()), ("size", "0".into()), ("static_th", total.to_string())];
        let lossy = self.classes.iter().any(|class| !self.switch.is_lossless(class));
        if lossy {
            // Drops are decided where packets leave.
            self.set("BUFFER_PROFILE", "incast_ingress_lossy", &whole("incast_ingress"));
        }
        if lossy && self.switch.own.trim.is_none() {
            let (exponent, is_rounded) = exponent(alpha);
            let fields = [
                ("pool", "incast_egress".to_owned()),
                ("size", reserve.to_string()),
                ("dynamic_th", exponent.to_string()),
            ];
            self.set("BUFFER_PROFILE", "incast_lossy", &fields);
            self.rounded("switch.buffer.alpha", alpha, power(exponent), is_rounded);
        }
        if self.switch.lossless != 0 {
            // Pauses are decided where packets arrive.
            self.set("BUFFER_PROFILE", "incast_egress_lossless", &whole("incast_egress"));
        }
    }

    fn rounded(&mut self, key: &str, wanted: f64, written: f64, is_rounded: bool) {
        if is_rounded {
            let wanted = (wanted * 1e6).round() / 1e6;
            let note =
                format!("{key}: {wanted} in the scenario, {written} on the device (--as-rounded writes it back)");
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// What is trimmed, and where what is left of it goes. Lossy queues have fixed thresholds then.
    fn trimming(&mut self, trimmed: &Trimmed, wanted: &Wanted) {
        let Some(headers) = self.classes.iter().find(|class| class.priority == HEADERS) else { return };
        let fields = |limit: u64, action: &str| {
            [
                ("pool", "incast_egress".to_owned()),
                ("size", "0".into()),
                ("static_th", limit.to_string()),
                ("packet_discard_action", action.into()),
            ]
        };
        for class in self.classes {
            let (limit, action) = match class.priority {
                HEADERS => (trimmed.headers, "drop"),
                _ if trimming::is_trimmable(wanted, class) => (trimmed.queue, "trim"),
                _ => (trimmed.queue, "drop"),
            };
            self.database.set("BUFFER_PROFILE", &queue_profile(class), &fields(limit, action));
        }
        let global = [
            ("size", trimmed.size.to_string()),
            ("dscp_value", headers.dscp.unwrap_or(0).to_string()),
            ("queue_index", headers.tc.to_string()),
        ];
        self.set("SWITCH_TRIMMING", "GLOBAL", &global);
        let trim = self.switch.own.trim.as_ref();
        for (key, limit, bytes) in [
            ("queue", trim.map(|trim| trim.queue), trimmed.queue),
            ("header_queue", trim.and_then(|trim| trim.header_queue), trimmed.headers),
        ] {
            if let Some(Limit::Packets(packets)) = limit {
                self.notes.push(format!(
                    "switch.trim.{key}: {packets} packets in the scenario, {bytes} B on the device (--as-rounded writes it back)"
                ));
            }
        }
        self.notes.push(format!(
            "a queue of data holds {} B, and what it does not admit is cut to {} B and sent from queue {}, which holds {} B",
            trimmed.queue, trimmed.size, headers.tc, trimmed.headers
        ));
        self.notes.extend(trimming::note(trimmed.size));
        self.notes.push(
            "hosts must take a packet with the DSCP of trimmed ones for what is left of another: NDP's and Ultra Ethernet's do, TCP's do not"
                .into(),
        );
    }

    /// When ports of a rate mark.
    fn marks(&mut self, kind: &Ports) {
        let Some((min, max, p)) = ramp(kind.marking) else { return };
        let (percent, is_rounded) = percent(p);
        self.rounded("switch.ecn.p", p, f64::from(percent) / 100.0, is_rounded);
        // What flow control keeps is not dropped.
        let drops = self.switch.own.not_ect == NotEct::Drop;
        let lossy = self.classes.iter().any(|class| !self.switch.is_lossless(class));
        let profiles = [("", lossy, drops), ("_lossless", self.switch.lossless != 0, false)];
        for (suffix, _, drops) in profiles.into_iter().filter(|(_, is_used, _)| *is_used) {
            let name = format!("incast_{}{suffix}", short(kind.rate));
            self.set("WRED_PROFILE", &name, &wred(min, max, percent, drops));
        }
        self.notes.push(format!("WRED_PROFILE of ports of {}: {} B to {} B, {percent}%", kind.rate, min, max));
    }

    /// What ports of a rate hold for a lossless class before and after they pause it.
    fn headroom(&mut self, kind: &Ports) {
        let Some(limits) = kind.limits else { return };
        let Limits { headroom, threshold } = limits;
        // `xoff` is how much of `size` is left when a pause goes out.
        let mut fields = vec![
            ("pool", "incast_ingress".to_owned()),
            ("size", group_size(limits).to_string()),
            ("xoff", headroom.to_string()),
        ];
        match threshold {
            Bounds::Static { xoff, xon } => {
                fields.extend([("static_th", xoff.to_string()), ("xon", xon.to_string())]);
            }
            Bounds::Dynamic { alpha, resume_offset, .. } => {
                let alpha = alpha as f64 / f64::from(1u32 << 20);
                let (exponent, is_rounded) = exponent(alpha);
                self.rounded("switch.pfc.alpha", alpha, power(exponent), is_rounded);
                fields.extend([
                    ("dynamic_th", exponent.to_string()),
                    ("xon", "0".to_owned()),
                    ("xon_offset", resume_offset.to_string()),
                ]);
            }
        }
        self.database.set("BUFFER_PROFILE", &format!("incast_lossless_{}", short(kind.rate)), &fields);
        self.notes.push(format!(
            "headroom of ports of {} (xoff): {headroom} B, for cables of {}, the longest in the scenario; devices react later than its switches, vendors' tables have more",
            kind.rate, kind.delay
        ));
    }

    /// Name of the profile by which a queue marks.
    fn wred_profile(&self, kind: &Ports, class: &Class) -> String {
        let suffix = if self.switch.is_lossless(class) { "_lossless" } else { "" };
        format!("incast_{}{suffix}", short(kind.rate))
    }

    /// By which profile the queues of a port mark, and nothing else.
    fn marked_queues(&mut self, kind: &Ports, name: &str) {
        for class in self.classes.iter().filter(|_| kind.marking != Marking::Off) {
            let fields = [("wred_profile", self.wred_profile(kind, class))];
            self.database.set("QUEUE", &format!("{name}|{}", class.tc), &fields);
        }
    }

    fn written(self) -> Result<Written, Refused> {
        self.database.check().map_err(Refused)?;
        Ok(Written { files: vec![("config_db.json", self.database.text())], notes: self.notes })
    }

    /// The queues and groups of a port.
    fn port(&mut self, kind: &Ports, name: &str) {
        for class in self.classes {
            let queue = format!("{name}|{}", class.tc);
            let mut fields = vec![("scheduler", self.scheduler_of(class))];
            if kind.marking != Marking::Off {
                fields.push(("wred_profile", self.wred_profile(kind, class)));
            }
            self.database.set("QUEUE", &queue, &fields);
            let (egress, ingress) = if self.switch.is_lossless(class) {
                ("incast_egress_lossless".to_owned(), format!("incast_lossless_{}", short(kind.rate)))
            } else if self.switch.own.trim.is_some() {
                (queue_profile(class), "incast_ingress_lossy".to_owned())
            } else {
                ("incast_lossy".to_owned(), "incast_ingress_lossy".to_owned())
            };
            self.database.set("BUFFER_QUEUE", &queue, &[("profile", egress)]);
            self.database.set("BUFFER_PG", &format!("{name}|{}", self.group(class)), &[("profile", ingress)]);
        }
        let map = || "incast".to_owned();
        let mut fields = vec![("dscp_to_tc_map", map()), ("tc_to_queue_map", map()), ("tc_to_pg_map", map())];
        let lossless: Vec<String> = self
            .classes
            .iter()
            .filter(|class| self.switch.is_lossless(class))
            .map(|class| class.tc.to_string())
            .collect();
        if !lossless.is_empty() {
            let list = lossless.join(",");
            fields.push(("pfc_to_queue_map", map()));
            fields.extend([("pfc_enable", list.clone()), ("pfcwd_sw_enable", list)]);
        }
        self.database.set("PORT_QOS_MAP", name, &fields);
    }

    /// What ends a pause that does not.
    fn watchdog<'p>(&mut self, ports: impl Iterator<Item = &'p Port>) {
        if self.switch.lossless == 0 {
            return;
        }
        self.set("PFC_WD", "GLOBAL", &[("POLL_INTERVAL", WATCHDOG.into())]);
        for port in ports {
            let fields = [
                ("action", "drop".to_owned()),
                ("detection_time", WATCHDOG.into()),
                ("restoration_time", WATCHDOG.into()),
            ];
            self.set("PFC_WD", &port.name, &fields);
        }
        self.notes.push(
            "PFC_WD: the defaults of SONiC's pfcwd, 200 ms; switch.pfc.deadlock_after ends a run and is no setting of a device"
                .into(),
        );
    }

    /// What the tables do not show.
    fn remarks(&mut self, wanted: &Wanted) {
        let own = &self.switch.own;
        let marks = self.switch.ports.iter().any(|kind| kind.marking != Marking::Off);
        if marks && own.not_ect == NotEct::Pass {
            self.notes.push(
                "wred_*_enable is false, so that what is not ECN-capable passes (switch.not_ect): some devices then do not mark either; \
                 simulate with not_ect = \"drop\" what they do with it on"
                    .into(),
            );
        }
        if marks && own.mark_at == MarkAt::Dequeue {
            self.notes.push("switch.ecn_at = \"dequeue\": where a device marks is no setting of its".into());
        }
        if self.classes.len() > 1 {
            self.notes.push("hosts must send with these DSCPs: sockets' IP_TOS, or a rule of nftables".into());
        }
        if wanted.config.wire.gap > 0 {
            self.notes.push(
                "bytes are those of frames; a device counts in cells of 96 to 256 B, and rounds up to them".into(),
            );
        }
    }
}
