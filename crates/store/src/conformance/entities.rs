//! Entities: versions, lists, alarms, and the one job of each firing.

use super::bench::{Bench, any, kind, tenant, user};
use crate::{EntityFilter, JobFilter, Scope};
use mainspring_kernel::entity::beacon::{Beacon, BeaconCommand};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::{Command, Entity, EntityId, Rejection, Timestamp};

/// The id of a beacon.
pub(super) fn id(bits: u128) -> EntityId {
    EntityId { kind: Kind::Beacon, bits }
}

/// Lights a beacon of ada of acme.
pub(super) fn light(bits: u128, every_ms: u64) -> Command {
    light_for("acme", "ada", bits, "mill", every_ms)
}

pub(super) fn light_for(
    owner: &str,
    person: &str,
    bits: u128,
    job_type: &str,
    every_ms: u64,
) -> Command {
    let (tenant, owner, job_type) = (tenant(owner), user(person), kind(job_type));
    BeaconCommand::Light { id: id(bits), tenant, owner, job_type, every_ms }.into()
}

pub(super) fn put_out(bits: u128) -> Command {
    BeaconCommand::PutOut { id: id(bits) }.into()
}

pub(super) fn remove(bits: u128) -> Command {
    BeaconCommand::Remove { id: id(bits) }.into()
}

/// Something that people do, by lot. An id that was removed is given again here: stores must not
/// mind.
pub fn any_command(below: &mut dyn FnMut(usize) -> usize) -> Command {
    match below(4) {
        0 | 1 => return super::schedules::any_command(below),
        2 => return super::triggers::any_command(below),
        _ => {}
    }
    let bits = 1 + below(6) as u128;
    match below(5) {
        0 => put_out(bits),
        1 => remove(bits),
        _ => {
            let (owner, person) = (["acme", "other"][below(2)], ["ada", "bob"][below(2)]);
            let (job_type, every_ms) = (["mill", "saw"][below(2)], [900, 4_000, 50_000][below(3)]);
            light_for(owner, person, bits, job_type, every_ms)
        }
    }
}

/// A filter, by lot.
pub(super) fn any_filter(scope: Scope, below: &mut dyn FnMut(usize) -> usize) -> EntityFilter {
    let kind = Kind::ALL[below(Kind::ALL.len())];
    // Of any kind: a state that the kind does not have finds nothing, in every store.
    let state = [None, Some("lit"), Some("out"), Some("active"), Some("paused")][below(5)];
    let job_type = [None, Some("mill"), Some("saw")][below(3)];
    EntityFilter {
        kind,
        scope,
        state: state.map(str::to_owned),
        field: job_type.map(|name| ("job_type".to_owned(), name.to_owned())),
    }
}

async fn read(bench: &Bench, bits: u128) -> Option<Entity> {
    bench.store.entity(id(bits)).await.expect("reads work")
}

async fn beacon(bench: &Bench, bits: u128) -> (u32, Beacon) {
    let entity = read(bench, bits).await.expect("the beacon is there");
    let Body::Beacon(beacon) = entity.body else { panic!("no beacon: {entity:?}") };
    (entity.version, beacon)
}

/// What a filter finds in pages of `limit`, and how many that are told to be.
pub(super) async fn listed(
    bench: &Bench,
    filter: &EntityFilter,
    limit: usize,
) -> (Vec<u128>, usize) {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = bench.store.entities(filter, before, limit).await.expect("reads work");
        let is_full = page.items.len() == limit;
        assert!(is_full || page.next.is_none(), "a page of {limit} is short: {filter:?}");
        assert!(page.items.iter().all(|entity| filter.admits(entity)), "{filter:?}");
        found.extend(page.items.iter().map(|entity| entity.id.bits));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    let counted = bench.store.count_entities(filter, 100).await.expect("reads work");
    (found, counted)
}

pub(super) async fn alarms(bench: &Bench, limit: usize) -> Vec<(EntityId, Timestamp)> {
    bench.store.alarms(bench.now, limit).await.expect("reads work")
}

/// Rings for an alarm.
pub(super) fn rung((entity, at): (EntityId, Timestamp)) -> Command {
    Command::Ring { entity, at, jobs: Vec::new() }
}

/// Rings everything that is due.
async fn ring(bench: &mut Bench) -> usize {
    let due = alarms(bench, 100).await;
    let rings = due.iter().copied().map(rung);
    let outcomes = bench.run(&rings.collect::<Vec<_>>()).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    due.len()
}

async fn jobs(bench: &Bench) -> usize {
    bench.store.count_jobs(&JobFilter::of(Scope::All), 1_000).await.expect("reads work")
}

pub(super) async fn an_entity_is_made_changed_and_removed(bench: &mut Bench) {
    assert_eq!(read(bench, 1).await, None);
    bench.done(light(1, 5_000)).await;
    let made = read(bench, 1).await.expect("it was made");
    assert_eq!((made.version, made.created_at, made.state()), (1, bench.now, "lit"));
    assert_eq!((made.tenant.as_str(), made.owner.as_str()), ("acme", "ada"));
    bench.pass(1_000);
    bench.done(put_out(1)).await;
    let changed = read(bench, 1).await.expect("it is there");
    assert_eq!((changed.version, changed.updated_at, changed.state()), (2, bench.now, "out"));
    assert_eq!(changed.created_at, made.created_at);
    bench.done(remove(1)).await;
    assert_eq!(read(bench, 1).await, None);
    let unknown = Rejection::EntityUnknown { kind: Kind::Beacon };
    assert_eq!(bench.one(remove(1)).await, Err(unknown));
}

pub(super) async fn commands_of_a_batch_see_an_entity_as_it_is(bench: &mut Bench) {
    let outcomes = bench.run(&[light(1, 9), light(1, 9), put_out(1), remove(1), put_out(1)]).await;
    let kind = Kind::Beacon;
    assert_eq!(outcomes[1], Err(Rejection::EntityExists { kind }));
    assert!(outcomes[2].is_ok() && outcomes[3].is_ok());
    assert_eq!(outcomes[4], Err(Rejection::EntityUnknown { kind }));
    assert_eq!(read(bench, 1).await, None);
    let mine = EntityFilter::of(kind, Scope::All);
    assert_eq!(listed(bench, &mine, 5).await, (vec![], 0));
    bench.pass(100);
    assert_eq!(alarms(bench, 9).await, [], "what was removed rings no more");
}

pub(super) async fn entities_are_listed_by_owner_state_and_field(bench: &mut Bench) {
    for bits in 1..=12 {
        let owner = if bits % 2 == 0 { "acme" } else { "other" };
        let person = if bits % 3 == 0 { "ada" } else { "bob" };
        let job_type = if bits % 4 == 0 { "mill" } else { "saw" };
        bench.done(light_for(owner, person, bits, job_type, 60_000)).await;
    }
    for bits in [2, 6, 7] {
        bench.done(put_out(bits)).await;
    }
    bench.done(remove(12)).await;
    let all = EntityFilter::of(Kind::Beacon, Scope::All);
    for limit in [1, 2, 5, 50] {
        let expected: Vec<u128> = (1..=11).rev().collect();
        assert_eq!(listed(bench, &all, limit).await, (expected, 11));
        let acme = EntityFilter { scope: Scope::Tenant(tenant("acme")), ..all.clone() };
        assert_eq!(listed(bench, &acme, limit).await, (vec![10, 8, 6, 4, 2], 5));
        let ada = Scope::User(tenant("acme"), user("ada"));
        let ada = EntityFilter { scope: ada, ..all.clone() };
        assert_eq!(listed(bench, &ada, limit).await, (vec![6], 1));
        let out = EntityFilter { state: Some("out".to_owned()), ..all.clone() };
        assert_eq!(listed(bench, &out, limit).await, (vec![7, 6, 2], 3));
        let mill = Some(("job_type".to_owned(), "mill".to_owned()));
        let mill = EntityFilter { field: mill, ..all.clone() };
        assert_eq!(listed(bench, &mill, limit).await, (vec![8, 4], 2));
        let lit = EntityFilter { state: Some("lit".to_owned()), ..acme.clone() };
        assert_eq!(listed(bench, &lit, limit).await, (vec![10, 8, 4], 3));
        let both = EntityFilter { field: mill.field.clone(), ..lit.clone() };
        assert_eq!(listed(bench, &both, limit).await, (vec![8, 4], 2));
        let none = EntityFilter { state: Some("out".to_owned()), ..both };
        assert_eq!(listed(bench, &none, limit).await, (vec![], 0));
    }
    assert_eq!(bench.store.count_entities(&all, 4).await.expect("reads work"), 4);
}

pub(super) async fn an_alarm_rings_once_and_is_set_anew(bench: &mut Bench) {
    let start = bench.now;
    bench.done(light(1, 5_000)).await;
    let wake = bench.store.wake(bench.now).await.expect("reads work");
    assert_eq!(wake.next, Some(start.plus_millis(5_000)), "the timers know of it");
    bench.pass(4_999);
    assert_eq!(alarms(bench, 9).await, []);
    bench.pass(1);
    let due = (id(1), start.plus_millis(5_000));
    assert_eq!(alarms(bench, 9).await, [due]);
    assert_eq!(ring(bench).await, 1);
    assert_eq!(alarms(bench, 9).await, []);
    let (version, now) = beacon(bench, 1).await;
    assert_eq!((version, now.fired, now.next_at), (2, 1, Some(start.plus_millis(10_000))));
    let late = rung(due);
    assert_eq!(bench.one(late).await, Err(Rejection::NotDue), "another server was faster");
    let early = rung((id(1), start.plus_millis(10_000)));
    assert_eq!(bench.one(early).await, Err(Rejection::NotDue));
    bench.done(put_out(1)).await;
    bench.pass(60_000);
    assert_eq!(alarms(bench, 9).await, [], "an entity without an alarm does not ring");
}

pub(super) async fn alarms_come_earliest_first_and_no_more_than_asked(bench: &mut Bench) {
    for (bits, every_ms) in [(1, 3_000), (2, 1_000), (3, 2_000), (4, 90_000)] {
        bench.done(light(bits, every_ms)).await;
    }
    bench.pass(5_000);
    let order: Vec<u128> = alarms(bench, 9).await.iter().map(|(id, _)| id.bits).collect();
    assert_eq!(order, [2, 3, 1]);
    assert_eq!(alarms(bench, 2).await.len(), 2);
}

pub(super) async fn a_firing_has_one_job(bench: &mut Bench) {
    bench.done(light(1, 5_000)).await;
    bench.pass(5_000);
    let (entity, at) = alarms(bench, 1).await[0];
    let ring = rung((entity, at));
    let outcomes = bench.run(&[ring.clone(), ring.clone(), ring]).await;
    assert!(outcomes[0].is_ok() && outcomes[1].is_err() && outcomes[2].is_err(), "{outcomes:?}");
    assert_eq!(jobs(bench).await, 1);
    let granted = bench.pull(any(5)).await;
    assert_eq!(granted.len(), 1);
    assert_eq!((granted[0].tenant.as_str(), granted[0].user.as_str()), ("acme", "ada"));
    let key = granted[0].idempotency.as_ref().expect("a fired job has a key");
    assert_eq!(key.hash, mainspring_kernel::firing::key(entity, at));
    // Nobody gets a second job under that key, whatever became of the alarm.
    let again = super::bench::wish();
    let again = mainspring_kernel::command::Submit { idempotency: Some(key.clone()), ..again };
    bench.done(super::bench::submit(again)).await;
    assert_eq!(jobs(bench).await, 1);
}

pub(super) async fn what_went_by_meanwhile_fires_once(bench: &mut Bench) {
    let start = bench.now;
    bench.done(light(1, 1_000)).await;
    bench.pass(7_400);
    assert_eq!(ring(bench).await, 1);
    let (_, now) = beacon(bench, 1).await;
    assert_eq!((now.fired, now.next_at), (1, Some(start.plus_millis(8_000))));
    assert_eq!(jobs(bench).await, 1);
}

pub(super) async fn a_firing_that_is_refused_is_counted_and_the_alarm_goes_on(bench: &mut Bench) {
    let payload = format!("\"{}\"", "x".repeat(900_000));
    for _ in 0..4 {
        let wish = super::bench::wish();
        let big = mainspring_kernel::command::Submit { payload: payload.as_str().into(), ..wish };
        let _ = bench.one(super::bench::submit(big)).await;
    }
    let before = jobs(bench).await;
    bench.done(light(1, 1_000)).await;
    bench.pass(1_000);
    assert_eq!(ring(bench).await, 1);
    let (_, now) = beacon(bench, 1).await;
    let is_full = jobs(bench).await == before;
    assert_eq!((now.fired, now.missed), if is_full { (0, 1) } else { (1, 0) });
    assert!(now.next_at > Some(bench.now));
}
