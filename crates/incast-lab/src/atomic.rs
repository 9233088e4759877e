//! Files that are written whole or not at all, and read if they are files.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// Writes a file under a temporary name in the same folder, flushes it to the disk and renames it. Whoever reads
/// `path` sees the old content or the new one; when anything fails (a full disk) the old content stays.
///
/// # Errors
/// Those of the file system and of `fill`.
pub fn write(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = Path::new(&temporary);
    // A leftover, or what somebody else put there: a pipe would wait for a reader.
    let _ = fs::remove_file(temporary);
    let written = File::create_new(temporary).and_then(|mut file| {
        fill(&mut file)?;
        file.flush()?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| fs::rename(temporary, path)) {
        // The first error is the one to report; a leftover is removed by the next run at the latest.
        let _ = fs::remove_file(temporary);
        return Err(error);
    }
    sync_folder_of(path)
}

/// Opens a regular file: what is none, such as a device or a pipe, might never end, or wait for somebody to write.
///
/// # Errors
/// Those of the file system, and another kind of file.
pub fn regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"));
    }
    File::open(path)
}

/// Copies a file under a temporary name, and renames it when it is on the disk.
///
/// # Errors
/// Those of the file system.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = regular(from)?;
    write(to, |file| io::copy(&mut source, file).map(drop))
}

/// Renames a folder that is complete on disk, so that it appears whole.
///
/// # Errors
/// Those of the file system.
pub fn rename_folder(from: &Path, to: &Path) -> io::Result<()> {
    File::open(from)?.sync_all()?;
    fs::rename(from, to)?;
    sync_folder_of(to)
}

/// Makes a rename in the folder of `path` permanent.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("incast-atomic-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the test");
        let path = folder.join("summary.json");
        write(&path, |file| file.write_all(b"first")).expect("written");
        let failed = write(&path, |file| {
            file.write_all(b"sec")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(failed.expect_err("refused").kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).expect("still there"), b"first");
        assert_eq!(fs::read_dir(&folder).expect("listed").count(), 1);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
