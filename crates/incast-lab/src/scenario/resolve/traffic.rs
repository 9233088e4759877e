//! `[[workload]]` to generators, and whether the fabric can carry them.

use super::{
    super::document::{
        Document,
        workload::{self as document, LoadOf, Workload},
    },
    files::Files,
    sizes,
};
use crate::workload::{
    Generate, MOST_BYTES,
    all_to_all::AllToAll,
    incast::{Incast, Receiver},
    loads::{Demand, Fluid},
    long::{Long, Pairs},
    permutation::Permutation,
    poisson::Poisson,
    rpc::Rpc,
    trace::{self, Trace},
};
use crate::{
    scenario::tree::{
        error::{Problem, Problems},
        place::{Step, keys},
    },
    workload::{flow_log::UNUSED, spacing::Spacing},
};
use incast_cc::law::SizeClass;
use incast_sim::{routing::pin, topology::Topology};
use incast_units::{Bytes, Rate, Time};
use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// All traffic of a scenario at one grid point.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Class names, by index.
    pub classes: Vec<String>,
    /// What makes the flows.
    pub generators: Vec<Arc<dyn Generate>>,
    /// The run ends here.
    pub end: Time,
    /// Workloads that put a known load on links on average.
    pub steady: Vec<Steady>,
    /// Links that a packet crosses on average.
    pub mean_hops: f64,
    /// Some flows have source routes.
    pub pinned: bool,
    /// Look at this before you trust the results.
    pub warnings: Vec<String>,
}

impl Traffic {
    /// Names of the classes that requests have.
    pub fn request_classes(&self) -> Vec<&str> {
        let classes = self.generators.iter().filter_map(|generator| generator.request_class());
        classes.filter_map(|class| self.classes.get(usize::from(class))).map(String::as_str).collect()
    }

    /// The smallest and the largest flow that each class can have; `None` of one all of whose flows do not end.
    pub fn class_sizes(&self) -> Vec<Option<(u64, u64)>> {
        let mut ranges: Vec<Option<(u64, u64)>> = vec![None; self.classes.len()];
        for generator in &self.generators {
            let sizes = generator.sizes();
            let is_one = sizes.windows(2).all(|pair| pair[0].0 == pair[1].0);
            // Of a distribution `sizes` has what stands for its parts, not its ends.
            let ends = generator.size_range().filter(|_| is_one);
            for (class, size) in sizes {
                let (low, high) = ends.unwrap_or((size.bytes, size.bytes));
                if let Some(range) = ranges.get_mut(usize::from(class)) {
                    let (least, most) = range.unwrap_or((low, high));
                    *range = Some((least.min(low), most.max(high)));
                }
            }
        }
        ranges
    }
}

/// More flows than anyone waits for.
const MOST_FLOWS: f64 = 1e8;

/// The load of a workload that goes on for ever in the same way.
#[derive(Debug)]
pub struct Steady {
    /// The class.
    pub class: u16,
    /// The key that sets its height.
    pub key: [Step; 3],
    /// It may exceed what links carry.
    pub overload: bool,
    /// Sizes of its flows.
    pub sizes: Vec<SizeClass>,
    /// Payload in bits per second on each cable: towards its end `b`, and towards its end `a`.
    pub loads: Vec<[f64; 2]>,
    /// Bytes that arrive at a time, by which the backlog of a link varies: E[X²]/E[X] of independent arrivals, and 0 of
    /// regular ones.
    pub burst: f64,
}

struct Builder<'a> {
    document: &'a Document,
    topology: &'a Topology,
    fluid: Fluid<'a>,
    files: &'a mut Files,
    traffic: Traffic,
}

/// Checks and converts all workloads.
pub fn resolve(document: &Document, topology: &Topology, files: &mut Files) -> Result<Traffic, Problems> {
    if document.workload.is_empty() {
        return Err(Problem::new("there is no [[workload]]: at least one is needed").into());
    }
    let duration = document.duration;
    let endless = |workload: &Workload| matches!(workload, Workload::Long(long) if long.size.is_none());
    let forever = document.workload.iter().filter(|workload| endless(workload)).count();
    let end = if forever == document.workload.len() {
        duration
    } else {
        duration.checked_add(document.drain).ok_or_else(|| {
            let allowed = "a duration and a drain of at most 213 days together";
            Problem::value(document.drain, allowed).under("drain")
        })?
    };
    let fluid = Fluid::new(topology);
    let mut builder = Builder { document, topology, fluid, files, traffic: Traffic { end, ..Traffic::default() } };
    if forever > 0 && forever < document.workload.len() {
        builder.warn(format!("flows of kind long without a size never end, so every run lasts until {end}"));
    }
    let mut problems = Vec::new();
    for (index, workload) in document.workload.iter().enumerate() {
        let added = builder.add(index, workload);
        problems.extend(added.err().map(|problem| problem.at(&keys!["workload", index])));
    }
    builder.look_at_paths();
    Problems::of(problems).map_or(Ok(builder.traffic), Err)
}

impl Builder<'_> {
    fn warn(&mut self, text: String) {
        self.traffic.warnings.push(text);
    }

    fn class(&mut self, name: &str) -> Result<u16, Problem> {
        let legal =
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "._-+ ".contains(c)) && name.len() <= 64;
        if !legal || name == "all" {
            return Err(Problem::value(
                format!("{name:?}"),
                "up to 64 letters, digits, `.`, `_`, `-`, `+` and blanks, but not \"all\"",
            )
            .under("class"));
        }
        if self.traffic.classes.iter().any(|other| other == name) {
            return Err(Problem::new(format!(
                "there are two classes {name:?}: give each [[workload]] a `class` of its own"
            ))
            .under("class"));
        }
        let index =
            u16::try_from(self.traffic.classes.len()).map_err(|_| Problem::new("found more than 65,536 classes"))?;
        self.traffic.classes.push(name.to_owned());
        Ok(index)
    }

    fn add(&mut self, index: usize, workload: &Workload) -> Result<(), Problem> {
        let name = workload.class().to_owned();
        let class = self.class(&name)?;
        let generator: Arc<dyn Generate> = match workload {
            Workload::Poisson(poisson) => Arc::new(self.poisson(index, class, name.clone(), poisson)?),
            Workload::Incast(incast) => Arc::new(self.incast(index, class, name.clone(), incast)?),
            Workload::Permutation(one) => Arc::new(Permutation {
                class,
                name: name.clone(),
                hosts: self.group(one.from.as_ref())?,
                size: some_bytes("size", one.size)?,
                start: self.before_the_end("start", one.start)?,
            }),
            Workload::AllToAll(one) => Arc::new(AllToAll {
                class,
                name: name.clone(),
                hosts: self.group(one.from.as_ref())?,
                size: some_bytes("size", one.size)?,
                start: self.before_the_end("start", one.start)?,
            }),
            Workload::Long(long) => Arc::new(self.long(class, name.clone(), long)?),
            Workload::Trace(trace) => Arc::new(self.trace(class, name.clone(), trace)?),
            Workload::Rpc(rpc) => Arc::new(self.rpc(class, name.clone(), rpc)?),
        };
        let expected = generator.expected();
        if expected.flows.is_nan() || expected.flows > MOST_FLOWS {
            let key = match workload {
                Workload::Poisson(_) => "load",
                Workload::Incast(incast) if incast.every.is_some() => "every",
                Workload::Incast(_) => "load",
                Workload::Long(_) => "flows",
                _ => "class",
            };
            return Err(Problem::value(
                format!("about {:.0} flows", expected.flows),
                format!("at most {MOST_FLOWS:.0}"),
            )
            .under(key));
        }
        let (first, last) = generator.starts();
        let duration = self.document.duration.ps();
        if matches!(workload, Workload::Incast(incast) if incast.load == Some(0.0)) {
            // None is wanted.
        } else if expected.flows < 0.5 {
            self.warn(format!("class {name}: fewer than one flow is to be expected before {}", self.document.duration));
        } else if last < self.document.warmup.ps()
            && !(matches!(workload, Workload::Long(_)) && self.document.measure.rates.is_some())
        {
            self.warn(format!(
                "class {name}: all flows start before the end of the warm-up ({}), so none is counted",
                self.document.warmup
            ));
        } else if first >= duration {
            self.warn(format!("class {name}: no flow starts before {}", self.document.duration));
        }
        self.traffic.generators.push(generator);
        Ok(())
    }

    /// Hosts that send to each other.
    fn group(&self, from: Option<&document::Hosts>) -> Result<Vec<u32>, Problem> {
        let hosts = sizes::hosts(from, self.topology).map_err(|problem| problem.under("from"))?;
        if let [only] = hosts[..] {
            let name = &self.topology.names[only as usize];
            return Err(
                Problem::value(format!("{name} alone"), "at least two hosts, which send to each other").under("from")
            );
        }
        Ok(hosts)
    }

    fn before_the_end(&self, key: &str, start: Time) -> Result<Time, Problem> {
        if start < self.document.duration {
            Ok(start)
        } else {
            Err(Problem::value(start, format!("a time before the duration, {}", self.document.duration)).under(key))
        }
    }

    fn poisson(
        &mut self,
        index: usize,
        class: u16,
        name: String,
        poisson: &document::Poisson,
    ) -> Result<Poisson, Problem> {
        let distribution = sizes::distribution(&poisson.sizes, self.files).map_err(|problem| problem.under("sizes"))?;
        let from = sizes::hosts(poisson.from.as_ref(), self.topology).map_err(|problem| problem.under("from"))?;
        let to = sizes::hosts(poisson.to.as_ref(), self.topology).map_err(|problem| problem.under("to"))?;
        if let ([only], true) = (to.as_slice(), to.iter().any(|host| from.contains(host))) {
            let found = &self.topology.names[*only as usize];
            return Err(Problem::value(
                format!("{found} as the only destination of itself"),
                "at least one other host",
            )
            .under("to"));
        }
        let (load, overload) = (poisson.load, poisson.overload);
        if !is_load(load, overload) {
            return Err(Problem::value(load, "above 0 and at most 1 (more with overload = true)").under("load"));
        }
        let hosts = self.topology.hosts as usize;
        let mut demand = Demand { sources: vec![0.0; hosts], destinations: vec![0.0; hosts] };
        for host in &from {
            demand.sources[*host as usize] = self.fluid.host_rate(*host);
        }
        for host in &to {
            demand.destinations[*host as usize] = 1.0;
        }
        let scale = match poisson.load_of {
            LoadOf::Host => load,
            LoadOf::Bottleneck if self.fluid.is_too_large() => {
                return Err(Problem::value("a fabric too large to find its busiest link", "\"host\"").under("load_of"));
            }
            LoadOf::Bottleneck => {
                let (busiest, _) = self.fluid.busiest(&self.fluid.walked_loads(&demand)).unwrap_or((0.0, 0));
                load / busiest
            }
            LoadOf::Bisection => load * self.fluid.bisection() / self.fluid.crossing(&demand),
        };
        if !(scale.is_finite() && scale > 0.0) {
            return Err(Problem::value("no traffic there", "what this class's traffic crosses").under("load_of"));
        }
        demand.sources.iter_mut().for_each(|rate| *rate *= scale);
        let mean = distribution.mean();
        let sources =
            from.iter().map(|host| (*host, mean * 8e12 / demand.sources[*host as usize])).collect::<Vec<(u32, f64)>>();
        let of = match poisson.load_of {
            LoadOf::Host => "each source's link",
            LoadOf::Bisection => "the bisection",
            LoadOf::Bottleneck => "the busiest link",
        };
        let label =
            format!("load {load} of {of} in payload bytes, sizes {}", sizes::label(&poisson.sizes, &distribution));
        let loads = self.fluid.loads(&demand);
        let poisson = Poisson {
            class,
            name,
            sources,
            destinations: to,
            sizes: distribution,
            duration: self.document.duration,
            label,
        };
        let sizes: Vec<SizeClass> = poisson.sizes().into_iter().map(|(_, size)| size).collect();
        let (bytes, squares) = sizes.iter().fold((0.0, 0.0), |(bytes, squares), size| {
            let own = size.bytes as f64;
            (bytes + size.flows * own, squares + size.flows * own * own)
        });
        let burst = squares / f64::max(bytes, 1.0);
        let key = keys!["workload", index, "load"];
        self.traffic.steady.push(Steady { class, key, overload, sizes, loads, burst });
        Ok(poisson)
    }

    fn incast(&mut self, index: usize, class: u16, name: String, incast: &document::Incast) -> Result<Incast, Problem> {
        let size = some_bytes("size", incast.size)?;
        let start = self.before_the_end("start", incast.start)?;
        let until = match incast.until {
            Some(until) if until <= start || until > self.document.duration => {
                let allowed = format!("later than start, {start}, and at most the duration");
                return Err(Problem::value(until, allowed).under("until"));
            }
            until => until.map_or(self.document.duration, |until| until),
        };
        let hosts = self.topology.hosts;
        let senders = sizes::hosts(incast.from.as_ref(), self.topology).map_err(|problem| problem.under("from"))?;
        let receiver = match incast.receiver.as_str() {
            "rotate" => Receiver::Rotate,
            "random" => Receiver::Random,
            name => Receiver::Host(sizes::host(name, self.topology).map_err(|mut problem| {
                problem.allowed = problem.allowed.map(|allowed| format!("\"rotate\", \"random\" or {allowed}"));
                problem.under("receiver")
            })?),
        };
        let also_receives = match receiver {
            Receiver::Host(host) => senders.contains(&host),
            _ => true,
        };
        let most = senders.len() - usize::from(also_receives);
        if incast.fan_in == 0 || incast.fan_in as usize > most {
            let allowed = format!("1 to {most}, the senders other than the receiver");
            return Err(Problem::value(incast.fan_in, allowed).under("fan_in"));
        }
        let mut demand = Demand { sources: vec![0.0; hosts as usize], destinations: vec![0.0; hosts as usize] };
        match receiver {
            Receiver::Host(host) => demand.destinations[host as usize] = 1.0,
            _ => demand.destinations.fill(1.0),
        }
        let capacity: f64 = (0..hosts)
            .filter(|host| demand.destinations[*host as usize] > 0.0)
            .map(|host| self.fluid.host_rate(host))
            .sum();
        let group_bits = f64::from(incast.fan_in) * size as f64 * 8.0;
        let (key, every) = match (incast.every, incast.load) {
            (Some(every), None) if every > Time::ZERO => ("every", every),
            (Some(every), None) => return Err(Problem::value(every, "a time above 0").under("every")),
            // No groups: a grid can leave the incast out.
            (None, Some(0.0)) => ("load", Time::MAX),
            (None, Some(load)) => {
                if !is_load(load, incast.overload) {
                    return Err(Problem::value(load, "0, or up to 1 (more with overload = true)").under("load"));
                }
                let every = Time::from_secs_f64(group_bits / (load * capacity));
                if every == Time::ZERO || every == Time::MAX {
                    return Err(Problem::value(
                        load,
                        format!("a load at which groups are between 1ps and 213 days apart, not {every}"),
                    )
                    .under("load"));
                }
                ("load", every)
            }
            (every, load) => {
                return Err(Problem::exactly_one(&[("every", every.is_some()), ("load", load.is_some())]));
            }
        };
        let stagger: Vec<Time> = match incast.stagger {
            None | Some(Spacing::None) => Vec::new(),
            Some(spacing) => {
                let links = self.topology.cables.iter().take(hosts as usize).map(|cable| cable.link.rate);
                let rate = |link| if let Spacing::Rate(rate) = spacing { rate } else { link };
                links.map(|link| rate(link).time_of(Bytes::new(size))).collect()
            }
        };
        let last = Incast::last_turn(&stagger, incast.fan_in);
        let allowed = |rest: Time| format!("a time below {rest}: flows start from {start} until {until}");
        if last >= until - start {
            let problem = format!("the last sender of a group starts {last} after the first");
            return Err(Problem { allowed: Some(allowed(until - start)), ..Problem::new(problem) }.under("stagger"));
        }
        if incast.jitter >= until - start - last {
            return Err(Problem::value(incast.jitter, allowed(until - start - last)).under("jitter"));
        }
        if incast.jitter > every {
            self.warn(format!(
                "class {name}: the jitter ({}) is longer than the time between groups ({every}), so groups overlap",
                incast.jitter
            ));
        }
        if last > every {
            self.warn(format!("class {name}: the last sender of a group starts {last} after the first, and the next group {every} after it, so groups overlap"));
        }
        let (until, average) =
            if incast.load == Some(0.0) { (start, 0.0) } else { (until, group_bits / every.as_secs_f64()) };
        let may_send: Vec<u32> = match receiver {
            Receiver::Host(host) => senders.iter().copied().filter(|sender| *sender != host).collect(),
            _ => senders.clone(),
        };
        for host in &may_send {
            demand.sources[*host as usize] = average / may_send.len() as f64;
        }
        // Groups come at regular times, at receivers in their turn or at one; at those that are drawn, by chance.
        let burst = if receiver == Receiver::Random { f64::from(incast.fan_in) * size as f64 } else { 0.0 };
        let sizes = vec![SizeClass { bytes: size, flows: 1.0 }];
        let (key, loads) = (keys!["workload", index, key], self.fluid.loads(&demand));
        self.traffic.steady.push(Steady { class, key, overload: incast.overload, sizes, loads, burst });
        Ok(Incast {
            class,
            name,
            hosts,
            senders,
            fan_in: incast.fan_in,
            size,
            every,
            jitter: incast.jitter,
            stagger,
            receiver,
            start,
            until,
        })
    }

    fn long(&mut self, class: u16, name: String, long: &document::Long) -> Result<Long, Problem> {
        let pairs = match (&long.flows, &long.pairs) {
            (Some(0), None) => return Err(Problem::value(0, "at least 1 flow").under("flows")),
            (Some(count), None) if f64::from(*count) > MOST_FLOWS => {
                return Err(Problem::value(count, format!("at most {MOST_FLOWS:.0} flows")).under("flows"));
            }
            (Some(count), None) => Pairs::Random(*count),
            (None, Some(pairs)) if !pairs.is_empty() => {
                let mut given = Vec::new();
                for (index, (source, destination)) in pairs.iter().enumerate() {
                    let at = |problem: Problem, end: usize| problem.at(&keys!["pairs", index, end]);
                    let source_host = sizes::host(source, self.topology).map_err(|problem| at(problem, 0))?;
                    let destination_host = sizes::host(destination, self.topology).map_err(|problem| at(problem, 1))?;
                    if source_host == destination_host {
                        return Err(at(
                            Problem::value(format!("{destination:?}, the sender itself"), "another host"),
                            1,
                        ));
                    }
                    given.push((source_host, destination_host));
                }
                Pairs::Given(given)
            }
            (None, Some(_)) => {
                return Err(Problem::value("no pairs", "at least one pair of hosts").under("pairs"));
            }
            (flows, pairs) => {
                return Err(Problem::exactly_one(&[("flows", flows.is_some()), ("pairs", pairs.is_some())]));
            }
        };
        let fastest = self.topology.cables.iter().map(|cable| cable.link.rate).max().unwrap_or(Rate::from_bps(0));
        let senders = match &pairs {
            Pairs::Random(count) => u64::from((*count).min(self.topology.hosts)),
            // Those of one receiver share its link.
            Pairs::Given(pairs) => {
                let of = |end: fn(&(u32, u32)) -> u32| pairs.iter().map(end).collect::<BTreeSet<_>>().len();
                of(|pair| pair.0).min(of(|pair| pair.1)) as u64
            }
        };
        let count = match &pairs {
            Pairs::Random(count) => u64::from(*count),
            Pairs::Given(pairs) => pairs.len() as u64,
        };
        let start = self.before_the_end("start", long.start)?;
        let last = start.saturating_add(long.stagger.saturating_mul(count - 1));
        if last >= self.document.duration {
            self.warn(format!("class {name}: the last flow starts at {last}, not before {}", self.document.duration));
        }
        let end = self.traffic.end;
        // A margin of 1 MB: what is sent before the end is certainly less.
        let endless = Bytes::new(fastest.bytes_in(end).get().saturating_add(1_000_000));
        let rate = self.fluid.host_rate(0);
        let capacity = Bytes::new((rate / 8.0 * end.saturating_sub(start).as_secs_f64() * senders as f64) as u64);
        let size = match long.size {
            Some(size) => some_bytes("size", size)?,
            None => endless.get(),
        };
        Ok(Long {
            class,
            name,
            hosts: self.topology.hosts,
            pairs,
            size,
            endless: long.size.is_none(),
            start,
            stagger: long.stagger,
            capacity,
        })
    }

    fn trace(&mut self, class: u16, name: String, written: &document::Trace) -> Result<Trace, Problem> {
        let at = |problem: Problem| problem.under("path");
        let file = self.files.trace(&written.path, written.origin).map_err(at)?;
        // What a trace has otherwise.
        let is_read = |column: &str| ["class", "path", "reverse_path"].contains(&column);
        let unused = file.notes.iter().find_map(|note| note.strip_prefix(UNUSED));
        for column in unused.into_iter().flat_map(|columns| columns.split(", ")).filter(|column| is_read(column)) {
            self.warn(format!(
                "class {name}: the column {column} of {:?} is not read with origin = \"first\"",
                written.path
            ));
        }
        let rows = &file.rows;
        let mut classes: BTreeMap<String, u16> = BTreeMap::new();
        // Where every row names a class, the workload's own would be one without flows: the first of them takes its
        // place.
        let mut unused = rows.iter().all(|row| row.class.as_deref().is_some_and(|other| other != name));
        for row in rows.iter() {
            if let Some(other) = row.class.as_deref().filter(|other| *other != name && !classes.contains_key(*other)) {
                let mut index = self.class(other).map_err(|problem| at(Problem { path: Vec::new(), ..problem }))?;
                if std::mem::take(&mut unused) {
                    self.traffic.classes.pop();
                    self.traffic.classes[usize::from(class)] = other.to_owned();
                    index = class;
                }
                classes.insert(other.to_owned(), index);
            }
        }
        let names = self.topology.names[..self.topology.hosts as usize].iter().zip(0..);
        let mut hosts: BTreeMap<&str, u32> = names.map(|(name, host)| (name.as_str(), host)).collect();
        let listed = match &written.hosts_file {
            Some(file) => self.files.addresses(file).map_err(|problem| problem.under("hosts_file"))?,
            None => BTreeMap::new(),
        };
        for (key, addresses) in [("hosts_file", &listed), ("hosts", &written.hosts)] {
            for (address, name) in addresses {
                let number = || name.parse().ok().filter(|number| *number < self.topology.hosts);
                let host = hosts.get(name.as_str()).copied().or_else(number).ok_or_else(|| {
                    let last = self.topology.hosts.saturating_sub(1);
                    let found = format!("{name:?} at {address}");
                    Problem::value(found, format!("h0 to h{last} or a number")).under(key)
                })?;
                hosts.insert(address, host);
            }
        }
        let class_of = |row: Option<&str>| row.and_then(|name| classes.get(name)).copied().unwrap_or(class);
        let topology = self.topology;
        let (ports, nodes) = (topology.ports(), OnceCell::new());
        let path_of = |from: u32, to: u32, way: &str| {
            let numbers = || topology.names.iter().map(String::as_str).zip(0..).collect::<BTreeMap<&str, u32>>();
            let nodes = nodes.get_or_init(numbers);
            let names = way.split([' ', ';']).filter(|name| !name.is_empty());
            let way: Vec<u32> = names
                .map(|name| nodes.get(name).copied().ok_or_else(|| format!("there is no node {name:?}")))
                .collect::<Result<_, String>>()?;
            if (way.first(), way.last()) != (Some(&from), Some(&to)) {
                let [from, to] = [from, to].map(|host| &topology.names[host as usize]);
                return Err(format!("the way does not lead from {from} to {to}"));
            }
            pin(topology, &ports, &way).map_err(|error| error.to_string())
        };
        let mut flows = trace::resolve(&file, topology.hosts, &hosts, &class_of, &path_of)
            .map_err(|error| at(Problem::new(trace::in_words(&written.path, &error))))?;
        self.traffic.pinned |= flows.iter().any(|flow| flow.pinned.is_some());
        let all = flows.len();
        flows.retain(|flow| flow.start < self.document.duration);
        if flows.len() < all {
            self.warn(format!(
                "class {name}: {} of {all} flows of the trace start after {} and are left out",
                all - flows.len(),
                self.document.duration
            ));
        }
        Ok(Trace::new(name, flows, file.notes.clone()))
    }

    fn rpc(&mut self, class: u16, name: String, rpc: &document::Rpc) -> Result<Rpc, Problem> {
        let clients = sizes::hosts(rpc.clients.as_ref(), self.topology).map_err(|problem| problem.under("clients"))?;
        let servers = sizes::hosts(rpc.servers.as_ref(), self.topology).map_err(|problem| problem.under("servers"))?;
        if servers.len() == 1 && clients == servers {
            return Err(Problem::value("one host that is client and server", "at least two hosts").under("servers"));
        }
        if !(1..=100_000).contains(&rpc.outstanding) {
            return Err(Problem::value(rpc.outstanding, "1 to 100000").under("outstanding"));
        }
        let request = sizes::distribution(&rpc.request, self.files).map_err(|problem| problem.under("request"))?;
        let response = sizes::distribution(&rpc.response, self.files).map_err(|problem| problem.under("response"))?;
        let request_class = self.class(&format!("{name}-request"))?;
        // As many calls as pauses, propagation and the slower of the two sides allow.
        let rate = |hosts: &[u32]| hosts.iter().map(|host| self.fluid.host_rate(*host)).sum::<f64>();
        let cables = &self.topology.cables;
        let delay =
            4.0 * cables.iter().map(|cable| cable.link.delay.as_secs_f64()).sum::<f64>() / cables.len().max(1) as f64;
        let bits = (request.mean() + response.mean()) * 8.0;
        let link = self.fluid.host_rate(clients[0]).max(1.0);
        let cycle = rpc.think.as_secs_f64() + 2.0 * delay + bits / link;
        let open = clients.len() as f64 * f64::from(rpc.outstanding);
        let per_second = (open / cycle.max(1e-12)).min(rate(&clients).min(rate(&servers)) / bits.max(1.0));
        Ok(Rpc {
            request_class,
            response_class: class,
            name,
            clients,
            servers,
            outstanding: rpc.outstanding,
            request,
            response,
            think: rpc.think,
            duration: self.document.duration,
            // The first ones need not wait for another to end.
            calls: per_second * self.document.duration.as_secs_f64() + open,
        })
    }

    /// Paths of uniform traffic, and whether loads could be looked at on all of their links.
    fn look_at_paths(&mut self) {
        let uniform = Demand {
            sources: (0..self.topology.hosts).map(|host| self.fluid.host_rate(host)).collect(),
            destinations: vec![1.0; self.topology.hosts as usize],
        };
        self.traffic.mean_hops = self.fluid.mean_hops(&uniform);
        if self.fluid.is_too_large() && !self.traffic.steady.is_empty() {
            self.warn("the fabric is so large that only the loads of host links were computed".into());
        }
    }
}

/// A part of a capacity, above 0; more than all of it only on request.
fn is_load(load: f64, overload: bool) -> bool {
    load > 0.0 && load <= if overload { 1e6 } else { 1.0 }
}

fn some_bytes(key: &str, size: Bytes) -> Result<u64, Problem> {
    match size.get() {
        0 => Err(Problem::value("0B", "at least 1B").under(key)),
        bytes if bytes > MOST_BYTES => Err(Problem::value(size, "at most 2^40 bytes").under(key)),
        bytes => Ok(bytes),
    }
}
