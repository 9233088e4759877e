//! `marimoctl set-table`.

use crate::{
    arguments::{self, Form},
    bpf::Loaded,
    layout::{Knots, NAME},
    module,
    routes::Marimo,
    table, view,
};
use hostctl::{
    Tool as _,
    failure::{Failure, Outcome, While},
    lock, rollback, say,
    view::root,
};
use incast_cc::window::marimo::core::LoadTable;
use std::{fs, path::PathBuf};

/// Replaces f wherever Marimo is loaded. The file is checked against every configuration in force before the first
/// table is written.
pub fn set_table(arguments: &arguments::SetTable) -> Outcome {
    // A file is read before anything is asked of the machine.
    let given = arguments.file.as_deref().map(table::read).transpose()?;
    root()?;
    let _lock = lock::hold::<Marimo>()?;
    let wanted = |form| arguments.form.is_none_or(|only| only == form);
    let bpf = if wanted(Form::Bpf) { Loaded::open() } else { None };
    let in_module = wanted(Form::Module) && module::loaded();
    if bpf.is_none() && !in_module {
        return match arguments.form {
            Some(Form::Module) => Err(Failure::failed(format!("{} is not loaded", module::NAME))),
            Some(Form::Bpf) => view::not_loaded(format!("{NAME} is not loaded")),
            None => view::not_loaded(format!("neither {NAME} nor {} is loaded", module::NAME)),
        };
    }
    let next = |form: &str| match (&given, &arguments.file) {
        (Some(f), Some(file)) => Ok((file.display().to_string(), f.clone())),
        _ => table::read(&kept(form)).map(|f| (kept(form).display().to_string(), f)),
    };
    let for_module = in_module.then(|| next(module::NAME)).transpose()?;
    let for_bpf = bpf.as_ref().map(|_| next(NAME)).transpose()?;
    if let (Some(bpf), Some((name, f))) = (&bpf, &for_bpf) {
        let settings = bpf.settings()?.ok_or_else(|| bpf.other_version("has other settings, which tables must fit"))?;
        table::check(name, f, settings.config)?;
    }
    // All is done before any of it is said: a reader may go away. The module checks for itself and keeps the old table on error,
    // so that it goes first.
    let mut said = rollback::give_back_due::<Marimo>();
    if let Some((name, f)) = &for_module {
        let before = module::table()?;
        module::set_table(name, f)?;
        keep(module::NAME, &before)?;
        said.push(format!("{}: table {:08x}, before {:08x}", module::NAME, checksum(f), checksum(&before)));
    }
    if let (Some(bpf), Some((_, f))) = (&bpf, &for_bpf) {
        let before = LoadTable::new("loaded", bpf.knots()?.0).during("the table in the kernel is not sound")?;
        let index = bpf.replace(&Knots(*f.knots()))?;
        keep(NAME, &before)?;
        said.push(format!("{NAME}: table {:08x}, in slot {index}, before {:08x}", checksum(f), checksum(&before)));
    }
    for line in said {
        say!("{line}");
    }
    Ok(())
}

/// Where the table is kept that was replaced, by the form's name.
fn kept(form: &str) -> PathBuf {
    PathBuf::from(Marimo::STATE).join(format!("{form}.previous.table"))
}

/// Keeps what was replaced for `--previous`.
fn keep(form: &str, table: &LoadTable) -> Outcome {
    let path = kept(form);
    fs::create_dir_all(Marimo::STATE)
        .and_then(|()| fs::write(&path, table.text(&["replaced by marimoctl set-table".into()])))
        .during(format!("the table is set, but the one before could not be kept in {}", path.display()))
}

/// What stands in the last line of the table's file.
pub fn checksum(table: &LoadTable) -> u32 {
    let text = table.text(&[]);
    let sum = text.lines().last().and_then(|line| line.strip_prefix("checksum "));
    u32::from_str_radix(sum.expect("a table's text ends with it"), 16).expect("hexadecimal")
}
