//! The kernel module tcp_marimo, where it is loaded, through its files in sysfs.

use hostctl::failure::{Failure, Outcome, While};
use incast_cc::window::marimo::core::LoadTable;
use std::{fs, path::Path};

/// Name of the module.
pub const NAME: &str = "tcp_marimo";
const FOLDER: &str = "/sys/module/tcp_marimo";

/// Whether it is loaded.
pub fn loaded() -> bool {
    Path::new(FOLDER).join("table").exists()
}

fn read(name: &str) -> Outcome<String> {
    let path = format!("{FOLDER}/{name}");
    fs::read_to_string(&path).during(format!("cannot read {path}"))
}

/// Gives it a table that `file` holds. The module checks it too, against its own thresholds, and keeps the old one on
/// error.
pub fn set_table(file: &str, table: &LoadTable) -> Outcome {
    // Without the comments: an attribute of sysfs takes a page at most.
    fs::write(format!("{FOLDER}/table"), table.text(&[])).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => {
            let why = read("table_error").unwrap_or_default();
            Failure::input(format!("{file}: {NAME} refuses it: {} (lines without comments)", why.trim()))
        }
        _ => Failure::failed(format!("cannot write {FOLDER}/table: {error}")),
    })
}

/// The table in use.
pub fn table() -> Outcome<LoadTable> {
    LoadTable::parse("module", &read("table")?).during(format!("{FOLDER}/table"))
}

/// Its counters, in the module's order.
pub fn counters() -> Outcome<Vec<(String, u64)>> {
    Ok(pairs(&read("counters")?))
}

/// Rules that rest on what the kernel offers, and by what each is kept; none from a module that does not say.
pub fn rules() -> Vec<(String, String)> {
    let text = read("rules").unwrap_or_default();
    text.lines().filter_map(|line| line.split_once(' ')).map(|(rule, by)| (rule.into(), by.into())).collect()
}

/// The module's parameters, by name.
pub fn parameters() -> Vec<(String, String)> {
    let Ok(folder) = fs::read_dir(format!("{FOLDER}/parameters")) else { return Vec::new() };
    let mut parameters: Vec<_> = folder
        .flatten()
        .filter_map(|file| {
            let value = fs::read_to_string(file.path()).ok()?;
            Some((file.file_name().into_string().ok()?, value.trim().to_owned()))
        })
        .collect();
    parameters.sort();
    parameters
}

/// Version of the source that it was built from.
pub fn source_version() -> Option<String> {
    read("srcversion").ok().map(|version| version.trim().to_owned())
}

fn pairs(text: &str) -> Vec<(String, u64)> {
    text.lines()
        .filter_map(|line| {
            let (name, count) = line.split_once(' ')?;
            Some((name.to_owned(), count.trim().parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_pairs() {
        let text = "connections 3\nfallbacks 0\nodd\nlatched x\n";
        assert_eq!(pairs(text), [("connections".to_owned(), 3), ("fallbacks".to_owned(), 0)]);
    }
}
