//! The page of attacks names, for every attack, the tests that hold it. Each of them must exist,
//! and no row may go without.

use std::collections::BTreeSet;

use super::{Problem, numbered};

/// The page: tables whose last column holds test names as code.
pub(crate) const PAGE: &str = "docs/attacks.md";

/// Every function of a Rust file, by name.
pub(crate) fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (before, after) = line.split_once("fn ")?;
        let is_start =
            before.chars().all(|letter| " abcdefghijklmnopqrstuvwxyz()".contains(letter));
        let name = after.split(['(', '<']).next()?;
        (is_start && !name.is_empty()).then_some(name)
    })
}

pub(crate) fn check(text: &str, functions: &BTreeSet<String>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (number, line) in numbered(text) {
        let Some(row) = line.trim().strip_prefix('|') else { continue };
        let cells: Vec<&str> = row.trim_end_matches('|').split('|').map(str::trim).collect();
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else { continue };
        if first.starts_with("---") || *last == "held by" {
            continue;
        }
        let tests: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() {
            problems.push(Problem::new(PAGE, number, "this attack names no test that holds it"));
        }
        for test in tests {
            let name = test.rsplit("::").next().unwrap_or(test);
            if !functions.contains(name) {
                problems.push(Problem::new(PAGE, number, format!("there is no test `{test}`")));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_tests_that_exist() {
        let source =
            "#[test]\nfn a_fact() {}\npub(crate) async fn another<T>(x: T) {}\n// fn not\n";
        let known: BTreeSet<String> = functions(source).map(ToOwned::to_owned).collect();
        assert!(known.contains("a_fact") && known.contains("another") && !known.contains("not"));
        let page = "| attack | held by |\n|---|---|\n| x | `a_fact`, `m::another` |\n| y | - |\n\
                    | z | `gone` |\n";
        let told: Vec<String> = check(page, &known).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "docs/attacks.md:4: this attack names no test that holds it",
                "docs/attacks.md:5: there is no test `gone`",
            ]
        );
    }
}
