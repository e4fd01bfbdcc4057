//! Which failures are the same failure: an error without what differs from one job to the next.
//!
//! The code counts as it is. Of the message the first line counts, in which numbers, ids, quoted
//! texts, hexadecimal digits and addresses are replaced by `#`. The same for ever: it is an index.

use crate::dlq::DlqItem;
use crate::fingerprint::{digest, number};
use crate::job::Failure;
use crate::limits::GROUP_TYPES_MAX;
use crate::name::JobType;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What stands for everything that differs.
const HOLE: char = '#';
/// So many hexadecimal digits in a row are no word, even if all of them are letters.
const HEX_MIN: usize = 8;

/// Names a failure, whichever job had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature(pub u64);

impl Signature {
    /// Of a failure.
    pub fn of(failure: &Failure) -> Self {
        Signature::of_text(&failure.code, &normal(&failure.message))
    }

    /// Of a dead letter.
    pub fn of_item(item: &DlqItem) -> Self {
        match &item.job.last_failure {
            Some(last) => Signature::of(&last.failure),
            None => Signature::of_text("", ""),
        }
    }

    fn of_text(code: &str, normal: &str) -> Self {
        Signature(number(digest(&[b"failure", code.as_bytes(), normal.as_bytes()])))
    }

    /// The signature of that text form: sixteen hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_one = text.len() == 16 && text.bytes().all(is_digit);
        u64::from_str_radix(text, 16).ok().filter(|_| is_one).map(Signature)
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The first line of a message without what differs.
pub fn normal(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let last = out.chars().next_back();
        if let Some(behind) = quoted(rest, last) {
            out.push(HOLE);
            rest = behind;
        } else if first.is_whitespace() {
            if last != Some(' ') {
                out.push(' ');
            }
            rest = &rest[first.len_utf8()..];
        } else if is_between(first) {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let is_end = |letter: char| letter.is_whitespace() || is_between(letter);
            let (chunk, behind) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
            push_chunk(&mut out, chunk);
            rest = behind;
        }
    }
    joined(out)
}

/// What is behind a quoted text that begins here. An apostrophe within a word begins none.
fn quoted(rest: &str, last: Option<char>) -> Option<&str> {
    let open = rest.chars().next()?;
    let close = match open {
        '"' | '`' => open,
        '\'' if !last.is_some_and(char::is_alphanumeric) => open,
        '\u{201c}' => '\u{201d}',
        '\u{2018}' => '\u{2019}',
        '\u{ab}' => '\u{bb}',
        _ => return None,
    };
    let inner = &rest[open.len_utf8()..];
    let ends = inner.match_indices(close).map(|(at, _)| &inner[at + close.len_utf8()..]);
    // One that is followed by a letter is an apostrophe, too.
    let mut ends = ends.filter(|behind| {
        close != '\'' || !behind.chars().next().is_some_and(char::is_alphanumeric)
    });
    ends.next()
}

/// What stands between words, ids and addresses and is part of none.
fn is_between(letter: char) -> bool {
    matches!(
        letter,
        ',' | ';' | '=' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '|' | '"' | '\'' | '`'
    )
}

/// A word as it is, an id or an address as a hole; the end of a sentence is part of neither.
fn push_chunk(out: &mut String, chunk: &str) {
    let core = chunk.trim_end_matches(['.', ':', '!', '?']);
    let is_hex = core.len() >= HEX_MIN && core.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_address = core.contains('@') || core.contains("://");
    if is_hex || is_address || core.contains(|letter: char| letter.is_numeric()) {
        out.push(HOLE);
    } else {
        out.push_str(core);
    }
    out.push_str(&chunk[core.len()..]);
}

/// Holes in a row are one, however many there are.
fn joined(mut text: String) -> String {
    for row in ["# #", "#, #", "#,#", "##"] {
        while text.contains(row) {
            text = text.replace(row, "#");
        }
    }
    text
}

/// Dead letters with the same failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Which failure.
    pub signature: Signature,
    /// Its code.
    pub code: Box<str>,
    /// Its message without what differs.
    pub pattern: Box<str>,
    /// The message of the latest, as it is.
    pub sample: Box<str>,
    /// How many.
    pub count: u64,
    /// When the first of them failed.
    pub first_at: Timestamp,
    /// When the last of them failed.
    pub last_at: Timestamp,
    /// Of which types they are, a few of them.
    pub types: BTreeSet<JobType>,
}

impl Group {
    /// Its place among groups: those with more come first. A cursor holds it.
    pub fn place(&self) -> u128 {
        (u128::from(self.count) << 64) | u128::from(self.signature.0)
    }
}

/// Dead letters by their failure.
#[derive(Debug, Clone, Default)]
pub struct Groups(BTreeMap<Signature, Group>);

impl Groups {
    /// Counts one.
    pub fn see(&mut self, item: &DlqItem) {
        let failure = item.job.last_failure.as_ref().map(|last| &last.failure);
        let (code, message) =
            failure.map_or(("", ""), |failure| (&*failure.code, &*failure.message));
        let pattern = normal(message);
        let (signature, at) = (Signature::of_text(code, &pattern), item.created_at);
        let group = self.0.entry(signature).or_insert_with(|| Group {
            signature,
            code: code.into(),
            pattern: pattern.into(),
            sample: message.into(),
            count: 0,
            first_at: at,
            last_at: at,
            types: BTreeSet::new(),
        });
        group.count += 1;
        group.first_at = group.first_at.min(at);
        if at > group.last_at {
            group.last_at = at;
            group.sample = message.into();
        }
        if group.types.len() < GROUP_TYPES_MAX {
            group.types.insert(item.job.job_type.clone());
        }
    }

    /// All of them, those with most first.
    pub fn largest_first(self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.0.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.place()));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_a_hole() {
        for (message, expected) in [
            ("", ""),
            ("  connection refused  ", "connection refused"),
            ("timeout after 3000ms.", "timeout after #."),
            ("timeout after 5 s: gave up!", "timeout after # s: gave up!"),
            ("no row for id 7", "no row for id #"),
            ("no row for ids 7, 8, 9", "no row for ids #"),
            ("no row for ids [7,8]", "no row for ids [#]"),
            ("job job_01k8v3p4x5 is gone", "job # is gone"),
            ("3f2504e0-4f89-11d3-9a0c-0305e82c3301 not found", "# not found"),
            ("bad digest deadbeefcafe", "bad digest #"),
            ("a facade in decade", "a facade in decade"),
            ("connect to 10.1.2.3:5432 failed", "connect to # failed"),
            ("connect to [fe80::1]:80 failed", "connect to [#]# failed"),
            ("cannot reach https://a.example/x?y=z", "cannot reach #=z"),
            ("mail to ann@example.org bounced", "mail to # bounced"),
            ("no such file: /var/spool/in-17.csv", "no such file: #"),
            ("no such file: /etc/hosts", "no such file: /etc/hosts"),
            ("key 'a b' missing", "key # missing"),
            ("key \"it's\" missing", "key # missing"),
            ("can't open Ann's door", "can't open Ann's door"),
            ("can't open 'Ann's door'", "can't open #"),
            ("an \"unclosed quote", "an \"unclosed quote"),
            ("at 0x7ffe12 in main", "at # in main"),
            ("got \u{201c}x\u{201d} not \u{ab}y\u{bb}", "got # not #"),
            ("\n\n first line \n second 2", "first line"),
            ("tabs\tand   blanks", "tabs and blanks"),
            ("x=1, x=2", "x=#, x=#"),
            ("\u{667}\u{668} apples", "# apples"),
        ] {
            assert_eq!(normal(message), expected, "{message:?}");
        }
    }

    #[test]
    fn the_same_failure_has_one_signature_and_others_have_others() {
        let of = |code: &str, message: &str| {
            let (code, message) = (code.into(), message.into());
            Signature::of(&Failure { code, message, retryable: true })
        };
        assert_eq!(of("E", "row 1 of 2"), of("E", "row 33 of 9"));
        assert_eq!(of("E", "row 1\nstack a"), of("E", "row 2\nstack b"));
        assert_ne!(of("E", "row 1"), of("F", "row 1"), "another code");
        assert_ne!(of("E", "row 1"), of("E", "column 1"));
        assert_ne!(of("E x", ""), of("E", "x"));
        let one = of("E", "row 1");
        assert_eq!(Signature::parse(&one.to_string()), Some(one));
        for bad in ["", "1", "0123456789abcdeF", "+123456789abcdef", "0123456789abcdef0"] {
            assert_eq!(Signature::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn nothing_is_too_long_or_too_odd() {
        for odd in ["'".repeat(4096), "\"'`".repeat(1000), "1,".repeat(2000), "# #".repeat(999)] {
            let once = normal(&odd);
            assert!(once.len() <= odd.len(), "{odd:?}");
        }
        assert_eq!(normal(&"9 ".repeat(2048)), "#");
    }
}
