//! Keys that limits are counted by: where they are found, and what is kept of them.

use crate::canonical::push_string;
use crate::fingerprint::digest;
use crate::job::Payload;
use crate::limits::{NAME_BYTES_MAX, PAYLOAD_DEPTH_MAX};
use crate::rejection::Rejection;
use crate::text::{has_control, refuse_control};
use std::fmt::Write as _;

/// Where a key is found: a JSON pointer into the payload (`/customer/id`), or the name of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySource(Box<str>);

/// The keys of one job, as they were found when it was submitted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LimitKeys {
    /// What the concurrency limit counts it under.
    pub concurrency: Option<Box<str>>,
    /// Whose bucket it takes from.
    pub rate: Option<Box<str>>,
}

impl LimitKeys {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.concurrency.is_none() && self.rate.is_none()
    }
}

impl KeySource {
    /// As it is written.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        KeySource(text.into())
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn check(&self, field: &'static str) -> Result<(), Rejection> {
        let refuse = |reason| Err(Rejection::FieldInvalid { field, reason });
        if self.0.is_empty() || self.0.len() > NAME_BYTES_MAX {
            return refuse("must be between 1 and 200 bytes long");
        }
        refuse_control(field, &self.0)?;
        let is_escape = |rest: &str| rest.starts_with('0') || rest.starts_with('1');
        let is_pointer = !self.0.split('~').skip(1).any(|rest| !is_escape(rest));
        if self.0.starts_with('/') && !is_pointer {
            return refuse("must be the name of a label or a JSON pointer");
        }
        Ok(())
    }

    /// The parts of a pointer; `None` for a label.
    pub fn path(&self) -> Option<Vec<String>> {
        let rest = self.0.strip_prefix('/')?;
        let part = |part: &str| part.replace("~1", "/").replace("~0", "~");
        Some(rest.split('/').map(part).collect())
    }

    /// The key of a job with these labels and that payload, if it has one: a text, a number or a
    /// truth value. A text with what not every store can hold (U+0000, U+FFFF, half a character) is
    /// none.
    pub fn find(&self, labels: &[(Box<str>, Box<str>)], payload: &Payload) -> Option<Box<str>> {
        match self.path() {
            Some(path) => scalar_at(payload, &path).map(|found| kept(&found)),
            None => labels.iter().find(|(name, _)| *name == self.0).map(|(_, value)| kept(value)),
        }
    }
}

/// Refuses a key that a caller gives.
pub(crate) fn check_given(key: &str) -> Result<(), Rejection> {
    let field = "concurrency_key";
    if key.is_empty() || key.len() > NAME_BYTES_MAX {
        return Err(Rejection::FieldInvalid {
            field,
            reason: "must be between 1 and 200 bytes long",
        });
    }
    refuse_control(field, key)
}

/// What is kept of a key that was found: itself, or its digest if it is no text for a name.
/// `mainspring.limit_key()` in SQL makes the same.
fn kept(found: &str) -> Box<str> {
    if found.len() <= NAME_BYTES_MAX && !has_control(found) {
        return found.into();
    }
    let mut text = String::with_capacity(33);
    text.push('#');
    for byte in digest(&[&b"limit-key"[..], found.as_bytes()]).0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.into()
}

/// The text, number or truth value at a place in valid JSON. Anything else gives something or
/// nothing, but no panic.
fn scalar_at(json: &str, path: &[String]) -> Option<String> {
    let mut scan = Scan { json, at: 0 };
    for part in path {
        scan.space();
        match scan.byte()? {
            b'{' => scan.member(part)?,
            b'[' => scan.element(part)?,
            _ => return None,
        }
    }
    scan.space();
    match scan.byte()? {
        b'"' => scan.string(),
        b'{' | b'[' => None,
        _ => Some(scan.token()).filter(|token| !token.is_empty() && *token != "null"),
    }
}

/// A place in JSON.
struct Scan<'a> {
    json: &'a str,
    at: usize,
}

impl Scan<'_> {
    fn byte(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.at += 1;
        }
    }

    /// A string, by what it means; `None` if not every store can hold it.
    fn string(&mut self) -> Option<String> {
        let mut spelled = String::new();
        self.at = push_string(self.json, self.at + 1, &mut spelled);
        let mut letters = spelled.get(1..).unwrap_or_default().chars();
        let mut text = String::with_capacity(spelled.len());
        while let Some(letter) = letters.next() {
            match letter {
                '"' => break,
                '\\' => text.push(meant(&mut letters)?),
                letter => text.push(letter),
            }
        }
        (!text.contains(['\0', '\u{ffff}'])).then_some(text)
    }

    /// A number or a word.
    fn token(&mut self) -> String {
        let from = self.at;
        let is_end = |byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        while self.byte().is_some_and(|byte| !is_end(byte)) {
            self.at += 1;
        }
        self.json.get(from..self.at).unwrap_or_default().to_owned()
    }

    /// To the value of the last member of that name.
    fn member(&mut self, name: &str) -> Option<()> {
        let mut found = None;
        self.at += 1;
        loop {
            self.space();
            match self.byte()? {
                b'}' => break,
                b',' => self.at += 1,
                b'"' => {
                    let is_it = self.string().as_deref() == Some(name);
                    self.space();
                    self.at += usize::from(self.byte()? == b':');
                    found = if is_it { Some(self.at) } else { found };
                    self.skip()?;
                }
                _ => return None,
            }
        }
        self.at = found?;
        Some(())
    }

    /// To an element by its number.
    fn element(&mut self, number: &str) -> Option<()> {
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit())
            && (number.len() == 1 || !number.starts_with('0'));
        let number: usize = number.parse().ok().filter(|_| is_number && number.len() < 10)?;
        self.at += 1;
        for _ in 0..number {
            self.space();
            if self.byte()? == b']' {
                return None;
            }
            self.skip()?;
            self.space();
            if self.byte()? != b',' {
                return None;
            }
            self.at += 1;
        }
        self.space();
        (self.byte()? != b']').then_some(())
    }

    /// Past a value.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            self.space();
            match self.byte()? {
                b'"' => {
                    self.string();
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                b',' | b':' => return None,
                _ => {
                    self.token();
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

/// What an escape means in the one spelling of `canonical.rs`.
fn meant(letters: &mut std::str::Chars<'_>) -> Option<char> {
    match letters.next()? {
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'u' => {
            let digits: String = letters.by_ref().take(4).collect();
            u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
        }
        letter => Some(letter),
    }
}

const _: () =
    assert!(NAME_BYTES_MAX / 2 > PAYLOAD_DEPTH_MAX, "a pointer reaches as deep as it may");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(source: &str, payload: &str) -> Option<String> {
        let labels = [("team".into(), "red".into()), ("/odd".into(), "x".into())];
        KeySource::new(source).find(&labels, &payload.into()).map(Into::into)
    }

    #[test]
    fn a_key_is_a_label_or_a_scalar_in_the_payload() {
        let payload = r#" {"a": {"b~c/d": [1.50, "é\u0041\n", {"x": true}, null]}, "a2": "}", "a3":-7 , "":"none"}"#;
        for (source, key) in [
            ("team", Some("red")),
            ("site", None),
            ("/a/b~0c~1d/0", Some("1.50")),
            ("/a/b~0c~1d/2/x", Some("true")),
            ("/a/b~0c~1d/3", None),
            ("/a/b~0c~1d/4", None),
            ("/a/b~0c~1d/-1", None),
            ("/a/b~0c~1d/00", None),
            ("/a", None),
            ("/a2", Some("}")),
            ("/a3", Some("-7")),
            ("/a3/x", None),
            ("/", Some("none")),
            ("/missing", None),
        ] {
            assert_eq!(found(source, payload).as_deref(), key, "{source}");
        }
        assert_eq!(found("/a", r#"{"a":1,"a":"last"}"#).as_deref(), Some("last"));
        assert_eq!(found("/0", "[7]").as_deref(), Some("7"));
        assert_eq!(found("/0", "7"), None);
        for odd in [r"x\u0000", r"\ud800x", "\u{ffff}", r"\uffff"] {
            assert_eq!(found("/a", &format!(r#"{{"a":"{odd}"}}"#)), None, "{odd}");
        }
        assert_eq!(found("/a", r#"{"\u0000":1,"a":"\ud83d\ude00"}"#).as_deref(), Some("😀"));
    }

    #[test]
    fn what_is_no_text_for_a_name_is_kept_as_its_digest() {
        let long = found("/a", &format!(r#"{{"a":"{}"}}"#, "x".repeat(201))).unwrap();
        assert!(long.starts_with('#') && long.len() == 33, "{long}");
        let odd = found("/a", r#"{"a":"A\n"}"#).unwrap();
        assert!(odd.starts_with('#') && odd != long);
        assert_eq!(found("/a", &format!(r#"{{"a":"{}"}}"#, "x".repeat(200))).unwrap().len(), 200);
    }

    #[test]
    fn what_is_no_source_is_refused() {
        for bad in ["", "/a~2", "/a~", "a\u{1}", &"x".repeat(201)] {
            assert!(KeySource::new(bad).check("k").is_err(), "{bad:?}");
        }
        for good in ["team", "a~b", "/", "/a~0~1", "/a/0"] {
            assert_eq!(KeySource::new(good).check("k"), Ok(()), "{good:?}");
        }
    }

    proptest! {
        /// Nothing that a caller sends makes it fail.
        #[test]
        fn no_text_makes_it_panic(
            json in r#"[\[\]{}",:0-9a\\u é\n]{0,40}"#,
            path in proptest::collection::vec("[a0-9]{0,2}", 0..4),
        ) {
            let _ = scalar_at(&json, &path);
        }
    }
}
