//! Somebody who makes triggers on files, writes those files, and servers that look at them, in a
//! world where servers die, commits fail and clocks are set. In the end every file that was written
//! has a run that was made for it, and none has two.

use super::server::Server;
use crate::drive;
use crate::history::FiringDump;
use mainspring_engine::Engine;
use mainspring_kernel::entity::trigger::{
    Condition, LeafState, Outcome, Pace, Past, Seen, Sight, Trigger, TriggerCommand, TriggerSpec,
    TriggerType,
};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::{Entity, EntityId, Timestamp};
use mainspring_store::{EntityFilter, Scope};
use std::time::Duration;

/// Files that a world has, each with a trigger.
pub(super) const FILES: usize = 3;
/// How long the last edges get to have their runs.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often every file is written once everything is quiet.
const ROUNDS: usize = 3;

/// A file of a world.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SimFile {
    /// When it was last written.
    pub(super) newest: Option<Timestamp>,
    /// How often.
    pub(super) writes: u64,
}

fn id(file: usize) -> EntityId {
    EntityId { kind: Kind::Trigger, bits: 1 + file as u128 }
}

/// Makes triggers, writes files and looks at them, until the world goes quiet.
pub(super) async fn scribe(server: Server) {
    loop {
        server.pass(700 + server.world.below(2_500)).await;
        if server.world.is_quiet() {
            return;
        }
        let file = server.world.below(FILES as u64) as usize;
        match server.world.below(4) {
            0 => make(&server, file).await,
            1 => write(&server, file),
            _ => look(&server, file).await,
        }
    }
}

async fn make(server: &Server, file: usize) {
    let newest = server.world.lock().files[file].newest;
    let spec = TriggerSpec {
        name: format!("on-{file}").into(),
        kind: TriggerType::Conditional,
        interval_secs: None,
        run_at: None,
        condition: Some(Condition::FileChanged { path: "a".into(), fires_on_init: false }),
        cooldown_secs: server.world.below(6),
        prompt: "look".into(),
        priority: 5,
        timeout_secs: None,
        trace: None,
        parent_task_id: None,
        pace: Pace { check_ms: 1_000, settle_ms: 0, stuck_ms: 7_200_000 },
        sees_tenant: true,
    };
    let (tenant, owner) = (drive::tenant("acme"), drive::user("ada"));
    let (id, sights) = (id(file), vec![sight(newest)]);
    let (spec, past) = (Box::new(spec), Box::<Past>::default());
    let command = TriggerCommand::Create { id, tenant, owner, spec, sights, past };
    let _ = server.engine().execute_one(command.into()).await;
}

fn sight(newest: Option<Timestamp>) -> Sight {
    Sight { leaf: 0, seen: Seen::Files(newest) }
}

/// A server looks at a file and tells of it.
async fn look(server: &Server, file: usize) {
    let newest = server.world.lock().files[file].newest;
    let engine = server.engine();
    let Ok(Some(entity)) = engine.entity(id(file)).await else { return };
    let (id, made_at, sights) = (entity.id, entity.created_at, vec![sight(newest)]);
    let _ = engine.execute_one(TriggerCommand::Observe { id, made_at, sights }.into()).await;
}

/// Has everything looked at until no trigger has anything left to do, and then writes every file a
/// few times more, each of which must be one run. Those of which that is not true, by name.
pub(super) async fn end(server: &Server) -> Vec<String> {
    let mut wrong = rest(server).await;
    for _ in 0..ROUNDS {
        let before = counts(server).await;
        for file in 0..FILES {
            write(server, file);
        }
        wrong.extend(rest(server).await);
        let after = counts(server).await;
        wrong.extend(before.iter().filter_map(|(id, count)| {
            let is_one = after.iter().any(|(other, more)| other == id && *more == count + 1);
            (!is_one).then_some(*id)
        }));
    }
    wrong.sort_unstable();
    wrong.dedup();
    wrong.iter().map(ToString::to_string).collect()
}

async fn counts(server: &Server) -> Vec<(EntityId, u32)> {
    let all = listed(&server.engine()).await;
    all.iter().map(|entity| (entity.id, body(entity).fired)).collect()
}

/// Waits until nothing is left to do; those that did not come to rest.
async fn rest(server: &Server) -> Vec<EntityId> {
    let deadline = tokio::time::Instant::now() + PATIENCE + server.world.time.behind();
    loop {
        for file in 0..FILES {
            look(server, file).await;
        }
        server.pass(500).await;
        let files = server.world.lock().files;
        let all = listed(&server.engine()).await;
        let restless = all.iter().filter(|entity| !is_at_rest(entity, &files));
        let restless: Vec<EntityId> = restless.map(|entity| entity.id).collect();
        if restless.is_empty() || tokio::time::Instant::now() > deadline {
            return restless;
        }
    }
}

/// Writes a file. What is written later is newer, whatever became of the clock.
fn write(server: &Server, file: usize) {
    let now = server.engine().now();
    let file = &mut server.world.lock().files[file];
    let after = file.newest.map(|newest| Timestamp(newest.0 + 1));
    file.newest = Some(after.map_or(now, |after| after.max(now)));
    file.writes += 1;
}

fn is_at_rest(entity: &Entity, files: &[SimFile; FILES]) -> bool {
    let trigger = body(entity);
    let newest = files.get(entity.id.bits as usize - 1).and_then(|file| file.newest);
    let LeafState::Changed { taken, held, .. } = &trigger.leaves[0] else { return false };
    trigger.outstanding.is_none() && held.is_none() && *taken >= newest
}

/// What each trigger says of its firings, and how many there may be: it tells of one more than
/// there were if it fired for nothing or too soon.
pub(super) async fn firings(engine: &Engine, files: &[SimFile; FILES]) -> Vec<FiringDump> {
    let dump = |entity: &Entity| {
        let trigger = body(entity);
        let count = u64::from(trigger.fired);
        let writes = files.get(entity.id.bits as usize - 1).map_or(0, |file| file.writes);
        let is_right = count <= writes && has_cooled(trigger);
        let told = if is_right { count } else { count + 1 };
        FiringDump { entity: entity.id.to_string(), count, due: count, told }
    };
    listed(engine).await.iter().map(dump).collect()
}

/// Whether its firings, as far as they are kept, lie as far apart as they should.
fn has_cooled(trigger: &Trigger) -> bool {
    let fired = trigger.log.iter().filter(|line| line.outcome == Outcome::Fired);
    let fired: Vec<Timestamp> = fired.map(|line| line.at).collect();
    let least = Duration::from_secs(trigger.spec.cooldown_secs);
    fired.windows(2).all(|pair| pair[1].since(pair[0]) >= least)
}

async fn listed(engine: &Engine) -> Vec<Entity> {
    let all = EntityFilter::of(Kind::Trigger, Scope::All);
    engine.entities(&all, None, FILES).await.map(|page| page.items).unwrap_or_default()
}

fn body(entity: &Entity) -> &Trigger {
    let Body::Trigger(trigger) = &entity.body else { unreachable!("triggers were asked for") };
    trigger
}
