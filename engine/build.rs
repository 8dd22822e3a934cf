//! Lists the files of `queries/` and `queries/views/`, so that a new one needs no line of Rust.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Cargo runs this in the package's folder. Paths stay relative and texts are copied, so that
    // two checkouts which share a target folder never embed each other's questions.
    let folder = PathBuf::from("../queries");
    let listed = format!(
        "pub(crate) const QUERIES: &[(&str, &str)] = &{};\n\
         pub(crate) const VIEWS: &[(&str, &str)] = &{};\n",
        list(&folder)?,
        list(&folder.join("views"))?
    );
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("embedded.rs"), listed)
}

/// Name and text of each `.sql` file of `folder`, by name.
fn list(folder: &Path) -> io::Result<String> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    let mut text = String::from("[");
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let _ = write!(text, "({name:?}, {:?}),", fs::read_to_string(&file)?);
    }
    text.push(']');
    Ok(text)
}
