//! What templates put in as it is, because it is made here: instants, states, numbers. Everything
//! else that a template shows is escaped.

use super::words::{self, Lang};
use crate::instant;
use askama::filters::HtmlSafe;
use mainspring_kernel::{StateName, Timestamp};
use std::fmt;
use std::time::Duration;

/// Implements the traits by which a template takes something as HTML.
macro_rules! html {
    ($($name:ty),+) => {
        $(impl HtmlSafe for $name {})+
    };
}
html!(When, Chip, Html);

/// HTML of our own making, such as a drawing.
#[derive(Debug, Clone, Default)]
pub(super) struct Html(pub(super) String);

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An instant: UTC in the page, local time by the script, UTC again when pointed at.
#[derive(Debug, Clone, Copy)]
pub(super) struct When(pub(super) Timestamp);

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = utc(self.0);
        let (day, time) = (&text[..10], &text[11..19]);
        let exact = format!("{day} {} UTC", &text[11..23]);
        write!(f, "<time datetime=\"{text}\" title=\"{exact}\" data-when>{day} {time} UTC</time>")
    }
}

/// RFC 3339 with microseconds.
pub(super) fn utc(at: Timestamp) -> String {
    let mut text = Vec::with_capacity(27);
    instant::push(at, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// A state, by colour and by name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chip(pub(super) StateName, pub(super) Lang);

impl fmt::Display for Chip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, label) = (self.0.as_str(), words::state(self.1, self.0));
        write!(f, "<span class=\"chip s-{name}\" title=\"{name}\">{label}</span>")
    }
}

/// Whether a text is an id as they are made here, or what is made of one, such as an execution key.
pub(super) fn is_id(text: &str) -> bool {
    let is_of_it = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b':';
    text.split_once('_').is_some_and(|(kind, rest)| {
        kind.bytes().all(|byte| byte.is_ascii_lowercase())
            && (26..=32).contains(&rest.len())
            && rest.bytes().all(is_of_it)
    })
}

/// A text that cannot be taken for anything else between tags or quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// A number with its thousands apart.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How long, in at most two units; the second only if there is some of it.
pub(super) fn span(span: Duration) -> String {
    let (secs, millis) = (span.as_secs(), span.subsec_millis());
    let two = |(first, name): (u64, &str), (second, rest): (u64, &str)| match second {
        0 => format!("{first} {name}"),
        _ => format!("{first} {name} {second} {rest}"),
    };
    match secs {
        0 if millis == 0 => format!("{} µs", span.subsec_micros()),
        0 => format!("{millis} ms"),
        1..60 => format!("{:.1} s", span.as_secs_f64()),
        60..3_600 => two((secs / 60, "min"), (secs % 60, "s")),
        3_600..86_400 => two((secs / 3_600, "h"), (secs % 3_600 / 60, "min")),
        _ => two((secs / 86_400, "d"), (secs % 86_400 / 3_600, "h")),
    }
}

/// How often, per second or per minute.
pub(super) fn rate(per_second: f64) -> String {
    match per_second {
        nothing if nothing <= 0.0 => "0/s".to_owned(),
        few if few < 1.0 => format!("{:.1}/min", few * 60.0),
        some if some < 10.0 => format!("{some:.1}/s"),
        many => format!("{}/s", count(many.round() as u64)),
    }
}

/// How many bytes.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_spans_read_well() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")]
        {
            assert_eq!(count(number), text);
        }
        for (millis, text) in [
            (0, "0 µs"),
            (12, "12 ms"),
            (1_500, "1.5 s"),
            (61_000, "1 min 1 s"),
            (900_000, "15 min"),
            (3_660_000, "1 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), text);
        }
        for (rated, text) in [(0.0, "0/s"), (0.5, "30.0/min"), (2.5, "2.5/s"), (1_234.0, "1,234/s")]
        {
            assert_eq!(rate(rated), text);
        }
    }

    #[test]
    fn what_is_escaped_leaves_no_tag_and_no_quote() {
        assert_eq!(escaped("<a b='c\">&"), "&lt;a b=&#39;c&quot;&gt;&amp;");
    }

    #[test]
    fn an_instant_is_told_exactly() {
        assert_eq!(
            When(Timestamp(1_500_000)).to_string(),
            "<time datetime=\"1970-01-01T00:00:01.500000Z\" title=\"1970-01-01 00:00:01.500 UTC\" \
             data-when>1970-01-01 00:00:01 UTC</time>"
        );
    }
}
