//! Beacons: each submits a job every so often. No contract offers them. They are the smallest kind
//! there is, an example to copy, and what stores, simulation and crash tests are tried with.

use super::{Body, Entity, EntityCommand, EntityId, Kind};
use crate::command::{Command, Submit};
use crate::decide::{Decision, Receipt};
use crate::event::Event;
use crate::facts::Facts;
use crate::firing::{self, Ties};
use crate::name::{JobType, TenantId, UserId};
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// Submits a job every so often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beacon {
    /// The type of its jobs.
    pub job_type: JobType,
    /// Milliseconds from one job to the next.
    pub every_ms: u64,
    /// When the next one is due; `None` once it is out.
    pub next_at: Option<Timestamp>,
    /// How many jobs it has submitted.
    pub fired: u32,
    /// How many it could not submit.
    pub missed: u32,
}

impl Beacon {
    /// Where it stands.
    pub const fn state(&self) -> &'static str {
        match self.next_at {
            Some(_) => "lit",
            None => "out",
        }
    }
}

/// What can be asked of a beacon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeaconCommand {
    /// Light a new one.
    Light {
        /// Its id.
        id: EntityId,
        /// The tenant.
        tenant: TenantId,
        /// Who asks.
        owner: UserId,
        /// The type of its jobs.
        job_type: JobType,
        /// Milliseconds from one job to the next; the first is due that long from now.
        every_ms: u64,
    },
    /// Put it out.
    PutOut {
        /// Which.
        id: EntityId,
    },
    /// Take it away.
    Remove {
        /// Which.
        id: EntityId,
    },
}

impl BeaconCommand {
    pub(super) fn entity(&self) -> EntityId {
        match self {
            BeaconCommand::Light { id, .. }
            | BeaconCommand::PutOut { id }
            | BeaconCommand::Remove { id } => *id,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            BeaconCommand::Light { .. } => "light_beacon",
            BeaconCommand::PutOut { .. } => "put_out_beacon",
            BeaconCommand::Remove { .. } => "remove_beacon",
        }
    }
}

impl From<BeaconCommand> for Command {
    fn from(command: BeaconCommand) -> Command {
        Command::Entity(Box::new(EntityCommand::Beacon(command)))
    }
}

pub(super) fn decide(command: &BeaconCommand, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let known = || {
        let unknown = Rejection::EntityUnknown { kind: Kind::Beacon };
        let entity = facts.entity.ok_or(unknown.clone())?;
        let Body::Beacon(beacon) = &entity.body else { return Err(unknown) };
        Ok((entity, beacon))
    };
    let event = match command {
        BeaconCommand::Light { id, tenant, owner, job_type, every_ms } => {
            if facts.entity.is_some() {
                return Err(Rejection::EntityExists { kind: Kind::Beacon });
            }
            if *every_ms == 0 {
                let reason = "must be at least 1";
                return Err(Rejection::FieldInvalid { field: "every_ms", reason });
            }
            Event::EntitySet(Box::new(Entity {
                id: *id,
                version: 1,
                tenant: tenant.clone(),
                owner: owner.clone(),
                created_at: facts.now,
                updated_at: facts.now,
                body: Body::Beacon(Beacon {
                    job_type: job_type.clone(),
                    every_ms: *every_ms,
                    next_at: Some(facts.now.plus_millis(*every_ms)),
                    fired: 0,
                    missed: 0,
                }),
            }))
        }
        BeaconCommand::PutOut { .. } => {
            let (entity, beacon) = known()?;
            let body = Body::Beacon(Beacon { next_at: None, ..beacon.clone() });
            Event::EntitySet(Box::new(entity.changed(body, facts.now)))
        }
        BeaconCommand::Remove { .. } => {
            let (entity, _) = known()?;
            Event::EntityRemoved { entity: entity.id, version: entity.version + 1 }
        }
    };
    Ok(Decision { events: vec![event], receipt: Receipt::Done })
}

/// Submits the job of `at` and sets the next alarm; instants that went by meanwhile are left out.
pub(super) fn ring(entity: &Entity, beacon: &Beacon, at: Timestamp, facts: &Facts<'_>) -> Decision {
    let (tenant, owner) = (entity.tenant.clone(), entity.owner.clone());
    let wish = Submit::plain(tenant, owner, beacon.job_type.clone());
    let fired = firing::fire(entity.id, at, Ties::default(), wish, facts);
    let behind = facts.now.since(at).as_millis() as u64 / beacon.every_ms;
    let (is_fired, mut events) = (fired.is_ok(), fired.map(|it| it.events).unwrap_or_default());
    let next = Beacon {
        next_at: Some(at.plus_millis((behind + 1) * beacon.every_ms)),
        fired: beacon.fired + u32::from(is_fired),
        missed: beacon.missed + u32::from(!is_fired),
        ..beacon.clone()
    };
    events.push(Event::EntitySet(Box::new(entity.changed(Body::Beacon(next), facts.now))));
    Decision { events, receipt: Receipt::Done }
}
