//! JSON in one spelling, for fingerprints: no white space between tokens, the members of an object
//! in order, strings by what they mean, numbers as they are written.
//!
//! `mainspring.canonical()` in SQL makes the same text; a test compares the two on random JSON.
//! Never change what comes out: fingerprints of it are stored.
//!
//! PostgreSQL's text has no NUL and no half of a surrogate pair, which JSON can spell. Each is
//! written as U+FFFF and its four hex digits, and so is U+FFFF itself, so that no two strings come
//! out alike.

use crate::limits::PAYLOAD_DEPTH_MAX;
use std::fmt::Write as _;
use std::mem;

/// JSON that has no canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotCanonical {
    /// Arrays and objects are nested too deep.
    TooDeep,
    /// An object has the same key twice.
    RepeatedKey,
}

/// Stands before the digits of what text cannot hold.
const MARK: char = '\u{ffff}';

/// An array or object that is not closed yet.
struct Open {
    is_object: bool,
    /// The finished members of an object.
    members: Vec<String>,
    /// What stands before it in the one around it.
    before: String,
}

/// The canonical form of valid JSON. Anything else gives some text or an error, but no panic.
///
/// # Errors
/// If it is nested too deep, or an object repeats a key.
pub fn canonical(json: &str) -> Result<String, NotCanonical> {
    let bytes = json.as_bytes();
    let mut open: Vec<Open> = Vec::new();
    let mut text = String::with_capacity(json.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            b'"' => at = push_string(json, at + 1, &mut text),
            b'{' | b'[' => {
                if open.len() >= PAYLOAD_DEPTH_MAX {
                    return Err(NotCanonical::TooDeep);
                }
                let before = mem::take(&mut text);
                open.push(Open { is_object: byte == b'{', members: Vec::new(), before });
                at += 1;
            }
            b',' => {
                match open.last_mut() {
                    Some(Open { is_object: true, members, .. }) => {
                        members.push(mem::take(&mut text))
                    }
                    Some(_) | None => text.push(','),
                }
                at += 1;
            }
            b'}' | b']' => {
                if let Some(closed) = open.pop() {
                    text = close(closed, text)?;
                }
                at += 1;
            }
            _ => {
                let end = bytes[at..].iter().position(|byte| is_structure(*byte));
                let end = end.map_or(bytes.len(), |length| at + length);
                text.push_str(&json[at..end]);
                at = end;
            }
        }
    }
    Ok(text)
}

fn is_structure(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'{' | b'}' | b'[' | b']' | b',')
}

/// Ends an array or object whose last part is `inner`.
fn close(closed: Open, inner: String) -> Result<String, NotCanonical> {
    let Open { is_object, mut members, before: mut text } = closed;
    if !is_object {
        text.push('[');
        text.push_str(&inner);
        text.push(']');
        return Ok(text);
    }
    if !inner.is_empty() {
        members.push(inner);
    }
    members.sort_unstable();
    // What stands between two members with the same key has that key, too.
    if members.windows(2).any(|pair| key_of(&pair[0]) == key_of(&pair[1])) {
        return Err(NotCanonical::RepeatedKey);
    }
    text.push('{');
    for (index, member) in members.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(member);
    }
    text.push('}');
    Ok(text)
}

/// The key of a member in canonical form, without its quotes.
fn key_of(member: &str) -> &str {
    let mut is_escaped = false;
    let end = member.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    member.get(1..1 + end.unwrap_or(0)).unwrap_or("")
}

/// Appends the string whose content starts at `at`; answers with the place behind it.
pub(crate) fn push_string(json: &str, mut at: usize, text: &mut String) -> usize {
    let bytes = json.as_bytes();
    text.push('"');
    loop {
        let run = bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'\\'));
        let end = run.map_or(bytes.len(), |length| at + length);
        let plain = &json[at..end];
        if plain.contains(MARK) {
            text.push_str(&plain.replace(MARK, "\u{ffff}ffff"));
        } else {
            text.push_str(plain);
        }
        match bytes.get(end) {
            Some(b'\\') => at = push_escape(json, end + 1, text),
            Some(_) => {
                text.push('"');
                return end + 1;
            }
            None => return end,
        }
    }
}

/// Appends what the escape whose letter is at `at` means; answers with the place behind it.
fn push_escape(json: &str, at: usize, text: &mut String) -> usize {
    let letter = match json.as_bytes().get(at) {
        Some(b'u') => return push_unit(json, at + 1, text),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(byte) if byte.is_ascii() => char::from(*byte),
        Some(_) | None => return at,
    };
    push_char(letter, text);
    at + 1
}

/// Appends what the four digits at `at` mean, together with the other half of a pair.
fn push_unit(json: &str, at: usize, text: &mut String) -> usize {
    let Some(unit) = digits(json, at) else { return at };
    let rest = at + 4;
    if let Some(letter) = char::from_u32(unit) {
        push_char(letter, text);
        return rest;
    }
    let is_next_escape = json.as_bytes().get(rest..rest + 2) == Some(b"\\u");
    let low = digits(json, rest + 2).filter(|low| is_next_escape && (0xdc00..0xe000).contains(low));
    if let (0xd800..0xdc00, Some(low)) = (unit, low) {
        let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        push_char(char::from_u32(code).unwrap_or(MARK), text);
        return rest + 6;
    }
    push_marked(unit, text);
    rest
}

fn digits(json: &str, at: usize) -> Option<u32> {
    let four = json.get(at..at + 4).filter(|four| four.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(four, 16).ok()
}

fn push_char(letter: char, text: &mut String) {
    match letter {
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\u{8}' => text.push_str("\\b"),
        '\u{c}' => text.push_str("\\f"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        '\0' | MARK => push_marked(u32::from(letter), text),
        // Writing to a string cannot fail.
        '\u{1}'..' ' => _ = write!(text, "\\u{:04x}", u32::from(letter)),
        _ => text.push(letter),
    }
}

fn push_marked(unit: u32, text: &mut String) {
    text.push(MARK);
    // Writing to a string cannot fail.
    let _ = write!(text, "{unit:04x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(json: &str) -> String {
        canonical(json).unwrap()
    }

    #[test]
    fn order_and_space_do_not_matter() {
        let one = made(r#" { "b" : [ 1 , { "y":1, "x" : null } ] , "a" : "s p" } "#);
        assert_eq!(one, r#"{"a":"s p","b":[1,{"x":null,"y":1}]}"#);
        assert_eq!(one, made("{\"a\":\"s p\",\n\t\"b\":[1,{\"x\":null,\"y\":1}]}"));
        assert_eq!(made("[ ]"), "[]");
        assert_eq!(made("{ }"), "{}");
        assert_eq!(made(" true\n"), "true");
    }

    #[test]
    fn everything_else_does() {
        for (one, other) in [
            ("1", "1.0"),
            ("1e2", "100"),
            ("[1,2]", "[2,1]"),
            ("{\"a\":1}", "{\"a\":2}"),
            ("{\"a\":{\"b\":1}}", "{\"a\":1,\"b\":1}"),
            ("\"a b\"", "\"ab\""),
            ("\"1\"", "1"),
            (r#""\u0000""#, r#""\uffff0000""#),
            (r#""\ud800""#, r#""\uffffd800""#),
            (r#""\ud800""#, r#""\ud801""#),
            (r#""\\u0041""#, r#""A""#),
        ] {
            assert_ne!(made(one), made(other), "{one} and {other}");
        }
    }

    #[test]
    fn strings_count_by_what_they_mean() {
        for (one, other) in [
            (r#""\u0041\/\u00e9""#, "\"A/é\""),
            (r#""\ud83d\ude00""#, "\"😀\""),
            (r#""\u000A\u0022\u005c""#, r#""\n\"\\""#),
            (r#"{"\u0062":1,"a":2}"#, r#"{"a":2,"b":1}"#),
            (r#""\uD800x""#, r#""\ud800x""#),
            (r#""\uFFFF""#, "\"\u{ffff}\""),
        ] {
            assert_eq!(made(one), made(other), "{one} and {other}");
        }
    }

    #[test]
    fn repeated_keys_and_great_depth_are_refused() {
        for twice in [r#"{"a":1,"a":2}"#, r#"[{"a":1,"b":0,"\u0061":1}]"#, r#"{"":1,"":1}"#] {
            assert_eq!(canonical(twice), Err(NotCanonical::RepeatedKey), "{twice}");
        }
        assert!(canonical(r#"{"a":1,"a\"":1,"a!":1}"#).is_ok());
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(canonical(&nested(PAYLOAD_DEPTH_MAX)).is_ok());
        assert_eq!(canonical(&nested(PAYLOAD_DEPTH_MAX + 1)), Err(NotCanonical::TooDeep));
    }

    #[test]
    fn nonsense_does_not_panic() {
        for text in ["", "\"", "\"\\", "\"\\u", "\"\\ud8", "\"\\ud800\\u", "\"\\é", "]", "{,", "}:"]
        {
            let _ = canonical(text);
        }
    }
}
