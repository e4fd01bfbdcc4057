//! An instant on the wire: RFC 3339 in UTC with microseconds, `2026-01-31T08:00:00.000000Z`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// Microseconds since 1970, written as RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
pub struct Time(pub i64);

/// Text that is not an RFC 3339 instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadTime;

impl fmt::Display for BadTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be an RFC 3339 instant such as 2026-01-31T08:00:00Z")
    }
}

impl std::error::Error for BadTime {}

impl Time {
    /// The instant as `jiff` knows it; instants beyond its scale stop at its ends.
    pub fn to_jiff(self) -> jiff::Timestamp {
        let end = if self.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        jiff::Timestamp::from_microsecond(self.0).unwrap_or(end)
    }
}

impl From<jiff::Timestamp> for Time {
    fn from(instant: jiff::Timestamp) -> Self {
        Time(instant.as_microsecond())
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.to_jiff())
    }
}

impl FromStr for Time {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        // jiff reads more than RFC 3339 allows: a space for the T, a zone in brackets.
        let bytes = text.as_bytes();
        let has_t = bytes.get(10).is_some_and(|byte| matches!(byte, b'T' | b't'));
        if !has_t || text.len() > 40 || text.ends_with(']') {
            return Err(BadTime);
        }
        let instant: jiff::Timestamp = text.parse().map_err(|_| BadTime)?;
        Ok(Time(instant.as_microsecond()))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl de::Visitor<'_> for Reader {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 instant")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_round_trip_with_microseconds() {
        let time: Time = "2026-01-31T08:00:00.000001+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-01-31T07:00:00.000001Z");
        let json = serde_json::to_string(&time).unwrap();
        assert_eq!(serde_json::from_str::<Time>(&json).unwrap(), time);
        assert_eq!(Time(0).to_string(), "1970-01-01T00:00:00.000000Z");
    }

    #[test]
    fn text_that_is_no_instant_is_refused() {
        for text in ["", "tomorrow", "2026-01-31", "2026-01-31T08:00:00", "2026-01-31 08:00:00Z"] {
            assert_eq!(text.parse::<Time>(), Err(BadTime), "{text}");
        }
    }
}
