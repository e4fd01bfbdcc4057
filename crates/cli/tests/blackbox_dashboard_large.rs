//! Every page of the dashboard over many jobs. In the usual run there are some ten thousands of
//! them, and PostgreSQL is asked what it read for each page: never more than a bound, however many
//! jobs there are. `cargo xtask test --full` fills a million on each store, prints how long the
//! pages take and wants them soon.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::disallowed_methods, reason = "how long a page takes is measured from outside")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Options, Server, Store, Visitor, eventually};
use mainspring_testkit::both_stores;
use mainspring_testkit::postgres::{Cluster, ClusterOptions};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

both_stores![pages_cost_the_same_however_many_jobs_there_are];

const EVERYTHING: [&str; 5] = ["submitter", "worker", "operator", "viewer", "approver"];
/// How long all but one in twenty looks at any page take at most, beside a million jobs.
const LOOK_MAX: Duration = Duration::from_millis(300);
/// How often a long list is looked at: more often than the house counts for itself meanwhile.
const LOOKS: usize = 200;
/// Kinds of failures: more than one page has.
const CODES: usize = 30;
/// Where bulk operations are.
const OPERATION: &str = "/ui/bulk/blk_";
/// Rows that one statement for a page may read. Lists look at up to ten thousand rows to choose an
/// index; whoever reads all that there are reads more.
const ROWS_MAX: f64 = 12_500.0;

fn is_full() -> bool {
    std::env::var("MAINSPRING_TEST").is_ok_and(|mode| mode == "full")
}

/// How much there is to look at.
struct Size {
    jobs: usize,
    /// Jobs of one request.
    batch: usize,
    dead: usize,
    /// How often each page is asked for.
    asks: usize,
}

fn pages_cost_the_same_however_many_jobs_there_are(store: Store) {
    let size = match is_full() {
        true => Size { jobs: 1_000_000, batch: 10_000, dead: 5_000, asks: 50 },
        false => Size { jobs: 30_000, batch: 2_000, dead: 600, asks: 3 },
    };
    let cluster = (store == Store::Postgres).then(|| Cluster::start(&ClusterOptions::default()));
    let mut options = Options::new(env!("CARGO_BIN_EXE_mainspring"));
    options.database = cluster.as_ref().map(|cluster| Arc::new(cluster.database()));
    let mut server = Server::start(options);
    let ann = server.caller("large", "ann", &EVERYTHING);
    let start = Instant::now();
    fill(&server, &ann, &size);
    println!("{store:?}: {} jobs made in {:.0} s", size.jobs, start.elapsed().as_secs_f64());
    let made = server.admin().get("/api/v1/runtime").data()["counters"]["submitted"].clone();
    assert!(made.as_u64().is_some_and(|made| made >= size.jobs as u64), "{made} jobs");
    let pages = pages(&server, &ann);
    let mut slowest = Duration::ZERO;
    for who in [&ann, &server.admin()] {
        let visitor = Visitor::signed_in(&server, who);
        for page in &seen_by(&server, who, &ann, &pages) {
            let took = asked(&visitor, page, size.asks);
            slowest = slowest.max(took);
            if is_full() {
                println!("{store:?} {:>6.1} ms p95 {page}", took.as_secs_f64() * 1e3);
            }
        }
    }
    what_is_not_counted_in_full_says_so(&server, &ann, &size);
    two_long_lists_have_in_common_what_they_should(&ann, &size);
    let millis = slowest.as_secs_f64() * 1e3;
    println!("{} jobs, {} pages: the slowest {millis:.0} ms at p95", size.jobs, pages.len());
    if let Some(cluster) = cluster {
        explained(&cluster, &mut server, &ann, &pages);
    }
    assert!(slowest < LOOK_MAX || !is_full(), "{slowest:?}");
}

/// Failures are found among all dead letters soon, in pages without gaps; the preview of a bulk
/// operation says that it has stopped counting.
fn what_is_not_counted_in_full_says_so(server: &Server, ann: &Caller, size: &Size) {
    let visitor = Visitor::signed_in(server, ann);
    let all = size.dead + 20;
    let first = eventually("all dead letters were looked at", || {
        let page = visitor.get("/ui/dlq").text();
        page.contains("Counted ").then_some(page)
    });
    let next = next(&first).expect("more failures than a page has");
    let mut found: Vec<(String, usize)> = failures(&first);
    assert_eq!(found.len(), 20);
    found.extend(failures(&visitor.get(&next).text()));
    found.sort_unstable();
    found.dedup_by(|a, b| a.0 == b.0);
    assert_eq!(found.len(), CODES, "{found:?}");
    assert_eq!(found.iter().map(|(_, count)| count).sum::<usize>(), all, "{found:?}");
    let preview = visitor.get("/ui/bulk/new?action=cancel&status=queued&type=large.1").text();
    assert!(preview.contains("id=\"matched\">1,000+ "), "{preview}");
}

/// Of a label and a type, both of very many jobs, every job that has both is found once, newest
/// first: whichever of the two is the denser. Of a state and a type that share none, none.
fn two_long_lists_have_in_common_what_they_should(ann: &Caller, size: &Size) {
    common(ann, size, "part%3Dp1", |n| n % 3 == 1);
    common(ann, size, "rare%3Dyes", is_rare);
    let none = ann.get("/api/v1/jobs?status=cancelled&type=large.7").data();
    assert_eq!((items(none.clone()).len(), &none["total"]), (0, &json!(0)));
    // Those of large.0 to large.5, but for a few that failed; none of those that are done.
    let queued = |job_type: &str| {
        let path = format!("/api/v1/jobs?status=queued&type={job_type}&limit=1");
        let page = ann.get(&path).data();
        page["total"].as_u64().or(page["total_at_least"].as_u64()).unwrap()
    };
    assert_eq!((queued("large.0"), queued("large.7")), ((size.jobs as u64 / 10).min(10_000), 0));
}

/// Walks along what has a label and is of the type `large.3`.
fn common(ann: &Caller, size: &Size, label: &str, has_label: fn(u64) -> bool) {
    let is_it = |n: &u64| n % 10 == 3 && has_label(*n);
    let all = (0..size.jobs as u64).filter(is_it).count();
    let pages_max = if is_full() { 20 } else { usize::MAX };
    let (mut path, mut seen, mut last) = (String::new(), BTreeSet::new(), None);
    for _ in 0..pages_max {
        let page = format!("/api/v1/jobs?label={label}&type=large.3&limit=100{path}");
        let page = ann.get(&page).data();
        for job in items(page.clone()) {
            let id = text(&job, "job_id");
            assert!(last.is_none_or(|last| id < last), "{id} is not older than the one before");
            last = Some(id);
            let n = job["payload"]["n"].as_u64().unwrap();
            assert!(is_it(&n), "{job}");
            assert!(seen.insert(n), "{n} comes twice");
        }
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), if is_full() { 2_000 } else { all }, "{label}");
}

/// One in thirteen: fewer than are of a type, and more than are counted to choose an index.
fn is_rare(n: u64) -> bool {
    n.is_multiple_of(13)
}

/// The codes of the failures on a page, and how many dead letters have each.
fn failures(page: &str) -> Vec<(String, usize)> {
    let rows = page.split("<code class=\"bad\">").skip(1);
    let row = |row: &str| {
        let (code, rest) = row.split_once('<').unwrap();
        let (_, rest) = rest.split_once("num").unwrap();
        let (_, rest) = rest.split_once('>').unwrap();
        let count = rest.split_once('<').unwrap().0.trim().replace(',', "");
        (code.to_owned(), count.parse().unwrap_or_else(|_| panic!("{count:?} in {page}")))
    };
    rows.map(row).collect()
}

/// Where a list goes on.
fn next(page: &str) -> Option<String> {
    let (_, rest) = page.split_once("rel=\"next\" href=\"")?;
    Some(rest.split_once('"')?.0.replace("&#38;", "&").replace("&amp;", "&"))
}

/// Asks for a page so many times, and tells how long all but one in twenty took at most.
fn asked(visitor: &Visitor<'_>, page: &str, times: usize) -> Duration {
    let ask = || {
        let start = Instant::now();
        let answer = visitor.get(page);
        assert_eq!(answer.status, 200, "{page}: {}", answer.text());
        start.elapsed()
    };
    let mut took: Vec<Duration> = (0..times).map(|_| ask()).collect();
    took.sort_unstable();
    took[(times * 95).div_ceil(100) - 1]
}

/// Jobs of ten types: six in ten wait, three are done, one in ten has failed or is cancelled.
fn fill(server: &Server, who: &Caller, size: &Size) {
    for n in 0..10 {
        server.admin().put(&format!("/api/v1/types/large.{n}"), &json!({})).data();
    }
    // Two at a time: the server has one to work on while the other is answered.
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || {
                let firsts = (0..size.jobs).step_by(size.batch).skip(half).step_by(2);
                firsts.for_each(|first| submit(who, first, size.batch));
            });
        }
    });
    for done in ["large.6", "large.7", "large.8"] {
        for left in (0..size.jobs / 10).step_by(size.batch) {
            report(who, "complete", done, size.batch.min(size.jobs / 10 - left));
        }
    }
    for left in (0..size.dead).step_by(500) {
        report(who, "fail", "large.9", 500.min(size.dead - left));
    }
    report(who, "fail", "large.5", 20);
    cancel(server, who, "large.9");
    for n in 0..60 {
        let wish = json!({ "name": format!("round {n}"), "job_type": "large.0", "kind": "cron",
            "cron": "0 9 1 1 *", "payload": {} });
        who.post("/api/v1/schedules", &wish).data();
    }
}

fn submit(who: &Caller, first: usize, count: usize) {
    let wish = |n: usize| {
        let mut labels = json!({ "part": format!("p{}", n % 3) });
        if is_rare(n as u64) {
            labels["rare"] = json!("yes");
        }
        json!({ "job_type": format!("large.{}", n % 10), "payload": { "n": n },
            "max_retries": 0, "labels": labels })
    };
    let wishes: Vec<Value> = (first..first + count).map(wish).collect();
    let made = who.post("/api/v1/jobs/batch", &json!({ "jobs": wishes }));
    assert!(made.status < 300, "{}", made.text());
}

/// Takes so many jobs of a type, and tells how they went.
fn report(who: &Caller, verb: &str, job_type: &str, count: usize) {
    let grants = who.pull(job_type, count);
    assert_eq!(grants.len(), count, "{job_type}");
    let item = |(n, grant): (usize, &Value)| {
        let mut item = json!({ "job_id": grant["job_id"], "lease_token": grant["lease_token"] });
        if verb == "fail" {
            item["error_code"] = json!(format!("E{}", n % CODES));
            item["message"] = json!(format!("printer {n} is empty"));
        }
        item
    };
    let told: Vec<Value> = grants.iter().enumerate().map(item).collect();
    let answer = who.post(&format!("/api/v1/work/{verb}"), &json!({ "items": told }));
    assert_eq!(items(answer.data()).len(), count);
}

/// Cancels what waits of a type, as two people do.
fn cancel(server: &Server, who: &Caller, job_type: &str) {
    let bob = server.caller("large", "bob", &["approver", "viewer"]);
    let filter = json!({ "status": "queued", "type": job_type });
    let wish = json!({ "action": "cancel", "filter": filter, "reason": "too many" });
    let bulk = who.post("/api/v1/bulk", &wish).data();
    let path = format!("/api/v1/bulk/{}", text(&bulk, "bulk_id"));
    if bulk["status"] == "awaiting_approval" {
        bob.post(&format!("{path}/approve"), &json!({ "version": bulk["version"] })).data();
    }
    let mut seen = json!(null);
    while who.get(&path).data()["status"] != "done" {
        // It goes on for as long as there is something to do; that it gets on is waited for.
        seen = eventually("it gets on", || {
            let now = who.get(&path).data();
            (now["done"] != seen || now["status"] == "done").then(|| now["done"].clone())
        });
    }
}

/// Ann's pages as somebody sees them: operations are their tenant's, and an admin has more pages.
fn seen_by(
    server: &Server,
    who: &Caller,
    ann: &Caller,
    pages: &BTreeSet<String>,
) -> BTreeSet<String> {
    let is_own = |page: &&String| who.token == ann.token || !page.starts_with(OPERATION);
    let mut seen = navigation(server, who);
    seen.extend(pages.iter().filter(is_own).cloned());
    seen
}

/// What the navigation leads to for somebody.
fn navigation(server: &Server, who: &Caller) -> BTreeSet<String> {
    let shell = Visitor::signed_in(server, who).get("/").text();
    let links = shell.split("href=\"/ui/").skip(1).map(|rest| rest.split_once('"').unwrap().0);
    let links = links.filter(|link| !link.contains(['?', '.', '/']));
    links.map(|link| format!("/ui/{link}")).collect()
}

/// Every page that the navigation has, lists by each filter, and one thing of each kind.
fn pages(server: &Server, who: &Caller) -> BTreeSet<String> {
    let first = |path: &str, field: &str| text(&items(who.get(path).data())[0], field);
    let mut pages = navigation(server, who);
    assert!(pages.len() >= 12, "the navigation is read: {pages:?}");
    let states = ["queued", "running", "retrying", "dlq_pending", "dlq_recorded", "succeeded"];
    for state in states.into_iter().chain(["failed", "cancelled"]) {
        pages.insert(format!("/ui/jobs?status={state}"));
        pages.insert(format!("/ui/jobs?status={state}&type=large.7"));
        let job = items(who.get(&format!("/api/v1/jobs?status={state}&limit=1")).data());
        pages.extend(job.iter().map(|job| format!("/ui/jobs/{}", text(job, "job_id"))));
    }
    let item = first("/api/v1/dlq/items?limit=1", "dlq_id");
    let signature = first("/api/v1/dlq/groups?limit=1", "signature");
    let schedule = first("/api/v1/schedules?limit=1", "schedule_id");
    let bulk = first("/api/v1/bulk", "bulk_id");
    pages.extend([
        "/".to_owned(),
        "/ui/jobs?type=large.3".to_owned(),
        "/ui/jobs?error_code=E3".to_owned(),
        "/ui/jobs?user_id=ann".to_owned(),
        "/ui/jobs?label=part%3Dp1".to_owned(),
        "/ui/jobs?queue=default&status=failed".to_owned(),
        "/ui/dlq?since=1h".to_owned(),
        "/ui/dlq/items?status=open".to_owned(),
        "/ui/dlq/items?status=requeued".to_owned(),
        format!("/ui/dlq/items?status=open&signature={signature}"),
        format!("/ui/dlq/items/{item}"),
        "/ui/bulk/new?action=cancel&status=queued&type=large.1".to_owned(),
        "/ui/bulk/new?action=requeue&error_code=E1".to_owned(),
        format!("/ui/bulk/{bulk}"),
        "/ui/types/large.1".to_owned(),
        format!("/ui/schedules/{schedule}"),
    ]);
    // The second page of a list goes on where the first one ended.
    let list = Visitor::signed_in(server, who).get("/ui/jobs").text();
    pages.insert(next(&list).unwrap());
    pages
}

/// Has PostgreSQL write down what each statement reads while every page is asked for.
fn explained(cluster: &Cluster, server: &mut Server, ann: &Caller, pages: &BTreeSet<String>) {
    let role = cluster.admin().role.clone();
    for setting in [
        "session_preload_libraries = 'auto_explain'",
        "auto_explain.log_min_duration = 0",
        "auto_explain.log_analyze = on",
        "auto_explain.log_timing = off",
        "auto_explain.log_format = 'json'",
    ] {
        cluster.admin().sql("postgres", &format!("ALTER ROLE {role} SET {setting}"));
    }
    // Settings of a role count for connections that are made from now on.
    server.restart();
    let before = cluster.log().len();
    for who in [ann, &server.admin()] {
        let visitor = Visitor::signed_in(server, who);
        for page in &seen_by(server, who, ann, pages) {
            assert_eq!(visitor.get(page).status, 200, "{page}");
        }
    }
    // More schedules than a page has; how many there are is counted for nobody.
    let visitor = Visitor::signed_in(server, ann);
    for _ in 0..LOOKS {
        assert!(next(&visitor.get("/ui/schedules").text()).is_some());
    }
    let log = cluster.log();
    let (mut counts, mut statements, mut most, mut all) = (0, 0, 0.0_f64, 0.0_f64);
    for plan in plans(&log[before..]) {
        let query = plan["Query Text"].as_str().unwrap_or_default();
        // The pulse of the server, every ten seconds, whether or not anybody looks.
        if query.contains("min(due_at)") {
            continue;
        }
        counts += usize::from(query.contains("count(*)") && query.contains("entity_term"));
        let read = rows(&plan["Plan"]);
        assert!(read <= ROWS_MAX, "{read} rows for {query}\n{plan:#}");
        (statements, most, all) = (statements + 1, most.max(read), all + read);
    }
    assert!(counts < LOOKS, "{counts} counts of entities, by the house itself at most");
    assert!(statements > pages.len(), "the log has what was asked: {statements}");
    println!("{statements} statements read {all} rows, one of them {most} at most");
}

/// The plans in a log: JSON in lines that begin with a tab.
fn plans(log: &str) -> Vec<Value> {
    let mut plans = Vec::new();
    let mut lines = log.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.ends_with("plan:") {
            continue;
        }
        let mut json = String::new();
        while let Some(more) = lines.next_if(|line| line.starts_with('\t')) {
            json.push_str(more);
        }
        // Another session's line may stand in between; such a plan is not looked at.
        plans.extend(serde_json::from_str::<Value>(&json).ok());
    }
    plans
}

/// How many rows of tables a plan has read.
fn rows(plan: &Value) -> f64 {
    let number = |field: &str| plan[field].as_f64().unwrap_or(0.0);
    let is_table = plan.get("Relation Name").is_some();
    let removed = number("Rows Removed by Filter") + number("Rows Removed by Index Recheck");
    let own =
        if is_table { (number("Actual Rows") + removed) * number("Actual Loops") } else { 0.0 };
    own + plan["Plans"].as_array().into_iter().flatten().map(rows).sum::<f64>()
}
