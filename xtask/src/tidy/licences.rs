//! The licences we accept, checked for every crate in the graph.
//!
//! `deny.toml` holds the same list for cargo-deny; a test below keeps the two equal. An expression
//! is acceptable when some choice of its ORs uses only accepted licences.

use serde_json::Value;

use super::{Problem, line_with};

/// Accepted licences, by their SPDX names.
const ACCEPTED: [&str; 13] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
    "BSL-1.0",
    "BlueOak-1.0.0",
    "CDLA-Permissive-2.0",
];

pub(crate) fn check(metadata: &Value) -> Vec<Problem> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    packages
        .iter()
        .filter_map(|package| {
            let name = package["name"].as_str().unwrap_or_default();
            let told = match package["license"].as_str() {
                None => format!("`{name}` names no licence"),
                Some(expression) => match is_accepted(expression) {
                    Some(true) => return None,
                    Some(false) => format!("`{name}` has the licence {expression}"),
                    None => format!("`{name}` has a licence we cannot read: {expression}"),
                },
            };
            let line = line_with("Cargo.lock", &format!("name = \"{name}\""));
            Some(Problem::new("Cargo.lock", line, told))
        })
        .collect()
}

/// Whether the expression can be satisfied; `None` when it is not one.
fn is_accepted(expression: &str) -> Option<bool> {
    // Old crates write MIT/Apache-2.0 and mean OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut parser = Parser { words: spaced.split_whitespace().collect(), next: 0 };
    let answer = parser.either()?;
    (parser.next == parser.words.len()).then_some(answer)
}

/// Recursive descent; WITH binds tighter than AND, AND tighter than OR.
struct Parser<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn either(&mut self) -> Option<bool> {
        let mut answer = self.both()?;
        while self.takes("OR") {
            answer |= self.both()?;
        }
        Some(answer)
    }

    fn both(&mut self) -> Option<bool> {
        let mut answer = self.one()?;
        while self.takes("AND") {
            answer &= self.one()?;
        }
        Some(answer)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let answer = self.either()?;
            return self.takes(")").then_some(answer);
        }
        let licence = self.name()?;
        if !self.takes("WITH") {
            return Some(ACCEPTED.contains(&licence));
        }
        let exception = self.name()?;
        Some(ACCEPTED.contains(&format!("{licence} WITH {exception}").as_str()))
    }

    fn name(&mut self) -> Option<&'a str> {
        let word = *self.words.get(self.next)?;
        let is_name = !matches!(word, "AND" | "OR" | "WITH" | "(" | ")");
        self.next += usize::from(is_name);
        is_name.then_some(word)
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.next) == Some(&word);
        self.next += usize::from(is_next);
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_names_and_exceptions() {
        assert_eq!(is_accepted("MIT"), Some(true));
        assert_eq!(is_accepted("GPL-3.0-only"), Some(false));
        assert_eq!(is_accepted("Apache-2.0 WITH LLVM-exception"), Some(true));
        assert_eq!(is_accepted("MIT WITH LLVM-exception"), Some(false));
        assert_eq!(is_accepted("Apache-2.0+"), Some(false));
    }

    #[test]
    fn or_needs_one_and_needs_all() {
        assert_eq!(is_accepted("GPL-2.0-only OR MIT"), Some(true));
        assert_eq!(is_accepted("MIT/GPL-2.0-only"), Some(true));
        assert_eq!(is_accepted("MIT AND GPL-2.0-only"), Some(false));
        assert_eq!(is_accepted("(MIT OR Apache-2.0) AND Unicode-3.0"), Some(true));
        assert_eq!(is_accepted("(MIT OR Apache-2.0)AND(GPL-2.0-only)"), Some(false));
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert_eq!(is_accepted("MIT OR GPL-2.0-only AND GPL-3.0-only"), Some(true));
        assert_eq!(is_accepted("(MIT OR GPL-2.0-only) AND GPL-3.0-only"), Some(false));
        assert_eq!(is_accepted("GPL-3.0-only AND MIT OR ISC"), Some(true));
    }

    #[test]
    fn what_is_not_an_expression_is_not_read() {
        for text in
            ["", "OR MIT", "MIT OR", "(MIT", "MIT)", "MIT ISC", "MIT WITH", "MIT AND (", "()"]
        {
            assert_eq!(is_accepted(text), None, "{text}");
        }
    }

    #[test]
    fn a_missing_licence_is_a_problem() {
        let metadata =
            serde_json::json!({ "packages": [{ "name": "a" }, { "name": "b", "license": "MIT" }] });
        let texts: Vec<String> = check(&metadata).into_iter().map(|one| one.text).collect();
        assert_eq!(texts, ["`a` names no licence"]);
    }

    #[test]
    fn deny_toml_holds_the_same_list() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deny.toml");
        let text = std::fs::read_to_string(path).expect("deny.toml is readable");
        let (_, rest) = text.split_once("allow = [").expect("deny.toml allows licences");
        let (list, _) = rest.split_once(']').expect("the list ends");
        let names: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        assert_eq!(names, ACCEPTED);
    }
}
