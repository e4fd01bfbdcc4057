//! The stream of moves. It holds a position and nothing else: pages are fetched as the client
//! reads, so a slow client costs no memory, and one that comes back goes on where it was.

use super::view;
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
    position: u64,
    /// Something to say before the first move.
    greeting: Option<Bytes>,
    /// One of the streams that may be open.
    _slot: Share,
}

pub(super) async fn follow(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&["after"])?;
    let slot = ask.app.streams.take(Holder::of(&who), 1).map_err(refusal::too_many_streams)?;
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
        scope: auth::scope(&who),
        token: who.token,
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
                    write_move(logged, &mut out);
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

fn write_move(logged: &LoggedMove, out: &mut Out) {
    out.raw("id: ");
    out.number(logged.position);
    out.raw("\nevent: job_moved\ndata: {\"position\":");
    out.number(logged.position);
    out.raw(",\"job_id\":");
    out.job_id(logged.job);
    out.raw(",\"tenant_id\":");
    out.string(logged.tenant.as_str());
    out.raw(",\"user_id\":");
    out.string(logged.user.as_str());
    out.raw(",\"job_type\":");
    out.string(logged.job_type.as_str());
    out.raw(",");
    view::transition(logged.job, &logged.transition, &logged.trace_id, out);
    out.raw("}\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::evolve::Transition;
    use mainspring_kernel::job::Actor;
    use mainspring_kernel::{JobId, JobType, StateName, TenantId, Timestamp, UserId};

    #[test]
    fn a_move_is_one_line_of_the_shared_type() {
        let logged = LoggedMove {
            position: 7,
            job: JobId(3),
            tenant: TenantId::new("t").unwrap(),
            user: UserId::new("u").unwrap(),
            job_type: JobType::new("j").unwrap(),
            trace_id: "line\nbreak".into(),
            transition: Transition {
                seq: 1,
                from: None,
                to: StateName::Queued,
                at: Timestamp(0),
                attempt: 1,
                reason: None,
                actor: Actor::Reaper,
            },
        };
        let mut out = Out::default();
        write_move(&logged, &mut out);
        let text = String::from_utf8(out.0).unwrap();
        let data = text.strip_prefix("id: 7\nevent: job_moved\ndata: ").unwrap();
        let data = data.strip_suffix("\n\n").unwrap();
        assert!(!data.contains('\n'));
        let read: mainspring_api::event::JobMoved = serde_json::from_str(data).unwrap();
        assert_eq!((read.position, &*read.trace_id), (7, "line\nbreak"));
        let again = serde_json::to_value(&read).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(data).unwrap(), again);
    }
}
