//! Dead-letter items.

use super::bench::{Bench, fail, user, wish};
use crate::{ItemFilter, JobFilter, Scope};
use mainspring_kernel::command::Submit;
use mainspring_kernel::limits::DLQ_UNFINISHED_MS;
use mainspring_kernel::{
    Command, DlqId, DlqItem, DlqState, JobId, Principal, Receipt, Rejection, Role, Roles,
    StateName, Timestamp, Token, TokenId,
};

/// Submits a job and fails it for good.
pub(super) async fn buried(bench: &mut Bench, wish: Submit) -> DlqId {
    bench.submit(wish).await;
    let job = bench.grant().await;
    bench.done(fail(&job, false)).await;
    job.id.dlq()
}

async fn item(bench: &Bench, id: DlqId) -> DlqItem {
    bench.store.item(id).await.expect("reads work").expect("the item is kept")
}

pub(super) async fn listed(bench: &Bench, filter: &ItemFilter, limit: usize) -> Vec<DlqId> {
    let (mut ids, mut before) = (Vec::new(), None);
    loop {
        let page = bench.store.items(filter, before, limit).await.expect("reads work");
        let is_full = page.items.len() == limit;
        assert!(if page.next.is_some() { is_full } else { page.items.len() <= limit });
        ids.extend(page.items.iter().map(|item| item.id));
        before = page.next.map(JobId::dlq);
        if before.is_none() {
            return ids;
        }
    }
}

fn all() -> ItemFilter {
    ItemFilter::of(Scope::All)
}

fn principal(name: &str) -> Box<Principal> {
    Box::new(Principal {
        tenant: super::bench::tenant("acme"),
        user: user(name),
        roles: Roles(0),
        token: TokenId(1),
        token_issued_at: Timestamp::EPOCH,
        token_issued_by: user("root"),
        token_issued_with: None,
    })
}

pub(super) async fn an_exhausted_job_becomes_an_item(bench: &mut Bench) {
    bench.submit(Submit { max_retries: Some(1), ..wish() }).await;
    let job = bench.grant().await;
    bench.done(fail(&job, true)).await;
    bench.pass(5_000);
    let job = bench.grant().await;
    bench.done(fail(&job, true)).await;
    let whole = bench.job(job.id).await;
    assert_eq!(whole.job.state.name(), StateName::Failed);
    let ends: Vec<_> = whole.history.iter().rev().take(3).map(|line| line.to).collect();
    assert_eq!(ends, [StateName::Failed, StateName::DlqRecorded, StateName::DlqPending]);
    let item = item(bench, job.id.dlq()).await;
    assert_eq!((item.version, item.state.as_str(), item.job.retry_count), (1, "open", 1));
    assert!(item.job.last_failure.is_some_and(|last_failure| last_failure.is_exhausted));
    let counts = bench.store.counts(bench.now).await.expect("reads work");
    assert_eq!(counts.items_open, 1);
}

pub(super) async fn items_are_listed_newest_first(bench: &mut Bench) {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.insert(0, buried(bench, wish()).await);
        bench.pass(1);
    }
    for limit in [1, 2, 5, 50] {
        assert_eq!(listed(bench, &all(), limit).await, ids);
    }
}

pub(super) async fn items_are_filtered(bench: &mut Bench) {
    let mine = buried(bench, wish()).await;
    bench.pass(1);
    let other = Submit { tenant: super::bench::tenant("other"), ..wish() };
    let theirs = buried(bench, other).await;
    bench.pass(1);
    let typed = buried(bench, Submit { job_type: super::bench::kind("saw"), ..wish() }).await;
    let by = user("ada");
    bench.done(Command::RequeueItem { item: mine, by, key: None }).await;
    let scope = Scope::Tenant(super::bench::tenant("acme"));
    assert_eq!(listed(bench, &ItemFilter::of(scope), 10).await, [typed, mine]);
    let state = Some("requeued".to_owned());
    assert_eq!(listed(bench, &ItemFilter { state, ..all() }, 10).await, [mine]);
    let state = Some("open".to_owned());
    assert_eq!(listed(bench, &ItemFilter { state, ..all() }, 10).await, [typed, theirs]);
    let job = JobFilter { job_type: Some(super::bench::kind("saw")), ..JobFilter::of(Scope::All) };
    assert_eq!(listed(bench, &ItemFilter { job, ..all() }, 10).await, [typed]);
}

pub(super) async fn an_item_is_requeued_once(bench: &mut Bench) {
    let id = buried(bench, wish()).await;
    bench.pass(1);
    let again =
        |key: &str| Command::RequeueItem { item: id, by: user("ada"), key: Some(key.into()) };
    let outcomes = bench.run(&[again("k"), again("k"), again("other")]).await;
    let Ok(Receipt::Requeued { job }) = outcomes[0] else { panic!("{outcomes:?}") };
    assert_eq!(outcomes[1], Ok(Receipt::Requeued { job }));
    assert!(matches!(outcomes[2], Err(Rejection::RequeueConflict { .. })), "{outcomes:?}");
    assert_eq!(bench.pulled(5).await, [job]);
    let source = bench.job(job).await.job.extras.and_then(|extras| extras.source_dlq);
    assert_eq!(source, Some(id));
    assert_eq!(
        (item(bench, id).await.version, bench.state(id.job()).await),
        (2, StateName::Failed)
    );
    let counts = bench.store.counts(bench.now).await.expect("reads work");
    assert_eq!(counts.items_open, 0);
}

pub(super) async fn a_discard_takes_two_people(bench: &mut Bench) {
    let id = buried(bench, wish()).await;
    let ask = || Command::RequestDiscard { item: id, by: principal("ada"), reason: "old".into() };
    assert_eq!(bench.one(ask()).await, Err(Rejection::NoSecondPerson), "nobody else is there");
    let holder = |number, name| Token {
        user: user(name),
        roles: Roles::of(&[Role::Approver]),
        ..super::registry::token(number)
    };
    for token in [holder(1, "ada"), holder(2, "bob")] {
        bench.done(Command::IssueToken(Box::new(token))).await;
    }
    bench.done(ask()).await;
    let approve = |name: &str, version| {
        let by = principal(name);
        Command::ApproveDiscard { item: id, by, version }
    };
    let same = approve("ada", 2);
    assert_eq!(bench.one(same).await, Err(Rejection::SamePerson));
    bench.done(Command::RejectDiscard { item: id, by: user("bob") }).await;
    assert_eq!(item(bench, id).await.state.as_str(), "open");
    bench.pass(1);
    bench.done(ask()).await;
    // Somebody let in after the first request does not count, although it was made again.
    let late = Token { issued_at: bench.now, ..holder(3, "eve") };
    bench.done(Command::IssueToken(Box::new(late.clone()))).await;
    let by = Box::new(late.principal());
    let late = Command::ApproveDiscard { item: id, by, version: 4 };
    assert_eq!(bench.one(late).await, Err(Rejection::TokenTooNew));
    let unread = bench.one(approve("bob", 3)).await;
    assert_eq!(unread, Err(Rejection::VersionChanged { now: 4 }));
    bench.done(approve("bob", 4)).await;
    let item = item(bench, id).await;
    assert_eq!((item.version, item.state.as_str()), (5, "discarded"));
    assert_eq!(item.updated_at, bench.now);
}

pub(super) async fn broken_glass_stays_visible(bench: &mut Bench) {
    let id = buried(bench, wish()).await;
    let broken = |reason: &str| Command::BreakGlass {
        item: id,
        by: principal("ada"),
        reason: reason.into(),
    };
    assert!(bench.one(broken(" ")).await.is_err(), "it takes a reason");
    bench.done(broken("the disk is full")).await;
    let item = item(bench, id).await;
    let DlqState::GlassBroken(mark) = &item.state else { panic!("{:?}", item.state) };
    assert_eq!((&*mark.by.to_string(), &*mark.reason), ("ada", "the disk is full"));
    assert_eq!((mark.at, item.state.as_str()), (bench.now, "discarded"));
    assert!(bench.one(broken("again")).await.is_err(), "once is enough");
}

pub(super) async fn a_half_finished_move_is_finished(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    for to in [StateName::Running, StateName::DlqPending] {
        bench.done(Command::Transition { job: id, to, by: user("ada") }).await;
    }
    bench.pass(DLQ_UNFINISHED_MS - 1);
    assert_eq!(bench.overdue().await, []);
    bench.pass(1);
    assert_eq!(bench.overdue().await, [id]);
    bench.done(Command::Reap { job: id }).await;
    assert_eq!(bench.state(id).await, StateName::Failed);
    assert_eq!(item(bench, id.dlq()).await.state.as_str(), "open");
    assert_eq!(bench.overdue().await, []);
}
