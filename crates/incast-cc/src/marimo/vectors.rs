//! The golden vectors of `deploy/core`, through this crate. Their format is in `deploy/core/oracle/marimo.py`.

use super::{Ack, Config, Connection, KNOTS, LoadTable, Shared};

const VECTORS: &str = include_str!("../../../../deploy/core/test/marimo.txt");

fn numbers(text: &str) -> Vec<u32> {
    text.split(' ').map(|word| word.parse().expect("a number")).collect()
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

#[test]
fn the_core_agrees_with_the_oracle() {
    let mut settings = Config::default();
    let mut shared = None;
    let mut connection = None;
    let mut expected = vec![0; 5];
    let mut compared = 0;
    for (index, line) in VECTORS.lines().enumerate() {
        let (kind, rest) = line.split_once(' ').expect("a kind");
        match kind {
            "c" => settings = config(&numbers(rest)),
            "t" => {
                let knots: [u32; KNOTS] = numbers(rest).try_into().expect("65 knots");
                shared = Some(Shared::new(settings, &LoadTable::unchecked(knots)).expect("sound"));
            }
            _ => {
                let shared = shared.as_ref().expect("a table first");
                let (given, wanted) = line.split_once(" = ").expect("decisions");
                let given = given.split_once(' ').map_or_else(Vec::new, |(_, given)| numbers(given));
                let state = connection.get_or_insert_with(|| Connection::new(shared));
                match kind {
                    "n" => *state = Connection::new(shared),
                    "a" => {
                        let ack = Ack {
                            packets: given[0],
                            marked: given[1],
                            acked: given[2],
                            position: given[3],
                            next: given[4],
                            limited: given[5],
                        };
                        state.on_ack(shared, &ack);
                    }
                    "l" => state.on_loss(shared, given[0], given[1]),
                    "o" => state.on_timeout(shared, given[0]),
                    "i" => state.on_idle(given[0]),
                    _ => panic!("line {}: {kind}", index + 1),
                }
                for (number, word) in expected.iter_mut().zip(wanted.split(' ')) {
                    if word != "." {
                        *number = word.parse().expect("a number");
                    }
                }
                let inner = state.0;
                let found = [inner.window, inner.threshold, inner.rho, inner.gain, inner.epochs];
                assert_eq!(found.as_slice(), expected, "line {}: {line}", index + 1);
                compared += 1;
            }
        }
    }
    assert!(compared > 7000, "{compared}");
}
