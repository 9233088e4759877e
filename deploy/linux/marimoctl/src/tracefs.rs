//! The module's tracepoints, read through an instance of tracefs of our own, so that nobody else's tracing is touched.

use crate::epoch::Entry;
use hostctl::failure::{Failure, Outcome, While};
use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// An instance with the tracepoint `tcp_marimo:epoch` switched on; removed when dropped.
pub struct Instance {
    folder: PathBuf,
    pipe: Option<File>,
    rest: String,
}

impl Instance {
    /// Makes one.
    pub fn new() -> Outcome<Self> {
        let Some(place) = PLACES.iter().map(Path::new).find(|place| place.join("instances").is_dir()) else {
            return Err(Failure::failed(format!("tracefs is not mounted: mount -t tracefs tracefs {}", PLACES[0])));
        };
        let folder = place.join("instances").join(format!("marimoctl-{}", std::process::id()));
        fs::create_dir(&folder).during(format!("cannot make {}", folder.display()))?;
        let mut instance = Self { folder, pipe: None, rest: String::new() };
        // The clock of the ring's records.
        instance.write("trace_clock", "mono")?;
        instance.write("events/tcp_marimo/epoch/enable", "1")?;
        let pipe = instance.folder.join("trace_pipe");
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&pipe);
        instance.pipe = Some(opened.during(format!("cannot open {}", pipe.display()))?);
        Ok(instance)
    }

    fn write(&self, file: &str, value: &str) -> Outcome {
        let path = self.folder.join(file);
        fs::write(&path, value).during(format!("cannot write {}", path.display()))
    }

    /// What has come since the last call.
    pub fn read(&mut self) -> Outcome<Vec<Entry>> {
        let mut buffer = [0; 65_536];
        let pipe = self.pipe.as_mut().expect("opened in new()");
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => self.rest.push_str(&String::from_utf8_lossy(&buffer[..length])),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => break,
                Err(error) => return Err(error).during("cannot read trace_pipe"),
            }
        }
        let complete = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let lines: String = self.rest.drain(..complete).collect();
        Ok(lines.lines().filter_map(Entry::of_tracepoint).collect())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.write("events/tcp_marimo/epoch/enable", "0");
        let _ = fs::remove_dir(&self.folder);
    }
}
