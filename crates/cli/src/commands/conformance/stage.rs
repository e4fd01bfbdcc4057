//! The stage: as much of a server as a worker speaks to, which hands out what it is told to,
//! answers as it is told to, and keeps what it hears. Leases are real: one that ends is an offence.

use anyhow::Context;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use mainspring_sdk::api::Time;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Largest request that is read.
const BODY_BYTES_MAX: usize = 4 << 20;
/// How long an attempt may take.
const DEADLINE: Duration = Duration::from_secs(900);
/// How much later than its end a lease counts as lost: the machine may be busy.
const LEASE_SLACK: Duration = Duration::from_millis(300);

/// How the stage answers what is said about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// As it should.
    Well,
    /// The first so many reports with 503.
    AwayFor(u32),
    /// Reports with `LEASE_LOST`.
    Stale,
    /// Heartbeats with `lost`, and reports, too.
    Lost,
    /// Heartbeats with `cancelled`, and reports as if the lease were lost.
    Cancelled,
}

/// A job to be handed out.
pub(super) struct Job {
    payload: Value,
    answer: Answer,
    skew_secs: i64,
}

impl Job {
    pub(super) fn new(payload: Value) -> Self {
        Job { payload, answer: Answer::Well, skew_secs: 0 }
    }

    pub(super) fn answer(mut self, answer: Answer) -> Self {
        self.answer = answer;
        self
    }

    pub(super) fn skew(mut self, secs: i64) -> Self {
        self.skew_secs = secs;
        self
    }
}

/// A report, as it was heard.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// `complete`, `fail` or `release`.
    pub(super) verb: String,
    pub(super) item: Value,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.item)
    }
}

/// A job that was handed out.
struct Given {
    lease_token: String,
    answer: Answer,
    /// Until when it is the worker's; none once it is over.
    ends_at: Option<Instant>,
    /// Whether a heartbeat was answered with what there is to tell.
    is_told: bool,
    said: Vec<Said>,
}

#[derive(Default)]
struct State {
    count: u64,
    waiting: VecDeque<(String, Job)>,
    given: HashMap<String, Given>,
    effects: HashMap<String, Value>,
    lease_asked: Option<Duration>,
    pulls_refused: u32,
    is_leaving: bool,
    offence: Option<String>,
}

struct Inner {
    job_type: String,
    state: Mutex<State>,
    changed: Notify,
}

/// A stage with a worker on it.
pub(super) struct Stage {
    inner: Arc<Inner>,
    url: String,
    patience: Duration,
}

impl Stage {
    pub(super) async fn open(job_type: &str, patience: Duration) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("cannot listen for the worker")?;
        let url = format!("http://{}", listener.local_addr()?);
        let (state, changed) = (Mutex::default(), Notify::new());
        let inner = Arc::new(Inner { job_type: job_type.to_owned(), state, changed });
        tokio::spawn(accept(listener, inner.clone()));
        Ok(Stage { inner, url, patience })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Has a job waiting; says its id.
    pub(super) fn hand_out(&self, job: Job) -> String {
        let mut state = self.inner.lock();
        state.count += 1;
        let id = format!("job_{:026}", state.count);
        state.waiting.push_back((id.clone(), job));
        drop(state);
        self.inner.changed.notify_waiters();
        id
    }

    /// Answers the next so many pulls with 503.
    pub(super) fn refuse_pulls(&self, count: u32) {
        self.inner.lock().pulls_refused = count;
        // A pull that waits is answered, so that the next one comes.
        self.inner.changed.notify_waiters();
    }

    /// The `count`th report about a job.
    pub(super) async fn report(&self, job: &str, count: usize) -> Result<Said, String> {
        self.report_within(job, count, self.patience).await
    }

    pub(super) async fn report_within(
        &self,
        job: &str,
        count: usize,
        patience: Duration,
    ) -> Result<Said, String> {
        let what = format!("no report number {count} about {job}");
        self.until(&what, patience, |state| state.given.get(job)?.said.get(count - 1).cloned())
            .await
    }

    /// How many reports there were about a job.
    pub(super) fn reports(&self, job: &str) -> usize {
        self.inner.lock().given.get(job).map_or(0, |given| given.said.len())
    }

    /// Until the worker has a job.
    pub(super) async fn taken(&self, job: &str) -> Result<(), String> {
        self.until("the job is not taken", self.patience, |state| {
            state.given.contains_key(job).then_some(())
        })
        .await
    }

    /// Until the worker has heard that a job is not its own any more.
    pub(super) async fn told(&self, job: &str) -> Result<(), String> {
        self.until("no heartbeat", self.patience, |state| {
            state.given.get(job)?.is_told.then_some(())
        })
        .await
    }

    /// The lease that the worker asks for.
    pub(super) async fn lease_asked(&self) -> Result<Duration, String> {
        self.until("no pull", self.patience, |state| state.lease_asked).await
    }

    /// What the worker did wrong while nobody looked.
    pub(super) fn offence(&self) -> Option<String> {
        let mut state = self.inner.lock();
        state.look_at_leases();
        state.offence.take()
    }

    async fn until<T>(
        &self,
        what: &str,
        patience: Duration,
        probe: impl Fn(&State) -> Option<T>,
    ) -> Result<T, String> {
        let end = Instant::now() + patience;
        loop {
            // Before the look: what happens after it is not missed.
            let changed = self.inner.changed.notified();
            if let Some(found) = probe(&self.inner.lock()) {
                return Ok(found);
            }
            if tokio::time::timeout_at(end, changed).await.is_err() {
                return Err(format!("{what} within {patience:?}"));
            }
        }
    }
}

async fn accept(listener: TcpListener, inner: Arc<Inner>) {
    while let Ok((stream, _)) = listener.accept().await {
        let inner = inner.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let inner = inner.clone();
                async move { Ok::<_, std::convert::Infallible>(inner.answer(request).await) }
            });
            // A worker that is killed leaves its connections as they are.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let body = match Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(_) => return refused(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE"),
        };
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        match (method, path.strip_prefix("/api/v1/work/").unwrap_or_default()) {
            (Method::POST, "pull") => self.pull(&body).await,
            (Method::POST, verb @ ("complete" | "fail" | "release")) => self.report(verb, &body),
            (Method::POST, "heartbeat") => self.heartbeat(&body),
            (Method::POST, "leave") => {
                self.lock().is_leaving = true;
                self.changed.notify_waiters();
                data(&json!({ "worker_id": body["worker_id"] }))
            }
            (method, path) => match path.strip_prefix("effects/") {
                Some(name) => self.effect(&method, name, &body),
                None => refused(StatusCode::NOT_FOUND, "REQ_NOT_FOUND"),
            },
        }
    }

    async fn pull(&self, wish: &Value) -> Response<Full<Bytes>> {
        let wait = Duration::from_millis(wish["wait_ms"].as_u64().unwrap_or(0).min(60_000));
        let end = Instant::now() + wait;
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                if state.pulls_refused > 0 {
                    state.pulls_refused -= 1;
                    return refused(StatusCode::SERVICE_UNAVAILABLE, "STORE_UNAVAILABLE");
                }
                let jobs = state.give(&self.job_type, wish);
                if !jobs.is_empty() || state.is_leaving || Instant::now() >= end {
                    drop(state);
                    self.changed.notify_waiters();
                    return data(&json!({ "jobs": jobs }));
                }
            }
            // Whichever comes first; the next look tells.
            let _ = tokio::time::timeout_at(end, changed).await;
        }
    }

    fn report(&self, verb: &str, body: &Value) -> Response<Full<Bytes>> {
        let mut state = self.lock();
        let (mut is_away, mut told) = (false, Vec::new());
        for item in body["items"].as_array().into_iter().flatten() {
            let (outcome, away) = state.hear(verb, item);
            is_away |= away;
            told.push(outcome);
        }
        let mut answer = json!({ "items": told });
        if !is_away && body["pull"].is_object() {
            answer["jobs"] = Value::Array(state.give(&self.job_type, &body["pull"]));
        }
        drop(state);
        self.changed.notify_waiters();
        match is_away {
            true => refused(StatusCode::SERVICE_UNAVAILABLE, "STORE_UNAVAILABLE"),
            false => data(&answer),
        }
    }

    fn heartbeat(&self, body: &Value) -> Response<Full<Bytes>> {
        let lease = Duration::from_millis(body["lease_ms"].as_u64().unwrap_or(60_000));
        let mut state = self.lock();
        state.look_at_leases();
        let items = body["items"].as_array().into_iter().flatten();
        let told: Vec<Value> = items.map(|item| state.beat(item, lease)).collect();
        drop(state);
        self.changed.notify_waiters();
        data(&json!({ "items": told }))
    }

    fn effect(&self, method: &Method, name: &str, body: &Value) -> Response<Full<Bytes>> {
        let mut state = self.lock();
        let known = state.effects.get(name).cloned();
        let is_first = known.is_none();
        let value = match (method, known) {
            (_, Some(known)) => known,
            (&Method::PUT, None) => {
                state.effects.insert(name.to_owned(), body["value"].clone());
                body["value"].clone()
            }
            _ => return refused(StatusCode::NOT_FOUND, "EFFECT_NOT_FOUND"),
        };
        let (job, name) = name.split_once('/').unwrap_or((name, ""));
        data(&json!({ "job_id": job, "name": name, "value": value, "is_first": is_first }))
    }
}

impl State {
    /// Hands out what waits, as the wish says.
    fn give(&mut self, job_type: &str, wish: &Value) -> Vec<Value> {
        let lease = Duration::from_millis(wish["lease_ms"].as_u64().unwrap_or(60_000));
        self.lease_asked = Some(lease);
        let wants = |types: &Vec<Value>| types.iter().any(|name| *name == job_type);
        if !wish["types"].as_array().is_none_or(wants) {
            self.offence.get_or_insert(format!("it does not ask for jobs of type {job_type:?}"));
            return Vec::new();
        }
        let limit = wish["limit"].as_u64().unwrap_or(1);
        let mut jobs = Vec::new();
        while (jobs.len() as u64) < limit {
            let Some((id, job)) = self.waiting.pop_front() else { break };
            let lease_token = format!("1.{:032x}", self.given.len() + 1);
            let now = jiff::Timestamp::now().as_microsecond() + job.skew_secs * 1_000_000;
            let after = |span: Duration| Time(now + span.as_micros() as i64).to_string();
            jobs.push(json!({
                "job_id": id, "job_type": job_type, "payload": job.payload, "attempt": 1,
                "retry_count": 0, "lease_token": lease_token, "lease_expires_at": after(lease),
                "deadline_at": after(DEADLINE), "execution_key": format!("{id}:0"),
                "trace_id": format!("trace_{id}"), "labels": {},
            }));
            let ends_at = Some(Instant::now() + lease);
            let (answer, said) = (job.answer, Vec::new());
            self.given.insert(id, Given { lease_token, answer, ends_at, is_told: false, said });
        }
        jobs
    }

    /// Takes in a report; says what is answered about it, and whether the stage is away for it.
    fn hear(&mut self, verb: &str, item: &Value) -> (Value, bool) {
        self.look_at_leases();
        let id = item["job_id"].as_str().unwrap_or_default();
        let lost = json!({ "job_id": id, "error":
            { "code": "LEASE_LOST", "message": "this lease is not, or no longer, yours" } });
        let Some(given) = self.given.get_mut(id) else {
            self.offence.get_or_insert(format!("it reports about a job that it never got: {item}"));
            return (lost, false);
        };
        given.said.push(Said { verb: verb.to_owned(), item: item.clone() });
        if item["lease_token"] != given.lease_token {
            self.offence.get_or_insert(format!("it reports with a lease of another job: {item}"));
            return (lost, false);
        }
        match &mut given.answer {
            Answer::AwayFor(times) if *times > 0 => {
                *times -= 1;
                (lost, true)
            }
            Answer::Stale | Answer::Lost | Answer::Cancelled => {
                given.ends_at = None;
                (lost, false)
            }
            Answer::Well | Answer::AwayFor(_) => {
                given.ends_at = None;
                let status = if verb == "complete" { "succeeded" } else { "queued" };
                (json!({ "job_id": id, "status": status }), false)
            }
        }
    }

    fn beat(&mut self, item: &Value, lease: Duration) -> Value {
        let id = item["job_id"].as_str().unwrap_or_default();
        let Some(given) = self.given.get_mut(id) else {
            return json!({ "job_id": id, "lost": true });
        };
        match given.answer {
            Answer::Lost | Answer::Cancelled => {
                given.is_told = true;
                given.ends_at = None;
                let is_lost = given.answer == Answer::Lost;
                json!({ "job_id": id, if is_lost { "lost" } else { "cancelled" }: true })
            }
            Answer::Well | Answer::AwayFor(_) | Answer::Stale => {
                given.ends_at = given.ends_at.map(|_| Instant::now() + lease);
                let now = jiff::Timestamp::now().as_microsecond();
                let end = Time(now + lease.as_micros() as i64).to_string();
                json!({ "job_id": id, "lease_expires_at": end })
            }
        }
    }

    /// Whoever let a lease run out did something wrong.
    fn look_at_leases(&mut self) {
        let now = Instant::now();
        for (id, given) in &mut self.given {
            if given.ends_at.is_some_and(|end| end + LEASE_SLACK < now) {
                given.ends_at = None;
                self.offence.get_or_insert(format!("it let the lease of {id} run out"));
            }
        }
    }
}

fn data(value: &Value) -> Response<Full<Bytes>> {
    let meta = json!({ "trace_id": "conformance", "request_id": "conformance" });
    framed(
        StatusCode::OK,
        &json!({ "success": true, "data": value, "message": "ok", "meta": meta }),
    )
}

fn refused(status: StatusCode, code: &str) -> Response<Full<Bytes>> {
    let error = json!({ "code": code, "message": "on purpose", "class": "transient",
        "retryable": status == StatusCode::SERVICE_UNAVAILABLE });
    let meta = json!({ "trace_id": "conformance", "request_id": "conformance" });
    framed(status, &json!({ "success": false, "error": error, "meta": meta }))
}

fn framed(status: StatusCode, whole: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(whole.to_string())));
    *response.status_mut() = status;
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
    response
}
