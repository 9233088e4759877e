//! `summary.json`: the rows of a scenario, and what they are rows of.

use super::{
    Row,
    checksums::{self, Files},
};
use serde::Deserialize;
use serde_json::json;

/// Version of the file's form. It changes when a key gets another meaning or place; a new key alone does not change it.
/// Version 1 was the list of rows alone; to version 2 `backlog_growth` was another number, and `too_short` was
/// `above_capacity`. From version 4 on the file ends with its checksum ([`super::checksums`]). To version 4 `ci95` was the
/// interval of the mean of the runs' values.
pub const SCHEMA: u64 = 5;

/// The first version that ends with a checksum.
const SEALED: u64 = 4;

/// The file.
#[derive(Deserialize)]
struct File {
    schema: u64,
    version: String,
    #[serde(default)]
    runs: Files,
    rows: Vec<Row>,
}

/// What a file holds.
#[derive(Debug, Default, PartialEq)]
pub struct Summary {
    /// It ends with its checksum.
    pub is_sealed: bool,
    /// SHA-256 of the `run.json` of each run that was there, by the name of the run's folder; empty in what `--json` prints.
    pub runs: Files,
    /// Version of incast that wrote it; of version 1 of the form, none.
    pub version: Option<String>,
    /// Rows.
    pub rows: Vec<Row>,
}

/// The file about the rows of some scenarios, a row on each line, and the `runs` that they are of.
///
/// # Errors
/// Those of the serialisation, which writes to memory.
pub fn to_json(lists: &[&[Row]], runs: &Files) -> Result<String, serde_json::Error> {
    let lines = lists.iter().copied().flatten().map(serde_json::to_string);
    let lines = lines.collect::<Result<Vec<String>, _>>()?.join(",\n");
    let between = if lines.is_empty() { "" } else { "\n" };
    let (version, runs) = (json!(crate::VERSION), serde_json::to_string(runs)?);
    let text = format!(
        "{{\n\"schema\": {SCHEMA},\n\"version\": {version},\n\"runs\": {runs},\n\"rows\": [{between}{lines}{between}]\n}}\n"
    );
    Ok(checksums::seal(text))
}

/// What a file holds, of this version of its form or an earlier one.
///
/// # Errors
/// What is no such file, or has changed since it was written.
pub fn parse(bytes: &[u8]) -> Result<Summary, String> {
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        let rows = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        return Ok(Summary { rows, ..Summary::default() });
    }
    let file: File = checksums::parse(bytes, |file: &File| file.schema >= SEALED).map_err(|error| error.to_string())?;
    if file.schema > SCHEMA {
        return Err(format!("schema: found {}, this incast reads 1 to {SCHEMA}", file.schema));
    }
    let File { schema, version, runs, rows } = file;
    Ok(Summary { is_sealed: schema >= SEALED, runs, version: Some(version), rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::claims::tests::row;

    #[test]
    fn files_of_all_versions_are_read() {
        let rows = |bytes: &[u8]| parse(bytes).map(|summary| summary.rows);
        let all = [row("a", 0.2, None, 100.0), row("b", 0.2, None, 120.0)];
        let text = to_json(&[&all[..1], &all[1..]], &Files::new()).expect("written");
        assert!(text.starts_with("{\n\"schema\": 5,\n\"version\": \"") && text.lines().count() == 10, "{text}");
        assert_eq!(rows(text.as_bytes()).expect("read"), all);
        assert_eq!(rows(to_json(&[], &Files::new()).expect("written").as_bytes()).expect("read"), []);
        let list = serde_json::to_string(&all).expect("written");
        assert_eq!(rows(format!(" {list}").as_bytes()).expect("read"), all);
        let older = r#"{"schema": 3, "version": "0.1.0", "rows": ["#.to_owned() + list.trim_start_matches('[') + "}";
        assert_eq!(rows(older.as_bytes()).expect("read"), all);
        let newer = checksums::seal(older.replace("\"schema\": 3", "\"schema\": 6"));
        assert!(rows(newer.as_bytes()).expect_err("refused").contains("found 6, this incast reads 1 to 5"));
        let changed = text.replace("120.0", "121.0");
        assert!(rows(changed.as_bytes()).expect_err("refused").contains("SHA-256"));
    }
}
