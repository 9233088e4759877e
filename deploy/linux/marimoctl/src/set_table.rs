//! `marimoctl set-table`.

use crate::{
    arguments::{self, Form},
    bpf::Loaded,
    failure::{Failure, Outcome},
    layout::{Knots, NAME},
    lock, module, table,
};

/// Replaces f wherever Marimo is loaded. The file is checked against every configuration in force before the first
/// table is written.
pub fn set_table(arguments: &arguments::SetTable) -> Outcome {
    let name = arguments.file.display().to_string();
    let f = table::read(&arguments.file)?;
    crate::load::root()?;
    let _lock = lock::hold()?;
    let wanted = |form| arguments.form.is_none_or(|only| only == form);
    let bpf = if wanted(Form::Bpf) { Loaded::open() } else { None };
    let in_module = wanted(Form::Module) && module::loaded();
    if let Some(bpf) = &bpf {
        table::check(&name, &f, bpf.settings()?.config)?;
    }
    if bpf.is_none() && !in_module {
        return Err(Failure::failed(match arguments.form {
            Some(Form::Module) => format!("{} is not loaded", module::NAME),
            Some(Form::Bpf) => format!("{NAME} is not loaded"),
            None => format!("neither {NAME} nor {} is loaded", module::NAME),
        }));
    }
    // The module checks for itself and keeps the old table on error, so that it goes first.
    if in_module {
        module::set_table(&name, &f)?;
        println!("{}: table {:08x}", module::NAME, checksum(&f));
    }
    if let Some(bpf) = &bpf {
        let index = bpf.replace(&Knots(*f.knots()))?;
        println!("{NAME}: table {:08x}, in slot {index}", checksum(&f));
    }
    Ok(())
}

/// What stands in the last line of the table's file.
pub fn checksum(table: &incast_cc::window::marimo::core::LoadTable) -> u32 {
    let text = table.text(&[]);
    let sum = text.lines().last().and_then(|line| line.strip_prefix("checksum "));
    u32::from_str_radix(sum.expect("a table's text ends with it"), 16).expect("hexadecimal")
}
