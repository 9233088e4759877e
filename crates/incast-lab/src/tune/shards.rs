//! A search on several machines that see one folder.
//!
//! Every shard searches. The search depends on results alone, and these on the scenario alone, so all of them ask for the same runs
//! in the same order: each does its part of every batch and takes the others' parts from their folders. None leads, and
//! one that was interrupted goes on where it was: what it asks for is there.

use super::{Elsewhere, Means, Question};
use crate::{
    atomic,
    results::{checksums::hex, record::read_file},
    run::{
        Options, Plan, RunError, adopt, execute_part,
        folder::Existing,
        missing,
        shards::{Shard, divide_runs},
    },
    scenario::Column,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeSet,
    fs,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

/// Time between two looks at other shards' folders, at first and at most.
const LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// Time after which a shard says for whom it waits, again and again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Does the runs of one shard, and waits for the others.
pub struct Shards<'a> {
    shard: Shard,
    /// The folder that all of them see.
    common: &'a Path,
    /// How this shard's runs are done, in its own folder.
    means: Means<'a>,
    /// It is told for whom this shard waits.
    say: &'a (dyn Fn(&str) + Sync),
    /// Name of the user's scenario.
    scenario: String,
    /// What is asked.
    question: Value,
}

impl<'a> Shards<'a> {
    /// One of several shards, with its folder, which `means` names, in the `common` one.
    ///
    /// # Errors
    /// Its folder has results of another question, or the file system refuses.
    pub fn new(
        shard: Shard,
        question: &Question,
        common: &'a Path,
        means: Means<'a>,
        say: &'a (dyn Fn(&str) + Sync),
    ) -> Result<Self, RunError> {
        let scenario = question.scenario.name.clone();
        let shards = Self { shard, common, means, say, scenario, question: asked(question, means.options) };
        let own = &means.options.out;
        shards.must_ask_the_same(shard)?;
        let path = shards.file(shard);
        fs::create_dir_all(own).map_err(RunError::files(own))?;
        atomic::write(&path, |file| writeln!(file, "{:#}", shards.question)).map_err(RunError::files(&path))?;
        Ok(shards)
    }

    /// What a shard is asked, beside its results.
    fn file(&self, shard: Shard) -> PathBuf {
        shard.folder(self.common).join(format!("{}-question.json", self.scenario))
    }

    /// Refuses another question of a shard: each would wait for runs that the other never does.
    fn must_ask_the_same(&self, other: Shard) -> Result<(), RunError> {
        let path = self.file(other);
        let refuse = |message: String| Err(RunError::Plan { found: path.display().to_string(), message });
        let found = match read_file(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(RunError::files(&path)(error)),
        };
        let Ok(found) = serde_json::from_slice::<Map<String, Value>>(&found) else {
            return refuse("is not what a shard of incast tune writes".into());
        };
        let differs =
            self.question.as_object().into_iter().flatten().find(|(key, value)| found.get(*key) != Some(value));
        match differs {
            None => Ok(()),
            Some((key, value)) => {
                let there = found.get(key).unwrap_or(&Value::Null);
                refuse(format!("has {key} {there}, and this shard {value}; all shards get the same arguments"))
            }
        }
    }

    /// The shards that are to do what is missing, with what they have to do.
    fn owing(&self, divided: &[(String, usize)], missing: &[String]) -> Vec<(Shard, BTreeSet<String>)> {
        let of = |number| {
            let own = divided.iter().filter(|(run, shard)| *shard == number && missing.contains(run));
            (Shard { number, ..self.shard }, own.map(|(run, _)| run.clone()).collect::<BTreeSet<_>>())
        };
        (1..=self.shard.of).map(of).filter(|(_, runs)| !runs.is_empty()).collect()
    }
}

impl Elsewhere for Shards<'_> {
    fn run(&self, plan: &Plan, mut missing_here: Vec<String>) -> Result<(), RunError> {
        let Means { options, observer, stop, .. } = self.means;
        let name = &plan.scenario.name;
        // Of all runs of the batch, not of those that are missing: these differ where one shard was interrupted.
        let runs = plan.runs.iter().map(|run| run.folder.clone());
        let divided: Vec<(String, usize)> = runs.zip(divide_runs(&[plan], self.shard.of).concat()).collect();
        let owing = self.owing(&divided, &missing_here);
        if let Some((_, own)) = owing.iter().find(|(shard, _)| *shard == self.shard) {
            let options = Options { existing: Existing::Resume, ..options.clone() };
            execute_part(&plan.part(own), &options, observer, stop)?;
        }
        let (mut pause, mut since) = (LOOKS.0, Instant::now());
        loop {
            let before = missing_here.len();
            missing_here = missing(plan, &options.out, &[], false)?;
            let owing = self.owing(&divided, &missing_here);
            let others: Vec<&(Shard, BTreeSet<String>)> =
                owing.iter().filter(|(shard, _)| *shard != self.shard).collect();
            if others.is_empty() || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if since.elapsed() >= PATIENCE {
                since = Instant::now();
                let waits = others.iter().map(|(shard, runs)| {
                    format!("shard {shard} (runs: {}, such as {name}/{})", runs.len(), first(runs))
                });
                (self.say)(&format!("shard {}: waits for {}", self.shard, waits.collect::<Vec<_>>().join(", ")));
            }
            for (shard, runs) in others {
                self.must_ask_the_same(*shard)?;
                let folder = shard.folder(self.common).join(name);
                // Entries of the folder, not the runs by their names: network file systems remember what was not there.
                let there: BTreeSet<String> = names(&folder).filter(|run| runs.contains(run)).collect();
                if !there.is_empty() {
                    adopt(&plan.part(&there), &options.out, &[folder])?;
                }
            }
            pause = if missing_here.len() < before { LOOKS.0 } else { (pause * 2).min(LOOKS.1) };
            thread::sleep(pause);
        }
    }
}

fn first(runs: &BTreeSet<String>) -> &str {
    runs.first().map_or("", String::as_str)
}

/// Names in a folder; none where there is no folder.
fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// What makes two searches differ. The values of a scenario are those that are written: its hash does not know from where a key
/// that is searched starts.
fn asked(question: &Question, options: &Options) -> Value {
    let column = |column: &Column| format!("{}:{}", column.class, column.metric);
    let within = question.within.iter().map(|it| format!("{}=+{}%", column(&it.column), it.worse * 100.0));
    json!({
        "version": crate::VERSION,
        "values": hex(&Sha256::digest(json!(question.scenario.written).to_string())),
        "only": format!("{:?}", question.only),
        "for": column(&question.objective),
        "within": within.collect::<Vec<_>>(),
        "over": question.over.iter().map(|over| &over.key).collect::<Vec<_>>(),
        "schemes": question.schemes,
        "budget": question.budget,
        "vary": question.vary,
        "run_timeout": options.run_timeout.map(|limit| limit.as_secs_f64()),
    })
}
