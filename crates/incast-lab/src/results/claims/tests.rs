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

/// Pooled rows of two schemes at two loads.
fn rows() -> Vec<Row> {
    [("a", 0.2, 100.0), ("a", 0.4, 200.0), ("b", 0.2, 150.0), ("b", 0.4, 420.0)]
        .map(|(scheme, load, p99)| row(scheme, load, None, p99))
        .to_vec()
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

#[test]
fn values_inside_our_interval_are_reproduced() {
    let mut all = vec![row("a", 0.2, None, 100.0)];
    all.extend([(1, 60.0), (2, 100.0), (3, 140.0)].map(|(seed, p99)| row("a", 0.2, Some(seed), p99)));
    assert_eq!(all[1].seed, Seed::One(1));
    let judged = judge(&[Claim { value: Some(150.0), ..claim("a", None) }], &all);
    assert_eq!(judged[0].status, Status::Reproduced);
    assert!(judged[0].interval.expect("three seeds").contains(150.0));
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

#[test]
fn the_side_of_one_comes_before_the_band() {
    // Two identical schemes: 1.00 is within 15% of 1.126 and of its inverse, and neither was reproduced.
    let same = [row("a", 0.2, None, 100.0), row("b", 0.2, None, 100.0)];
    let more = Claim { at_least: Some(1.126), ..ratio() };
    let less = Claim { at_most: Some(1.0 / 1.126), ..ratio() };
    let turned = |claim: &Claim| Claim { scheme: "b".into(), ratio_to: Some(to("a")), ..claim.clone() };
    for claim in [more.clone(), turned(&more), less.clone(), turned(&less)] {
        let (status, why) = one(claim, &same);
        assert_eq!(status, Status::NotReproduced, "{why}");
        assert!(why.ends_with("; the ratio is 1"), "{why}");
    }
    let at = |percent: f64| [row("a", 0.2, None, 100.0), row("b", 0.2, None, percent)];
    assert_eq!(one(more.clone(), &at(97.0)).0, Status::NotReproduced);
    assert_eq!(one(more, &at(105.0)).0, Status::Reproduced);
    assert_eq!(one(less.clone(), &at(103.0)).0, Status::NotReproduced);
    assert_eq!(one(less, &at(95.0)).0, Status::Reproduced);
    let value = Claim { value: Some(1.1), ..ratio() };
    assert_eq!(one(value.clone(), &at(98.0)).0, Status::NotReproduced);
    assert_eq!(one(value, &at(101.0)).0, Status::Reproduced);
}

#[test]
fn a_published_ratio_inside_our_interval_is_reproduced_on_either_side() {
    // 0.98 on average, 0.66 to 1.3 with three seeds: we do not know the side.
    let unsure = seeded([0.84, 1.0, 1.1]);
    assert_eq!(one(Claim { value: Some(1.2), ..ratio() }, &unsure).0, Status::Reproduced);
    assert_eq!(one(Claim { at_least: Some(1.2), ..ratio() }, &unsure).0, Status::NotReproduced);
}

#[test]
fn a_ratio_s_bound_of_one_holds_or_does_not() {
    let at = |percent: f64| [row("a", 0.2, None, 100.0), row("b", 0.2, None, percent)];
    let least = Claim { at_least: Some(1.0), ..ratio() };
    assert_eq!(one(least.clone(), &at(100.0)).0, Status::Reproduced);
    assert_eq!(one(least, &at(99.0)).0, Status::NotReproduced);
    let most = Claim { at_most: Some(1.0), ..ratio() };
    assert_eq!(one(most, &at(101.0)).0, Status::NotReproduced);
    // Equality is within 15% on either side.
    assert_eq!(one(Claim { value: Some(1.0), ..ratio() }, &at(99.0)).0, Status::Reproduced);
}

#[test]
fn a_bound_of_ours_has_no_tolerance() {
    let least = |bound| Claim { ours: true, at_least: Some(bound), ..claim("a", Some(0.2)) };
    assert_eq!(statuses(&[least(100.0)]), [Status::Reproduced]);
    assert_eq!(statuses(&[least(101.0)]), [Status::NotReproduced]);
    let most = |bound| Claim { ours: true, at_most: Some(bound), ..claim("a", Some(0.2)) };
    assert_eq!(statuses(&[most(100.0)]), [Status::Reproduced]);
    assert_eq!(statuses(&[most(99.0)]), [Status::NotReproduced]);
    let judged = judge(&[least(101.0), Claim { ours: false, ..least(101.0) }], &rows());
    assert_eq!(judged[0].described("101"), "at least 101 (ours)");
    assert_eq!(judged[1].described("101"), "at least 101");
    assert_eq!((judged[0].why.as_str(), judged[1].status), ("-1.0%", Status::Reproduced));
}

#[test]
fn a_ratio_s_bound_of_ours_holds_all_over_our_interval() {
    let least = |bound| Claim { ours: true, at_least: Some(bound), ..ratio() };
    let most = |bound| Claim { ours: true, at_most: Some(bound), ..ratio() };
    // 0.95 to 1.45 around 1.2, and 1.175 to 1.225.
    let (wide, narrow) = (seeded([1.1, 1.2, 1.3]), seeded([1.19, 1.2, 1.21]));
    assert_eq!(one(least(1.02), &narrow).0, Status::Reproduced);
    assert_eq!(one(least(1.02), &wide).0, Status::SameDirection);
    assert_eq!(one(least(1.25), &narrow).0, Status::SameDirection);
    assert_eq!(one(most(0.9), &narrow).0, Status::NotReproduced);
    assert_eq!(one(most(1.0), &wide).0, Status::NotReproduced);
    // A bound on the other side of 1 names no side.
    assert_eq!(one(most(1.3), &narrow).0, Status::Reproduced);
    assert_eq!(one(most(1.3), &wide).0, Status::NotReproduced);
    // Below 1, and between 1 and the bound.
    assert_eq!(one(least(1.02), &seeded([0.99; 3])).0, Status::NotReproduced);
    assert_eq!(one(least(1.02), &seeded([1.01; 3])).0, Status::SameDirection);
    // One seed has no interval.
    let single = [row("a", 0.2, None, 100.0), row("b", 0.2, None, 103.0)];
    assert_eq!(one(least(1.02), &single), (Status::Reproduced, "the bound holds".into()));
}

#[test]
fn why_says_what_the_interval_leaves_open() {
    // 0.9 to 1.5 or so around 1.2.
    let wide = seeded([1.1, 1.2, 1.3]);
    let why = |claim, rows: &[Row]| one(claim, rows).1;
    let least = |bound| Claim { at_least: Some(bound), ..ratio() };
    let interval = "our interval, 0.9516 to 1.45, includes";
    assert_eq!(why(least(1.1), &wide), format!("the bound holds; {interval} the bound"));
    assert_eq!(why(least(1.3), &wide), format!("-8%, within 15%; {interval} the bound"));
    let same_side = "the ratio is on the same side of 1";
    assert_eq!(why(least(1.44), &wide), format!("-17%; {same_side}; {interval} the bound and 1"));
    assert_eq!(why(least(2.0), &wide), format!("-40%; {same_side}; {interval} 1"));
    assert_eq!(why(Claim { value: Some(2.0), ..ratio() }, &wide), format!("-40%; {same_side}; {interval} 1"));
    assert_eq!(why(least(1.0), &seeded([1.0; 3])), "the bound holds");
    let narrow = seeded([1.19, 1.2, 1.21]);
    assert_eq!(why(least(1.1), &narrow), "the bound holds");
    assert_eq!(why(least(2.0), &narrow), format!("-40%; {same_side}"));
}

/// What `b` measures over what `a` does, at the lower load.
fn ratio() -> Claim {
    Claim { ratio_to: Some(to("b")), ..claim("a", Some(0.2)) }
}

#[test]
fn growth_is_over_another_grid_point() {
    let from: toml::Table = [("load".to_owned(), toml::Value::Float(0.2))].into_iter().collect();
    let growth =
        |scheme, value| Claim { ratio_at: from.clone(), value: Some(value), ..claim(scheme, Some(0.4)) };
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
    let over =
        |value| Claim { ratio_to_metric: Some("drops".into()), value: Some(value), ..claim("a", Some(0.4)) };
    let judged = judge(&[over(50.0), over(2.0), over(0.5)], &rows());
    let found: Vec<_> = judged.iter().map(|judgement| (judgement.measured, judgement.status)).collect();
    let statuses = [Status::Reproduced, Status::SameDirection, Status::NotReproduced];
    assert_eq!(found, statuses.map(|status| (Some(50.0), status)));
    assert!(judged[0].claim.starts_with("fct_us.p99 / drops"), "{}", judged[0].claim);
    let none = Claim { ratio_to_metric: Some("timeouts".into()), ..over(1.0) };
    assert_eq!(judge(&[none], &rows())[0].measured, None);
}

#[test]
fn bounds_hold_or_are_narrowly_missed() {
    let most = |value| Claim { at_most: Some(value), ..claim("a", Some(0.2)) };
    assert_eq!(statuses(&[most(120.0), most(90.0), most(50.0)])[..2], [Status::Reproduced; 2]);
    let least = |value| Claim { at_least: Some(value), ..claim("a", Some(0.2)) };
    assert_eq!(statuses(&[least(90.0)]), [Status::Reproduced]);
    assert_eq!(statuses(&[least(190.0)]), [Status::NotReproduced]);
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
    let up_to =
        |value| Claim { up_to: true, ratio_to: Some(to("b")), value: Some(value), ..claim("a", None) };
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

/// Pooled rows of three schemes at two loads: `b` over `a` is 1.5 and 2.1, `c` over `a` 1.8 and 1.2.
fn three_schemes() -> Vec<Row> {
    let mut all = rows();
    all.extend([row("c", 0.2, None, 180.0), row("c", 0.4, None, 240.0)]);
    all
}

#[test]
fn a_ratio_to_one_of_several_is_the_largest() {
    let several = Bases::Several(vec!["b".into(), "c".into(), "unmeasured".into()]);
    let ratio = Claim { ratio_to: Some(several.clone()), at_least: Some(1.6), ..claim("a", None) };
    let judged = judge(&[ratio], &three_schemes());
    let found: Vec<_> = judged.iter().map(|one| (one.claim.as_str(), one.measured)).collect();
    assert_eq!(
        found,
        [("fct_us.p99: c (most of 3) / a", Some(1.8)), ("fct_us.p99: b (most of 3) / a", Some(2.1)),]
    );
    assert!(judged.iter().all(|one| one.why == "the bound holds" && one.is_ratio));
    let nothing = Claim { ratio_to: Some(several), value: Some(2.0), ..claim("unmeasured", Some(0.2)) };
    let judged = judge(&[nothing], &three_schemes());
    assert_eq!(judged.len(), 1);
    assert_eq!((judged[0].status, judged[0].measured), (Status::NotReproduced, None));
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
        let found: Vec<_> =
            judged.iter().map(|one| (one.claim.as_str(), one.measured, &one.grid["load"])).collect();
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
fn what_was_not_measured_is_not_reproduced() {
    let judged = judge(&[Claim { value: Some(1.0), ..claim("c", Some(0.2)) }], &rows());
    assert_eq!((judged[0].status, judged[0].measured), (Status::NotReproduced, None));
}
