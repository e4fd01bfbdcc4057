//! Schedules in an engine: what wakes it, what does not, and what it does besides commands.

use crate::bench::{Bench, pull, tenant};
use mainspring_kernel::calendar::Rhythm;
use mainspring_kernel::entity::schedule::{Overlap, Schedule, ScheduleCommand, ScheduleSpec};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{Command, EntityId, JobType, Timestamp, UserId, firing};
use mainspring_store::Store;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

const START: i64 = 1_790_000_000_000_000;

fn id(bits: u128) -> EntityId {
    EntityId { kind: Kind::Schedule, bits }
}

fn spec(rhythm: Rhythm) -> ScheduleSpec {
    ScheduleSpec::plain(JobType::new("mill").unwrap(), rhythm)
}

fn every(every_secs: u64) -> ScheduleSpec {
    spec(Rhythm::Interval { every_secs, phase_secs: 0 })
}

fn create(bits: u128, spec: ScheduleSpec) -> Command {
    let owner = UserId::new("ada").unwrap();
    let (tenant, spec) = (tenant("acme"), Box::new(spec));
    ScheduleCommand::Create { id: id(bits), tenant, owner, spec }.into()
}

async fn schedule(bench: &Bench, id: EntityId) -> Schedule {
    let entity = bench.engine.entity(id).await.unwrap().unwrap();
    let Body::Schedule(schedule) = entity.body else { panic!("no schedule: {entity:?}") };
    *schedule
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_schedules_far_ahead_cost_an_idle_server_nothing() {
    let looks = |bench: &Bench| bench.store.looks.load(Ordering::Relaxed);
    let commits = |bench: &Bench| bench.store.commits.load(Ordering::Relaxed);
    let hour = async |bench: &Bench| {
        tokio::time::sleep(Duration::from_secs(60)).await; // paced: what was begun is done
        let before = (looks(bench), commits(bench));
        tokio::time::sleep(Duration::from_secs(3_600)).await; // paced: an hour without work
        (looks(bench) - before.0, commits(bench) - before.1)
    };
    let bench = Bench::new().await;
    let without = hour(&bench).await;
    let at = Timestamp(START + 86_400_000_000 * 30);
    for some in 0..10 {
        let commands = (0..10_000).map(|nth| create(1 + some * 10_000 + nth, spec(Rhythm::At(at))));
        let outcomes = bench.engine.execute(commands.collect()).await.unwrap();
        assert!(outcomes.iter().all(Result::is_ok));
    }
    let with = hour(&bench).await;
    println!("looks and commits in an idle hour: {without:?}, with 100000 schedules {with:?}");
    assert_eq!(with, without);
    assert!(with.0 <= 260 && with.1 == 0, "two looks each half minute and nothing else: {with:?}");
}

#[tokio::test(start_paused = true)]
async fn the_timer_wakes_for_each_firing_and_for_nothing_else() {
    let bench = Bench::new().await;
    bench.engine.execute_one(create(1, every(600))).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(3_600)).await; // paced: an hour of firing
    let now = schedule(&bench, id(1)).await;
    assert_eq!((now.runs, now.skipped), (6, 0));
    assert!(now.history.iter().all(|outcome| outcome.late_ms < 5), "{:?}", now.history);
    // One commit to make it and one for each firing.
    assert_eq!(bench.store.commits.load(Ordering::Relaxed), 7);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_job_goes_as_soon_as_the_job_has_ended() {
    let bench = Bench::new().await;
    let one = ScheduleSpec { overlap: Overlap::QueueOne, ..every(100) };
    bench.engine.execute_one(create(1, one)).await.unwrap().unwrap();
    let grant = bench.engine.pull(pull(300_000)).await.unwrap().remove(0);
    let origin = firing::origin(&grant.job).unwrap();
    assert!(origin.is_watched && origin.entity == id(1));
    while schedule(&bench, id(1)).await.waiting.is_none() {
        let later = bench.engine.now().plus_millis(60_000);
        let beat = Command::ExtendLease { job: grant.job.id, until: later };
        let _ = bench.engine.execute_one(beat).await;
        tokio::time::sleep(Duration::from_secs(1)).await; // paced: until the next is due
        assert!(bench.engine.now().0 < START + 600_000_000, "none waits");
    }
    bench.complete(&grant).await.unwrap();
    let began = Instant::now();
    let next = bench.engine.pull(pull(30_000)).await.unwrap();
    assert_eq!(next.len(), 1, "it was told of the end");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(firing::origin(&next[0].job).unwrap().at.0, origin.at.0 + 100_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_looks_for_itself_when_no_word_of_an_end_came() {
    let bench = Bench::new().await;
    let one = ScheduleSpec { overlap: Overlap::Skip, ..every(100) };
    bench.engine.execute_one(create(1, one)).await.unwrap().unwrap();
    let grant = bench.engine.pull(pull(300_000)).await.unwrap().remove(0);
    // The end is committed behind the engine's back, as by a server that died right after.
    let ends = crate::bench::complete(&grant);
    let store = bench.store.clone();
    let needs = mainspring_store::needs_of([&ends], bench.engine.now());
    let now = bench.engine.now();
    let mut work = |desk: &mut dyn mainspring_store::Desk| {
        mainspring_store::conformance::act(&ends, desk, now, 9).unwrap();
    };
    store.model.commit(needs, &mut work).await.unwrap();
    assert_eq!(schedule(&bench, id(1)).await.outstanding, [grant.job.id]);
    tokio::time::sleep(Duration::from_secs(120)).await; // paced: until the next is due
    let now = schedule(&bench, id(1)).await;
    assert_eq!((now.runs, now.skipped), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_running_job_makes_the_next_firing_be_skipped() {
    let bench = Bench::new().await;
    let one = ScheduleSpec { overlap: Overlap::Skip, ..every(10) };
    bench.engine.execute_one(create(1, one)).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(45)).await; // paced: four firings
    let now = schedule(&bench, id(1)).await;
    assert_eq!((now.runs, now.skipped), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_template_is_registered_once_however_often_it_is() {
    let bench = Bench::new().await;
    let (entry, other) = (Digest([1; 16]), Digest([2; 16]));
    let ensure = |name: &'static str, entry| {
        let engine = bench.engine.clone();
        async move { engine.ensure_template(tenant("acme"), name, entry, every(60)).await.unwrap() }
    };
    let first = ensure("nightly", entry).await.unwrap();
    assert!(first.is_new);
    for entry in [entry, entry, other] {
        let again = ensure("nightly", entry).await.unwrap();
        assert_eq!((again.id, again.is_new), (first.id, false));
    }
    let second = ensure("weekly", entry).await.unwrap();
    assert!(second.is_new && second.id != first.id);
    assert_eq!(&*schedule(&bench, first.id).await.namespace, "system");
}

#[tokio::test(start_paused = true)]
async fn triggers_and_backfills_make_their_jobs_once() {
    let bench = Bench::new().await;
    bench.engine.execute_one(create(1, every(10))).await.unwrap().unwrap();
    let job = bench.engine.trigger(id(1)).await.unwrap().unwrap();
    assert!(bench.has_job(job).await);
    let from = Timestamp(START - 5_000_000_000);
    let to = Timestamp(START - 1_000_000_000);
    let first = bench.engine.backfill(id(1), (from, to), 10_000).await.unwrap().unwrap();
    assert_eq!(first.len(), 401, "from, to and all between");
    assert!(first.iter().all(|it| matches!(it.outcome, Ok((_, true)))));
    let again = bench.engine.backfill(id(1), (from, to), 10_000).await.unwrap().unwrap();
    let jobs = |all: &[mainspring_engine::Backfilled]| -> Vec<_> {
        all.iter().map(|it| (it.at, it.outcome.clone().unwrap().0)).collect()
    };
    assert_eq!(jobs(&first), jobs(&again));
    assert!(again.iter().all(|it| matches!(it.outcome, Ok((_, false)))));
    assert_eq!(schedule(&bench, id(1)).await.by_hand, 402);
    let far = (Timestamp(START - 900_000_000_000), Timestamp::MAX);
    let bounded = bench.engine.backfill(id(1), far, usize::MAX).await.unwrap().unwrap();
    assert_eq!(bounded.len(), 1_000);
    let unknown = bench.engine.backfill(id(2), far, 1).await.unwrap();
    assert!(unknown.is_err());
}
