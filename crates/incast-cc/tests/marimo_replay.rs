//! What a Linux kernel's Marimo was told and decided, acknowledgement by acknowledgement, through this crate.
//!
//! `deploy/core/test/marimo-kernel.txt` was recorded under virtual time (`deploy/rigs/virtual-time/record.sh` makes it
//! again). `INCAST_REPLAY` names another recording to replay instead. The format is that of the golden vectors; a line
//! without decisions is the first of two events that the kernel reports as one.

use incast_cc::marimo::{Ack, Config, Connection, KNOTS, LoadTable, Shared};

const RECORDED: &str = include_str!("../../../deploy/core/test/marimo-kernel.txt");

fn numbers(text: &str) -> Vec<u32> {
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

fn config(fields: &[u32]) -> Config {
    let byte = |index: usize| u8::try_from(fields[index]).expect("a byte");
    Config {
        increase_below: fields[0],
        decrease_above: fields[1],
        target: fields[2],
        min_decrease: fields[3],
        max_decrease: fields[4],
        rho_after_decrease: fields[5],
        loss_rho: fields[6],
        loss_decrease: fields[7],
        initial_window: fields[8],
        min_window: fields[9],
        max_window: fields[10],
        increase: fields[11],
        max_increase: fields[12],
        min_epoch: fields[13],
        beta_shift: byte(14),
        decrease_from: byte(15),
        settle: byte(16),
        slow_start: byte(17),
    }
}

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
    let mut expected = [0; 5];
    let mut replayed = Replayed::default();
    for (index, line) in recording.lines().enumerate() {
        let (given, decided) =
            line.split_once('=').map_or((line, None), |(given, decided)| (given, Some(decided)));
        let (kind, given) = given.split_at(1);
        match kind {
            "c" => {
                settings = config(&numbers(given));
                continue;
            }
            "t" => {
                let knots: [u32; KNOTS] = numbers(given).try_into().expect("65 knots");
                let table = LoadTable::new("recorded", knots).expect("a sound table");
                shared = Some(Shared::new(settings, &table).expect("a sound configuration"));
                continue;
            }
            _ => {}
        }
        let shared = shared.as_ref().expect("a table comes first");
        let given = numbers(given);
        let state = connection.get_or_insert_with(|| Connection::new(shared));
        match kind {
            "n" => {
                *state = Connection::new(shared);
                replayed.connections += 1;
            }
            "a" => {
                let ack = Ack {
                    packets: given[0],
                    marked: given[1],
                    acked: given[2],
                    position: given[3],
                    next: given[4],
                    limited: given[5],
                };
                replayed.marked += usize::from(ack.marked > 0);
                state.on_ack(shared, &ack);
            }
            "l" => state.on_loss(shared, given[0], given[1]),
            "o" => state.on_timeout(shared, given[0]),
            "i" => state.on_idle(given[0]),
            _ => return Err(format!("line {}: unknown kind {kind}", index + 1)),
        }
        let Some(decided) = decided else { continue };
        let before = expected;
        for (number, word) in expected.iter_mut().zip(decided.split_whitespace()) {
            if word != "." {
                *number = word.parse().expect("a number");
            }
        }
        let [window, _, rho, _, epochs] = expected;
        let found = [state.window(), state.rho(), state.epochs()];
        if found != [window, rho, epochs] {
            return Err(format!(
                "line {}: the kernel had window, rho, epochs {window} {rho} {epochs}, here they are {found:?}",
                index + 1
            ));
        }
        replayed.events += 1;
        if kind != "n" {
            replayed.epochs += usize::from(epochs != before[4]);
            replayed.reductions += usize::from(window < before[0]);
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
