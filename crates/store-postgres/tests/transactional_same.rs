//! The same wishes through the kernel and through `submit()`: equal jobs, equal refusals, equal
//! counts, equal moves.

use mainspring_kernel::backlog::held_bytes;
use mainspring_kernel::command::Submit;
use mainspring_kernel::dispatch::order_key;
use mainspring_kernel::flow::{Flow, KeySource, RateLimit};
use mainspring_kernel::governance::Governance;
use mainspring_kernel::idempotency::Keyed;
use mainspring_kernel::limits::KEY_WINDOW_SECS_DEFAULT;
use mainspring_kernel::{
    Command, Event, Job, JobId, JobType, QueueName, QueueOrder, QueueSpec, Receipt, Rejection,
    TenantId, Timestamp, TypeSpec, UserId,
};
use mainspring_store::{Circumstances, Desk, Needs, Store, decide_on, needs_of};
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
const LABELS: &[(&str, &str)] = &[("z", "1"), ("a", "zwei"), ("\"q\"", "\\ é")];
const BAD_LABELS: [&[(&str, &str)]; 3] =
    [&[("a", "x\ny")], &[("\u{7f}", "")], &[("a", "1"), ("b", ""), ("a", "1")]];

/// A random wish; `at` is about now.
fn wish(dice: &mut Dice, at: Timestamp) -> Submission<'static> {
    let far = 1_000 * HOUR_MS as u64;
    Submission {
        tenant: dice.one_of(&["acme", "acme", "acme", "øther", "øther", "acme "]),
        user_id: dice.one_of(&["ann", "bob"]),
        job_type: dice.one_of(&["mail", "mail", "mail", "slow", "slow", "saw", "keyed", "keyed"]),
        payload: dice.one_of(&[
            "{}",
            "{ \"a\" : 1.0 }",
            "{\"a\":1.0}",
            "[\"é\\u0000\"]",
            "[ \"\\u00e9\\u0000\" ]",
            "null",
            "{\"a\":1,\"a\":1}",
            "{\"a\":\"x\\u0000\\u0041\"}",
            "{\"a\":[true]}",
            "{\"a\" : \"\\n\" }",
            "{\"a\":1,\"a\":\"zwei\"}",
        ]),
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
        idempotency_key: dice.one_of(&[
            None,
            None,
            None,
            Some("k1"),
            Some("k2"),
            Some("ключ"),
            Some("k\u{85}"),
        ]),
        idempotency_scope: dice.one_of(&[None, None, None, Some("s"), Some(""), Some("\t")]),
        trace_id: dice.one_of(&[None, None, None, Some("t-1"), Some(""), Some("t\u{1}")]),
        subject: dice.one_of(&[None, None, None, Some("sub \"ject\""), Some(""), Some("\n")]),
        labels: dice.one_of(&[
            &[],
            &[],
            LABELS,
            &[],
            LABELS,
            BAD_LABELS[0],
            BAD_LABELS[1],
            BAD_LABELS[2],
        ]),
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
    let tenant = named("tenant", TenantId::new(wish.tenant))?;
    let user = named("user_id", UserId::new(wish.user_id))?;
    let job_type = named("job_type", JobType::new(wish.job_type))?;
    let queue = wish.queue.map(|queue| named("queue", QueueName::new(queue))).transpose()?;
    let idempotency = wish.idempotency_key.map(|key| {
        Keyed {
            tenant: &tenant,
            user: &user,
            key,
            scope: wish.idempotency_scope,
            job_type: &job_type,
            payload: wish.payload,
            window_secs: Some(KEY_WINDOW_SECS_DEFAULT),
        }
        .idempotency()
        .map(Box::new)
    });
    Ok(Submit {
        ended: None,
        bounds: Default::default(),
        follows: None,
        may_name_others: false,
        concurrency_key: None,
        idempotency: idempotency.transpose()?,
        alias: None,
        plan: None,
        traceparent: None,
        tenant,
        user,
        job_type,
        payload: wish.payload.into(),
        run_at: wish.run_at,
        delay_ms: wish.delay_ms.map(|ms| ms as u64),
        priority: wish.priority,
        queue,
        timeout_ms: wish.timeout_ms,
        max_retries: wish.max_retries,
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
    let command = Command::Submit(Box::new(command(wish)?));
    let mut outcome = Err(Rejection::NotDue);
    let mut work = |desk: &mut dyn Desk| {
        let mut around = Circumstances {
            now: at,
            fresh_id: &mut || id,
            fresh_secret: &mut || 0,
            are_types_strict: true,
            jumps: &[],
            silences: &[],
            backlog_max: (u64::MAX, u64::MAX),
            governance: Governance::DEFAULT,
        };
        outcome = decide_on(desk, &command, &mut around).map(|decision| {
            desk.apply(decision.events);
            decision.receipt
        });
    };
    store.commit(needs_of([&command], at), &mut work).await.expect("it commits");
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
        share: None,
    };
    let rate = RateLimit::new(5.0, None, Some(KeySource::new("/a")));
    let flow = Flow {
        concurrency_key: Some(KeySource::new("a")),
        rate_limit: Some(rate),
        ..Flow::default()
    };
    let keyed =
        TypeSpec { flow: Box::new(flow), ..TypeSpec { name: plain("keyed").name, ..slow.clone() } };
    let events = vec![
        Event::TypeSet(Box::new(keyed)),
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
    let (mut made, mut hits, mut refused, mut held) = (0, 0, 0, 0);
    for n in 0..4000 {
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
                let same = job(&kernel, ours.job).await;
                assert_eq!(job(&sql, ours.job).await, same, "{wish:?}");
                held += if ours.is_hit { 0 } else { held_bytes(&same) };
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
    // What a job takes up is counted by SQL when it is submitted, and by the kernel when it ends.
    let sum = "SELECT sum(mainspring.held_bytes(payload, trace, more)) FROM mainspring.job";
    assert_eq!(database.sql(sum), held.to_string());
    // Every key and lane is what the server would have written.
    let wrong = database.sql(
        "SELECT count(*) FROM (SELECT * FROM mainspring.ready UNION ALL
            SELECT lane, key, id, due_at, is_retry FROM mainspring.waiting) r
         JOIN mainspring.job j ON j.id = r.id JOIN mainspring.lane l ON l.lane = r.lane
         WHERE (j.lane <> r.lane AND l.type <> 'keyed')
            OR l.user_id <> mainspring.lane_part(j.user_id, l.type IN ('slow', 'keyed'), true, true,
                j.more -> 'limits', false)
            OR r.key <> mainspring.order_key(l.queue = 'due', r.due_at, j.priority)",
    );
    assert_eq!(wrong, "0");
}

/// SQL orders jobs by a function of its own: when it submits, and when a queue changes its order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_order_key_of_sql_is_the_kernels() {
    let database = Database::create(shared());
    let config = PostgresConfig {
        allows_unsafe: true,
        ..PostgresConfig::standard(&database.url, Arc::new(|| Timestamp(0)))
    };
    PostgresStore::open(config, 1).await.expect("it opens");
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = "SELECT mainspring.order_key($1, to_timestamp(0)
        + $2::bigint / 1000000 * interval '1 s' + $2::bigint % 1000000 * interval '1 us', $3)";
    let now: i64 = 1_790_000_000_123_457;
    let past_the_clamp = (1 << 54) + 3;
    for due_at in [0, 1, -1, now, now + 1, past_the_clamp, -61_000_000_000_000_000] {
        for priority in [0, 1, 50, 254, 255] {
            for order in QueueOrder::ALL {
                let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
                    [&(order == QueueOrder::Due), &due_at, &i32::from(priority)];
                let ours: i64 = client.query_one(sql, &values).await.unwrap().get(0);
                let theirs = order_key(order, Timestamp(due_at), priority);
                assert_eq!(ours, theirs, "{order:?} {due_at} {priority}");
            }
        }
    }
}

/// A random JSON value, spelled at random: the same tree for the same `tree`, whatever `ink` does.
fn json(tree: &mut Dice, ink: &mut Dice, depth: usize, out: &mut String) {
    let space = |ink: &mut Dice, out: &mut String| out.push_str(ink.one_of(&["", "", " ", "\n\t"]));
    space(ink, out);
    let kinds: &[u8] = if depth > 5 { &[0, 1] } else { &[0, 1, 2, 3] };
    match tree.one_of(kinds) {
        0 => out.push_str(tree.one_of(&[
            "null",
            "true",
            "false",
            "0",
            "-0",
            "1",
            "1.0",
            "1e2",
            "1E+2",
            "100",
            "123456789012345678901234567890.10",
            "1e-400",
            "1e99999",
        ])),
        1 => string(tree, ink, out),
        2 => {
            out.push('[');
            for index in 0..tree.one_of(&[0, 1, 2, 5]) {
                if index > 0 {
                    out.push(',');
                }
                json(tree, ink, depth + 1, out);
            }
            out.push(']');
        }
        _ => {
            let count = tree.one_of(&[0, 1, 2, 5]);
            let mut members: Vec<String> = Vec::new();
            for index in 0..count {
                let mut member = String::new();
                space(ink, &mut member);
                // The number keeps keys apart; what comes before it decides their order.
                let mut key = String::new();
                string(tree, ink, &mut key);
                key.insert_str(key.len() - 1, &index.to_string());
                member.push_str(&key);
                space(ink, &mut member);
                member.push(':');
                json(tree, ink, depth + 1, &mut member);
                members.push(member);
            }
            for place in (1..members.len()).rev() {
                let other = ink.one_of(&[0, 1, 2, 3, 4]) % (place + 1);
                members.swap(place, other);
            }
            out.push('{');
            out.push_str(&members.join(","));
            out.push('}');
        }
    }
    space(ink, out);
}

/// A string; each of its letters is spelled in one of several ways.
fn string(tree: &mut Dice, ink: &mut Dice, out: &mut String) {
    out.push('"');
    for _ in 0..tree.one_of(&[0, 1, 2, 3, 4, 7]) {
        let spelled: &[&str] = match tree.one_of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]) {
            0 => &["a", "\\u0061"],
            1 => &["é", "\\u00e9", "\\u00E9"],
            2 => &["😀", "\\ud83d\\ude00", "\\uD83D\\uDE00"],
            3 => &["\\u0000"],
            4 => &["\\ud800", "\\uD800"],
            // A low half on its own; behind a high half they make a pair, in both spellings.
            5 => &["\\udc00", "\\uDC00"],
            6 => &["\u{ffff}", "\\uffff", "\\uFFFF"],
            7 => &["\\n", "\\u000a", "\\u000A"],
            8 => &["\\\"", "\\u0022"],
            9 => &["\\\\", "\\u005c", "\\u005C"],
            10 => &["/", "\\/", "\\u002f"],
            11 => &["\\u001f", "\\u001F"],
            12 => &["\u{7f}", "\\u007f"],
            _ => &[" ", "\\u0020"],
        };
        out.push_str(ink.one_of(spelled));
    }
    out.push('"');
}

/// The fingerprint of SQL, or why there is none.
async fn in_sql(client: &tokio_postgres::Client, payload: &str) -> Result<[u8; 16], String> {
    let sql = "SELECT uuid_send(mainspring.fingerprint('mail', btrim($1::text, E' \\t\\n\\r')))";
    let asked = client.query_typed(sql, &[(&payload, tokio_postgres::types::Type::TEXT)]).await;
    match asked {
        Ok(rows) => Ok(rows[0].get::<_, &[u8]>(0).try_into().expect("16 bytes")),
        Err(error) => {
            let told = error.as_db_error().map(|error| error.message().to_owned());
            Err(told.expect("the database refused it"))
        }
    }
}

#[tokio::test]
async fn a_payload_has_one_fingerprint_in_the_kernel_and_in_sql_however_it_is_spelled() {
    let database = Database::create(shared());
    let config = PostgresConfig::standard(&database.url, Arc::new(|| Timestamp::EPOCH));
    mainspring_store_postgres::prepare(&config).await.expect("it migrates");
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let mail = JobType::new("mail").unwrap();
    let kernel = |payload: &str| {
        mainspring_kernel::idempotency::fingerprint(&mail, payload).map(|digest| digest.0)
    };
    let mut seen = std::collections::HashMap::new();
    for seed in 1..=600_u64 {
        let mut spellings = Vec::new();
        for hand in 0..2_u64 {
            let (mut tree, mut ink) = (Dice(seed << 20), Dice(seed << 20 | 1 << hand));
            for _ in 0..20 {
                // Seeds that differ little give dice that do, at first.
                tree.one_of(&[()]);
                ink.one_of(&[()]);
            }
            let mut text = String::new();
            json(&mut tree, &mut ink, 0, &mut text);
            spellings.push(text);
        }
        let made = kernel(&spellings[0]).expect("it has a fingerprint");
        assert_eq!(kernel(&spellings[1]), Ok(made), "{spellings:?}");
        for text in &spellings {
            assert_eq!(in_sql(&client, text).await, Ok(made), "seed {seed}: {text}");
        }
        let canonical = mainspring_kernel::canonical::canonical(&spellings[0]).unwrap();
        assert_eq!(seen.entry(made).or_insert_with(|| canonical.clone()), &canonical);
    }
    assert!(seen.len() > 300, "{} different payloads", seen.len());
    let deep = |depth: usize| "[{\"a\":".repeat(depth / 2) + "1" + &"}]".repeat(depth / 2);
    for odd in [&*deep(64), &deep(66), "{\"a\":1,\"\\u0061\":2}", "[[{\"\":0,\"\":0}]]"] {
        let ours = kernel(odd).map_err(|why| format!("{}: {why}", why.code()));
        assert_eq!(in_sql(&client, odd).await, ours, "{odd}");
    }
}

#[tokio::test]
async fn what_json_can_spell_and_text_cannot_is_refused_in_labels_and_kept_in_payloads() {
    let database = Database::create(shared());
    let config = PostgresConfig {
        allows_unsafe: true,
        ..PostgresConfig::standard(&database.url, Arc::new(|| Timestamp::EPOCH))
    };
    let store = PostgresStore::open(config, 1).await.expect("it opens");
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("UPDATE mainspring.registry SET are_types_strict = false").await.unwrap();
    let call = |rest: &str| {
        format!("SELECT id::text FROM mainspring.submit('acme', 'ann', 'mail', '{{}}', {rest})")
    };
    for (bad, field) in [
        (r#"labels => '{"a":"\u0000"}'"#, "labels"),
        (r#"labels => '{"\u0000":"a"}'"#, "labels"),
        (r#"labels => '{"a":"\ud800"}'"#, "labels"),
        (r#"labels => '{"a":"1","a":"1"}'"#, "labels"),
        ("trace_id => E'a\\x01'", "trace_id"),
        ("subject => chr(133)", "subject"),
        ("idempotency_key => E'\\t'", "idempotency_key"),
        ("idempotency_key => 'k', idempotency_scope => chr(127)", "idempotency_scope"),
    ] {
        let error = client.query(&call(bad), &[]).await.expect_err(bad);
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "MS101", "{bad}: {error}");
        assert!(error.message().contains(field), "{bad}: {error}");
    }
    let odd = r#"{"a":"\u0000\ud800", "b" : [ ] }"#;
    let sql = "SELECT id FROM mainspring.submit('acme', 'ann', 'mail', $1::text::json, \
        idempotency_key => 'k')";
    let rows = client.query_typed(sql, &[(&odd, tokio_postgres::types::Type::TEXT)]).await.unwrap();
    let id = JobId(rows[0].get::<_, uuid::Uuid>(0).as_u128());
    assert_eq!(&*job(&store, id).await.payload, odd);
    // A key of before payloads were compared by what they mean is hit by the same text only.
    let before = format!(
        "UPDATE mainspring.held_key SET fingerprint = mainspring.digest('native', 'mail', '{odd}')"
    );
    client.batch_execute(&before).await.unwrap();
    let again = client.query_typed(sql, &[(&odd, tokio_postgres::types::Type::TEXT)]).await;
    assert_eq!(JobId(again.unwrap()[0].get::<_, uuid::Uuid>(0).as_u128()), id);
    let spaced = format!("{odd} ").replace("[ ]", "[]");
    let other = client.query_typed(sql, &[(&spaced, tokio_postgres::types::Type::TEXT)]).await;
    assert_eq!(other.unwrap_err().as_db_error().unwrap().code().code(), "MS103");
    let wish = Submission {
        tenant: "acme",
        user_id: "ann",
        job_type: "mail",
        payload: "1",
        trace_id: Some("a\0b"),
        ..Submission::default()
    };
    let (mut client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let transaction = client.transaction().await.unwrap();
    match submit_in(&transaction, &wish).await {
        Err(SubmitError::Refused { code, .. }) => assert_eq!(code, "REQ_VALIDATION_FAILED"),
        other => panic!("a NUL is refused, not {other:?}"),
    }
}
