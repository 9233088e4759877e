//! What a table in a page was made of, so that it can be seen to be stale.

use super::{Plan, RunError};
use crate::scenario::Run;
use incast_sim::simulate;
use sha2::{Digest, Sha256};
use std::fmt;

/// So many digits of each hash.
const DIGITS: usize = 12;

/// The hash of a scenario, and one of digests of its short form: of every scheme's run at the first and at the last grid
/// point with the first seed. What changes results changes these, as a rule, so that a table is stale once either is another
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    scenario: String,
    short: String,
}

impl State {
    /// Of a scenario, by its full and its short form.
    ///
    /// # Errors
    /// A run of the short form fails.
    pub fn of(full: &Plan, short: &Plan) -> Result<Self, RunError> {
        let mut hash = Sha256::new();
        for digest in first_digests(short) {
            hash.update(digest?.1);
        }
        let short = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let digits = |text: &str| text.chars().take(DIGITS).collect();
        Ok(Self { scenario: digits(full.scenario_hash()), short: digits(&short) })
    }

    /// The same with a hash of a text, so that it is another one once the text is; line breaks and indents do not count.
    pub fn with(&self, text: &str) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        let hash: String = Sha256::digest(words.join(" ")).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{self}, claim {}", hash.chars().take(DIGITS).collect::<String>())
    }

    /// Results of this hash are of the scenario.
    pub fn is_of(&self, scenario_hash: &str) -> bool {
        scenario_hash.starts_with(&self.scenario)
    }
}

/// Runs every scheme at the first and at the last grid point with the first seed: names of their folders, and digests.
pub fn first_digests(plan: &Plan) -> impl Iterator<Item = Result<(&str, String), RunError>> {
    let (first, last) = (plan.runs.first(), plan.runs.last());
    let is_at = |run: &Run, end: Option<&Run>| end.is_some_and(|end| end.grid == run.grid);
    let seed = first.map(|run| run.seed);
    let runs = plan.runs.iter().filter(move |run| Some(run.seed) == seed && (is_at(run, first) || is_at(run, last)));
    runs.map(|run| {
        let failed = |message: String| RunError::Flows { run: run.folder.clone(), message };
        let config = run.config(1).map_err(|error| failed(error.to_string()))?;
        let outcome = simulate(config).map_err(|error| failed(error.to_string()))?;
        Ok((run.folder.as_str(), outcome.digest))
    })
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scenario {}, short form {}", self.scenario, self.short)
    }
}
