//! Checksums of a run's files, so that results that have changed since they were written are not taken for results.
//!
//! `run.json` names each file of its folder with its SHA-256, and ends with the SHA-256 of all that stands before. So does
//! `summary.json`. Results of builds that did not write them yet have none, and are called unverified.

use crate::atomic::regular;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::Path,
};

/// Names of files, and the SHA-256 of each in hexadecimal digits.
pub type Files = BTreeMap<String, String>;

/// The file that has the others' checksums.
pub const RECORD: &str = "run.json";

/// Before the checksum of a JSON file, and after it.
const BEFORE: &[u8] = b",\n\"sha256\": \"";
const AFTER: &[u8] = b"\"\n}\n";
const DIGITS: usize = 64;
/// So many bytes are read at a time.
const CHUNK: usize = 1 << 18;

/// What a JSON file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// It ends with its checksum.
    Whole,
    /// It ends with a checksum that is not its own.
    Broken,
    /// It has none.
    None,
}

/// A JSON object, pretty or not, with its checksum as the last key.
pub fn seal(mut json: String) -> String {
    json.truncate(json.trim_end().trim_end_matches('}').trim_end().len());
    let sum = hex(&Sha256::digest(json.as_bytes()));
    for part in [BEFORE, sum.as_bytes(), AFTER] {
        json.push_str(&String::from_utf8_lossy(part));
    }
    json
}

/// Whether a file is as [`seal`] left it.
pub fn check_seal(bytes: &[u8]) -> Seal {
    let tail = BEFORE.len() + DIGITS + AFTER.len();
    let Some((text, tail)) = bytes.len().checked_sub(tail).and_then(|place| bytes.split_at_checked(place)) else {
        return Seal::None;
    };
    let sum = tail.strip_prefix(BEFORE).and_then(|tail| tail.strip_suffix(AFTER));
    match sum {
        None => Seal::None,
        Some(sum) if hex(&Sha256::digest(text)).as_bytes() == sum => Seal::Whole,
        Some(_) => Seal::Broken,
    }
}

/// Reads the content of a JSON file, and refuses it if it is no longer what was written. `is_sealed` tells from its keys
/// that it was written with a checksum.
///
/// # Errors
/// It has another form, or has changed.
pub fn parse<T: DeserializeOwned>(bytes: &[u8], is_sealed: impl FnOnce(&T) -> bool) -> io::Result<T> {
    let seal = check_seal(bytes);
    if seal == Seal::Broken {
        return Err(changed());
    }
    let value = serde_json::from_slice(bytes).map_err(io::Error::from)?;
    if seal == Seal::None && is_sealed(&value) { Err(changed()) } else { Ok(value) }
}

/// The checksums of all files in a folder of a run that is being written.
///
/// # Errors
/// Those of the file system.
pub fn of_folder(folder: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != RECORD {
            files.insert(name, of_file(&entry.path())?);
        }
    }
    Ok(files)
}

/// Refuses a file of a run that is no longer what was written. `Ok(false)`: the run never had it.
///
/// # Errors
/// It is missing, or has changed, or cannot be read, or is not of this run.
pub fn check_file(folder: &Path, name: &str, files: Option<&Files>) -> io::Result<bool> {
    let path = folder.join(name);
    let Some(files) = files else {
        // Of a build without checksums.
        return regular(&path).map(|_| true).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(false),
            _ => Err(error),
        });
    };
    match (files.get(name), fs::symlink_metadata(&path)) {
        (None, Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        (None, _) => Err(wrong("is not of this run: run.json does not name it".into())),
        (Some(sum), _) if of_file(&path)? == *sum => Ok(true),
        (Some(_), _) => Err(changed()),
    }
}

/// Refuses a run's folder of which a file is missing or has changed.
///
/// # Errors
/// The first such file, with what is wrong.
pub fn check_folder(folder: &Path, files: Option<&Files>, tables: &[&str]) -> Result<(), (String, io::Error)> {
    let named = files.into_iter().flatten().map(|(name, _)| name.clone());
    let mut names: Vec<String> = named.chain(tables.iter().map(|table| format!("{table}.parquet"))).collect();
    names.sort();
    names.dedup();
    for name in names {
        if let Err(error) = check_file(folder, &name, files) {
            return Err((name, error));
        }
    }
    Ok(())
}

/// The SHA-256 of a regular file.
///
/// # Errors
/// Those of the file system, and another kind of file.
pub fn of_file(path: &Path) -> io::Result<String> {
    let mut file = regular(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn changed() -> io::Error {
    wrong("has changed since it was written (SHA-256)".into())
}

fn wrong(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn no_byte_of_a_sealed_file_can_change() {
        for json in ["{\n  \"schema\": 4,\n  \"rows\": []\n}\n", "{\"schema\": 4, \"rows\": []}"] {
            let sealed = seal(json.to_owned());
            let is_sealed = |value: &Value| value.get("schema").and_then(Value::as_u64) == Some(4);
            let check = |bytes: &[u8]| parse::<Value>(bytes, is_sealed);
            let value = check(sealed.as_bytes()).expect("whole");
            assert_eq!(value["rows"], Value::Array(Vec::new()));
            for place in 0..sealed.len() {
                for bit in 0..8 {
                    let mut bytes = sealed.clone().into_bytes();
                    bytes[place] ^= 1 << bit;
                    assert!(check(&bytes).is_err(), "bit {bit} of byte {place}");
                }
                assert!(check(&sealed.as_bytes()[..place]).is_err(), "up to byte {place}");
            }
            assert_eq!(check_seal(json.as_bytes()), Seal::None);
        }
        assert!(parse::<Value>(b"{\"schema\": 3}", |_| false).is_ok(), "of an earlier build");
    }
}
