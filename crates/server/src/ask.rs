//! A request as handlers see it: who asks is settled, the body is read, nothing is parsed yet.

use crate::app::App;
use crate::limits::{PAGE_DEFAULT, PAGE_MAX, SCHEDULES_PER_TENANT_MAX};
use crate::refusal::{self, Refusal};
use crate::shares::{Holder, Share};
use bytes::Bytes;
use hyper::HeaderMap;
use mainspring_api::TRACEPARENT_HEADER;
use mainspring_engine::Engine;
use mainspring_engine::store::{Counts, EntityFilter, Scope};
use mainspring_kernel::entity::Kind;
use mainspring_kernel::limits::{KEY_BYTES_MAX, WAIT_MS_MAX};
use mainspring_kernel::{Job, Principal, text, traceparent};
use std::borrow::Cow;
use std::sync::Arc;

/// Parameters that may come more than once.
const REPEATABLE: [&str; 1] = ["label"];

/// A request.
pub(crate) struct Ask {
    pub(crate) app: Arc<App>,
    pub(crate) headers: HeaderMap,
    /// The values of the `{...}` parts of the path, in order.
    pub(crate) params: Vec<String>,
    /// The part behind the `?`.
    pub(crate) query: Option<String>,
    pub(crate) body: Bytes,
    /// The room the body takes up.
    pub(crate) held: Option<Share>,
    /// Who asks, where that is known; always, where a role is needed.
    pub(crate) who: Option<Principal>,
    /// The trace the caller named in a header.
    pub(crate) trace: Option<String>,
    /// Whether a page of the dashboard asks: numbers that are a moment old will do for it, and it
    /// has no use for how long a list is in all.
    pub(crate) is_glance: bool,
}

impl Ask {
    pub(crate) fn engine(&self) -> &Engine {
        &self.app.engine
    }

    /// The numbers of the whole server.
    pub(crate) async fn counts(&self) -> Result<Counts, Refusal> {
        Ok(match self.is_glance {
            true => self.app.dashboard.tallies.counts(self.engine()).await?,
            false => self.engine().counts().await?,
        })
    }

    /// The body has been read and is not needed any more: whoever waits does not hold on to it.
    pub(crate) fn let_go_of_body(&mut self) {
        self.body = Bytes::new();
        self.held = None;
    }

    /// Refuses one more schedule to a tenant that has as many as it may.
    pub(crate) async fn room_for_a_schedule(&self, who: &Principal) -> Result<(), Refusal> {
        let tenant = EntityFilter::of(Kind::Schedule, Scope::Tenant(who.tenant.clone()));
        match self.engine().count_entities(&tenant, SCHEDULES_PER_TENANT_MAX).await? {
            known if known >= SCHEDULES_PER_TENANT_MAX => {
                Err(refusal::too_many_schedules(SCHEDULES_PER_TENANT_MAX))
            }
            _ => Ok(()),
        }
    }

    /// How many jobs like `job` may run at a time, if as many do.
    pub(crate) async fn limit_reached(&self, job: &Job) -> Result<Option<u32>, Refusal> {
        let standing = self.engine().standing(job.id).await?;
        let full = standing.and_then(|it| it.limit).filter(|(limit, used)| used >= limit);
        Ok(full.map(|(limit, _)| limit))
    }

    /// A place among the calls that wait.
    pub(crate) fn place_to_wait(&self, who: &Principal) -> Result<Share, Refusal> {
        self.app.waits.take(Holder::of(who), 1).map_err(refusal::too_many_waits)
    }

    /// What `waiting` comes to, if the token of `who` works until then.
    pub(crate) async fn while_live<T>(
        &self,
        who: &Principal,
        waiting: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            done = waiting => Some(done),
            () = self.engine().token_ended(who.token) => None,
        }
    }

    /// The first `{...}` of the path.
    pub(crate) fn param(&self) -> &str {
        self.params.first().map_or("", String::as_str)
    }

    /// A header, if it is there and is plain text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The step of another system's trace that asks, if it says so. What is wrong with it is
    /// nobody's fault here, and changes nothing.
    pub(crate) fn traceparent(&self) -> Option<Box<str>> {
        let mut values = self.headers.get_all(TRACEPARENT_HEADER).iter();
        let only = values.next().filter(|_| values.next().is_none())?;
        traceparent::carried(only.to_str().ok()?)
    }

    /// A header that may come once, with something in it.
    pub(crate) fn one_header(&self, name: &'static str) -> Result<Option<&str>, Refusal> {
        one(&self.headers, name)
    }

    /// The idempotency key of the request's header.
    pub(crate) fn idempotency_key(&self) -> Result<Option<&str>, Refusal> {
        idempotency_key(&self.headers)
    }

    /// The parameters behind the `?`; others than `known`, or one twice, are refused.
    pub(crate) fn query(&self, known: &[&'static str]) -> Result<Query, Refusal> {
        Query::read(self.query.as_deref(), known)
    }
}

/// A header that may come once, with something in it.
fn one<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    match (first.to_str(), values.next()) {
        (Ok(text), None) if !text.is_empty() => Ok(Some(text)),
        _ => Err(refusal::invalid(name, "must be one line of plain text")),
    }
}

/// The idempotency key of a request's header.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let key = one(headers, "Idempotency-Key")?;
    if key.is_some_and(|key| key.len() > KEY_BYTES_MAX) {
        let reason = format_args!("must be between 1 and {KEY_BYTES_MAX} bytes long");
        return Err(refusal::invalid("Idempotency-Key", reason));
    }
    key.map_or(Ok(()), |key| text::refuse_control("Idempotency-Key", key))?;
    Ok(key)
}

/// Parameters behind the `?`.
#[derive(Debug)]
pub(crate) struct Query(Vec<(&'static str, String)>);

impl Query {
    /// Reads `query`; other parameters than `known`, or one twice, are refused.
    pub(crate) fn read(query: Option<&str>, known: &[&'static str]) -> Result<Query, Refusal> {
        let mut values = Vec::new();
        for pair in query.unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded(&name.replace('+', " "));
            let value = decoded(&value.replace('+', " "));
            let (Some(name), Some(value)) = (name, value) else {
                return Err(refusal::invalid("query", "is not properly encoded"));
            };
            let Some(known) = known.iter().find(|known| **known == name) else {
                let shown: String = name.chars().take(80).collect();
                return Err(refusal::invalid(shown, "is not a parameter of this path"));
            };
            if values.iter().any(|(seen, _)| seen == known) && !REPEATABLE.contains(known) {
                return Err(refusal::invalid(*known, "comes twice"));
            }
            // Nothing we keep has one, and PostgreSQL cannot even be asked for a NUL.
            if text::has_control(&value) {
                return Err(refusal::invalid(*known, text::NO_CONTROL));
            }
            values.push((*known, value));
        }
        Ok(Query(values))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Every value of a parameter that may come more than once.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn number(&self, name: &'static str) -> Result<Option<u64>, Refusal> {
        let parse = |text: &str| {
            // What Rust reads besides, such as a plus sign, is no number to anybody else.
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse().ok().filter(|_| is_number);
            number.ok_or_else(|| refusal::invalid(name, "is not a number"))
        };
        self.get(name).map(parse).transpose()
    }

    /// How long to wait for something to happen.
    pub(crate) fn wait_ms(&self) -> Result<u64, Refusal> {
        match self.number("wait_ms")?.unwrap_or(0) {
            wait if wait <= WAIT_MS_MAX => Ok(wait),
            _ => Err(refusal::invalid("wait_ms", "must be at most 60000")),
        }
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, Refusal> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(refusal::invalid(name, "must be true or false")),
        }
    }

    /// How many entries a page of a list has.
    pub(crate) fn limit(&self) -> Result<usize, Refusal> {
        match self.number("limit")? {
            None => Ok(PAGE_DEFAULT),
            Some(limit) if (1..=PAGE_MAX as u64).contains(&limit) => Ok(limit as usize),
            Some(_) => Err(refusal::invalid("limit", "must be between 1 and 100")),
        }
    }
}

/// Undoes percent encoding; `None` if it is broken or not UTF-8.
pub(crate) fn decoded(text: &str) -> Option<String> {
    // The crate leaves what is broken as it is.
    let is_code = |after: &str| {
        after.as_bytes().get(..2).is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit))
    };
    let is_whole = text.split('%').skip(1).all(is_code);
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8().ok();
    decoded.filter(|_| is_whole).map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_undone_or_refused() {
        assert_eq!(decoded("plain").as_deref(), Some("plain"));
        assert_eq!(decoded("a%20b%C3%A9").as_deref(), Some("a bé"));
        for broken in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decoded(broken), None, "{broken}");
        }
    }
}
