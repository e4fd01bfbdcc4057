//! What a constant comes to, and how a person reads it. Knows the few forms in which bounds are
//! written; any other expression is shown as it stands.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

/// Whether constants of this type can bound something.
pub(super) fn is_quantity(kind: &str) -> bool {
    matches!(
        kind,
        "usize" | "u8" | "u16" | "u32" | "u64" | "u128" | "i32" | "i64" | "f64" | "Duration"
    ) || kind.ends_with("::Duration")
}

/// The expression as a number; a duration in milliseconds.
pub(super) fn number(expression: &str, known: &BTreeMap<String, i128>) -> Option<i128> {
    let mut reader = Reader { rest: expression.chars().peekable(), known };
    let value = reader.sum()?;
    reader.skip_spaces();
    reader.rest.peek().is_none().then_some(value)
}

/// As it stands in the page.
pub(super) fn shown(name: &str, kind: &str, expression: &str, number: Option<i128>) -> String {
    let Some(number) = number else { return format!("`{expression}`") };
    let has = |part: &str| name.split('_').any(|word| word == part);
    if kind.ends_with("Duration") {
        return span(number);
    }
    let plain = grouped(number);
    let read = match () {
        () if has("BYTES") => bytes(number),
        () if has("MS") => Some(span(number)),
        () if has("SECS") => Some(span(number * 1000)),
        () if has("MICROS") => (number % 1000 == 0).then(|| span(number / 1000)),
        () => None,
    };
    match read {
        Some(read) if read != plain => format!("{plain} ({read})"),
        _ => plain,
    }
}

fn bytes(number: i128) -> Option<String> {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let (shift, unit) =
        units.into_iter().find(|(shift, _)| number >= 1 << shift && number % (1 << shift) == 0)?;
    Some(format!("{} {unit}", number >> shift))
}

/// Milliseconds in the largest unit that needs no fraction.
fn span(ms: i128) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    match units.into_iter().find(|(size, _)| ms >= *size && ms % size == 0) {
        Some((size, unit)) => format!("{} {unit}", grouped(ms / size)),
        None => format!("{} ms", grouped(ms)),
    }
}

fn grouped(number: i128) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if number < 0 { format!("-{out}") } else { out }
}

/// Reads sums of products of shifts of names and numbers. Shifts bind less than sums in Rust; the
/// order here is the language's own.
struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    known: &'a BTreeMap<String, i128>,
}

impl Reader<'_> {
    fn skip_spaces(&mut self) {
        while self.rest.next_if(|c| c.is_whitespace()).is_some() {}
    }

    fn takes(&mut self, wanted: char) -> bool {
        self.skip_spaces();
        self.rest.next_if_eq(&wanted).is_some()
    }

    /// The loosest operator: `<<`.
    fn sum(&mut self) -> Option<i128> {
        let mut value = self.terms()?;
        while self.takes('<') {
            if !self.takes('<') {
                return None;
            }
            let by = u32::try_from(self.terms()?).ok()?;
            value = value.checked_shl(by)?;
        }
        Some(value)
    }

    fn terms(&mut self) -> Option<i128> {
        let mut value = self.product()?;
        loop {
            if self.takes('+') {
                value = value.checked_add(self.product()?)?;
            } else if self.takes('-') {
                value = value.checked_sub(self.product()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<i128> {
        let mut value = self.atom()?;
        loop {
            if self.takes('*') {
                value = value.checked_mul(self.atom()?)?;
            } else if self.takes('/') {
                value = value.checked_div(self.atom()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn atom(&mut self) -> Option<i128> {
        if self.takes('(') {
            let value = self.sum()?;
            return self.takes(')').then_some(value);
        }
        let word = self.word();
        let value = if word.starts_with(|c: char| c.is_ascii_digit()) {
            let digits: String = word.chars().filter(|c| *c != '_').collect();
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let (digits, kind) = digits.split_at(end);
            (kind.is_empty() || is_quantity(kind)).then(|| digits.parse().ok())??
        } else if let Some(unit) = word.split("Duration::from_").nth(1) {
            let factor = match unit {
                "secs" => 1000,
                "millis" => 1,
                _ => return None,
            };
            let value = self.takes('(').then(|| self.sum())??;
            self.takes(')').then_some(value.checked_mul(factor)?)?
        } else {
            *self.known.get(word.rsplit("::").next()?)?
        };
        self.skip_spaces();
        // A cast changes nothing about a bound.
        let mut ahead = self.rest.clone();
        if ahead.next() == Some('a') && ahead.next() == Some('s') && ahead.next() == Some(' ') {
            self.rest = ahead;
            is_quantity(&self.word()).then_some(())?;
        }
        Some(value)
    }

    fn word(&mut self) -> String {
        self.skip_spaces();
        let mut word = String::new();
        let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
        while let Some(c) = self.rest.next_if(is_part) {
            word.push(c);
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::{number, shown};
    use std::collections::BTreeMap;

    #[test]
    fn the_forms_in_which_bounds_are_written_are_read() {
        let known = BTreeMap::from([("OTHER".to_owned(), 7)]);
        let cases = [
            ("1 << 20", Some(1 << 20)),
            ("1 << 2 + 3", Some(32)),
            ("7 * 24 * 3600 * 1000", Some(604_800_000)),
            ("(256 << 10) / 2", Some(131_072)),
            ("10_000", Some(10_000)),
            ("3u64", Some(3)),
            ("limits::OTHER - 1", Some(6)),
            ("OTHER as usize + 1", Some(8)),
            ("Duration::from_secs(30)", Some(30_000)),
            ("std::time::Duration::from_millis(2 * 250)", Some(500)),
            ("0.7", None),
            ("size_of::<u64>()", None),
            ("UNKNOWN", None),
        ];
        for (expression, value) in cases {
            assert_eq!(number(expression, &known), value, "{expression}");
        }
    }

    #[test]
    fn a_value_is_shown_as_a_person_reads_it() {
        let show = |name, kind, number| shown(name, kind, "0.7", number);
        assert_eq!(show("BODY_BYTES_MAX", "usize", Some(2 << 20)), "2,097,152 (2 MiB)");
        assert_eq!(show("KEY_BYTES_MAX", "usize", Some(512)), "512");
        assert_eq!(show("LEASE_MS_MAX", "u32", Some(86_400_000)), "86,400,000 (1 d)");
        assert_eq!(show("BEAT_SECS", "u64", Some(15)), "15 (15 s)");
        assert_eq!(show("SLEEP_MAX", "Duration", Some(1_500)), "1,500 ms");
        assert_eq!(show("LABELS_MAX", "usize", Some(32)), "32");
        assert_eq!(show("LOAD_MAX", "f64", None), "`0.7`");
    }
}
