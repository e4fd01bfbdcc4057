//! Traces of jobs for a collector, by OTLP over HTTP in JSON. Jobs that have ended are found in the
//! stream, from a position that is noted once the collector has taken what is before it; so a
//! collector that is away misses nothing that the stream keeps, and no commit waits for one. Of
//! several servers one sends: the position is a consumer (`kernel/src/entity/subscription.rs`),
//! and who sends holds it.

use super::spans::{Span, body, spans};
use crate::limits::{HOLD, HOLD_RENEWED, LOOK_AGAIN, NOTED_EVERY, RELAY_PAGE, TAKEN_WITHIN};
use crate::webhook::{Exchange, Postbox};
use mainspring_engine::Engine;
use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::alert::SERVER_TENANT;
use mainspring_kernel::entity::subscription::{
    Filter, Gap, SubscriptionCommand, SubscriptionSpec, Target, of_consumer, wait_ms,
};
use mainspring_kernel::{EntityId, Rejection, TenantId, Timestamp, UserId};
use mainspring_store::{Error, MovesPage};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Where traces go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Otlp {
    /// The URL that takes them.
    pub url: String,
    /// What is sent with every request.
    pub headers: Vec<(String, String)>,
    /// What this service is called.
    pub service: String,
}

/// The name of the consumer.
const NAME: &str = "otlp";

/// What sends traces.
pub(super) struct Tracer {
    engine: Engine,
    otlp: Otlp,
    postbox: Postbox,
    holder: u128,
    is_alone: bool,
    stop: CancellationToken,
    id: EntityId,
    position: u64,
    /// Jobs told of since the last note.
    delivered: u64,
    failures: u32,
}

/// Why it does not go on for the time being.
enum End {
    /// Somebody else sends, or it is told to rest.
    NotOurs,
    /// The store cannot be asked.
    Store(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        End::Store(error)
    }
}

impl Tracer {
    pub(super) fn new(
        engine: Engine,
        otlp: Otlp,
        (exchange, holder, is_alone): (Exchange, u128, bool),
        stop: CancellationToken,
    ) -> Self {
        let id = of_consumer(&tenant(), "", NAME);
        // Whoever configures a collector knows where it is.
        let postbox = Postbox::new(exchange, true);
        Tracer {
            engine,
            otlp,
            postbox,
            holder,
            is_alone,
            stop,
            id,
            position: 0,
            delivered: 0,
            failures: 0,
        }
    }

    /// Runs until it is told to stop.
    pub(super) async fn run(mut self) {
        while !self.stop.is_cancelled() {
            let pause = match self.work().await {
                Ok(()) => return,
                Err(End::NotOurs) => HOLD_RENEWED,
                Err(End::Store(Error::Stopped)) => return,
                Err(End::Store(error)) => {
                    if !matches!(error, Error::Away(_)) {
                        tracing::warn!(%error, "traces could not be sent");
                    }
                    LOOK_AGAIN
                }
            };
            self.rest(pause).await;
        }
    }

    async fn rest(&self, pause: Duration) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    async fn work(&mut self) -> Result<(), End> {
        self.take().await?;
        let mut noted_at = Instant::now();
        let mut noted = self.position;
        while !self.stop.is_cancelled() {
            let every = if noted == self.position { HOLD_RENEWED } else { NOTED_EVERY };
            let wait = every.saturating_sub(noted_at.elapsed());
            let stop = self.stop.clone();
            let page = tokio::select! {
                page = self.engine.moves_after(self.position, RELAY_PAGE, wait) => page?,
                () = stop.cancelled() => break,
            };
            if page.has_gap || page.newest < self.position {
                self.pass_over(&page).await?;
            }
            if self.send(&page).await? {
                self.position = page.moves.last().map_or(self.position, |it| it.position);
            }
            if noted_at.elapsed() >= every || self.failures > 0 {
                self.note(HOLD, None).await?;
                (noted_at, noted) = (Instant::now(), self.position);
            }
        }
        self.note(Duration::ZERO, None).await
    }

    /// Becomes the one who sends, from where the last one stood.
    async fn take(&mut self) -> Result<(), End> {
        if self.engine.entity(self.id).await?.is_none() {
            self.make().await?;
        }
        let (id, holder, is_alone) = (self.id, self.holder, self.is_alone);
        let take = SubscriptionCommand::Take { id, holder, for_ms: millis(HOLD), is_alone };
        self.engine.execute_one(take.into()).await?.map_err(|_| End::NotOurs)?;
        let entity = self.engine.entity(self.id).await?.ok_or(End::NotOurs)?;
        let Body::Subscription(it) = entity.body else { return Err(End::NotOurs) };
        self.position = it.position;
        self.delivered = 0;
        Ok(())
    }

    /// Begins with what ends from now on.
    async fn make(&self) -> Result<(), End> {
        let newest = self.engine.moves_after(i64::MAX as u64, 1, Duration::ZERO).await?.newest;
        let spec = SubscriptionSpec {
            name: NAME.into(),
            target: Target::Consumer { name: NAME.into() },
            filter: Filter { is_for_all: true, ..Filter::default() },
        };
        let create = SubscriptionCommand::Create {
            id: self.id,
            tenant: tenant(),
            owner: UserId::stored("mainspring".into()),
            spec: Box::new(spec),
            secret: None,
            position: newest,
        };
        match self.engine.execute_one(create.into()).await? {
            Ok(_) | Err(Rejection::EntityExists { .. }) => Ok(()),
            Err(_) => Err(End::NotOurs),
        }
    }

    /// Sends the jobs that ended in a stretch of the stream; whether it was taken.
    async fn send(&mut self, page: &MovesPage) -> Result<bool, End> {
        let mut all: Vec<Span> = Vec::new();
        let mut jobs = 0;
        for logged in page.moves.iter().filter(|it| it.transition.to.is_terminal()) {
            // One that is no longer kept cannot be told of.
            if let Some(found) = self.engine.job(logged.job).await? {
                all.extend(spans(&found));
                jobs += 1;
            }
        }
        if all.is_empty() {
            return Ok(true);
        }
        let headers = self.otlp.headers.iter().map(|(name, value)| (&**name, value.clone()));
        let headers: Vec<(&str, String)> = headers.collect();
        let bytes = body(&self.otlp.service, &all);
        let sent = self.postbox.post(&self.otlp.url, &headers, &bytes);
        let outcome = tokio::time::timeout(TAKEN_WITHIN, sent).await;
        match outcome.unwrap_or_else(|_| Err("it takes too long".to_owned())) {
            Ok(200..=299) => {
                self.delivered += jobs;
                self.failures = 0;
                return Ok(true);
            }
            // What it cannot read now it will not read later.
            Ok(status @ (400 | 413 | 415 | 422)) => {
                tracing::warn!(status, "the collector refuses traces; they are passed over");
                return Ok(true);
            }
            Ok(status) => self.trouble(&format!("the collector answered {status}")),
            Err(why) => self.trouble(&why),
        }
        self.rest(Duration::from_millis(wait_ms(self.failures))).await;
        Ok(false)
    }

    fn trouble(&mut self, why: &str) {
        if self.failures == 0 {
            tracing::warn!(why, "traces cannot be sent; they wait in the stream");
        }
        self.failures = self.failures.saturating_add(1);
    }

    /// What the stream no longer keeps cannot be told of.
    async fn pass_over(&mut self, page: &MovesPage) -> Result<(), End> {
        let to = match page.moves.first() {
            Some(first) => first.position - 1,
            None => page.newest,
        };
        let from = self.position + 1;
        self.position = to;
        let gap = (from <= to).then_some(Gap { from, to, at: Timestamp::EPOCH });
        self.note(HOLD, gap).await
    }

    /// Notes where it stands; no hold lets go of it.
    async fn note(&mut self, hold: Duration, gap: Option<Gap>) -> Result<(), End> {
        let note = SubscriptionCommand::Note {
            id: self.id,
            holder: self.holder,
            for_ms: millis(hold),
            position: self.position,
            delivered: self.delivered,
            trouble: None,
            gap,
        };
        self.engine.execute_one(note.into()).await?.map_err(|_| End::NotOurs)?;
        self.delivered = 0;
        Ok(())
    }
}

fn tenant() -> TenantId {
    TenantId::stored(SERVER_TENANT.into())
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
