//! Writing JSON by hand into one buffer: the answers of the hot paths are never a tree first.

use crate::instant;
use mainspring_kernel::job::LeaseToken;
use mainspring_kernel::{DlqId, JobId, Timestamp};

/// A JSON text in the making.
#[derive(Debug, Default)]
pub(crate) struct Out(pub(crate) Vec<u8>);

impl Out {
    /// A buffer with room for `bytes`.
    pub(crate) fn sized(bytes: usize) -> Self {
        Out(Vec::with_capacity(bytes))
    }

    /// Text as it is.
    #[inline]
    pub(crate) fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// A JSON string.
    pub(crate) fn string(&mut self, text: &str) {
        self.0.push(b'"');
        self.escaped(text);
        self.0.push(b'"');
    }

    /// The inside of a JSON string.
    pub(crate) fn escaped(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        loop {
            let (plain, others) = rest.split_at(plain(rest));
            self.0.extend_from_slice(plain);
            let Some((special, after)) = others.split_first() else { return };
            rest = after;
            match *special {
                b'"' => self.raw("\\\""),
                b'\\' => self.raw("\\\\"),
                b'\n' => self.raw("\\n"),
                b'\r' => self.raw("\\r"),
                b'\t' => self.raw("\\t"),
                other => {
                    self.raw("\\u00");
                    self.hex(other);
                }
            }
        }
    }

    /// Text that was written here alone.
    pub(crate) fn into_string(self) -> String {
        String::from_utf8(self.0).expect("only text is written")
    }

    /// A byte as two digits.
    pub(crate) fn hex(&mut self, byte: u8) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        self.0.push(HEX[usize::from(byte >> 4)]);
        self.0.push(HEX[usize::from(byte & 15)]);
    }

    /// A number.
    pub(crate) fn number(&mut self, number: u64) {
        let mut text = [0; 20];
        let mut start = text.len();
        let mut rest = number;
        loop {
            start -= 1;
            text[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.0.extend_from_slice(&text[start..]);
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, flag: bool) {
        self.raw(if flag { "true" } else { "false" });
    }

    /// A JSON string or `null`.
    pub(crate) fn maybe_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None => self.raw("null"),
        }
    }

    /// An instant as a JSON string.
    pub(crate) fn time(&mut self, at: Timestamp) {
        self.0.push(b'"');
        instant::push(at, &mut self.0);
        self.0.push(b'"');
    }

    /// An instant or `null`.
    pub(crate) fn maybe_time(&mut self, at: Option<Timestamp>) {
        match at {
            Some(at) => self.time(at),
            None => self.raw("null"),
        }
    }

    /// A job id as a JSON string.
    pub(crate) fn job_id(&mut self, id: JobId) {
        self.0.push(b'"');
        id.push_to(&mut self.0);
        self.0.push(b'"');
    }

    /// A DLQ id as a JSON string.
    pub(crate) fn dlq_id(&mut self, id: DlqId) {
        self.0.push(b'"');
        id.push_to(&mut self.0);
        self.0.push(b'"');
    }

    /// A job's trace id as a JSON string: its own, or the one derived from the id.
    pub(crate) fn trace(&mut self, trace: Option<&str>, job: JobId) {
        self.0.push(b'"');
        match trace {
            Some(trace) => self.escaped(trace),
            None => job.push_trace_to(&mut self.0),
        }
        self.0.push(b'"');
    }

    /// A lease token as a JSON string.
    pub(crate) fn lease_token(&mut self, token: LeaseToken) {
        self.0.push(b'"');
        self.number(u64::from(token.fence));
        self.0.push(b'.');
        for byte in token.secret.to_be_bytes() {
            self.hex(byte);
        }
        self.0.push(b'"');
    }

    /// Labels as a JSON object.
    pub(crate) fn labels(&mut self, labels: &[(Box<str>, Box<str>)]) {
        self.0.push(b'{');
        for (index, (name, value)) in labels.iter().enumerate() {
            if index > 0 {
                self.0.push(b',');
            }
            self.string(name);
            self.0.push(b':');
            self.string(value);
        }
        self.0.push(b'}');
    }

    /// Anything that knows how to be JSON; for answers that are not on a hot path.
    pub(crate) fn serde(&mut self, value: &impl serde::Serialize) {
        serde_json::to_writer(&mut self.0, value).expect("our own shapes are JSON");
    }
}

/// How many bytes come before the next one that a JSON string has to escape. A block at a time,
/// which the compiler compares all at once: a payload of 1 MB would cost its neighbours 1 ms.
fn plain(bytes: &[u8]) -> usize {
    let is_special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    let (blocks, _) = bytes.as_chunks::<32>();
    let has_special =
        |block: &[u8; 32]| block.iter().fold(false, |it, &byte| it | is_special(byte));
    let whole = 32 * blocks.iter().take_while(|block| !has_special(block)).count();
    let rest = &bytes[whole..];
    whole + rest.iter().position(|&byte| is_special(byte)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_escape_as_serde_does() {
        for text in ["", "plain", "a\"b\\c", "\u{1}\n\r\t\u{1f}x", "é😀", "end\""] {
            let mut out = Out::default();
            out.string(text);
            let back: String = serde_json::from_slice(&out.0).unwrap();
            assert_eq!(back, text);
        }
    }

    /// Wherever in a block, or behind the last one, something has to be escaped.
    #[test]
    fn every_place_of_a_long_string_is_looked_at() {
        for (special, escaped) in [('"', "\\\""), ('\\', "\\\\"), ('\u{1f}', "\\u001f"), (' ', " ")]
        {
            for at in 0..100 {
                let (before, after) = ("x".repeat(at), "é".repeat(50));
                let mut out = Out::default();
                out.string(&format!("{before}{special}{after}"));
                let expected = format!("\"{before}{escaped}{after}\"");
                assert_eq!(String::from_utf8(out.0).unwrap(), expected);
            }
        }
    }

    #[test]
    fn numbers_and_tokens_read_back() {
        for number in [0, 7, 10, 999, u64::MAX] {
            let mut out = Out::default();
            out.number(number);
            assert_eq!(String::from_utf8(out.0).unwrap(), number.to_string());
        }
        let token = LeaseToken { fence: 12, secret: 0xab };
        let mut out = Out::default();
        out.lease_token(token);
        assert_eq!(String::from_utf8(out.0).unwrap(), format!("\"{token}\""));
    }

    #[test]
    fn a_derived_trace_is_the_kernels() {
        let mut out = Out::default();
        out.trace(None, JobId(77));
        assert_eq!(String::from_utf8(out.0).unwrap(), format!("\"{}\"", JobId(77).trace_id()));
    }
}
