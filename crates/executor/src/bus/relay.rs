//! One relay: reads the stream from where its subscription stands, sends what is asked for in
//! order, and notes how far the receiver has come. What is not noted yet is sent again by whoever
//! goes on, under the same ids; nothing is noted before it was taken.

use super::event::Event;
use super::nats::Nats;
use super::{BusConfig, Means};
use crate::limits::{HOLD, HOLD_RENEWED, NOTED_EVERY, RELAY_PAGE, TAKEN_WITHIN};
use crate::webhook::{Letter, Postbox, Secret, Undelivered};
use mainspring_engine::Engine;
use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::subscription::{
    EventName, Gap, Subscription, SubscriptionCommand, Target, wait_ms,
};
use mainspring_kernel::{Entity, EntityId, TenantId, Timestamp};
use mainspring_store::{Error, LoggedMove, MovesPage};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Why a relay ends.
enum End {
    /// The subscription rests, is gone, or somebody else sends for it.
    Over,
    /// The store does not answer: another relay begins when it does.
    Store(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        End::Store(error)
    }
}

/// The way out.
enum Outlet {
    Webhook { url: Box<str>, postbox: Box<Postbox> },
    Nats { subject: Box<str>, nats: Option<Box<Nats>> },
}

/// Sends for one subscription.
pub(super) struct Relay {
    engine: Engine,
    means: Arc<Means>,
    stop: CancellationToken,
    /// Rung when subscriptions have changed here.
    changed: watch::Receiver<u64>,
    id: EntityId,
    tenant: TenantId,
    /// As it was when it was last looked at.
    subscription: Subscription,
    outlet: Outlet,
    /// Everything up to here is settled.
    position: u64,
    /// Taken since the last note.
    delivered: u64,
    failures: u32,
    noted_at: Instant,
    /// Whether there is something to note.
    is_ahead: bool,
    /// Until when nobody else sends.
    held_until: Timestamp,
}

impl Relay {
    pub(super) fn new(
        engine: Engine,
        means: Arc<Means>,
        entity: &Entity,
        stop: CancellationToken,
    ) -> Option<Self> {
        let Body::Subscription(subscription) = &entity.body else { return None };
        let outlet = outlet(&means, &subscription.spec.target)?;
        Some(Relay {
            changed: engine.bus_changed(),
            engine,
            means,
            stop,
            id: entity.id,
            tenant: entity.tenant.clone(),
            outlet,
            position: subscription.position,
            delivered: 0,
            failures: subscription.failures,
            noted_at: Instant::now(),
            is_ahead: false,
            held_until: Timestamp::EPOCH,
            subscription: (**subscription).clone(),
        })
    }

    pub(super) async fn run(mut self) {
        match self.work().await {
            Ok(()) | Err(End::Over) | Err(End::Store(Error::Stopped | Error::Away(_))) => {}
            Err(End::Store(error)) => {
                let subscription = self.id.to_string();
                tracing::warn!(%error, subscription, "a relay gives up; another one begins soon");
            }
        }
    }

    async fn work(&mut self) -> Result<(), End> {
        self.take().await?;
        loop {
            if self.stop.is_cancelled() {
                return self.let_go().await;
            }
            if self.changed.has_changed().unwrap_or(false) {
                self.look().await?;
            }
            let page = self.page().await?;
            let is_lost = page.newest < self.position;
            if page.has_gap || is_lost {
                self.pass_over(&page).await?;
            }
            for logged in &page.moves {
                if !self.pass_on(logged).await? {
                    break;
                }
            }
            self.note_in_time().await?;
        }
    }

    /// Becomes the one who sends.
    async fn take(&mut self) -> Result<(), End> {
        let now = self.engine.now();
        let command = SubscriptionCommand::Take {
            id: self.id,
            holder: self.means.holder,
            for_ms: millis(HOLD),
            is_alone: self.means.config.is_alone,
        };
        // Somebody else was faster, or it rests.
        self.engine.execute_one(command.into()).await?.map_err(|_| End::Over)?;
        self.held_until = now + HOLD;
        self.noted_at = Instant::now();
        self.look().await?;
        self.position = self.subscription.position;
        self.failures = self.subscription.failures;
        Ok(())
    }

    /// Looks at the subscription anew.
    async fn look(&mut self) -> Result<(), End> {
        self.changed.mark_unchanged();
        let entity = self.engine.entity(self.id).await?.ok_or(End::Over)?;
        let Body::Subscription(subscription) = entity.body else { return Err(End::Over) };
        if subscription.hold.is_none_or(|hold| hold.holder != self.means.holder) {
            return Err(End::Over);
        }
        let is_paused = subscription.pause.is_some();
        if subscription.failures == 0 {
            self.failures = 0;
        }
        self.subscription = *subscription;
        if is_paused {
            self.let_go().await?;
            return Err(End::Over);
        }
        Ok(())
    }

    /// The next events, or none once there is something else to do.
    async fn page(&mut self) -> Result<MovesPage, End> {
        let every = if self.is_ahead { NOTED_EVERY } else { HOLD_RENEWED };
        let wait = every.saturating_sub(self.noted_at.elapsed());
        let is_for_all = self.subscription.spec.filter.is_for_all;
        let tenant = (!is_for_all).then_some(&self.tenant);
        let nothing = MovesPage { moves: Vec::new(), has_gap: false, newest: u64::MAX };
        tokio::select! {
            page = self.engine.moves_for(tenant, self.position, RELAY_PAGE, wait) => Ok(page?),
            () = self.stop.cancelled() => Ok(nothing),
            _ = self.changed.changed() => {
                self.changed.mark_changed();
                Ok(nothing)
            }
        }
    }

    /// Sends one event if it is asked for. Whether to go on with the next one.
    async fn pass_on(&mut self, logged: &LoggedMove) -> Result<bool, End> {
        if self.stop.is_cancelled() || self.changed.has_changed().unwrap_or(false) {
            return Ok(false);
        }
        let filter = &self.subscription.spec.filter;
        let is_ours = (filter.is_for_all || logged.tenant == self.tenant)
            && filter.admits(EventName::of(&logged.transition), &logged.job_type, &logged.queue);
        if is_ours {
            let event = Event::of(logged);
            // Every field of it is text or a number.
            let event = event.map_err(|error| Error::Broken(error.to_string().into()))?;
            if !self.deliver(&event).await? {
                return Ok(false);
            }
            self.delivered += 1;
        }
        self.position = logged.position;
        self.is_ahead = true;
        self.note_in_time().await?;
        Ok(true)
    }

    /// Sends one event until it is taken. Not, if something else comes first.
    async fn deliver(&mut self, event: &Event) -> Result<bool, End> {
        loop {
            // Nobody else may come to send while we wait for the answer.
            if self.held_until <= self.engine.now() + TAKEN_WITHIN {
                self.note(None, None).await?;
            }
            let stop = self.stop.clone();
            let sent = tokio::select! {
                sent = tokio::time::timeout(TAKEN_WITHIN, self.send(event)) => sent,
                () = stop.cancelled() => return Ok(false),
            };
            let sent = sent.unwrap_or_else(|_| {
                let secs = TAKEN_WITHIN.as_secs();
                Err(Undelivered::Failed(format!("the receiver did not answer within {secs} s")))
            });
            match sent {
                Ok(()) => {
                    self.failures = 0;
                    return Ok(true);
                }
                Err(Undelivered::Gone) => return self.give_up().await,
                Err(Undelivered::Failed(why)) => {
                    self.failures = self.failures.saturating_add(1);
                    self.note(Some(why.into()), None).await?;
                    if !self.rest().await? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    async fn send(&mut self, event: &Event) -> Result<(), Undelivered> {
        let now = self.engine.now();
        match &mut self.outlet {
            Outlet::Webhook { url, postbox } => {
                let secrets: Vec<Secret> =
                    self.subscription.secrets(now).map(Secret::from).collect();
                let at = now.0.div_euclid(1_000_000);
                let letter = Letter { id: &event.id, at, body: &event.body, secrets: &secrets };
                postbox.send(url, &letter).await
            }
            Outlet::Nats { subject, nats: Some(nats) } => {
                let subject = format!("{subject}.{}", event.name);
                nats.publish(&subject, &event.id, &event.body).await.map_err(Undelivered::Failed)
            }
            Outlet::Nats { nats: None, .. } => {
                let why = "this server knows no NATS server; [nats] url names one";
                Err(Undelivered::Failed(why.to_owned()))
            }
        }
    }

    /// Waits before the next try. Whether there should be one.
    async fn rest(&mut self) -> Result<bool, End> {
        let until = Instant::now() + Duration::from_millis(wait_ms(self.failures));
        loop {
            let renew_at = self.noted_at + HOLD_RENEWED;
            tokio::select! {
                () = self.stop.cancelled() => return Ok(false),
                _ = self.changed.changed() => {
                    let failures = self.failures;
                    self.look().await?;
                    if self.failures < failures {
                        // It was resumed: not when we like, but now.
                        return Ok(true);
                    }
                }
                () = tokio::time::sleep_until(until.min(renew_at)) => {}
            }
            if until <= Instant::now() {
                return Ok(true);
            }
            if renew_at <= Instant::now() {
                self.note(None, None).await?;
                self.look().await?;
            }
        }
    }

    /// The receiver is gone for good, and says so itself.
    async fn give_up(&mut self) -> Result<bool, End> {
        self.note(Some("the receiver answered 410: it is gone".into()), None).await?;
        let note = Some("the receiver said that it is gone".into());
        let pause = SubscriptionCommand::Pause { id: self.id, by: None, note };
        let _ = self.engine.execute_one(pause.into()).await?;
        self.let_go().await?;
        Err(End::Over)
    }

    /// Goes on behind events that are no longer kept, and says so.
    async fn pass_over(&mut self, page: &MovesPage) -> Result<(), End> {
        let first = page.moves.first().map(|first| first.position);
        let (from, to) = match page.newest < self.position {
            // The store has been set back; what is to come has positions that were there before.
            true => (page.newest + 1, page.newest),
            false => (self.position + 1, first.map_or(page.newest, |first| first - 1)),
        };
        let id = self.id.to_string();
        tracing::warn!(subscription = id, from, to, "events were dropped before they were sent");
        let event = Event::gap(&id, (from, to), self.engine.now());
        let event = event.map_err(|error| Error::Broken(error.to_string().into()))?;
        if self.deliver(&event).await? {
            self.position = to;
            self.is_ahead = true;
            let gap = Gap { from, to, at: self.engine.now() };
            self.note(None, Some(gap)).await?;
        }
        Ok(())
    }

    async fn note_in_time(&mut self) -> Result<(), End> {
        let since = self.noted_at.elapsed();
        if self.is_ahead && since >= NOTED_EVERY {
            self.note(None, None).await?;
        } else if since >= HOLD_RENEWED {
            self.note(None, None).await?;
            // Other servers may have changed it.
            self.look().await?;
        }
        Ok(())
    }

    /// Notes where it stands.
    async fn note(&mut self, trouble: Option<Box<str>>, gap: Option<Gap>) -> Result<(), End> {
        self.note_for(HOLD, trouble, gap).await
    }

    async fn let_go(&mut self) -> Result<(), End> {
        self.note_for(Duration::ZERO, None, None).await
    }

    async fn note_for(
        &mut self,
        hold: Duration,
        trouble: Option<Box<str>>,
        gap: Option<Gap>,
    ) -> Result<(), End> {
        let now = self.engine.now();
        let command = SubscriptionCommand::Note {
            id: self.id,
            holder: self.means.holder,
            for_ms: millis(hold),
            position: self.position,
            delivered: self.delivered,
            trouble,
            gap,
        };
        // Whoever has it now sends what was not noted again.
        self.engine.execute_one(command.into()).await?.map_err(|_| End::Over)?;
        (self.delivered, self.is_ahead) = (0, false);
        (self.held_until, self.noted_at) = (now + hold, Instant::now());
        Ok(())
    }
}

/// The way out; a consumer comes for what it wants.
fn outlet(means: &Means, target: &Target) -> Option<Outlet> {
    let BusConfig { allows_private, nats, .. } = &means.config;
    match target {
        Target::Webhook { url } => {
            let postbox = Box::new(Postbox::new(means.exchange.clone(), *allows_private));
            Some(Outlet::Webhook { url: url.clone(), postbox })
        }
        Target::Nats { subject } => {
            let nats = nats
                .clone()
                .map(|server| Box::new(Nats::new(server, means.exchange.clone(), means.holder)));
            Some(Outlet::Nats { subject: subject.clone(), nats })
        }
        Target::Consumer { .. } => None,
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
