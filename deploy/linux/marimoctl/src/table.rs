//! f from its file, checked before anything is touched.

use crate::configuration::decimal;
use hostctl::failure::{Failure, Outcome};
use incast_cc::window::marimo::core::{Config, LoadTable, ONE, Shared};
use std::{fs::File, io::Read as _, path::Path};

/// Bytes of a file that can be a table; it has 2 KB.
const MOST_BYTES: u64 = 1 << 16;

/// A table's file.
pub fn read(path: &Path) -> Outcome<LoadTable> {
    let name = path.display();
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| Failure::input(format!("cannot read {name}: {error}")))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Failure::input(format!("{name}: found more than {MOST_BYTES} bytes, allowed is a table")));
    }
    LoadTable::parse(&name.to_string(), &text).map_err(|error| Failure::input(format!("{name} {error}")))
}

/// Whether windows grow and shrink with this table under this configuration.
pub fn check(name: &str, table: &LoadTable, config: Config) -> Outcome {
    if Shared::new(config, table).is_some() {
        return Ok(());
    }
    Err(Failure::input(format!(
        "{name}: found f from {} to {}, allowed is from below increase_below, {}, to above decrease_above, {}",
        decimal((table.load(0.0) * f64::from(ONE)) as u32),
        decimal((table.load(1.0) * f64::from(ONE)) as u32),
        decimal(config.increase_below),
        decimal(config.decrease_above)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration;

    #[test]
    fn a_table_must_cross_the_thresholds_in_force() {
        let config = Config { decrease_above: 2 * ONE, ..configuration::defaults() };
        assert!(check("t", &LoadTable::linear(), configuration::defaults()).is_ok());
        let Err(Failure::BadInput(message)) = check("t", &LoadTable::linear(), config) else { panic!("refused") };
        assert!(message.starts_with("t: found f from 0.6 to 1.2, allowed is from below"), "{message}");
        assert!(message.ends_with("decrease_above, 2"), "{message}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let Err(Failure::BadInput(message)) = read(Path::new("no/such.table")) else { panic!("refused") };
        assert!(message.starts_with("cannot read no/such.table: "), "{message}");
    }
}
