//! Room for jobs that have not ended: counted as they come and go, by tenant and in all.

use super::bench::{BACKLOG_MAX, Bench, complete, fail, submit, tenant, wish};
use crate::Held;
use mainspring_kernel::backlog::held_bytes;
use mainspring_kernel::command::Submit;
use mainspring_kernel::{Command, Payload, Rejection};

/// Four of these are more than a tenant may have, six more than all may.
fn large(of: &str) -> Submit {
    let payload = format!("\"{}\"", "x".repeat((1 << 20) - 2));
    Submit { tenant: tenant(of), payload: Payload::from(&*payload), ..wish() }
}

/// What a tenant holds, counted anew from the jobs that were granted or submitted.
async fn held(bench: &Bench, of: &str) -> Held {
    bench.store.held_by(&tenant(of)).await.expect("it is known")
}

pub(super) async fn a_tenant_has_its_share_of_the_room(bench: &mut Bench) {
    let four: Vec<Command> = (0..4).map(|_| submit(large("a"))).collect();
    let outcomes = bench.run(&four).await;
    assert!(outcomes[..3].iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(outcomes[3], Err(Rejection::TenantBacklogFull), "the batch sees its own jobs");
    assert_eq!(bench.one(submit(large("a"))).await, Err(Rejection::TenantBacklogFull));
    // A neighbour still has its share, until there is no room for anybody.
    bench.submit(large("b")).await;
    bench.submit(large("b")).await;
    assert_eq!(bench.one(submit(large("b"))).await, Err(Rejection::BacklogFull));
    assert!(held(bench, "a").await.bytes + held(bench, "b").await.bytes <= BACKLOG_MAX.1);
    // Reports are taken, and what has ended makes room.
    for _ in 0..5 {
        let job = bench.grant().await;
        bench.done(complete(&job)).await;
    }
    assert_eq!((held(bench, "a").await, held(bench, "b").await), Default::default());
    bench.submit(large("a")).await;
    // A store that several servers share may know it of a moment ago.
    let mut kept = held(bench, "a").await;
    for _ in 0..500 {
        if kept.jobs == 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10)); // paced: it is looked at again
        kept = held(bench, "a").await;
    }
    assert_eq!((kept.jobs, kept.bytes >> 20), (1, 1));
}

pub(super) async fn every_end_gives_its_room_back(bench: &mut Bench) {
    let labels = vec![("name".into(), "value".into())];
    let full = Submit {
        labels,
        subject: Some("subject".into()),
        trace: Some("trace".into()),
        max_retries: Some(1),
        ..wish()
    };
    for way in 0..4 {
        let id = bench.submit(full.clone()).await;
        let job = bench.job(id).await.job;
        let bytes = held_bytes(&job);
        let own = job.tenant.clone();
        let known = async |bench: &Bench| bench.store.held_by(&own).await.expect("it is known");
        assert_eq!(known(bench).await, Held { jobs: 1, bytes }, "way {way}");
        if way == 0 {
            let cancel = Command::Cancel { job: id, by: job.user.clone(), reason: None };
            bench.done(cancel).await;
        } else {
            let mut job = bench.grant().await;
            assert_eq!(known(bench).await, Held { jobs: 1, bytes }, "a running job has not ended");
            if way == 2 {
                bench.done(fail(&job, true)).await;
                assert_eq!(known(bench).await, Held { jobs: 1, bytes }, "nor one to be retried");
                bench.pass(60_000);
                job = bench.grant().await;
            }
            let end = if way == 1 { complete(&job) } else { fail(&job, false) };
            bench.done(end).await;
        }
        assert_eq!(known(bench).await, Held::default(), "way {way}");
    }
}
