//! `cargo xtask tidy`: the house rules that no compiler checks.
//!
//! One file per kind of rule: `arrows` (which crate may see which), `licences`, `source` (Rust
//! files), `docs` (Markdown), `attacks` (every attack we know has tests that hold it), `unused`
//! (dependencies without a user). Rules only report; this file walks the tree and prints all
//! problems at once, each as `file:line: text`.

mod arrows;
mod attacks;
mod docs;
mod licences;
mod lines;
mod source;
mod unused;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{cargo, limits};

/// Folders that hold what we build or run, not what we write.
const SKIPPED_FOLDERS: [&str; 5] =
    [".git", "target", "mainspring-data", "node_modules", "__pycache__"];

/// A path that exists on one machine only. It is put together so that this file does not hold it.
const FOREIGN_PATH: &str = concat!("..", "/shared");

/// Something to mend.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    /// Path from the workspace root.
    file: String,
    line: usize,
    text: String,
    severity: Severity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Warning,
    Failure,
}

impl Problem {
    fn new(file: &str, line: usize, text: impl Into<String>) -> Self {
        let severity = Severity::Failure;
        Self { file: file.to_owned(), line, text: text.into(), severity }
    }

    fn warning(file: &str, line: usize, text: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::new(file, line, text) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = match self.severity {
            Severity::Warning => "warning: ",
            Severity::Failure => "",
        };
        write!(out, "{}:{}: {note}{}", self.file, self.line, self.text)
    }
}

pub(crate) fn run() -> Result<()> {
    let metadata = cargo::metadata()?;
    let mut problems = arrows::check(&metadata);
    problems.extend(licences::check(&metadata));
    let files = files(Path::new("."))?;
    let (mut page, mut functions) = (String::new(), BTreeSet::new());
    let mut sources = Vec::new();
    for file in &files {
        let bytes = fs::read(file).with_context(|| format!("cannot read {file}"))?;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        problems.extend(check_file(file, &text));
        if file == attacks::PAGE {
            page.clone_from(&text);
        }
        if file.ends_with(".rs") {
            functions.extend(attacks::functions(&text).map(ToOwned::to_owned));
        }
        if file.ends_with(".rs") || file == "Cargo.toml" {
            sources.push((file.clone(), text));
        }
    }
    problems.extend(unused::check(&metadata, &sources));
    problems.extend(attacks::check(&page, &functions));
    let stale = limits::problems(&files)?;
    problems.extend(stale.into_iter().map(|told| Problem::new("docs/limits.md", 1, told)));
    problems.sort();

    for problem in &problems {
        println!("{problem}");
    }
    let failures = problems.iter().filter(|one| one.severity == Severity::Failure).count();
    let warnings = problems.len() - failures;
    println!("tidy: files {}, problems {failures}, warnings {warnings}", files.len());
    if failures > 0 {
        bail!("problems to mend: {failures}");
    }
    Ok(())
}

fn check_file(file: &str, text: &str) -> Vec<Problem> {
    let mut problems = match Path::new(file).extension().and_then(|end| end.to_str()) {
        Some("rs") => source::check(file, text),
        Some("md") => docs::check(file, text),
        Some("sql" | "toml" | "py" | "ts" | "html" | "css" | "js" | "sh") => {
            source::check_reminders(file, text)
        }
        _ => Vec::new(),
    };
    for (number, line) in numbered(text) {
        if line.contains(FOREIGN_PATH) {
            let told = format!("`{FOREIGN_PATH}` lies outside the repository");
            problems.push(Problem::new(file, number, told));
        }
    }
    problems
}

/// Every file we wrote, as a path from the workspace root, in order.
pub(crate) fn files(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
            let kind = entry.file_type().context("cannot tell a file from a folder")?;
            let name = entry.file_name();
            if kind.is_dir() && !SKIPPED_FOLDERS.iter().any(|skipped| name == *skipped) {
                folders.push(entry.path());
            } else if kind.is_file() {
                let path = entry.path();
                let path = path.strip_prefix(root).unwrap_or(&path);
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Lines with their numbers, as an editor counts them.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines())
}

/// The line of a file that holds the text, for problems found elsewhere than in the file itself.
fn line_with(file: &str, wanted: &str) -> usize {
    let text = fs::read_to_string(file).unwrap_or_default();
    numbered(&text).find(|(_, line)| line.contains(wanted)).map_or(1, |(number, _)| number)
}
