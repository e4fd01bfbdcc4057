//! Instants as text, fast: a pull of a thousand jobs writes two thousand of them.

use jiff::tz::Offset;
use mainspring_kernel::Timestamp;

/// The first instant of the year 0.
const FIRST: i64 = -62_167_219_200_000_000;

/// Appends `at` as `2026-01-31T08:00:00.000000Z`. Instants before the year 0 and after the last
/// second that jiff knows, at the end of 9999, stop there. The calendar is jiff's; the text is not:
/// a format that is made for any instant takes several times as long.
pub(crate) fn push(at: Timestamp, out: &mut Vec<u8>) {
    let micros = at.0.clamp(FIRST, jiff::Timestamp::MAX.as_second() * 1_000_000);
    let at = jiff::Timestamp::from_microsecond(micros).unwrap_or_default();
    let at = Offset::UTC.to_datetime(at);
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    digits(&mut text[0..4], at.year());
    digits(&mut text[5..7], at.month());
    digits(&mut text[8..10], at.day());
    digits(&mut text[11..13], at.hour());
    digits(&mut text[14..16], at.minute());
    digits(&mut text[17..19], at.second());
    digits(&mut text[20..26], at.subsec_nanosecond() / 1_000);
    out.extend_from_slice(&text);
}

fn digits(place: &mut [u8], number: impl Into<i32>) {
    let mut rest = number.into();
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(micros: i64) -> String {
        let mut out = Vec::new();
        push(Timestamp(micros), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn agrees_with_jiff_over_the_whole_scale() {
        let mut micros = FIRST;
        while micros < 253_402_207_200_000_000 {
            let expected = format!("{:.6}", jiff::Timestamp::from_microsecond(micros).unwrap());
            assert_eq!(text(micros), expected);
            // About three weeks and an odd number of microseconds, so that every field varies.
            micros += 1_800_000_123_457 * 7;
        }
    }

    #[test]
    fn edges_are_right() {
        assert_eq!(text(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(text(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(text(1_709_164_800_000_000), "2024-02-29T00:00:00.000000Z");
        assert_eq!(text(i64::MIN), "0000-01-01T00:00:00.000000Z");
        assert_eq!(text(i64::MAX), "9999-12-30T22:00:00.000000Z");
    }
}
