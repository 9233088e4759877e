//! `[short]`, and claims that compare schemes.

use super::*;

const SHORT: &str =
    "\n[short]\nduration = \"2ms\"\nwarmup = \"1ms\"\nseeds = [7]\ngrid = { \"workload.background.load\" = [0.4] }\n";

fn parse_short(text: &str, sets: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let sets: Vec<(String, String)> = sets.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    Scenario::parse_form(Source { path: "x.toml".into(), text: text.into() }, &sets, Form::Short)
}

#[test]
fn a_short_form_replaces_what_it_names() {
    let claim = "\n[[paper.claim]]\nmetric = \"fct_us.p50\"\nscheme = \"cubic\"\nvalue = 1\ngrid = { \"workload.background.load\" = 0.2 }\n";
    let text = format!("{GOOD}{claim}{SHORT}");
    let full = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((full.form, full.duration, full.seeds.len()), (Form::Full, Time::from_ms(20), 3));
    assert_eq!((full.runs().len(), full.claims.len()), (2 * 2 * 3 * 3, 2));
    // The full form's identity does not depend on what the short one is.
    assert_eq!(full.effective_toml(), parse(&format!("{GOOD}{claim}")).expect("valid").effective_toml());

    let short = parse_short(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((short.form, short.duration, short.warmup), (Form::Short, Time::from_ms(2), Time::from_ms(1)));
    assert_eq!((short.seeds.as_slice(), short.drain), (&[7_u64][..], Time::from_ms(500)));
    // One load instead of two; the claim about the other is left out.
    assert_eq!((short.runs().len(), short.claims.len()), (2 * 3, 1));
    assert!(short.runs().iter().all(|run| run.form == Form::Short));
    assert!(!short.effective_toml().contains("[short]"));

    let set = parse_short(&text, &[("duration", "\"3ms\"")]).expect("valid");
    assert_eq!((set.duration, set.warmup), (Time::from_ms(3), Time::from_ms(1)));
    let set = parse_short(&text, &[("short.duration", "\"4ms\"")]).expect("valid");
    assert_eq!(set.duration, Time::from_ms(4));
}

#[test]
fn faults_of_a_short_form_are_found() {
    let none = parse_short(GOOD, &[]).expect("valid");
    assert_eq!(none.form, Form::Full);
    assert!(none.warnings.iter().any(|warning| warning.contains("no [short]")), "{:?}", none.warnings);

    let wrong = format!("{GOOD}\n[short]\nduratoin = \"1ms\"\n");
    let message = parse(&wrong).expect_err("a typo").to_string();
    assert!(message.contains("duratoin") && message.contains("\"duration\""), "{message}");
    // Its own line, not that of what it replaces.
    let wrong = format!("{GOOD}\n[short]\nduration = \"1ms\"\n");
    let line = wrong.lines().count();
    let error = parse_short(&wrong, &[]).expect_err("the warm-up is longer");
    assert!(error.to_string().contains("warmup"), "{error}");
    let wrong = format!("{GOOD}\n[short]\nseeds = []\n");
    assert_eq!(parse_short(&wrong, &[]).expect_err("no seeds").line, Some(line));
}

#[test]
fn ratios_are_to_schemes_that_there_are() {
    let to = |list: &str| GOOD.replacen("value = 640", &format!("value = 1.5\nratio_to = {list}"), 1);
    for good in ["\"cubic\"", "[\"cubic\"]", "[\"cubic\", \"dctcp\"]"] {
        let scenario = parse(&to(good)).unwrap_or_else(|error| panic!("{error}"));
        let again = parse(&scenario.effective_toml()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.claims, scenario.claims);
    }
    let line = to("1").lines().position(|line| line.starts_with("ratio_to")).map(|line| line + 1);
    for (bad, expected) in [
        ("[]", "at least one"),
        ("[\"cubic\", \"cubik\"]", "ratio_to[1]: there is no scheme \"cubik\""),
        ("\"cubik\"", "did you mean"),
        ("3", "the name of a scheme, or a list of names"),
        ("[\"cubic\", 3]", "ratio_to[1]: found 3, allowed is a text"),
    ] {
        let error = parse(&to(bad)).err().unwrap_or_else(|| panic!("accepted: {bad}"));
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.line, line, "{error}");
    }
}
