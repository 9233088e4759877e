//! What a run's last lines say: how its settings get onto hosts.

use crate::output;
use incast_interop::device::{linux, mlnx};
use incast_lab::{plain::wrap, scenario::Scenario};

/// By which commands hosts get the schemes of a scenario, and which schemes no host gets from them.
pub fn hint(given: &str, scenario: &Scenario) -> String {
    let (mut linux, mut mlnx, mut without) = (Vec::new(), Vec::new(), Vec::new());
    for (scheme, algorithms) in scenario.schemes().into_iter().zip(scenario.algorithms()) {
        match algorithms[..] {
            [law] if linux::has(law) => linux.push(scheme),
            [mlnx::LAW] => mlnx.push(scheme),
            _ => without.push(scheme),
        }
    }
    let command = |target: &str, schemes: &[String]| match schemes {
        [] => None,
        [one] => Some(format!("apply: incast config {given} --for {target} --scheme \"{one}\"")),
        several => {
            Some(format!("apply: incast config {given} --for {target} --scheme NAME, of {}", several.join(", ")))
        }
    };
    let without =
        (!without.is_empty()).then(|| format!("no host that incast config knows runs {}", without.join(", ")));
    let lines = command("linux", &linux).into_iter().chain(command("mlnx", &mlnx)).chain(without);
    lines.flat_map(|line| wrap(&line, output::width())).map(|line| line + "\n").collect::<String>() + "\n"
}

#[cfg(test)]
mod tests {
    use super::hint;
    use incast_lab::scenario::Scenario;

    #[test]
    fn what_no_host_gets_is_told_apart() {
        let path = concat!("../../scenarios/", "five-papers.toml");
        let said = hint("five-papers", &Scenario::load(path.as_ref(), &[]).expect("a scenario"));
        assert!(said.starts_with("apply: incast config five-papers --for linux --scheme NAME, of dctcp, "), "{said}");
        assert!(said.contains("--for mlnx --scheme \"dcqcn\"\n"), "{said}");
        // Its hosts run DCQCN, its switches what no switch has.
        assert!(said.contains("mercury bdp") && said.find("mercury bdp") > said.find("knows runs"), "{said}");
    }
}
