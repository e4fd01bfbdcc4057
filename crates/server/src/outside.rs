//! What lies outside of every contract: probes, metrics, and the documentation. It is there
//! whichever contracts are spoken.

use crate::answer::Reply;
use crate::ask::Ask;
use crate::docs_page;
use crate::metrics as numbers;
use crate::openapi::{Doc, Gives};
use crate::refusal::{self, Refusal};
use crate::route::table::{get, open};
use crate::route::{Route, Rule};
use crate::tls::Tls;
use hyper::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use mainspring_kernel::Role;

const METRICS_READERS: &[Role] = &[Role::Viewer, Role::Operator];

/// The routes of what is there in every server.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        get(
            "/healthz",
            open!(Open, healthz),
            Doc::new("outside", "healthz", "Whether the process runs")
                .gives(200, Gives::Text("text/plain")),
        ),
        get(
            "/readyz",
            open!(Open, readyz),
            Doc::new("outside", "readyz", "Whether the server can take work")
                .gives(200, Gives::Text("text/plain")),
        ),
        get(
            "/metrics",
            Rule::Local(METRICS_READERS, |ask| Box::pin(metrics(ask))),
            Doc::new("outside", "metrics", "Metrics in the format of Prometheus")
                .gives(200, Gives::Text("text/plain")),
        ),
        get(
            "/openapi.json",
            open!(Open, openapi),
            Doc::new("outside", "openapi", "This document")
                .gives(200, Gives::Text("application/json")),
        ),
        get("/docs", open!(Open, docs), Doc::hidden()),
        get("/docs.css", open!(Open, docs_style), Doc::hidden()),
    ]
}

/// The process runs.
async fn healthz(_ask: Ask) -> Result<Reply, Refusal> {
    Ok(Reply::other("text/plain; charset=utf-8", "ok\n"))
}

/// The server can take work.
async fn readyz(ask: Ask) -> Result<Reply, Refusal> {
    if ask.engine().stopping().is_cancelled() {
        return Err(refusal::shutting_down());
    }
    match ask.engine().health().broken {
        None => Ok(Reply::other("text/plain; charset=utf-8", ready(&ask))),
        // Probes come every second: the store has told the log why.
        Some(cause) => Err(mainspring_engine::Error::Away(cause.into()).into()),
    }
}

/// What is not as it should be, but keeps nobody from working. Probes come without a token: the
/// log says more.
fn ready(ask: &Ask) -> &'static str {
    match ask.app.config.tls.as_ref().and_then(Tls::trouble) {
        None => "ready\n",
        Some(_) => "ready\ntls: the new certificate cannot be used; the old one is still shown\n",
    }
}

async fn metrics(ask: Ask) -> Result<Reply, Refusal> {
    let is_public = ask.app.config.is_public;
    let text = numbers::text(ask.engine(), ask.who.as_ref(), is_public).await?;
    let tls = ask.app.config.tls.as_ref().map_or_else(String::new, numbers::certificate);
    Ok(Reply::other("text/plain; version=0.0.4; charset=utf-8", text + &tls))
}

async fn openapi(ask: Ask) -> Result<Reply, Refusal> {
    Ok(Reply::other("application/json", ask.app.openapi.clone()))
}

async fn docs(ask: Ask) -> Result<Reply, Refusal> {
    let policy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; \
                  frame-ancestors 'none'";
    Ok(Reply::other("text/html; charset=utf-8", ask.app.docs.clone())
        .with(CONTENT_SECURITY_POLICY, policy)
        .with(REFERRER_POLICY, "no-referrer"))
}

async fn docs_style(_ask: Ask) -> Result<Reply, Refusal> {
    Ok(Reply::other("text/css; charset=utf-8", docs_page::STYLE))
}
