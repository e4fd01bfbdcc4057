//! Instants as text, fast: a pull of a thousand jobs writes two thousand of them.

use mainspring_kernel::Timestamp;

/// Appends `at` as `2026-01-31T08:00:00.000000Z`. Instants beyond the years 0 to 9999 stop there.
pub(crate) fn push(at: Timestamp, out: &mut Vec<u8>) {
    // Year 0 and the last microsecond of year 9999, as seconds since 1970.
    let micros = at.0.clamp(-62_167_219_200_000_000, 253_402_300_799_999_999);
    let (seconds, micro) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    digits(&mut text[0..4], year);
    digits(&mut text[5..7], month);
    digits(&mut text[8..10], day);
    digits(&mut text[11..13], second / 3600);
    digits(&mut text[14..16], second / 60 % 60);
    digits(&mut text[17..19], second % 60);
    digits(&mut text[20..26], micro);
    out.extend_from_slice(&text);
}

fn digits(place: &mut [u8], number: i64) {
    let mut rest = number;
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// Year, month and day of a day counted from 1970, by Howard Hinnant's `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
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
        let mut micros = -62_167_219_200_000_000_i64;
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
        assert_eq!(text(i64::MAX), "9999-12-31T23:59:59.999999Z");
    }
}
