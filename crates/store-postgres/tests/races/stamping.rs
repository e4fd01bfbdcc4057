//! Commits that took their number long before they are seen.

use crate::hand::Hand;
use mainspring_kernel::{JobId, StateName};
use mainspring_store::Store;
use mainspring_store::conformance::{complete, wish};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

async fn connect(hand: &Hand) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&hand.database.url, NoTls).await.expect("it connects");
    tokio::spawn(connection);
    client
}

/// Submits by SQL and stops with the place in the outbox taken: nobody sees it yet.
async fn submit_and_stay(client: &Client) -> JobId {
    client.batch_execute("BEGIN").await.expect("it begins");
    let sql = "SELECT id FROM mainspring.submit('acme', 'ada', 'mill', '{}')";
    let row = client.query_one(sql, &[]).await.expect("it is taken");
    client.batch_execute("SET CONSTRAINTS ALL IMMEDIATE").await.expect("it takes its place");
    JobId(row.get::<_, Uuid>(0).as_u128())
}

/// Thousands of other commits, without making them.
const FAR_AHEAD: &str =
    "SELECT setval('mainspring.outbox_id_seq', nextval('mainspring.outbox_id_seq') + 5000)";

async fn moves_of(hand: &Hand, job: JobId) -> Vec<StateName> {
    let page = hand.store.moves_after(0, 1_000).await.expect("it reads");
    let positions: Vec<u64> = page.moves.iter().map(|it| it.position).collect();
    assert!(positions.is_sorted(), "{positions:?}");
    page.moves.iter().filter(|it| it.job == job).map(|it| it.transition.to).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_seen_late_is_stamped_before_what_came_of_it() {
    let mut hand = Hand::new().await;
    // Its lane is known: nobody waits for whoever would make it.
    hand.submit(wish()).await;
    let client = connect(&hand).await;
    let late = submit_and_stay(&client).await;
    for _ in 0..4 {
        hand.database.sql(FAR_AHEAD);
        hand.submit(wish()).await;
        hand.store.counts(hand.now()).await.expect("it stamps");
    }
    assert_eq!(hand.database.sql("SELECT count(*) FROM mainspring.outbox"), "0", "all is stamped");
    client.batch_execute("COMMIT").await.expect("it commits");
    hand.pass(std::time::Duration::from_secs(2));
    let granted = hand.pull(10).await;
    assert_eq!(granted.len(), 6);
    let own = granted.iter().find(|job| job.id == late).expect("it is handed out");
    hand.run(&[complete(own)]).await;
    let moves = moves_of(&hand, late).await;
    assert_eq!(moves, [StateName::Queued, StateName::Running, StateName::Succeeded]);
    let counts = hand.store.counts(hand.now()).await.expect("it counts");
    assert_eq!((counts.submitted, counts.claims), (6, 6));
    hand.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_seen_late_is_stamped_though_nothing_else_happens() {
    let hand = Hand::new().await;
    let client = connect(&hand).await;
    let late = submit_and_stay(&client).await;
    hand.database.sql(FAR_AHEAD);
    for _ in 0..3 {
        hand.store.counts(hand.now()).await.expect("it stamps");
    }
    client.batch_execute("COMMIT").await.expect("it commits");
    assert_eq!(moves_of(&hand, late).await, [StateName::Queued], "the very next read has it");
}

/// A snapshot ends with the last transaction that has ended: one that has not may have a later
/// number, and is no less to be waited for. Several times, because tests beside this one use the
/// same numbers of transactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_seen_late_is_stamped_though_it_is_the_newest_transaction() {
    let mut hand = Hand::new().await;
    let client = connect(&hand).await;
    let takes_its_place = "BEGIN; SELECT pg_current_xact_id();
        INSERT INTO mainspring.outbox (moves, names, deltas) VALUES (0, '{total/submitted}', '{10}')";
    for round in 1..=30 {
        hand.submit(wish()).await;
        client.batch_execute(takes_its_place).await.expect("it takes its place");
        for _ in 0..2 {
            hand.store.counts(hand.now()).await.expect("it stamps");
        }
        client.batch_execute("COMMIT").await.expect("it commits");
        let counts = hand.store.counts(hand.now()).await.expect("it counts");
        assert_eq!(counts.submitted, 11 * round);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_commit_of_a_database_is_stamped() {
    let mut hand = Hand::new().await;
    for _ in 0..3 {
        hand.store.counts(hand.now()).await.expect("there is nothing to stamp");
    }
    let job = hand.submit(wish()).await;
    assert_eq!(moves_of(&hand, job).await, [StateName::Queued]);
}
