//! The sign that something has moved, for the script of a page: no more often than a person can
//! follow, however much moves, and nothing of what it was. The page then looks again.

use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::limits::{LIVE_PACE_MS_MIN, STREAM_BEAT_SECS, STREAM_PAGE};
use crate::openapi::Doc;
use crate::refusal::{self, Refusal};
use crate::route::Route;
use crate::route::table::{ANYONE, get, page};
use crate::shares::{Holder, Share};
use bytes::Bytes;
use futures_util::stream;
use mainspring_engine::Engine;
use mainspring_engine::store::Scope;
use mainspring_kernel::{Principal, TokenId};
use std::time::Duration;

/// A position no store reaches, which every store can write down.
const BEYOND: u64 = i64::MAX as u64;
const BEAT: Duration = Duration::from_secs(STREAM_BEAT_SECS);
const PACE: Duration = Duration::from_millis(LIVE_PACE_MS_MIN);

pub(super) fn routes() -> Vec<Route> {
    vec![get("/ui/live", page!(ANYONE, live), Doc::hidden())]
}

struct Watcher {
    engine: Engine,
    scope: Scope,
    token: TokenId,
    position: u64,
    is_new: bool,
    _slot: Share,
}

async fn live(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let slot = ask.app.streams.take(Holder::of(&who), 1).map_err(refusal::too_many_streams)?;
    let newest = ask.engine().moves_after(BEYOND, 1, Duration::ZERO).await?.newest;
    let watcher = Watcher {
        engine: ask.engine().clone(),
        scope: auth::scope(&who),
        token: who.token,
        position: newest,
        is_new: true,
        _slot: slot,
    };
    Ok(Reply::stream(Box::pin(stream::unfold(watcher, |mut watcher| async move {
        let piece = watcher.next().await?;
        Some((piece, watcher))
    }))))
}

impl Watcher {
    /// The next sign; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.is_new) {
            return Some(Bytes::from_static(b"retry: 2000\n\n"));
        }
        let stopping = self.engine.stopping();
        tokio::select! {
            biased;
            () = stopping.cancelled() => None,
            () = self.engine.token_ended(self.token) => None,
            piece = Self::wait(&self.engine, &self.scope, &mut self.position) => piece,
        }
    }

    async fn wait(engine: &Engine, scope: &Scope, position: &mut u64) -> Option<Bytes> {
        // What moves meanwhile is one sign with what comes next.
        tokio::time::sleep(PACE).await;
        let page = engine.moves_for(scope.tenant(), *position, STREAM_PAGE, BEAT).await.ok()?;
        let is_ours = page.has_gap
            || page.moves.len() >= STREAM_PAGE
            || page.moves.iter().any(|moved| scope.covers(&moved.tenant, &moved.user));
        *position = page.newest.max(*position);
        Some(match is_ours {
            true => Bytes::from_static(b"event: moved\ndata: 1\n\n"),
            false => Bytes::from_static(b": beat\n\n"),
        })
    }
}
