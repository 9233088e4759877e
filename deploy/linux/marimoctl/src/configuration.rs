//! The algorithm's configuration as an operator writes it: `name = value`, from a file or from the command line.
//!
//! Names and meanings are those of the simulator's parameters (`incast list schemes`), so that what was simulated can be
//! loaded; loads, shares and packets are decimals here and Q16 in the kernel. The initial and the least window are
//! packets, as TCP has no BDP to begin with.

use hostctl::failure::{Failure, Outcome};
use incast_cc::window::marimo::core::{
    Config, FROM_EPOCH, FROM_MEMORY, INCREASE_MAX, NEVER, ONE, START_EPOCH, START_MARK, START_STEADY, WINDOW_MAX,
};

/// The least window: below two packets a delayed acknowledgement would stop a connection.
pub const FLOOR: u32 = 2;

/// What a value may be.
enum Kind {
    /// A decimal in a range, kept as Q16 in a field.
    Q16(f64, f64, fn(&mut Config, u32)),
    /// A whole number in a range.
    Whole(u32, u32, fn(&mut Config, u32)),
    /// One of these words.
    Word(&'static [(&'static str, u8)], fn(&mut Config, u8)),
}

const LOADS: f64 = 8.0;

/// Everything that can be set, in the order of the documentation.
const NAMES: &[(&str, Kind)] = &[
    ("rule", Kind::Word(&[("paper", 0), ("settling", 1)], rule)),
    ("increase_below", Kind::Q16(0.0001, LOADS, |c, v| c.increase_below = v)),
    ("decrease_above", Kind::Q16(0.0001, LOADS, |c, v| c.decrease_above = v)),
    ("target", Kind::Q16(0.0625, LOADS, |c, v| c.target = v)),
    ("min_decrease", Kind::Q16(0.0, 0.9999, |c, v| c.min_decrease = v)),
    ("max_decrease", Kind::Q16(0.0, 0.9999, |c, v| c.max_decrease = v)),
    (
        "forget",
        Kind::Word(&[("true", 1), ("false", 0)], |c, v| c.rho_after_decrease = if v == 1 { ONE } else { NEVER }),
    ),
    ("decrease_from", Kind::Word(&[("memory", FROM_MEMORY), ("epoch", FROM_EPOCH)], |c, v| c.decrease_from = v)),
    ("settle", Kind::Whole(0, 255, |c, v| c.settle = v as u8)),
    ("increase", Kind::Q16(0.0001, 255.0, |c, v| c.increase = v)),
    ("max_increase", Kind::Q16(0.0001, 255.0, |c, v| c.max_increase = v)),
    (
        "slow_start",
        Kind::Word(&[("off", START_STEADY), ("epoch", START_EPOCH), ("first-mark", START_MARK)], |c, v| {
            c.slow_start = v
        }),
    ),
    ("loss_load", Kind::Q16(0.0, LOADS, |c, v| c.loss_rho = v)),
    ("loss_decrease", Kind::Q16(0.0, 0.9999, |c, v| c.loss_decrease = v)),
    ("initial_window", Kind::Whole(FLOOR, WINDOW_MAX, |c, v| c.initial_window = v * ONE)),
    ("min_window", Kind::Whole(FLOOR, WINDOW_MAX, |c, v| c.min_window = v * ONE)),
    ("max_window", Kind::Whole(FLOOR, WINDOW_MAX, |c, v| c.max_window = v * ONE)),
    ("min_epoch", Kind::Whole(1, 32_767, |c, v| c.min_epoch = v)),
    ("beta_shift", Kind::Whole(0, 8, |c, v| c.beta_shift = v as u8)),
];

/// What the rule "settling" lets the increase grow to, in packets: `MARIMO_TCP_SETTLING_INCREASE` of `marimo_tcp.h`.
const SETTLING_INCREASE: u32 = 4;

/// `rule = "settling"` is a set of defaults: those of the simulator, but for the bound of the increase, as there is no
/// BDP to take a share of.
fn rule(config: &mut Config, settling: u8) {
    if settling == 1 {
        config.decrease_from = FROM_EPOCH;
        config.settle = 1;
        config.slow_start = START_MARK;
        config.max_increase = SETTLING_INCREASE * ONE;
    }
}

/// The defaults of the simulator, with the initial window of RFC 6928 and the floor of a TCP.
pub fn defaults() -> Config {
    Config {
        increase_below: 58_982,
        decrease_above: ONE,
        target: 62_259,
        min_decrease: 0,
        max_decrease: ONE / 2,
        rho_after_decrease: ONE,
        loss_rho: 78_643,
        loss_decrease: ONE / 2,
        initial_window: 10 * ONE,
        min_window: FLOOR * ONE,
        max_window: WINDOW_MAX * ONE,
        increase: ONE,
        max_increase: ONE,
        min_epoch: 2,
        beta_shift: 1,
        decrease_from: FROM_MEMORY,
        settle: 0,
        slow_start: START_EPOCH,
    }
}

/// One `name = value` and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Such as `host.conf line 3`.
    pub place: String,
    /// The name.
    pub name: String,
    /// The value as written.
    pub value: String,
}

/// The settings of a file: one per line, `#` begins a comment.
pub fn parse(path: &str, text: &str) -> Outcome<Vec<Setting>> {
    let mut settings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            settings.push(one(&format!("{path} line {}", number + 1), line)?);
        }
    }
    Ok(settings)
}

/// One `name = value`.
pub fn one(place: &str, text: &str) -> Outcome<Setting> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(Failure::input(format!("{place}: found {text:?}, allowed is name = value")));
    };
    Ok(Setting { place: place.into(), name: name.trim().into(), value: value.trim().trim_matches('"').into() })
}

/// The defaults with these settings; of a name that is set twice the last one counts.
pub fn resolve(settings: &[Setting]) -> Outcome<Config> {
    let mut config = defaults();
    let (rules, others): (Vec<_>, Vec<_>) = settings.iter().partition(|setting| setting.name == "rule");
    for setting in rules.iter().chain(&others) {
        apply(&mut config, setting)?;
    }
    let place = |name: &str| {
        let found = settings.iter().rev().find(|setting| setting.name == name);
        found.map_or_else(|| format!("the default of {name}"), |setting| format!("{}: {name}", setting.place))
    };
    // An increase that is set alone carries its bound along, as in the simulator and the module.
    if !settings.iter().any(|setting| setting.name == "max_increase") {
        config.max_increase = config.max_increase.max(config.increase);
    }
    for (low, high, low_name, high_name) in [
        (config.increase_below, config.decrease_above, "increase_below", "decrease_above"),
        (config.min_decrease, config.max_decrease, "min_decrease", "max_decrease"),
        (config.increase, config.max_increase, "increase", "max_increase"),
        (config.min_window, config.initial_window, "min_window", "initial_window"),
        (config.initial_window, config.max_window, "initial_window", "max_window"),
    ] {
        if low > high {
            return Err(Failure::input(format!(
                "{}: found {}, allowed is at most {high_name}, {}",
                place(low_name),
                decimal(low),
                decimal(high)
            )));
        }
    }
    Ok(config)
}

fn apply(config: &mut Config, setting: &Setting) -> Outcome {
    let Setting { place, name, value } = setting;
    let wrong =
        |allowed: String| Err(Failure::input(format!("{place}: {name}: found {value:?}, allowed is {allowed}")));
    let Some((_, kind)) = NAMES.iter().find(|(known, _)| known == name) else {
        let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
        return Err(Failure::input(format!("{place}: found {name:?}, allowed is one of {}", names.join(", "))));
    };
    match kind {
        Kind::Q16(least, most, set) => match value.parse::<f64>() {
            Ok(number) if (*least..=*most).contains(&number) => {
                set(config, ((number * f64::from(ONE)).round() as u32).min(INCREASE_MAX.max(8) * ONE));
            }
            _ => return wrong(format!("a number from {least} to {most}")),
        },
        Kind::Whole(least, most, set) => match value.parse::<u32>() {
            Ok(number) if (*least..=*most).contains(&number) => set(config, number),
            _ => return wrong(format!("a whole number from {least} to {most}")),
        },
        Kind::Word(words, set) => match words.iter().find(|(word, _)| word == value) {
            Some((_, number)) => set(config, *number),
            None => {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                return wrong(words.join(" or "));
            }
        },
    }
    Ok(())
}

/// A Q16 number as a decimal.
pub fn decimal(q16: u32) -> String {
    let text = format!("{:.4}", f64::from(q16) / f64::from(ONE));
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// The configuration as `name = value`, as [`parse`] reads it.
pub fn describe(config: &Config) -> Vec<(&'static str, String)> {
    let word = |choices: &[(&str, u8)], value: u8| {
        choices
            .iter()
            .find(|(_, number)| *number == value)
            .map_or_else(|| value.to_string(), |(word, _)| (*word).into())
    };
    NAMES
        .iter()
        .filter_map(|(name, kind)| {
            let value = match (*name, kind) {
                ("rule", _) => return None,
                ("increase_below", _) => decimal(config.increase_below),
                ("decrease_above", _) => decimal(config.decrease_above),
                ("target", _) => decimal(config.target),
                ("min_decrease", _) => decimal(config.min_decrease),
                ("max_decrease", _) => decimal(config.max_decrease),
                ("forget", _) => (config.rho_after_decrease != NEVER).to_string(),
                ("decrease_from", Kind::Word(words, _)) => word(words, config.decrease_from),
                ("settle", _) => config.settle.to_string(),
                ("increase", _) => decimal(config.increase),
                ("max_increase", _) => decimal(config.max_increase),
                ("slow_start", Kind::Word(words, _)) => word(words, config.slow_start),
                ("loss_load", _) => decimal(config.loss_rho),
                ("loss_decrease", _) => decimal(config.loss_decrease),
                ("initial_window", _) => decimal(config.initial_window),
                ("min_window", _) => decimal(config.min_window),
                ("max_window", _) => decimal(config.max_window),
                ("min_epoch", _) => config.min_epoch.to_string(),
                ("beta_shift", _) => config.beta_shift.to_string(),
                _ => unreachable!("every name is above, as a test shows"),
            };
            Some((*name, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use incast_cc::window::marimo::core::{LoadTable, Shared};

    fn given(text: &str) -> Outcome<Config> {
        resolve(&parse("host.conf", text)?)
    }

    /// The file is that of `parameters_of_marimo_are_for_marimoctl_and_the_module`, a test of that command.
    #[test]
    fn what_incast_config_writes_is_read() {
        let config = given(include_str!("../../../../crates/incast/tests/cli/golden/marimo.conf")).expect("values");
        let expected = Config {
            max_decrease: 26_214,
            max_increase: 7 * ONE / 2,
            beta_shift: 2,
            target: 60_981,
            rho_after_decrease: NEVER,
            ..given("rule = settling").expect("values")
        };
        assert_eq!(config, expected);
    }

    fn refused(text: &str) -> String {
        match given(text) {
            Err(Failure::BadInput(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_defaults_are_valid_and_survive_their_text() {
        for config in [defaults(), given("rule = settling").expect("allowed")] {
            assert!(Shared::new(config, &LoadTable::calibrated()).is_some());
            let text: String = describe(&config).iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
            assert_eq!(describe(&given(&text).expect("allowed")), describe(&config));
        }
    }

    #[test]
    fn every_allowed_configuration_is_one_that_the_core_takes() {
        for (name, kind) in NAMES {
            let values: Vec<String> = match kind {
                Kind::Q16(least, most, _) => vec![least.to_string(), most.to_string()],
                Kind::Whole(least, most, _) => vec![least.to_string(), most.to_string()],
                Kind::Word(words, _) => words.iter().map(|(word, _)| (*word).to_string()).collect(),
            };
            for value in values {
                // Both ends may contradict another default; what is not refused must be sound.
                if let Ok(config) = given(&format!("{name} = {value}")) {
                    let steep =
                        LoadTable::new("steep", std::array::from_fn(|knot| if knot == 0 { 0 } else { 8 * ONE }));
                    let shared = Shared::new(config, &steep.expect("sound"));
                    // At the largest threshold no table can cross it.
                    assert!(shared.is_some() || config.decrease_above == 8 * ONE, "{name} = {value}");
                }
            }
        }
    }

    #[test]
    fn settings_apply_in_any_order_around_the_rule() {
        let config = given("settle = 3\nrule = settling # ours\n\n").expect("allowed");
        assert_eq!((config.settle, config.slow_start, config.max_increase), (3, START_MARK, SETTLING_INCREASE * ONE));
        assert_eq!(given("increase = 4").expect("allowed").max_increase, 4 * ONE);
        assert_eq!(given("increase = 8\nrule = settling").expect("allowed").max_increase, 8 * ONE);
        assert_eq!(given("rule = settling\nmax_increase = 2").expect("allowed").max_increase, 2 * ONE);
    }

    #[test]
    fn settling_is_what_the_module_has() {
        let header = include_str!("../../marimo_tcp.h");
        let line = format!("#define MARIMO_TCP_SETTLING_INCREASE {SETTLING_INCREASE}\n");
        assert!(header.contains(&line), "marimo_tcp.h has no {line}");
    }

    #[test]
    fn faults_name_the_file_the_line_and_what_is_allowed() {
        assert_eq!(
            refused("# a host\ntarget = 9"),
            "host.conf line 2: target: found \"9\", allowed is a number from 0.0625 to 8"
        );
        assert_eq!(refused("settle"), "host.conf line 1: found \"settle\", allowed is name = value");
        assert!(
            refused("cwnd = 3").starts_with("host.conf line 1: found \"cwnd\", allowed is one of rule, increase_below")
        );
        assert_eq!(
            refused("slow_start = fast"),
            "host.conf line 1: slow_start: found \"fast\", allowed is off or epoch or first-mark"
        );
        assert!(refused("min_window = 1").contains("a whole number from 2 to 65535"));
        assert!(refused("target = nan").contains("a number from"));
        assert_eq!(
            refused("increase_below = 1.1"),
            "host.conf line 1: increase_below: found 1.1, allowed is at most decrease_above, 1"
        );
        assert_eq!(
            refused("decrease_above = 0.5"),
            "the default of increase_below: found 0.9, allowed is at most decrease_above, 0.5"
        );
    }
}
