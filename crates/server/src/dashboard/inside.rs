//! The dashboard as a caller of the native contract, in this process: the same handlers with the
//! same rules, the same audit trail and the same words for a refusal. Only who asks is known from
//! the session instead of from a header.

use super::words::Lang;
use crate::answer::Reply;
use crate::app::Ids;
use crate::ask::Ask;
use crate::audit;
use crate::refusal::{self, Refusal};
use crate::route::{Route, Rule};
use bytes::Bytes;
use hyper::header::{ACCEPT_LANGUAGE, HeaderValue};
use hyper::{HeaderMap, Method};
use mainspring_kernel::Principal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Whoever is signed in, asking the native contract.
pub(super) struct Inside<'a> {
    ask: &'a Ask,
    who: &'a Principal,
}

/// What a native answer wraps.
#[derive(Deserialize)]
struct Enveloped<T> {
    data: T,
}

impl<'a> Inside<'a> {
    pub(super) fn new(ask: &'a Ask, who: &'a Principal) -> Self {
        Inside { ask, who }
    }

    /// Whether the role of whoever is signed in is enough to ask for this; the path may have
    /// anything where it names a thing.
    pub(super) fn may(&self, method: &Method, path: &str) -> bool {
        let found = self.ask.app.dashboard.native.find(method, path);
        found.is_ok_and(|(route, _)| self.is_allowed(route))
    }

    /// What a native GET answers; `target` may have a query.
    pub(super) async fn get<T: DeserializeOwned>(&self, target: &str) -> Result<T, Refusal> {
        self.send(&Method::GET, target, Bytes::new()).await
    }

    /// What a native POST answers.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Refusal> {
        let body = serde_json::to_vec(body).map_err(|_| refusal::internal())?;
        self.send(&Method::POST, path, body.into()).await
    }

    /// The same for a POST that takes no body.
    pub(super) async fn poke<T: DeserializeOwned>(&self, path: &str) -> Result<T, Refusal> {
        self.send(&Method::POST, path, Bytes::new()).await
    }

    /// Whatever a native route answers.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        method: &Method,
        target: &str,
        body: Bytes,
    ) -> Result<T, Refusal> {
        let reply = self.reply(method, target, body).await?;
        let ids = Ids {
            trace: String::new(),
            request: String::new(),
            is_trace_given: false,
            is_trace_bad: false,
        };
        let bytes = reply.into_response(ids).into_body().into_bytes();
        let whole: Enveloped<T> = serde_json::from_slice(&bytes).map_err(|error| {
            tracing::error!(%error, target, "a native answer is not what the dashboard expects");
            refusal::internal()
        })?;
        Ok(whole.data)
    }

    async fn reply(&self, method: &Method, target: &str, body: Bytes) -> Result<Reply, Refusal> {
        let app = &self.ask.app;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        let (route, params) = app.dashboard.native.find(method, path)?;
        if !self.is_allowed(route) {
            let no = refusal::denied();
            audit::denied(app, route, (self.who, path), &no).await;
            return Err(no);
        }
        let ask = Ask {
            app: app.clone(),
            headers: self.spoken(),
            params,
            query,
            body,
            held: None,
            who: Some(self.who.clone()),
            trace: self.ask.trace.clone(),
            is_glance: true,
        };
        // The future of a handler that is chosen at run time is in a box of its own already.
        Box::pin(app.perform(route, path, ask, Some(self.who.clone()))).await
    }

    /// The language of the page: some answers have sentences in them.
    fn spoken(&self) -> HeaderMap {
        let lang = Lang::of(&self.ask.headers).as_str();
        HeaderMap::from_iter([(ACCEPT_LANGUAGE, HeaderValue::from_static(lang))])
    }

    fn is_allowed(&self, route: &Route) -> bool {
        match &route.rule {
            Rule::Roles(roles, _) => self.who.roles.any(roles),
            // What needs a lease, or is for moving jobs by hand, is not a page's to ask.
            Rule::Open(_)
            | Rule::Lease(_)
            | Rule::Internal(_)
            | Rule::Local(..)
            | Rule::Page(..) => false,
        }
    }
}
