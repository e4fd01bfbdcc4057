//! Somebody who lights beacons and puts them out again: entities with alarms, in a world where
//! servers die, commits fail and clocks are set.

use super::schedules;
use super::server::Server;
use super::triggers;
use crate::drive;
use crate::history::FiringDump;
use mainspring_engine::Engine;
use mainspring_kernel::entity::beacon::{Beacon, BeaconCommand};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::{Command, Entity, EntityId};
use mainspring_store::{EntityFilter, Scope};
use std::time::Duration;

/// Beacons a world gets at most.
const BEACONS_MAX: u128 = 4;
/// How long the last ones get to fire once more.
const PATIENCE: Duration = Duration::from_secs(60);
const PAGE: usize = 50;

/// Lights beacons and puts some of them out, until the world goes quiet.
pub(super) async fn lighter(server: Server) {
    loop {
        server.pass(2_000 + server.world.below(6_000)).await;
        if server.world.is_quiet() {
            return;
        }
        let bits = 1 + u128::from(server.world.below(BEACONS_MAX as u64));
        let id = EntityId { kind: Kind::Beacon, bits };
        let command = match server.world.below(4) {
            0 => BeaconCommand::PutOut { id },
            _ => BeaconCommand::Light {
                id,
                tenant: drive::tenant("acme"),
                owner: drive::user("ada"),
                job_type: drive::kind("plain"),
                every_ms: 1_500 + server.world.below(6_000),
            },
        };
        // What becomes of it shows in the end.
        let _ = server.engine().execute_one(command.into()).await;
    }
}

/// Waits until every schedule and every beacon that is lit has fired once more, then ends all of
/// them. Those that did not fire, by name.
pub(super) async fn put_out(server: &Server) -> Vec<String> {
    let mut quiet = schedules::end(server).await;
    quiet.extend(triggers::end(server).await);
    let before = lit(&server.engine()).await;
    let deadline = tokio::time::Instant::now() + PATIENCE + server.world.time.behind();
    let mut silent = before.clone();
    while !silent.is_empty() && tokio::time::Instant::now() < deadline {
        server.pass(500).await;
        let now = lit(&server.engine()).await;
        silent.retain(|(id, count)| now.iter().all(|(other, more)| other != id || more <= count));
    }
    while tokio::time::Instant::now() < deadline + PATIENCE {
        let left = lit(&server.engine()).await;
        if left.is_empty() {
            break;
        }
        for (id, _) in left {
            let command: Command = BeaconCommand::PutOut { id }.into();
            let _ = server.engine().execute_one(command).await;
        }
        server.pass(100).await;
    }
    quiet.extend(silent.into_iter().map(|(id, _)| id.to_string()));
    quiet
}

/// How often each entity says that it submitted a job.
pub(super) async fn firings(engine: &Engine) -> Vec<FiringDump> {
    let all = listed(engine, EntityFilter::of(Kind::Beacon, Scope::All)).await;
    let dump = |entity: &Entity| FiringDump {
        entity: entity.id.to_string(),
        count: u64::from(body(entity).fired),
        due: 0,
        told: 0,
    };
    let mut firings: Vec<FiringDump> = all.iter().map(dump).collect();
    firings.extend(schedules::firings(engine).await);
    firings
}

/// The beacons that are lit, and how often they have rung.
async fn lit(engine: &Engine) -> Vec<(EntityId, u32)> {
    let filter = EntityFilter::of(Kind::Beacon, Scope::Tenant(drive::tenant("acme")));
    let lit = EntityFilter { state: Some("lit".to_owned()), ..filter };
    let count = |entity: &Entity| (entity.id, body(entity).fired + body(entity).missed);
    listed(engine, lit).await.iter().map(count).collect()
}

async fn listed(engine: &Engine, filter: EntityFilter) -> Vec<Entity> {
    engine.entities(&filter, None, PAGE).await.map(|page| page.items).unwrap_or_default()
}

fn body(entity: &Entity) -> &Beacon {
    let Body::Beacon(beacon) = &entity.body else { unreachable!("beacons were asked for") };
    beacon
}
