//! A power cut under real threads: several writers, the journal's threads and the keeper all at
//! work when the disk stops. Every commit takes a number while it holds the state; whatever the
//! image, the commits in it must be the first ones by that number, all that were acknowledged among
//! them, and each of them whole (D6).

use super::{FAR, config};
use crate::drive::{self, BEGINNING};
use crate::rng::Rng;
use mainspring_kernel::calendar::Rhythm;
use mainspring_kernel::command::{Claim, Complete};
use mainspring_kernel::dispatch::Wanted;
use mainspring_kernel::entity::Kind;
use mainspring_kernel::entity::schedule::{ScheduleCommand, ScheduleSpec};
use mainspring_kernel::{
    Command, Entity, EntityId, Event, JobId, Receipt, Roles, StateName, Timestamp, Token, TokenId,
};
use mainspring_store::{Desk, Needs, PullNeeds, Store};
use mainspring_store_memory::disk::SimDisk;
use mainspring_store_memory::disk::sim::Faults;
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

/// What was seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Crowd {
    /// Commits made before the cut.
    pub commits: u64,
    /// Those acknowledged.
    pub acknowledged: u64,
    /// Images opened and judged.
    pub images: u64,
    /// Cuts that found a snapshot.
    pub snapshots: u64,
}

/// What one commit did, in the order of its number.
#[derive(Debug, Clone, Copy)]
struct Deed {
    number: u64,
    submitted: JobId,
    completed: Option<JobId>,
    /// When the alarm of the entity that it made stands.
    alarm_at: Timestamp,
    /// The job that this entity fired, if it was rung.
    fired: Option<JobId>,
}

const WRITERS: u64 = 4;
/// Commits of one writer, if the power lasts.
const COMMITS_MAX: u64 = 150;
const IMAGES: usize = 8;

struct Scene {
    store: MemoryStore,
    number: AtomicU64,
    deeds: Mutex<Vec<Deed>>,
    acknowledged: Arc<AtomicU64>,
    acknowledgements: Arc<AtomicU64>,
}

/// Runs one crowd into one power cut.
///
/// # Errors
/// What an image had wrong.
pub fn cut_a_crowd(seed: u64) -> Result<Crowd, String> {
    let disk = SimDisk::new();
    let mut rng = Rng::new(seed, 11);
    let threaded = MemoryConfig { has_threads: true, ..config(seed) };
    let store = MemoryStore::open(Arc::new(disk.clone()), threaded, BEGINNING)
        .map_err(|error| format!("a new disk was refused: {error}"))?;
    let power_off_after = Some(rng.within(10, 1_500));
    disk.set_faults(Faults { power_off_after, ..Faults::default() });
    let scene = Scene {
        store,
        number: AtomicU64::new(0),
        deeds: Mutex::default(),
        acknowledged: Arc::default(),
        acknowledgements: Arc::default(),
    };
    std::thread::scope(|scope| {
        for writer in 1..=WRITERS {
            let (scene, rng) = (&scene, Rng::new(seed, 100 + writer));
            scope.spawn(move || write(scene, writer, rng));
        }
    });
    // Read before the image is made: whatever is acknowledged by now must be in it.
    let acknowledged = scene.acknowledged.load(Ordering::Acquire);
    let mut deeds =
        std::mem::take(&mut *scene.deeds.lock().unwrap_or_else(PoisonError::into_inner));
    deeds.sort_unstable_by_key(|deed| deed.number);
    let mut crowd = Crowd {
        commits: deeds.len() as u64,
        acknowledged: scene.acknowledgements.load(Ordering::Acquire),
        ..Crowd::default()
    };
    let mut choices = disk.crash_choices(20, rng.bits());
    while choices.len() > IMAGES {
        let nth = rng.below(choices.len() as u64) as usize;
        choices.swap_remove(nth);
    }
    for choice in choices {
        crowd.images += 1;
        let image = disk.crash(choice);
        crowd.snapshots += u64::from(super::has_snapshot(&image));
        judge(&image, &deeds, acknowledged)
            .map_err(|why| format!("crowd {seed}, {choice:?}, {acknowledged} known: {why}"))?;
    }
    Ok(crowd)
}

/// One writer: commits until the store stops.
fn write(scene: &Scene, writer: u64, mut rng: Rng) {
    let mut fresh = u128::from(writer) << 60;
    for _ in 0..COMMITS_MAX {
        let payload = format!("{{\"x\":\"{}\"}}", "x".repeat(rng.below(400) as usize));
        let needs = Needs { now: BEGINNING, pulls: vec![PullNeeds::any(1)], ..Needs::default() };
        let mut deed = None;
        let mut work = |desk: &mut dyn Desk| deed = Some(act(scene, desk, &payload, &mut fresh));
        let Ok(ticket) = drive::ready(scene.store.commit(needs, &mut work)) else { return };
        let deed = deed.expect("the work was done");
        scene.deeds.lock().unwrap_or_else(PoisonError::into_inner).push(deed);
        let (tell, told) = channel();
        let (acknowledged, count) = (scene.acknowledged.clone(), scene.acknowledgements.clone());
        ticket.then(move |outcome| {
            if outcome.is_ok() {
                acknowledged.fetch_max(deed.number, Ordering::AcqRel);
                count.fetch_add(1, Ordering::AcqRel);
            }
            // Not everybody waits.
            let _ = tell.send(outcome.is_ok());
        });
        // Some ask on at once, some wait for the answer; a broken store never answers well.
        if rng.chance(50) && !told.recv().unwrap_or(false) {
            return;
        }
        if rng.chance(30) {
            // Only asks the keeper, which has a thread of its own.
            let _ = drive::ready(scene.store.maintain(BEGINNING));
        }
    }
}

/// The work of one commit: a token that carries its number, a new job, an entity with an alarm, and
/// in every other one the end of another job and the ringing of that alarm.
fn act(scene: &Scene, desk: &mut dyn Desk, payload: &str, fresh: &mut u128) -> Deed {
    let number = scene.number.fetch_add(1, Ordering::AcqRel) + 1;
    let mut log = Vec::new();
    let mut decide_at = |now, command: &Command, desk: &mut dyn Desk| {
        drive::act(command, desk, now, fresh, &mut log).expect("it is allowed")
    };
    let mut decide = |command: &Command, desk: &mut dyn Desk| decide_at(BEGINNING, command, desk);
    decide(&Command::IssueToken(Box::new(token(number))), desk);
    decide(&schedule(number), desk);
    let wish = drive::wish("acme", "ada", "plain", payload);
    let receipt = decide(&Command::Submit(Box::new(wish)), desk);
    let Receipt::Submitted { job: submitted } = receipt else { panic!("{receipt:?}") };
    let wanted = Wanted { tenant: None, types: None, queues: None };
    let taken = if number.is_multiple_of(2) { 1 } else { 0 };
    let mut completed = None;
    for job in desk.take_ready(&wanted, taken, BEGINNING) {
        let claim = Claim { job, worker: drive::worker("w1"), lease_ms: 30_000 };
        decide(&Command::Claim(claim), desk);
        let token = desk.job(job).and_then(|job| job.lease()).expect("just claimed").token();
        let result = Some(number.to_string().into());
        decide(&Command::Complete(Complete { job, token, result }), desk);
        completed = Some(job);
    }
    let entity = entity(number);
    let alarm =
        |desk: &dyn Desk| desk.entity(entity).and_then(Entity::alarm_at).expect("it stands");
    if taken > 0 {
        let at = alarm(desk);
        decide_at(at, &Command::Ring { entity, at, jobs: Vec::new() }, desk);
    }
    let fired = log.iter().rev().find_map(|event| match event {
        Event::JobSubmitted(job) if job.id != submitted => Some(job.id),
        _ => None,
    });
    Deed { number, submitted, completed, alarm_at: alarm(desk), fired }
}

fn entity(number: u64) -> EntityId {
    EntityId { kind: Kind::Schedule, bits: u128::from(number) }
}

fn schedule(number: u64) -> Command {
    let rhythm = Rhythm::Interval { every_secs: 60, phase_secs: 0 };
    let spec = Box::new(ScheduleSpec::plain(drive::kind("plain"), rhythm));
    let (id, tenant, owner) = (entity(number), drive::tenant("acme"), drive::user("ada"));
    ScheduleCommand::Create { id, tenant, owner, spec }.into()
}

fn token(number: u64) -> Token {
    Token {
        id: TokenId(u128::from(number)),
        digest: [7; 32],
        tenant: drive::tenant("acme"),
        user: drive::user("ada"),
        roles: Roles(3),
        issued_at: BEGINNING,
        issued_by: drive::user("root"),
        issued_with: None,
        expires_at: None,
        revoked_at: None,
    }
}

fn judge(image: &SimDisk, deeds: &[Deed], acknowledged: u64) -> Result<(), String> {
    let store = super::open(image, 1)?;
    let tokens = drive::ready(store.tokens()).map_err(|error| error.to_string())?;
    let last = tokens.len() as u64;
    if tokens.iter().map(|token| token.id.0).ne(1..=u128::from(last)) {
        return Err(format!("D6: the {last} commits there are not the first ones"));
    }
    if last < acknowledged {
        return Err(format!("D1: commit {acknowledged} was acknowledged, {last} is the last"));
    }
    let alarms = drive::ready(store.alarms(FAR, usize::MAX)).map_err(|error| error.to_string())?;
    let alarms: BTreeMap<EntityId, Timestamp> = alarms.into_iter().collect();
    for deed in deeds {
        let is_there = deed.number <= last;
        for job in std::iter::once(deed.submitted).chain(deed.fired) {
            let found = drive::ready(store.job(job)).map_err(|error| error.to_string())?;
            if found.is_some() != is_there {
                return Err(format!("D6: {deed:?} is half there, {last} is the last"));
            }
        }
        let alarm_at = alarms.get(&entity(deed.number)).copied();
        if alarm_at != is_there.then_some(deed.alarm_at) {
            return Err(format!("D6: {deed:?} has its alarm at {alarm_at:?}, {last} is the last"));
        }
        let Some(completed) = deed.completed.filter(|_| deed.number <= last) else { continue };
        let found = drive::ready(store.job(completed)).map_err(|error| error.to_string())?;
        let state = found.map(|found| found.job.state.name());
        if state != Some(StateName::Succeeded) {
            return Err(format!("D6: {deed:?} completed a job that is {state:?}"));
        }
    }
    Ok(())
}
