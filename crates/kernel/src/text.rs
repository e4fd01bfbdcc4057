//! The one rule for text that callers give, whichever door it comes through.
//!
//! Text that names or finds something is refused if it has control characters: a NUL cannot be kept
//! by PostgreSQL, and an escape sequence has no business in a log. Text for people that comes with
//! a report is kept instead, with each such character replaced: a worker's last word must not be
//! lost over a stray byte. `migrations/0005_refuse_at_the_door.sql` has the same rule for SQL.

use crate::rejection::Rejection;
use std::borrow::Cow;

/// Why text is refused.
pub const NO_CONTROL: &str = "must not contain control characters";

/// Stands where a control character was.
const REPLACEMENT: char = '\u{fffd}';

/// Whether `text` has a control character: C0, DEL or C1.
pub fn has_control(text: &str) -> bool {
    // C1 characters are two bytes that start with 0xc2; most text has none of these bytes.
    text.bytes().any(|byte| byte < 0x20 || byte == 0x7f || byte == 0xc2)
        && text.chars().any(char::is_control)
}

/// Refuses `text` with control characters as the value of `field`.
///
/// # Errors
/// If it has one.
pub fn refuse_control(field: &'static str, text: &str) -> Result<(), Rejection> {
    match has_control(text) {
        true => Err(Rejection::FieldInvalid { field, reason: NO_CONTROL }),
        false => Ok(()),
    }
}

/// Whether a kept error code may have this letter.
pub const fn is_code_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | ':' | '-')
}

/// Text for people without control characters but line breaks and tabs, which stack traces have.
pub fn cleaned(text: &str) -> Cow<'_, str> {
    let is_stray = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t');
    if !has_control(text) || !text.chars().any(is_stray) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(is_stray, REPLACEMENT.encode_utf8(&mut [0; 4])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_character_is_seen_and_nothing_else() {
        for letter in '\0'..='\u{2fff}' {
            assert_eq!(has_control(&format!("a{letter}b")), letter.is_control(), "{letter:?}");
        }
        assert!(!has_control("") && !has_control("日本 é ¡"));
    }

    #[test]
    fn text_for_people_keeps_its_lines() {
        assert_eq!(cleaned("a\n\tb\r\n"), "a\n\tb\r\n");
        assert_eq!(cleaned("a\0b\u{1b}[31m\u{85}"), "a\u{fffd}b\u{fffd}[31m\u{fffd}");
        assert!(matches!(cleaned("plain é"), Cow::Borrowed(_)));
    }
}
