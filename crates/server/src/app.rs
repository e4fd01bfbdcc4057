//! One request from head to answer: ids, host, route, who asks, body, handler. The only thing
//! between hyper and the handlers.

use crate::anchor::Anchor;
use crate::answer::{Body, Reply};
use crate::ask::{Ask, Query, idempotency_key};
use crate::audit;
use crate::auth;
use crate::config::Config;
use crate::contracts::Spoken;
use crate::dashboard::{self, Dashboard};
use crate::docs_page;
use crate::follow::editions::Editions;
use crate::limits::{
    BODY_STEP_BYTES, FORM_BYTES_MAX, LEASE_BODY_BYTES_MAX, TARGET_BYTES_MAX, TRACE_BYTES_MAX,
};
use crate::openapi::{self, KeyRule};
use crate::paced::Pace;
use crate::refusal::{self, Refusal};
use crate::route::{Route, Router, Rule, Takes};
use crate::shares::{Bounds, Holder, Share, Shares};
use crate::write::Out;
use bytes::Bytes;
use futures_util::FutureExt;
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, Version};
use mainspring_api::{IDEMPOTENCY_HEADER, TRACE_HEADER};
use mainspring_engine::Engine;
use mainspring_kernel::{Principal, QueueName, Rejection, Role, TenantId};
use std::collections::HashSet;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

/// The server without its socket.
pub struct App {
    pub(crate) engine: Engine,
    pub(crate) config: Config,
    /// Connections by whose they are.
    connections: Arc<Shares>,
    /// Event streams that are open.
    pub(crate) streams: Arc<Shares>,
    /// What they share.
    pub(crate) editions: Editions,
    /// Calls that wait.
    pub(crate) waits: Arc<Shares>,
    /// Bytes of bodies that are held.
    bodies: Arc<Shares>,
    /// The OpenAPI document.
    pub(crate) openapi: Bytes,
    /// The same for people.
    pub(crate) docs: Bytes,
    contracts: Spoken,
    router: Router,
    /// Queues that are known to hand out what is due first. Only a memory: the store knows.
    due_queues: Mutex<HashSet<QueueName>>,
    /// What is known of audit trails outside of the store.
    pub(crate) anchor: Anchor,
    /// Who is signed in, and what the overview shows.
    pub(crate) dashboard: Dashboard,
}

/// What names a request and its trace.
pub(crate) struct Ids {
    pub(crate) trace: String,
    pub(crate) request: String,
    pub(crate) is_trace_given: bool,
    /// Whether there is an `x-trace-id` that cannot be taken.
    pub(crate) is_trace_bad: bool,
}

impl App {
    /// The server of `engine`.
    pub fn new(engine: Engine, config: Config) -> Arc<App> {
        let contracts = Spoken::of(&config);
        Self::speaking(contracts, engine, config)
    }

    /// The server of `engine` in these contracts.
    pub(crate) fn speaking(contracts: Spoken, engine: Engine, config: Config) -> Arc<App> {
        let router = Router::new(contracts.routes(&config));
        let document = openapi::of(&contracts, router.routes());
        let openapi = serde_json::to_vec(&document).expect("our own document is JSON");
        // The seats bound them all together; here it is only counted whose they are.
        let connections = Bounds { all: usize::MAX, ..config.connections };
        let anchor = Anchor::open(config.audit_anchor.clone());
        let dashboard = Dashboard::new(&config);
        Arc::new(App {
            connections: Shares::new(connections),
            streams: Shares::new(config.streams),
            editions: Editions::new(),
            waits: Shares::new(config.waits),
            bodies: Shares::new(config.bodies),
            openapi: openapi.into(),
            docs: docs_page::page(&document).into(),
            engine,
            config,
            contracts,
            router,
            due_queues: Mutex::default(),
            anchor,
            dashboard,
        })
    }

    /// Whether a queue is known to be configured.
    pub(crate) fn has_due_queue(&self, name: &QueueName) -> bool {
        self.due_queues.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// From now on it is.
    pub(crate) fn knows_due_queue(&self, name: QueueName) {
        self.due_queues.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
    }

    /// Answers one request; whatever happens, there is an answer.
    pub async fn respond<B>(self: &Arc<Self>, request: Request<B>) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes>,
    {
        self.respond_on(request, None).await
    }

    /// The same on a connection.
    pub(crate) async fn respond_on<B>(
        self: &Arc<Self>,
        request: Request<B>,
        pace: Option<Arc<Pace>>,
    ) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes>,
    {
        let ids = self.ids(request.headers());
        let method = request.method().clone();
        let word = self.contracts.word(request.uri().path());
        let wording = dashboard::Wording::of(&request);
        let word = |refusal: &Refusal, ids: &Ids| match &wording {
            Some(wording) => wording.refused(refusal, ids),
            None => word(refusal, ids),
        };
        let path =
            tracing::enabled!(tracing::Level::DEBUG).then(|| request.uri().path().to_owned());
        let request_id = path.as_ref().map(|_| ids.request.clone());
        let response = match AssertUnwindSafe(self.answer(request, &ids, pace)).catch_unwind().await
        {
            Ok(Ok(reply)) => reply.into_response(ids),
            Ok(Err(refusal)) => {
                let response = word(&refusal, &ids);
                let (code, request_id) = (refusal.code, &*ids.request);
                if refusal.tells_of_the_store() {
                    // In an outage that is everybody: the store has told the log already.
                    tracing::debug!(%method, code, request_id, "a request failed");
                } else if response.status().is_server_error() {
                    tracing::warn!(%method, code, request_id, "a request failed");
                }
                response
            }
            Err(_) => {
                tracing::error!(%method, request_id = &*ids.request, "a handler panicked");
                word(&refusal::internal(), &ids)
            }
        };
        if let (Some(path), Some(request_id)) = (path, request_id) {
            tracing::debug!(%method, path, status = response.status().as_u16(), request_id);
        }
        response
    }

    fn ids(&self, headers: &HeaderMap) -> Ids {
        let bits = self.engine.fresh_bits();
        let mut values = headers.get_all(TRACE_HEADER).iter();
        let first = values.next();
        let given = first.filter(|_| values.next().is_none()).and_then(|value| value.to_str().ok());
        let given = given.filter(|trace| {
            (1..=TRACE_BYTES_MAX).contains(&trace.len())
                && trace.bytes().all(|b| b.is_ascii_graphic())
        });
        Ids {
            trace: given.map_or_else(|| numbered("trace_", bits), str::to_owned),
            request: numbered("req_", bits),
            is_trace_given: given.is_some(),
            is_trace_bad: first.is_some() && given.is_none(),
        }
    }

    async fn answer<B>(
        self: &Arc<Self>,
        request: Request<B>,
        ids: &Ids,
        pace: Option<Arc<Pace>>,
    ) -> Result<Reply, Refusal>
    where
        B: hyper::body::Body<Data = Bytes>,
    {
        let (head, body) = request.into_parts();
        self.check_target(&head)?;
        if ids.is_trace_bad {
            let reason = format!("must be 1 to {TRACE_BYTES_MAX} visible ASCII characters, once");
            return Err(refusal::invalid(TRACE_HEADER, reason).closed());
        }
        let (route, params) = self.router.find(&head.method, head.uri.path())?;
        // Who asks comes first: a body is read only for those who may send it.
        let who = self.admit(route, &head, pace.as_deref()).await?;
        self.check_head(route, &head, ids)?;
        if let Some(pace) = &pace {
            self.seat(route, who.as_ref(), pace)?;
        }
        let reading = Reading { route, who: who.as_ref(), pace: pace.as_deref() };
        let (body, held) = self.read_body(reading, &head.headers, body).await?;
        let ask = Ask {
            app: self.clone(),
            params,
            query: head.uri.query().map(str::to_owned),
            headers: head.headers,
            body,
            held,
            trace: ids.is_trace_given.then(|| ids.trace.clone()),
            who: who.clone(),
            is_glance: false,
        };
        self.perform(route, head.uri.path(), ask, who).await
    }

    /// Has the handler of a route answer, and tells whoever should know how that went.
    pub(crate) async fn perform(
        &self,
        route: &Route,
        path: &str,
        ask: Ask,
        who: Option<Principal>,
    ) -> Result<Reply, Refusal> {
        let asking = who.clone();
        let outcome = match (&route.rule, who) {
            (Rule::Open(handler) | Rule::Lease(handler) | Rule::Local(_, handler), _) => {
                handler(ask).await
            }
            (Rule::Roles(_, handler) | Rule::Internal(handler), Some(who)) => {
                handler(ask, who).await
            }
            (Rule::Page(_, handler), Some(who)) => match dashboard::check(&ask, route) {
                Ok(()) => handler(ask, who).await,
                Err(no) => Err(no),
            },
            (Rule::Roles(..) | Rule::Internal(_) | Rule::Page(..), None) => {
                Err(refusal::unauthorized())
            }
        };
        if let Some(who) = asking.as_ref().filter(|_| route.method != Method::GET) {
            self.note_move(&who.tenant, route.path, &outcome);
        }
        if let (Err(no), Some(who)) = (&outcome, &asking) {
            audit::denied(self, route, (who, path), no).await;
        }
        outcome
    }

    /// Moves that the lifecycle does not have, one after the other at the same route, are told to
    /// the engine; so is that one was made, which ends the row.
    fn note_move(&self, tenant: &TenantId, path: &'static str, outcome: &Result<Reply, Refusal>) {
        let illegal = |refusal: &Refusal| {
            matches!(refusal.rejection.as_deref(), Some(Rejection::IllegalMove { .. }))
        };
        match outcome {
            Ok(_) => self.engine.move_taken(tenant, path),
            Err(refusal) if illegal(refusal) => self.engine.move_refused(tenant, path),
            Err(_) => {}
        }
    }

    /// What a route of a contract wants of a request besides its body. Parameters it does not know
    /// are refused here, once for all routes: one that is left alone would look as if it had
    /// worked.
    fn check_head(&self, route: &Route, head: &Parts, ids: &Ids) -> Result<(), Refusal> {
        if self.contracts.contract(route.path).is_none() {
            return Ok(());
        }
        let is_for_workers = matches!(route.rule, Rule::Lease(_));
        if self.config.is_trace_required && !ids.is_trace_given && !is_for_workers {
            return Err(refusal::trace_required());
        }
        let has_key = head.headers.contains_key(IDEMPOTENCY_HEADER);
        let told = match route.doc.key {
            // Wherever a key may come it must be one, even where nothing has to remember it.
            KeyRule::Header | KeyRule::HeaderOrBody if has_key => {
                idempotency_key(&head.headers).map(drop)
            }
            KeyRule::Header if self.config.is_key_required && !has_key => {
                Err(refusal::idempotency_missing())
            }
            KeyRule::Items if has_key => {
                let reason = "has no meaning here: give each job its own idempotency_key";
                Err(refusal::invalid("Idempotency-Key", reason))
            }
            KeyRule::None | KeyRule::Header | KeyRule::HeaderOrBody | KeyRule::Items => Ok(()),
        };
        let query = head.uri.query().map_or(Ok(()), |query| {
            let known: Vec<&'static str> = route.doc.query.iter().map(|(name, _)| *name).collect();
            Query::read(Some(query), &known).map(drop)
        });
        told.and(query).map_err(Refusal::closed)
    }

    /// Applies the rule of the route.
    async fn admit(
        &self,
        route: &Route,
        head: &Parts,
        pace: Option<&Pace>,
    ) -> Result<Option<Principal>, Refusal> {
        let headers = &head.headers;
        let seen = pace.map(|pace| &pace.seen);
        let (who, may) = match &route.rule {
            Rule::Open(_) => return Ok(None),
            // An access token that does not work is no hindrance where none is needed.
            Rule::Lease(_) => return Ok(self.named(headers, seen).await),
            Rule::Local(..) if !self.config.is_public => {
                return Ok(self.named(headers, seen).await);
            }
            Rule::Page(roles, _) => {
                let who = self.dashboard.visitor(&self.engine, headers).await?;
                return match who.roles.any(roles) {
                    true => Ok(Some(who)),
                    false => Err(refusal::denied()),
                };
            }
            Rule::Roles(roles, _) | Rule::Local(roles, _) => {
                let who = auth::principal(&self.engine, headers, seen).await?;
                let may = who.roles.any(roles);
                (who, may)
            }
            Rule::Internal(_) => {
                let who = auth::principal(&self.engine, headers, seen).await?;
                let is_said = headers.get("x-internal-debug").is_some_and(|value| value == "true");
                // Admin alone is not enough: these routes can forge outcomes.
                let may = is_said && who.roles.has(Role::Internal);
                (who, may)
            }
        };
        if !may {
            let no = refusal::denied();
            audit::denied(self, route, (&who, head.uri.path()), &no).await;
            return Err(no);
        }
        auth::in_named_tenant(who, headers).map(Some)
    }

    /// Who asks, if that is said and proven.
    async fn named(&self, headers: &HeaderMap, seen: Option<&auth::Seen>) -> Option<Principal> {
        match headers.contains_key(AUTHORIZATION) {
            true => auth::principal(&self.engine, headers, seen).await.ok(),
            false => None,
        }
    }

    /// Whether this connection is there for such a request.
    fn seat(&self, route: &Route, who: Option<&Principal>, pace: &Pace) -> Result<(), Refusal> {
        if pace.is_kept() {
            let is_probe = matches!(route.rule, Rule::Open(_) | Rule::Local(..));
            let is_operator = who.is_some_and(|who| who.roles.any(&[Role::Operator]));
            return match is_probe || is_operator {
                true => Ok(()),
                false => Err(refusal::too_many_connections()),
            };
        }
        match who {
            Some(who) => pace
                .belongs_to(Holder::of(who), &self.connections)
                .map_err(|_| refusal::too_many_own_connections()),
            None => Ok(()),
        }
    }

    fn check_target(&self, head: &Parts) -> Result<(), Refusal> {
        let target_bytes = head.uri.path().len() + head.uri.query().map_or(0, str::len);
        if !head.uri.path().starts_with('/') || target_bytes > TARGET_BYTES_MAX {
            return Err(refusal::bad_request("the request target makes no sense here"));
        }
        let mut hosts = head.headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok(),
            (None, _) => head.uri.authority().map(|authority| authority.as_str()),
            (Some(_), Some(_)) => None,
        };
        match host {
            Some(host) if self.config.is_public || is_served(host, &self.config.hosts) => Ok(()),
            Some(_) => Err(refusal::host_unknown()),
            None if head.version == Version::HTTP_10 && self.config.is_public => Ok(()),
            None => Err(refusal::bad_request("a request needs one Host header")),
        }
    }

    /// The body of a request, and the room that was taken for it.
    async fn read_body<B>(
        &self,
        reading: Reading<'_>,
        headers: &HeaderMap,
        body: B,
    ) -> Result<(Bytes, Option<Share>), Refusal>
    where
        B: hyper::body::Body<Data = Bytes>,
    {
        let Reading { route, who, pace } = reading;
        let max = match route.takes {
            Takes::Nothing => return Ok((Bytes::new(), None)),
            Takes::Json | Takes::MaybeJson => self.config.body_bytes_max,
            Takes::Batch => self.config.batch_bytes_max,
            Takes::Form => FORM_BYTES_MAX,
        };
        let is_wanted = if route.takes == Takes::Form { is_form } else { is_json };
        if route.takes == Takes::MaybeJson && body.is_end_stream() {
            return Ok((Bytes::new(), None));
        }
        if headers.contains_key(CONTENT_ENCODING) {
            return Err(refusal::content_encoding());
        }
        if !headers.get(CONTENT_TYPE).is_some_and(|value| is_wanted(value.as_bytes())) {
            return Err(refusal::content_type());
        }
        let most = match who {
            Some(_) => Most { bytes: max, over: refusal::body_too_large },
            None => {
                let bytes = max.min(LEASE_BODY_BYTES_MAX);
                Most { bytes, over: refusal::lease_body_too_large }
            }
        };
        let holder = who.map_or(Holder::Nobody, Holder::of);
        let mut share = self.bodies.take(holder, 0).map_err(refusal::too_many_bodies)?;
        if let Some(pace) = pace {
            pace.reads(true);
        }
        let read = collected(body, &most, &mut share);
        let read = tokio::time::timeout(self.config.body_timeout, read)
            .await
            .unwrap_or_else(|_| Err(refusal::body_timeout()));
        if let Some(pace) = pace {
            pace.reads(false);
        }
        Ok((read?, Some(share)))
    }
}

/// `{prefix}{bits:032x}`: every request has two of these, and formatting takes ten times as long.
fn numbered(prefix: &str, bits: u128) -> String {
    let mut out = Out::sized(prefix.len() + 32);
    out.raw(prefix);
    bits.to_be_bytes().into_iter().for_each(|byte| out.hex(byte));
    out.into_string()
}

/// Whose body is read, and where.
struct Reading<'a> {
    route: &'a Route,
    who: Option<&'a Principal>,
    pace: Option<&'a Pace>,
}

/// How large a body may be, and what whoever sends more is told.
struct Most {
    bytes: usize,
    over: fn(usize) -> Refusal,
}

/// Whether `host` is a name of this machine, or one it was told.
fn is_served(host: &str, others: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(host, |(name, _)| name),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let is_known =
        |known: &str| name.eq_ignore_ascii_case(known) || host.eq_ignore_ascii_case(known);
    ["localhost", "127.0.0.1", "::1"].into_iter().any(is_known)
        || others.iter().any(|known| is_known(known))
}

/// Whether a content type says JSON in UTF-8.
fn is_json(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return false };
    let mut parts = text.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    is_json
        && parts.all(|part| match part.split_once('=') {
            Some((name, value)) if name.eq_ignore_ascii_case("charset") => {
                value.trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            _ => true,
        })
}

/// Whether a content type says that these are the fields of a form.
fn is_form(value: &[u8]) -> bool {
    let kind = value.split(|byte| *byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
}

/// Collects a body; its room is taken as it arrives, so that announcing much costs nobody anything.
async fn collected<B>(body: B, most: &Most, share: &mut Share) -> Result<Bytes, Refusal>
where
    B: hyper::body::Body<Data = Bytes>,
{
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > most.bytes {
        return Err((most.over)(most.bytes));
    }
    let mut body = pin!(body);
    let mut first = Bytes::new();
    let mut all: Vec<u8> = Vec::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|_| refusal::bad_request("the body broke off"))?;
        let Ok(piece) = frame.into_data() else { continue };
        let bytes = first.len() + all.len() + piece.len();
        if bytes > most.bytes {
            return Err((most.over)(most.bytes));
        }
        if bytes > share.amount() {
            let more = (bytes - share.amount()).max(BODY_STEP_BYTES.min(announced));
            share.grow(more).map_err(refusal::too_many_bodies)?;
        }
        if all.is_empty() && first.is_empty() {
            first = piece;
            continue;
        }
        if all.is_empty() {
            all.reserve(announced.max(first.len() + piece.len()));
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&piece);
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_served() {
        let others = ["box.example".to_owned()];
        for host in ["localhost", "LOCALHOST:7070", "127.0.0.1:1", "[::1]", "[::1]:7070"] {
            assert!(is_served(host, &others), "{host}");
        }
        assert!(is_served("box.example:7070", &others));
        for host in ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil:80", "[::2]"] {
            assert!(!is_served(host, &others), "{host}");
        }
    }

    #[test]
    fn content_types_are_json_or_refused() {
        for good in ["application/json", "Application/JSON; charset=UTF-8"] {
            assert!(is_json(good.as_bytes()), "{good}");
        }
        for bad in ["", "text/plain", "application/jsonx", "application/json; charset=latin1"] {
            assert!(!is_json(bad.as_bytes()), "{bad}");
        }
    }
}
