//! A job that has ended as spans of a trace, in the JSON of OTLP: one for all of it, and below it
//! one for its submission, one for each time it waited to be picked up, and one for each attempt.
//! Ids follow from the job, so the same job told twice is the same spans.

use mainspring_kernel::evolve::Transition;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::{Job, StateName, Timestamp};
use mainspring_store::JobWithHistory;
use serde::Serialize;
use serde_json::{Value, json};

/// Everything that is sent at once.
pub(super) fn body(service: &str, spans: &[Span]) -> Vec<u8> {
    let name = json!([{ "key": "service.name", "value": { "stringValue": service } }]);
    let scope = json!({ "name": "mainspring", "version": env!("CARGO_PKG_VERSION") });
    let of_scope = json!([{ "scope": scope, "spans": spans }]);
    let all = json!([{ "resource": { "attributes": name }, "scopeSpans": of_scope }]);
    json!({ "resourceSpans": all }).to_string().into_bytes()
}

/// One span.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    parent_span_id: String,
    name: String,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Value>,
    status: Status,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

/// Spans of our own work, and of what a worker does for us.
const INTERNAL: u8 = 1;
const CONSUMER: u8 = 5;
/// The status of what went wrong.
const ERROR: u8 = 2;

/// Where a job is in somebody's trace.
struct Place {
    trace_id: String,
    parent: String,
}

impl Place {
    /// The place of a job; none if whoever submitted it does not want it told.
    fn of(job: &Job) -> Option<Place> {
        match job.traceparent() {
            None => {
                let trace = digest(&[b"trace", job.trace_id().as_bytes()]).0;
                Some(Place { trace_id: hex(&trace), parent: String::new() })
            }
            Some(text) => {
                let mut parts = text.split('-').skip(1);
                let (trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?);
                let is_sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
                is_sampled.then(|| Place { trace_id: trace.to_owned(), parent: parent.to_owned() })
            }
        }
    }
}

/// The spans of a job that has ended.
pub(super) fn spans(found: &JobWithHistory) -> Vec<Span> {
    let JobWithHistory { job, history } = found;
    let (Some(place), Some(first), Some(last)) = (Place::of(job), history.first(), history.last())
    else {
        return Vec::new();
    };
    let root_id = span_id(job, 0);
    let span = |seq: u32, name: &str, (start, end): (Timestamp, Timestamp)| Span {
        trace_id: place.trace_id.clone(),
        span_id: span_id(job, seq),
        parent_span_id: root_id.clone(),
        name: name.to_owned(),
        kind: INTERNAL,
        start_time_unix_nano: nanos(start),
        end_time_unix_nano: nanos(end.max(start)),
        attributes: Vec::new(),
        status: Status::default(),
    };
    let whole = (first.at, last.at);
    let root = Span {
        parent_span_id: place.parent.clone(),
        attributes: about(job),
        status: status(last),
        ..span(0, &format!("job {}", job.job_type), whole)
    };
    let mut spans = vec![root, span(1, "submit", (first.at, first.at))];
    let steps = history.iter().zip(history.iter().skip(1));
    for (before, step) in steps {
        match (before.to, step.to) {
            (_, StateName::Running) => {
                spans.push(span(2 * step.seq, "pickup", (before.at, step.at)));
            }
            (StateName::Running, _) => {
                let attempt = number("mainspring.attempt", before.attempt.into());
                let worker = text("mainspring.worker", &before.actor.to_string());
                spans.push(Span {
                    kind: CONSUMER,
                    attributes: vec![attempt, worker],
                    status: status(step),
                    ..span(2 * step.seq + 1, "run", (before.at, step.at))
                });
            }
            (_, _) => {}
        }
    }
    spans
}

fn about(job: &Job) -> Vec<Value> {
    vec![
        text("mainspring.job_id", &job.id.to_string()),
        text("mainspring.job_type", job.job_type.as_str()),
        text("mainspring.queue", job.queue.as_str()),
        text("mainspring.tenant_id", job.tenant.as_str()),
        text("mainspring.trace_id", &job.trace_id()),
        text("mainspring.status", job.state.name().as_str()),
        number("mainspring.retry_count", job.retry_count.into()),
    ]
}

/// How a step went; what failed says its code, and nothing that a worker wrote.
fn status(step: &Transition) -> Status {
    let is_bad = match step.to {
        StateName::Retrying | StateName::DlqPending | StateName::DlqRecorded => true,
        StateName::Failed => true,
        StateName::Queued | StateName::Running | StateName::Succeeded | StateName::Cancelled => {
            false
        }
    };
    let code = step.reason.as_ref().map_or("", |reason| &reason.code);
    match is_bad {
        true => Status { code: Some(ERROR), message: code.to_owned() },
        false => Status::default(),
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn nanos(at: Timestamp) -> String {
    (i128::from(at.0) * 1_000).max(0).to_string()
}

fn span_id(job: &Job, seq: u32) -> String {
    let bytes = digest(&[b"span", &job.id.0.to_be_bytes(), &seq.to_be_bytes()]).0;
    hex(&bytes[..8])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
