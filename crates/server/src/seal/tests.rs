//! The sealer when its commits come to nothing, are lost on the way back or are held up, when the
//! clock is set back between two lives of the server, and beside another one: no move is left out.

use super::{Seal, line, read, run, seals};
use crate::config::Config;
use crate::{App, bootstrap_admin};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use mainspring_engine::store::Store;
use mainspring_engine::{Clock, Engine, SystemEntropy};
use mainspring_kernel::command::Submit;
use mainspring_kernel::shared_time::Jump;
use mainspring_kernel::{JobType, TenantId, Timestamp, UserId};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_testkit::planted::{Fate, Luck, Plant, PlantedStore};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const ADMIN: &str = "an admin token of our own";
const EVERY: Duration = Duration::from_secs(600);
const BEGINNING: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// Goes with the time of tokio, from any beginning.
struct Hands {
    epoch: Instant,
    beginning: Timestamp,
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        self.beginning + self.epoch.elapsed()
    }

    fn jumps(&self) -> Arc<[Jump]> {
        Arc::default()
    }
}

/// What becomes of the next commits; all is well once it is used up.
#[derive(Default)]
struct Script(Mutex<VecDeque<Luck>>);

impl Fate for Script {
    fn next(&self) -> Luck {
        self.0.lock().unwrap().pop_front().unwrap_or(Luck::Good)
    }
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::ephemeral(MemoryConfig::standard(1)))
}

/// A server on a store whose commits go as the script says.
async fn app(
    store: &Arc<dyn Store>,
    script: &Arc<Script>,
    beginning: Timestamp,
) -> (Arc<App>, tokio::task::JoinHandle<()>) {
    let store = PlantedStore::new(store.clone(), script.clone(), Plant::None, beginning);
    let clock = Arc::new(Hands { epoch: Instant::now(), beginning });
    let settings = mainspring_engine::Config {
        are_types_strict: false,
        ..mainspring_engine::Config::standard()
    };
    let entropy = Arc::new(SystemEntropy::default());
    let engine = Engine::start(Arc::new(store), clock, entropy, settings).await.unwrap();
    bootstrap_admin(&engine, Some(ADMIN.to_owned())).await.unwrap();
    let app = App::new(engine, Config { audit_history_every: EVERY, ..Config::standard() });
    let sealer = tokio::spawn(run(app.clone()));
    (app, sealer)
}

async fn submit(app: &App, count: usize) {
    for _ in 0..count {
        let tenant = TenantId::new("acme").unwrap();
        let wish = Submit::plain(tenant, UserId::new("u").unwrap(), JobType::new("j").unwrap());
        app.engine.submit(wish).await.unwrap().unwrap();
    }
}

/// The seals, the first one first.
async fn sealed(app: &App) -> Vec<Seal> {
    let page = seals(&app.engine, None, 1_000).await.unwrap();
    let mut all: Vec<Seal> = page.items.iter().filter_map(line).filter_map(read).collect();
    all.reverse();
    all
}

/// Waits until the moves up to `to` are sealed; how long that took.
async fn sealed_to(app: &App, to: u64) -> (Vec<Seal>, Duration) {
    let began = Instant::now();
    loop {
        let all = sealed(app).await;
        if all.last().is_some_and(|last| last.to >= to) {
            return (all, began.elapsed());
        }
        assert!(began.elapsed() < EVERY * 10, "sealed so far: {all:?}");
        tokio::time::sleep(Duration::from_secs(1)).await; // paced: tokio's clock stands still
    }
}

/// Each move is in one seal, and what was sealed is what there is.
async fn are_a_row(app: &Arc<App>, all: &[Seal], to: u64) {
    let mut end = 0;
    for seal in all {
        assert_eq!((seal.after, seal.to - seal.after), (end, seal.moves), "{all:?}");
        end = seal.to;
    }
    assert_eq!(end, to, "{all:?}");
    verifies(app).await;
}

async fn verifies(app: &Arc<App>) {
    let request = Request::builder().uri("/api/v1/audit/verify").header("host", "localhost");
    let request = request.header("authorization", format!("Bearer {ADMIN}"));
    let response = app.respond(request.body(Full::new(Bytes::new())).unwrap()).await;
    assert_eq!(response.status(), 200);
}

/// Whatever becomes of the commit that writes a seal, the next one begins where the last that is
/// there ends.
#[tokio::test(start_paused = true)]
async fn a_seal_that_was_lost_on_the_way_leaves_no_move_out_and_repeats_none() {
    for luck in [Luck::Again, Luck::Busy, Luck::Failed, Luck::Unknown] {
        let (store, script) = (memory(), Arc::new(Script::default()));
        let (app, sealer) = app(&store, &script, BEGINNING).await;
        submit(&app, 3).await;
        script.0.lock().unwrap().extend([luck, luck]);
        let (_, took) = sealed_to(&app, 3).await;
        assert!(script.0.lock().unwrap().len() < 2, "{luck:?} was met");
        assert!(took <= EVERY * 4, "{luck:?}: {took:?}");
        script.0.lock().unwrap().clear();
        submit(&app, 4).await;
        let (all, took) = sealed_to(&app, 7).await;
        assert!(took <= EVERY * 5, "{luck:?}: {took:?}");
        are_a_row(&app, &all, 7).await;
        sealer.abort();
    }
}

/// The next life of the server has a clock that is a day behind: it seals all the same.
#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_back_does_not_keep_moves_from_being_sealed() {
    let (store, script) = (memory(), Arc::new(Script::default()));
    let (first, sealer) = app(&store, &script, BEGINNING).await;
    submit(&first, 3).await;
    sealed_to(&first, 3).await;
    sealer.abort();
    let day = Duration::from_secs(24 * 3600);
    let (second, sealer) = app(&store, &script, BEGINNING - day).await;
    submit(&second, 2).await;
    let (all, took) = sealed_to(&second, 5).await;
    assert!(took <= EVERY * 3, "{took:?}");
    are_a_row(&second, &all, 5).await;
    sealer.abort();
    // And one that is a day ahead.
    let (third, _sealer) = app(&store, &script, BEGINNING + day).await;
    submit(&third, 1).await;
    let (all, took) = sealed_to(&third, 6).await;
    assert!(took <= EVERY * 3, "{took:?}");
    are_a_row(&third, &all, 6).await;
}

/// Two servers on one store: one of them seals; when it is gone, the other goes on.
#[tokio::test(start_paused = true)]
async fn one_of_two_seals_and_the_other_goes_on_when_it_is_gone() {
    let (store, script) = (memory(), Arc::new(Script::default()));
    let (one, first) = app(&store, &script, BEGINNING).await;
    submit(&one, 1).await;
    sealed_to(&one, 1).await;
    let (two, _second) = app(&store, &script, BEGINNING + EVERY).await;
    for to in 2..6 {
        submit(&one, 1).await;
        let (all, _) = sealed_to(&one, to).await;
        are_a_row(&one, &all, to).await;
    }
    first.abort();
    submit(&two, 1).await;
    // Nobody there heard of the move: the stream is looked at when the next seal is due.
    let (all, took) = sealed_to(&two, 6).await;
    assert!(took <= EVERY * 5, "{took:?}");
    are_a_row(&two, &all, 6).await;
}

/// Where nothing moves nothing is read, and nothing is written.
#[tokio::test(start_paused = true)]
async fn an_idle_server_seals_nothing() {
    let (store, script) = (memory(), Arc::new(Script::default()));
    let (app, _sealer) = app(&store, &script, BEGINNING).await;
    tokio::time::sleep(EVERY * 5).await; // paced: that nothing comes takes time
    assert_eq!(sealed(&app).await, []);
    submit(&app, 1).await;
    sealed_to(&app, 1).await;
    tokio::time::sleep(EVERY * 5).await; // paced: that nothing comes takes time
    assert_eq!(sealed(&app).await.len(), 1, "a seal is no move");
}
