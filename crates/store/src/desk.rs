//! From a command to what it has to look at, and from a desk to the facts of a decision. Engine,
//! simulator and tests all decide by this one way.

use crate::read::Held;
use crate::store::{Desk, Needs};
use mainspring_kernel::backlog::held_bytes;
use mainspring_kernel::entity::EntityCommand;
use mainspring_kernel::entity::audit::Seen;
use mainspring_kernel::entity::wait::{Member, member_id};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::governance::{self, Gate, Governance};
use mainspring_kernel::registry::TenantShare;
use mainspring_kernel::shared_time::{Jump, Silence};
use mainspring_kernel::{
    Backlog, Command, Decision, Entity, Event, Facts, JobId, QueueSpec, Rejection, TenantId,
    Timestamp, decide, together,
};

/// What a decision goes by that is not on the desk.
pub struct Circumstances<'a> {
    /// The instant of the commit.
    pub now: Timestamp,
    /// Makes the id of a new job.
    pub fresh_id: &'a mut dyn FnMut() -> u128,
    /// Makes the secret of a new lease.
    pub fresh_secret: &'a mut dyn FnMut() -> u128,
    /// Whether types must be registered.
    pub are_types_strict: bool,
    /// The last spans over which the clock was set forward.
    pub jumps: &'a [Jump],
    /// The last spans in which no server could reach the store.
    pub silences: &'a [Silence],
    /// What the jobs of a tenant, and all jobs, may take up before they have ended.
    pub backlog_max: (u64, u64),
    /// What is configured for governed objects.
    pub governance: Governance,
}

/// What commands have to look at.
pub fn needs_of<'a>(commands: impl IntoIterator<Item = &'a Command>, now: Timestamp) -> Needs {
    let mut needs = Needs { now, ..Needs::default() };
    for command in commands.into_iter().flat_map(Command::parts) {
        needs.has_commands = true;
        needs.jobs.extend(command.job());
        needs.jobs.extend(command.watched());
        needs.items.extend(command.item());
        needs.entities.extend(command.entity());
        if let Some(Seen::Entity(id, _)) = seen(command) {
            needs.entities.push(*id);
        }
        needs.effects.extend(command.effect().map(|(job, name)| (job, name.into())));
        needs.keys.extend(command.key().into_iter().chain(command.alias()));
    }
    needs
}

/// What a line of the audit trail says was so before.
fn seen(command: &Command) -> Option<&Seen> {
    let Command::Entity(asked) = command else { return None };
    if let EntityCommand::Audit(append) = &**asked { append.seen() } else { None }
}

/// Decides one command on what the desk shows. Nothing is applied.
///
/// # Errors
/// The kernel's, and those of things that are not there or cannot be read.
pub fn decide_on(
    desk: &dyn Desk,
    command: &Command,
    around: &mut Circumstances<'_>,
) -> Result<Decision, Rejection> {
    let Command::Together(parts) = command else {
        if together::is_batch(command.parts()) {
            let reason = "can name jobs of its batch only within one";
            return Err(Rejection::FieldInvalid { field: "after", reason });
        }
        return decide_part(desk, command, around, &Beside::default());
    };
    if together::is_batch(parts) {
        return decide_batch(desk, parts, around);
    }
    together::check(parts)?;
    let mut beside = Beside::default();
    let mut decided = Vec::with_capacity(parts.len());
    for part in parts {
        if together::tells_of_nothing(part, &decided) {
            continue;
        }
        let decision = decide_part(desk, part, around, &beside)?;
        if together::stands_alone(part, &decision) {
            return Ok(decision);
        }
        beside.add(&decision);
        decided.push(decision);
    }
    Ok(together::merge(decided))
}

/// Decides a batch of jobs of which some wait for earlier ones. Their ids follow each other, so
/// that whoever waits for all of them needs to keep no list.
fn decide_batch(
    desk: &dyn Desk,
    parts: &[Command],
    around: &mut Circumstances<'_>,
) -> Result<Decision, Rejection> {
    together::check_batch(parts)?;
    let first = JobId((around.fresh_id)());
    let mut beside = Beside::default();
    let mut decided: Vec<Decision> = Vec::with_capacity(parts.len());
    for (place, part) in (0..).zip(parts) {
        beside.id = Some(member_id(first, place).0);
        let named = together::naming_earlier(part, &beside.members)?;
        let decision = decide_part(desk, named.as_ref().unwrap_or(part), around, &beside)?;
        beside.add(&decision);
        beside.members.extend(together::member(&decision));
        decided.push(decision);
    }
    Ok(together::merge(decided))
}

/// What is decided beside a command, before it.
#[derive(Default)]
struct Beside {
    /// What the jobs come to that are made.
    made: Held,
    /// The id of the job that the command makes, if it cannot be any.
    id: Option<u128>,
    /// The jobs of its batch.
    members: Vec<Member>,
}

impl Beside {
    fn add(&mut self, decision: &Decision) {
        let new = new_jobs(decision);
        self.made.jobs += new.jobs;
        self.made.bytes += new.bytes;
    }
}

/// What waits of a tenant and in all, with what is made `beside`, and how much may.
fn backlog(desk: &dyn Desk, tenant: &TenantId, beside: Held, most: (u64, u64)) -> Backlog {
    let (held, all) = desk.held(tenant);
    let (tenant_max, all_max) = most;
    let share = desk.queue(&governance::tenant_queue(tenant)).and_then(|spec| spec.share);
    let share = share.unwrap_or(TenantShare::PLAIN);
    Backlog {
        tenant: held.bytes + beside.bytes,
        tenant_max: share.backlog_bytes_max.map_or(tenant_max, |most| most.min(tenant_max)),
        jobs: held.jobs + beside.jobs,
        jobs_max: share.backlog_max.unwrap_or(u64::MAX),
        all: all + beside.bytes,
        all_max,
    }
}

/// A gate of the tenant that is closed.
fn closed_gate(desk: &dyn Desk, tenant: &TenantId) -> Option<Gate> {
    governance::closed_gate(tenant, &mut |queue| QueueSpec::is_open(desk.queue(queue)))
}

/// What the jobs come to that a decision makes.
fn new_jobs(decision: &Decision) -> Held {
    let mut made = Held::default();
    for event in &decision.events {
        if let Event::JobSubmitted(job) = event {
            made.jobs += 1;
            made.bytes += held_bytes(job);
        }
    }
    made
}

/// Who holds a key. A second job under a key whose first one cannot be read would be done twice.
fn readable_holder(
    desk: &dyn Desk,
    key: Digest,
    now: Timestamp,
) -> Result<Option<KeyHolder>, Rejection> {
    let holder = desk.key_holder(key);
    let held = holder.filter(|holder| holder.holds_at(now));
    match held.is_some_and(|holder| desk.is_unreadable(holder.job)) {
        true => Err(Rejection::JobUnreadable),
        false => Ok(holder),
    }
}

/// Decides one command of several.
fn decide_part(
    desk: &dyn Desk,
    command: &Command,
    around: &mut Circumstances<'_>,
    beside: &Beside,
) -> Result<Decision, Rejection> {
    if command.job().is_some_and(|id| desk.is_unreadable(id)) {
        return Err(Rejection::JobUnreadable);
    }
    let job = command.job().and_then(|id| desk.job(id));
    let watched: Vec<_> = command.watched().iter().map(|id| (*id, desk.job(*id))).collect();
    let tokens = if command.needs_people() { desk.tokens() } else { Vec::new() };
    let mut facts = Facts {
        job,
        item: command.item().and_then(|id| desk.item(id)),
        entity: command.entity().and_then(|id| desk.entity(id)),
        watched: &watched,
        members: &beside.members,
        job_type: job.and_then(|job| desk.job_type(&job.job_type)),
        are_types_strict: around.are_types_strict,
        jumps: around.jumps,
        silences: around.silences,
        tokens: &tokens,
        governance: around.governance,
        ..Facts::at(around.now)
    };
    if let Some(key) = command.key() {
        facts.key_holder = readable_holder(desk, key, around.now)?;
        facts.key_job = facts.key_holder.and_then(|holder| desk.job(holder.job));
    }
    if let Some(alias) = command.alias() {
        facts.alias_holder = readable_holder(desk, alias, around.now)?;
        facts.alias_job = facts.alias_holder.and_then(|holder| desk.job(holder.job));
    }
    let mut new_job_of = |facts: &mut Facts<'_>, tenant: &TenantId| {
        facts.fresh_id = beside.id.unwrap_or_else(&mut *around.fresh_id);
        facts.backlog = backlog(desk, tenant, beside.made, around.backlog_max);
    };
    // A dead letter that is named may run again.
    if let Some(item) = facts.item {
        new_job_of(&mut facts, &item.job.tenant);
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "most commands need nothing fresh")]
    match command {
        Command::Submit(wish) => {
            facts.job_type = desk.job_type(&wish.job_type);
            new_job_of(&mut facts, &wish.tenant);
        }
        Command::Ring { .. } => {
            if let Some(entity) = facts.entity {
                facts.closed_gate = closed_gate(desk, &entity.tenant);
                facts.job_type = entity.job_type().and_then(|name| desk.job_type(name));
                new_job_of(&mut facts, &entity.tenant);
            }
        }
        Command::Entity(asked) => {
            let known = facts.entity.and_then(Entity::job_type);
            facts.job_type = asked.job_type().or(known).and_then(|name| desk.job_type(name));
            match seen(command) {
                Some(Seen::Type(name, _)) => facts.job_type = desk.job_type(name),
                Some(Seen::Queue(name, _)) => facts.queue = desk.queue(name),
                Some(Seen::Entity(id, _)) => facts.seen = desk.entity(*id),
                None => {}
            }
            if asked.job().is_some() {
                facts.fresh_secret = (around.fresh_secret)();
            }
            if let (Some(_), Some(entity)) = (asked.key(), facts.entity) {
                new_job_of(&mut facts, &entity.tenant);
            }
        }
        Command::SetType(spec) => facts.job_type = desk.job_type(&spec.name),
        Command::ChangeType { name, .. } => facts.job_type = desk.job_type(name),
        Command::ClaimGoverned(_) => {
            facts.fresh_secret = (around.fresh_secret)();
            facts.entity = job.and_then(governance::object_of).and_then(|id| desk.entity(id));
            facts.closed_gate = job.and_then(|job| closed_gate(desk, &job.tenant));
        }
        Command::Ack(_) | Command::Renew(_) => {
            facts.closed_gate = job.and_then(|job| closed_gate(desk, &job.tenant));
        }
        Command::Claim(_)
        | Command::Transition { .. }
        | Command::MoveTask { .. }
        | Command::RunInternally(_)
        | Command::MoveShown { .. } => {
            facts.fresh_secret = (around.fresh_secret)();
        }
        Command::ExpireToken { token, .. } | Command::RevokeToken { token } => {
            facts.token = desk.token(*token)
        }
        _ => {}
    }
    decide(command, &facts)
}
