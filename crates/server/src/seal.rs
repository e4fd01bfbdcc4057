//! Sealing the history of jobs: every so often the digest of all moves since the last time becomes
//! a line of the server's audit trail, so that the chain covers what it has no lines for. A task of
//! its own follows the stream of moves, a page at a time and in no hurry; no commit waits for it.
//!
//! Of several servers one does this: who wrote the last seal goes on. The others look whether it
//! still does. If two seal the same stretch, both seals are right; what could not be written, or
//! was and nobody heard of it, is looked up again: the next stretch begins behind the last line.
//! Read next: `seal/inspect.rs`, which compares.

pub(crate) mod inspect;

use crate::anchor::{hex, unhex};
use crate::app::App;
use crate::audit;
use crate::limits::{SEAL_MOVES_MAX, SEAL_PAGE, SEAL_PAUSE_MS};
use mainspring_engine::Engine;
use mainspring_engine::store::{EntityFilter, Error, Page, Scope};
use mainspring_kernel::entity::alert::SERVER_TENANT;
use mainspring_kernel::entity::audit::AuditEntry;
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::sealing::{Seal, Stretch};
use mainspring_kernel::{Entity, EntityId, Receipt, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What is done, in a line.
pub(crate) const ACTION: &str = "history.seal";
/// What it is done to.
pub(crate) const OBJECT: (&str, &str) = ("history", "moves");

/// A seal as a line of the trail tells it.
#[derive(Serialize, Deserialize)]
struct Told {
    after: u64,
    to: u64,
    moves: u64,
    digest: String,
}

/// What a seal looks like in a line.
pub(crate) fn told(seal: &Seal) -> serde_json::Value {
    let Seal { after, to, moves, digest } = seal;
    let told = Told { after: *after, to: *to, moves: *moves, digest: hex(digest) };
    serde_json::to_value(told).expect("our own shapes are JSON")
}

/// The seal that a line tells of.
fn read(line: &AuditEntry) -> Option<Seal> {
    let told: Told = serde_json::from_str(line.note.after.as_deref()?).ok()?;
    let digest = unhex(&told.digest)?;
    Some(Seal { after: told.after, to: told.to, moves: told.moves, digest })
}

/// Whose trail has the seals.
pub(crate) fn tenant() -> TenantId {
    TenantId::stored(SERVER_TENANT.into())
}

/// Lines of seals, the latest first.
async fn seals(
    engine: &Engine,
    before: Option<EntityId>,
    limit: usize,
) -> Result<Page<Entity, EntityId>, Error> {
    let field = Some(("object_id".to_owned(), OBJECT.1.to_owned()));
    let all = EntityFilter::of(Kind::AuditEntry, Scope::Tenant(tenant()));
    engine.entities(&EntityFilter { field, ..all }, before, limit).await
}

/// The line of a seal, if it is one.
fn line(entity: &Entity) -> Option<&AuditEntry> {
    let Body::AuditEntry(line) = &entity.body else { return None };
    (*line.note.action == *ACTION).then_some(&**line)
}

/// The seal that was written last.
struct Last {
    seq: u64,
    at: Timestamp,
    to: u64,
}

/// Lines in which the last seal is looked for at once: others may be about something of that name.
const LINES_LOOKED_AT: usize = 16;

/// What seals.
struct Sealer {
    app: Arc<App>,
    every: Duration,
    /// The last line that this server wrote.
    own: Option<u64>,
    moved: watch::Receiver<u64>,
}

/// Seals for as long as the server runs.
pub(crate) async fn run(app: Arc<App>) {
    let every = app.config.audit_history_every;
    if every.is_zero() {
        return;
    }
    let moved = app.engine.moved();
    let mut sealer = Sealer { app, every, own: None, moved };
    loop {
        match sealer.go_on().await {
            Ok(()) => {}
            Err(Error::Stopped) => return,
            // In an outage the store tells the log itself, once.
            Err(Error::Away(_)) => sealer.rest(Duration::from_secs(1)).await,
            Err(error) => {
                tracing::warn!(%error, "the history of jobs could not be sealed");
                sealer.rest(sealer.every.min(Duration::from_secs(60))).await;
            }
        }
        if sealer.app.engine.stopping().is_cancelled() {
            return;
        }
    }
}

impl Sealer {
    async fn rest(&self, pause: Duration) {
        let stopping = self.app.engine.stopping();
        tokio::select! {
            () = stopping.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// Follows the stream from the last seal on until the next one is due, and writes it.
    async fn go_on(&mut self) -> Result<(), Error> {
        let last = self.last().await?;
        if let Some(last) = last.as_ref().filter(|last| self.own != Some(last.seq))
            && self.is_recent(last.at)
        {
            // Somebody else does it, or did before this server started.
            self.rest(self.every).await;
            return Ok(());
        }
        let stretch = self.follow(Stretch::after(last.map_or(0, |last| last.to))).await?;
        match stretch {
            Some(stretch) => self.write(&stretch.seal()).await,
            None => Ok(()),
        }
    }

    /// Whether whoever wrote a seal then may be expected to write the next one. One that is ahead
    /// of the clock tells that the clock was set back: how old it is nobody knows.
    fn is_recent(&self, at: Timestamp) -> bool {
        let now = self.app.engine.now();
        at <= now + self.every && now.since(at) < self.every * 2
    }

    async fn last(&self) -> Result<Option<Last>, Error> {
        let mut before = None;
        loop {
            let page = seals(&self.app.engine, before, LINES_LOOKED_AT).await?;
            let last = |entity: &Entity| {
                let line = line(entity)?;
                Some(Last { seq: line.seq, at: line.at, to: read(line)?.to })
            };
            if let Some(last) = page.items.iter().find_map(last) {
                return Ok(Some(last));
            }
            match page.next {
                Some(next) => before = Some(next),
                None => return Ok(None),
            }
        }
    }

    /// Takes in what has moved since, until it is time; nothing if the server stops before.
    async fn follow(&mut self, mut stretch: Stretch) -> Result<Option<Stretch>, Error> {
        let stopping = self.app.engine.stopping();
        let mut since = Instant::now();
        while !stopping.is_cancelled() {
            self.moved.mark_unchanged();
            let began = Instant::now();
            let page = self.app.engine.steps_after(stretch.position(), SEAL_PAGE).await?;
            if page.has_gap || page.newest < stretch.position() {
                // What is no longer kept cannot be sealed. What is already in goes on its own.
                if stretch.moves() > 0 {
                    return Ok(Some(stretch));
                }
                let first = page.steps.first().map_or(page.newest, |(at, ..)| at - 1);
                stretch = Stretch::after(first);
            }
            if stretch.moves() == 0 {
                since = Instant::now();
            }
            page.steps.iter().for_each(|(at, job, step)| stretch.add(*at, *job, step.as_ref()));
            let is_due = since.elapsed() >= self.every && stretch.moves() > 0;
            let is_large = stretch.moves() >= SEAL_MOVES_MAX && since.elapsed() >= self.every / 10;
            if is_due || is_large {
                return Ok(Some(stretch));
            }
            match stretch.position() < page.newest {
                // Four parts of five are for others.
                true => self.rest(began.elapsed() * 4).await,
                false => self.wait(stretch.moves() > 0, since).await,
            }
        }
        Ok(None)
    }

    /// Waits for moves, and a moment more, so that many are read at once; not longer than until the
    /// seal is due.
    async fn wait(&mut self, has_moves: bool, since: Instant) {
        let stopping = self.app.engine.stopping();
        let due = since + self.every;
        let pause = Duration::from_millis(SEAL_PAUSE_MS).min(self.every / 2);
        let more = async {
            let _ = self.moved.changed().await;
            tokio::time::sleep(pause).await;
        };
        let is_due = async {
            match has_moves {
                true => tokio::time::sleep_until(due).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stopping.cancelled() => {}
            () = more => {}
            () = is_due => {}
        }
    }

    async fn write(&mut self, seal: &Seal) -> Result<(), Error> {
        let line = audit::of_seal(&self.app, seal);
        match self.app.engine.execute_one(line).await? {
            Ok(Receipt::Audited { seq, hash }) => {
                self.app.anchor.note(&tenant(), seq, hash);
                self.own = Some(seq);
                Ok(())
            }
            Ok(receipt) => Err(Error::Broken(format!("a seal became {receipt:?}").into())),
            Err(no) => Err(Error::Broken(format!("a seal was refused: {no}").into())),
        }
    }
}

#[cfg(test)]
mod tests;
