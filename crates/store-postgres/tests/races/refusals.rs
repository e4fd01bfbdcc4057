//! What the database refuses about one job is that job's business alone.

use crate::hand::Hand;
use mainspring_kernel::command::Submit;
use mainspring_kernel::registry::ConcurrencyScope;
use mainspring_kernel::{Command, StateName, TypeSpec};
use mainspring_store::conformance::{complete, submit, wish};
use mainspring_store::{Error, Store};
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_something_refused_can_be_divided_and_the_culprit_is_told() {
    let mut hand = Hand::new().await;
    hand.database.sql("ALTER TABLE mainspring.job ADD CHECK (payload <> '\"poison\"')");
    let poison = || submit(Submit { payload: "\"poison\"".into(), ..wish() });
    let refused = hand.try_run(&[submit(wish()), poison()]).await.expect_err("it is refused");
    assert!(matches!(refused, Error::Refused(_)) && refused.is_divisible(), "{refused:?}");
    assert!(hand.try_run(&[submit(wish())]).await.is_ok(), "the neighbour alone");
    let refused = hand.try_run(&[poison()]).await.expect_err("it is refused again");
    assert!(refused.to_string().contains("23514"), "in PostgreSQL's own words: {refused}");
    assert_eq!(hand.database.sql("SELECT count(*) FROM mainspring.job"), "1");
    // A trigger, a value that does not fit, and a rule about rows that is not ours.
    for (rule, code) in [
        (
            "CREATE FUNCTION say_no() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN RAISE EXCEPTION ''no''; END';
             CREATE TRIGGER say_no BEFORE INSERT ON mainspring.outbox
             FOR EACH ROW EXECUTE FUNCTION say_no()",
            "P0001",
        ),
        (
            "DROP TRIGGER say_no ON mainspring.outbox;
          CREATE UNIQUE INDEX one_of_each ON mainspring.ready (is_retry)",
            "23505",
        ),
    ] {
        hand.database.sql(rule);
        let refused = hand.try_run(&[submit(wish())]).await.expect_err("it is refused");
        assert!(matches!(refused, Error::Refused(_)), "{refused:?}");
        assert!(refused.to_string().contains(code), "{refused}");
    }
    assert!(hand.store.health().broken.is_none(), "the database is not away");
}

/// A change of a type gives its waiting jobs other lanes. If the change comes to nothing, so do the
/// lanes: a job that were put in one of them could be read by nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lanes_of_a_change_that_was_refused_are_not_remembered() {
    let mut hand = Hand::new().await;
    hand.database.sql("ALTER TABLE mainspring.job ADD CHECK (payload <> '\"poison\"')");
    let by_user = || {
        Command::SetType(Box::new(TypeSpec {
            concurrency_limit: Some(5),
            concurrency_scope: ConcurrencyScope::User,
            ..TypeSpec::plain(wish().job_type)
        }))
    };
    hand.submit(wish()).await;
    let poison = submit(Submit { payload: "\"poison\"".into(), ..wish() });
    hand.try_run(&[by_user(), poison]).await.expect_err("it is refused");
    // By the time the type is changed, nobody waits in the lane that came to nothing.
    let held = hand.pull(1).await;
    assert!(hand.run(&[complete(&held[0])]).await[0].is_ok());
    assert!(hand.run(&[by_user()]).await[0].is_ok());
    let job = hand.submit(wish()).await;
    let other = Hand::on(hand.database.clone(), hand.clock.clone()).await;
    assert_eq!(other.job(job).await.id, job, "a server that never heard of that lane reads it");
    hand.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_read_fails_who_needs_it_and_nobody_else() {
    let mut hand = Hand::new().await;
    hand.database.sql(
        "CREATE FUNCTION eio() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN RAISE EXCEPTION ''could not read block 0'' USING ERRCODE = ''58030''; END';
         CREATE TRIGGER eio BEFORE INSERT ON mainspring.expiry
         FOR EACH ROW EXECUTE FUNCTION eio()",
    );
    let expiring =
        Submit { expires_at: Some(hand.now() + std::time::Duration::from_secs(9)), ..wish() };
    let failed = hand.try_run(&[submit(wish()), submit(expiring)]).await.expect_err("it fails");
    assert!(matches!(failed, Error::Broken(_)) && failed.is_divisible(), "{failed:?}");
    assert!(hand.try_run(&[submit(wish())]).await.is_ok());
    assert!(hand.store.health().broken.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_is_none_is_told_of_its_own_job_and_harms_no_other() {
    let mut hand = Hand::new().await;
    let (bad, good) = (hand.submit(wish()).await, hand.submit(wish()).await);
    let held = hand.pull(2).await;
    let uuid = Uuid::from_u128(bad.0);
    hand.database.sql(&format!("UPDATE mainspring.live SET record = '\\xff' WHERE id = '{uuid}'"));
    let read = hand.store.job(bad).await;
    assert!(matches!(read, Err(Error::Unreadable(_))), "{read:?}");
    assert!(hand.store.job(good).await.unwrap().is_some());
    // Another server, which does not remember what it handed out.
    let mut other = Hand::on(hand.database.clone(), hand.clock.clone()).await;
    let failed = other.try_run(&held.iter().map(complete).collect::<Vec<_>>()).await;
    let failed = failed.expect_err("one of them cannot be read");
    assert!(matches!(failed, Error::Unreadable(_)) && failed.is_divisible(), "{failed:?}");
    let whole = held.iter().find(|job| job.id == good).expect("both were handed out");
    assert!(other.run(&[complete(whole)]).await[0].is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_cannot_be_handed_out_does_not_keep_the_others_from_it() {
    let mut hand = Hand::new().await;
    let mut jobs = Vec::new();
    for _ in 0..9 {
        jobs.push(hand.submit(wish()).await);
    }
    let poison = jobs[4];
    let rule = format!("ADD CHECK (id <> '{}')", Uuid::from_u128(poison.0));
    hand.database.sql(&format!("ALTER TABLE mainspring.live {rule}"));
    let mut granted = Vec::new();
    for _ in 0..12 {
        granted.extend(hand.pull(9).await.into_iter().map(|job| job.id));
    }
    granted.sort_unstable();
    jobs.retain(|job| *job != poison);
    assert_eq!(granted, jobs, "everybody else, once");
    assert_eq!(hand.job(poison).await.state.name(), StateName::Queued);
    // It stays where it is; when the rule is gone, it is found again.
    hand.assert_sound().await;
}
