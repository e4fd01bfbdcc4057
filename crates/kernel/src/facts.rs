//! Everything a decision may look at besides the command. The kernel never asks: the store loads
//! what [`Command`](crate::Command) names, and `store/src/desk.rs` hands it in here.

use crate::access::Token;
use crate::backlog::Backlog;
use crate::dlq::DlqItem;
use crate::entity::Entity;
use crate::entity::wait::Member;
use crate::event::KeyHolder;
use crate::governance::{Gate, Governance};
use crate::id::JobId;
use crate::job::Job;
use crate::registry::{QueueSpec, TypeSpec};
use crate::shared_time::{Jump, Silence};
use crate::time::Timestamp;

/// What is known at the moment of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The instant of the commit; never before the job's last change.
    pub now: Timestamp,
    /// A fresh id for a job, should one be made.
    pub fresh_id: u128,
    /// Unguessable bits for a lease, should one be granted.
    pub fresh_secret: u128,
    /// The job the command names, live or finished.
    pub job: Option<&'a Job>,
    /// The dead-letter item the command names.
    pub item: Option<&'a DlqItem>,
    /// The entity the command names.
    pub entity: Option<&'a Entity>,
    /// The entity that a line of the audit trail says was so before.
    pub seen: Option<&'a Entity>,
    /// The queue that a line of the audit trail says was so before.
    pub queue: Option<&'a QueueSpec>,
    /// The jobs the command names besides, each with what is kept of it.
    pub watched: &'a [(JobId, Option<&'a Job>)],
    /// The jobs of the batch that a submission follows, in order.
    pub members: &'a [Member],
    /// The registered type of the job, or the type a submission names.
    pub job_type: Option<&'a TypeSpec>,
    /// Whether types must be registered.
    pub are_types_strict: bool,
    /// Who holds the idempotency key of a submission.
    pub key_holder: Option<KeyHolder>,
    /// The job that holds it.
    pub key_job: Option<&'a Job>,
    /// Who holds the name that the caller chose.
    pub alias_holder: Option<KeyHolder>,
    /// The job that holds it, if it is still kept.
    pub alias_job: Option<&'a Job>,
    /// The last spans over which the clock was set forward, oldest first.
    pub jumps: &'a [Jump],
    /// The last spans in which no server could reach the store, oldest first.
    pub silences: &'a [Silence],
    /// The token the command names.
    pub token: Option<&'a Token>,
    /// Every token, by id, for commands that need two people; empty for others.
    pub tokens: &'a [&'a Token],
    /// What waits already, where new work is asked for.
    pub backlog: Backlog,
    /// A gate of the tenant that is closed, where a governed job or object is concerned.
    pub closed_gate: Option<Gate>,
    /// What is configured for governed objects.
    pub governance: Governance,
}

impl Facts<'_> {
    /// Nothing is known but the time: a start for those who know more.
    pub fn at(now: Timestamp) -> Self {
        Facts {
            now,
            fresh_id: 0,
            fresh_secret: 0,
            job: None,
            item: None,
            entity: None,
            seen: None,
            queue: None,
            watched: &[],
            members: &[],
            job_type: None,
            are_types_strict: false,
            key_holder: None,
            key_job: None,
            alias_holder: None,
            alias_job: None,
            jumps: &[],
            silences: &[],
            token: None,
            tokens: &[],
            backlog: Backlog::UNBOUNDED,
            closed_gate: None,
            governance: Governance::DEFAULT,
        }
    }
}
