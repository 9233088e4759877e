//! `onrampctl watch`: routes stay as they were enabled, devices keep fq, and clocks are estimated, or compared with those of peers.

use crate::{
    arguments::Following,
    bpf::Loaded,
    clocks::{self, Clocks},
    exchange::Exchange,
    message::Key,
    stamps::OnRamp,
};
use hostctl::{complain, failure::Outcome, view, watch};
use std::{thread, time::Duration};

/// Between two looks at devices, of which each gives the estimator as long.
const PAUSE: Duration = Duration::from_secs(1);

/// Watches until it is ended.
pub fn watch(arguments: &Following) -> Outcome {
    if let (Some(source), Some(key)) = (arguments.clock, &arguments.key) {
        let key = Key::read(key)?;
        view::root()?;
        let exchange = Exchange::new(source, key, arguments.port)?;
        thread::spawn(|| exchange.run());
    }
    // It ends with the process; what it does not do is done without it, by wider bounds.
    thread::spawn(|| {
        let (mut clocks, mut complaint) = (Clocks::default(), None);
        loop {
            let found = look(&mut clocks).unwrap_or_else(|failure| Some(failure.to_string()));
            // Once, however often it is so.
            if let (Some(line), true) = (&found, found != complaint) {
                complain!("watch: {line}");
            }
            complaint = found;
        }
    });
    watch::watch::<OnRamp>()
}

/// Follows clocks for a while. Returns what a device lacks.
fn look(clocks: &mut Clocks) -> Outcome<Option<String>> {
    let Some(loaded) = Loaded::open()? else {
        *clocks = Clocks::default();
        thread::sleep(PAUSE);
        return Ok(None);
    };
    clocks::follow(&loaded, clocks, PAUSE)?;
    let mut lacking = None;
    for device in loaded.devices() {
        lacking = lacking.or(device.lacking(loaded.form())?);
    }
    Ok(lacking)
}
