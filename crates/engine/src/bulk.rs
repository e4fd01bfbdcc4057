//! Bulk operations go on here: what a filter admits is listed a little at a time, and each thing is
//! handed to the kernel, which does it and writes down that it did in one decision
//! (`kernel/src/entity/bulk.rs`). Nothing is kept here: after a crash, and on any other server, it
//! goes on where the operation says.

use crate::engine::{Engine, Shared};
use crate::limits::{
    BULK_BYTES_MAX, BULK_LOOK, BULK_STEP, BULKS_AT_ONCE, CANARY_LOOK, RETRY_AFTER, SLEEP_MAX,
};
use crate::request::{Patience, Request};
use mainspring_kernel::entity::bulk::{
    Bulk, BulkAction, BulkCommand, BulkFilter, BulkStatus, Target,
};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::limits::BULK_MAX;
use mainspring_kernel::rejection::Class;
use mainspring_kernel::{
    Command, DlqId, DlqItem, DlqState, Entity, Job, JobId, Rejection, TenantId, Timestamp, UserId,
};
use mainspring_store::{EntityFilter, Error, ItemFilter, JobFilter, Scope};
use std::sync::Arc;
use std::time::Duration;

/// What a filter admits: how many, and the latest of them.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// How many, counted up to one more than an operation may be about.
    pub matched: u64,
    /// The latest dead letters, if it is about those.
    pub items: Vec<DlqItem>,
    /// The latest jobs, if it is about those.
    pub jobs: Vec<Job>,
}

impl Engine {
    /// What an operation on the things of `tenant` would be about, with `samples` of them; they
    /// are counted up to `most`, if that is less than one operation may be about.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn bulk_preview(
        &self,
        tenant: &TenantId,
        (action, filter): (BulkAction, &BulkFilter),
        (samples, most): (usize, usize),
    ) -> Result<Admitted, Error> {
        let until = filter.until.unwrap_or(Timestamp::MAX);
        let most = most.min(usize::try_from(BULK_MAX).unwrap_or(usize::MAX)) + 1;
        let mut admitted = Admitted { matched: 0, items: Vec::new(), jobs: Vec::new() };
        match action {
            BulkAction::Requeue | BulkAction::Discard => {
                let filter = items_of(tenant, filter, until);
                admitted.matched = self.count_items(&filter, most).await? as u64;
                admitted.items = self.items(&filter, None, samples).await?.items;
            }
            BulkAction::Cancel | BulkAction::Pause | BulkAction::Resume => {
                let filter = jobs_of(tenant, filter, until);
                admitted.matched = self.count_jobs(&filter, most).await? as u64;
                admitted.jobs = self.jobs(&filter, None, samples).await?.items;
            }
        }
        Ok(admitted)
    }
}

fn items_of(tenant: &TenantId, filter: &BulkFilter, until: Timestamp) -> ItemFilter {
    let scope = Scope::Tenant(tenant.clone());
    ItemFilter {
        state: Some(DlqState::Open.as_str().to_owned()),
        job: common(filter, scope),
        signature: filter.signature.as_deref().map(str::to_owned),
        since: filter.since,
        until: Some(until).filter(|until| *until != Timestamp::MAX),
    }
}

fn jobs_of(tenant: &TenantId, filter: &BulkFilter, until: Timestamp) -> JobFilter {
    JobFilter {
        state: filter.state,
        since: filter.since,
        until: Some(until).filter(|until| *until != Timestamp::MAX),
        ..common(filter, Scope::Tenant(tenant.clone()))
    }
}

fn common(filter: &BulkFilter, scope: Scope) -> JobFilter {
    let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
    let label = |(name, value): &(Box<str>, Box<str>)| (name.to_string(), value.to_string());
    JobFilter {
        job_type: filter.job_type.clone(),
        queue: filter.queue.clone(),
        trace_id: text(&filter.trace_id),
        user: filter.user.clone(),
        labels: filter.labels.iter().map(label).collect(),
        error_code: text(&filter.error_code),
        ..JobFilter::of(scope)
    }
}

/// Runs until the engine stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let pause = match turn(&shared).await {
            Ok(pause) => pause,
            Err(Error::Stopped) => return,
            Err(error) => {
                if !matches!(error, Error::Away(_)) {
                    tracing::warn!(%error, "bulk operations could not go on");
                }
                RETRY_AFTER
            }
        };
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = shared.bulks_changed.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Lets every operation go on a little; how long there is nothing to do.
async fn turn(shared: &Arc<Shared>) -> Result<Duration, Error> {
    let mut pause = match shared.config.triggers.look_elsewhere_every {
        // Another server may have died in the middle of one.
        Some(_) => BULK_LOOK,
        None => SLEEP_MAX,
    };
    for status in [BulkStatus::Running, BulkStatus::Canary] {
        let state = Some(status.as_str().to_owned());
        let filter = EntityFilter { state, ..EntityFilter::of(Kind::Bulk, Scope::All) };
        let page = shared.store.entities(&filter, None, BULKS_AT_ONCE).await?;
        for entity in page.items {
            pause = pause.min(go_on(shared, &entity).await?);
        }
    }
    Ok(pause)
}

/// Lets one operation go on a little; when to look at it again.
async fn go_on(shared: &Arc<Shared>, entity: &Entity) -> Result<Duration, Error> {
    let Body::Bulk(bulk) = &entity.body else { return Ok(SLEEP_MAX) };
    match bulk.status {
        BulkStatus::Running => step(shared, entity, bulk).await,
        BulkStatus::Canary => {
            let jobs = bulk.canaries.clone();
            send(shared, vec![BulkCommand::Judge { id: entity.id, jobs }]).await?;
            Ok(CANARY_LOOK)
        }
        BulkStatus::AwaitingApproval | BulkStatus::Stopped | BulkStatus::Done => Ok(SLEEP_MAX),
    }
}

async fn step(shared: &Arc<Shared>, entity: &Entity, bulk: &Bulk) -> Result<Duration, Error> {
    let id = entity.id;
    let mut targets = next(shared, entity, bulk).await?;
    targets.truncate(usize::try_from(bulk.left()).unwrap_or(usize::MAX));
    if targets.is_empty() {
        send(shared, vec![BulkCommand::Finish { id, behind: bulk.cursor }]).await?;
        return Ok(Duration::ZERO);
    }
    let action = bulk.spec.action;
    let steps = targets.into_iter().map(|target| BulkCommand::Step { id, action, target });
    let has_room = send(shared, steps.collect()).await?;
    Ok(if has_room { Duration::ZERO } else { RETRY_AFTER })
}

/// The next things, as many as one commit should take.
async fn next(shared: &Shared, entity: &Entity, bulk: &Bulk) -> Result<Vec<Target>, Error> {
    let Entity { tenant, .. } = entity;
    let (filter, until) = (&bulk.spec.filter, bulk.until());
    match bulk.spec.action {
        BulkAction::Requeue | BulkAction::Discard => {
            let filter = items_of(tenant, filter, until);
            let before = bulk.cursor.map(DlqId);
            let page = shared.store.items(&filter, before, BULK_STEP).await?;
            let (mut some, mut bytes) = (Vec::new(), 0);
            for item in &page.items {
                bytes += item.job.payload.len();
                if bytes > BULK_BYTES_MAX && !some.is_empty() {
                    break;
                }
                some.push(Target::Item(item.id));
            }
            Ok(some)
        }
        BulkAction::Cancel | BulkAction::Pause | BulkAction::Resume => {
            let filter = jobs_of(tenant, filter, until);
            let page = shared.store.jobs(&filter, bulk.cursor.map(JobId), BULK_STEP).await?;
            Ok(page.items.iter().map(|job| Target::Job(job.id)).collect())
        }
    }
}

/// Has the kernel decide; whether there was room for all of it. What nothing can be done about is
/// tried alone, so that it ends its own operation and no other.
async fn send(shared: &Arc<Shared>, commands: Vec<BulkCommand>) -> Result<bool, Error> {
    match ask(shared, &commands).await {
        Err(Error::Busy | Error::NoRoom) => Ok(false),
        Err(error) if error.is_divisible() => {
            for command in commands {
                if let Err(error) = ask(shared, std::slice::from_ref(&command)).await {
                    return give_up(shared, &command, error).await;
                }
            }
            Ok(true)
        }
        told => told,
    }
}

async fn ask(shared: &Arc<Shared>, commands: &[BulkCommand]) -> Result<bool, Error> {
    let commands = commands.iter().cloned().map(Command::from).collect();
    let (mut request, reply) = Request::new(commands, None, &shared.requests);
    request.patience = Patience::ComesAgain;
    shared.requests.send(request).await.map_err(|_| Error::Stopped)?;
    let outcomes = reply.await.map_err(|_| Error::Stopped)??.unpack().outcomes;
    let is_full = |no: &Rejection| matches!(no.class(), Class::Share | Class::Room);
    Ok(!outcomes.iter().any(|outcome| outcome.as_ref().is_err_and(is_full)))
}

/// Ends the operation that the store cannot go on with.
async fn give_up(shared: &Arc<Shared>, at: &BulkCommand, error: Error) -> Result<bool, Error> {
    let BulkCommand::Step { id, target, .. } = at else { return Err(error) };
    if !error.is_divisible() || matches!(error, Error::Busy) {
        return Ok(false);
    }
    tracing::error!(%error, bulk = %id, "a bulk operation cannot go on");
    let why = format!("the store cannot go on at {:032x}", target.bits());
    let by = UserId::stored("mainspring".into());
    ask(shared, &[BulkCommand::Stop { id: *id, by, why: Some(why.into()) }]).await
}

/// Whether an entity is an operation that has something to do.
pub(crate) fn is_going_on(entity: &Entity) -> bool {
    let Body::Bulk(bulk) = &entity.body else { return false };
    matches!(bulk.status, BulkStatus::Running | BulkStatus::Canary)
}
