//! What lies outside `/api/v1`: probes, metrics, and the documentation.

use super::errors::{self, Fault};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::docs_page;
use crate::metrics;
use hyper::StatusCode;
use hyper::header::{CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY};

/// The process runs.
pub(super) async fn healthz(_ask: Ask) -> Result<Reply, Fault> {
    Ok(Reply::other("text/plain; charset=utf-8", "ok\n"))
}

/// The server can take work.
pub(super) async fn readyz(ask: Ask) -> Result<Reply, Fault> {
    if ask.engine().stopping().is_cancelled() {
        return Err(errors::shutting_down());
    }
    match ask.engine().health().broken {
        None => Ok(Reply::other("text/plain; charset=utf-8", "ready\n")),
        // Probes come every second: the store has told the log why.
        Some(cause) => Err(mainspring_engine::Error::Away(cause.into()).into()),
    }
}

pub(super) async fn metrics(ask: Ask) -> Result<Reply, Fault> {
    let is_public = ask.app.config.is_public;
    let text = metrics::text(ask.engine(), ask.who.as_ref(), is_public).await?;
    Ok(Reply::other("text/plain; version=0.0.4; charset=utf-8", text))
}

pub(super) async fn openapi(ask: Ask) -> Result<Reply, Fault> {
    Ok(Reply::other("application/json", ask.app.openapi.clone()))
}

pub(super) async fn docs(ask: Ask) -> Result<Reply, Fault> {
    let policy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; \
                  frame-ancestors 'none'";
    Ok(Reply::other("text/html; charset=utf-8", ask.app.docs.clone())
        .with(CONTENT_SECURITY_POLICY, policy)
        .with(REFERRER_POLICY, "no-referrer"))
}

pub(super) async fn docs_style(_ask: Ask) -> Result<Reply, Fault> {
    Ok(Reply::other("text/css; charset=utf-8", docs_page::STYLE))
}

pub(super) async fn root(_ask: Ask) -> Result<Reply, Fault> {
    let reply = Reply::other("text/plain; charset=utf-8", "see /docs\n");
    Ok(reply.with_status(StatusCode::SEE_OTHER).with(LOCATION, "/docs"))
}
