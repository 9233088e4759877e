//! What a Linux kernel's Marimo was told and decided, acknowledgement by acknowledgement, through this crate.
//!
//! `deploy/core/test/marimo-kernel.txt` was recorded under virtual time (`rigs/virtual-time/record.sh` makes it
//! again). `INCAST_REPLAY` names another recording to replay instead. The format is that of the golden vectors; a line
//! without decisions is the first of two events that the kernel reports as one.

use incast_cc::window::marimo::core::{
    Config, Connection, LoadTable, Shared,
    vectors::{self, Decided, Event, LineContent},
};

const RECORDED: &str = include_str!("../core/test/marimo-kernel.txt");

/// What a recording had in it.
#[derive(Debug, Default)]
struct Replayed {
    connections: usize,
    events: usize,
    epochs: usize,
    marked: usize,
    reductions: usize,
}

/// Replays a recording; the first event after which this crate decides otherwise is an error.
fn replay(recording: &str) -> Result<Replayed, String> {
    let mut settings = Config::default();
    let mut shared = None;
    let mut connection = None;
    let mut last = Decided::default();
    let mut replayed = Replayed::default();
    for line in vectors::lines(recording) {
        let line = line.map_err(|error| error.to_string())?;
        let (event, decided) = match line.content {
            LineContent::Config(config) => {
                settings = config;
                continue;
            }
            LineContent::Table(knots) => {
                let table = LoadTable::new("recorded", knots).expect("a sound table");
                shared = Some(Shared::new(settings, &table).expect("a sound configuration"));
                continue;
            }
            LineContent::Event { event, decided } => (event, decided),
        };
        let shared = shared.as_ref().expect("a table comes first");
        let state = connection.get_or_insert_with(|| Connection::new(shared));
        event.apply(state, shared);
        match event {
            Event::New => replayed.connections += 1,
            Event::Ack(ack) => replayed.marked += usize::from(ack.marked > 0),
            _ => {}
        }
        let Some(decided) = decided else { continue };
        let before = std::mem::replace(&mut last, decided);
        let Decided { window, rho, epochs, .. } = decided;
        let found = [state.window(), state.rho(), state.epochs()];
        if found != [window, rho, epochs] {
            return Err(format!(
                "line {}: the kernel had window, rho, epochs {window} {rho} {epochs}, here they are {found:?}",
                line.number
            ));
        }
        replayed.events += 1;
        if !matches!(event, Event::New) {
            replayed.epochs += usize::from(epochs != before.epochs);
            replayed.reductions += usize::from(window < before.window);
        }
    }
    Ok(replayed)
}

#[test]
fn a_kernel_decides_what_this_crate_decides() {
    let given = std::env::var("INCAST_REPLAY").ok();
    let recording = given.as_ref().map(|path| std::fs::read_to_string(path).expect("the recording"));
    let replayed = replay(recording.as_deref().unwrap_or(RECORDED)).unwrap_or_else(|error| panic!("{error}"));
    println!("{replayed:?}");
    // A recording that says nothing would agree, too.
    assert!(replayed.connections >= 4 && replayed.epochs >= 20, "{replayed:?}");
    assert!(replayed.marked >= 20 && replayed.reductions >= 4, "{replayed:?}");
}

#[test]
fn a_wrong_decision_is_noticed() {
    let mut wrong: Vec<String> = RECORDED.lines().map(str::to_owned).collect();
    let last = wrong.iter().rposition(|line| line.starts_with('a') && line.contains('=')).expect("some");
    let (given, _) = wrong[last].split_once('=').expect("decisions");
    wrong[last] = format!("{given}= 1 . . . .");
    let error = replay(&wrong.join("\n")).expect_err("the window is not 1/65536 of a packet");
    assert!(error.starts_with(&format!("line {}: ", last + 1)), "{error}");
}
