//! Tells of alerts. Messages to the outside are jobs: each time an alert is raised or cleared there
//! is one of the type `mainspring.alert`, with the alert as its payload. If the configuration names
//! a receiver it is sent like any job of the mode `webhook`, signed, and tried again by the rules;
//! otherwise it has ended as it is made, and only the stream tells of it.
//!
//! The key of such a job follows from what it tells, so whoever looks and however often, there is
//! one. A hint makes it quick; looking now and then makes it sure.

use crate::limits::{
    ALERT_PAGES_MAX, ALERTS_GATHERED, ALERTS_LOOKED_AT, ALERTS_LOOKED_AT_EVERY, ALERTS_TOLD_WITHIN,
    ALERTS_UNTAKEN_MAX,
};
use mainspring_engine::Engine;
use mainspring_kernel::command::{Ended, Submit};
use mainspring_kernel::entity::alert::{ALERT_TYPE, Alert, AlertState, Milli};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::idempotency::alert_key;
use mainspring_kernel::{Entity, EntityId, JobType, StateName, TenantId, Timestamp, UserId};
use mainspring_store::{EntityFilter, Error, JobFilter, Scope};
use mainspring_worker::Time;
use serde::Serialize;
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;

/// What tells of alerts.
pub(super) struct Herald {
    engine: Engine,
    is_sent: bool,
    /// What was told of each last.
    told: HashMap<EntityId, (u32, bool)>,
}

/// How many more may be told of each tenant, as far as it was looked up.
type Room = HashMap<TenantId, usize>;

/// What a receiver is told.
#[derive(Serialize)]
struct Message<'a> {
    event: &'static str,
    alert_id: String,
    rule: &'static str,
    severity: &'static str,
    state: &'static str,
    tenant_id: &'a str,
    subject: Option<&'a str>,
    message: &'a str,
    value: f64,
    threshold: f64,
    count: u32,
    raised_at: Time,
    acknowledged_by: Option<&'a str>,
    cleared_at: Option<Time>,
}

impl Herald {
    pub(super) fn new(engine: Engine, is_sent: bool) -> Self {
        Herald { engine, is_sent, told: HashMap::new() }
    }

    /// Runs until `stop`.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut changed = self.engine.alerts_changed();
        loop {
            changed.mark_unchanged();
            match self.look().await {
                Ok(()) => {}
                Err(Error::Stopped) => return,
                Err(Error::Away(_)) => {}
                Err(error) => tracing::warn!(%error, "alerts could not be told of"),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                _ = changed.changed() => tokio::time::sleep(ALERTS_GATHERED).await,
                () = tokio::time::sleep(ALERTS_LOOKED_AT_EVERY) => {}
            }
        }
    }

    /// Tells of every alert that changed lately and was not told of.
    async fn look(&mut self) -> Result<(), Error> {
        let (mut seen, mut room) = (HashMap::new(), Room::new());
        for state in AlertState::ALL {
            let filter = EntityFilter {
                state: Some(state.as_str().to_owned()),
                ..EntityFilter::of(Kind::Alert, Scope::All)
            };
            let mut before = None;
            for _ in 0..ALERT_PAGES_MAX {
                let page = self.engine.entities(&filter, before, ALERTS_LOOKED_AT).await?;
                for entity in &page.items {
                    let Body::Alert(alert) = &entity.body else { continue };
                    let news = (alert.count, alert.cleared_at.is_some());
                    if self.told.get(&entity.id) == Some(&news)
                        || self.tell(entity, alert, &mut room).await?
                    {
                        seen.insert(entity.id, news);
                    }
                }
                before = page.next;
                if before.is_none() {
                    break;
                }
            }
        }
        // What is no more is not remembered.
        self.told = seen;
        Ok(())
    }

    /// Tells of one; whether that is done with.
    async fn tell(&self, entity: &Entity, alert: &Alert, room: &mut Room) -> Result<bool, Error> {
        let at = alert.cleared_at.unwrap_or(alert.raised_at);
        if self.engine.now().since(at) > ALERTS_TOLD_WITHIN {
            return Ok(true);
        }
        if !self.has_room(&entity.tenant, room).await? {
            return Ok(false);
        }
        let event = if alert.cleared_at.is_some() { "alert.cleared" } else { "alert.raised" };
        let key = format!("{}:{}:{event}", entity.id, alert.count);
        let Ok(payload) = serde_json::to_string(&message(event, entity, alert)) else {
            return Ok(true);
        };
        let job_type = JobType::stored(ALERT_TYPE.into());
        let user = UserId::stored("mainspring".into());
        let wish = Submit {
            payload: payload.into(),
            idempotency: Some(Box::new(alert_key(&entity.tenant, &key))),
            subject: Some(entity.id.to_string().into()),
            ended: (!self.is_sent).then(|| Box::new(Ended::Well { result: None })),
            ..Submit::plain(entity.tenant.clone(), user, job_type)
        };
        match self.engine.submit(wish).await? {
            Ok(_) => Ok(true),
            Err(no) => {
                tracing::warn!(%no, alert = %entity.id, "an alert could not be told of");
                Ok(false)
            }
        }
    }

    /// Whether one more may wait to be taken. The tenant's backlog does not bound these.
    async fn has_room(&self, tenant: &TenantId, room: &mut Room) -> Result<bool, Error> {
        if !self.is_sent {
            return Ok(true);
        }
        if !room.contains_key(tenant) {
            let mut untaken = 0;
            for state in [StateName::Queued, StateName::Running, StateName::Retrying] {
                let filter = JobFilter {
                    job_type: Some(JobType::stored(ALERT_TYPE.into())),
                    state: Some(state),
                    ..JobFilter::of(Scope::Tenant(tenant.clone()))
                };
                untaken += self.engine.count_jobs(&filter, ALERTS_UNTAKEN_MAX).await?;
            }
            room.insert(tenant.clone(), ALERTS_UNTAKEN_MAX.saturating_sub(untaken));
        }
        let left = room.get_mut(tenant).map(|left| {
            let had = *left;
            *left = had.saturating_sub(1);
            had
        });
        Ok(left.is_some_and(|left| left > 0))
    }
}

fn message<'a>(event: &'static str, entity: &'a Entity, alert: &'a Alert) -> Message<'a> {
    let number = |milli: Milli| milli.0 as f64 / 1_000.0;
    let time = |at: Timestamp| Time(at.0);
    Message {
        event,
        alert_id: entity.id.to_string(),
        rule: alert.rule.as_str(),
        severity: alert.rule.severity().as_str(),
        state: alert.state().as_str(),
        tenant_id: entity.tenant.as_str(),
        subject: Some(&*alert.subject).filter(|subject| !subject.is_empty()),
        message: &alert.message,
        value: number(alert.value),
        threshold: number(alert.threshold),
        count: alert.count,
        raised_at: time(alert.raised_at),
        acknowledged_by: alert.acknowledged.as_ref().map(|it| it.by.as_str()),
        cleared_at: alert.cleared_at.map(time),
    }
}
