//! Following the moves of jobs as server-sent events, in any contract's words. A stream holds a
//! position and no moves: what it sends is fetched when the client has read what was sent before,
//! so a slow client costs no memory, one that does not read costs nothing at all, and one that
//! comes back goes on where it was. Streams that show the same jobs share what they fetch
//! (`editions.rs`), and many streams of one tenant take turns (`turns.rs`).

pub(crate) mod editions;
mod turns;

#[cfg(test)]
mod tests;

use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::limits::{POSITION_MAX, STREAM_BEAT_SECS};
use crate::refusal::{self, Refusal};
use crate::shares::{Holder, Share};
use crate::write::Out;
use bytes::Bytes;
use editions::{Key, Piece, View};
use futures_util::future::{BoxFuture, ready};
use futures_util::stream;
use mainspring_engine::store::LoggedMove;
use mainspring_engine::{Engine, Error, Listening};
use mainspring_kernel::{Principal, TokenId};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use turns::Turns;

/// A position no store reaches, which every store can write down.
const BEYOND: u64 = i64::MAX as u64;

const LAST_EVENT: &str = "Last-Event-ID";

const BEAT: Duration = Duration::from_secs(STREAM_BEAT_SECS);

/// Where a client stands.
struct Follower {
    engine: Engine,
    token: TokenId,
    view: Arc<View>,
    listening: Listening,
    turns: Turns,
    position: u64,
    /// Whether there is more to fetch than was sent.
    is_behind: bool,
    /// Something to say before the first move.
    greeting: Option<Bytes>,
    /// One of the streams that may be open.
    slot: Share,
}

/// A contract's way to tell of moves.
#[derive(Clone, Copy)]
pub(crate) struct Words {
    /// The contract's name.
    pub(crate) name: &'static str,
    /// Whoever tells; one for all streams that show the same jobs.
    pub(crate) teller: fn() -> Box<dyn Tell>,
}

/// Puts one move into a contract's words: as no event, one, or several. Everything it needs of the
/// job comes with the move, so that nothing is read per event.
pub(crate) type WriteMove = fn(&LoggedMove, &mut Out);

/// Puts moves into the words of a contract that shows more of a job than comes with its moves.
pub(crate) trait Tell: Send + Sync + 'static {
    /// Writes what `moves` show, as server-sent events that have the positions as their ids.
    fn tell<'a>(
        &'a mut self,
        engine: &'a Engine,
        moves: &'a [&'a LoggedMove],
        out: &'a mut Out,
    ) -> BoxFuture<'a, Result<(), Error>>;
}

/// Moves that say everything by themselves.
pub(crate) struct Plainly(pub(crate) WriteMove);

impl Tell for Plainly {
    fn tell<'a>(
        &'a mut self,
        _: &'a Engine,
        moves: &'a [&'a LoggedMove],
        out: &'a mut Out,
    ) -> BoxFuture<'a, Result<(), Error>> {
        moves.iter().for_each(|logged| (self.0)(logged, out));
        Box::pin(ready(Ok(())))
    }
}

/// The stream that the request asks for, as far as `who` may see it, in these words.
pub(crate) async fn moves(ask: &Ask, who: &Principal, words: Words) -> Result<Reply, Refusal> {
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
    let key = Key { words: words.name, scope: auth::scope(who) };
    let (view, number) = ask.app.editions.view(key, words.teller);
    let follower = Follower {
        listening: ask.engine().listen(view.scope().tenant()),
        turns: Turns::new(ask.app.editions.epoch, number),
        engine: ask.engine().clone(),
        token: who.token,
        view,
        position,
        is_behind: position < newest,
        greeting: Some(greeting.0.into()),
        slot,
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

/// What a stream goes on with.
enum Next {
    Send(Piece),
    Beat,
    End,
}

impl Follower {
    /// The next piece to send; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(greeting) = self.greeting.take() {
            return Some(greeting);
        }
        let (engine, token) = (self.engine.clone(), self.token);
        let stopping = engine.stopping();
        let beat_at = Instant::now() + BEAT;
        loop {
            let next = tokio::select! {
                biased;
                () = stopping.cancelled() => Next::End,
                next = self.fetched(beat_at) => next,
                () = engine.token_ended(token) => Next::End,
            };
            let bytes = match next {
                Next::Send(piece) => {
                    (self.position, self.is_behind) = (piece.until, piece.is_more);
                    piece.bytes
                }
                Next::Beat => Bytes::from_static(b": beat\n\n"),
                Next::End => return None,
            };
            // What moved while the token was revoked is not shown either.
            if !bytes.is_empty() {
                return self.may_go_on().await.then_some(bytes);
            }
            // Passing over much that is others' takes nobody's time for long.
            tokio::task::yield_now().await;
        }
    }

    /// Waits for moves, and for this stream's turn to look for them.
    async fn fetched(&mut self, beat_at: Instant) -> Next {
        loop {
            let now = Instant::now();
            if now >= beat_at {
                return Next::Beat;
            }
            let turn = self.turns.next(now, self.slot.of_tenant());
            let turn = turn.filter(|_| !self.is_behind);
            if let Some(turn) = turn {
                sleep_until(turn).await;
            }
            self.turns.takes(Instant::now());
            self.listening.looks();
            let begun = self.view.begun();
            match self.view.after(&self.engine, self.position, begun, turn.is_some()).await {
                Ok(Some(piece)) => return Next::Send(piece),
                Ok(None) => self.is_behind = false,
                Err(_) => return Next::End,
            }
            tokio::select! {
                biased;
                () = self.listening.news() => {}
                () = sleep_until(beat_at) => return Next::Beat,
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
