//! Which runs are one simulation.

use super::*;
use incast_cc::registry::LAWS;
use incast_sim::simulate;

/// Text of a scenario in which queues grow beyond either threshold and overflow, with keys of `[switch]` and of its scheme.
fn scenario(switch: &str, scheme: &str) -> String {
    format!(
        "name = \"simulated\"\nduration = \"1ms\"\ndrain = \"50ms\"\n\
         [topology]\nkind = \"single-switch\"\nhosts = 5\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         [switch]\npriorities = 8\nbuffer = {{ total = \"300KB\", alpha = 1.0 }}\n{switch}\n\
         [[workload]]\nclass = \"burst\"\nkind = \"incast\"\nfan_in = 4\nsize = \"200KB\"\nevery = \"800us\"\n\
         [[scheme]]\n{scheme}\n"
    )
}

/// What its packets depend on, and what became of them.
fn simulated(text: &str) -> (String, String) {
    let run = parse(text).unwrap_or_else(|error| panic!("{error}: {text}")).runs().remove(0);
    let outcome = simulate(run.config(1).expect("a config")).unwrap_or_else(|error| panic!("{error}: {text}"));
    (run.simulated(), outcome.digest)
}

const SMALL: &str = "ecn = { kind = \"step\", at = \"20KB\" }";
const LARGE: &str = "ecn = { kind = \"step\", at = \"60KB\" }";

#[test]
fn thresholds_tell_simulations_apart_where_they_tell_packets_apart() {
    for law in LAWS.iter().map(|law| law.name) {
        for more in ["", "not_ect = \"drop\"\n", "trim = true\n"] {
            let of = |ecn: &str| simulated(&scenario(&format!("{more}{ecn}"), &format!("law = \"{law}\"")));
            let (small, large) = (of(SMALL), of(LARGE));
            if small.0 == large.0 {
                assert_eq!(small.1, large.1, "{law} {more}");
            } else {
                // Where marks are looked at they matter here: nothing is simulated twice in vain.
                assert_ne!(small.1, large.1, "{law} {more}");
            }
        }
    }
}

#[test]
fn what_a_scheme_replaces_is_no_part_of_it() {
    let own = "law = \"dctcp\"\nswitch.ecn = { kind = \"step\", at = \"30KB\" }\nhost = { mtu = \"1500B\" }";
    let small = simulated(&scenario(SMALL, own));
    assert_eq!(simulated(&scenario(LARGE, own)), small);
    // Which is not the scheme's.
    assert_ne!(simulated(&scenario(&format!("{SMALL}\necn_at = \"dequeue\""), own)).0, small.0);
    let other = format!("{SMALL}\n[host]\nmtu = \"9000B\"");
    assert_eq!(simulated(&scenario(&other, own)), small);
    let named = simulated(&scenario(SMALL, &format!("name = \"other\"\n{own}")));
    assert_eq!(named, small);
    assert_ne!(simulated(&scenario(SMALL, &own.replace("30KB", "40KB"))).0, small.0);
}
