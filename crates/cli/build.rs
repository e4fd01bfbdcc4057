//! Puts the pages of `docs/errors` into the binary, so that an error can tell its cure wherever it
//! is met.

use std::fmt::Write;
use std::path::Path;

fn main() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    println!("cargo:rerun-if-changed={}", pages.display());
    let mut names: Vec<_> = std::fs::read_dir(&pages)
        .expect("the pages are part of the sources")
        .map(|entry| entry.expect("a directory can be read").path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    names.sort();
    let mut code = String::from("&[\n");
    for path in names {
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        writeln!(code, "({name:?}, include_str!({:?})),", path.display().to_string())
            .expect("writing to a string cannot fail");
    }
    code.push(']');
    let out = std::env::var("OUT_DIR").expect("cargo says where to write");
    std::fs::write(Path::new(&out).join("pages.rs"), code).expect("it can be written");
}
