//! The words of failures that the executors share. Each has a page in `docs/errors`.

use mainspring_worker::{Failure, Json};
use serde::Deserialize;

/// The attempt could not be handed over: no program, no connection, nobody allowed.
pub(crate) const DISPATCH_FAILED: &str = "EXECUTOR_DISPATCH_FAILED";
/// Nobody registered a handler for the type.
pub(crate) const HANDLER_NOT_FOUND: &str = "TASK_HANDLER_NOT_FOUND";
/// The work itself failed, and did not say how. The contract `/jobs` calls it `EXECUTION_FAILED`.
pub(crate) const EXECUTION_FAILED: &str = "TASK_EXECUTION_FAILED";
/// More was answered than may be kept.
pub(crate) const OUTPUT_TOO_LARGE: &str = "OUTPUT_TOO_LARGE";

/// What failed work may say of itself, as JSON.
#[derive(Deserialize)]
struct Told {
    error_code: String,
    message: Option<String>,
    retryable: Option<bool>,
}

/// The failure that `output` tells of, if it does; what it leaves out is as in `otherwise`.
pub(crate) fn told_by(output: &[u8], otherwise: Failure) -> Failure {
    let Ok(told) = serde_json::from_slice::<Told>(output) else { return otherwise };
    if told.error_code.is_empty() {
        return otherwise;
    }
    let retryable = told.retryable.unwrap_or(otherwise.retryable);
    let message = told.message.unwrap_or(otherwise.message);
    let failure = match retryable {
        true => Failure::retryable(told.error_code, message),
        false => Failure::permanent(told.error_code, message),
    };
    match otherwise.retry_delay {
        Some(delay) => failure.after(delay),
        None => failure,
    }
}

/// JSON stays as it is, other text becomes a JSON string, nothing is no result.
pub(crate) fn result(output: &[u8]) -> Option<Json> {
    let text = String::from_utf8_lossy(output);
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return None;
    }
    if let Ok(json) = serde_json::from_str::<Json>(trimmed) {
        return Some(json);
    }
    let line = text.trim_end_matches(['\n', '\r']);
    serde_json::value::to_raw_value(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_becomes_the_result() {
        for (output, json) in [
            (&b"{\"a\": 1.0}\n"[..], Some("{\"a\": 1.0}")),
            (b"hello\nworld\n", Some("\"hello\\nworld\"")),
            (b"12345678901234567890123\n", Some("12345678901234567890123")),
            (b"{broken", Some("\"{broken\"")),
            (b"\n", None),
            (b"", None),
            (b"\xff", Some("\"\u{fffd}\"")),
        ] {
            let result = result(output);
            assert_eq!(result.as_ref().map(|result| result.get()), json, "{output:?}");
        }
    }

    #[test]
    fn what_failed_may_say_more() {
        let plain = || Failure::retryable(EXECUTION_FAILED, "exit 3");
        for silent in ["", "no JSON", "{}", "{\"error_code\":\"\"}", "{\"error_code\":7}", "[1]"] {
            assert_eq!(told_by(silent.as_bytes(), plain()), plain(), "{silent}");
        }
        let told = told_by(b"{\"error_code\":\"NO_PAPER\",\"rows\":7}", plain());
        assert_eq!(told, Failure::retryable("NO_PAPER", "exit 3"));
        let text = br#"{"error_code":"NO_PAPER","message":"tray 2","retryable":false}"#;
        assert_eq!(told_by(text, plain()), Failure::permanent("NO_PAPER", "tray 2"));
    }
}
