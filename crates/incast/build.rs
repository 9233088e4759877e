//! Makes the bundled scenarios, and the files beside them, part of the binary.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let root = Path::new("scenarios");
    // What the link leads to, where it is one.
    println!("cargo::rerun-if-changed={}", fs::canonicalize(root)?.display());
    let mut files = Vec::new();
    collect(root, &mut files)?;
    files.sort();
    // A program without scenarios would look as if it worked.
    if files.is_empty() {
        return Err(io::Error::other(
            "found no scenarios in crates/incast/scenarios, a link to ../../scenarios",
        ));
    }
    let mut text =
        String::from("/// Path and content of each bundled file.\nconst BUNDLED: &[(&str, &[u8])] = &[\n");
    for file in files {
        // With `/` on every system: these are names.
        let parts = file.strip_prefix(root).unwrap_or(&file).components();
        let name: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        let absolute = fs::canonicalize(&file)?;
        text.push_str(&format!(
            "    ({:?}, include_bytes!({:?})),\n",
            name.join("/"),
            absolute.display().to_string()
        ));
    }
    text.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("bundled.rs"), text)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() {
            collect(&path, files)?;
        } else if !hidden {
            files.push(path);
        }
    }
    Ok(())
}
