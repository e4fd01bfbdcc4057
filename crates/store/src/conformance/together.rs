//! Commands that are taken all or none.

use super::bench::{BACKLOG_MAX, Bench, complete, everything, key, submit, tenant, wish};
use super::entities;
use mainspring_kernel::command::Submit;
use mainspring_kernel::{Command, JobId, Payload, Receipt, Rejection, StateName};

fn cancel(job: JobId) -> Command {
    Command::Cancel { job, by: wish().user, reason: None }
}

pub(super) async fn parts_are_taken_all_or_none(bench: &mut Bench) {
    let known = bench.submit(wish()).await;
    for unknown_at in [0, 1, 2] {
        let mut parts = vec![submit(wish()), cancel(known)];
        parts.insert(unknown_at, cancel(JobId(1)));
        assert_eq!(bench.one(Command::Together(parts)).await, Err(Rejection::JobUnknown));
        assert_eq!(bench.list(&everything(), 10).await, [known], "unknown at {unknown_at}");
        assert_eq!(bench.state(known).await, StateName::Queued);
        assert_eq!(bench.job(known).await.history.len(), 1);
    }
}

pub(super) async fn parts_of_different_things_are_one_change(bench: &mut Bench) {
    bench.submit(wish()).await;
    let held = bench.grant().await;
    let keyed = Submit { idempotency: key("k1", None), ..wish() };
    let parts = vec![complete(&held), submit(keyed), entities::light(3, 5_000), submit(wish())];
    let all = Command::Together(parts);
    let Receipt::Together(told) = bench.done(all.clone()).await else { panic!("told otherwise") };
    let [ended, Receipt::Submitted { job: first }, lit, Receipt::Submitted { job: second }] =
        &told[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!(*ended, Receipt::Moved { state: StateName::Succeeded });
    assert_eq!(*lit, Receipt::Done);
    assert_eq!(bench.state(held.id).await, StateName::Succeeded);
    assert_eq!(bench.pulled(5).await, [*first, *second]);
    assert_eq!(entities::alarms(bench, 4).await, []);
    bench.pass(5_000);
    assert_eq!(entities::alarms(bench, 4).await.len(), 1);
    // The second time the beacon is there already: nothing else of it happens either.
    assert!(matches!(bench.one(all).await, Err(Rejection::EntityExists { .. })));
    assert_eq!(bench.list(&everything(), 10).await.len(), 3);
}

pub(super) async fn parts_that_touch_the_same_thing_are_refused(bench: &mut Bench) {
    let job = bench.submit(wish()).await;
    let keyed = || submit(Submit { idempotency: key("k1", None), ..wish() });
    let one = || Command::Together(vec![submit(wish())]);
    for parts in [
        vec![cancel(job), cancel(job)],
        vec![keyed(), keyed()],
        vec![entities::light(3, 5_000), entities::put_out(3)],
        vec![one(), one()],
        (0..1_001).map(|_| submit(wish())).collect(),
    ] {
        let outcome = bench.one(Command::Together(parts)).await;
        let Err(Rejection::FieldInvalid { field: "commands", .. }) = outcome else {
            panic!("{outcome:?}")
        };
    }
    assert_eq!(bench.list(&everything(), 10).await, [job]);
}

pub(super) async fn parts_share_one_room(bench: &mut Bench) {
    let payload = Payload::from(&*format!("\"{}\"", "x".repeat((1 << 20) - 2)));
    let large = || submit(Submit { tenant: tenant("a"), payload: payload.clone(), ..wish() });
    let too_many = Command::Together((0..4).map(|_| large()).collect());
    assert_eq!(bench.one(too_many).await, Err(Rejection::TenantBacklogFull));
    assert_eq!(bench.list(&everything(), 10).await, []);
    bench.done(Command::Together((0..3).map(|_| large()).collect())).await;
    assert!(3 << 20 < BACKLOG_MAX.0 && 4 << 20 > BACKLOG_MAX.0);
}
