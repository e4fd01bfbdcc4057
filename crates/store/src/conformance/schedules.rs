//! Schedules: what a store must make of decisions about an entity and its jobs.

use super::bench::{Bench, any, complete, fail, kind, tenant, user};
use super::entities::{alarms, listed, rung};
use crate::{EntityFilter, JobFilter, Scope};
use mainspring_kernel::calendar::{Cron, Date, Exclusions, Fold, Gap, Rhythm, Zone};
use mainspring_kernel::entity::schedule::{
    Misfire, Overlap, Schedule, ScheduleCommand, ScheduleSpec,
};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::{Command, EntityId, Job, JobId, Receipt, Rejection, StateName, firing};

fn id(bits: u128) -> EntityId {
    EntityId { kind: Kind::Schedule, bits }
}

fn every(every_secs: u64) -> ScheduleSpec {
    ScheduleSpec::plain(kind("mill"), Rhythm::Interval { every_secs, phase_secs: 0 })
}

fn create(bits: u128, spec: ScheduleSpec) -> Command {
    let (tenant, owner) = (tenant("acme"), user("ada"));
    ScheduleCommand::Create { id: id(bits), tenant, owner, spec: Box::new(spec) }.into()
}

/// Something that people do to schedules, by lot.
pub(super) fn any_command(below: &mut dyn FnMut(usize) -> usize) -> Command {
    let id = id(1 + below(5) as u128);
    let command = match below(12) {
        0 => ScheduleCommand::Pause { id, by: user("bob"), note: Some("tea".into()) },
        1 | 2 => ScheduleCommand::Resume { id },
        3 => ScheduleCommand::Stop { id },
        4 => ScheduleCommand::Remove { id },
        5 => {
            let at = mainspring_kernel::Timestamp::from_millis(1_790_000_000_000);
            ScheduleCommand::Trigger { id, at: at.plus_millis(below(9) as u64) }
        }
        6 => {
            let at = mainspring_kernel::Timestamp::from_millis(1_790_000_000_000);
            ScheduleCommand::Backfill { id, at: at.plus_millis(1_000 * below(60) as u64) }
        }
        7 => ScheduleCommand::Update { id, spec: Box::new(any_spec(below)) },
        _ => ScheduleCommand::Create {
            id,
            tenant: tenant(["acme", "other"][below(2)]),
            owner: user(["ada", "bob"][below(2)]),
            spec: Box::new(any_spec(below)),
        },
    };
    command.into()
}

fn any_spec(below: &mut dyn FnMut(usize) -> usize) -> ScheduleSpec {
    let limit = |below: &mut dyn FnMut(usize) -> usize| [None, Some(2), Some(9)][below(3)];
    ScheduleSpec {
        job_type: kind(["mill", "saw"][below(2)]),
        misfire: Misfire::ALL[below(3)],
        misfire_limit: [1, 3, 100][below(3)],
        overlap: Overlap::ALL[below(4)],
        jitter_secs: [0, 0, 5][below(3)],
        max_runs: limit(below),
        pause_after_failures: limit(below),
        ..every([2, 7, 45][below(3)])
    }
}

async fn schedule(bench: &Bench, bits: u128) -> Schedule {
    let entity = bench.store.entity(id(bits)).await.expect("reads work").expect("it is there");
    let Body::Schedule(schedule) = entity.body else { panic!("no schedule: {entity:?}") };
    *schedule
}

/// Rings what is due until nothing is, as the engine does; how often.
async fn ring_all(bench: &mut Bench) -> usize {
    for turn in 0..500 {
        let due = alarms(bench, 100).await;
        if due.is_empty() {
            return turn;
        }
        for alarm in due {
            if let Receipt::Wanting { jobs } = bench.done(rung(alarm)).await {
                let again = Command::Ring { entity: alarm.0, at: alarm.1, jobs };
                assert_eq!(bench.done(again).await, Receipt::Done);
            }
        }
    }
    panic!("it rings for ever");
}

/// The one job there is to pull, for longer than the test lasts.
async fn long_grant(bench: &mut Bench) -> Job {
    let job = bench.grant().await;
    let until = bench.now.plus_millis(800_000);
    bench.done(Command::ExtendLease { job: job.id, until }).await;
    job
}

/// Its jobs, the oldest first.
async fn jobs(bench: &Bench, bits: u128) -> Vec<Job> {
    let labels = vec![("schedule_id".to_owned(), id(bits).to_string())];
    let filter = JobFilter { labels, ..JobFilter::of(Scope::All) };
    let mut found = bench.store.jobs(&filter, None, 100).await.expect("reads work").items;
    found.reverse();
    found
}

pub(super) async fn a_schedule_is_kept_to_the_letter(bench: &mut Bench) {
    let day = |text| Date::parse(text).expect("a date");
    let zone = Zone::parse("Europe/Berlin").expect("a zone");
    let cron = Cron::parse("*/5 9-17 * * 1-5").expect("a pattern");
    let rhythm = Rhythm::Cron { cron, zone: zone.clone(), gap: Gap::Skip, fold: Fold::Twice };
    let spec = ScheduleSpec {
        name: Some("the mill \u{e9}".into()),
        payload: "{\"b\":1,\"a\":2}".into(),
        rhythm,
        misfire: Misfire::All,
        misfire_limit: 7,
        overlap: Overlap::QueueOne,
        jitter_secs: 9,
        start_at: Some(bench.now.plus_millis(1)),
        end_at: Some(bench.now.plus_millis(40_000_000_000)),
        max_runs: Some(12),
        exclude: Exclusions::new(vec![(day("2026-12-24"), day("2027-01-01"))]).expect("a range"),
        zone,
        pause_after_failures: Some(4),
        queue: Some(super::bench::queue("slow")),
        priority: Some(3),
        timeout_ms: Some(5_000),
        max_retries: Some(1),
        labels: vec![("team".into(), "red".into())],
        ..every(1)
    };
    bench.done(create(1, spec.clone())).await;
    let kept = schedule(bench, 1).await;
    assert_eq!(kept.spec, spec);
    assert_eq!((&*kept.namespace, kept.state()), ("user:ada", "active"));
    assert!(kept.next_at.is_some_and(|next| next > bench.now));
    let mine = Some(("namespace".to_owned(), "user:ada".to_owned()));
    let filter = EntityFilter { field: mine, ..EntityFilter::of(Kind::Schedule, Scope::All) };
    assert_eq!(listed(bench, &filter, 5).await, (vec![1], 1));
    for kind in Kind::ALL.iter().filter(|kind| **kind != Kind::Schedule) {
        let none = EntityFilter::of(*kind, Scope::All);
        assert_eq!(listed(bench, &none, 5).await, (vec![], 0), "kinds are apart");
    }
}

pub(super) async fn a_firing_of_a_schedule_has_one_job(bench: &mut Bench) {
    bench
        .done(create(1, ScheduleSpec { labels: vec![("a".into(), "b".into())], ..every(60) }))
        .await;
    bench.pass(61_000);
    let due = alarms(bench, 5).await;
    assert_eq!(due.len(), 1);
    let ring = rung(due[0]);
    let outcomes = bench.run(&[ring.clone(), ring.clone()]).await;
    assert!(outcomes[0].is_ok(), "{outcomes:?}");
    assert_eq!(outcomes[1], Err(Rejection::NotDue));
    assert_eq!(bench.one(ring).await, Err(Rejection::NotDue));
    let made = jobs(bench, 1).await;
    assert_eq!(made.len(), 1);
    let origin = firing::origin(&made[0]).expect("it came from a schedule");
    assert_eq!((origin.entity, origin.at), due[0]);
    // Neither a backfill nor a trigger for the same instant makes a second one.
    let (id, at) = due[0];
    for command in [ScheduleCommand::Backfill { id, at }, ScheduleCommand::Trigger { id, at }] {
        let again = bench.done(command.into()).await;
        assert!(matches!(again, Receipt::Existing { job, .. } if job == made[0].id), "{again:?}");
    }
    assert_eq!(jobs(bench, 1).await.len(), 1);
}

pub(super) async fn a_firing_has_one_job_though_its_key_is_forgotten(bench: &mut Bench) {
    bench.done(create(1, every(60))).await;
    bench.pass(61_000);
    ring_all(bench).await;
    let first = bench.grant().await;
    let by_itself = firing::origin(&first).expect("it came from a schedule").at;
    bench.done(complete(&first)).await;
    bench.pass(120_000);
    let pause = ScheduleCommand::Pause { id: id(1), by: user("ada"), note: None };
    bench.done(pause.into()).await;
    let gone_by = by_itself.plus_millis(240_000);
    bench.pass(180_000);
    let backfill = |at| Command::from(ScheduleCommand::Backfill { id: id(1), at });
    bench.done(backfill(gone_by)).await;
    let second = bench.grant().await;
    assert_eq!(firing::origin(&second).expect("it came from a schedule").at, gone_by);
    bench.done(complete(&second)).await;
    // More than a day later nobody remembers the keys.
    for _ in 0..3 {
        bench.pass(12 * 3_600_000);
        let _ = bench.store.maintain(bench.now).await;
    }
    for at in [by_itself, gone_by] {
        let before = schedule(bench, 1).await;
        assert_eq!(bench.one(backfill(at)).await, Err(Rejection::FiringDone), "{at:?}");
        assert_eq!(schedule(bench, 1).await, before, "nothing changed");
    }
    assert_eq!(bench.pull(any(5)).await.len(), 0, "there is no second job");
    // What had no job can still be filled in.
    bench.done(backfill(gone_by.plus_millis(60_000))).await;
    assert_eq!(bench.pull(any(5)).await.len(), 1);
}

pub(super) async fn missed_firings_are_made_up_for_and_told(bench: &mut Bench) {
    for (place, misfire) in Misfire::ALL.into_iter().enumerate() {
        let spec = ScheduleSpec { misfire, misfire_limit: 3, ..every(60) };
        bench.done(create(1 + place as u128, spec)).await;
    }
    bench.pass(10 * 60_000);
    ring_all(bench).await;
    for (bits, fired, told) in [(1, 1, 10), (2, 0, 10), (3, 3, 10)] {
        let kept = schedule(bench, bits).await;
        assert_eq!(jobs(bench, bits).await.len(), fired, "{:?}", kept.spec.misfire);
        assert_eq!(kept.runs as usize, fired);
        let all: u64 = kept.history.iter().map(|outcome| outcome.count).sum();
        assert_eq!(all, told, "each is told of: {:?}", kept.history);
        assert!(kept.next_at.is_some_and(|next| next > bench.now));
    }
}

pub(super) async fn a_job_that_has_not_ended_holds_the_next_one_up(bench: &mut Bench) {
    bench.done(create(1, ScheduleSpec { overlap: Overlap::Skip, ..every(60) })).await;
    bench.pass(60_000);
    ring_all(bench).await;
    let first = long_grant(bench).await;
    bench.pass(60_000);
    ring_all(bench).await;
    assert_eq!(jobs(bench, 1).await.len(), 1);
    assert_eq!(schedule(bench, 1).await.outstanding, [first.id]);
    bench.pass(1_000);
    bench.done(complete(&first)).await;
    // Nobody tells it, and it looks: also at a job that has ended and is kept elsewhere.
    bench.pass(59_000);
    let _ = bench.store.maintain(bench.now).await;
    ring_all(bench).await;
    assert_eq!(jobs(bench, 1).await.len(), 2);
    assert_eq!(schedule(bench, 1).await.skipped, 1);
}

pub(super) async fn the_end_of_a_job_lets_the_next_one_go(bench: &mut Bench) {
    bench.done(create(1, ScheduleSpec { overlap: Overlap::QueueOne, ..every(60) })).await;
    bench.pass(60_000);
    ring_all(bench).await;
    let first = long_grant(bench).await;
    bench.pass(60_000);
    ring_all(bench).await;
    assert_eq!(jobs(bench, 1).await.len(), 1);
    let settle = |job: JobId| Command::Settle { entity: id(1), jobs: vec![job] };
    assert_eq!(bench.one(settle(first.id)).await, Err(Rejection::NotDue), "it still runs");
    bench.pass(5_000);
    // The end and the word of it may be in one batch.
    let outcomes = bench.run(&[complete(&first), settle(first.id)]).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let waiting = schedule(bench, 1).await.waiting.expect("one waits");
    assert_eq!(alarms(bench, 5).await, [(id(1), waiting.at)], "its alarm has come");
    ring_all(bench).await;
    assert_eq!(jobs(bench, 1).await.len(), 2);
    assert_eq!(schedule(bench, 1).await.waiting, None);
}

pub(super) async fn what_runs_is_cancelled_by_the_commit_that_fires(bench: &mut Bench) {
    bench.done(create(1, ScheduleSpec { overlap: Overlap::CancelRunning, ..every(60) })).await;
    bench.pass(60_000);
    ring_all(bench).await;
    let first = long_grant(bench).await;
    bench.pass(60_000);
    ring_all(bench).await;
    assert_eq!(bench.state(first.id).await, StateName::Cancelled);
    let made = jobs(bench, 1).await;
    assert_eq!(made.len(), 2);
    assert!(bench.one(complete(&first)).await.is_err(), "its worker comes too late");
    assert_eq!(bench.pull(any(5)).await.len(), 1, "the new one is there to be had");
}

pub(super) async fn failures_in_a_row_pause_a_schedule(bench: &mut Bench) {
    bench.done(create(1, ScheduleSpec { pause_after_failures: Some(2), ..every(60) })).await;
    for _ in 0..2 {
        bench.pass(60_000);
        ring_all(bench).await;
        let job = bench.grant().await;
        bench.done(fail(&job, false)).await;
    }
    bench.pass(60_000);
    ring_all(bench).await;
    let kept = schedule(bench, 1).await;
    assert_eq!((kept.state(), kept.runs), ("paused", 2));
    assert_eq!(alarms(bench, 5).await, []);
    bench.done(ScheduleCommand::Resume { id: id(1) }.into()).await;
    bench.pass(60_000);
    ring_all(bench).await;
    assert_eq!(jobs(bench, 1).await.len(), 3);
}

pub(super) async fn a_schedule_outlives_its_jobs(bench: &mut Bench) {
    bench.done(create(1, every(60))).await;
    for turn in 0..4 {
        bench.pass(60_000);
        ring_all(bench).await;
        let job = bench.grant().await;
        let end = match turn {
            0 => complete(&job),
            1 => fail(&job, false),
            _ => Command::Cancel { job: job.id, by: user("ada"), reason: None },
        };
        bench.done(end).await;
    }
    let kept = schedule(bench, 1).await;
    assert_eq!((kept.state(), kept.runs), ("active", 4));
    // And its jobs outlive it.
    bench.pass(60_000);
    ring_all(bench).await;
    bench.done(ScheduleCommand::Remove { id: id(1) }.into()).await;
    assert_eq!(bench.pull(any(5)).await.len(), 1);
    bench.pass(600_000);
    assert_eq!(ring_all(bench).await, 0);
}
