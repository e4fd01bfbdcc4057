//! Following the moves of jobs as server-sent events, in any contract's words. A stream holds a
//! position and no moves: a page is fetched when the client has read the one before, so a slow
//! client costs no memory, and one that comes back goes on where it was.

use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::limits::{POSITION_MAX, STREAM_BEAT_SECS, STREAM_PAGE};
use crate::refusal::{self, Refusal};
use crate::shares::{Holder, Share};
use crate::write::Out;
use bytes::Bytes;
use futures_util::stream;
use mainspring_engine::Engine;
use mainspring_engine::store::{LoggedMove, Scope};
use mainspring_kernel::{Principal, TokenId};
use std::time::Duration;
use tokio::time::Instant;

/// A position no store reaches, which every store can write down.
const BEYOND: u64 = i64::MAX as u64;

const LAST_EVENT: &str = "Last-Event-ID";

const BEAT: Duration = Duration::from_secs(STREAM_BEAT_SECS);

/// Where a client stands.
struct Follower {
    engine: Engine,
    scope: Scope,
    token: TokenId,
    write: WriteMove,
    position: u64,
    /// Something to say before the first move.
    greeting: Option<Bytes>,
    /// One of the streams that may be open.
    _slot: Share,
}

/// Puts one move into a contract's words: as no event, one, or several. Everything it needs of the
/// job comes with the move, so that nothing is read per event.
pub(crate) type WriteMove = fn(&LoggedMove, &mut Out);

/// The stream that the request asks for, as far as `who` may see it.
pub(crate) async fn moves(ask: &Ask, who: &Principal, write: WriteMove) -> Result<Reply, Refusal> {
    let query = ask.query(&["after"])?;
    let slot = ask.app.streams.take(Holder::of(who), 1).map_err(refusal::too_many_streams)?;
    let after = query.number("after")?;
    if after.is_some_and(|after| after > POSITION_MAX) {
        return Err(refusal::invalid("after", format_args!("must be at most {POSITION_MAX}")));
    }
    let last = ask.one_header(LAST_EVENT)?.map(|text| {
        position(text)
            .ok_or_else(|| refusal::invalid(LAST_EVENT, "must be the position of an event"))
    });
    let named = last.transpose()?.or(after);
    let newest = ask.engine().moves_after(BEYOND, 1, Duration::ZERO).await?.newest;
    let mut greeting = Out::sized(64);
    greeting.raw(": welcome\nretry: 1000\n\n");
    let position = match named {
        Some(position) if position <= newest => position,
        // A position from another life of the store: what it followed is gone.
        Some(_) => {
            write_reset(newest, &mut greeting);
            newest
        }
        None => newest,
    };
    let follower = Follower {
        engine: ask.engine().clone(),
        scope: auth::scope(who),
        token: who.token,
        write,
        position,
        greeting: Some(greeting.0.into()),
        _slot: slot,
    };
    Ok(Reply::stream(Box::pin(stream::unfold(follower, |mut follower| async move {
        let piece = follower.next().await?;
        Some((piece, follower))
    }))))
}

/// Digits and nothing else.
fn position(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|position| is_number && *position <= POSITION_MAX)
}

impl Follower {
    /// The next piece to send; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(greeting) = self.greeting.take() {
            return Some(greeting);
        }
        let stopping = self.engine.stopping();
        let beat_at = Instant::now() + BEAT;
        loop {
            let wait = beat_at.saturating_duration_since(Instant::now());
            if stopping.is_cancelled() || !self.may_go_on().await {
                return None;
            }
            if wait.is_zero() {
                return Some(Bytes::from_static(b": beat\n\n"));
            }
            let page = self.engine.moves_for(self.scope.tenant(), self.position, STREAM_PAGE, wait);
            let page = tokio::select! {
                biased;
                page = page => page.ok()?,
                () = self.engine.token_ended(self.token) => return None,
            };
            // What moved while the token was revoked is not shown either.
            if !self.may_go_on().await {
                return None;
            }
            let mut out = Out::sized(64 + 512 * page.moves.len());
            if page.has_gap {
                self.position = page.newest;
                write_reset(page.newest, &mut out);
                return Some(out.0.into());
            }
            for logged in &page.moves {
                self.position = logged.position;
                if self.scope.covers(&logged.tenant, &logged.user) {
                    (self.write)(logged, &mut out);
                }
            }
            if !out.0.is_empty() {
                return Some(out.0.into());
            }
        }
    }

    /// A token that was revoked ends its streams, too.
    async fn may_go_on(&self) -> bool {
        let token = self.engine.token(self.token).await;
        matches!(token, Ok(Some(token)) if token.is_live(self.engine.now()))
    }
}

fn write_reset(position: u64, out: &mut Out) {
    out.raw("id: ");
    out.number(position);
    out.raw("\nevent: reset\ndata: {\"position\":");
    out.number(position);
    out.raw("}\n\n");
}
