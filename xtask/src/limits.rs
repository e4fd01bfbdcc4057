//! The table of bounds in `docs/limits.md`, made from the constants in the code.
//!
//! `cargo xtask bless` writes it, tidy compares it. Every constant of a file `limits.rs` is a row,
//! and so is every constant of the product whose name says that it is a bound. The meaning is the
//! constant's own comment, so a bound without one is a problem. Settings stand in the same page; a
//! test of the command line keeps those.

mod value;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result};

const PAGE: &str = "docs/limits.md";
const BEGIN: &str = "<!-- bounds: written by `cargo xtask bless` -->";
const END: &str = "<!-- end of bounds -->";

/// The crates of the product, in the order in which a request meets them.
const CRATES: [&str; 10] = [
    "kernel",
    "server",
    "engine",
    "store",
    "store-memory",
    "store-postgres",
    "worker",
    "executor",
    "sdk",
    "cli",
];

/// Parts of the product crates that only measure or test.
const LEFT_OUT: [&str; 5] = ["/bench", "/tests", "tests.rs", "/conformance", "/disk/sim"];

/// What the end of a name says: this is a bound.
const BOUND_ENDS: [&str; 3] = ["_MAX", "_MIN", "_DEFAULT"];

/// A constant that bounds something.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    file: String,
    name: String,
    value: String,
    meaning: String,
}

/// What is wrong with the page, if anything.
pub(crate) fn problems(files: &[String]) -> Result<Vec<String>> {
    let bounds = collect(files)?;
    let mut problems: Vec<String> = bounds
        .iter()
        .filter(|bound| bound.meaning.is_empty())
        .map(|bound| format!("{} in {} does not say what it bounds", bound.name, bound.file))
        .collect();
    let kept = fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
    if replaced(&kept, &table(&bounds)).as_deref() != Some(&kept) {
        problems.push("is stale: run `cargo xtask bless` and read the diff".to_owned());
    }
    Ok(problems)
}

/// Writes the table from what the code says now.
pub(crate) fn write(files: &[String]) -> Result<()> {
    let kept = fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
    let fresh = replaced(&kept, &table(&collect(files)?))
        .with_context(|| format!("{PAGE} has no place for the table"))?;
    fs::write(PAGE, fresh).with_context(|| format!("cannot write {PAGE}"))
}

fn replaced(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

fn collect(files: &[String]) -> Result<Vec<Bound>> {
    let mut found = Vec::new();
    let mut known = BTreeMap::new();
    for name in CRATES {
        let root = format!("crates/{name}/src/");
        let own = files.iter().filter(|file| {
            file.starts_with(&root)
                && file.ends_with(".rs")
                && !LEFT_OUT.iter().any(|part| file.contains(part))
        });
        // The file of limits first: others refer to it.
        let (limits, others): (Vec<&String>, Vec<&String>) =
            own.partition(|file| file.ends_with("/limits.rs"));
        for file in limits.into_iter().chain(others) {
            let source = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
            found.extend(bounds_of(file, &source, &mut known));
        }
    }
    Ok(found)
}

fn bounds_of(file: &str, source: &str, known: &mut BTreeMap<String, i128>) -> Vec<Bound> {
    let is_list = file.ends_with("/limits.rs");
    let mut found = Vec::new();
    let mut meaning: Vec<&str> = Vec::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        if let Some(text) = line.strip_prefix("///") {
            meaning.push(text.trim());
            continue;
        }
        if line.starts_with("#[") {
            continue;
        }
        if let Some((name, kind, mut expression)) = constant(line) {
            while !expression.ends_with(';')
                && let Some(more) = lines.next()
            {
                expression.push_str(more.trim());
            }
            let expression = expression.trim_end_matches(';').trim();
            let number = value::number(expression, known);
            if let Some(number) = number {
                known.insert(name.to_owned(), number);
            }
            let is_bound = is_list || BOUND_ENDS.iter().any(|end| name.ends_with(end));
            if is_bound && value::is_quantity(kind) {
                let meaning = meaning.join(" ");
                let value = value::shown(name, kind, expression, number);
                found.push(Bound { file: file.to_owned(), name: name.to_owned(), value, meaning });
            }
        }
        meaning.clear();
    }
    found
}

/// Name, type and the beginning of the value of `pub const NAME: TYPE = VALUE`.
fn constant(line: &str) -> Option<(&str, &str, String)> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c| c != ' ').trim_start(),
        None => line,
    };
    let (name, rest) = rest.strip_prefix("const ")?.split_once(": ")?;
    let (kind, value) = rest.split_once('=')?;
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    (is_name && name != "_").then(|| (name, kind.trim(), value.trim().to_owned()))
}

fn table(bounds: &[Bound]) -> String {
    let mut out = String::new();
    for name in CRATES {
        let root = format!("crates/{name}/src/");
        let own: Vec<&Bound> = bounds.iter().filter(|b| b.file.starts_with(&root)).collect();
        if own.is_empty() {
            continue;
        }
        let _ = writeln!(out, "### `{name}`\n\n| bound | value | what it bounds | in |");
        let _ = writeln!(out, "|---|---|---|---|");
        for Bound { file, name, value, meaning } in own {
            let place = file.strip_prefix(&root).unwrap_or(file);
            let meaning = meaning.replace('|', "\\|");
            let _ = writeln!(out, "| `{name}` | {value} | {meaning} | `{place}` |");
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, Bound, END, bounds_of, constant, replaced, table};
    use std::collections::BTreeMap;

    const SOURCE: &str = "\
/// Largest body.
pub const BODY_BYTES_MAX: usize = 2 << 20;
/// How many, in one go.
#[expect(dead_code)]
const AT_ONCE: u64 = BODY_BYTES_MAX as u64 / 2;
/// Never shown.
pub(crate) const NAMES: [&str; 2] = [\"a\", \"b\"];
const _: () = assert!(BODY_BYTES_MAX > 1);
#[cfg(test)]
mod tests {
    const IN_A_TEST_MAX: usize = 1;
}
";

    #[test]
    fn every_constant_of_a_list_is_a_row_and_elsewhere_every_bound() {
        let rows = |file: &str| {
            let found = bounds_of(file, SOURCE, &mut BTreeMap::new());
            found.into_iter().map(|b| (b.name, b.value, b.meaning)).collect::<Vec<_>>()
        };
        let row = |name: &str, value: &str, meaning: &str| {
            (name.to_owned(), value.to_owned(), meaning.to_owned())
        };
        let body = row("BODY_BYTES_MAX", "2,097,152 (2 MiB)", "Largest body.");
        let most = row("AT_ONCE", "1,048,576", "How many, in one go.");
        assert_eq!(rows("crates/x/src/limits.rs"), [body.clone(), most]);
        assert_eq!(rows("crates/x/src/other.rs"), [body]);
    }

    #[test]
    fn a_constant_is_recognised_whatever_its_visibility() {
        let read = constant;
        assert_eq!(read("const A: u8 = 1;"), Some(("A", "u8", "1;".to_owned())));
        assert_eq!(read("pub(super) const B_2: u8 = 1;"), Some(("B_2", "u8", "1;".to_owned())));
        assert_eq!(read("const _: () = assert!(true);"), None);
        assert_eq!(read("pub const fn f() -> u8 {"), None);
    }

    #[test]
    fn only_the_table_of_the_page_is_replaced() {
        let file = "crates/kernel/src/limits.rs".to_owned();
        let bound = Bound { file, name: "A".into(), value: "1".into(), meaning: "b|c".into() };
        let fresh = table(&[bound]);
        assert!(fresh.contains("| `A` | 1 | b\\|c | `limits.rs` |"), "{fresh}");
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let page = replaced(&page, &fresh).unwrap_or_default();
        assert!(page.starts_with("before\n") && page.ends_with("\nafter\n"), "{page}");
        assert!(page.contains(&fresh) && !page.contains("old"), "{page}");
        assert_eq!(replaced(&page, &fresh).as_deref(), Some(&*page));
        assert_eq!(replaced("no place", &fresh), None);
    }
}
