//! From when and until when a certificate is valid. The library that encrypts does not tell, and a
//! parser of all that a certificate can hold is much for two dates: this walks the few fields
//! before them.

use mainspring_kernel::Timestamp;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The first and the last moment of a certificate's validity.
pub(super) fn span(der: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let mut whole = Reader(der);
    let mut certificate = Reader(whole.next(SEQUENCE)?);
    let mut signed = Reader(certificate.next(SEQUENCE)?);
    if signed.0.first() == Some(&VERSION) {
        signed.any()?;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        signed.any()?;
    }
    let mut validity = Reader(signed.next(SEQUENCE)?);
    let mut next = || {
        let (tag, text) = validity.any()?;
        instant(tag, std::str::from_utf8(text).ok()?)
    };
    Some((next()?, next()?))
}

/// What is left of a run of values in DER.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], mut rest) = self.0.split_first_chunk::<2>()?;
        let mut length = usize::from(first);
        if first >= 0x80 {
            let count = usize::from(first & 0x7f);
            if count == 0 || count > 4 {
                return None;
            }
            let (bytes, after) = rest.split_at_checked(count)?;
            length = bytes.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
            rest = after;
        }
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }

    fn next(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.any().filter(|(tag, _)| *tag == wanted).map(|(_, value)| value)
    }
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`: what certificates may use.
fn instant(tag: u8, text: &str) -> Option<Timestamp> {
    let digits = text.strip_suffix('Z').filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
    let (year, rest) = match (tag, digits.len()) {
        (UTC_TIME, 12) => {
            let year: i16 = digits[..2].parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, &digits[2..])
        }
        (GENERALIZED_TIME, 14) => (digits[..4].parse().ok()?, &digits[4..]),
        _ => return None,
    };
    let part = |at: usize| rest[at..at + 2].parse::<i8>().ok();
    let (month, day, hour) = (part(0)?, part(2)?, part(4)?);
    let time = jiff::civil::DateTime::new(year, month, day, hour, part(6)?, part(8)?, 0).ok()?;
    let zoned = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(Timestamp(zoned.timestamp().as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_both_forms_and_nothing_else_is() {
        let at = |tag, text| instant(tag, text).map(|time| time.0 / 1_000_000);
        assert_eq!(at(UTC_TIME, "700101000001Z"), Some(1));
        assert_eq!(at(UTC_TIME, "491231235959Z"), at(GENERALIZED_TIME, "20491231235959Z"));
        assert_eq!(at(UTC_TIME, "500101000000Z"), at(GENERALIZED_TIME, "19500101000000Z"));
        for (tag, text) in [
            (UTC_TIME, "7001010000Z"),
            (UTC_TIME, "700101000001"),
            (UTC_TIME, "701301000001Z"),
            (GENERALIZED_TIME, "700101000001Z"),
            (GENERALIZED_TIME, "2070010100000xZ"),
            (0x02, "700101000001Z"),
        ] {
            assert_eq!(at(tag, text), None, "{text}");
        }
    }

    #[test]
    fn no_bytes_make_it_stumble() {
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 0x80],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x30, 0x85, 1, 1, 1, 1, 1],
            &[0x30, 0x02, 0x30, 0x05],
        ] {
            assert_eq!(span(bytes), None);
        }
    }
}
