//! Rules for Rust files: their first line, names, size, and words that must not be merged.
//!
//! Rules read code and comments apart, see `lines`, so a rule may be named in a string.

use std::path::Path;

use super::lines::{self, Line};
use super::{Problem, numbered};

/// Names that say nothing, as a whole name.
const EMPTY_NAMES: [&str; 10] =
    ["util", "utils", "common", "helpers", "misc", "manager", "processor", "base", "data", "info"];

/// Those that say nothing as the last word of a longer name either: a `JobManager` has no verb.
const EMPTY_ENDINGS: [&str; 7] =
    ["util", "utils", "common", "helpers", "misc", "manager", "processor"];

const LINE_CHARS_MAX: usize = 100;
const FILE_LINES_WARN: usize = 400;
const FILE_LINES_MAX: usize = 700;

/// Code that must not be merged, and why.
const FORBIDDEN_CODE: [(&str, &str); 4] = [
    ("#[ignore", "a test either runs or does not exist"),
    ("#[should_panic", "assert on the error itself"),
    ("todo!(", "finish it or leave it out"),
    ("unimplemented!(", "finish it or leave it out"),
];

pub(crate) fn check(file: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    check_file(file, text, &mut problems);
    let mut is_test = is_test_file(file);
    let split = lines::split(text);
    for (index, (number, raw)) in numbered(text).enumerate() {
        let line = &split[index];
        is_test |= opens_test_module(line, split.get(index + 1));
        for told in check_line(raw, line, is_test) {
            problems.push(Problem::new(file, number, told));
        }
    }
    problems
}

/// Only the rule about reminders, for code in other languages.
pub(crate) fn check_reminders(file: &str, text: &str) -> Vec<Problem> {
    numbered(text)
        .flat_map(|(number, line)| reminders(line).into_iter().map(move |told| (number, told)))
        .map(|(number, told)| Problem::new(file, number, told))
        .collect()
}

fn check_file(file: &str, text: &str, problems: &mut Vec<Problem>) {
    if !text.starts_with("//!") {
        problems.push(Problem::new(file, 1, "the file must open with `//!` and its purpose"));
    }
    let name = Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name == "mod.rs" {
        problems.push(Problem::new(file, 1, "use `name.rs` beside `name/`, not `mod.rs`"));
    }
    for part in file.trim_end_matches(".rs").split('/').filter(|part| says_nothing(part)) {
        problems.push(Problem::new(file, 1, format!("`{part}` says nothing; name the purpose")));
    }
    let count = text.lines().count();
    if count > FILE_LINES_MAX {
        let told = format!("the file has {count} lines; {FILE_LINES_MAX} is the limit");
        problems.push(Problem::new(file, FILE_LINES_MAX + 1, told));
    } else if count > FILE_LINES_WARN {
        let told = format!("the file has {count} lines; think of a wall above {FILE_LINES_WARN}");
        problems.push(Problem::warning(file, FILE_LINES_WARN + 1, told));
    }
}

fn check_line(raw: &str, line: &Line, is_test: bool) -> Vec<String> {
    let mut told = Vec::new();
    let width = raw.chars().count();
    if width > LINE_CHARS_MAX && !line.has_string && !raw.contains("://") {
        told.push(format!("the line has {width} characters; {LINE_CHARS_MAX} is the limit"));
    }
    for (forbidden, reason) in FORBIDDEN_CODE {
        if line.code.contains(forbidden) {
            told.push(format!("`{forbidden}` is not allowed: {reason}"));
        }
    }
    told.extend(reminders(&line.comment));
    if is_test && sleeps(&line.code) && !line.comment.starts_with("// paced:") {
        let text = "a test waits for a condition; if it must sleep, say why: `// paced: ...`";
        told.push(text.to_owned());
    }
    if let Some(name) = declared_type(&line.code).filter(|name| says_nothing(name)) {
        told.push(format!("the type name `{name}` says nothing; name the purpose"));
    }
    told
}

fn reminders(comment: &str) -> Vec<String> {
    let mut told = Vec::new();
    if has_word(comment, "FIXME") {
        told.push("`FIXME` cannot be merged".to_owned());
    }
    if has_word(comment, "TODO") && !has_issue_number(comment) {
        told.push("`TODO` needs the number of its issue, `#12`".to_owned());
    }
    told
}

fn is_test_file(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.split('/').any(|part| part == "tests")
}

/// Whether an inline test module starts here; by house order it goes on to the end of the file.
fn opens_test_module(line: &Line, next: Option<&Line>) -> bool {
    let next = next.map(|next| next.code.trim()).unwrap_or_default();
    line.code.trim() == "#[cfg(test)]" && next.starts_with("mod ") && !next.ends_with(';')
}

/// The name after `struct`, `enum`, `trait` or an outermost `type`; inside an `impl` the name of
/// an associated type belongs to somebody else's trait.
fn declared_type(code: &str) -> Option<&str> {
    let mut words = code.split(|letter: char| !is_word_letter(letter)).filter(|w| !w.is_empty());
    let is_outermost = !code.starts_with(' ');
    words.find(|word| match *word {
        "struct" | "enum" | "trait" => true,
        "type" => is_outermost,
        _ => false,
    })?;
    words.next()
}

/// Whether a file or type name is one of the empty names, or ends in one.
fn says_nothing(name: &str) -> bool {
    let words = words(name);
    let whole = words.join("");
    EMPTY_NAMES.contains(&whole.as_str())
        || words.last().is_some_and(|last| EMPTY_ENDINGS.contains(&last.as_str()))
}

/// `JobManager`, `job_manager` and `job-manager` are the same two words.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    for letter in name.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().expect("there is always a word").extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Real sleeping: through the module, or by a bare imported name. A method, such as a simulated
/// clock's `clock.sleep(..)`, is fine.
fn sleeps(code: &str) -> bool {
    if code.contains("thread::sleep") || code.contains("time::sleep") {
        return true;
    }
    code.match_indices("sleep(").any(|(at, _)| {
        let before = code[..at].trim_end_matches(' ');
        let is_word_start = before.len() < at || !before.ends_with(is_word_letter);
        is_word_start && !before.ends_with(['.', ':']) && !before.ends_with("fn")
    })
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_word_letter)
            && !text[at + word.len()..].starts_with(is_word_letter)
    })
}

fn has_issue_number(text: &str) -> bool {
    text.split('#').skip(1).any(|after| after.starts_with(|first: char| first.is_ascii_digit()))
}

fn is_word_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests;
