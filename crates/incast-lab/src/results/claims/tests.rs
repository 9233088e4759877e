//! Claims judged on rows made by hand.

use super::*;
use crate::{results::row::Seed, scenario::Bases};

pub fn row(scheme: &str, load: f64, seed: Option<u64>, p99: f64) -> Row {
    let text = serde_json::json!({
        "scheme": scheme, "class": "all", "seed": seed.map_or(Value::from("all"), Value::from),
        "grid": {"load": load}, "runs": 1, "flows": 1, "completed": 1, "by_size": [],
        "fct_us": {"mean": p99, "p50": p99, "p95": p99, "p99": p99, "p999": p99, "max": p99},
        "drops": 4, "retransmitted_bytes": 0, "timeouts": 0,
    });
    serde_json::from_value(text).expect("a row")
}

/// The rows of a scheme at a load: the pooled one, and those of two seeds that are alike.
fn alike(scheme: &str, load: f64, p99: f64) -> [Row; 3] {
    [None, Some(1), Some(2)].map(|seed| row(scheme, load, seed, p99))
}

/// Two schemes at two loads.
fn rows() -> Vec<Row> {
    [("a", 0.2, 100.0), ("a", 0.4, 200.0), ("b", 0.2, 150.0), ("b", 0.4, 420.0)]
        .map(|(scheme, load, p99)| alike(scheme, load, p99))
        .concat()
}

fn claim(scheme: &str, at: Option<f64>) -> Claim {
    let mut claim: Claim = serde_json::from_value(serde_json::json!({
        "metric": "fct_us.p99", "scheme": scheme, "value": 1.0,
    }))
    .expect("a claim");
    claim.value = None;
    claim.grid = at.map(|load| ("load".to_owned(), toml::Value::Float(load))).into_iter().collect();
    claim
}

fn to(scheme: &str) -> Bases {
    Bases::One(scheme.into())
}

fn statuses(claims: &[Claim]) -> Vec<Status> {
    judge(claims, &rows()).iter().map(|judgement| judgement.status).collect()
}

#[test]
fn values_are_reproduced_within_fifteen_percent() {
    let at = |value| Claim { value: Some(value), ..claim("a", Some(0.2)) };
    assert_eq!(statuses(&[at(87.0)]), [Status::Reproduced]);
    assert_eq!(statuses(&[at(80.0)]), [Status::NotReproduced]);
    // Without a grid point, at all of them.
    assert_eq!(
        statuses(&[Claim { value: Some(100.0), ..claim("a", None) }]),
        [Status::Reproduced, Status::NotReproduced]
    );
}

/// One scheme with three seeds.
fn measured_by_seed(values: [f64; 3]) -> Vec<Row> {
    let mut all = vec![row("a", 0.2, None, values.iter().sum::<f64>() / 3.0)];
    all.extend((1..).zip(values).map(|(seed, p99)| row("a", 0.2, Some(seed), p99)));
    all
}

#[test]
fn a_wide_interval_speaks_for_no_value() {
    let at = |value, rows: &[Row]| one(Claim { value: Some(value), ..claim("a", None) }, rows).0;
    // 78 to 128.
    let wide = measured_by_seed([90.0, 100.0, 110.0]);
    assert_eq!(wide[1].seed, Seed::One(1));
    assert_eq!(at(100.0, &wide), Status::Inconclusive);
    assert_eq!(at(120.0, &wide), Status::Inconclusive);
    assert_eq!(at(200.0, &wide), Status::NotReproduced);
    // 95 to 105.
    let narrow = measured_by_seed([98.0, 100.0, 102.0]);
    assert_eq!(at(110.0, &narrow), Status::Reproduced);
    assert_eq!(at(120.0, &narrow), Status::NotReproduced);
    // 10 to 680: whatever the number is.
    let wider = measured_by_seed([40.0, 100.0, 180.0]);
    assert_eq!(at(2000.0, &wider), Status::Inconclusive);
    let (status, why) = one(Claim { value: Some(100.0), ..claim("a", None) }, &[row("a", 0.2, None, 100.0)]);
    assert!(status == Status::Inconclusive && why.contains("a single seed"), "{why}");
}

#[test]
fn ratios_compare_with_one() {
    let ratio = |value| Claim { ratio_to: Some(to("b")), value: Some(value), ..claim("a", Some(0.4)) };
    // Measured: 420 / 200.
    assert_eq!(statuses(&[ratio(2.0)]), [Status::Reproduced]);
    assert_eq!(statuses(&[ratio(5.0)]), [Status::SameDirection]);
    assert_eq!(statuses(&[ratio(0.5)]), [Status::NotReproduced]);
}

/// Two schemes at one load with three seeds: `b` over `a` is each of `ratios`, and their mean when pooled.
fn seeded(ratios: [f64; 3]) -> Vec<Row> {
    let mean = ratios.iter().sum::<f64>() / 3.0;
    let mut all = vec![row("a", 0.2, None, 100.0), row("b", 0.2, None, 100.0 * mean)];
    for (seed, ratio) in (1..).zip(ratios) {
        all.extend([row("a", 0.2, Some(seed), 100.0), row("b", 0.2, Some(seed), 100.0 * ratio)]);
    }
    all
}

fn one(claim: Claim, rows: &[Row]) -> (Status, String) {
    let judged = judge(&[claim], rows);
    assert_eq!(judged.len(), 1);
    (judged[0].status, judged[0].why.clone())
}

/// Two schemes: `b` has so many hundredths of what `a` has, with each seed.
fn at(percent: f64) -> Vec<Row> {
    seeded([percent / 100.0; 3])
}

#[test]
fn noise_is_no_direction() {
    // Two nearly identical schemes, published 2.0, measured 0.96 to 1.06: such an effect would have been seen.
    let equal = seeded([0.99, 1.01, 1.03]);
    let (status, why) = one(Claim { value: Some(2.0), ..ratio() }, &equal);
    assert_eq!(status, Status::NotReproduced, "{why}");
    assert!(why.contains("would have been seen"), "{why}");
    let turned = Claim { scheme: "b".into(), ratio_to: Some(to("a")), value: Some(0.5), ..ratio() };
    assert_eq!(one(turned, &equal).0, Status::NotReproduced);
    // Published 1.1: not to be told from 1 with these seeds.
    assert_eq!(one(Claim { value: Some(1.1), ..ratio() }, &equal).0, Status::Inconclusive);
    // Published 1.0: equal.
    for value in [0.96, 1.0, 1.05] {
        assert_eq!(one(Claim { value: Some(value), ..ratio() }, &equal).0, Status::Reproduced, "{value}");
    }
    // 0.7 to 1.5: a part is equal. 1.3 to 1.8: none is.
    let unsure = seeded([0.9, 1.07, 1.18]);
    assert_eq!(one(Claim { value: Some(1.0), ..ratio() }, &unsure).0, Status::Inconclusive);
    let more = seeded([1.4, 1.5, 1.6]);
    assert_eq!(one(Claim { value: Some(1.02), ..ratio() }, &more).0, Status::NotReproduced);
}

#[test]
fn bounds_have_no_tolerance() {
    let more = Claim { at_least: Some(1.126), ..ratio() };
    let less = Claim { at_most: Some(1.0 / 1.126), ..ratio() };
    let turned = |claim: &Claim| Claim { scheme: "b".into(), ratio_to: Some(to("a")), ..claim.clone() };
    for claim in [more.clone(), turned(&more), less.clone(), turned(&less)] {
        let (status, why) = one(claim, &at(100.0));
        assert_eq!(status, Status::NotReproduced, "{why}");
        assert!(why.contains("beyond the bound"), "{why}");
    }
    assert_eq!(one(more.clone(), &at(105.0)).0, Status::NotReproduced);
    assert_eq!(one(more, &at(113.0)).0, Status::Reproduced);
    assert_eq!(one(less.clone(), &at(95.0)).0, Status::NotReproduced);
    assert_eq!(one(less, &at(88.0)).0, Status::Reproduced);
}

#[test]
fn an_interval_on_both_sides_of_one_is_inconclusive() {
    // Published "up to 1.82", measured 53.2.
    let noise = seeded([5.0, 2.0, 152.6]);
    let (status, why) = one(Claim { value: Some(1.82), ..ratio() }, &noise);
    assert_eq!(status, Status::Inconclusive, "{why}");
    let interval = judge(&[Claim { value: Some(1.82), ..ratio() }], &noise)[0].interval.expect("seeds");
    assert!(interval.0 > 0.0, "in logarithms: {interval:?}");
    for unsure in [[0.84, 1.0, 1.1], [0.9, 1.07, 1.18]].map(seeded) {
        for claim in [Claim { value: Some(1.2), ..ratio() }, Claim { at_least: Some(1.02), ..ratio() }] {
            assert_eq!(one(claim, &unsure).0, Status::Inconclusive);
        }
    }
    // 1.001 to 1.10, on the right side: 1.1 is in it, and 4.4 far from it.
    let small = seeded([1.03, 1.05, 1.07]);
    assert_eq!(one(Claim { value: Some(1.1), ..ratio() }, &small).0, Status::SameDirection);
    assert_eq!(one(Claim { value: Some(4.4), ..ratio() }, &small).0, Status::SameDirection);
    // 1.2 to 5.0 has more than the effect of 1.8 to either side.
    let wide = seeded([1.8, 2.5, 3.2]);
    let why = one(Claim { value: Some(1.8), ..ratio() }, &wide).1;
    assert!(why.contains("wider than what was published"), "{why}");
    let narrow = seeded([1.19, 1.2, 1.21]);
    assert_eq!(one(Claim { value: Some(1.2), ..ratio() }, &narrow).0, Status::Reproduced);
    assert_eq!(one(Claim { value: Some(1.2), ..ratio() }, &at(98.0)).0, Status::NotReproduced);
}

#[test]
fn a_ratio_s_bound_of_one_holds_or_does_not() {
    let least = Claim { at_least: Some(1.0), ..ratio() };
    assert_eq!(one(least.clone(), &at(100.0)).0, Status::Reproduced);
    assert_eq!(one(least, &at(99.0)).0, Status::NotReproduced);
    let most = Claim { at_most: Some(1.0), ..ratio() };
    assert_eq!(one(most.clone(), &at(101.0)).0, Status::NotReproduced);
    assert_eq!(one(most, &seeded([0.8, 0.9, 1.0])).0, Status::Inconclusive);
    // Equality is within 15% on either side.
    assert_eq!(one(Claim { value: Some(1.0), ..ratio() }, &at(99.0)).0, Status::Reproduced);
}

#[test]
fn both_ends_of_a_range_can_fail() {
    let range = |low, high| Claim { range: Some((low, high)), ..ratio() };
    for (percent, status) in [
        (99.0, Status::NotReproduced),
        (101.0, Status::SameDirection),
        (110.0, Status::SameDirection),
        (130.0, Status::Reproduced),
        (138.0, Status::Reproduced),
        (160.0, Status::SameDirection),
    ] {
        assert_eq!(one(range(1.2, 1.34), &at(percent)).0, status, "{percent}");
    }
    // A range around 1 has no side: inside or outside.
    assert_eq!(one(range(0.95, 1.05), &at(104.0)).0, Status::Reproduced);
    assert_eq!(one(range(0.95, 1.05), &at(106.0)).0, Status::NotReproduced);
    assert_eq!(one(range(0.95, 1.05), &seeded([0.98, 1.0, 1.04])).0, Status::Inconclusive);
    let judged = judge(&[range(1.2, 1.34)], &at(130.0));
    assert_eq!(judged[0].published_text(|value| value.to_string()), "1.2 to 1.34");
    assert_eq!((judged[0].published, judged[0].published_to), (1.2, Some(1.34)));
}

#[test]
fn a_bound_that_every_scheme_meets_is_trivial() {
    let most = |value| Claim { at_most: Some(value), ..claim("a", Some(0.2)) };
    let judged = judge(&[most(120.0), most(200.0)], &rows());
    let found: Vec<_> = judged.iter().map(|one| (one.status, one.outcome())).collect();
    let expected = [(Status::Reproduced, "reproduced"), (Status::Reproduced, "reproduced, trivial")];
    assert_eq!(found, expected.map(|(status, text)| (status, text.to_owned())));
    assert!(judged[1].why.ends_with("; every scheme meets it"), "{}", judged[1].why);
    // The base of a ratio is no scheme that could miss it.
    let ratio = Claim { at_least: Some(1.1), ..ratio() };
    assert!(!judge(std::slice::from_ref(&ratio), &rows())[0].trivial);
    let mut more = rows();
    more.extend(alike("c", 0.2, 110.0));
    assert!(judge(&[ratio], &more)[0].trivial);
}

#[test]
fn bounds_say_whose_they_are() {
    let least = |bound| Claim { ours: true, at_least: Some(bound), ..claim("a", Some(0.2)) };
    assert_eq!(statuses(&[least(100.0)]), [Status::Reproduced]);
    assert_eq!(statuses(&[least(101.0)]), [Status::NotReproduced]);
    let judged = judge(&[least(101.0), Claim { ours: false, ..least(101.0) }], &rows());
    let text = |judgement: &Judgement| judgement.published_text(|value| value.to_string());
    assert_eq!(judged.iter().map(text).collect::<Vec<_>>(), ["at least 101 (ours)", "at least 101"]);
    assert_eq!(judged[0].why, "-1%: beyond the bound");
}

/// What `b` measures over what `a` does, at the lower load.
fn ratio() -> Claim {
    Claim { ratio_to: Some(to("b")), ..claim("a", Some(0.2)) }
}

#[test]
fn growth_is_over_another_grid_point() {
    let from: toml::Table = [("load".to_owned(), toml::Value::Float(0.2))].into_iter().collect();
    let growth = |scheme, value| Claim { ratio_at: from.clone(), value: Some(value), ..claim(scheme, Some(0.4)) };
    // Measured: 420 / 150 and 200 / 100.
    let judged = judge(&[growth("b", 2.8), growth("a", 2.0), growth("a", 9.0), growth("a", 0.5)], &rows());
    let found: Vec<_> = judged.iter().map(|judgement| (judgement.measured, judgement.status)).collect();
    assert_eq!(
        found,
        [
            (Some(2.8), Status::Reproduced),
            (Some(2.0), Status::Reproduced),
            (Some(2.0), Status::SameDirection),
            (Some(2.0), Status::NotReproduced)
        ]
    );
    assert!(judged[0].claim.ends_with("over that at load = 0.2"), "{}", judged[0].claim);
}

#[test]
fn one_number_may_be_measured_by_another() {
    // Four drops in each row.
    let over = |value| Claim { ratio_to_metric: Some("drops".into()), value: Some(value), ..claim("a", Some(0.4)) };
    let judged = judge(&[over(50.0), over(2.0), over(0.5)], &rows());
    let found: Vec<_> = judged.iter().map(|judgement| (judgement.measured, judgement.status)).collect();
    let statuses = [Status::Reproduced, Status::SameDirection, Status::NotReproduced];
    assert_eq!(found, statuses.map(|status| (Some(50.0), status)));
    assert!(judged[0].claim.starts_with("fct_us.p99 / drops"), "{}", judged[0].claim);
    let none = Claim { ratio_to_metric: Some("timeouts".into()), ..over(1.0) };
    assert_eq!(judge(&[none], &rows())[0].measured, None);
}

#[test]
fn bounds_hold_or_not() {
    let most = |value| Claim { at_most: Some(value), ..claim("a", Some(0.2)) };
    assert_eq!(statuses(&[most(120.0), most(90.0)]), [Status::Reproduced, Status::NotReproduced]);
    let least = |value| Claim { at_least: Some(value), ..claim("a", Some(0.2)) };
    assert_eq!(statuses(&[least(90.0), least(101.0)]), [Status::Reproduced, Status::NotReproduced]);
    // 60 to 163.
    let wide = measured_by_seed([80.0, 100.0, 120.0]);
    assert_eq!(one(most(120.0), &wide).0, Status::Inconclusive);
    assert_eq!(one(most(170.0), &wide).0, Status::Reproduced);
}

#[test]
fn published_orders_of_schemes_and_curves_are_directions() {
    let value = |scheme, value| Claim { value: Some(value), ..claim(scheme, Some(0.2)) };
    assert_eq!(statuses(&[value("a", 10.0), value("b", 20.0)]), [Status::SameDirection; 2]);
    assert_eq!(statuses(&[value("a", 20.0), value("b", 10.0)]), [Status::NotReproduced; 2]);
    let curve = Claim { points: Some(vec![(0.2, 100.0), (0.4, 500.0)]), ..claim("a", None) };
    assert_eq!(statuses(&[curve]), [Status::Reproduced, Status::SameDirection]);
}

#[test]
fn up_to_is_the_most_that_any_grid_point_reaches() {
    let up_to = |value| Claim { up_to: true, ratio_to: Some(to("b")), value: Some(value), ..claim("a", None) };
    // 150 / 100 at the lower load, 420 / 200 at the higher.
    let judged = judge(&[up_to(2.0), up_to(1.5), claim_at(1.5)], &rows());
    let found: Vec<_> = judged.iter().map(|one| (one.relation, one.measured, one.status)).collect();
    assert_eq!(
        found,
        [
            ("up to", Some(2.1), Status::Reproduced),
            ("up to", Some(2.1), Status::SameDirection),
            ("", Some(1.5), Status::Reproduced)
        ]
    );
    assert_eq!(judged[0].grid["load"], 0.4);
}

/// Three schemes at two loads: `b` over `a` is 1.5 and 2.1, `c` over `a` 1.8 and 1.2.
fn three_schemes() -> Vec<Row> {
    let mut all = rows();
    all.extend([alike("c", 0.2, 180.0), alike("c", 0.4, 240.0)].concat());
    all
}

#[test]
fn a_ratio_to_one_of_several_is_the_largest() {
    let mut rows = three_schemes();
    // Its flows did not finish.
    let unmeasured = rows.iter().filter(|row| row.scheme == "c").cloned().map(|mut row| {
        row.scheme = "unmeasured".into();
        row.values.set("fct_us.p99", Default::default());
        row
    });
    let unmeasured: Vec<Row> = unmeasured.collect();
    rows.extend(unmeasured);
    let several = Bases::Several(vec!["b".into(), "c".into(), "unmeasured".into()]);
    let ratio = Claim { ratio_to: Some(several.clone()), at_least: Some(1.6), ..claim("a", None) };
    let judged = judge(&[ratio], &rows);
    let found: Vec<_> = judged.iter().map(|one| (one.claim.as_str(), one.measured)).collect();
    assert_eq!(found, [("fct_us.p99: c (most of 3) / a", Some(1.8)), ("fct_us.p99: b (most of 3) / a", Some(2.1)),]);
    assert!(judged.iter().all(|one| one.why.contains("the bound holds") && one.is_ratio));
    let nothing = Claim { ratio_to: Some(several), value: Some(2.0), ..claim("unmeasured", Some(0.2)) };
    let judged = judge(std::slice::from_ref(&nothing), &rows);
    assert_eq!((judged.len(), judged[0].status, judged[0].measured), (1, Status::NotReproduced, None));
    assert_eq!(judged[0].why, "not measured, as flows did not finish");
    // Nothing can be said of a scheme that was not run.
    assert!(judge(std::slice::from_ref(&nothing), &three_schemes()).is_empty());
    assert_eq!(not_run(&[nothing], &three_schemes()), 1);
}

#[test]
fn up_to_is_the_most_of_points_and_schemes() {
    let up_to = |names: &[&str]| Claim {
        up_to: true,
        ratio_to: Some(Bases::Several(names.iter().map(|&name| name.into()).collect())),
        value: Some(2.0),
        ..claim("a", None)
    };
    for names in [["b", "c"], ["c", "b"]] {
        let judged = judge(&[up_to(&names), up_to(&["c"])], &three_schemes());
        let found: Vec<_> = judged.iter().map(|one| (one.claim.as_str(), one.measured, &one.grid["load"])).collect();
        assert_eq!(
            found,
            [
                ("fct_us.p99: b (most of 2) / a", Some(2.1), &Value::from(0.4)),
                ("fct_us.p99: c / a", Some(1.8), &Value::from(0.2)),
            ]
        );
    }
}

#[test]
fn curves_of_ratios_to_one_of_several_keep_their_points() {
    let curve = Claim {
        points: Some(vec![(0.2, 1.8), (0.4, 2.1)]),
        ratio_to: Some(Bases::Several(vec!["c".into(), "b".into()])),
        ..claim("a", None)
    };
    let judged = judge(&[curve], &three_schemes());
    let found: Vec<_> = judged.iter().map(|one| (one.published, one.measured)).collect();
    assert_eq!(found, [(1.8, Some(1.8)), (2.1, Some(2.1))]);
}

fn claim_at(value: f64) -> Claim {
    Claim { ratio_to: Some(to("b")), value: Some(value), ..claim("a", Some(0.2)) }
}

#[test]
fn a_scheme_that_was_not_run_has_no_place_in_an_order() {
    let number = |scheme: &str, value| Claim { value: Some(value), ..claim(scheme, Some(0.2)) };
    let claims = [number("a", 10.0), number("c", 20.0)];
    let judged = judge(&claims, &rows());
    assert_eq!((judged.len(), not_run(&claims, &rows())), (1, 1));
    assert_eq!((judged[0].status, judged[0].why.as_str()), (Status::NotReproduced, "+900%: another number"));
}
