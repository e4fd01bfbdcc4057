//! Identifiers: 128 bits, time ordered, written as a prefix and 26 letters of Crockford base32.
//!
//! The kernel never invents an id: the engine hands fresh ones in through [`crate::Facts`].

use crate::time::Timestamp;
use std::fmt;
use std::str::FromStr;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TEXT_LEN: usize = 26;
const TRACE_PREFIX: &str = "trace_";

/// Text that is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadId {
    /// The prefix that was expected, `job` for example.
    pub expected: &'static str,
}

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected an id of the form {}_ followed by 26 letters and digits", self.expected)
    }
}

impl std::error::Error for BadId {}

/// Writes the 26 characters of `bits`.
fn encode(bits: u128) -> [u8; TEXT_LEN] {
    let mut text = [b'0'; TEXT_LEN];
    let mut rest = bits;
    for place in text.iter_mut().rev() {
        *place = ALPHABET[(rest & 31) as usize];
        rest >>= 5;
    }
    text
}

/// Reads 26 characters; `None` for a foreign character, a wrong length or more than 128 bits.
fn decode(text: &[u8]) -> Option<u128> {
    if text.len() != TEXT_LEN || text[0] > b'7' {
        return None;
    }
    text.iter().try_fold(0u128, |bits, &letter| {
        let digit = match letter {
            b'0'..=b'9' => letter - b'0',
            b'a'..=b'h' => letter - b'a' + 10,
            b'j' | b'k' => letter - b'j' + 18,
            b'm' | b'n' => letter - b'm' + 20,
            b'p'..=b't' => letter - b'p' + 22,
            b'v'..=b'z' => letter - b'v' + 27,
            _ => return None,
        };
        Some((bits << 5) | u128::from(digit))
    })
}

/// Writes an id of that prefix.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, prefix: &str, bits: u128) -> fmt::Result {
    let text = encode(bits);
    f.write_str(prefix)?;
    f.write_str("_")?;
    f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
}

/// Reads an id of that prefix.
pub(crate) fn read(prefix: &str, text: &str) -> Option<u128> {
    decode(text.strip_prefix(prefix)?.strip_prefix('_')?.as_bytes())
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u128);

        impl $name {
            /// What every id of this kind starts with, without the underscore.
            pub const PREFIX: &'static str = $prefix;

            /// Appends the text form to `out`; cheaper than `to_string` on hot paths.
            pub fn push_to(self, out: &mut Vec<u8>) {
                out.extend_from_slice(concat!($prefix, "_").as_bytes());
                out.extend_from_slice(&encode(self.0));
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write(f, $prefix, self.0)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                read($prefix, text).map(Self).ok_or(BadId { expected: $prefix })
            }
        }
    };
}

id!(
    /// Names one job for good; retries never change it.
    JobId,
    "job"
);
id!(
    /// Names a dead-letter item. It shares its 128 bits with the job it came from, so that the job
    /// can be found from the item and back without an index.
    DlqId,
    "dlq"
);
id!(
    /// Names an access token; the secret is never part of it.
    TokenId,
    "tok"
);

impl JobId {
    /// The least id that is given at `at` or later: ids begin with the milliseconds since 1970.
    pub fn first_at(at: Timestamp) -> JobId {
        let millis = u128::try_from(at.as_millis()).unwrap_or(0);
        JobId(millis.min((1 << 48) - 1) << 80)
    }

    /// The trace of a job whose caller named none: `trace_` and the letters of its id.
    pub fn trace_id(self) -> String {
        let mut text = Vec::with_capacity(TRACE_PREFIX.len() + TEXT_LEN);
        self.push_trace_to(&mut text);
        String::from_utf8(text).expect("letters and digits")
    }

    /// Appends the same to `out`; cheaper on hot paths.
    pub fn push_trace_to(self, out: &mut Vec<u8>) {
        out.extend_from_slice(TRACE_PREFIX.as_bytes());
        out.extend_from_slice(&encode(self.0));
    }

    /// The job that would have this trace if its caller named none.
    pub fn of_trace(trace: &str) -> Option<JobId> {
        decode(trace.strip_prefix(TRACE_PREFIX)?.as_bytes()).map(JobId)
    }

    /// The id of the dead-letter item this job has or would have.
    pub fn dlq(self) -> DlqId {
        DlqId(self.0)
    }
}

impl DlqId {
    /// The job this item came from.
    pub fn job(self) -> JobId {
        JobId(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        for bits in [0, 1, 31, 32, u128::MAX, 0x0192_3b5c_7d00_7abc_8def_0123_4567_89ab] {
            let id = JobId(bits);
            assert_eq!(id.to_string().parse::<JobId>(), Ok(id));
            let mut pushed = Vec::new();
            id.push_to(&mut pushed);
            assert_eq!(pushed, id.to_string().into_bytes());
        }
    }

    #[test]
    fn a_trace_leads_back_to_its_job() {
        let id = JobId(0x0192_3b5c_7d00_7abc_8def_0123_4567_89ab);
        assert_eq!(id.trace_id(), id.to_string().replace("job_", "trace_"));
        assert_eq!(JobId::of_trace(&id.trace_id()), Some(id));
        assert_eq!(JobId::of_trace(&id.to_string()), None);
    }

    #[test]
    fn foreign_text_is_refused() {
        for text in ["", "job_", "dlq_00000000000000000000000000", "job_80000000000000000000000000"]
        {
            assert!(text.parse::<JobId>().is_err(), "{text}");
        }
        assert!("job_0000000000000000000000000u".parse::<JobId>().is_err());
    }

    #[test]
    fn text_order_is_id_order() {
        assert!(JobId(5).to_string() < JobId(6 << 90).to_string());
    }
}
