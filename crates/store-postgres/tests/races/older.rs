//! A server of this version beside one that knows no lanes of retries.

use crate::hand::{Hand, user};
use mainspring_kernel::command::Submit;
use mainspring_kernel::registry::ConcurrencyScope;
use mainspring_kernel::{Command, JobId, JobType, StateName, TypeSpec};
use mainspring_store::conformance::{fail, wish};
use std::time::Duration;

/// Rows that wait in lanes of retries, and others.
const PLACES: &str =
    "SELECT count(*) FILTER (WHERE is_retries), count(*) FILTER (WHERE NOT is_retries)
    FROM (SELECT right(l.user_id, 1) = chr(30) AS is_retries
        FROM (SELECT lane FROM mainspring.ready UNION ALL SELECT lane FROM mainspring.waiting) r
        JOIN mainspring.lane l ON l.lane = r.lane) p";

/// As many retries, due after a while.
async fn retries(hand: &mut Hand, count: usize) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for _ in 0..count {
        jobs.push(hand.submit(Submit { max_retries: Some(9), ..wish() }).await);
    }
    for job in hand.pull(count).await {
        let told = hand.run(&[fail(&job, true)]).await;
        assert!(told[0].is_ok(), "{told:?}");
    }
    jobs
}

fn cancel(job: JobId) -> Command {
    Command::Cancel { job, by: user("ada"), reason: None }
}

/// While there is an older one nobody makes lanes that it does not know; and wherever a retry waits
/// it is found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_an_older_server_retries_wait_where_that_one_puts_them() {
    let mut alone = Hand::new().await;
    let apart = retries(&mut alone, 4).await;
    assert_eq!(alone.database.sql(PLACES), "4|0");
    // As a server of the version before says that it is alive.
    alone.database.sql(
        "INSERT INTO mainspring.node (id, name, version, started_at, seen_at)
         VALUES (gen_random_uuid(), 'older', '0.1.0', now(), clock_timestamp() + interval '1 hour')",
    );
    let mut beside = Hand::on(alone.database.clone(), alone.clock.clone()).await;
    let plain = retries(&mut beside, 4).await;
    assert_eq!(alone.database.sql(PLACES), "4|4");
    // Each finds those of the other: before they are due, and after.
    for is_due in [false, true] {
        let nth = usize::from(is_due);
        for (hand, job) in [(&mut alone, plain[nth]), (&mut beside, apart[nth])] {
            let told = hand.run(&[cancel(job)]).await;
            assert!(told[0].is_ok(), "{told:?}");
            assert_eq!(hand.path(job).await.last(), Some(&StateName::Cancelled));
        }
        alone.pass(Duration::from_secs(3_600));
    }
    assert_eq!(alone.database.sql(PLACES), "2|2");
    let mut handed: Vec<JobId> = beside.pull(9).await.iter().map(|job| job.id).collect();
    handed.sort_unstable();
    let mut left = [&apart[2..], &plain[2..]].concat();
    left.sort_unstable();
    assert_eq!(handed, left);
    alone.assert_sound().await;
}

/// What the limit of a type is counted over changes: its retries change lanes, those that wait and
/// those that are ready, and stay among retries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_that_change_lanes_stay_apart() {
    let mut hand = Hand::new().await;
    let all = retries(&mut hand, 4).await;
    let limited = |scope| {
        let name = JobType::new("mill").expect("a name");
        Command::SetType(Box::new(TypeSpec {
            concurrency_limit: Some(9),
            concurrency_scope: scope,
            ..TypeSpec::plain(name)
        }))
    };
    let by_user = "SELECT count(*) FROM mainspring.waiting w JOIN mainspring.lane l USING (lane)
        WHERE l.user_id = 'ada' || chr(30)";
    assert_eq!(hand.database.sql(by_user), "0");
    let told = hand.run(&[limited(ConcurrencyScope::User)]).await;
    assert!(told[0].is_ok(), "{told:?}");
    assert_eq!((&*hand.database.sql(PLACES), &*hand.database.sql(by_user)), ("4|0", "4"));
    hand.pass(Duration::from_secs(3_600));
    assert_eq!(hand.pull(1).await.len(), 1);
    let told = hand.run(&[limited(ConcurrencyScope::Tenant)]).await;
    assert!(told[0].is_ok(), "{told:?}");
    assert_eq!(hand.database.sql(PLACES), "3|0");
    assert_eq!(hand.pull(9).await.len(), all.len() - 1);
    hand.assert_sound().await;
}
