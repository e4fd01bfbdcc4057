//! Lengths of time as people write them: `7d`, `36h`, `15m`, `30s`, `250ms`. A number without a
//! unit is refused, because nobody can tell seconds from milliseconds by looking.

use std::time::Duration;

const UNITS: [(&str, u64); 6] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 604_800_000),
];

/// Reads one or several parts, largest first or not: `1h30m` is fine.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let told =
        || format!("{text:?} is not a length of time; write it like 7d, 36h, 15m, 30s, 250ms");
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(told());
    }
    let mut millis: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(told)?;
        let count: u64 = rest[..digits].parse().map_err(|_| told())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (_, factor) =
            UNITS.iter().find(|(unit, _)| *unit == &rest[..letters]).ok_or_else(told)?;
        rest = &rest[letters..];
        millis = count
            .checked_mul(*factor)
            .and_then(|part| millis.checked_add(part))
            .ok_or_else(|| format!("{text:?} is too long"))?;
    }
    Ok(Duration::from_millis(millis))
}

/// The shortest way to write it in one unit.
pub(crate) fn show(span: Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".into();
    }
    // Weeks are read but not written: seven days is how retention is usually said.
    let (unit, factor) = UNITS[..5]
        .iter()
        .rev()
        .find(|(_, factor)| millis.is_multiple_of(*factor))
        .unwrap_or(&UNITS[0]);
    format!("{}{unit}", millis / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_written() {
        for (text, millis) in [
            ("7d", 604_800_000),
            ("36h", 129_600_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("0s", 0),
            (" 30s ", 30_000),
            ("2w", 1_209_600_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "7", "d", "7 d", "-1s", "1.5h", "7days", "99999999999999999999s", "1dx"] {
            assert!(parse(bad).is_err(), "{bad:?} was taken");
        }
        assert!(parse("18446744073709551615w").is_err());
    }

    #[test]
    fn spans_are_shown_in_their_largest_whole_unit() {
        for text in ["7d", "36h", "90m", "30s", "250ms", "0s"] {
            assert_eq!(show(parse(text).unwrap()), text);
        }
    }
}
