//! The same wishes through the kernel and through `submit()`: equal jobs, equal refusals, equal
//! counts, equal moves.

use mainspring_kernel::command::Submit;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::job::Idempotency;
use mainspring_kernel::limits::KEY_WINDOW_SECS_DEFAULT;
use mainspring_kernel::{
    Command, Event, Facts, Job, JobId, JobType, QueueName, QueueOrder, QueueSpec, Receipt,
    Rejection, TenantId, Timestamp, TypeSpec, UserId, decide,
};
use mainspring_store::{Desk, Needs, Store};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_store_postgres::transactional::{Submission, SubmitError, submit_in};
use mainspring_store_postgres::{PostgresConfig, PostgresStore};
use mainspring_testkit::postgres::{Database, shared};
use std::sync::Arc;
use tokio_postgres::NoTls;

struct Dice(u64);

impl Dice {
    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        choices[(self.0 >> 11) as usize % choices.len()]
    }
}

const HOUR_MS: i64 = 3_600_000;
const LABELS: &[(&str, &str)] = &[("z", "1"), ("a", "zwei"), ("\"q\"", "\\ \n")];

/// A random wish; `at` is about now.
fn wish(dice: &mut Dice, at: Timestamp) -> Submission<'static> {
    let far = 1_000 * HOUR_MS as u64;
    Submission {
        tenant: dice.one_of(&["acme", "acme", "øther", "acme "]),
        user_id: dice.one_of(&["ann", "bob"]),
        job_type: dice.one_of(&["mail", "mail", "slow", "saw"]),
        payload: dice.one_of(&["{}", "{ \"a\" : 1.0 }", "[\"é\\u0000\"]", "null"]),
        run_at: dice.one_of(&[
            None,
            None,
            None,
            Some(at.plus_millis(far)),
            Some(Timestamp(0)),
            Some(Timestamp(-61_000_000_000_000_000)),
            Some(at.plus_millis(200_000 * HOUR_MS as u64)),
        ]),
        delay_ms: dice.one_of(&[None, None, None, None, Some(0), Some(HOUR_MS + 7)]),
        priority: dice.one_of(&[None, Some(0), Some(99), Some(255)]),
        queue: dice.one_of(&[None, None, Some("default"), Some("due"), Some("a\u{7}b")]),
        max_retries: dice.one_of(&[None, None, Some(0), Some(1000), Some(1001)]),
        timeout_ms: dice.one_of(&[None, None, Some(1), Some(604_800_000), Some(0)]),
        idempotency_key: dice.one_of(&[None, None, Some("k1"), Some("k2"), Some("ключ")]),
        idempotency_scope: dice.one_of(&[None, None, None, Some("s"), Some("")]),
        trace_id: dice.one_of(&[None, None, Some("t-1"), Some("")]),
        subject: dice.one_of(&[None, None, Some("sub \"ject\""), Some("")]),
        labels: dice.one_of(&[&[], &[], LABELS]),
        parent: dice.one_of(&[None, None, Some(JobId(7)), Some(JobId(u128::MAX))]),
        expires_at: dice.one_of(&[None, None, Some(at.plus_millis(2 * far)), Some(Timestamp(1))]),
    }
}

/// The command for a wish, made as the server makes it.
fn command(wish: &Submission<'_>) -> Result<Submit, Rejection> {
    fn named<T>(
        field: &'static str,
        made: Result<T, mainspring_kernel::name::BadName>,
    ) -> Result<T, Rejection> {
        made.map_err(|bad| Rejection::FieldInvalid { field, reason: bad.reason })
    }
    let scope = match wish.idempotency_scope {
        Some(scope) => format!("scope:{scope}"),
        None => format!("user:{}", wish.user_id),
    };
    let idempotency = wish.idempotency_key.map(|key| {
        let hash = [b"key", wish.tenant.as_bytes(), scope.as_bytes(), key.as_bytes()];
        let same = [b"native", wish.job_type.as_bytes(), wish.payload.as_bytes()];
        Box::new(Idempotency {
            hash: digest(&hash),
            scope: scope.clone().into(),
            key: key.into(),
            fingerprint: Some(digest(&same)),
            window_secs: Some(KEY_WINDOW_SECS_DEFAULT),
        })
    });
    Ok(Submit {
        tenant: named("tenant", TenantId::new(wish.tenant))?,
        user: named("user_id", UserId::new(wish.user_id))?,
        job_type: named("job_type", JobType::new(wish.job_type))?,
        payload: wish.payload.into(),
        run_at: wish.run_at,
        delay_ms: wish.delay_ms.map(|ms| ms as u64),
        priority: wish.priority,
        queue: wish.queue.map(|queue| named("queue", QueueName::new(queue))).transpose()?,
        timeout_ms: wish.timeout_ms,
        max_retries: wish.max_retries,
        idempotency,
        trace: wish.trace_id.map(Into::into),
        parent: wish.parent,
        subject: wish.subject.map(Into::into),
        labels: wish.labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        expires_at: wish.expires_at,
    })
}

/// Decides a wish as the engine does, with this id at this instant.
async fn decided(
    store: &dyn Store,
    wish: &Submission<'_>,
    id: u128,
    at: Timestamp,
) -> Result<Receipt, Rejection> {
    let wish = command(wish)?;
    let key = wish.idempotency.as_ref().map(|key| key.hash);
    let needs = Needs {
        keys: key.into_iter().collect(),
        types: vec![wish.job_type.clone()],
        now: at,
        ..Needs::default()
    };
    let command = Command::Submit(Box::new(wish.clone()));
    let mut outcome = Err(Rejection::NotDue);
    let mut work = |desk: &mut dyn Desk| {
        let key_holder = key.and_then(|key| desk.key_holder(key));
        let facts = Facts {
            now: at,
            fresh_id: id,
            fresh_secret: 0,
            job: None,
            item: None,
            job_type: desk.job_type(&wish.job_type),
            are_types_strict: true,
            key_holder,
            key_job: key_holder.and_then(|holder| desk.job(holder.job)),
        };
        outcome = decide(&command, &facts).map(|decision| {
            desk.apply(decision.events);
            decision.receipt
        });
    };
    store.commit(needs, &mut work).await.expect("it commits");
    outcome
}

async fn set(store: &dyn Store, at: Timestamp) {
    let plain = |name: &str| TypeSpec::plain(JobType::new(name).expect("a name"));
    let slow = TypeSpec {
        priority: 7,
        max_retries: 9,
        timeout_ms: 1234,
        queue: QueueName::new("due").expect("a name"),
        concurrency_limit: Some(1),
        concurrency_scope: mainspring_kernel::registry::ConcurrencyScope::User,
        ..plain("slow")
    };
    let due = QueueSpec {
        name: QueueName::new("due").expect("a name"),
        is_paused: false,
        order: QueueOrder::Due,
    };
    let events = vec![
        Event::TypeSet(Box::new(plain("mail"))),
        Event::TypeSet(Box::new(slow)),
        Event::QueueSet(due),
    ];
    let mut work = |desk: &mut dyn Desk| desk.apply(events.clone());
    let needs = Needs { now: at, ..Needs::default() };
    store.commit(needs, &mut work).await.expect("it commits");
}

async fn job(store: &dyn Store, id: JobId) -> Job {
    store.job(id).await.expect("reads work").expect("the job is kept").job
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_wishes_give_equal_jobs_refusals_counts_and_moves() {
    let database = Database::create(shared());
    let (mut client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let time = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let now = async |client: &tokio_postgres::Client| {
        Timestamp(client.query_one(time, &[]).await.expect("it tells the time").get(0))
    };
    let at = now(&client).await;
    let config = PostgresConfig {
        allows_unsafe: true,
        is_notified: false,
        ..PostgresConfig::standard(&database.url, Arc::new(move || at))
    };
    let sql = PostgresStore::open(config, 1).await.expect("it opens");
    let kernel = MemoryStore::ephemeral(MemoryConfig::standard(1));
    set(&sql, at).await;
    set(&kernel, at).await;
    let mut dice = Dice(0x5eed);
    let (mut made, mut hits, mut refused) = (0, 0, 0);
    for n in 0..1500 {
        let at = now(&client).await;
        let wish = wish(&mut dice, at);
        let transaction = client.transaction().await.unwrap();
        match submit_in(&transaction, &wish).await {
            Ok(ours) => {
                transaction.commit().await.unwrap();
                let ours_at = job(&sql, ours.job).await.created_at;
                let at = if ours.is_hit { at } else { ours_at };
                let theirs = decided(&kernel, &wish, ours.job.0, at).await;
                match theirs {
                    Ok(Receipt::Submitted { job }) if !ours.is_hit => assert_eq!(job, ours.job),
                    Ok(Receipt::Existing { job, .. }) if ours.is_hit => assert_eq!(job, ours.job),
                    other => panic!("{n}: {wish:?} gave {ours:?} and {other:?}"),
                }
                assert_eq!(job(&sql, ours.job).await, job(&kernel, ours.job).await, "{wish:?}");
                made += usize::from(!ours.is_hit);
                hits += usize::from(ours.is_hit);
            }
            Err(SubmitError::Refused { code, reason }) => {
                transaction.rollback().await.unwrap();
                let theirs = decided(&kernel, &wish, 0, at).await.expect_err("refused by both");
                assert_eq!((code, reason), (theirs.code(), theirs.to_string()), "{wish:?}");
                refused += 1;
            }
            Err(error) => panic!("{n}: {wish:?} failed: {error}"),
        }
    }
    assert!(made > 50 && hits > 20 && refused > 200, "{made} made, {hits} hit, {refused} refused");
    let at = now(&client).await;
    assert_eq!(sql.counts(at).await.unwrap(), kernel.counts(at).await.unwrap());
    let ours = sql.moves_after(0, 10_000).await.unwrap();
    let theirs = kernel.moves_after(0, 10_000).await.unwrap();
    assert_eq!((ours.newest, ours.moves), (theirs.newest, theirs.moves));
    // Every key and lane is what the server would have written.
    let wrong = database.sql(
        "SELECT count(*) FROM (SELECT * FROM mainspring.ready UNION ALL
            SELECT lane, key, id, due_at, is_retry FROM mainspring.waiting) r
         JOIN mainspring.job j ON j.id = r.id JOIN mainspring.lane l ON l.lane = r.lane
         WHERE j.lane <> r.lane OR (l.user_id = '') <> (l.type <> 'slow')
            OR r.key <> mainspring.order_key(l.queue = 'due', r.due_at, j.priority)",
    );
    assert_eq!(wrong, "0");
}
