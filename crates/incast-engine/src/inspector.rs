//! What is asked and told of a run while it goes on.

use incast_units::Time;

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    /// Simulated time.
    pub time: Time,
    /// Messages handled.
    pub messages: u64,
}

/// The result of an inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Nothing to watch: no further inspection until something happens.
    Calm,
    /// No further inspection before this time, as long as nothing happens.
    Busy(Time),
    /// The run must end.
    Stop,
}

/// Inspects all domains at fixed simulated times.
pub struct Inspector<'l, D> {
    /// Time between inspections, above zero.
    pub every: Time,
    /// Reads the domains in the state of that time, at most one window later. The result depends on simulated time
    /// alone, not on threads or windows.
    pub inspect: &'l mut Inspect<'l, D>,
}

/// See [`Inspector::inspect`].
pub type Inspect<'l, D> = dyn FnMut(Time, &[&D]) -> Finding + 'l;

impl<D> Inspector<'_, D> {
    /// Inspects at all times from `next` to `until`, between which nothing happens. Returns the time of the inspection that
    /// ends the run.
    #[cold]
    pub(super) fn inspect_until(&mut self, next: Time, until: Time, domains: &[&D]) -> Option<Time> {
        let mut time = next;
        while time <= until {
            match (self.inspect)(time, domains) {
                Finding::Stop => return Some(time),
                Finding::Calm => return None,
                Finding::Busy(later) => {
                    let every = self.every.ps();
                    let at = Time::from_ps(later.ps().div_ceil(every).checked_mul(every)?);
                    time = at.max(time.checked_add(self.every)?);
                }
            }
        }
        None
    }
}
