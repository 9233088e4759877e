//! A sample of the golden vectors of `deploy/core`, through this crate. Their format is in
//! `deploy/core/oracle/onramp.py`; `deploy/core/test/run.sh` replays all of them in C.

use super::decision::{Config, Decision};
use std::collections::BTreeMap;

const SAMPLE: &str = include_str!("../../../core/test/onramp.txt");

fn config(fields: &[u32]) -> Config {
    let byte = |index: usize| u8::try_from(fields[index]).expect("a byte");
    Config {
        threshold: fields[0],
        max_hold: fields[1],
        quantum: fields[2],
        small_quantum: fields[3],
        beta: fields[4],
        spread: fields[5],
        reference: fields[6],
        gain: fields[7],
        step: fields[8],
        variant: byte(9),
        release: byte(10),
        reserved: [0; 2],
    }
}

#[test]
fn the_core_agrees_with_the_oracle() {
    let mut settings = Config::default();
    let mut decision = None;
    let mut expected = [0_u64; 7];
    let mut compared = BTreeMap::<&str, u32>::new();
    let mut rules = [[0; 4]; 3];
    let mut held = 0;
    for (index, line) in SAMPLE.lines().enumerate() {
        let at = index + 1;
        let (kind, rest) = line.split_once(' ').expect("a kind");
        if kind == "c" {
            let fields: Vec<u32> = rest.split(' ').map(|word| word.parse().expect("a number")).collect();
            settings = config(&fields);
            rules[usize::from(settings.variant)][usize::from(settings.release)] += 1;
            continue;
        }
        let (given, wanted) = line.split_once("= ").expect("decisions");
        let given: Vec<&str> = given.split_whitespace().skip(1).collect();
        let time = |index: usize| given[index].parse::<u64>().expect("a time");
        *compared.entry(kind).or_default() += 1;
        let flow = decision.get_or_insert_with(|| Decision::new(settings).expect("sound"));
        match kind {
            "n" => *flow = Decision::new(settings).expect("sound"),
            "r" => {
                assert_eq!(flow.release(time(0), time(1)).to_string(), wanted, "line {at}: {line}");
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
            state.bound.into(),
            state.held().into(),
        ];
        assert_eq!(found, expected, "line {at}: {line}");
        held += u32::from(state.held());
    }
    for (kind, least) in [("n", 15), ("r", 80), ("l", 30), ("p", 40)] {
        assert!(compared[kind] >= least, "{kind}: {compared:?}");
    }
    assert!(rules.as_flattened().iter().all(|flows| *flows > 0), "each pause with each release: {rules:?}");
    assert!(held >= 20, "{held}");
}
