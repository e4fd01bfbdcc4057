//! What effects cost, and those of before they were rows.

use crate::hand::Hand;
use mainspring_kernel::command::{CommitEffect, Heartbeat};
use mainspring_kernel::{Command, Job, Receipt};
use mainspring_store::Store;
use mainspring_store::conformance::{complete, token, wish};
use mainspring_testkit::postgres::{Cluster, ClusterOptions};
use std::sync::Arc;

fn effect(job: &Job, name: &str, value: &str) -> Command {
    let (name, value) = (name.into(), value.into());
    Command::CommitEffect(CommitEffect { job: job.id, token: token(job), name, value })
}

fn beat(job: &Job) -> Command {
    let token = token(job);
    let (lease_ms, progress_pct, note) = (60_000, Some(7), None);
    let beat = Heartbeat { job: job.id, token, lease_ms, progress_pct, note };
    Command::Heartbeat(beat)
}

/// Text that does not compress well.
fn noise(bytes: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
                [(state % 64) as usize],
        )
    };
    (0..bytes).map(letter).collect()
}

fn wal(hand: &Hand) -> u64 {
    let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
    hand.database.sql(sql).parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_are_written_once_and_heartbeats_do_not_write_them_again() {
    // Of its own: nobody else writes to its log.
    let cluster = Cluster::start(&ClusterOptions::durable());
    let first = Hand::new().await;
    let mut hand = Hand::on(Arc::new(cluster.database()), first.clock.clone()).await;
    let (mut written, mut beats) = (0, 0);
    let before = wal(&hand);
    for nth in 0..5_u64 {
        hand.submit(wish()).await;
        let job = hand.pull(1).await.remove(0);
        for step in 0..56_u64 {
            let value = format!("\"{}\"", noise(64_000, nth * 100 + step));
            written += value.len() as u64;
            let outcomes = hand.run(&[effect(&job, &format!("step {step}"), &value)]).await;
            assert!(outcomes[0].is_ok(), "{outcomes:?}");
        }
        let quiet = wal(&hand);
        for _ in 0..20 {
            assert!(hand.run(&[beat(&job)]).await[0].is_ok());
        }
        beats += wal(&hand) - quiet;
        hand.run(&[complete(&job)]).await;
    }
    let log = wal(&hand) - before;
    println!("{written} bytes of effects made {log} bytes of WAL; 100 heartbeats {beats}");
    assert!(written > 17 << 20, "{written}");
    assert!(log < written * 3, "{log} bytes for {written}");
    assert!(beats < 100 * 16_384, "100 heartbeats of jobs with megabytes of effects: {beats}");
    hand.assert_sound().await;
}

/// A record as the version before wrote it: the effect inside, at its tenth place.
fn with_effect_inside(hex: &str) -> String {
    let count = usize::from_str_radix(&hex[..2], 16).expect("a byte") - 0x80;
    assert!((6..=9).contains(&count), "{hex}");
    let nulls = "f6".repeat(9 - count);
    // ["charge", "17", 0 s after the submission]
    format!("8a{}{nulls}81836663686172676562313700", &hex[2..])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_of_the_version_before_become_rows_when_their_job_is_next_written() {
    let mut hand = Hand::new().await;
    let id = hand.submit(wish()).await;
    let job = hand.pull(1).await.remove(0);
    let record = hand.database.sql("SELECT encode(record, 'hex') FROM mainspring.live");
    let sql = format!("UPDATE mainspring.live SET record = '\\x{}'", with_effect_inside(&record));
    hand.database.sql(&sql);
    let (database, clock) = (hand.database.clone(), hand.clock.clone());
    drop(hand);
    let mut hand = Hand::on(database, clock).await;
    let seen =
        |effect: Option<mainspring_kernel::job::Effect>| effect.map(|it| it.value.to_string());
    let found = hand.store.effect(id, "charge").await.expect("it reads");
    assert_eq!(seen(found).as_deref(), Some("17"));
    let outcomes = hand.run(&[effect(&job, "charge", "18")]).await;
    assert_eq!(outcomes, [Ok(Receipt::Effect { value: "17".into(), is_first: false })]);
    let rows = |hand: &Hand| {
        hand.database.sql(
            "SELECT string_agg(name || number || value, ' ' ORDER BY number)
                           FROM mainspring.effect",
        )
    };
    assert_eq!(rows(&hand), "", "nothing was written");
    assert!(hand.run(&[effect(&job, "mail", "19")]).await[0].is_ok());
    assert_eq!(rows(&hand), "charge017 mail119");
    let record = hand.database.sql("SELECT encode(record, 'escape') FROM mainspring.live");
    assert!(!record.contains("charge"), "{record}");
    let outcomes = hand.run(&[effect(&job, "charge", "18"), beat(&job), complete(&job)]).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let all = hand.store.effects(id).await.expect("it reads");
    let all: Vec<&str> = all.iter().map(|it| &*it.name).collect();
    assert_eq!(all, ["charge", "mail"]);
    assert_eq!(hand.job(id).await.effect_totals().count, 2);
    // One that had ended before is read where it is.
    let record = hand.database.sql("SELECT encode(record, 'hex') FROM mainspring.finished");
    assert!(record.len() < 400, "{record}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_two_servers_commit_at_once_has_one_value() {
    let (mut here, mut there) = Hand::pair().await;
    here.submit(wish()).await;
    let job = here.pull(1).await.remove(0);
    for name in ["first", "second"] {
        let (outcomes, decisions) = here
            .run_and(&[effect(&job, name, "1")], |nth| {
                if nth == 1 {
                    let theirs = crate::hand::meanwhile(there.run(&[effect(&job, name, "2")]));
                    assert_eq!(theirs, [Ok(Receipt::Effect { value: "2".into(), is_first: true })]);
                }
            })
            .await;
        assert_eq!(decisions, 2);
        assert_eq!(outcomes, [Ok(Receipt::Effect { value: "2".into(), is_first: false })]);
    }
    assert_eq!(here.job(job.id).await.effect_totals().count, 2);
    here.assert_sound().await;
}
