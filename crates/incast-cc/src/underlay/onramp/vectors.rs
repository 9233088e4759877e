//! The golden vectors of `deploy/core`, through this crate. Their format is in `deploy/core/oracle/onramp.py`.

use super::decision::{Config, Decision};

const VECTORS: &str = include_str!("../../../core/test/onramp.txt");

fn config(fields: &[u32]) -> Config {
    let byte = |index: usize| u8::try_from(fields[index]).expect("a byte");
    Config {
        threshold: fields[0],
        max_hold: fields[1],
        quantum: fields[2],
        small_quantum: fields[3],
        beta: fields[4],
        pace: fields[5],
        gain: fields[6],
        step: fields[7],
        variant: byte(8),
        release: byte(9),
        ramp: byte(10),
        reserved: 0,
    }
}

#[test]
fn the_core_agrees_with_the_oracle() {
    let mut settings = Config::default();
    let mut decision = None;
    let mut expected = [0_u64; 6];
    let mut compared = 0;
    for (index, line) in VECTORS.lines().enumerate() {
        let at = index + 1;
        let (kind, rest) = line.split_once(' ').expect("a kind");
        if kind == "c" {
            let fields: Vec<u32> = rest.split(' ').map(|word| word.parse().expect("a number")).collect();
            settings = config(&fields);
            continue;
        }
        let (given, wanted) = line.split_once("= ").expect("decisions");
        let given: Vec<&str> = given.split_whitespace().skip(1).collect();
        let time = |index: usize| given[index].parse::<u64>().expect("a time");
        let flow = decision.get_or_insert_with(|| Decision::new(settings).expect("sound"));
        match kind {
            "n" => *flow = Decision::new(settings).expect("sound"),
            "r" => {
                assert_eq!(flow.release(time(0), time(1)).to_string(), wanted, "line {at}: {line}");
                compared += 1;
                continue;
            }
            "l" => flow.on_release(time(0), time(1)),
            "p" => flow.on_report(time(0), time(1), given[2].parse().expect("a delay")),
            _ => panic!("line {at}: {kind}"),
        }
        for (number, word) in expected.iter_mut().zip(wanted.split(' ')) {
            if word != "." {
                *number = word.parse().expect("a number");
            }
        }
        let state = flow.state();
        let found = [
            state.pause_until,
            state.next,
            state.outstanding.into(),
            state.limit.into(),
            state.gap.into(),
            state.held().into(),
        ];
        assert_eq!(found, expected, "line {at}: {line}");
        compared += 1;
    }
    assert!(compared > 10_000, "{compared}");
}
