//! The client: one connection pool, one address, one token. Calls that can be repeated without harm
//! are repeated when the server cannot be reached or says "not now"; others only when they
//! certainly did not arrive. The typed calls are in `client/`, one file per noun.

mod agent;
mod alerts;
mod any;
mod bulk;
mod events;
mod governance;
mod jobs;
mod lists;
mod registry;
mod schedules;
mod subscriptions;
mod templates;
mod tls;
mod triggers;
mod work;

pub use alerts::AlertFilter;
pub use events::{Follow, Told};
pub use governance::ItemFilter;
pub use jobs::JobFilter;
pub use schedules::ScheduleFilter;
pub use subscriptions::SubscriptionsFilter;
pub use templates::{RecoveredTemplate, Template, TemplateRecovery};
pub use triggers::TriggerFilter;

pub use jobs::Submitted;

use crate::error::{Error, Refusal};
use mainspring_api::{ErrorBody, Json, Meta, TRACE_HEADER};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{
    ACCEPT_LANGUAGE, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Where a server is found when nobody says.
pub const URL_DEFAULT: &str = "http://127.0.0.1:7070";
/// How long an answer may take, beyond what the call itself waits for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a call is tried in all.
const TRIES: u32 = 5;
/// The wait after the first failed try; it doubles.
const BACKOFF: Duration = Duration::from_millis(50);
/// No wait is longer.
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// A handle on one server. Cheap to clone; all clones share their connections.
///
/// ```no_run
/// # async fn example() -> Result<(), mainspring_sdk::Error> {
/// let client = mainspring_sdk::Client::new("http://127.0.0.1:7070", Some("secret"))?;
/// println!("server {}", client.runtime().await?.version);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    http: reqwest::Client,
    url: String,
    authorization: Option<HeaderValue>,
    /// Sent with every call.
    trace: Option<HeaderValue>,
    /// The language that descriptions are wanted in.
    language: Option<HeaderValue>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token stays out of logs.
        f.debug_struct("Client").field("url", &self.inner.url).finish_non_exhaustive()
    }
}

/// Whether a call may be made twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// A second call changes nothing more.
    Safe,
    /// A second call could do it twice.
    Unsafe,
    /// The caller repeats by itself.
    Never,
}

/// One call.
pub(crate) struct Call {
    method: Method,
    path: String,
    body: Option<Vec<u8>>,
    repeat: Repeat,
    wait: Duration,
    headers: Vec<(HeaderName, String)>,
}

impl Call {
    pub(crate) fn get(path: String) -> Self {
        Self::new(Method::GET, path, Repeat::Safe)
    }

    pub(crate) fn new(method: Method, path: String, repeat: Repeat) -> Self {
        Call { method, path, body: None, repeat, wait: Duration::ZERO, headers: Vec::new() }
    }

    pub(crate) fn post<T: Serialize>(path: String, body: &T, repeat: Repeat) -> Self {
        Self::new(Method::POST, path, repeat).body(body)
    }

    pub(crate) fn put<T: Serialize>(path: String, body: &T) -> Self {
        Self::new(Method::PUT, path, Repeat::Safe).body(body)
    }

    fn body<T: Serialize>(mut self, body: &T) -> Self {
        self.body = Some(serde_json::to_vec(body).expect("wire types can be written as JSON"));
        self
    }

    /// The server may take this long on purpose.
    pub(crate) fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    pub(crate) fn repeat(mut self, repeat: Repeat) -> Self {
        self.repeat = repeat;
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((HeaderName::from_static(name), value.to_owned()));
        self
    }
}

impl Client {
    /// A client of the server at `url`, such as `http://127.0.0.1:7070`. With `https://` the
    /// server has to prove its name by a certificate that this machine trusts.
    ///
    /// # Errors
    /// If the address cannot be used, or the token has characters no header can carry.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self, Error> {
        Self::made(url, token, None)
    }

    /// A client that trusts the authorities in `authorities`, certificates in PEM form, and no
    /// others.
    ///
    /// # Errors
    /// As [`Client::new`]; if there is no certificate in them, too.
    pub fn trusting(url: &str, token: Option<&str>, authorities: &[u8]) -> Result<Self, Error> {
        Self::made(url, token, Some(authorities))
    }

    fn made(url: &str, token: Option<&str>, authorities: Option<&[u8]>) -> Result<Self, Error> {
        let bad = |reason: &str| Error::Address { url: url.to_owned(), reason: reason.to_owned() };
        let parsed = reqwest::Url::parse(url).map_err(|_| bad("it is not a URL"))?;
        let is_encrypted = match parsed.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(bad("it must start with http:// or https://")),
        };
        let encryption = tls::config(is_encrypted, authorities).map_err(|why| bad(&why))?;
        let authorization = token.map(|token| bearer(url, token)).transpose()?;
        // Servers are addressed directly: a proxy from the environment would catch localhost too.
        let http = reqwest::Client::builder()
            .no_proxy()
            .tcp_nodelay(true)
            .connect_timeout(Duration::from_secs(5))
            .redirect(reqwest::redirect::Policy::none())
            .tls_backend_preconfigured(encryption)
            .build()
            .map_err(|_| bad("the network cannot be set up"))?;
        let url = url.trim_end_matches('/').to_owned();
        Ok(Client {
            inner: Arc::new(Inner { http, url, authorization, trace: None, language: None }),
        })
    }

    /// The same client, with another token.
    ///
    /// # Errors
    /// If the token has characters no header can carry.
    pub fn with_token(&self, token: &str) -> Result<Self, Error> {
        let Inner { http, url, authorization: _, trace, language } = &*self.inner;
        let authorization = Some(bearer(url, token)?);
        let (http, url) = (http.clone(), url.clone());
        let (trace, language) = (trace.clone(), language.clone());
        Ok(Client { inner: Arc::new(Inner { http, url, authorization, trace, language }) })
    }

    /// The same client, naming a trace in every call: jobs that name none belong to it.
    ///
    /// # Errors
    /// If the trace has characters no header can carry.
    pub fn with_trace(&self, trace: &str) -> Result<Self, Error> {
        let Inner { http, url, authorization, trace: _, language } = &*self.inner;
        let trace = HeaderValue::from_str(trace).map_err(|_| Error::Address {
            url: url.clone(),
            reason: "the trace id has characters that cannot be sent".to_owned(),
        })?;
        Ok(Client {
            inner: Arc::new(Inner {
                http: http.clone(),
                url: url.clone(),
                authorization: authorization.clone(),
                trace: Some(trace),
                language: language.clone(),
            }),
        })
    }

    /// The same client, wanting descriptions in a language, such as `zh`: the server has English
    /// and Chinese.
    ///
    /// # Errors
    /// If the language has characters no header can carry.
    pub fn with_language(&self, language: &str) -> Result<Self, Error> {
        let Inner { http, url, authorization, trace, language: _ } = &*self.inner;
        let language = HeaderValue::from_str(language).map_err(|_| Error::Address {
            url: url.clone(),
            reason: "the language has characters that cannot be sent".to_owned(),
        })?;
        Ok(Client {
            inner: Arc::new(Inner {
                http: http.clone(),
                url: url.clone(),
                authorization: authorization.clone(),
                trace: trace.clone(),
                language: Some(language),
            }),
        })
    }

    /// A client as the environment says: `MAINSPRING_URL`, `MAINSPRING_TOKEN` or
    /// `MAINSPRING_TOKEN_FILE`, `MAINSPRING_CA_FILE` and `MAINSPRING_TRACE_ID`.
    ///
    /// # Errors
    /// As [`Client::new`]; if a file that is named cannot be read, too.
    pub fn from_env() -> Result<Self, Error> {
        let read = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = read("MAINSPRING_URL").unwrap_or_else(|| URL_DEFAULT.to_owned());
        let opened = |name: &str, path: &str| {
            std::fs::read(path).map_err(|error| Error::Address {
                url: url.clone(),
                reason: format!("{name}: {path} cannot be read: {error}"),
            })
        };
        let token = match (read("MAINSPRING_TOKEN"), read("MAINSPRING_TOKEN_FILE")) {
            (Some(token), _) => Some(token),
            (None, Some(path)) => {
                let text = opened("MAINSPRING_TOKEN_FILE", &path)?;
                Some(String::from_utf8_lossy(&text).trim().to_owned())
            }
            (None, None) => None,
        };
        let client = match read("MAINSPRING_CA_FILE") {
            Some(path) => {
                let authorities = opened("MAINSPRING_CA_FILE", &path)?;
                Self::trusting(&url, token.as_deref(), &authorities)?
            }
            None => Self::new(&url, token.as_deref())?,
        };
        match read("MAINSPRING_TRACE_ID") {
            Some(trace) => client.with_trace(&trace),
            None => Ok(client),
        }
    }

    /// The address of the server.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// Makes a call and reads the `data` of its answer, repeating as the call allows.
    pub(crate) async fn call<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        self.call_by(call, read_answer).await
    }

    /// The same for a contract without an envelope.
    pub(crate) async fn call_bare<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        self.call_by(call, agent::read_bare).await
    }

    async fn call_by<T>(&self, call: Call, read: Reader<T>) -> Result<T, Error> {
        let mut tries = 0;
        loop {
            let error = match self.once(&call, read).await {
                Ok(data) => return Ok(data),
                Err(error) => error,
            };
            tries += 1;
            let may_repeat = match call.repeat {
                Repeat::Safe => error.is_retryable(),
                Repeat::Unsafe => error.is_certainly_undone(),
                Repeat::Never => false,
            };
            if !may_repeat || tries >= TRIES {
                return Err(error);
            }
            tokio::time::sleep(pause(tries, &error)).await;
        }
    }

    async fn once<T>(&self, call: &Call, read: Reader<T>) -> Result<T, Error> {
        let url = format!("{}{}", self.inner.url, call.path);
        let mut request = self.inner.http.request(call.method.clone(), url);
        if let Some(authorization) = &self.inner.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(trace) = &self.inner.trace {
            request = request.header(TRACE_HEADER, trace.clone());
        }
        if let Some(language) = &self.inner.language {
            request = request.header(ACCEPT_LANGUAGE, language.clone());
        }
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let lost = |source: reqwest::Error| Error::Unreachable {
            url: self.inner.url.clone(),
            was_sent: !source.is_connect(),
            source: source.without_url(),
        };
        let answer = request.timeout(ANSWER_TIMEOUT + call.wait).send().await.map_err(lost)?;
        let status = answer.status();
        let retry_after = retry_after(&answer);
        let body = answer.bytes().await.map_err(lost)?;
        read(call, status, retry_after, &body)
    }

    /// Whether the server answers at all, and the `Date` it puts on its answers.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub async fn health(&self) -> Result<Health, Error> {
        let url = format!("{}/healthz", self.inner.url);
        let sent = self.inner.http.get(url).timeout(Duration::from_secs(10)).send().await;
        let answer = sent.map_err(|source| Error::Unreachable {
            url: self.inner.url.clone(),
            was_sent: !source.is_connect(),
            source: source.without_url(),
        })?;
        let date = answer.headers().get(reqwest::header::DATE).and_then(|v| v.to_str().ok());
        Ok(Health { status: answer.status().as_u16(), date: date.map(ToOwned::to_owned) })
    }
}

/// What `/healthz` said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The HTTP status.
    pub status: u16,
    /// The `Date` header.
    pub date: Option<String>,
}

fn retry_after(answer: &reqwest::Response) -> Option<Duration> {
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// An answer of any contract that has an envelope: not all have `meta`, nor say more of what went
/// wrong than a code and a message.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Answer<T> {
    success: bool,
    #[serde(default = "Option::default")]
    data: Option<T>,
    error: Option<Wrong>,
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Wrong {
    code: String,
    message: String,
    #[serde(default)]
    class: String,
    #[serde(default)]
    retryable: bool,
    details: Option<Json>,
}

impl From<Wrong> for ErrorBody {
    fn from(wrong: Wrong) -> Self {
        let Wrong { code, message, class, retryable, details } = wrong;
        ErrorBody { code, message, class, retryable, details }
    }
}

/// Reads the answer to a call.
type Reader<T> = fn(&Call, StatusCode, Option<Duration>, &[u8]) -> Result<T, Error>;

fn read_answer<T: DeserializeOwned>(
    call: &Call,
    status: StatusCode,
    retry_after: Option<Duration>,
    body: &[u8],
) -> Result<T, Error> {
    let unreadable = |reason: String| Error::Unreadable {
        call: format!("{} {}", call.method, call.path),
        status: status.as_u16(),
        reason,
    };
    let answer: Answer<T> =
        serde_json::from_slice(body).map_err(|error| unreadable(error.to_string()))?;
    match (answer.success, answer.data, answer.error) {
        (true, Some(data), _) if status.is_success() => Ok(data),
        (false, _, Some(error)) => {
            let request_id = answer.meta.map_or_else(String::new, |meta| meta.request_id);
            let refusal = Refusal::new(status.as_u16(), error.into(), request_id, retry_after);
            Err(Error::Refused(Box::new(refusal)))
        }
        (true | false, _, _) => Err(unreadable("neither data nor error".into())),
    }
}

/// The header that proves who asks.
fn bearer(url: &str, token: &str) -> Result<HeaderValue, Error> {
    let mut value =
        HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Error::Address {
            url: url.to_owned(),
            reason: "the token has characters that cannot be sent".to_owned(),
        })?;
    value.set_sensitive(true);
    Ok(value)
}

/// How long to wait before the next try.
fn pause(tries: u32, error: &Error) -> Duration {
    let grown = BACKOFF.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(BACKOFF_MAX);
    error.retry_after().map_or(grown, |asked| asked.min(Duration::from_secs(30)).max(grown))
}

/// All but the characters that RFC 3986 reserves for nothing.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~').remove(b'.');

/// A path below `/api/v1`, its parts written so that no name can leave its place.
pub(crate) fn path(parts: &[&str]) -> String {
    let mut path = String::from("/api/v1");
    for part in parts {
        path.push('/');
        path.extend(utf8_percent_encode(part, ENCODED));
    }
    path
}

/// A path with a query; parts that are `None` are left out.
pub(crate) fn path_with(parts: &[&str], query: &[(&str, Option<String>)]) -> String {
    let mut path = path(parts);
    let mut mark = '?';
    for (name, value) in query {
        if let Some(value) = value {
            path.push(mark);
            path.push_str(name);
            path.push('=');
            path.extend(utf8_percent_encode(value, ENCODED));
            mark = '&';
        }
    }
    path
}

#[cfg(test)]
mod tests;
