//! `incast flows`.

use crate::{End, arguments, output, plan::Choice};
use incast_lab::{
    run::{RunError, list::Flows},
    trace::write,
};

/// Lists the flows of one run of a scenario.
pub fn flows(arguments: &arguments::Flows) -> End {
    if let Some(path) = &arguments.out
        && let Err(message) = output::check_file(path)
    {
        output::error(&format!("output file {}: {message}", path.display()));
        return End::BadInput;
    }
    match list(arguments) {
        Ok(()) => End::Done,
        Err(error) => {
            output::error(&error);
            if error.is_bad_input() { End::BadInput } else { End::Failed }
        }
    }
}

fn list(arguments: &arguments::Flows) -> Result<(), RunError> {
    let choice = Choice {
        scenario: &arguments.scenario,
        sets: &arguments.sets,
        only: &arguments.only,
        short: arguments.short,
        scheme: arguments.scheme.as_deref(),
        seed: arguments.seed,
        options: "--scheme, --only and --seed",
    };
    let (_, run) = choice.choose("listing")?;
    let flows = Flows::of(&run)?;
    let Some(path) = &arguments.out else {
        let mut text = Vec::new();
        flows.write(&mut text).map_err(|source| RunError::Files { path: "stdout".into(), source })?;
        output::data(&String::from_utf8_lossy(&text));
        return Ok(());
    };
    write(path, |out| flows.write(out)).map_err(|source| RunError::Files { path: path.clone(), source })?;
    output::message(&format!("wrote {} flows to {}", flows.rows.len(), path.display()));
    Ok(())
}
