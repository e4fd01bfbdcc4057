//! Somebody who makes schedules and triggers them, in a world where servers die, commits fail and
//! clocks are set. Each instant for which one is to fire is accounted for in the end.

use super::server::Server;
use crate::drive;
use crate::history::FiringDump;
use mainspring_engine::Engine;
use mainspring_kernel::calendar::Rhythm;
use mainspring_kernel::entity::schedule::{
    Misfire, Overlap, Schedule, ScheduleCommand, ScheduleSpec, Status,
};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::{Entity, EntityId, Timestamp};
use mainspring_store::{EntityFilter, Scope};
use std::time::Duration;

/// Schedules a world gets at most.
const SCHEDULES_MAX: u128 = 5;
/// How long the last ones get to fire once more, and then to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Seconds from the order to end to the end.
const END_SECS: i64 = 4;
const PAGE: usize = 50;

/// Makes schedules and triggers them, until the world goes quiet.
pub(super) async fn planner(server: Server) {
    loop {
        server.pass(2_000 + server.world.below(6_000)).await;
        if server.world.is_quiet() {
            return;
        }
        let bits = 1 + u128::from(server.world.below(SCHEDULES_MAX as u64));
        let id = EntityId { kind: Kind::Schedule, bits };
        let command = match server.world.below(5) {
            0 => ScheduleCommand::Trigger { id, at: server.engine().now() },
            _ => ScheduleCommand::Create {
                id,
                tenant: drive::tenant("acme"),
                owner: drive::user("ada"),
                spec: Box::new(spec(&server)),
            },
        };
        // What becomes of it shows in the end.
        let _ = server.engine().execute_one(command.into()).await;
    }
}

fn spec(server: &Server) -> ScheduleSpec {
    let below = |bound: u64| server.world.below(bound);
    let rhythm = Rhythm::Interval { every_secs: 1 + below(7), phase_secs: 0 };
    ScheduleSpec {
        misfire: Misfire::ALL[below(3) as usize],
        misfire_limit: 1 + below(4) as u32,
        overlap: Overlap::ALL[below(4) as usize],
        jitter_secs: below(3) as u32,
        ..ScheduleSpec::plain(drive::kind("plain"), rhythm)
    }
}

/// Waits until every schedule has told of one more firing, then has all of them end. Those that did
/// not, by name.
pub(super) async fn end(server: &Server) -> Vec<String> {
    let told = |all: &[Entity]| -> Vec<(EntityId, u64)> {
        let is_active = |entity: &&Entity| body(entity).status == Status::Active;
        all.iter().filter(is_active).map(|it| (it.id, accounted(body(it)))).collect()
    };
    let before = told(&listed(&server.engine()).await);
    let deadline = tokio::time::Instant::now() + PATIENCE + server.world.time.behind();
    let mut silent = before.clone();
    while !silent.is_empty() && tokio::time::Instant::now() < deadline {
        server.pass(500).await;
        let now = told(&listed(&server.engine()).await);
        silent.retain(|(id, count)| now.iter().all(|(other, more)| other != id || more <= count));
    }
    let is_over = |entity: &Entity| {
        let schedule = body(entity);
        schedule.status == Status::Ended && schedule.waiting.is_none()
    };
    while tokio::time::Instant::now() < deadline + 3 * PATIENCE {
        let left: Vec<Entity> =
            listed(&server.engine()).await.into_iter().filter(|it| !is_over(it)).collect();
        if left.is_empty() {
            break;
        }
        for entity in left.iter().filter(|entity| body(entity).spec.end_at.is_none()) {
            let end_at = Some(Timestamp(server.engine().now().0 + END_SECS * 1_000_000));
            let spec = Box::new(ScheduleSpec { end_at, ..body(entity).spec.clone() });
            let update = ScheduleCommand::Update { id: entity.id, spec };
            let _ = server.engine().execute_one(update.into()).await;
        }
        server.pass(500).await;
    }
    silent.into_iter().map(|(id, _)| id.to_string()).collect()
}

/// What each schedule says of its firings, and how many there should be.
pub(super) async fn firings(engine: &Engine) -> Vec<FiringDump> {
    let dump = |entity: &Entity| {
        let schedule = body(entity);
        let due = schedule.spec.end_at.map_or(0, |end| {
            let (mut count, mut at) = (0, entity.created_at);
            while let Some(next) = schedule.spec.rhythm.next_after(at).filter(|next| *next <= end) {
                (count, at) = (count + 1, next);
            }
            count
        });
        let told = if due == 0 { 0 } else { accounted(schedule) };
        let count = schedule.fired_count();
        FiringDump { entity: entity.id.to_string(), count, due, told }
    };
    listed(engine).await.iter().map(dump).collect()
}

/// Of how many instants it tells what became of them.
fn accounted(schedule: &Schedule) -> u64 {
    u64::from(schedule.runs) + schedule.skipped
}

async fn listed(engine: &Engine) -> Vec<Entity> {
    let all = EntityFilter::of(Kind::Schedule, Scope::All);
    engine.entities(&all, None, PAGE).await.map(|page| page.items).unwrap_or_default()
}

fn body(entity: &Entity) -> &Schedule {
    let Body::Schedule(schedule) = &entity.body else { unreachable!("schedules were asked for") };
    schedule
}
