//! What streams cost, in turns, reads of the store and moves put into words: counted, not timed.

use crate::answer::Body;
use crate::config::Config;
use crate::limits::{STREAM_READ_MS_MIN, STREAM_TURN_MS, STREAMS_PER_TURN};
use crate::shares::Bounds;
use crate::{App, bootstrap_admin};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use mainspring_engine::{Engine, SystemClock, SystemEntropy};
use mainspring_kernel::command::Submit;
use mainspring_kernel::{Command, JobType, TenantId, UserId};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinHandle;

const ADMIN: &str = "an admin token of our own";
/// Between two submissions: two hundred a second.
const STEP: Duration = Duration::from_millis(5);

async fn app() -> Arc<App> {
    let store = Arc::new(MemoryStore::ephemeral(MemoryConfig::standard(1)));
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy::default()));
    let settings = mainspring_engine::Config {
        are_types_strict: false,
        ..mainspring_engine::Config::standard()
    };
    let engine = Engine::start(store, clock, entropy, settings).await.unwrap();
    bootstrap_admin(&engine, Some(ADMIN.to_owned())).await.unwrap();
    let streams = Bounds { all: 1_000, tenant: 1_000, token: 1_000 };
    App::new(engine, Config { streams, ..Config::standard() })
}

/// A stream of everything after a position, of which nothing is read but that it is one.
async fn open(app: &Arc<App>, after: u64) -> Body {
    open_as(app, ADMIN, after).await
}

fn request(token: &str, uri: &str) -> hyper::http::request::Builder {
    let request = Request::builder().uri(uri).header("host", "localhost");
    request.header("authorization", format!("Bearer {token}"))
}

/// A token of a tenant.
async fn token(app: &Arc<App>, tenant: &str) -> String {
    let wish = format!("{{\"tenant_id\":\"{tenant}\",\"user_id\":\"u\",\"roles\":[\"viewer\"]}}");
    let request = request(ADMIN, "/api/v1/tokens").method("POST");
    let request = request.header("content-type", "application/json");
    let response = app.respond(request.body(Full::new(Bytes::from(wish))).unwrap()).await;
    let told: serde_json::Value =
        serde_json::from_slice(&response.into_body().into_bytes()).unwrap();
    told["data"]["token"].as_str().expect("it is made").to_owned()
}

async fn open_as(app: &Arc<App>, token: &str, after: u64) -> Body {
    let request = request(token, &format!("/api/v1/events?after={after}"));
    let response = app.respond(request.body(Full::new(Bytes::new())).unwrap()).await;
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let greeting = piece(&mut body).await;
    assert!(greeting.starts_with(": welcome"), "{greeting}");
    body
}

async fn piece(body: &mut Body) -> String {
    let frame = body.frame().await.expect("it goes on").unwrap_or_else(|never| match never {});
    String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
}

/// Reads until the move at `last` and tells the positions, in the order they came.
fn read(mut body: Body, last: u64) -> JoinHandle<Vec<u64>> {
    tokio::spawn(async move {
        let mut seen: Vec<u64> = Vec::new();
        while seen.last() != Some(&last) {
            let text = piece(&mut body).await;
            let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
            seen.extend(ids.map(|id| id.parse::<u64>().unwrap()));
        }
        seen
    })
}

async fn submit(app: &Arc<App>, count: usize) {
    submit_of(app, "acme", count).await;
}

async fn submit_of(app: &Arc<App>, tenant: &str, count: usize) {
    for _ in 0..count {
        let tenant = TenantId::new(tenant).unwrap();
        let wish = Submit::plain(tenant, UserId::new("u").unwrap(), JobType::new("j").unwrap());
        app.engine.execute(vec![Command::Submit(Box::new(wish))]).await.unwrap();
        tokio::time::sleep(STEP).await; // paced: the clock of tokio stands still meanwhile
    }
}

/// Turns, reads and moves put into words.
fn work(app: &App) -> (u64, u64, u64) {
    let work = &app.editions.work;
    let [turns, reads, moves] =
        [&work.turns, &work.reads, &work.moves].map(|count| count.load(Ordering::Relaxed));
    (turns, reads, moves)
}

#[tokio::test(start_paused = true)]
async fn streams_that_nobody_reads_cost_nothing() {
    let app = app().await;
    let mut held = Vec::new();
    for _ in 0..500 {
        held.push(open(&app, 0).await);
    }
    submit(&app, 200).await;
    assert_eq!(work(&app), (0, 0, 0));
    // Whoever reads again is where it was.
    let all: Vec<u64> = (1..=200).collect();
    assert_eq!(read(held.swap_remove(0), 200).await.unwrap(), all);
    assert_eq!(work(&app).2, 200);
    assert_eq!(read(held.swap_remove(0), 200).await.unwrap(), all);
    assert_eq!(work(&app).2, 200, "and the next one gets what was written for the first");
}

#[tokio::test(start_paused = true)]
async fn a_move_is_put_into_words_once_for_500_streams_which_take_turns() {
    let app = app().await;
    let mut streams = Vec::new();
    for _ in 0..500 {
        streams.push(read(open(&app, 0).await, 200));
    }
    submit(&app, 200).await;
    let all: Vec<u64> = (1..=200).collect();
    for stream in streams {
        assert_eq!(stream.await.unwrap(), all);
    }
    let (turns, reads, moves) = work(&app);
    println!("200 moves in a second, 500 streams: {turns} turns, {reads} reads, {moves} moves");
    assert_eq!(moves, 200, "each once");
    // A second, and a round at the end of it.
    let round = (500_usize.div_ceil(STREAMS_PER_TURN) as u64) * STREAM_TURN_MS;
    let most = (1_000 + 2 * round) / STREAM_READ_MS_MIN;
    assert!(reads <= most + 2, "{reads} reads, {most} at most");
    assert!(turns <= 500 * 6, "{turns} turns of 500 streams");
}

#[tokio::test(start_paused = true)]
async fn a_few_streams_are_told_at_once_and_still_share() {
    let app = app().await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS_PER_TURN {
        streams.push(open(&app, 0).await);
    }
    let began = tokio::time::Instant::now();
    let mut streams: Vec<_> = streams.into_iter().map(|body| read(body, 1)).collect();
    submit(&app, 1).await;
    for stream in streams.drain(..) {
        assert_eq!(stream.await.unwrap(), [1]);
    }
    assert!(began.elapsed() <= STEP, "{:?}", began.elapsed());
    assert_eq!(work(&app).2, 1);
}

#[tokio::test(start_paused = true)]
async fn streams_that_start_apart_join_and_miss_nothing() {
    let app = app().await;
    let mut streams = Vec::new();
    for n in 0..100_u64 {
        let after = (2 * n).saturating_sub(n % 5);
        streams.push((after, read(open(&app, after).await, 200)));
        submit(&app, 2).await;
    }
    for (after, stream) in streams {
        let all: Vec<u64> = (after + 1..=200).collect();
        assert_eq!(stream.await.unwrap(), all, "after {after}");
    }
    let (_, _, moves) = work(&app);
    println!("100 streams that start apart: {moves} moves put into words, of 10,000 apart");
    assert!(moves <= 200 + 100 * 4, "{moves}: they have joined");
}

/// The same words about other jobs are another view: what is shared never crosses a tenant.
#[tokio::test(start_paused = true)]
async fn each_tenant_sees_its_own_moves_whoever_looks_first() {
    let app = app().await;
    let mut streams = Vec::new();
    for tenant in ["acme", "other", "acme", "other"] {
        let token = token(&app, tenant).await;
        for _ in 0..20 {
            streams.push((tenant, open_as(&app, &token, 0).await));
        }
    }
    let last = |tenant: &str| if tenant == "acme" { 39 } else { 40 };
    let streams: Vec<_> =
        streams.into_iter().map(|(tenant, body)| (tenant, read(body, last(tenant)))).collect();
    for _ in 0..20 {
        submit_of(&app, "acme", 1).await;
        submit_of(&app, "other", 1).await;
    }
    for (tenant, stream) in streams {
        let own: Vec<u64> = (1..=40).filter(|at| at % 2 == last(tenant) % 2).collect();
        assert_eq!(stream.await.unwrap(), own, "{tenant}");
    }
    assert_eq!(work(&app).2, 40, "each once");
}
