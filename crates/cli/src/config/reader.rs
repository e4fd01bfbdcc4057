//! Walks a parsed TOML table by name and collects every problem with its line, instead of stopping
//! at the first one. Knows nothing about what the keys mean; `file.rs` does.

use super::suggest;
use crate::span;
use std::cell::RefCell;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Something wrong in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Line in the file, counted from one; `None` for what came from elsewhere.
    pub(crate) line: Option<usize>,
    /// What is wrong.
    pub(crate) text: String,
}

/// All problems of one file.
pub(crate) struct Problems<'t> {
    text: &'t str,
    found: RefCell<Vec<Problem>>,
}

impl<'t> Problems<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Problems { text, found: RefCell::default() }
    }

    /// Notes a problem at a byte of the text.
    pub(crate) fn add(&self, at: usize, text: impl Into<String>) {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        self.found.borrow_mut().push(Problem { line: Some(line), text: text.into() });
    }

    /// The problems in the order of the file.
    pub(crate) fn into_list(self) -> Vec<Problem> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|problem| problem.line);
        found
    }
}

/// One table of the file, such as `[server]`.
pub(crate) struct Section<'a> {
    name: String,
    table: &'a DeTable<'a>,
    problems: &'a Problems<'a>,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Section<'a> {
    pub(crate) fn new(name: String, table: &'a DeTable<'a>, problems: &'a Problems<'a>) -> Self {
        Section { name, table, problems, known: RefCell::default() }
    }

    fn find(&self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.borrow_mut().push(key);
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    fn wrong(&self, value: &Spanned<DeValue<'_>>, key: &str, wanted: &str) {
        let found = value.get_ref().type_str();
        let text = format!("{}.{key} must be {wanted}, not {}", self.name, article(found));
        self.problems.add(value.span().start, text);
    }

    /// Notes a problem with the value of `key`.
    pub(crate) fn refuse(&self, key: &'static str, text: &str) {
        let at = self.find(key).map_or(0, |value| value.span().start);
        self.problems.add(at, format!("{}.{key} {text}", self.name));
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<String> {
        let value = self.find(key)?;
        let text = value.get_ref().as_str().map(ToOwned::to_owned);
        if text.is_none() {
            self.wrong(value, key, "text in quotes");
        }
        text
    }

    pub(crate) fn flag(&self, key: &'static str) -> Option<bool> {
        let value = self.find(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong(value, key, "true or false");
        }
        flag
    }

    /// A whole number between `low` and `high`.
    pub(crate) fn number(&self, key: &'static str, low: u64, high: u64) -> Option<u64> {
        let value = self.find(key)?;
        let Some(number) = value.get_ref().as_integer() else {
            self.wrong(value, key, "a whole number");
            return None;
        };
        let digits = number.as_str().replace('_', "");
        let read = i128::from_str_radix(&digits, number.radix()).unwrap_or(-1);
        let read = u64::try_from(read).ok().filter(|read| (low..=high).contains(read));
        if read.is_none() {
            let text = format!("{}.{key} must be between {low} and {high}", self.name);
            self.problems.add(value.span().start, text);
        }
        read
    }

    /// A number that may have a fraction, not negative.
    pub(crate) fn fraction(&self, key: &'static str) -> Option<f64> {
        let value = self.find(key)?;
        let found = value.get_ref();
        let text = found
            .as_float()
            .map(|float| float.as_str())
            .or(found.as_integer().map(|whole| whole.as_str()));
        let Some(text) = text else {
            self.wrong(value, key, "a number");
            return None;
        };
        let read = text.replace('_', "").parse::<f64>().ok();
        let read = read.filter(|read| read.is_finite() && *read >= 0.0);
        if read.is_none() {
            let text = format!("{}.{key} must be zero or more", self.name);
            self.problems.add(value.span().start, text);
        }
        read
    }

    pub(crate) fn span(&self, key: &'static str) -> Option<Duration> {
        let text = self.text(key)?;
        span::parse(&text).map_err(|told| self.refuse(key, &format!("is wrong: {told}"))).ok()
    }

    /// One word out of a list.
    pub(crate) fn choice(&self, key: &'static str, words: &[&'static str]) -> Option<&'static str> {
        let text = self.text(key)?;
        let found = words.iter().copied().find(|word| *word == text);
        if found.is_none() {
            let hint = suggest::hint(&text, words);
            self.refuse(key, &format!("is {text:?}, must be one of {}{hint}", words.join(", ")));
        }
        found
    }

    /// A list of texts.
    pub(crate) fn texts(&self, key: &'static str) -> Option<Vec<String>> {
        let value = self.find(key)?;
        let Some(list) = value.get_ref().as_array() else {
            self.wrong(value, key, "a list of texts");
            return None;
        };
        let mut texts = Vec::new();
        for entry in list.iter() {
            match entry.get_ref().as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.wrong(entry, key, "a list of texts"),
            }
        }
        Some(texts)
    }

    /// Whether `key` is there as a table.
    pub(crate) fn is_table(&self, key: &'static str) -> bool {
        self.find(key).is_some_and(|value| value.get_ref().as_table().is_some())
    }

    /// A table below this one.
    pub(crate) fn section(&self, key: &'static str) -> Option<Section<'a>> {
        let value = self.find(key)?;
        let Some(table) = value.get_ref().as_table() else {
            let text = format!("{key} must be a section [{key}]");
            self.problems.add(value.span().start, text);
            return None;
        };
        Some(Section::new(self.below(key), table, self.problems))
    }

    /// Tables below this one whose names the file chooses: everything not asked for so far.
    pub(crate) fn named_sections(&self) -> Vec<(String, Section<'a>)> {
        let known = self.known.borrow().clone();
        #[cfg(test)]
        note_asked(&self.name, &known);
        let mut sections = Vec::new();
        for (name, value) in self.table {
            let key = name.get_ref();
            if known.iter().any(|known| *known == key.as_ref()) {
                continue;
            }
            match value.get_ref().as_table() {
                Some(table) => {
                    let section = Section::new(self.below(key), table, self.problems);
                    sections.push((key.to_string(), section));
                }
                None => self.unknown(key, name.span().start, &known),
            }
        }
        sections
    }

    /// Refuses every key that nobody asked for.
    pub(crate) fn finish(self) {
        let known = self.known.borrow();
        #[cfg(test)]
        note_asked(&self.name, &known);
        for (name, _) in self.table {
            if !known.iter().any(|known| *known == name.get_ref().as_ref()) {
                self.unknown(name.get_ref(), name.span().start, &known);
            }
        }
    }

    fn unknown(&self, key: &str, at: usize, known: &[&'static str]) {
        let hint = suggest::hint(key, known);
        let place =
            if self.name.is_empty() { String::new() } else { format!(" in [{}]", self.name) };
        self.problems.add(at, format!("unknown key {key:?}{place}{hint}"));
    }

    fn below(&self, key: &str) -> String {
        let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let key = if plain { key.to_owned() } else { format!("{key:?}") };
        if self.name.is_empty() { key } else { format!("{}.{key}", self.name) }
    }
}

#[cfg(test)]
thread_local! {
    /// Every key that was asked for, with its section.
    static ASKED: RefCell<Vec<(String, String)>> = RefCell::default();
}

#[cfg(test)]
fn note_asked(section: &str, keys: &[&'static str]) {
    let pairs = keys.iter().map(|key| (section.to_owned(), (*key).to_owned()));
    ASKED.with_borrow_mut(|asked| asked.extend(pairs));
}

/// What was asked for since the last time, by this thread.
#[cfg(test)]
pub(crate) fn asked_for() -> Vec<(String, String)> {
    ASKED.take()
}

fn article(kind: &str) -> String {
    match kind.chars().next() {
        Some('a' | 'e' | 'i' | 'o' | 'u') => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}
