//! `marimoctl unload`.

use crate::{
    arguments,
    bpf::{self, Loaded, PINS},
    layout::NAME,
    routes::Marimo,
    view,
};
use hostctl::{
    bpf::remove_pins,
    failure::{Failure, Outcome},
    lock, rollback, routes, say,
    view::root,
};
use std::{fs, thread, time::Duration, time::Instant};

/// The kernel forgets the name shortly after the last reference is gone.
const FORGETTING: Duration = Duration::from_secs(5);

/// Takes the registration away. Connections that use it keep the programs until they close: none is touched.
pub fn unload(arguments: &arguments::Unload) -> Outcome {
    root()?;
    let lock = lock::hold::<Marimo>()?;
    let given_back = rollback::give_back_due::<Marimo>();
    let Some(loaded) = Loaded::open() else {
        if fs::metadata(PINS).is_err() {
            return view::not_loaded(format!("{NAME} is not loaded"));
        }
        remove_pins(PINS)?;
        say!("removed {PINS}, which a load that did not end had left");
        return Ok(());
    };
    // Kernels before 6.10 cannot detach; there the pin is the last reference.
    let _ = loaded.link.detach();
    remove_pins(PINS)?;
    // The counters outlive the registration as long as they are held here.
    let counters = loaded.into_counters();
    let start = Instant::now();
    while bpf::registered()?.iter().any(|name| name == NAME) {
        if start.elapsed() > FORGETTING {
            return Err(Failure::failed(format!("{NAME} is still registered: something else holds it")));
        }
        thread::sleep(Duration::from_millis(10));
    }
    // Waiting changes nothing: others may go on. All is done before any of it is said: a reader may go away.
    drop(lock);
    given_back.iter().for_each(|line| say!("{line}"));
    if routes::enabled::<Marimo>().is_ok_and(|enabled| enabled.routes + enabled.drifted.len() > 0) {
        say!("routes are still enabled; marimoctl rollback gives them back what they had");
    }
    let open =
        || Ok::<_, Failure>(counters.as_ref().map(bpf::counters).transpose()?.map_or(0, |counters| counters.open()));
    while open()? > 0 && start.elapsed() < Duration::from_secs(arguments.wait) {
        thread::sleep(Duration::from_millis(50));
    }
    match open()? {
        0 => say!("{NAME} is unloaded"),
        left if arguments.wait == 0 => {
            say!("{NAME} is unloaded; {left} connections keep their copy until they close");
        }
        left => {
            return Err(Failure::failed(format!(
                "{NAME} is unloaded, but {left} connections still use their copy after {} s",
                arguments.wait
            )));
        }
    }
    Ok(())
}
