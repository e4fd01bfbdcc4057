//! The requests of the benchmark as bytes, and the little that has to be read from answers.

use mainspring_http_client::Request;
use std::fmt::Write;
use std::net::SocketAddr;

/// The type of every job; the server under test registers it.
pub(crate) const JOB_TYPE: &str = "bench";
/// Bytes of every payload.
const PAYLOAD_BYTES: usize = 200;

/// Builds requests for one server.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    address: SocketAddr,
    token: String,
}

impl Requests {
    pub(crate) fn new(address: SocketAddr, token: &str) -> Self {
        Requests { address, token: token.to_owned() }
    }

    pub(crate) fn get(&self, path: &str) -> Vec<u8> {
        self.with_token("GET", path).bytes(self.address)
    }

    pub(crate) fn post(&self, path: &str, body: impl Into<Vec<u8>>) -> Vec<u8> {
        self.with_token("POST", path).json(body).bytes(self.address)
    }

    pub(crate) fn put(&self, path: &str, body: impl Into<Vec<u8>>) -> Vec<u8> {
        self.with_token("PUT", path).json(body).bytes(self.address)
    }

    fn with_token(&self, method: &str, path: &str) -> Request {
        let request = Request::new(method, path);
        if self.token.is_empty() { request } else { request.token(&self.token) }
    }

    pub(crate) fn submit(&self, stamp: u64) -> Vec<u8> {
        self.post("/api/v1/jobs", job(stamp, None))
    }

    /// A batch of `count` jobs, due in `delay_ms` if given.
    pub(crate) fn submit_batch(&self, count: usize, delay_ms: Option<u64>) -> Vec<u8> {
        let one = job(0, delay_ms);
        let mut body = String::with_capacity(count * (one.len() + 1) + 16);
        body.push_str("{\"jobs\":[");
        for index in 0..count {
            if index > 0 {
                body.push(',');
            }
            body.push_str(&one);
        }
        body.push_str("]}");
        self.post("/api/v1/jobs/batch", body)
    }

    pub(crate) fn pull(&self, worker: usize, limit: usize, wait_ms: u64) -> Vec<u8> {
        self.post("/api/v1/work/pull", pull(worker, limit, wait_ms))
    }

    /// Completes `jobs` and asks for more in the same request, if `more` says so.
    pub(crate) fn complete(&self, jobs: &[Leased], more: Option<(usize, usize, u64)>) -> Vec<u8> {
        let mut body = String::with_capacity(jobs.len() * 160 + 160);
        body.push_str("{\"items\":[");
        for (index, job) in jobs.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let Leased { id, token } = job;
            write!(body, "{comma}{{\"job_id\":\"{id}\",\"lease_token\":\"{token}\"}}")
                .expect("writing to a string cannot fail");
        }
        body.push(']');
        if let Some((worker, limit, wait_ms)) = more {
            body.push_str(",\"pull\":");
            body.push_str(&pull(worker, limit, wait_ms));
        }
        body.push('}');
        self.post("/api/v1/work/complete", body)
    }
}

fn pull(worker: usize, limit: usize, wait_ms: u64) -> String {
    format!(
        "{{\"worker_id\":\"bench-{worker}\",\"types\":[\"{JOB_TYPE}\"],\"limit\":{limit},\
         \"wait_ms\":{wait_ms},\"lease_ms\":600000}}"
    )
}

/// One job with a 200-byte payload that starts with a stamp.
fn job(stamp: u64, delay_ms: Option<u64>) -> String {
    let delay = delay_ms.map(|ms| format!(",\"delay_ms\":{ms}")).unwrap_or_default();
    format!("{{\"job_type\":\"{JOB_TYPE}\",\"payload\":{}{delay}}}", payload(stamp))
}

/// The payload: exactly 200 bytes of JSON.
pub(crate) fn payload(stamp: u64) -> String {
    // JSON numbers must not start with zeros, so the fixed width starts with a one.
    let start = format!("{{\"stamp\":1{stamp:019},\"text\":\"");
    let fill = PAYLOAD_BYTES.saturating_sub(start.len() + 2);
    format!("{start}{}\"}}", "x".repeat(fill))
}

/// A job that was pulled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leased {
    pub(crate) id: String,
    pub(crate) token: String,
}

/// The jobs in the answer to a pull.
pub(crate) fn leased(body: &[u8]) -> Vec<Leased> {
    let mut jobs = Vec::new();
    // Reported items have a job id too, but no lease token; the jobs come after `"jobs":`.
    let Some(start) = find(body, b"\"jobs\":") else { return jobs };
    let mut rest = &body[start..];
    while let Some((id, after)) = text_after(rest, b"\"job_id\":\"") {
        let Some((token, after)) = text_after(after, b"\"lease_token\":\"") else { break };
        jobs.push(Leased { id: id.to_owned(), token: token.to_owned() });
        rest = after;
    }
    jobs
}

/// The stamps in the answer to a pull.
pub(crate) fn stamps(body: &[u8]) -> Vec<u64> {
    let mut stamps = Vec::new();
    let mut rest = body;
    while let Some(at) = find(rest, b"\"stamp\":1") {
        let digits = &rest[at + 9..];
        let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        let text = std::str::from_utf8(&digits[..end]).unwrap_or_default();
        stamps.extend(text.parse::<u64>());
        rest = &digits[end..];
    }
    stamps
}

/// The text up to the next quote after `name`, and what follows.
pub(crate) fn text_after<'a>(body: &'a [u8], name: &[u8]) -> Option<(&'a str, &'a [u8])> {
    let start = find(body, name)? + name.len();
    let rest = &body[start..];
    let end = rest.iter().position(|byte| *byte == b'"')?;
    Some((std::str::from_utf8(&rest[..end]).ok()?, &rest[end..]))
}

/// A number in a JSON answer.
pub(crate) fn number(body: &[u8], name: &str) -> Option<u64> {
    let name = format!("\"{name}\":");
    let start = find(body, name.as_bytes())? + name.len();
    let digits = body[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&body[start..start + digits]).ok()?.parse().ok()
}

/// Where `wanted` starts in `text`.
pub(crate) fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut at = 0;
    while let Some(step) = text[at..].iter().position(|byte| *byte == first) {
        at += step;
        if text[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_where_they_start() {
        assert_eq!(find(b"aab\r\n\r\n", b"\r\n\r\n"), Some(3));
        assert_eq!(find(b"aaab", b"aab"), Some(1));
        assert_eq!(find(b"", b"x"), None);
    }

    #[test]
    fn payloads_have_two_hundred_bytes_of_json() {
        for stamp in [0, 1, 12_345_678_901] {
            let payload = payload(stamp);
            assert_eq!(payload.len(), PAYLOAD_BYTES);
            let json: serde_json::Value = serde_json::from_str(&payload).unwrap();
            assert!(json["stamp"].is_u64());
            assert_eq!(stamps(payload.as_bytes()), [stamp]);
        }
    }

    #[test]
    fn requests_hold_valid_json() {
        let requests = Requests::new(([127, 0, 0, 1], 1).into(), "t");
        let job = Leased { id: "a".into(), token: "b".into() };
        for request in [
            requests.submit(7),
            requests.submit_batch(3, Some(5)),
            requests.pull(1, 2, 3),
            requests.complete(&[job.clone(), job], Some((1, 2, 3))),
        ] {
            let text = String::from_utf8(request).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("content-length: {}", body.len())));
            serde_json::from_str::<serde_json::Value>(body).unwrap();
        }
    }

    #[test]
    fn leases_are_found_after_reported_items() {
        let body = br#"{"data":{"items":[{"job_id":"x","status":"succeeded"}],
            "jobs":[{"job_id":"a","lease_token":"1"},{"job_id":"b","lease_token":"2"}]}}"#;
        let found = leased(body);
        assert_eq!(found[0], Leased { id: "a".into(), token: "1".into() });
        assert_eq!(found[1], Leased { id: "b".into(), token: "2".into() });
        assert!(leased(br#"{"data":{"items":[{"job_id":"x"}]}}"#).is_empty());
        assert_eq!(number(br#"{"jobs":{"queued":12}}"#, "queued"), Some(12));
    }
}
