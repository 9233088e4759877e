//! `incast validate`: a peer's reference cases, ours against theirs.

use crate::{End, arguments, output};
use incast_lab::{
    results::host::cores,
    validation::{Compared, Options, ValidationError, cases, compare, table},
};

/// Runs the cases and prints the table; an aim that is not met is no failure, it is in the table.
pub fn validate(arguments: &arguments::Validate) -> End {
    let mut wanted: Vec<&'static cases::Case> = Vec::new();
    for name in &arguments.cases {
        match cases::find(name) {
            Some(case) => wanted.push(case),
            None => {
                output::error(&ValidationError::Unknown(name.clone()));
                return End::BadInput;
            }
        }
    }
    if wanted.is_empty() {
        wanted.extend(cases::CASES);
    }
    let options = Options {
        from: arguments.from.clone(),
        out: arguments.out.clone(),
        seeds: arguments.seeds.into(),
        jobs: arguments.jobs.map_or_else(cores, Into::into),
    };
    let mut all: Vec<Compared> = Vec::new();
    for case in wanted {
        match compare(case, &options) {
            Ok(compared) => {
                let verdict = if compared.met { "met" } else { "NOT met" };
                output::message(&format!("{}: {} is {verdict}", compared.case, compared.aim));
                all.push(compared);
            }
            Err(error) => {
                output::error(&format!("{}: {error}", case.name));
                return match error {
                    ValidationError::Files { .. } | ValidationError::Write(_) => End::Failed,
                    _ => End::BadInput,
                };
            }
        }
    }
    if arguments.json {
        // Numbers and texts are always JSON.
        output::data(&format!("{}\n", serde_json::to_string_pretty(&all).unwrap_or_default()));
    } else {
        output::data(&format!(
            "Slowdowns at the sender, ours / theirs; a range is over our seeds.\n\n{}{}{}",
            table::render(&all),
            table::render_bins(&all),
            table::render_moved(&all)
        ));
        let met = all.iter().filter(|compared| compared.met).count();
        output::data(&format!("\n{met} of {} aims met\n", all.len()));
    }
    End::Done
}
