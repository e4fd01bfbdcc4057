//! Rules for Markdown: links between our files lead somewhere, the overview stays short, and no
//! page offers a store we do not have.

use std::path::{Component, Path, PathBuf};

use super::{Problem, numbered};

const ARCHITECTURE_LINES_MAX: usize = 200;

/// A store that people expect and that we do not offer.
const ABSENT_STORE: &str = "sqlite";

/// A sentence that holds one of these may name the absent store: it says that it is absent.
const DENIALS: [&str; 10] = [
    "no",
    "not",
    "never",
    "without",
    "nor",
    "neither",
    "cannot",
    "rejected",
    "unsupported",
    "instead",
];

pub(crate) fn check(file: &str, text: &str) -> Vec<Problem> {
    let mut problems = check_links(file, text, |path| path.exists());
    if file == "ARCHITECTURE.md" && text.lines().count() > ARCHITECTURE_LINES_MAX {
        let told = format!("the overview is longer than {ARCHITECTURE_LINES_MAX} lines");
        problems.push(Problem::new(file, ARCHITECTURE_LINES_MAX + 1, told));
    }
    if file.starts_with("docs/") || !file.contains('/') {
        problems.extend(check_absent_store(file, text));
    }
    problems
}

fn check_links(file: &str, text: &str, exists: impl Fn(&Path) -> bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut is_code = false;
    for (number, line) in numbered(text) {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        for target in targets(&without_code(line)) {
            let told = match resolve(file, &target) {
                Target::Elsewhere => continue,
                Target::Outside => format!("the link `{target}` leaves the repository"),
                Target::File(path) if exists(&path) => continue,
                Target::File(_) => format!("the link `{target}` leads nowhere"),
            };
            problems.push(Problem::new(file, number, told));
        }
    }
    problems
}

/// Where a link leads.
enum Target {
    /// The web, a mail address, or a heading of the same page.
    Elsewhere,
    File(PathBuf),
    /// Above the workspace root.
    Outside,
}

fn resolve(file: &str, target: &str) -> Target {
    let path = target.split('#').next().unwrap_or_default();
    if path.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return Target::Elsewhere;
    }
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let mut resolved = PathBuf::new();
    let joined = match path.strip_prefix('/') {
        Some(from_root) => PathBuf::from(from_root),
        None => folder.join(path),
    };
    for component in joined.components() {
        match component {
            Component::ParentDir if !resolved.pop() => return Target::Outside,
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir
            | Component::CurDir
            | Component::RootDir
            | Component::Prefix(_) => {}
        }
    }
    if resolved.as_os_str().is_empty() {
        resolved.push(".");
    }
    Target::File(resolved)
}

/// The targets of `[text](target "title")` and of `[name]: target` in one line.
fn targets(line: &str) -> Vec<String> {
    let mut found: Vec<&str> =
        line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)).collect();
    if let Some((label, target)) = line.trim_start().split_once("]: ")
        && label.starts_with('[')
        && !label.starts_with("[^")
    {
        found.push(target);
    }
    found
        .into_iter()
        .filter_map(|target| target.split_whitespace().next())
        .map(|target| target.trim_start_matches('<').trim_end_matches('>').to_owned())
        .collect()
}

/// The line without its `code`; a link shown as code is an example.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

fn check_absent_store(file: &str, text: &str) -> Vec<Problem> {
    sentences(text)
        .into_iter()
        .filter(|(_, sentence)| offers_absent_store(sentence))
        .map(|(number, _)| {
            Problem::new(file, number, "sqlite is not a store we offer; say so or leave it out")
        })
        .collect()
}

fn offers_absent_store(sentence: &str) -> bool {
    let sentence = sentence.to_lowercase();
    let is_denied = sentence
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
        .any(|word| DENIALS.contains(&word) || word.ends_with("n't"));
    sentence.contains(ABSENT_STORE) && !is_denied
}

/// Sentences, each with the line of its last word; a paragraph, table row or list item ends one.
fn sentences(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut current = String::new();
    for (number, line) in numbered(text) {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', '|', '-', '*']) {
            found.push((number.saturating_sub(1).max(1), std::mem::take(&mut current)));
        }
        for word in trimmed.split(' ') {
            current.push_str(word);
            current.push(' ');
            if word.ends_with(['.', '!', '?']) {
                found.push((number, std::mem::take(&mut current)));
            }
        }
    }
    found.push((text.lines().count(), current));
    found
}

#[cfg(test)]
mod tests;
