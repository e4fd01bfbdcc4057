//! Two servers on one database, one of which is stopped between what it read and what it writes;
//! what the database refuses; commits that are slow to be seen; days that are past.

#[path = "races/door.rs"]
mod door;
#[path = "races/durable.rs"]
mod durable;
#[path = "races/effects.rs"]
mod effects;
#[path = "races/hand.rs"]
mod hand;
#[path = "races/neighbours.rs"]
mod neighbours;
#[path = "races/older.rs"]
mod older;
#[path = "races/refusals.rs"]
mod refusals;
#[path = "races/retirement.rs"]
mod retirement;
#[path = "races/stamping.rs"]
mod stamping;
#[path = "races/upkeep.rs"]
mod upkeep;
#[path = "races/waits.rs"]
mod waits;

use hand::{Hand, user};
use mainspring_kernel::command::{Claim, Heartbeat, Release};
use mainspring_kernel::{
    Command, DlqId, Job, Rejection, Role, Roles, StateName, TenantId, Timestamp, Token, TokenId,
    WorkerId,
};
use mainspring_store::conformance::{complete, fail, token, wish};

fn cancel(job: mainspring_kernel::JobId) -> Command {
    Command::Cancel { job, by: user("ada"), reason: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_a_claim_got_ahead_of_is_decided_again() {
    let (mut here, mut there) = Hand::pair().await;
    let job = here.submit(wish()).await;
    let mut granted = Vec::new();
    let (outcomes, decisions) = here
        .run_and(&[cancel(job)], |nth| {
            if nth == 1 {
                granted = hand::meanwhile(there.pull(1));
            }
        })
        .await;
    assert_eq!(granted.len(), 1, "the other server handed it out");
    assert_eq!(decisions, 2, "what was decided on the waiting job did not count");
    assert!(outcomes[0].is_ok(), "a running job can be cancelled: {outcomes:?}");
    let path = here.path(job).await;
    assert_eq!(path, [StateName::Queued, StateName::Running, StateName::Cancelled]);
    let places = "SELECT (SELECT count(*) FROM mainspring.live), (SELECT count(*) FROM \
                  mainspring.finished), (SELECT count(*) FROM mainspring.ready)";
    assert_eq!(here.database.sql(places), "0|1|0");
    here.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_of_a_job_not_due_that_another_server_cancelled_is_decided_again() {
    let (mut here, mut there) = Hand::pair().await;
    let job = here.submit(mainspring_kernel::command::Submit { delay_ms: Some(60_000), ..wish() });
    let job = job.await;
    let (outcomes, decisions) = here
        .run_and(&[cancel(job)], |nth| {
            if nth == 1 {
                assert!(hand::meanwhile(there.run(&[cancel(job)]))[0].is_ok());
            }
        })
        .await;
    assert_eq!(decisions, 2);
    let state = StateName::Cancelled;
    assert!(
        matches!(&outcomes[0], Err(Rejection::CancelConflict { state: found }) if *found == state),
        "{outcomes:?}"
    );
    assert_eq!(here.path(job).await, [StateName::Queued, StateName::Cancelled]);
    here.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_a_cancel_got_ahead_of_hands_out_nothing() {
    let (mut here, mut there) = Hand::pair().await;
    let job = here.submit(wish()).await;
    let (granted, decisions) = here
        .pull_and(1, |nth| {
            if nth == 1 {
                assert!(hand::meanwhile(there.run(&[cancel(job)]))[0].is_ok());
            }
        })
        .await;
    assert_eq!((granted.len(), decisions), (0, 2), "nobody gets a job that was cancelled");
    assert_eq!(here.path(job).await, [StateName::Queued, StateName::Cancelled]);
    here.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_that_claim_one_job_hand_it_out_once() {
    let (mut here, mut there) = Hand::pair().await;
    let job = here.submit(wish()).await;
    let claim = |name: &str| {
        let worker = WorkerId::stored(name.into());
        Command::Claim(Claim { job, worker, lease_ms: 60_000 })
    };
    let (outcomes, decisions) = here
        .run_and(&[claim("here")], |nth| {
            if nth == 1 {
                assert!(hand::meanwhile(there.run(&[claim("there")]))[0].is_ok());
            }
        })
        .await;
    assert_eq!(decisions, 2);
    assert!(outcomes[0].is_err(), "{outcomes:?}");
    let found = here.job(job).await;
    assert_eq!(found.lease().map(|lease| lease.worker.as_str()), Some("there"));
    here.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_that_a_cancel_got_ahead_of_does_not_count() {
    let (mut here, mut there) = Hand::pair().await;
    let job = here.submit(wish()).await;
    let granted = here.pull(1).await.remove(0);
    for is_end in [false, true] {
        let beat = Heartbeat {
            job,
            token: token(&granted),
            lease_ms: 60_000,
            progress_pct: Some(50),
            note: None,
        };
        let report = if is_end { complete(&granted) } else { Command::Heartbeat(beat) };
        let (outcomes, decisions) = here
            .run_and(&[report], |nth| {
                if nth == 1 && !is_end {
                    assert!(hand::meanwhile(there.run(&[cancel(job)]))[0].is_ok());
                }
            })
            .await;
        assert!(is_end || decisions == 2, "{decisions}");
        let moved = mainspring_kernel::Receipt::Moved { state: StateName::Succeeded };
        assert!(outcomes[0] != Ok(moved), "{outcomes:?}");
    }
    let path = here.path(job).await;
    assert_eq!(path, [StateName::Queued, StateName::Running, StateName::Cancelled]);
    here.assert_sound().await;
}

/// A job that `here` handed out, and that `there` hands out again after its worker gave it back.
async fn given_back(there: &mut Hand, granted: &Job) -> Job {
    let release = Release { job: granted.id, token: token(granted), reason: None };
    assert!(there.run(&[Command::Release(release)]).await[0].is_ok());
    there.pull(1).await.remove(0)
}

/// The row is still there, only another lease's: what counts is its version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_that_another_lease_got_ahead_of_changes_nothing() {
    for is_end in [false, true] {
        let (mut here, mut there) = Hand::pair().await;
        let job = here.submit(wish()).await;
        let first = here.pull(1).await.remove(0);
        let beat = Heartbeat {
            job,
            token: token(&first),
            lease_ms: 600_000,
            progress_pct: Some(50),
            note: None,
        };
        let report = if is_end { complete(&first) } else { Command::Heartbeat(beat) };
        let mut second = None;
        let (outcomes, decisions) = here
            .run_and(&[report], |nth| {
                if nth == 1 {
                    second = Some(hand::meanwhile(given_back(&mut there, &first)));
                }
            })
            .await;
        assert_eq!(decisions, 2, "what was decided on the first lease did not count");
        assert!(outcomes[0].is_err(), "{outcomes:?}");
        let found = here.job(job).await;
        assert_eq!(found.lease(), second.as_ref().and_then(Job::lease), "it is the second's");
        here.assert_sound().await;
    }
}

/// A server remembers what it handed out; what others did with it since is looked up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_is_not_refused_by_what_a_server_remembers() {
    let (mut here, mut there) = Hand::pair().await;
    let job = here.submit(wish()).await;
    let first = here.pull(1).await.remove(0);
    let second = given_back(&mut there, &first).await;
    let outcomes = here.run(&[complete(&second)]).await;
    assert!(outcomes[0].is_ok(), "{outcomes:?}");
    assert_eq!(here.job(job).await.state.name(), StateName::Succeeded);
    here.assert_sound().await;
}

/// A job that failed for good, and its item.
async fn buried(hand: &mut Hand) -> mainspring_kernel::DlqId {
    let job = hand.submit(wish()).await;
    let granted = hand.pull(1).await.remove(0);
    hand.run(&[fail(&granted, false)]).await;
    job.dlq()
}

/// What asks for a discard, where there is a second person who could approve it.
async fn discard(hand: &mut Hand, item: DlqId) -> Command {
    let holder = |id, name| Token {
        id: TokenId(id),
        digest: [7; 32],
        tenant: TenantId::new("acme").expect("a name"),
        user: user(name),
        roles: Roles::of(&[Role::Approver]),
        issued_at: Timestamp::from_millis(1),
        issued_by: user("root"),
        issued_with: None,
        expires_at: None,
        revoked_at: None,
    };
    let people = [holder(1, "ada"), holder(2, "bob")];
    for token in &people {
        hand.run(&[Command::IssueToken(Box::new(token.clone()))]).await;
    }
    let by = Box::new(people[1].principal());
    Command::RequestDiscard { item, by, reason: "old".into() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_requeue_that_a_discard_got_ahead_of_makes_no_job() {
    let (mut here, mut there) = Hand::pair().await;
    let item = buried(&mut here).await;
    let requeue = Command::RequeueItem { item, by: user("ada"), key: None };
    let discard = discard(&mut here, item).await;
    let (outcomes, decisions) = here
        .run_and(&[requeue], |nth| {
            if nth == 1 {
                let asked = hand::meanwhile(there.run(std::slice::from_ref(&discard)));
                assert!(asked[0].is_ok(), "{asked:?}");
            }
        })
        .await;
    assert_eq!(decisions, 2);
    assert!(matches!(outcomes[0], Err(Rejection::RequeueConflict { .. })), "{outcomes:?}");
    assert_eq!(here.item_state(item).await, "discard_requested");
    assert_eq!(here.database.sql("SELECT count(*) FROM mainspring.job"), "1", "no new job");
    here.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discard_that_a_requeue_got_ahead_of_is_refused() {
    let (mut here, mut there) = Hand::pair().await;
    let item = buried(&mut here).await;
    let requeue = Command::RequeueItem { item, by: user("ada"), key: None };
    let discard = discard(&mut here, item).await;
    let (outcomes, decisions) = here
        .run_and(&[discard], |nth| {
            if nth == 1 {
                let asked = hand::meanwhile(there.run(std::slice::from_ref(&requeue)));
                assert!(asked[0].is_ok(), "{asked:?}");
            }
        })
        .await;
    assert_eq!(decisions, 2);
    assert!(matches!(outcomes[0], Err(Rejection::DiscardConflict { .. })), "{outcomes:?}");
    assert_eq!(here.item_state(item).await, "requeued");
    assert_eq!(here.database.sql("SELECT count(*) FROM mainspring.job"), "2");
    here.assert_sound().await;
}
