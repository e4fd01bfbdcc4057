//! Lists, counts, the log of moves.

use super::bench::{
    Bench, any, complete, everything, fail, kind, queue, submit, tenant, user, wish,
};
use super::dlq::buried;
use crate::{Counts, JobFilter, Scope, TypeCount};
use mainspring_kernel::command::Submit;
use mainspring_kernel::registry::ConcurrencyScope;
use mainspring_kernel::sealing::Stretch;
use mainspring_kernel::{Command, DlqId, JobId, JobType, QueueSpec, StateName, TokenId, TypeSpec};
use std::collections::BTreeMap;

pub(super) async fn unknown_things_are_none(bench: &mut Bench) {
    let store = &bench.store;
    assert!(store.job(JobId(5)).await.expect("reads work").is_none());
    assert!(store.item(DlqId(5)).await.expect("reads work").is_none());
    assert!(store.token(TokenId(5)).await.expect("reads work").is_none());
    assert!(store.standing(JobId(5), bench.now).await.expect("reads work").is_none());
    assert!(store.jobs(&everything(), None, 5).await.expect("reads work").items.is_empty());
    assert!(store.running().await.expect("reads work").is_empty());
    assert!(store.overdue(bench.now, 5).await.expect("reads work").is_empty());
    let counts = store.counts(bench.now).await.expect("reads work");
    assert_eq!((counts.by_state, counts.submitted), ([0; 8], 0));
    let moves = store.moves_after(0, 5).await.expect("reads work");
    assert_eq!((moves.moves.len(), moves.newest, moves.has_gap), (0, 0, false));
}

pub(super) async fn lists_go_newest_first_in_pages(bench: &mut Bench) {
    let mut ids = Vec::new();
    for _ in 0..7 {
        ids.insert(0, bench.submit(wish()).await);
        bench.pass(1);
    }
    let job = bench.grant().await;
    bench.done(complete(&job)).await;
    let asked = [&ids[..], &[JobId(5)]].concat();
    assert_eq!(bench.store.ended(&asked).await.expect("reads work"), [job.id]);
    assert!(bench.store.held(&asked).await.expect("reads work").is_empty(), "nobody else is here");
    for limit in [1, 3, 7, 100] {
        assert_eq!(bench.list(&everything(), limit).await, ids, "pages of {limit}");
    }
    let page = bench.store.jobs(&everything(), Some(ids[2]), 2).await.expect("reads work");
    assert_eq!(page.items.iter().map(|job| job.id).collect::<Vec<_>>(), ids[3..5]);
}

pub(super) async fn lists_are_filtered(bench: &mut Bench) {
    let plain = bench.submit(wish()).await;
    let saw = bench.submit(Submit { job_type: kind("saw"), ..wish() }).await;
    let slow = bench.submit(Submit { queue: Some(queue("slow")), ..wish() }).await;
    let traced = bench.submit(Submit { trace: Some("t1".into()), ..wish() }).await;
    let only = |filter: JobFilter| filter;
    let by_type = only(JobFilter { job_type: Some(kind("saw")), ..everything() });
    assert_eq!(bench.list(&by_type, 2).await, [saw]);
    let by_queue = only(JobFilter { queue: Some(queue("slow")), ..everything() });
    assert_eq!(bench.list(&by_queue, 2).await, [slow]);
    let by_trace = only(JobFilter { trace_id: Some("t1".into()), ..everything() });
    assert_eq!(bench.list(&by_trace, 2).await, [traced]);
    let derived = bench.job(plain).await.job.trace_id();
    let by_trace = only(JobFilter { trace_id: Some(derived), ..everything() });
    assert_eq!(bench.list(&by_trace, 2).await, [plain]);
    bench.done(Command::Cancel { job: saw, by: user("ada"), reason: None }).await;
    let by_state = only(JobFilter { state: Some(StateName::Cancelled), ..everything() });
    assert_eq!(bench.list(&by_state, 1).await, [saw]);
    let by_state = only(JobFilter { state: Some(StateName::Queued), ..everything() });
    assert_eq!(bench.list(&by_state, 1).await, [traced, slow, plain]);
}

pub(super) async fn lists_respect_the_scope(bench: &mut Bench) {
    let ada = bench.submit(wish()).await;
    let bob = bench.submit(Submit { user: user("bob"), ..wish() }).await;
    let other = bench.submit(Submit { tenant: tenant("other"), ..wish() }).await;
    for (scope, seen) in [
        (Scope::All, vec![other, bob, ada]),
        (Scope::Tenant(tenant("acme")), vec![bob, ada]),
        (Scope::User(tenant("acme"), user("ada")), vec![ada]),
        (Scope::User(tenant("nobody"), user("ada")), vec![]),
    ] {
        let filter = JobFilter { scope, ..everything() };
        assert_eq!(bench.list(&filter, 1).await, seen, "{filter:?}");
    }
}

pub(super) async fn finished_jobs_stay_readable(bench: &mut Bench) {
    let good = bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.done(complete(&job)).await;
    let bad = buried(bench, wish()).await.job();
    let ended = bench.submit(wish()).await;
    bench.done(Command::Cancel { job: ended, by: user("ada"), reason: None }).await;
    bench.store.maintain(bench.now).await.expect("upkeep works");
    for (id, state, lines) in [
        (good, StateName::Succeeded, 3),
        (bad, StateName::Failed, 5),
        (ended, StateName::Cancelled, 2),
    ] {
        let whole = bench.job(id).await;
        assert_eq!((whole.job.state.name(), whole.history.len()), (state, lines));
        assert!(whole.history.iter().zip(1..).all(|(line, seq)| line.seq == seq));
        let cancel = Command::Cancel { job: id, by: user("ada"), reason: None };
        assert!(bench.one(cancel).await.is_err(), "a batch sees that it has ended");
    }
}

pub(super) async fn counts_equal_a_recount(bench: &mut Bench) {
    for delay in [0, 0, 0, 0, 1_000, 9_000] {
        bench.submit(Submit { delay_ms: Some(delay), ..wish() }).await;
        bench.submit(Submit { queue: Some(queue("slow")), ..wish() }).await;
    }
    for _ in 0..3 {
        let delay_ms = Some(5_000);
        bench.submit(Submit { job_type: kind("saw"), delay_ms, ..wish() }).await;
    }
    let granted = bench.pull(any(5)).await;
    bench.done(complete(&granted[0])).await;
    bench.done(fail(&granted[1], true)).await;
    bench.done(fail(&granted[2], false)).await;
    bench.pass(2_000);
    let told = bench.store.counts(bench.now).await.expect("reads work");
    let mut by_state = [0; 8];
    let (mut due, mut oldest_due) = (0, None);
    let mut by_type: BTreeMap<JobType, [u64; 3]> = BTreeMap::new();
    for id in bench.list(&everything(), 100).await {
        let job = bench.job(id).await.job;
        let name = job.state.name();
        by_state[StateName::ALL.iter().position(|state| *state == name).expect("known")] += 1;
        let states = [StateName::Queued, StateName::Running, StateName::Retrying];
        if let Some(at) = states.iter().position(|state| *state == name) {
            by_type.entry(job.job_type.clone()).or_default()[at] += 1;
        }
        if let Some(at) = job.due_at().filter(|at| *at <= bench.now) {
            due += 1;
            let at = at.whole_second();
            oldest_due =
                Some(oldest_due.map_or(at, |oldest: mainspring_kernel::Timestamp| oldest.min(at)));
        }
    }
    let Counts {
        by_state: told_by_state,
        due: told_due,
        oldest_due: told_oldest,
        retries,
        submitted,
        claims,
        jobs_retried,
        items_open,
        queues,
        types,
    } = told;
    assert_eq!((told_by_state, told_due, told_oldest), (by_state, due, oldest_due));
    assert_eq!((retries, submitted, claims, jobs_retried, items_open), (1, 15, 5, 1, 1));
    let depth = |it: TypeCount| (it.name, [it.queued, it.running, it.retrying]);
    assert_eq!(types.into_iter().map(depth).collect::<Vec<_>>(), Vec::from_iter(by_type.clone()));
    assert_eq!(by_type.values().copied().collect::<Vec<_>>(), [[7, 2, 1], [3, 0, 0]]);
    assert!(queues.is_sorted_by(|a, b| a.name < b.name));
    assert_eq!(queues.iter().map(|queue| queue.ready).sum::<u64>(), due);
    assert!(queues.iter().all(|queue| queue.oldest_due.is_some() == (queue.ready > 0)));
    assert_eq!(queues.iter().filter_map(|queue| queue.oldest_due).min(), oldest_due);
    assert_eq!(queues.iter().map(|queue| queue.running).sum::<u64>(), by_state[1]);
    let waiting = by_state[0] + by_state[2];
    assert_eq!(queues.iter().map(|queue| queue.pending).sum::<u64>(), waiting - due);
}

pub(super) async fn moves_come_in_order_without_gaps(bench: &mut Bench) {
    bench.run(&[submit(wish()), submit(wish())]).await;
    let job = bench.grant().await;
    bench.done(fail(&job, false)).await;
    let all = bench.store.moves_after(0, 100).await.expect("reads work");
    let positions: Vec<u64> = all.moves.iter().map(|logged| logged.position).collect();
    assert_eq!(positions, [1, 2, 3, 4, 5, 6]);
    assert_eq!((all.newest, all.has_gap), (6, false));
    let of_job: Vec<_> = all.moves.iter().filter(|logged| logged.job == job.id).collect();
    let history = bench.job(job.id).await.history;
    assert!(of_job.iter().map(|logged| &logged.transition).eq(&history));
    assert_eq!(*of_job[0].trace_id, *job.trace_id());
    let some = bench.store.moves_after(2, 3).await.expect("reads work");
    assert_eq!(some.moves, all.moves[2..5]);
    for beyond in [6, 7, u64::MAX] {
        let none = bench.store.moves_after(beyond, 3).await.expect("reads work");
        assert_eq!((none.moves.len(), none.newest, none.has_gap), (0, 6, false));
        let none = bench.store.steps_after(beyond, 3).await.expect("reads work");
        assert_eq!((none.steps.len(), none.newest, none.has_gap), (0, 6, false));
    }
    // Without the jobs they are the same moves, and come to the same digest.
    let (mut ours, mut theirs) = (Stretch::after(2), Stretch::after(2));
    let moves = all.moves.iter().skip(2);
    moves.for_each(|it| ours.add(it.position, it.job, Some(&it.transition)));
    while theirs.position() < 6 {
        let page = bench.store.steps_after(theirs.position(), 1).await.expect("reads work");
        assert_eq!((page.newest, page.has_gap), (6, false));
        page.steps.iter().for_each(|(at, job, step)| theirs.add(*at, *job, step.as_ref()));
    }
    assert_eq!(ours.seal(), theirs.seal());
}

pub(super) async fn standing_explains_the_wait(bench: &mut Bench) {
    let spec = TypeSpec {
        concurrency_limit: Some(1),
        concurrency_scope: ConcurrencyScope::Global,
        ..TypeSpec::plain(kind("mill"))
    };
    bench.done(Command::SetType(Box::new(spec))).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(bench.submit(wish()).await);
    }
    bench.grant().await;
    let standing = bench.store.standing(ids[2], bench.now).await.expect("reads work");
    let standing = standing.expect("a waiting job stands somewhere");
    assert_eq!(
        (standing.is_queue_paused, standing.limit, standing.ahead),
        (false, Some((1, 1)), 1)
    );
    let paused = QueueSpec { is_paused: true, ..QueueSpec::plain(QueueSpec::default_name()) };
    bench.done(Command::SetQueue(paused)).await;
    let standing = bench.store.standing(ids[1], bench.now).await.expect("reads work");
    assert!(standing.is_some_and(|standing| standing.is_queue_paused && standing.ahead == 0));
}
