//! `host.clock` to the clocks of a run.

use crate::clocks::{Method, NoiseShape, Residual, SyncSettings, residuals};
use crate::scenario::document::host::{Clock, Offset, Sync};
use crate::scenario::resolve::sizes;
use crate::scenario::tree::{error::Problem, place::keys};
use incast_sim::{config::HostClock, engine::random::Stream, topology::Topology};
use incast_units::Time;
use std::sync::{Mutex, PoisonError};

/// Purpose of the stream of which each host draws its clock.
const CLOCKS: u32 = 0x434c_4b53;

/// The largest error of a clock: the field for one-way delays has room for 2.1 s in either direction.
const MOST_OFF: Time = Time::from_ms(1000);
const MOST_NOISE: Time = Time::from_ms(100);

/// Peers of each host in the model of synchronisation.
const PEERS: usize = 10;

/// Refuses what no host's clock can be; faults are those of `host.clock`.
pub fn check(clock: &Clock, topology: &Topology) -> Result<(), Problem> {
    match &clock.offset {
        Offset::Largest(largest) if *largest > MOST_OFF => {
            return Err(Problem::value(largest, "at most 1s").under("offset"));
        }
        Offset::Largest(_) => {}
        Offset::Of(_) if clock.sync != Sync::None => {
            return Err(Problem::value("a table", "a time: synchronised clocks keep no known offset").under("offset"));
        }
        Offset::Of(known) => {
            for (name, ahead) in known {
                let place = |problem: Problem| problem.at(&keys!["offset", name.as_str()]);
                sizes::host(name, topology).map_err(place)?;
                if ahead.0.unsigned_abs() > MOST_OFF.ps() {
                    return Err(place(Problem::value(ahead, "-1s to 1s")));
                }
            }
        }
    }
    if clock.noise > MOST_NOISE {
        return Err(Problem::value(clock.noise, "at most 100ms").under("noise"));
    }
    if !(0.0..=200.0).contains(&clock.drift_ppm) {
        return Err(Problem::value(clock.drift_ppm, "0 to 200").under("drift_ppm"));
    }
    let Some((settings, _)) = synchronisation(clock, 0, topology.hosts) else { return Ok(()) };
    settings.check().map_err(|error| Problem::new(error.to_string()).under("sync"))
}

/// The model before a run, and the method; `None` if clocks are not synchronised.
fn synchronisation(clock: &Clock, seed: u64, hosts: u32) -> Option<(SyncSettings, Method)> {
    let method = match clock.sync {
        Sync::None => return None,
        Sync::Huygens => Method::Huygens,
        Sync::TwoWayAverage => Method::TwoWayAverage,
        Sync::TwoWayMinimum => Method::TwoWayMinimum,
    };
    let settings = SyncSettings {
        hosts: hosts as usize,
        peers: PEERS.min((hosts as usize).saturating_sub(1)),
        offset: clock.offset.most(),
        drift_ppm: clock.drift_ppm,
        noise: clock.noise,
        // As in the run that follows.
        noise_shape: NoiseShape::Uniform,
        windows: 1,
        seed,
        ..SyncSettings::default()
    };
    Some((settings, method))
}

/// The clocks of all hosts; none if they are perfect.
///
/// # Errors
/// The probes of some host give no estimate.
pub fn draw(clock: &Clock, seed: u64, topology: &Topology) -> Result<Vec<HostClock>, String> {
    let noise = clock.noise;
    if let Some((settings, method)) = synchronisation(clock, seed, topology.hosts) {
        return synchronised(settings, method);
    }
    if *clock == Clock::default() {
        return Ok(Vec::new());
    }
    let draw = |host: u32| {
        let mut stream = Stream::new(seed, CLOCKS, host.into());
        let mut either_way = || 2.0 * stream.uniform() - 1.0;
        let share = either_way();
        let offset_ps = match &clock.offset {
            Offset::Largest(largest) => (share * largest.ps() as f64) as i64,
            Offset::Of(known) => known.get(&topology.names[host as usize]).map_or(0, |ahead| ahead.0),
        };
        HostClock { offset_ps, drift_ppm: either_way() * clock.drift_ppm, noise }
    };
    Ok((0..topology.hosts).map(draw).collect())
}

/// What was synchronised already: all schemes of a scenario have the same clocks, and a model of many hosts takes
/// seconds.
static KNOWN: Mutex<Vec<(SyncSettings, Method, Vec<HostClock>)>> = Mutex::new(Vec::new());

fn synchronised(settings: SyncSettings, method: Method) -> Result<Vec<HostClock>, String> {
    // What a panic left is whole: entries are pushed in one piece.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((.., clocks)) = known.iter().find(|entry| entry.0 == settings && entry.1 == method) {
        return Ok(clocks.clone());
    }
    let noise = settings.noise;
    let left = residuals(&settings, method).map_err(|error| error.to_string())?;
    let clock = |left: &Residual| HostClock { offset_ps: left.offset_ps, drift_ppm: left.drift_ppm, noise };
    let clocks: Vec<HostClock> = left.iter().map(clock).collect();
    known.push((settings, method, clocks.clone()));
    Ok(clocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::document::host::Ahead;
    use incast_sim::topology::{Link, SingleSwitch};
    use incast_units::Rate;

    fn topology(hosts: u32) -> Topology {
        let link = Link { rate: Rate::from_gbps(100), delay: Time::from_us(1), loss: 0.0 };
        SingleSwitch { hosts, link }.build().expect("a good topology")
    }

    fn clock(sync: Sync) -> Clock {
        Clock { offset: Offset::Largest(Time::from_us(50)), drift_ppm: 8.0, noise: Time::from_ns(200), sync }
    }

    #[test]
    fn each_host_draws_its_own_within_bounds() {
        let clocks = draw(&clock(Sync::None), 3, &topology(64)).expect("clocks");
        assert_eq!(clocks, draw(&clock(Sync::None), 3, &topology(64)).expect("clocks"));
        assert_ne!(clocks, draw(&clock(Sync::None), 4, &topology(64)).expect("clocks"));
        let most = clocks.iter().map(|clock| clock.offset_ps.abs()).max();
        assert!(most.is_some_and(|most| (45_000_000..50_000_000).contains(&most)), "{most:?}");
        assert!(clocks.iter().all(|clock| clock.drift_ppm.abs() <= 8.0));
        assert_eq!(draw(&Clock::default(), 3, &topology(64)), Ok(Vec::new()));
    }

    #[test]
    fn synchronised_clocks_differ_by_what_their_method_leaves() {
        let worst = |sync| {
            let clocks = draw(&clock(sync), 3, &topology(16)).expect("clocks");
            clocks.iter().map(|clock| clock.offset_ps.abs()).max().unwrap_or(0)
        };
        // Nanoseconds against the 50 us before; queues on the path blur plain averages.
        assert!(worst(Sync::Huygens) < 100_000, "{} ps", worst(Sync::Huygens));
        assert!(worst(Sync::TwoWayAverage) > worst(Sync::Huygens));
    }

    #[test]
    fn impossible_clocks_are_refused() {
        let of = |clock: &Clock, hosts| check(clock, &topology(hosts)).map_err(|problem| problem.path.len());
        assert_eq!(of(&clock(Sync::Huygens), 32), Ok(()));
        assert_eq!(of(&clock(Sync::Huygens), 2_000), Err(1));
        assert_eq!(of(&Clock { drift_ppm: f64::NAN, ..clock(Sync::None) }, 32), Err(1));
        assert_eq!(of(&Clock { offset: Offset::Largest(Time::from_ms(1001)), ..clock(Sync::None) }, 32), Err(1));
        let known = |host: &str, ahead: &str, sync| {
            let ahead: Ahead = ahead.parse().expect("a time");
            Clock { offset: Offset::Of([(host.to_owned(), ahead)].into()), ..clock(sync) }
        };
        assert_eq!(of(&known("h3", "-1s", Sync::None), 32), Ok(()));
        assert_eq!(of(&known("h32", "1us", Sync::None), 32), Err(2));
        assert_eq!(of(&known("h3", "-1001ms", Sync::None), 32), Err(2));
        assert_eq!(of(&known("h3", "1us", Sync::Huygens), 32), Err(1));
    }

    #[test]
    fn a_known_offset_is_that_of_its_host() {
        let known =
            [("h1", "2us"), ("h3", "-500ns")].map(|(host, ahead)| (host.to_owned(), ahead.parse().expect("a time")));
        let clock = Clock { offset: Offset::Of(known.into()), ..clock(Sync::None) };
        let clocks = draw(&clock, 3, &topology(4)).expect("clocks");
        let offsets: Vec<i64> = clocks.iter().map(|clock| clock.offset_ps).collect();
        assert_eq!(offsets, [0, 2_000_000, 0, -500_000]);
        assert!(clocks.iter().all(|clock| clock.drift_ppm != 0.0));
        assert_eq!(known_text(&clock), r#"{"h1":"2us","h3":"-500ns"}"#);
    }

    fn known_text(clock: &Clock) -> String {
        serde_json::to_value(&clock.offset).expect("JSON").to_string()
    }
}
