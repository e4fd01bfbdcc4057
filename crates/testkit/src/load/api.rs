//! Every call of the native API that a run makes, each written down with its outcome.

use super::record::Recorder;
use super::wire::{Question, Reached, Wire};
use super::wish::{Pull, Report, Wish};
use crate::history::{Answer, Call, Grant, Outcome, PullScope, Seen};
use mainspring_kernel::StateName;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// Somebody with a token and a connection.
#[derive(Debug)]
pub struct Api {
    wire: Wire,
    token: String,
    /// The tenant everything here belongs to.
    pub tenant: String,
    recorder: Arc<Recorder>,
}

impl Api {
    /// Nothing is sent yet.
    pub fn new(address: SocketAddr, token: &str, tenant: &str, recorder: &Arc<Recorder>) -> Self {
        Self::among(Wire::new(&[address], None), token, tenant, recorder)
    }

    /// The same with several servers that share their state.
    pub fn among(wire: Wire, token: &str, tenant: &str, recorder: &Arc<Recorder>) -> Self {
        Api { wire, token: token.to_owned(), tenant: tenant.to_owned(), recorder: recorder.clone() }
    }

    /// The record this one writes to.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Any request: its data, or what became of it instead.
    ///
    /// # Errors
    /// `Fail` if it certainly changed nothing, `Info` if nobody knows.
    pub fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Outcome> {
        self.ask_with(method, path, None, body)
    }

    /// Reads something as one of `tenant` sees it.
    ///
    /// # Errors
    /// Like [`Api::ask`].
    pub fn ask_in(&mut self, tenant: &str, path: &str) -> Result<Value, Outcome> {
        self.ask_with("GET", path, Some(("x-tenant-id", tenant)), None)
    }

    fn ask_with(
        &mut self,
        method: &str,
        path: &str,
        header: Option<(&str, &str)>,
        body: Option<&Value>,
    ) -> Result<Value, Outcome> {
        let question = Question { method, path, token: &self.token, header, body };
        let answer = match self.wire.send(question) {
            Reached::Answer(answer) => answer,
            Reached::Nobody => return Err(Outcome::Fail("UNREACHABLE".to_owned())),
            Reached::Silence => return Err(Outcome::Info),
        };
        let mut whole: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        match answer.status {
            200..300 => Ok(whole["data"].take()),
            // The server does not know either, or is on its way out.
            500..=506 => Err(Outcome::Info),
            _ => Err(Outcome::Fail(text(&whole["error"], "code"))),
        }
    }

    /// Submits one job and answers its id.
    pub fn submit(&mut self, wish: &Wish) -> Outcome {
        let at = self.recorder.now();
        let outcome = match self.ask("POST", "/api/v1/jobs", Some(&wish.body())) {
            Ok(job) => Outcome::Ok(Answer::Submitted {
                job: text(&job, "job_id"),
                is_hit: job["idempotent_hit"] == true,
                created_at: time(&job, "created_at"),
            }),
            Err(outcome) => outcome,
        };
        self.recorder.call(at, self.submission(wish), outcome.clone());
        outcome
    }

    fn submission(&self, wish: &Wish) -> Call {
        let Wish { job_type, payload, key, delay_ms } = wish.clone();
        let tenant = self.tenant.clone();
        Call::Submit { tenant, key, window_secs: None, job_type, payload, delay_ms }
    }

    /// Submits several jobs in one call. A time of creation that the answer does not tell is zero;
    /// the dump fills it in.
    pub fn submit_batch(&mut self, wishes: &[Wish]) -> Vec<Outcome> {
        let at = self.recorder.now();
        let bodies: Vec<Value> = wishes.iter().map(Wish::body).collect();
        let answer = self.ask("POST", "/api/v1/jobs/batch", Some(&json!({ "jobs": bodies })));
        let mut outcomes = Vec::new();
        for (nth, wish) in wishes.iter().enumerate() {
            let outcome = match &answer {
                Ok(data) => match &data["items"][nth] {
                    item if item["error"].is_object() => {
                        Outcome::Fail(text(&item["error"], "code"))
                    }
                    item => Outcome::Ok(Answer::Submitted {
                        job: text(item, "job_id"),
                        is_hit: item["idempotent_hit"] == true,
                        created_at: 0,
                    }),
                },
                Err(outcome) => outcome.clone(),
            };
            self.recorder.call(at, self.submission(wish), outcome.clone());
            outcomes.push(outcome);
        }
        outcomes
    }

    /// Pulls jobs; the ledger is the worker's business.
    pub fn pull(&mut self, pull: &Pull) -> Vec<Grant> {
        let at = self.recorder.now();
        let answer = self.ask("POST", "/api/v1/work/pull", Some(&pull.body()));
        self.pulled(at, pull, answer)
    }

    fn pulled(&self, at: u64, pull: &Pull, answer: Result<Value, Outcome>) -> Vec<Grant> {
        let (worker, lease_ms) = (pull.worker.clone(), pull.lease_ms);
        let outcome = match answer {
            Ok(data) => {
                let jobs = data["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
                Outcome::Ok(Answer::Grants(jobs.iter().map(grant).collect()))
            }
            Err(outcome) => outcome,
        };
        // The token is one of this tenant's, and so must be whatever it gets.
        let scope = PullScope { tenant: Some(self.tenant.clone()), ..PullScope::default() };
        self.recorder.call(at, Call::Pull { worker, lease_ms, scope }, outcome.clone());
        match outcome {
            Outcome::Ok(Answer::Grants(grants)) => grants,
            Outcome::Ok(_) | Outcome::Fail(_) | Outcome::Info | Outcome::Gone => Vec::new(),
        }
    }

    /// Reports about attempts, all in the same way, and perhaps pulls in the same call.
    pub fn report(
        &mut self,
        grants: &[(String, String)],
        report: &Report,
        pull: Option<&Pull>,
    ) -> (Vec<Outcome>, Vec<Grant>) {
        let at = self.recorder.now();
        let items: Vec<Value> = grants.iter().map(|(job, token)| report.body(job, token)).collect();
        let mut body = json!({ "items": items });
        if let Some(pull) = pull {
            body["pull"] = pull.body();
        }
        let answer = self.ask("POST", report.path(), Some(&body));
        let mut outcomes = Vec::new();
        for (nth, (job, token)) in grants.iter().enumerate() {
            let outcome = match &answer {
                Ok(data) => moved(&data["items"][nth]),
                Err(outcome) => outcome.clone(),
            };
            self.recorder.call(at, report.call(job, token), outcome.clone());
            outcomes.push(outcome);
        }
        let grants = pull.map_or_else(Vec::new, |pull| self.pulled(at, pull, answer));
        (outcomes, grants)
    }

    /// Renews a lease.
    pub fn heartbeat(&mut self, worker: &str, job: &str, token: &str, lease_ms: u64) -> Outcome {
        let at = self.recorder.now();
        let item = json!({ "job_id": job, "lease_token": token, "progress": 50 });
        let body = json!({ "worker_id": worker, "lease_ms": lease_ms, "items": [item] });
        let outcome = match self.ask("POST", "/api/v1/work/heartbeat", Some(&body)) {
            Ok(data) => match &data["items"][0] {
                item if item["cancelled"] == true => Outcome::Ok(Answer::Cancelled),
                item if item["lease_expires_at"].is_string() => {
                    Outcome::Ok(Answer::Lease { until: time(item, "lease_expires_at") })
                }
                _ => Outcome::Fail("LEASE_LOST".to_owned()),
            },
            Err(outcome) => outcome,
        };
        let (job, token) = (job.to_owned(), token.to_owned());
        self.recorder.call(at, Call::Heartbeat { job, token, lease_ms }, outcome.clone());
        outcome
    }

    /// Commits a side effect.
    pub fn effect(&mut self, job: &str, token: &str, name: &str, value: &str) -> Outcome {
        let at = self.recorder.now();
        let body = json!({ "lease_token": token, "value": value });
        let path = format!("/api/v1/work/effects/{job}/{name}");
        let outcome = match self.ask("PUT", &path, Some(&body)) {
            Ok(data) => Outcome::Ok(Answer::Effect {
                value: text(&data, "value"),
                is_first: data["is_first"] == true,
            }),
            Err(outcome) => outcome,
        };
        let call = Call::Effect {
            job: job.to_owned(),
            token: token.to_owned(),
            name: name.to_owned(),
            value: value.to_owned(),
        };
        self.recorder.call(at, call, outcome.clone());
        outcome
    }

    /// Cancels a job.
    pub fn cancel(&mut self, job: &str) -> Outcome {
        let at = self.recorder.now();
        let outcome = match self.ask("POST", &format!("/api/v1/jobs/{job}/cancel"), None) {
            Ok(_) => Outcome::Ok(Answer::State { state: StateName::Cancelled }),
            Err(outcome) => outcome,
        };
        self.recorder.call(at, Call::Cancel { job: job.to_owned() }, outcome.clone());
        outcome
    }

    /// Looks at a job's history.
    pub fn read(&mut self, job: &str) -> Outcome {
        let at = self.recorder.now();
        let outcome = match self.ask("GET", &format!("/api/v1/jobs/{job}/events"), None) {
            Ok(data) => match data["items"].as_array().and_then(|items| items.last()) {
                Some(last) => Outcome::Ok(Answer::Seen(Seen {
                    state: state(last, "to_state"),
                    seq: number(last, "seq"),
                    updated_at: time(last, "occurred_at"),
                    retry_count: None,
                    due_at: None,
                    has_item: None,
                })),
                None => Outcome::Info,
            },
            Err(outcome) => outcome,
        };
        self.recorder.call(at, Call::Read { job: job.to_owned() }, outcome.clone());
        outcome
    }

    /// Runs a dead-letter item again.
    pub fn requeue(&mut self, item: &str, key: &str) -> Outcome {
        let at = self.recorder.now();
        let path = format!("/api/v1/dlq/items/{item}/requeue");
        let outcome = match self.ask_with("POST", &path, Some(("idempotency-key", key)), None) {
            Ok(data) => Outcome::Ok(Answer::Requeued { job: text(&data, "job_id") }),
            Err(outcome) => outcome,
        };
        let (item, key) = (item.to_owned(), key.to_owned());
        self.recorder.call(at, Call::Requeue { item, key }, outcome.clone());
        outcome
    }

    /// One step of a discard: `call` says which.
    pub fn discard(&mut self, call: Call) -> Outcome {
        let at = self.recorder.now();
        let (item, verb, body) = match &call {
            Call::RequestDiscard { item, reason, .. } => {
                (item, "discard", Some(json!({ "reason": reason })))
            }
            Call::ApproveDiscard { item, .. } => {
                let path = format!("/api/v1/dlq/items/{item}");
                let read = self.ask("GET", &path, None);
                let version = read.map_or(Value::from(0), |item| item["version"].clone());
                (item, "approve", Some(json!({ "version": version })))
            }
            Call::RejectDiscard { item, .. } => (item, "reject", None),
            other => panic!("{other:?} is no step of a discard"),
        };
        let path = format!("/api/v1/dlq/items/{item}/{verb}");
        let outcome = match self.ask("POST", &path, body.as_ref()) {
            Ok(_) => Outcome::Ok(Answer::Done),
            Err(outcome) => outcome,
        };
        self.recorder.call(at, call, outcome.clone());
        outcome
    }
}

fn moved(item: &Value) -> Outcome {
    if item["error"].is_object() {
        Outcome::Fail(text(&item["error"], "code"))
    } else {
        Outcome::Ok(Answer::State { state: state(item, "status") })
    }
}

/// A grant as it was delivered; the dump fills in when it was made and from which queue. Until then
/// `granted_at` is the attempt's deadline.
fn grant(job: &Value) -> Grant {
    Grant {
        job: text(job, "job_id"),
        attempt: number(job, "attempt"),
        token: text(job, "lease_token"),
        granted_at: time(job, "deadline_at"),
        lease_until: time(job, "lease_expires_at"),
        payload: job["payload"].to_string(),
        queue: String::new(),
    }
}

pub(super) fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}

pub(super) fn number(value: &Value, field: &str) -> u32 {
    let number = value[field].as_u64().and_then(|number| u32::try_from(number).ok());
    number.unwrap_or_else(|| panic!("no {field} in {value}"))
}

pub(super) fn state(value: &Value, field: &str) -> StateName {
    StateName::parse(&text(value, field)).unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// Microseconds since 1970.
pub(super) fn time(value: &Value, field: &str) -> i64 {
    let text = text(value, field);
    let instant: jiff::Timestamp = text.parse().unwrap_or_else(|_| panic!("no time: {text}"));
    instant.as_microsecond()
}
