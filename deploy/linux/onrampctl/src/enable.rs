//! `onrampctl enable` and `disable`: routes whose connections stamp in microseconds, and to whose destinations packets are held.

use crate::{
    arguments,
    bpf::Loaded,
    layout::{Address, Prefix},
    probe,
    stamps::{NAME, OnRamp},
    status,
};
use hostctl::{
    Tool as _, complain,
    enable::Request,
    failure::{Failure, Outcome},
    journal::Watch,
    lock,
    netlink::{self, Routes},
    rollback, routes, say, view,
};

/// Routes as they were typed.
fn typed(routes: &[String]) -> Outcome<Vec<netlink::Prefix>> {
    Ok(routes.iter().map(|text| netlink::Prefix::parse(text)).collect::<Outcome<Vec<_>>>()?.concat())
}

/// What packets are held for.
fn prefixes(routes: &[String]) -> Outcome<Vec<Prefix>> {
    Ok(typed(routes)?.iter().map(|prefix| Prefix::new(prefix.address(), prefix.length())).collect())
}

/// Whether there is a peer behind each route: what another one does says nothing.
fn covered(arguments: &arguments::Enable) -> Outcome {
    for text in &arguments.routes {
        let of_route = prefixes(std::slice::from_ref(text))?;
        let is_behind = |peer: &std::net::SocketAddr| {
            let address = Address::of(peer.ip());
            of_route.iter().any(|prefix| prefix.covers(&address))
        };
        if !arguments.stamps_only && !arguments.peer.iter().any(is_behind) {
            return Err(Failure::input(format!("--peer: found none behind {text}, allowed is one of each route")));
        }
    }
    Ok(())
}

/// Refuses routes whose connections would take a hold for a loss.
fn check_timeouts(arguments: &arguments::Enable, loaded: &Loaded) -> Outcome {
    let (typed, table) = (typed(&arguments.routes)?, routes::table(&arguments.table)?);
    let twice = 2 * u64::from(loaded.config()?.max_hold);
    let all = Routes::open()?.all()?;
    let is_meant = |route: &&netlink::Route| {
        route.is_unicast() && route.table() == table && typed.iter().any(|prefix| route.leads_to(prefix))
    };
    for route in all.iter().filter(is_meant) {
        if let Some(least) = route.least_timeout().filter(|ms| u64::from(*ms) * 1_000_000 < twice) {
            return Err(Failure::input(format!(
                "{}: rto_min: found {least} ms, allowed is twice max_hold, {} us, or more; else onrampctl unload, \
                 onrampctl load --set max_hold={}us DEVICE",
                route.describe(),
                twice / 1_000,
                u64::from(least) * 1_000 / 2
            )));
        }
    }
    Ok(())
}

/// Sets the attributes of routes, and holds packets to their destinations.
pub fn enable(arguments: &arguments::Enable) -> Outcome {
    let request = Request::new(&arguments.routes, &arguments.table, arguments.watch)?;
    let prefixes = prefixes(&arguments.routes)?;
    covered(arguments)?;
    view::root()?;
    let registered = OnRamp::registered()?;
    let loaded = if arguments.stamps_only { None } else { Some(Loaded::needed()?) };
    for peer in &arguments.peer {
        let unit = probe::ask(*peer)?;
        if unit != probe::Unit::Microseconds {
            return Err(Failure::failed(format!(
                "{peer} {unit}: it would take what this host stamps for old after 36 minutes of idleness, and drop it; there first, \
                 `onrampctl enable --stamps-only` of the route to this host"
            )));
        }
    }
    let _lock = lock::hold::<OnRamp>()?;
    loaded.as_ref().map_or(Ok(()), |loaded| check_timeouts(arguments, loaded))?;
    let given_back = rollback::give_back_due::<OnRamp>();
    let finally = || match (&loaded, Loaded::open()?) {
        (Some(loaded), _) => loaded.hold(&prefixes),
        // They may have been held before.
        (None, Some(loaded)) if loaded.prefixes()?.iter().any(|held| prefixes.contains(held)) => {
            loaded.release(&prefixes)
        }
        (None, _) => Ok(()),
    };
    let done = request.enable::<OnRamp>(NAME, &registered, finally)?;
    // All is done before any of it is said: a reader may go away.
    given_back.iter().chain(&done.said).for_each(|line| say!("{line}"));
    match &loaded {
        None => say!("nothing is held from here; connections that are open keep their stamps"),
        Some(loaded) => {
            let names: Vec<String> = loaded.devices().into_iter().map(|device| device.name).collect();
            say!("packets are held on {}; connections that are open keep their stamps", names.join(", "));
        }
    }
    done.warnings.into_iter().chain(status::stamps()).for_each(|line| complain!("{line}"));
    Ok(())
}

/// Packets to the destinations of routes are held no more, and the routes get back what they had.
pub fn disable(arguments: &arguments::Disable) -> Outcome {
    // As they would be enabled, so that the same is accepted.
    Request::new(&arguments.routes, "main", Watch::Restore)?;
    let prefixes = prefixes(&arguments.routes)?;
    view::root()?;
    let _lock = lock::hold::<OnRamp>()?;
    let loaded = Loaded::open()?;
    let held = match &loaded {
        Some(loaded) => loaded.prefixes()?.iter().any(|held| prefixes.contains(held)),
        None => false,
    };
    if let (Some(loaded), true) = (&loaded, held) {
        loaded.release(&prefixes)?;
    }
    let typed = typed(&arguments.routes)?;
    let mut report = rollback::some::<OnRamp>(|route| typed.iter().any(|prefix| route.leads_to(prefix)))?;
    if held {
        report.said.push(format!("{}: nothing is held", arguments.routes.join(", ")));
    }
    if report.said.is_empty() && report.failures.is_empty() {
        return Err(Failure::input(format!("found no route {} that is enabled", arguments.routes.join(", "))));
    }
    report.said.iter().for_each(|line| say!("{line}"));
    report.outcome()
}
