//! Several servers on one database are one scheduler: a key is taken once, limits, pauses and turns
//! hold over all of them, and each looks after the jobs that another handed out. The memory store
//! has one server and keeps the same promises.

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Server, Store, eventually};
use mainspring_testkit::both_stores;
use mainspring_testkit::load::Stopwatch;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::Duration;

both_stores![
    o05_o06_sixty_four_submissions_of_one_key_at_once_are_one_job,
    o05_o06_sixty_four_submissions_of_one_key_are_one_job_though_a_server_is_killed,
    d17_limits_hold_over_all_servers,
    d16_after_a_pause_is_acknowledged_no_server_hands_out_a_job,
    d16_tenants_take_turns_over_all_servers,
    o02_a_revoked_token_ends_what_waits_for_it_on_every_server,
    a_full_backlog_is_refused_by_every_server_and_the_neighbour_is_served,
    a_backlog_goes_over_its_bound_by_no_more_than_servers_have_not_heard_of,
    d16_every_server_knows_of_the_workers_of_the_others,
];

/// As many servers as the store allows, up to three.
fn servers(store: Store, config: &str) -> Vec<Server> {
    let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(config);
    let count = if store == Store::Postgres { 3 } else { 1 };
    (0..count).map(|_| Server::start(options.clone())).collect()
}

const ANY_TYPE: &str = "[types]\nstrict = false\n[scheduler]\nrestart_grace = \"500ms\"\n";

/// The same person at every server.
fn everywhere(servers: &[Server], tenant: &str, user: &str) -> Vec<Caller> {
    let made = servers[0].caller(tenant, user, &["submitter", "worker", "operator"]);
    let at = |server: &Server| Caller { address: server.address, token: made.token.clone() };
    servers.iter().map(at).collect()
}

/// All 64 at once; who gets no answer, or is told to come back, asks the next server.
fn sixty_four(callers: &[Caller], wish: &Value, disturb: impl FnOnce()) -> Vec<Value> {
    let barrier = Barrier::new(65);
    std::thread::scope(|scope| {
        let ask = |nth: usize| {
            barrier.wait();
            let mut turn = nth;
            eventually("a submission is answered", || {
                turn += 1;
                let caller = &callers[turn % callers.len()];
                let request = caller.request("POST", "/api/v1/jobs").json(wish);
                let answer = request.try_send(caller.address).ok()?;
                assert!(answer.status < 300 || answer.status == 503, "{}", answer.text());
                (answer.status < 300).then(|| answer.data())
            })
        };
        let threads: Vec<_> = (0..64).map(|nth| scope.spawn(move || ask(nth))).collect();
        barrier.wait();
        disturb();
        threads.into_iter().map(|thread| thread.join().expect("an answer")).collect()
    })
}

/// How many were told that they are the first, and how many jobs there are for all.
fn firsts_and_jobs(answers: &[Value]) -> (usize, usize) {
    let jobs: BTreeSet<String> = answers.iter().map(|answer| text(answer, "job_id")).collect();
    let firsts = answers.iter().filter(|answer| answer["idempotent_hit"] == false).count();
    (firsts, jobs.len())
}

fn o05_o06_sixty_four_submissions_of_one_key_at_once_are_one_job(store: Store) {
    let servers = servers(store, ANY_TYPE);
    let callers = everywhere(&servers, "acme", "ann");
    for round in 0..5 {
        let wish = json!({ "job_type": "once", "payload": { "round": round },
            "idempotency_key": format!("key-{round}") });
        let answers = sixty_four(&callers, &wish, || ());
        assert_eq!(firsts_and_jobs(&answers), (1, 1), "one job, 63 hits: {answers:?}");
    }
    let jobs = servers[0].admin().get("/api/v1/runtime").data()["counters"]["jobs"].clone();
    assert_eq!(jobs["queued"], 5, "{jobs}");
    println!("{store:?}: 5 keys submitted 64 times each at {} servers", servers.len());
}

fn o05_o06_sixty_four_submissions_of_one_key_are_one_job_though_a_server_is_killed(store: Store) {
    let mut servers = servers(store, ANY_TYPE);
    let callers = everywhere(&servers, "acme", "ann");
    for round in 0..5u64 {
        let wish = json!({ "job_type": "once", "payload": { "round": round },
            "idempotency_key": format!("key-{round}") });
        let last = servers.last_mut().expect("a server");
        let answers = sixty_four(&callers, &wish, || {
            std::thread::sleep(Duration::from_millis(round)); // paced: in the middle of it
            last.restart();
        });
        let (firsts, jobs) = firsts_and_jobs(&answers);
        assert_eq!(jobs, 1, "{answers:?}");
        // The one who was first may have died before it could say so.
        assert!(firsts <= 1, "{answers:?}");
    }
    let jobs = servers[0].admin().get("/api/v1/runtime").data()["counters"]["jobs"].clone();
    assert_eq!(jobs["queued"], 5, "{jobs}");
}

const LIMIT: usize = 3;

/// Who is being worked on right now by whom, by the scope of its limit.
#[derive(Default)]
struct Held {
    now: Mutex<BTreeMap<String, usize>>,
    most: AtomicUsize,
    done: AtomicUsize,
}

impl Held {
    fn take(&self, scope: &str) {
        let mut now = self.now.lock().expect("nobody panicked");
        let count = now.entry(scope.to_owned()).or_default();
        *count += 1;
        assert!(*count <= LIMIT, "{count} leases under {scope}");
        self.most.fetch_max(*count, Ordering::Relaxed);
    }

    fn give_back(&self, scope: &str) {
        *self.now.lock().expect("nobody panicked").get_mut(scope).expect("it was taken") -= 1;
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Pulls as much as there is from one server after the other and completes at the next.
fn drain(admins: &[Caller], first: usize, held: &Held, total: usize) {
    let mut turn = first;
    while held.done.load(Ordering::Relaxed) < total {
        turn += 1;
        let wish = json!({ "worker_id": format!("w-{first}"), "limit": 5, "wait_ms": 20 });
        let grants = admins[turn % admins.len()].pull_with(wish);
        let scopes: Vec<String> = grants.iter().map(|one| text(&one["payload"], "scope")).collect();
        scopes.iter().for_each(|scope| held.take(scope));
        for (grant, scope) in grants.iter().zip(&scopes) {
            std::thread::sleep(Duration::from_millis(2)); // paced: work takes time
            held.give_back(scope);
            let done = admins[(turn + 1) % admins.len()].complete(grant);
            assert_eq!(done["status"], "succeeded", "{done}");
        }
    }
}

fn d17_limits_hold_over_all_servers(store: Store) {
    let mut config = ANY_TYPE.to_owned();
    for scope in ["global", "tenant", "user"] {
        config.push_str(&format!(
            "[types.by-{scope}]\nconcurrency_limit = {LIMIT}\nconcurrency_scope = \"{scope}\"\n"
        ));
    }
    let servers = servers(store, &config);
    let mut total = 0;
    for (tenant, user) in [("acme", "ann"), ("acme", "bob"), ("blue", "ann"), ("blue", "cat")] {
        let callers = everywhere(&servers, tenant, user);
        let scopes = [
            ("global", "all".to_owned()),
            ("tenant", tenant.to_owned()),
            ("user", format!("{tenant}/{user}")),
        ];
        for (kind, scope) in scopes {
            let jobs: Vec<Value> = (0..40)
                .map(|n| {
                    json!({ "job_type": format!("by-{kind}"),
                    "payload": { "scope": format!("{kind} {scope}"), "n": n } })
                })
                .collect();
            total += jobs.len();
            callers[total % callers.len()]
                .post("/api/v1/jobs/batch", &json!({ "jobs": jobs }))
                .data();
        }
    }
    let admins: Vec<Caller> = servers.iter().map(Server::admin).collect();
    let (held, is_over, looks) = (Held::default(), AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let Some(database) = servers[0].database() else { return };
            while !is_over.load(Ordering::Relaxed) {
                let most = database.sql(
                    "SELECT coalesce(max(n), 0) FROM (SELECT count(*) n FROM mainspring.live \
                     WHERE limit_key IS NOT NULL GROUP BY limit_key) AS held",
                );
                assert!(most.parse::<usize>().expect("a number") <= LIMIT, "{most} rows");
                looks.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (admins, held) = (&admins, &held);
        let workers: Vec<_> =
            (0..6).map(|nth| scope.spawn(move || drain(admins, nth, held, total))).collect();
        workers.into_iter().for_each(|worker| worker.join().expect("nobody panics"));
        is_over.store(true, Ordering::Relaxed);
        looker.join().expect("it looked on");
    });
    let (most, done) = (held.most.into_inner(), held.done.into_inner());
    println!(
        "{store:?}: {done} jobs under limits of {LIMIT}, at most {most} at once, {} looks by SQL",
        looks.into_inner()
    );
    assert_eq!((most, done), (LIMIT, total), "the limit is used to the full");
}

fn d16_after_a_pause_is_acknowledged_no_server_hands_out_a_job(store: Store) {
    let servers = servers(store, ANY_TYPE);
    let callers = everywhere(&servers, "acme", "ann");
    let admins: Vec<Caller> = servers.iter().map(Server::admin).collect();
    let jobs: Vec<Value> =
        (0..4_000).map(|n| json!({ "job_type": "t", "payload": n, "queue": "stopped" })).collect();
    callers[0].post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).data();
    let (clock, is_over) = (Stopwatch::start(), AtomicBool::new(false));
    // Pairs of when a pull began and ended, for pulls that got something.
    let pulls: Mutex<Vec<(Duration, Duration)>> = Mutex::default();
    let mut pauses = Vec::new();
    std::thread::scope(|scope| {
        for caller in callers.iter().chain(&callers) {
            let (is_over, pulls) = (&is_over, &pulls);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let began = clock.elapsed();
                    if !caller.pull("t", 1).is_empty() {
                        pulls.lock().expect("nobody panicked").push((began, clock.elapsed()));
                    }
                }
            });
        }
        for round in 0..12 {
            let count = pulls.lock().expect("nobody panicked").len();
            eventually("jobs are handed out", || {
                (pulls.lock().expect("nobody panicked").len() > count + 5).then_some(())
            });
            let poke = |nth: usize, verb: &str| {
                let admin = &admins[nth % admins.len()];
                admin.poke(&format!("/api/v1/queues/stopped/{verb}")).data();
                clock.elapsed()
            };
            let from = poke(round, "pause");
            std::thread::sleep(Duration::from_millis(150)); // paced: pulls go on meanwhile
            let until = clock.elapsed();
            poke(round + 1, "resume");
            pauses.push((from, until));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let pulls = pulls.into_inner().expect("nobody panicked");
    for (from, until) in &pauses {
        let late = pulls.iter().filter(|(began, ended)| began > from && ended < until);
        assert_eq!(late.count(), 0, "handed out although paused");
    }
    println!("{store:?}: {} jobs handed out around {} pauses", pulls.len(), pauses.len());
}

fn d16_tenants_take_turns_over_all_servers(store: Store) {
    let servers = servers(store, ANY_TYPE);
    let flood = everywhere(&servers, "flood", "ann");
    let quiet = everywhere(&servers, "quiet", "bob");
    let admins: Vec<Caller> = servers.iter().map(Server::admin).collect();
    let submit = |caller: &Caller, count: usize| {
        let wish = |_| json!({ "job_type": "turns", "payload": caller.token[..8].to_owned() });
        let jobs: Vec<Value> = (0..count).map(wish).collect();
        let made = caller.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).data();
        let items = made["items"].as_array().expect("a list").clone();
        items.iter().map(|item| text(item, "job_id")).collect::<BTreeSet<_>>()
    };
    submit(&flood[0], 2_000);
    let mut worst = 0;
    for batch in [1, 4] {
        let mut waiting = submit(&quiet[batch % quiet.len()], 30);
        let (mut ahead, mut turn) = (0, 0);
        while !waiting.is_empty() {
            turn += 1;
            for grant in admins[turn % admins.len()].pull("turns", batch) {
                if waiting.remove(&text(&grant, "job_id")) {
                    ahead = 0;
                } else {
                    ahead += 1;
                    worst = worst.max(ahead);
                }
            }
            let most = servers.len() + batch;
            assert!(ahead <= most, "{ahead} jobs of the flood went ahead where {most} may");
        }
    }
    println!("{store:?}: at most {worst} jobs of a flood of 2,000 went ahead of the other tenant");
}

/// The worker dies, and the server that handed out its job dies: another one takes over.
fn d17_another_server_reaps_what_a_dead_one_handed_out() {
    let mut servers = servers(Store::Postgres, ANY_TYPE);
    let callers = everywhere(&servers, "acme", "ann");
    for round in 0..3 {
        let job = callers[1].submit_plain("rescue");
        let wish = json!({ "worker_id": "dies", "types": ["rescue"], "lease_ms": 1_000 });
        let stale = eventually("it is handed out", || callers[0].pull_with(wish.clone()).pop());
        let granted = Stopwatch::start();
        servers[0].kill9();
        let fresh = callers[1 + round % 2].pull_one("rescue");
        let took = granted.elapsed();
        assert_eq!(fresh["job_id"], job.as_str());
        let events = callers[1].events(&job);
        assert_eq!(events[2]["reason_code"], "TASK_LEASE_LOST", "{events:?}");
        let at = |nth: usize| -> jiff::Timestamp {
            text(&events[nth], "occurred_at").parse().expect("an instant")
        };
        let lost = at(2).duration_since(at(1));
        assert!(lost.as_millis() <= 3_000, "reaped after {lost:?}");
        assert!(lost.as_millis() >= 1_000, "its lease was cut short: {lost:?}");
        // The first worker was only slow. What it says changes nothing, wherever it says it.
        for caller in &callers[1..] {
            assert_eq!(caller.complete(&stale)["error"]["code"], "LEASE_LOST");
            let path = format!("/api/v1/work/effects/{job}/charge");
            let late = json!({ "lease_token": stale["lease_token"], "value": "late" });
            assert_eq!(caller.put(&path, &late).refusal(), (409, "LEASE_LOST".to_owned()));
        }
        let done = callers[2].report("complete", &fresh, json!({ "result": round }));
        assert_eq!(done["status"], "succeeded", "{done}");
        servers[0].restart();
        let found = callers[0].job(&job);
        assert_eq!((&found["result"], &found["attempt"]), (&json!(round), &json!(2)));
        println!("lease of 1 s lost after {lost:?}, its job handed out again after {took:?}");
    }
}

mod only {
    mod postgres {
        #[test]
        fn d17_another_server_reaps_what_a_dead_one_handed_out() {
            super::super::d17_another_server_reaps_what_a_dead_one_handed_out();
        }
    }
}

/// The state of something that is told by the metrics.
fn metric(server: &Server, line: &str) -> Option<()> {
    let page = server.admin().get("/metrics").text();
    page.lines().any(|found| found == line).then_some(())
}

fn o02_a_revoked_token_ends_what_waits_for_it_on_every_server(store: Store) {
    let servers = servers(store, ANY_TYPE);
    let admin = servers[0].admin();
    let issue = |user: &str, roles: &[&str]| {
        let wish = json!({ "tenant_id": "rev", "user_id": user, "roles": roles });
        let made = admin.post("/api/v1/tokens", &wish).data();
        (text(&made, "token_id"), text(&made, "token"))
    };
    let (worker_id, worker) = issue("worker", &["worker"]);
    let (submitter_id, submitter) = issue("submitter", &["submitter"]);
    let (viewer_id, viewer) = issue("viewer", &["viewer"]);
    let watch = Stopwatch::start();
    std::thread::scope(|scope| {
        let mut waiting = Vec::new();
        for server in &servers {
            let at = |token: &str| Caller { address: server.address, token: token.to_owned() };
            let (worker, submitter, viewer) = (at(&worker), at(&submitter), at(&viewer));
            let watch = &watch;
            waiting.push((
                "pull",
                scope.spawn(move || {
                    let wish = json!({ "worker_id": "w", "types": ["rev"], "wait_ms": 60_000 });
                    let answer = worker.post("/api/v1/work/pull", &wish);
                    assert_eq!(answer.refusal(), (401, "AUTH_UNAUTHORIZED".into()));
                    watch.elapsed()
                }),
            ));
            waiting.push((
                "submission",
                scope.spawn(move || {
                    let wish = json!({ "job_type": "other", "payload": 0 });
                    let answer = submitter.post("/api/v1/jobs?wait_ms=60000", &wish);
                    assert_eq!(
                        (answer.status, text(&answer.data(), "status")),
                        (201, "queued".into())
                    );
                    watch.elapsed()
                }),
            ));
            waiting.push((
                "stream",
                scope.spawn(move || {
                    // It is read to its end.
                    let answer = viewer.get("/api/v1/events");
                    assert_eq!(answer.status, 200);
                    watch.elapsed()
                }),
            ));
        }
        for server in &servers {
            eventually("a pull waits", || metric(server, "mainspring_pulls_waiting 1"));
        }
        let submitted = servers.len();
        eventually("the submissions are there", || {
            let jobs = admin.get("/api/v1/jobs?type=other").data();
            (jobs["items"].as_array()?.len() == submitted).then_some(())
        });
        let revoked_at = watch.elapsed();
        for id in [worker_id, submitter_id, viewer_id] {
            assert_eq!(admin.delete(&format!("/api/v1/tokens/{id}")).status, 200);
        }
        // From here on nothing may be handed out on its behalf, wherever it waits.
        let job = servers[0].caller("rev", "other", &["submitter"]).submit_plain("rev");
        let mut slowest = Duration::ZERO;
        for (what, thread) in waiting {
            let took = thread.join().expect("it is answered").saturating_sub(revoked_at);
            assert!(took < Duration::from_secs(20), "a {what} went on for {took:?}");
            slowest = slowest.max(took);
        }
        assert_eq!(admin.job(&job)["status"], "queued", "a revoked worker got a job");
        println!("{} waiting calls ended {slowest:?} after the revocation", 3 * servers.len());
    });
}

fn a_full_backlog_is_refused_by_every_server_and_the_neighbour_is_served(store: Store) {
    let limits = "[limits]\nbacklog_bytes = 8388608\nbacklog_bytes_per_tenant = 3145728\n";
    let servers = servers(store, &format!("{ANY_TYPE}{limits}"));
    let greedy = everywhere(&servers, "greedy", "ann");
    let modest = everywhere(&servers, "modest", "bob");
    let large = json!({ "job_type": "large", "payload": "x".repeat(1 << 19) });
    // Half a megabyte each: five fit, the sixth does not.
    let batch = json!({ "jobs": vec![large.clone(); 8] });
    let outcomes = greedy[0].post("/api/v1/jobs/batch", &batch).data();
    let outcomes = outcomes["items"].as_array().expect("items").clone();
    let refused: Vec<_> = outcomes.iter().filter(|item| !item["error"].is_null()).collect();
    assert_eq!((outcomes.len(), refused.len()), (8, 3), "{outcomes:?}");
    assert!(refused.iter().all(|item| item["error"]["code"] == "TENANT_BACKLOG_FULL"));
    for caller in &greedy {
        let told = eventually("the bound is known", || {
            let answer = caller.post("/api/v1/jobs", &large);
            (answer.status == 429).then_some(answer)
        });
        assert_eq!(told.refusal(), (429, "TENANT_BACKLOG_FULL".into()));
        assert!(told.header("retry-after").is_some());
    }
    for caller in &modest {
        caller.submit_plain("small");
    }
    let own = eventually("the jobs of all servers are counted", || {
        let own = modest[0].get("/api/v1/runtime").data();
        (own["tenant"]["jobs"] == servers.len()).then_some(own)
    });
    assert!(own["counters"].is_null(), "the numbers of others are not shown: {own}");
    // Reports are taken, and what has ended makes room again.
    // Until they heard of each other, several servers may have taken more than the bound.
    eventually("there is room again", || {
        for grant in greedy[0].pull("large", 2) {
            assert_eq!(greedy[0].complete(&grant)["status"], "succeeded");
        }
        (greedy[0].post("/api/v1/jobs", &large).status == 201).then_some(())
    });
    // Nobody's room is endless.
    let third = everywhere(&servers, "third", "cem");
    let fourth = everywhere(&servers, "fourth", "dan");
    let others = [&third[0], &fourth[0], &modest[0]];
    let told = eventually("all is full", || {
        let mut answers = others.iter().map(|caller| caller.post("/api/v1/jobs", &large));
        answers.find(|answer| answer.status == 507)
    });
    assert_eq!(told.refusal(), (507, "BACKLOG_FULL".into()));
}

/// A worker pulls from one server; every server says so, and explains by it.
fn d16_every_server_knows_of_the_workers_of_the_others(store: Store) {
    let servers = servers(store, ANY_TYPE);
    let callers = everywhere(&servers, "acme", "ann");
    let (first, last) = (&callers[0], callers.last().expect("one"));
    let job = first.submit_plain("lonely");
    let codes = |caller: &Caller| -> Vec<String> {
        let told = caller.get(&format!("/api/v1/jobs/{job}/explain")).data();
        told["reasons"].as_array().expect("a list").iter().map(|why| text(why, "code")).collect()
    };
    assert!(codes(last).contains(&"NO_WORKER".to_owned()), "{:?}", codes(last));
    let told = last.get(&format!("/api/v1/jobs/{job}/explain")).data();
    assert!(told["reasons"].to_string().contains("since this server started"), "{told}");
    // A worker of the right type that gets nothing, because its queue is another one.
    let ask = json!({ "worker_id": "w-far", "types": ["lonely"], "queues": ["default", "other"],
        "limit": 1 });
    assert_eq!(first.pull_with(ask.clone()).len(), 1);
    let other = first.submit_plain("lonely");
    for caller in &callers {
        eventually("every server knows of the worker", || {
            let told = caller.get(&format!("/api/v1/jobs/{other}/explain")).data();
            let reasons = told["reasons"].to_string();
            (!reasons.contains("NO_WORKER")).then_some(())
        });
    }
    let admin = servers.last().expect("one").admin();
    let workers = items(admin.get("/api/v1/workers").data());
    let far = workers.iter().find(|it| it["worker_id"] == "w-far").expect("it is listed");
    assert_eq!(far["granted"], json!(1), "{far}");
    assert_eq!(workers.iter().filter(|it| it["worker_id"] == "w-far").count(), 1, "{workers:?}");
}

/// Every server counts what it has taken itself, and hears of what the others took a moment later.
/// So together they never hold more than the bound once for each of them, however fast they are
/// asked, and then all of them refuse.
fn a_backlog_goes_over_its_bound_by_no_more_than_servers_have_not_heard_of(store: Store) {
    const BOUND: u64 = 3 << 20;
    let limits = format!("[limits]\nbacklog_bytes_per_tenant = {BOUND}\n");
    let servers = servers(store, &format!("{ANY_TYPE}{limits}"));
    let greedy = everywhere(&servers, "greedy", "ann");
    let large = json!({ "job_type": "large", "payload": "x".repeat(100_000) });
    let barrier = Barrier::new(greedy.len());
    let taken: usize = std::thread::scope(|scope| {
        let flood = |caller: &Caller| {
            let mut taken = 0;
            barrier.wait();
            while caller.post("/api/v1/jobs", &large).status == 201 {
                taken += 1;
            }
            taken
        };
        let floods: Vec<_> =
            greedy.iter().map(|caller| scope.spawn(move || flood(caller))).collect();
        floods.into_iter().map(|flood| flood.join().expect("a count")).sum()
    });
    let each = 100_000 + 2 + 512;
    let (held, servers) = (taken as u64 * each, servers.len() as u64);
    println!("{store:?}: {held} bytes taken by {servers} servers, bound {BOUND}");
    assert!(held > BOUND - each, "what fits is taken: {held}");
    assert!(held <= servers * BOUND, "{held}");
    for caller in &greedy {
        eventually("all of it is counted", || {
            let told = caller.get("/api/v1/runtime").data();
            (told["tenant"]["backlog_bytes"] == held).then_some(())
        });
        let refused = caller.post("/api/v1/jobs", &large);
        assert_eq!(refused.refusal(), (429, "TENANT_BACKLOG_FULL".into()));
    }
}
