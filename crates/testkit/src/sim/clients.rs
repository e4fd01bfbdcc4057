//! Those who submit, cancel, look, pause and decide about dead letters, with bad manners.

use super::server::{Server, principal};
use crate::drive;
use crate::history::{Call, Outcome, Streamed};
use mainspring_kernel::command::Submit;
use mainspring_kernel::job::{After, AfterCondition};
use mainspring_kernel::{Command, DlqId, JobId, StateName};
use mainspring_store::{ItemFilter, MovesPage, Scope};
use std::time::Duration;

/// Jobs a world gets at most.
const JOBS_MAX: u64 = 36;

/// Somebody who uses the interface until the world goes quiet.
pub(super) async fn client(server: Server) {
    loop {
        server.pass(server.world.below(1_200)).await;
        if server.world.is_quiet() {
            return;
        }
        match server.world.below(100) {
            0..46 => submit(&server).await,
            46..58 => cancel(&server).await,
            58..66 => read(&server).await,
            66..68 => list(&server).await,
            68..74 => {
                let is_paused = server.world.chance(40);
                server.pause("side", is_paused).await;
            }
            74..79 => by_hand(&server).await,
            _ => item(&server).await,
        }
    }
}

async fn submit(server: &Server) {
    let (number, owner, job_type, has_key) = {
        let mut memory = server.world.lock();
        if memory.submitted >= JOBS_MAX {
            return;
        }
        memory.submitted += 1;
        let number = memory.submitted;
        let rng = &mut memory.rng;
        let owner = *rng.pick(&["acme", "bolt", "cask"]);
        let types = ["plain", "plain", "plain", "narrow", "single", "brittle", "keyed", "fuse"];
        let job_type = *rng.pick(&types);
        (number, owner, job_type, rng.chance(45))
    };
    let mut payload = match job_type {
        "keyed" => format!("{{\"n\":{number},\"k\":{}}}", number % 2),
        _ => format!("{{\"n\":{number}}}"),
    };
    let mut job_type = job_type;
    let mut key = None;
    let mut window_secs = None;
    if has_key {
        let name = format!("key-{}", server.world.below(8));
        job_type = "plain";
        payload = format!("{{\"key\":\"{name}\"}}");
        if server.world.chance(15) {
            payload = format!("{{\"other\":\"{name}\"}}");
        }
        // Of one key always the same, so that the rule for it can be told from the call.
        window_secs = (name.ends_with(['6', '7'])).then_some(5);
        key = Some(name);
    }
    let mut wish = drive::wish(owner, "ada", job_type, &payload);
    wish.idempotency = key.as_ref().map(|name| drive::key(owner, name, &payload, window_secs));
    if !has_key {
        vary(server, &mut wish);
        follow(server, &mut wish);
    }
    let call = Call::Submit {
        tenant: owner.to_owned(),
        key,
        window_secs,
        job_type: job_type.to_owned(),
        payload,
        delay_ms: wish.delay_ms.unwrap_or(0),
    };
    let times = if has_key && server.world.chance(30) { 2 } else { 1 };
    for _ in 0..times {
        server.call(call.clone(), Command::Submit(Box::new(wish.clone()))).await;
    }
}

fn vary(server: &Server, wish: &mut Submit) {
    let now = server.engine().now();
    let rng = &mut server.world.lock().rng;
    wish.delay_ms = rng.chance(35).then(|| rng.within(1, 15_000));
    wish.queue = rng.chance(30).then(|| drive::queue("side"));
    wish.max_retries = rng.chance(50).then(|| rng.below(3) as u16);
    wish.timeout_ms = rng.chance(15).then(|| rng.within(500, 8_000) as u32);
    wish.priority = rng.chance(30).then(|| rng.below(100) as u8);
    wish.expires_at = rng.chance(8).then(|| now.plus_millis(rng.within(16_000, 40_000)));
}

/// Now and then a job waits for one or two that are there: a foreign one is refused.
fn follow(server: &Server, wish: &mut Submit) {
    if !server.world.chance(20) {
        return;
    }
    let some = [some_job(server), some_job(server)].into_iter().flatten();
    let mut jobs: Vec<JobId> = some.filter_map(|job| job.parse().ok()).collect();
    jobs.dedup();
    let condition = match server.world.chance(50) {
        true => AfterCondition::Success,
        false => AfterCondition::End,
    };
    if !jobs.is_empty() {
        // What waits may wait for long: only its own time is told by the call.
        (wish.delay_ms, wish.expires_at) = (None, None);
        wish.bounds.after = Some(After { jobs, members: 0, condition });
    }
}

fn some_job(server: &Server) -> Option<String> {
    let mut memory = server.world.lock();
    let count = memory.jobs.len() as u64;
    let nth = memory.rng.below(count) as usize;
    memory.jobs.get(nth).cloned()
}

async fn cancel(server: &Server) {
    let Some(job) = some_job(server) else { return };
    let Ok(id) = job.parse::<JobId>() else { return };
    let command = Command::Cancel { job: id, by: drive::user("ada"), reason: None };
    server.call(Call::Cancel { job }, command).await;
}

async fn read(server: &Server) {
    if let Some(job) = some_job(server) {
        server.read(&job).await;
    }
}

/// Somebody looks at all jobs of a tenant, or at all dead letters.
async fn list(server: &Server) {
    if server.world.chance(50) {
        server.list_items().await;
    } else {
        let owner = {
            let rng = &mut server.world.lock().rng;
            *rng.pick(&["acme", "bolt", "cask"])
        };
        server.list_jobs(owner).await;
    }
}

/// The internal route: a waiting retry is given up by hand.
async fn by_hand(server: &Server) {
    let Some(id) = some_job(server).and_then(|job| job.parse::<JobId>().ok()) else { return };
    let Ok(Some(found)) = server.engine().job(id).await else { return };
    if found.job.state.name() == StateName::Retrying {
        let by = drive::user("root");
        // Not a call the checker follows: its effects are in the history with their actor.
        let _ = server
            .engine()
            .execute_one(Command::Transition { job: id, to: StateName::DlqPending, by })
            .await;
    }
}

async fn item(server: &Server) {
    if server.world.chance(50) || server.world.lock().items.is_empty() {
        let filter = ItemFilter::of(Scope::All);
        if let Ok(page) = server.engine().items(&filter, None, 20).await {
            let ids = page.items.iter().map(|item| item.id.to_string());
            server.world.lock().items = ids.collect();
        }
    }
    let (item, by, what) = {
        let mut memory = server.world.lock();
        let count = memory.items.len() as u64;
        let nth = memory.rng.below(count) as usize;
        let Some(item) = memory.items.get(nth).cloned() else { return };
        let by = *memory.rng.pick(&["ada", "bob", "eve"]);
        (item, by, memory.rng.below(10))
    };
    let Ok(id) = item.parse::<DlqId>() else { return };
    let by_user = drive::user(by);
    let by = by.to_owned();
    match what {
        0..3 => {
            let key = format!("again-{}", server.world.below(2));
            let call = Call::Requeue { item, key: key.clone() };
            let key = Some(key.into());
            server.call(call, Command::RequeueItem { item: id, by: by_user, key }).await;
        }
        3..6 => {
            let reason = if server.world.chance(80) { "no longer wanted" } else { " " };
            let call = Call::RequestDiscard { item, by, reason: reason.trim().to_owned() };
            let reason = reason.into();
            let by = principal(by_user.as_str());
            server.call(call, Command::RequestDiscard { item: id, by, reason }).await;
        }
        6..9 => {
            let call = Call::ApproveDiscard { item, by: by.clone() };
            let read = server.engine().item(id).await.ok().flatten();
            let version = read.map_or(0, |item| item.version);
            let command = Command::ApproveDiscard { item: id, by: principal(&by), version };
            server.call(call, command).await;
        }
        _ => {
            let call = Call::RejectDiscard { item, by };
            server.call(call, Command::RejectDiscard { item: id, by: by_user }).await;
        }
    }
}

/// Follows the stream of moves and notes what arrives.
pub(super) async fn subscriber(server: Server) {
    loop {
        let position = server.world.lock().position;
        let page = server.engine().moves_after(position, 50, Duration::from_secs(5)).await;
        let Ok(page) = page else { return };
        arrived(&server, page);
        server.pass(server.world.below(300)).await;
    }
}

fn arrived(server: &Server, page: MovesPage) {
    let mut memory = server.world.lock();
    let mut is_reset = std::mem::take(&mut memory.is_reset) || page.has_gap;
    for moved in page.moves {
        memory.position = moved.position;
        memory.note(&format!("moved {} {}", moved.position, moved.job));
        memory.history.stream.push(Streamed {
            position: moved.position,
            job: moved.job.to_string(),
            seq: moved.transition.seq,
            to: moved.transition.to,
            is_reset: std::mem::take(&mut is_reset),
        });
    }
    if is_reset {
        // Everything up to here is gone; go on after it.
        memory.position = memory.position.max(page.newest);
        memory.is_reset = true;
    }
}

/// Whether a call certainly did not happen.
pub(super) fn is_refused(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Fail(_))
}
