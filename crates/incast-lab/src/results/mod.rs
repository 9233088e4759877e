//! What a run leaves on disk and on the terminal.
//!
//! - [`parquet`]: the Parquet tables of a run, written and read back.
//! - [`record`]: the file `run.json`; [`runs`]: those of a folder; [`export`]: one table of the rows of all its runs.
//! - [`checksums`]: whether files are what was written.
//! - [`summary`]: the rows of `summary.json`, [`file`](mod@file) itself; [`csv`]: the same as `summary.csv`.
//! - [`verdict`]: which scheme is best, and which cannot be told from it; [`settings`]: which values of settings are.
//! - [`tuning`]: what a search for settings found.
//! - [`difference`]: two folders, before and after a change.
//! - [`table`]: the comparison on the terminal; [`compact`]: that of many schemes, also for pages; [`claims`]:
//!   published numbers beside it.

pub mod checksums;
mod claim_status;
mod claim_target;
pub mod claims;
pub mod compact;
pub(crate) mod comparison;
pub mod csv;
pub mod difference;
pub mod export;
pub mod file;
pub mod host;
pub mod labels;
pub mod parquet;
pub mod read;
pub mod record;
pub mod row;
pub mod runs;
pub mod settings;
pub(crate) mod steady;
pub mod summary;
pub mod table;
pub mod tuning;
pub mod verdict;

pub use crate::columns::join::FileError;
pub use record::RunRecord;
pub use row::{Row, Seed};
