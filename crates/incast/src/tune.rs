//! `incast tune`.

use crate::{
    End,
    arguments::{self, Running},
    bundled::Located,
    interrupt, output, progress,
    running::{end, options},
};
use incast_lab::{
    results::table::Extent,
    run::{
        RunError,
        folder::{self, Existing},
        only::Only,
    },
    scenario::{Form, Scenario},
    tune::{Advice, Means, Question, Tuning, shards::Shards},
};

/// Searches for the best values of keys.
pub fn tune(arguments: &arguments::Tune) -> End {
    end(search(arguments))
}

fn search(arguments: &arguments::Tune) -> Result<End, RunError> {
    let mut located = Located::default();
    let form = if arguments.short { Form::Short } else { Form::Full };
    let scenario = Scenario::load_form(&located.file(&arguments.scenario)?, &arguments.sets, form)?;
    for warning in &scenario.warnings {
        output::message(&format!("warning: {}: {warning}", arguments.scenario.display()));
    }
    let question = Question {
        scenario,
        only: Only::parse(&arguments.only)?,
        objective: arguments.objective.clone(),
        within: arguments.within.clone(),
        over: arguments.over.clone(),
        schemes: arguments.schemes.clone(),
        budget: arguments.budget,
        vary: arguments.vary.part(),
    };
    let running = &arguments.running;
    let mut options = options(running);
    if let Some(shard) = arguments.shard {
        options.out = shard.folder(&running.out);
        if options.existing == Existing::Refuse {
            options.existing = Existing::Resume;
        }
    }
    let tuning = Tuning::new(question.clone())?;
    folder::check(&options.out, tuning.name())?;
    if !running.quiet {
        tuning.describe().iter().for_each(|line| output::message(line));
    }
    let stop = interrupt::flag("interrupted: what is finished is kept; the same command with --resume continues");
    let observer = progress::observer(tuning.name(), running.quiet);
    let say = |line: &str| {
        if !running.quiet {
            output::message(line);
        }
    };
    let means = Means { options: &options, observer: observer.as_ref(), stop, elsewhere: None };
    let advice = match arguments.shard {
        None => tuning.run(means, &say)?,
        Some(shard) => {
            let shards = Shards::new(shard, &question, &running.out, means, &output::message)?;
            tuning.run(Means { elsewhere: Some(&shards), ..means }, &say)?
        }
    };
    drop(observer);
    tell(arguments, running, &advice)
}

/// Prints what was found, and writes the scenarios with it.
fn tell(arguments: &arguments::Tune, running: &Running, advice: &Advice) -> Result<End, RunError> {
    let scenarios = advice.write_scenarios()?;
    if arguments.json {
        // Texts, numbers and lists of them are always JSON.
        output::data(&advice.file().to_json().unwrap_or_default());
    } else {
        let width = match crate::running::extent(running.wide) {
            Extent::Fitting(width) => width,
            Extent::Wide => usize::MAX,
        };
        output::data(&advice.text(width));
        if running.wide {
            output::data(&advice.tried());
        }
        output::data(&format!("results: {}\n", advice.folder.display()));
        for path in scenarios {
            output::data(&format!("scenario with these values: {}\n", path.display()));
        }
        let unchanged = advice.schemes.iter().filter(|scheme| scheme.is_tested && !scheme.helps());
        let unchanged: Vec<&str> = unchanged.map(|scheme| scheme.scheme.as_str()).collect();
        if !unchanged.is_empty() {
            output::data(&format!("no scenario written for {}: today's values stay\n", unchanged.join(", ")));
        }
    }
    Ok(if advice.is_stopped() { End::Failed } else { End::Done })
}
