//! Makes the bundled scenarios part of the binary.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let root = Path::new("../../scenarios");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(root, &mut files)?;
    files.sort();
    let mut text =
        String::from("/// Path and text of each bundled scenario.\nconst BUNDLED: &[(&str, &str)] = &[\n");
    for file in files {
        let name = Path::new("scenarios").join(file.strip_prefix(root).unwrap_or(&file));
        let absolute = fs::canonicalize(&file)?;
        text.push_str(&format!(
            "    ({:?}, include_str!({:?})),\n",
            name.display().to_string(),
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
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    Ok(())
}
