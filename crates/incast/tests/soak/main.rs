//! Random scenarios in which many features meet: each ends, conserves the bytes of all packets, delivers what it says,
//! takes no more packet-hops than were estimated, has one digest for every number of threads, and is as in the reference
//! simulator where that has its features; or it is refused by name.
//!
//! Swarm testing (A. Groce et al., ISSTA 2012): each scenario first draws which features are on at all, so that none
//! crowds out another. The features are the keys of `[host]`, `[switch]`, `[wire]`, `[measure]` and `[[scheme]]` as the
//! scenarios' own schema has them, each kind that a key can have on its own, and the registered laws, underlays and
//! agents, so that what is new there joins by itself; topologies and workloads are listed. A pair of features that
//! chance left out is drawn on purpose, beside hardly anything else. Where it is refused there is to be a reason, which is a
//! message that names one of the two and refuses each of the simplest scenarios that have both.
//!
//! Safety is apart from liveness: whether what is done is right, and whether every flow ends, [`PATIENCE`] after the last
//! fault at the latest. What was found, and scenarios with pairs that hardly meet, are kept in `tests/soak/corpus`, and replayed.
//!
//! `make soak` runs it for an hour. Environment: `INCAST_SOAK`, seconds; `INCAST_SEED`, the first seed, which is 1 in the
//! short form and else that of the clock.

mod draw;

use draw::{Draw, alternatives, features, group, options, scenario};
use incast_cc::law::Recovery;
use incast_lab::scenario::{Form, Run, Scenario, schema};
use incast_sim::{Config, Outcome, SimulationError, config::Probes, outcome::FlowRecord, simulate, simulate_observed};
use incast_units::Time;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Seconds of the short form, which is part of `make test`.
const SHORT: u64 = 45;
/// And at most so many scenarios, so that the same are tried on every machine that is fast enough.
const MOST_SHORT: u64 = 3_000;
/// A scenario that is not done after so long with one thread does not end. The largest take a second.
const LONGEST: Duration = Duration::from_secs(40);
/// The same with several threads, which wait for each other: where others keep the processors busy, for long.
const LONGEST_TOGETHER: Duration = Duration::from_secs(600);
/// What a scenario may cost, as estimated.
const MOST_HOPS: f64 = 200_000.0;
const MOST_MEMORY: u64 = 1 << 30;
/// Events for each packet-hop, and for each scenario besides: periodic timers of idle nodes.
const MOST_EVENTS: (u64, u64) = (100, 20_000_000);
/// The scenarios that are replayed.
const CORPUS: &str = "tests/soak/corpus";
/// So many of them have rare pairs, and so many at the most found something.
const MOST_RARE: usize = 24;
const MOST_FOUND: usize = 40;
/// Scenarios that are tried to find why a pair was never met.
const TRIES: u64 = 40;
/// A picosecond for each link of the longest path.
const ROUNDING: Time = Time::from_ps(8);

/// What became of a scenario.
enum Ending {
    /// It ran, and all was as it should be.
    Ran { hops: u64, compared: bool, live: Live },
    /// It was refused, for this reason.
    Refused(String),
    /// It is larger than is worth the time.
    TooLarge,
    /// Something is wrong.
    Found(String),
}

/// Whether every flow ends, apart from whether what is done is right.
enum Live {
    /// It does, so long after the last fault: the last link event, the last start of a flow.
    Ends(Time),
    /// Something keeps it from that, which is meant to: what.
    Excused(&'static str),
    /// It does not, or not in time.
    Stuck(String),
}

/// Every flow ends within this time after the last fault.
const PATIENCE: Time = Time::from_ms(100_000);
/// Within this one where connections are opened over lossy links: a SYN waits for a second, and twice as long each time
/// (RFC 6298, 5.5), so that the seventh that is lost is sent again after two minutes, the tenth after 17.
const PATIENCE_WITH_SYN: Time = Time::from_ms(2_000_000);
/// Within this one where timeouts are those of Linux, over lossy links: each packet that is lost several times in a row waits
/// for minutes.
const PATIENCE_WITH_LINUX: Time = Time::from_ms(1_000_000_000);
/// Timeouts from which on that is so.
const LONG_TIMEOUT: Time = Time::from_ms(100);

/// What has not ended when a scenario does gets more time.
fn live(run: &Run, outcome: Outcome) -> Live {
    let Ok(mut config) = run.config(1) else { return Live::Excused("no configuration") };
    let (gives_up, lossy) =
        (config.host.give_up_after.is_some(), config.topology.cables.iter().any(|cable| cable.link.loss > 0.0));
    let patience = match lossy {
        true if config.host.rto_min >= LONG_TIMEOUT => PATIENCE_WITH_LINUX,
        true if config.host.handshake => PATIENCE_WITH_SYN,
        _ => PATIENCE,
    };
    let goes_back = config.classes.iter().any(|class| class.recovery == Recovery::GoBackN);
    let last_event = config.link_events.iter().map(|event| event.at).max().unwrap_or(Time::ZERO);
    let mut outcome = outcome;
    if !outcome.complete {
        config.end = config.end.saturating_add(patience);
        let (started, used) = (Instant::now(), cpu_time());
        let is_over = || started.elapsed() >= LONGEST && cpu_time() - used >= LONGEST;
        outcome = match simulate_observed(config, &mut |_| true, &is_over) {
            Ok(outcome) => outcome,
            Err(error) => return Live::Stuck(format!("with more time: {error}")),
        };
    }
    let last_start = outcome.flows.iter().map(|flow| flow.start).max().unwrap_or(Time::ZERO);
    if outcome.complete {
        let last = outcome.flows.iter().filter_map(|flow| flow.acked.max(flow.delivered)).max();
        return Live::Ends(last.unwrap_or(Time::ZERO).saturating_sub(last_event.max(last_start)));
    }
    if outcome.deadlock.is_some() {
        return Live::Excused("a deadlock, which is named");
    }
    if gives_up {
        return Live::Excused("give_up_after");
    }
    if lossy && outcome.totals.pauses > 0 {
        return Live::Excused("pause frames are lost");
    }
    if goes_back && outcome.totals.drops > 0 {
        // C. Guo et al., "RDMA over commodity Ethernet at scale", SIGCOMM 2016, section 4.1.
        return Live::Excused("a livelock of go-back-N where packets are dropped");
    }
    let open = outcome.flows.iter().filter(|flow| flow.acked.is_none()).count();
    Live::Stuck(format!("{open} flows have not ended {patience} after the last fault"))
}

fn check(outcome: &Outcome, run: &Run, estimates: bool) -> Result<(), String> {
    let totals = &outcome.totals;
    let into = totals.injected_bytes + totals.created_bytes;
    let out = totals.received_bytes
        + totals.consumed_bytes
        + totals.dropped_bytes
        + totals.lost_bytes
        + totals.trimmed_bytes
        + totals.left_bytes;
    if into != out {
        return Err(format!("{into} bytes went in, {out} are accounted for"));
    }
    if let Some(flow) = outcome.flows.iter().find(|flow| flow.delivered_bytes > flow.bytes) {
        return Err(format!("a flow has more bytes delivered than it has: {flow:?}"));
    }
    if let Some(flow) = outcome.flows.iter().find(|flow| outcome.complete && flow.delivered_bytes < flow.bytes) {
        return Err(format!("all is said to be done, but for {flow:?}"));
    }
    let again = outcome.flows.iter().any(|flow| flow.retransmitted_bytes > 0 || flow.timeouts > 0);
    // A packet behind others may end a picosecond earlier on a link than alone, where its time is no whole number of them.
    let is_early = |flow: &&FlowRecord| {
        flow.delivered.is_some_and(|delivered| Some(delivered - flow.start + ROUNDING) < flow.ideal)
    };
    if let Some(flow) = outcome.flows.iter().find(is_early) {
        return Err(format!("a flow is faster than alone: {flow:?}"));
    }
    // How many flows there are is drawn, of a Poisson distribution: of few expected ones several may come. So is how
    // far they go.
    let (estimate, flows) = (run.estimated_packet_hops(), run.expected_flows().max(0.01));
    let most = estimate * (1.0 + 3.0 / flows.sqrt() + 3.0 / flows);
    // Nor are the frames of link-level flow control, which are as many as its parameters make, nor those of agents, of 64
    // bytes and more, over the links of a path at most.
    let made = totals.created_bytes as f64 / 64.0 * f64::from(run.topology().most_switches() + 1);
    if estimates && !again && totals.pauses == 0 && totals.packet_hops as f64 > most + made {
        return Err(format!("{} packet-hops, {estimate:.0} were estimated", totals.packet_hops));
    }
    let most = MOST_EVENTS.0 * totals.packet_hops + MOST_EVENTS.1;
    if totals.events > most {
        return Err(format!("{} events for {} packet-hops", totals.events, totals.packet_hops));
    }
    Ok(())
}

/// What all threads of this process have used, by proc(5).
fn cpu_time() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    // Clock ticks of 10 ms: user and system time are fields 14 and 15, of which two stand before the bracket.
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn attempt(path: &Path, threads: &[usize], estimates: bool) -> Ending {
    let scenario = match Scenario::load_form(path, &[], Form::Full) {
        Ok(scenario) => scenario,
        Err(error) => return Ending::Refused(error.to_string()),
    };
    let runs = scenario.runs();
    let Some(run) = runs.first() else { return Ending::Refused("no run".into()) };
    if run.expected_packet_hops() > MOST_HOPS || run.estimated_memory() > MOST_MEMORY {
        return Ending::TooLarge;
    }
    let mut digests: Vec<String> = Vec::new();
    let (mut hops, mut first) = (0, None);
    for count in threads {
        let config = match run.config(*count) {
            Ok(config) => config,
            Err(error) => return Ending::Refused(error.to_string()),
        };
        let has_credits = config.switch.credits.is_some();
        let (started, used) = (Instant::now(), cpu_time());
        let longest = if *count == 1 { LONGEST } else { LONGEST_TOGETHER };
        // On a busy machine a run that does get somewhere may take longer.
        let is_over = || started.elapsed() >= longest && cpu_time() - used >= longest;
        let outcome = match simulate_observed(config, &mut |_| true, &is_over) {
            Ok(outcome) => outcome,
            Err(SimulationError::Config(error)) => return Ending::Refused(error.to_string()),
            Err(SimulationError::Halted) => {
                return Ending::Found(format!("it does not end within {longest:?} with {count} threads"));
            }
            Err(error) => return Ending::Found(error.to_string()),
        };
        if let Err(wrong) = check(&outcome, run, estimates && !has_credits) {
            return Ending::Found(wrong);
        }
        hops = outcome.totals.packet_hops;
        digests.push(outcome.digest.clone());
        first.get_or_insert(outcome);
    }
    if digests.iter().any(|digest| *digest != digests[0]) {
        return Ending::Found(format!("the digest depends on the number of threads: {digests:?}"));
    }
    if let Err(wrong) = void(path, &scenario, &digests[0]) {
        return Ending::Found(wrong);
    }
    match compare(run) {
        Ok(compared) => {
            Ending::Ran { hops, compared, live: first.map_or(Live::Excused("not run"), |outcome| live(run, outcome)) }
        }
        Err(difference) => Ending::Found(difference),
    }
}

/// What a warning says to have no effect has none: without it the result is the same.
fn void(path: &Path, scenario: &Scenario, digest: &str) -> Result<(), String> {
    let text = fs::read_to_string(path).expect("a scenario");
    for warning in &scenario.warnings {
        let said = warning.split(": ").find_map(|part| part.split_once(" has no effect"));
        let Some((key, _)) = said.filter(|(key, _)| !key.contains(' ')) else { continue };
        let mut table: toml::Table = text.parse().expect("TOML");
        let steps: Vec<&str> = key.split('.').collect();
        if !removed(&mut table, &steps) {
            continue;
        }
        let other = path.with_extension("void.toml");
        fs::write(&other, table.to_string()).expect("a file");
        let Ok(without) = Scenario::load_form(&other, &[], Form::Full) else { continue };
        let runs = without.runs();
        let Some(Ok(config)) = runs.first().map(|run| run.config(1)) else { continue };
        let outcome = simulate(config).map_err(|error| format!("without {key}: {error}"))?;
        if outcome.digest != digest {
            return Err(format!("another result without {key}, but: {warning}"));
        }
    }
    Ok(())
}

/// Takes a key out of a scenario, its schemes and their classes; whether it was there.
fn removed(table: &mut toml::Table, steps: &[&str]) -> bool {
    fn one(table: &mut toml::Table, steps: &[&str]) -> bool {
        match steps {
            [] => false,
            [last] => table.remove(*last).is_some(),
            [first, rest @ ..] => {
                table.get_mut(*first).and_then(toml::Value::as_table_mut).is_some_and(|own| one(own, rest))
            }
        }
    }
    let mut found = one(table, steps);
    let schemes = table.get_mut("scheme").and_then(toml::Value::as_array_mut);
    for scheme in schemes.into_iter().flatten().filter_map(toml::Value::as_table_mut) {
        found |= one(scheme, steps);
        let classes = scheme.get_mut("by_class").and_then(toml::Value::as_table_mut);
        for (_, class) in classes.into_iter().flat_map(|classes| classes.iter_mut()) {
            found |= class.as_table_mut().is_some_and(|class| one(class, steps));
        }
    }
    found
}

/// Whether the reference simulator has all that is in a run, or how it differs.
fn compare(run: &Run) -> Result<bool, String> {
    let config = || {
        let mut config = run.config(1).map_err(|error| error.to_string())?;
        config.probes = Probes { events: true, ..Probes::default() };
        Ok::<Config, String>(config)
    };
    let covered = config()?;
    if !incast_reference::covers(&covered) {
        return Ok(false);
    }
    let outcome = simulate(config()?).map_err(|error| error.to_string())?;
    match incast_reference::Summary::of(&outcome).difference(&incast_reference::simulate(covered)) {
        None => Ok(true),
        // It would not notice, and go on.
        Some(_) if outcome.deadlock.is_some() => Ok(false),
        Some(difference) => Err(format!("the reference simulator disagrees: {difference}")),
    }
}

/// The same, where a panic is a finding, too. `estimates` of packet-hops are not for timers at their limits, nor for clocks
/// that are wrong by more than a round trip.
fn guarded(path: &Path, threads: &[usize], estimates: bool) -> Ending {
    catch_unwind(AssertUnwindSafe(|| attempt(path, threads, estimates))).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Ending::Found(format!("panic: {}", text.unwrap_or_default()))
    })
}

/// All that the threads of the generator have seen.
#[derive(Default)]
struct Seen {
    ran: u64,
    refused: u64,
    too_large: u64,
    /// Features that have no value together.
    undrawable: u64,
    /// Of those that ran, those that the reference simulator ran, too.
    compared: u64,
    hops: u64,
    /// Pairs that met, in how many scenarios, and in which first.
    pairs: BTreeMap<(String, String), (u64, usize)>,
    /// The scenarios in which one met first.
    texts: Vec<String>,
    findings: Vec<String>,
    /// Scenarios of which every flow ended, and the longest time that it took after the last fault.
    live: (u64, Time),
    excused: BTreeMap<&'static str, u64>,
    stuck: Vec<String>,
}

/// Pairs of features that are possible at all.
fn all_pairs(options: &[String]) -> BTreeSet<(String, String)> {
    let lists = alternatives();
    let all: Vec<&String> = lists.iter().flatten().chain(options).collect();
    let excludes = |a: &str, b: &str| {
        lists.iter().any(|list| list.iter().any(|one| one == a) && list.iter().any(|one| one == b))
            || group(a) == group(b)
    };
    let mut pairs = BTreeSet::new();
    for a in &all {
        for b in &all {
            if a < b && !excludes(a, b) {
                pairs.insert(((*a).clone(), (*b).clone()));
            }
        }
    }
    pairs
}

/// What a message that refuses a feature says: its key or its kind.
fn names(message: &str, feature: &str) -> bool {
    feature.split([' ', '.']).skip(1).any(|word| message.contains(word)) || message.contains(feature)
}

/// What becomes of a pair that chance left out.
enum Drawn {
    /// It meets in a scenario with hardly anything else, which runs.
    Met,
    /// Some such scenarios are refused, and say that it is for one of the two.
    Refused(String),
    /// Some such scenarios are refused, and do not say so.
    Unknown,
}

/// Draws scenarios in which a pair meets.
fn draw_pair(pair: &(String, String), root: &Value, folder: &Path) -> Drawn {
    let path = folder.join("pair.toml");
    let (mut last, mut others) = (None, 0);
    for seed in 0..TRIES {
        let mut draw = Draw(seed);
        let mut on: BTreeSet<String> = [pair.0.clone(), pair.1.clone()].into();
        for list in alternatives() {
            if !list.iter().any(|one| on.contains(one)) {
                on.insert(draw.of(&list));
            }
        }
        let Some(text) = scenario(&on, root, &mut draw) else { continue };
        fs::write(&path, text).expect("a file");
        match guarded(&path, &[1, 2, 3], false) {
            Ending::Ran { .. } => return Drawn::Met,
            Ending::Refused(message) if names(&message, &pair.0) || names(&message, &pair.1) => {
                last = Some(message);
            }
            Ending::Refused(_) | Ending::TooLarge => others += 1,
            Ending::Found(what) => panic!("{pair:?}: {what}, {}", path.display()),
        }
    }
    // Some are refused for what else they drew.
    last.filter(|_| others <= TRIES / 4).map_or(Drawn::Unknown, Drawn::Refused)
}

/// Keeps the scenarios in which pairs met that met in no other, those with most of them first.
fn keep_rare(seen: &Seen) {
    let corpus = || fs::read_dir(CORPUS).expect("the corpus").flatten().map(|entry| entry.path());
    let is_rare = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rare-"));
    corpus().filter(is_rare).for_each(|old| fs::remove_file(old).expect("removed"));
    let mut rare: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for ((a, b), (count, place)) in &seen.pairs {
        if *count == 1 {
            rare.entry(*place).or_default().push(format!("{a} with {b}"));
        }
    }
    let mut rare: Vec<(usize, Vec<String>)> = rare.into_iter().collect();
    rare.sort_by_key(|(place, pairs)| (std::cmp::Reverse(pairs.len()), *place));
    for (number, (place, pairs)) in rare.iter().take(MOST_RARE).enumerate() {
        let text = format!("# Pairs that hardly meet: {}\n{}", pairs.join(", "), seen.texts[*place]);
        fs::write(Path::new(CORPUS).join(format!("rare-{:02}.toml", number + 1)), text).expect("a file");
    }
}

/// What `make soak` has found, and scenarios in which features meet that hardly do.
#[test]
fn the_corpus_is_replayed() {
    let mut files: Vec<PathBuf> = fs::read_dir(CORPUS).expect("the corpus").flatten().map(|it| it.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    let (mut ran, started) = (0, cpu_time());
    // Beside a scenario others are written.
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    fs::create_dir_all(&folder).expect("a folder");
    for path in &files {
        let copied = folder.join(path.file_name().unwrap_or_default());
        fs::copy(path, &copied).expect("copied");
        match guarded(&copied, &[1, 2, 3], false) {
            Ending::Ran { live: Live::Stuck(what), .. } | Ending::Found(what) => panic!("{}: {what}", path.display()),
            Ending::Ran { .. } => ran += 1,
            Ending::Refused(message) => panic!("{}: {message}\n`make soak` makes the corpus again", path.display()),
            Ending::TooLarge => {}
        }
    }
    println!("soak: {ran} scenarios of the corpus ran in {:.0} s of CPU", (cpu_time() - started).as_secs_f64());
    assert!(ran > 0 && files.len() <= MOST_RARE + MOST_FOUND, "{ran} of {} ran", files.len());
}

#[test]
fn random_scenarios_end_and_are_the_same_on_every_number_of_threads() {
    let from = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = from("INCAST_SOAK").unwrap_or(SHORT);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let first = from("INCAST_SEED").unwrap_or(if seconds == SHORT { 1 } else { now.as_secs() });
    println!("soak: seed {first}, {seconds} s (INCAST_SEED={first} INCAST_SOAK={seconds} repeats it)");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("soak");
    fs::create_dir_all(&folder).expect("a folder");
    let root = schema();
    let options = options(&root);
    let (seed, seen) = (AtomicU64::new(first), Mutex::new(Seen::default()));
    let started = Instant::now();
    let work = |worker: usize| {
        // Another one may run beside this one.
        let path = folder.join(format!("worker-{}-{worker}.toml", std::process::id()));
        while started.elapsed().as_secs() < seconds {
            let seed = seed.fetch_add(1, Ordering::Relaxed);
            if seconds == SHORT && seed - first >= MOST_SHORT {
                return;
            }
            let mut draw = Draw(seed);
            let on = features(&options, &mut draw);
            let Some(text) = scenario(&on, &root, &mut draw) else {
                seen.lock().unwrap_or_else(PoisonError::into_inner).undrawable += 1;
                continue;
            };
            fs::write(&path, &text).expect("a file");
            let ending = guarded(&path, &[1, 2, 3], !on.contains("parameters") && !on.contains("host.clock"));
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            match ending {
                Ending::Ran { hops, compared, live } => {
                    match live {
                        Live::Ends(after) => seen.live = (seen.live.0 + 1, seen.live.1.max(after)),
                        Live::Excused(why) => *seen.excused.entry(why).or_default() += 1,
                        Live::Stuck(what) => {
                            let kept = folder.join(format!("stuck-{seed}.toml"));
                            fs::write(&kept, format!("# {what}\n{text}")).expect("a file");
                            seen.stuck.push(format!("{}: {what}", kept.display()));
                        }
                    }
                    seen.ran += 1;
                    seen.compared += u64::from(compared);
                    seen.hops += hops;
                    let (place, mut is_first) = (seen.texts.len(), false);
                    for (a, b) in on.iter().flat_map(|a| on.iter().filter(move |b| a < *b).map(move |b| (a, b))) {
                        let met = seen.pairs.entry((a.clone(), b.clone())).or_insert((0, place));
                        met.0 += 1;
                        is_first |= met.0 == 1;
                    }
                    if is_first {
                        seen.texts.push(text);
                    }
                }
                Ending::Refused(_) => seen.refused += 1,
                Ending::TooLarge => seen.too_large += 1,
                Ending::Found(what) => {
                    // The long form's stay, and are replayed from then on.
                    let kept = if seconds == SHORT { &folder } else { Path::new(CORPUS) };
                    let kept = kept.join(format!("finding-{seed}.toml"));
                    fs::write(&kept, format!("# {}\n{text}", what.replace('\n', "\n# "))).expect("a file");
                    println!("{}: {what}", kept.display());
                    seen.findings.push(format!("{}: {what}", kept.display()));
                }
            }
        }
    };
    thread::scope(|scope| {
        let work = &work;
        for worker in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(move || work(worker));
        }
    });
    let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    let pairs = all_pairs(&options);
    let unmet: Vec<_> = pairs.iter().filter(|pair| !seen.pairs.contains_key(*pair)).collect();
    println!(
        "soak: {} scenarios ran with 1, 2 and 3 threads ({} packet-hops), {} of them in the reference simulator, too; {} \
         were refused, {} too large, {} have no values; {} of {} pairs of features met",
        seen.ran,
        seen.hops,
        seen.compared,
        seen.refused,
        seen.too_large,
        seen.undrawable,
        pairs.len() - unmet.len(),
        pairs.len()
    );
    println!(
        "liveness: every flow of {} scenarios ended, at most {} after the last fault; {} excused ({:?}); {} did not end",
        seen.live.0,
        seen.live.1,
        seen.excused.values().sum::<u64>(),
        seen.excused,
        seen.stuck.len()
    );
    println!("{:.0} scenarios an hour", seen.ran as f64 * 3600.0 / started.elapsed().as_secs_f64());
    let mut without = Vec::new();
    if seconds > SHORT {
        keep_rare(&seen);
        let mut on_purpose = 0;
        let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in unmet {
            let names = format!("{} with {}", pair.0, pair.1);
            match draw_pair(pair, &root, &folder) {
                Drawn::Met => on_purpose += 1,
                Drawn::Refused(reason) => reasons.entry(reason).or_default().push(names),
                Drawn::Unknown => without.push(names),
            }
        }
        println!("{on_purpose} pairs that chance left out met in scenarios drawn for them");
        for (reason, pairs) in &reasons {
            println!("never met, as {}:\n  {}", reason.replace('\n', " "), pairs.join("\n  "));
        }
    }
    assert!(seen.findings.is_empty(), "{} findings:\n{}", seen.findings.len(), seen.findings.join("\n"));
    assert!(seen.stuck.is_empty(), "liveness:\n{}", seen.stuck.join("\n"));
    assert!(without.is_empty(), "these pairs were never met, without a reason:\n{}", without.join("\n"));
    assert!(seen.ran > 50, "{} scenarios ran", seen.ran);
}
