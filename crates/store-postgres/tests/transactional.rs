//! `submit()` in the caller's own transaction: all or nothing, one job to a key, every refusal with
//! its code, and nobody held up by a caller that takes its time.

use mainspring_kernel::dispatch::Wanted;
use mainspring_kernel::flow::{Flow, KeySource};
use mainspring_kernel::registry::ConcurrencyScope;
use mainspring_kernel::{
    Command, Decision, Event, Facts, JobId, JobType, QueueName, QueueOrder, QueueSpec, Timestamp,
    TypeSpec, decide,
};
use mainspring_store::{Desk, Needs, PullNeeds, Store};
use mainspring_store_postgres::transactional::{Submission, SubmitError, Submitted, submit_in};
use mainspring_store_postgres::{PostgresConfig, PostgresStore};
use mainspring_testkit::postgres::{Database, PgBouncer, shared};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("it connects");
    tokio::spawn(connection);
    client
}

/// The time is told by the database, far enough ahead for everything submitted so far to be due.
async fn now(client: &Client) -> Timestamp {
    let row = client
        .query_one("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", &[])
        .await
        .expect("it tells the time");
    Timestamp(row.get(0))
}

async fn open(are_types_strict: bool) -> (Database, PostgresStore, Client) {
    let database = Database::create(shared());
    let client = connect(&database.url).await;
    let at = now(&client).await;
    let config = PostgresConfig {
        allows_unsafe: true,
        is_notified: false,
        are_types_strict,
        ..PostgresConfig::standard(&database.url, Arc::new(move || at))
    };
    let store = PostgresStore::open(config, 1).await.expect("it opens");
    (database, store, client)
}

fn wish() -> Submission<'static> {
    Submission {
        tenant: "acme",
        user_id: "ann",
        job_type: "mail",
        payload: r#"{"n":1}"#,
        ..Submission::default()
    }
}

async fn submit(client: &mut Client, wish: &Submission<'_>) -> Result<Submitted, SubmitError> {
    let transaction = client.transaction().await?;
    let made = submit_in(&transaction, wish).await?;
    transaction.commit().await?;
    Ok(made)
}

/// Changes a registry as a server does.
async fn set(store: &PostgresStore, at: Timestamp, event: Event) {
    let needs = Needs { now: at, ..Needs::default() };
    let mut work = |desk: &mut dyn Desk| desk.apply(vec![event.clone()]);
    store.commit(needs, &mut work).await.expect("it commits");
}

fn queue_of(order: QueueOrder) -> Event {
    let name = QueueName::new("default").expect("a name");
    Event::QueueSet(QueueSpec { order, ..QueueSpec::plain(name) })
}

fn type_limited_by(scope: ConcurrencyScope) -> Event {
    Event::TypeSet(Box::new(TypeSpec {
        concurrency_limit: Some(1),
        concurrency_scope: scope,
        ..TypeSpec::plain(JobType::new("mail").expect("a name"))
    }))
}

/// What a pull of everything would get.
async fn look(store: &PostgresStore, at: Timestamp) -> Vec<JobId> {
    let mut seen = Vec::new();
    let mut work = |desk: &mut dyn Desk| {
        let wanted = Wanted { tenant: None, types: None, queues: None };
        seen = desk.take_ready(&wanted, 100, at);
    };
    let needs = Needs { pulls: vec![PullNeeds::any(100)], now: at, ..Needs::default() };
    store.commit(needs, &mut work).await.expect("it commits");
    seen
}

async fn cancel(store: &PostgresStore, at: Timestamp, job: JobId) {
    let by = mainspring_kernel::UserId::new("ann").expect("a name");
    let command = Command::Cancel { job, by, reason: None };
    let mut work = |desk: &mut dyn Desk| {
        let facts = Facts { job: desk.job(job), ..Facts::at(at) };
        let Decision { events, .. } = decide(&command, &facts).expect("it can be cancelled");
        desk.apply(events);
    };
    let needs = Needs { jobs: vec![job], now: at, ..Needs::default() };
    store.commit(needs, &mut work).await.expect("it commits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_rolls_back_leaves_nothing_and_one_that_commits_one_job() {
    let (database, store, mut client) = open(false).await;
    let keyed = Submission { idempotency_key: Some("k"), ..wish() };
    let transaction = client.transaction().await.unwrap();
    let gone = submit_in(&transaction, &keyed).await.unwrap();
    transaction.rollback().await.unwrap();
    assert!(store.job(gone.job).await.unwrap().is_none());
    for table in ["job", "ready", "waiting", "held_key", "outbox", "lane", "submission"] {
        let count = database.sql(&format!("SELECT count(*) FROM mainspring.{table}"));
        assert_eq!(count, "0", "{table}");
    }
    // A savepoint that is rolled back takes only its own jobs with it.
    let mut transaction = client.transaction().await.unwrap();
    let kept = submit_in(&transaction, &keyed).await.unwrap();
    let inner = transaction.savepoint("later").await.unwrap();
    let undone = submit_in(&inner, &wish()).await.unwrap();
    inner.rollback().await.unwrap();
    assert!(store.job(kept.job).await.unwrap().is_none(), "not before the commit");
    transaction.commit().await.unwrap();
    assert!(!kept.is_hit && store.job(kept.job).await.unwrap().is_some());
    assert!(store.job(undone.job).await.unwrap().is_none());
    let at = now(&client).await;
    assert_eq!(look(&store, at).await, [kept.job]);
    let counts = store.counts(at).await.unwrap();
    assert_eq!((counts.submitted, counts.due), (1, 1));
    let moves = store.moves_after(0, 10).await.unwrap().moves;
    assert_eq!(moves.iter().map(|it| it.job).collect::<Vec<_>>(), [kept.job]);
    assert_eq!(database.sql("SELECT count(*) FROM mainspring.submission"), "0");
    // The text of the id is that of the API, both ways.
    let text = database.sql("SELECT mainspring.job_text(id) FROM mainspring.job");
    assert_eq!(text, kept.job.to_string());
    let back =
        database.sql(&format!("SELECT mainspring.job_uuid('{text}') = id FROM mainspring.job"));
    assert_eq!(back, "t");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_64_transactions_with_one_key_one_makes_the_job_and_the_others_hit_it() {
    let (database, store, _) = open(false).await;
    let mut tasks = Vec::new();
    for _ in 0..64 {
        let url = database.url.clone();
        tasks.push(tokio::spawn(async move {
            let mut client = connect(&url).await;
            submit(&mut client, &Submission { idempotency_key: Some("k"), ..wish() }).await
        }));
    }
    let mut made = Vec::new();
    for task in tasks {
        made.push(task.await.unwrap().expect("one or the other"));
    }
    assert_eq!(made.iter().filter(|it| !it.is_hit).count(), 1);
    assert!(made.iter().all(|it| it.job == made[0].job));
    assert_eq!(database.sql("SELECT count(*) FROM mainspring.job"), "1");
    assert_eq!(store.counts(Timestamp(0)).await.unwrap().submitted, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_free_after_its_window_and_a_rolled_back_one_at_once() {
    let (database, _store, mut client) = open(false).await;
    let keyed = Submission { idempotency_key: Some("k"), ..wish() };
    let first = submit(&mut client, &keyed).await.unwrap();
    let again = submit(&mut client, &keyed).await.unwrap();
    assert_eq!(again, Submitted { job: first.job, is_hit: true });
    // A hit holds no lock: the holder's key can be freed while the caller stays.
    let transaction = client.transaction().await.unwrap();
    assert!(submit_in(&transaction, &keyed).await.unwrap().is_hit);
    database
        .sql("SET lock_timeout = 250; UPDATE mainspring.held_key SET free_at = clock_timestamp()");
    transaction.rollback().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    assert!(!submit_in(&transaction, &keyed).await.unwrap().is_hit);
    transaction.rollback().await.unwrap();
    let next = submit(&mut client, &keyed).await.unwrap();
    assert!(!next.is_hit && next.job != first.job);
    let scoped = Submission { idempotency_scope: Some("s"), ..keyed.clone() };
    assert!(!submit(&mut client, &scoped).await.unwrap().is_hit, "another scope, another key");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_refusal_has_its_code_and_leaves_nothing() {
    let (database, _store, mut client) = open(true).await;
    let long = "x".repeat(201);
    let huge = format!("\"{}\"", "x".repeat(1 << 20));
    let labels: Vec<(&str, &str)> = vec![("a", "b"); 33];
    let long_label = [("a", long.as_str())];
    let key = "x".repeat(513);
    let at = now(&client).await;
    let invalid = [
        ("tenant must not be empty", Submission { tenant: " acme", ..wish() }),
        ("tenant must not be empty", Submission { tenant: "", ..wish() }),
        ("user_id must not be empty", Submission { user_id: "ann\u{3000}", ..wish() }),
        ("user_id must not contain", Submission { user_id: "a\u{85}n", ..wish() }),
        ("job_type must be at most 200", Submission { job_type: &long, ..wish() }),
        ("queue must not contain control", Submission { queue: Some("a\tb"), ..wish() }),
        ("payload must be JSON", Submission { payload: "{", ..wish() }),
        ("payload must be at most 1 MiB", Submission { payload: &huge, ..wish() }),
        (
            "delay_ms cannot be combined",
            Submission { delay_ms: Some(1), run_at: Some(at), ..wish() },
        ),
        ("delay_ms must not be negative", Submission { delay_ms: Some(-1), ..wish() }),
        ("run_at must be within ten years", Submission { delay_ms: Some(i64::MAX), ..wish() }),
        (
            "run_at must be within ten years",
            Submission { run_at: Some(Timestamp(i64::MAX)), ..wish() },
        ),
        ("expires_at must be after", Submission { expires_at: Some(at), ..wish() }),
        (
            "expires_at must be an instant",
            Submission { expires_at: Some(Timestamp(i64::MAX)), ..wish() },
        ),
        ("timeout_ms must be between", Submission { timeout_ms: Some(0), ..wish() }),
        ("timeout_ms must be between", Submission { timeout_ms: Some(604_800_001), ..wish() }),
        ("max_retries must be at most", Submission { max_retries: Some(1001), ..wish() }),
        ("labels must have at most 32", Submission { labels: &labels, ..wish() }),
        ("labels must have names", Submission { labels: &long_label, ..wish() }),
        ("trace_id must be between", Submission { trace_id: Some(""), ..wish() }),
        ("trace_id must be between", Submission { trace_id: Some(&long), ..wish() }),
        ("subject must be at most", Submission { subject: Some(&long), ..wish() }),
        ("idempotency_key must be", Submission { idempotency_key: Some(""), ..wish() }),
        ("idempotency_key must be", Submission { idempotency_key: Some(&key), ..wish() }),
        (
            "idempotency_scope must be",
            Submission { idempotency_key: Some("k"), idempotency_scope: Some(&key), ..wish() },
        ),
    ];
    let refused = |outcome: Result<Submitted, SubmitError>| match outcome {
        Err(SubmitError::Refused { code, reason }) => (code, reason),
        other => panic!("expected a refusal and got {other:?}"),
    };
    let (code, _) = refused(submit(&mut client, &wish()).await);
    assert_eq!(code, "TYPE_UNKNOWN");
    database.sql("UPDATE mainspring.registry SET are_types_strict = false");
    for (text, wish) in invalid {
        let (code, reason) = refused(submit(&mut client, &wish).await);
        assert_eq!(code, "REQ_VALIDATION_FAILED", "{text}");
        assert!(reason.starts_with(text), "{reason:?} instead of {text:?}");
    }
    for call in [
        "priority => 256",
        "priority => -1",
        "max_retries => -1",
        "parent_id => 'job_1'",
        "labels => '[]'",
        "labels => '{\"a\":1}'",
    ] {
        let sql = format!(
            "SELECT mainspring.submit(tenant => 'a', user_id => 'u', job_type => 't', \
             payload => '1', {call})"
        );
        let error = client.batch_execute(&sql).await.expect_err(call);
        let told = error.as_db_error().expect("the database refuses");
        assert_eq!(told.code().code(), "MS101", "{call}");
        assert!(told.message().starts_with("REQ_VALIDATION_FAILED: "), "{call}");
    }
    assert_eq!(database.sql("SELECT count(*) FROM mainspring.job"), "0");
    assert_eq!(database.sql("SELECT count(*) FROM mainspring.held_key"), "0");
    let keyed = Submission { idempotency_key: Some("k"), ..wish() };
    submit(&mut client, &keyed).await.expect("nothing is wrong with it");
    for other in [
        Submission { payload: "2", ..keyed.clone() },
        Submission { job_type: "other", ..keyed.clone() },
    ] {
        let (code, _) = refused(submit(&mut client, &other).await);
        assert_eq!(code, "IDEMPOTENCY_CONFLICT");
    }
    // Space around the payload is not part of it.
    let padded = Submission { payload: " {\"n\":1}\n", ..keyed };
    assert!(submit(&mut client, &padded).await.unwrap().is_hit);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_caller_holds_up_no_change_and_gets_the_lane_and_place_of_its_commit() {
    let (database, store, mut client) = open(false).await;
    let at = now(&client).await;
    set(&store, at, queue_of(QueueOrder::Due)).await;
    let transaction = client.transaction().await.unwrap();
    let due = submit_in(&transaction, &wish()).await.unwrap();
    let later = submit_in(&transaction, &Submission { delay_ms: Some(3_600_000), ..wish() }).await;
    let later = later.unwrap();
    // All of these want the registries for themselves, or the same lane.
    set(&store, at, queue_of(QueueOrder::Aged)).await;
    set(&store, at, type_limited_by(ConcurrencyScope::User)).await;
    let mut other = connect(&database.url).await;
    submit(&mut other, &wish()).await.expect("nobody waits for the new lane");
    transaction.commit().await.unwrap();
    for (table, job) in [("ready", due), ("waiting", later)] {
        let place = database.sql(&format!(
            "SELECT l.user_id, r.key = mainspring.order_key(false, r.due_at, j.priority)
             FROM mainspring.{table} r JOIN mainspring.lane l USING (lane)
             JOIN mainspring.job j ON j.id = r.id WHERE mainspring.job_text(j.id) = '{}'",
            job.job
        ));
        assert_eq!(place, "ann|t", "{table}");
    }
    // Where it stands is where the server expects it.
    let at = now(&client).await;
    cancel(&store, at, due.job).await;
    cancel(&store, at, later.job).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_sees_the_past_fails_if_the_registries_changed_and_else_not() {
    let (_database, store, mut client) = open(false).await;
    let at = now(&client).await;
    for changes in [false, true] {
        let level = tokio_postgres::IsolationLevel::RepeatableRead;
        let transaction = client.build_transaction().isolation_level(level).start().await.unwrap();
        let made = submit_in(&transaction, &wish()).await.unwrap();
        if changes {
            set(&store, at, queue_of(QueueOrder::Due)).await;
        }
        match (changes, transaction.commit().await) {
            (false, outcome) => outcome.expect("nothing changed"),
            (true, outcome) => {
                let error = outcome.expect_err("it saw other registries");
                assert_eq!(error.code().map(|code| code.code()), Some("40001"));
            }
        }
        assert_eq!(store.job(made.job).await.unwrap().is_some(), !changes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_works_through_a_transaction_pooler_and_for_a_role_that_may_only_submit() {
    let (database, store, _) = open(false).await;
    let bouncer = PgBouncer::start(shared());
    let mut pooled = connect(&bouncer.url(&database)).await;
    let made = submit(&mut pooled, &Submission { idempotency_key: Some("k"), ..wish() }).await;
    assert!(store.job(made.unwrap().job).await.unwrap().is_some());
    let role = format!("app_{}", database.name);
    database.sql(&format!(
        "CREATE ROLE {role}; GRANT USAGE ON SCHEMA mainspring TO {role}; \
         GRANT EXECUTE ON FUNCTION mainspring.submit TO {role}"
    ));
    let mut client = connect(&database.url).await;
    client.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
    let made = submit(&mut client, &wish()).await.expect("that is what it was granted");
    assert!(store.job(made.job).await.unwrap().is_some());
    assert!(client.batch_execute("SELECT FROM mainspring.job").await.is_err());
    client.batch_execute("RESET ROLE").await.unwrap();
    database.sql(&format!("REVOKE ALL ON FUNCTION mainspring.submit FROM {role}"));
    client.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
    assert!(submit(&mut client, &wish()).await.is_err(), "it has to be granted");
    client.batch_execute("RESET ROLE").await.unwrap();
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_announced_unless_the_session_wants_quiet() {
    let (database, _store, mut client) = open(false).await;
    let (listener, mut connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) =
            std::future::poll_fn(|context| connection.poll_message(context)).await
        {
            if let tokio_postgres::AsyncMessage::Notification(note) = message {
                let _ = tell.send(note.payload().to_owned());
            }
        }
    });
    listener.batch_execute("LISTEN mainspring_news").await.unwrap();
    client.batch_execute("SET mainspring.notify = off").await.unwrap();
    submit(&mut client, &wish()).await.unwrap();
    client.batch_execute("SET mainspring.notify = on").await.unwrap();
    submit(&mut client, &wish()).await.unwrap();
    let first = tokio::time::timeout(Duration::from_secs(10), told.recv()).await;
    assert_eq!(first.unwrap().as_deref(), Some("submit"));
    assert!(told.try_recv().is_err(), "the first commit was quiet");
}

/// What a pull gets as soon as the server has heard of it.
async fn eventually_seen(store: &PostgresStore, at: Timestamp) -> Vec<JobId> {
    loop {
        let seen = look(store, at).await;
        if !seen.is_empty() {
            return seen;
        }
        tokio::task::yield_now().await;
    }
}

/// Lanes of keys are dropped when nothing waits in them, whatever servers know of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lanes_of_keys_can_be_forgotten_at_any_time() {
    let (database, store, mut client) = open(false).await;
    let at = now(&client).await;
    let flow = Flow { concurrency_key: Some(KeySource::new("/of")), ..Flow::default() };
    let spec = TypeSpec {
        concurrency_limit: Some(1),
        flow: Box::new(flow),
        ..TypeSpec::plain(JobType::new("mail").expect("a name"))
    };
    set(&store, at, Event::TypeSet(Box::new(spec))).await;
    let lanes = "SELECT count(*) FROM mainspring.lane WHERE strpos(user_id, chr(31)) > 0";
    for round in 0..3 {
        let keyed = Submission { payload: "{\"of\":7}", ..wish() };
        let made = submit(&mut client, &keyed).await.expect("it is taken");
        let at = now(&client).await;
        let seen = eventually_seen(&store, at).await;
        assert_eq!(seen, [made.job], "round {round}");
        assert_eq!(database.sql(lanes), "1");
        assert_eq!(
            database.sql("SELECT mainspring.forget_lanes(100)"),
            "0",
            "somebody waits there"
        );
        cancel(&store, at, made.job).await;
        assert_eq!(database.sql("SELECT mainspring.forget_lanes(100)"), "1");
        assert_eq!(database.sql(lanes), "0");
    }
}
