//! Keeps secrets out of the log, whoever writes them there: access tokens, lease and resume tokens,
//! signing secrets, passwords in URLs, and whatever stands behind a name that sounds like one. A
//! line that has nothing of the kind goes out as it is.

use std::io::{self, Write};

/// What a secret is replaced with.
const HIDDEN: &str = "***";
/// What secrets of ours begin with; what follows is hidden.
const BEGINNINGS: [&str; 3] = ["ms_", "whsec_", "rsm_"];
/// Names behind which a secret stands.
const NAMES: [&str; 9] = [
    "authorization",
    "bearer",
    "token",
    "lease_token",
    "secret",
    "password",
    "passwd",
    "api_key",
    "apikey",
];
/// Shorter than this no secret of ours is.
const SHORTEST: usize = 20;

/// Passes lines on without their secrets.
pub(super) struct Redacted<W>(pub(super) W);

impl<W: Write> Write for Redacted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(redacted(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '+' | '/' | '=' | '~')
}

/// A text without the secrets in it.
fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // The word before, in lower case, if nothing but signs stood since.
    let mut before = String::new();
    while let Some(first) = rest.chars().next() {
        if !is_letter(first) {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            if first == ',' || first == '}' || first == '\n' {
                before.clear();
            }
            continue;
        }
        let end = rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let is_named = NAMES.contains(&&*before) && word.len() >= SHORTEST;
        // A password between the name and the place of a URL.
        let is_password = out.ends_with(':') && behind.starts_with('@');
        // Behind the name of a thing, as in `token=ms_...`.
        let core = word.trim_end_matches('=');
        let value = core.rsplit_once('=').map_or(core, |(_, value)| value);
        let is_ours = BEGINNINGS.iter().any(|it| value.starts_with(it)) && value.len() >= SHORTEST;
        let name = core.split_once('=').map(|(name, _)| name.to_ascii_lowercase());
        let is_assigned =
            name.as_deref().is_some_and(|name| NAMES.contains(&name)) && value.len() >= 6;
        match () {
            () if is_password || is_named => out.push_str(HIDDEN),
            () if is_ours || is_assigned => {
                out.push_str(&core[..core.len() - value.len()]);
                out.push_str(HIDDEN);
            }
            () => out.push_str(word),
        }
        before = word.trim_end_matches('=').to_ascii_lowercase();
        rest = behind;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_get_into_the_log_and_everything_else_does() {
        let token = format!("ms_{}_{}", "0".repeat(26), "a".repeat(64));
        let lease = format!("3.{}", "b".repeat(32));
        for (line, shown) in [
            (format!("who: {token}, and on"), "who: ***, and on".to_owned()),
            (format!("Authorization: Bearer {token}"), "Authorization: Bearer ***".to_owned()),
            (format!("{{\"lease_token\":\"{lease}\"}}"), "{\"lease_token\":\"***\"}".to_owned()),
            (format!("lease_token={lease} ok"), "lease_token=*** ok".to_owned()),
            ("whsec_AAAAAAAAAAAAAAAAAAAAAAAA==".to_owned(), "***".to_owned()),
            (
                "postgres://joe:hunter2@db.example/x".to_owned(),
                "postgres://joe:***@db.example/x".to_owned(),
            ),
            ("password=hunter22".to_owned(), "password=***".to_owned()),
        ] {
            assert_eq!(redacted(&line), shown, "{line}");
        }
        for plain in [
            "",
            "job job_01hzz type=mill queue=default took 3ms",
            "ms_ is no token, nor is a secret handshake",
            "{\"token_id\":\"tok_0000000000000000000000000z\",\"n\":1}",
            "token expired for user ann",
            "http://127.0.0.1:7070/docs 任务",
        ] {
            assert_eq!(redacted(plain), plain);
        }
    }

    #[test]
    fn what_is_no_text_goes_out_as_it_is() {
        let mut out = Vec::new();
        Redacted(&mut out).write_all(&[0xff, b'a', 0xfe]).unwrap();
        assert_eq!(out, [0xff, b'a', 0xfe]);
    }
}
