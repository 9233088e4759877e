//! A domain whose events never end: the run ends all the same, by itself where time does not move, and when it is asked.

use incast_sim::engine::{
    Context, Domain, Event, Executor, Parcel,
    domain::Names,
    halt::{Halted, MOST_EVENTS_AT_ONE_TIME},
    queue::TieBreak,
};
use incast_units::Time;
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

const LOOKAHEAD: Time = Time::from_us(1);

/// An event that schedules itself again, `period` later.
struct Loop<'t> {
    period: Time,
    events: u64,
    /// Where it counts up to, if it ends at all.
    until: u64,
    started: &'t AtomicBool,
    handled: &'t AtomicU64,
}

impl Domain for Loop<'_> {
    type Message = Parcel<()>;
    type Attachment = [u64; 1];
    const ARRIVAL: u8 = 2;

    fn on_message(&mut self, _: u32, _: &Parcel<()>, _: Option<&[u64; 1]>, _: &mut Context<'_, Self>) {}

    fn on_event(&mut self, event: Event, context: &mut Context<'_, Self>) {
        self.events += 1;
        self.started.store(true, Ordering::Relaxed);
        if self.events < self.until {
            context.schedule(context.now() + self.period, event);
        } else {
            self.handled.fetch_add(self.events, Ordering::Relaxed);
        }
    }

    fn describe(&self, event: Event) -> String {
        format!("the timer of flow {}", event.payload)
    }
}

/// The second of three domains loops. Halts once `stop` is true.
fn run(period: Time, until: u64, threads: usize, started: &AtomicBool, stop: &AtomicBool) -> Result<u64, Halted> {
    let handled = AtomicU64::new(0);
    let domain = |name| (Loop { period, events: 0, until, started, handled: &handled }, Names::Base(name));
    let domains = (0..3).map(domain);
    let mut executor = Executor::new(domains, LOOKAHEAD, LOOKAHEAD, TieBreak::Fixed, false);
    executor.schedule(1, Time::from_us(7), Event { class: 3, entity: 0, payload: 42 });
    let halt = || stop.load(Ordering::Relaxed);
    executor.run(Time::from_ms(10), threads, &mut |_| true, None, &halt)?;
    drop(executor);
    Ok(handled.into_inner())
}

#[test]
fn time_that_does_not_move_ends_the_run_with_time_and_event() {
    let (started, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    for threads in [1, 2, 3] {
        let Err(Halted::Livelock(livelock)) = run(Time::ZERO, u64::MAX, threads, &started, &stop) else {
            panic!("no livelock was found");
        };
        assert_eq!(livelock.time, Time::from_us(7));
        assert_eq!(livelock.event, "the timer of flow 42");
    }
}

#[test]
fn many_events_at_one_time_are_no_livelock() {
    let (started, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let many = MOST_EVENTS_AT_ONE_TIME - 100_000;
    assert_eq!(run(Time::ZERO, many, 1, &started, &stop), Ok(many));
    // Nor are more of them if time moves, however slowly.
    let more = MOST_EVENTS_AT_ONE_TIME + 1_000_000;
    assert_eq!(run(Time::from_ps(1), more, 1, &started, &stop), Ok(more));
}

#[test]
fn whoever_asks_ends_a_livelock_within_a_second() {
    // Without the guard's limit in sight: time moves by a picosecond for each event, in one window after the other.
    for (period, threads) in [(1, 1), (1, 3), (0, 1), (0, 3)] {
        let (started, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let running = scope.spawn(|| run(Time::from_ps(period), u64::MAX, threads, &started, &stop));
            while !started.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(1));
            stop.store(true, Ordering::Relaxed);
            let asked = Instant::now();
            assert_eq!(running.join().expect("no panic"), Err(Halted::Asked));
            assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
        });
    }
}

/// The other colour would come to the same time if the run were stopped between two windows.
#[test]
fn a_halt_inside_a_window_of_two_phases_holds_for_the_other_colour() {
    for threads in [1, 2] {
        let (started, handled) = (AtomicBool::new(false), AtomicU64::new(0));
        let domain = |(name, until)| {
            let period = Time::ZERO;
            (Loop { period, events: 0, until, started: &started, handled: &handled }, Names::Base(name))
        };
        let domains = [(0, 1), (1, u64::MAX)].map(domain);
        let mut executor = Executor::new(domains, LOOKAHEAD, LOOKAHEAD, TieBreak::Fixed, false);
        executor.in_two_phases(1);
        // The second loops in the window that ends at 8 us; the first would be next, from 7 us on.
        for (domain, time) in [(0, Time::from_ns(7_500)), (1, Time::from_us(7))] {
            executor.schedule(domain, time, Event { class: 3, entity: 0, payload: 42 });
        }
        let halt = || started.load(Ordering::Relaxed);
        let done = executor.run(Time::from_ms(10), threads, &mut |_| true, None, &halt);
        assert_eq!(done.map(|_| ()), Err(Halted::Asked));
        drop(executor);
        assert_eq!(handled.into_inner(), 0, "{threads} threads");
    }
}
