//! The one write path. Requests that arrive together share a commit: the loop takes whatever has
//! gathered while the last batch was decided, lets the kernel decide each command, serves the
//! pulls that wait, and hands the events to the store in one piece. Answers go out when the store
//! says they are durable; the next batch does not wait for that.

use crate::batch::Batch;
use crate::dispatcher::Dispatcher;
use crate::engine::{Reply, Shared};
use crate::limits::PULL_BYTES_MAX;
use crate::pull::{Grant, Pull};
use mainspring_kernel::command::{Claim, Release};
use mainspring_kernel::{
    Command, Decision, Event, Facts, Job, JobId, Receipt, Rejection, Timestamp, decide,
};
use mainspring_store::{Desk, Error, Needs};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Commands that belong together, perhaps with a pull behind them.
pub(crate) struct Request {
    pub(crate) commands: Vec<Command>,
    pub(crate) pull: Option<Pull>,
    /// When a pull that waits is sent home empty; set when it is first parked.
    pub(crate) until: Option<Instant>,
    reply: Reply,
    answer: Option<oneshot::Sender<Result<Reply, Error>>>,
}

impl Request {
    pub(crate) fn new(
        commands: Vec<Command>,
        pull: Option<Pull>,
        answer: oneshot::Sender<Result<Reply, Error>>,
    ) -> Self {
        Request { commands, pull, until: None, reply: Reply::default(), answer: Some(answer) }
    }

    /// Whether the caller has gone away: its pull must not take jobs nobody will see.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    /// Answers; gives back the leases of a caller that went away in the meantime.
    pub(crate) fn answer(mut self, outcome: Result<(), Error>) -> Vec<Command> {
        let Some(answer) = self.answer.take() else { return Vec::new() };
        match answer.send(outcome.map(|()| self.reply)) {
            Ok(()) | Err(Err(_)) => Vec::new(),
            Err(Ok(unseen)) => unseen.grants.iter().filter_map(given_back).collect(),
        }
    }

    /// A request waits on only if it is a pull that got nothing and is willing to wait.
    fn is_served(&self) -> bool {
        self.pull.as_ref().is_none_or(|pull| {
            !self.reply.grants.is_empty() || !self.commands.is_empty() || pull.wait.is_zero()
        })
    }

    fn has_new_work(&self) -> bool {
        let is_new =
            |command: &Command| matches!(command, Command::Submit(_) | Command::RequeueItem { .. });
        self.commands.iter().any(is_new)
    }
}

fn given_back(grant: &Grant) -> Option<Command> {
    let lease = grant.job.lease()?;
    Some(Command::Release(Release {
        job: grant.job.id,
        token: lease.token(),
        reason: Some("the worker went away before it got the job".into()),
    }))
}

/// Runs until the engine stops; what was accepted by then is still committed.
pub(crate) async fn run(shared: Arc<Shared>, mut inbox: mpsc::Receiver<Request>) {
    let mut dispatcher = Dispatcher::default();
    let mut gathered = Batch::default();
    let mut expected = 0;
    loop {
        tokio::select! {
            biased;
            first = inbox.recv() => match first {
                Some(first) => gathered.push(first),
                None => break,
            },
            () = shared.work_is_due.notified() => {}
            () = dispatcher.next_is_late() => {}
            () = shared.stop.cancelled(), if !inbox.is_closed() => inbox.close(),
        }
        dispatcher.send_home_late();
        gather(&shared, &mut inbox, &mut gathered, expected).await;
        let requests = std::mem::take(&mut gathered).requests;
        expected = requests.len();
        if !requests.is_empty() || dispatcher.len() > 0 {
            commit(&shared, &mut dispatcher, requests).await;
        }
        if inbox.is_closed() {
            dispatcher.send_all_home();
        }
        shared.tally.parked_pulls.store(dispatcher.len() as u64, Ordering::Relaxed);
    }
    dispatcher.send_all_home();
}

/// Takes what has arrived. Whoever was answered together asks again together: waits a moment for
/// as many requests as the last batch had, if the store says that it pays.
async fn gather(
    shared: &Shared,
    inbox: &mut mpsc::Receiver<Request>,
    gathered: &mut Batch,
    expected: usize,
) {
    let most = shared.config.batch_max;
    gathered.fill(inbox, most);
    let patience = shared.store.gathers_for();
    if patience.is_zero() || gathered.requests.is_empty() {
        return;
    }
    let until = Instant::now() + patience;
    while gathered.requests.len() < expected.max(2)
        && !gathered.is_full(most)
        && Instant::now() < until
    {
        tokio::task::yield_now().await;
        gathered.fill(inbox, most);
    }
}

/// Decides and writes a batch. If something outside holds what one of its requests needs, the
/// halves are tried apart, so that in the end only that request is refused.
async fn commit(shared: &Arc<Shared>, dispatcher: &mut Dispatcher, batch: Vec<Request>) {
    let mut parts = vec![batch];
    while let Some(part) = parts.pop() {
        if let Err(mut refused) = commit_part(shared, dispatcher, part).await {
            let later = refused.split_off(refused.len() / 2);
            parts.extend([later, refused]);
        }
    }
}

/// Decides and writes one batch; gives it back if only a smaller one can succeed.
async fn commit_part(
    shared: &Arc<Shared>,
    dispatcher: &mut Dispatcher,
    mut batch: Vec<Request>,
) -> Result<(), Vec<Request>> {
    if shared.store.is_low_on_space() {
        batch = refuse_new_work(batch);
    }
    let now = shared.clock.now();
    let jump = shared.clock.take_jump();
    let held = held_over(shared, jump).await;
    let mut parked = dispatcher.take();
    let mut needs = needs(&batch, &parked, now);
    needs.jobs.extend(&held);
    let mut made = Made::default();
    let mut work = |desk: &mut dyn Desk| {
        made = Made::default();
        for id in &held {
            extend(shared, *id, jump, desk, now, &mut made);
        }
        for request in &mut batch {
            decide_request(shared, request, desk, now, &mut made);
        }
        // Those who have waited longest are served first, then this batch's own pulls.
        for request in parked.iter_mut().chain(batch.iter_mut()) {
            serve_pull(shared, request, desk, now, &mut made);
        }
    };
    let ticket = shared.store.commit(needs, &mut work).await;
    shared.tally.commits.fetch_add(1, Ordering::Relaxed);
    shared.tally.commands.fetch_add(made.commands, Ordering::Relaxed);
    if made.has_new_timer {
        shared.timer_changed.notify_one();
    }
    match ticket {
        Ok(ticket) => {
            let everyone = parked.into_iter().chain(batch);
            let (served, waiting): (Vec<_>, Vec<_>) = everyone.partition(Request::is_served);
            dispatcher.park(waiting);
            let shared = shared.clone();
            ticket.then(move |outcome| answer_all(&shared, served, &outcome, made.has_moves));
        }
        Err(error) => {
            dispatcher.park(parked);
            if error.is_divisible() && batch.len() > 1 {
                return Err(batch);
            }
            answer_all(shared, batch, &Err(error), false);
        }
    }
    Ok(())
}

/// The jobs whose leases a clock that was set forward by `jump` would end.
async fn held_over(shared: &Shared, jump: Duration) -> Vec<JobId> {
    if jump.is_zero() {
        return Vec::new();
    }
    tracing::warn!(?jump, "the clock was set forward; leases are extended");
    // A store that cannot be read cannot commit either.
    shared.store.running().await.unwrap_or_default()
}

/// Adds `jump` to the lease of a job: before anything else in the batch, so that no report is
/// refused and nothing is reaped for it.
fn extend(
    shared: &Shared,
    job: JobId,
    jump: Duration,
    desk: &mut dyn Desk,
    now: Timestamp,
    made: &mut Made,
) {
    let Some(lease) = desk.job(job).and_then(Job::lease) else { return };
    let command = Command::ExtendLease { job, until: lease.expires_at + jump };
    if let Ok(decision) = decide_one(shared, &command, desk, now) {
        enact(decision, desk, made);
    }
}

/// Answers everyone who was served, on the thread that learned that the commit is durable.
fn answer_all(
    shared: &Arc<Shared>,
    served: Vec<Request>,
    outcome: &Result<(), Error>,
    has_moves: bool,
) {
    let mut unseen = Vec::new();
    for request in served {
        unseen.extend(request.answer(outcome.clone()));
    }
    if has_moves {
        shared.moved.send_modify(|turn| *turn += 1);
    }
    if !unseen.is_empty() {
        let (nobody, _) = oneshot::channel();
        // If the queue is full the leases run out by themselves.
        let _ = shared.requests.try_send(Request::new(unseen, None, nobody));
    }
}

fn refuse_new_work(batch: Vec<Request>) -> Vec<Request> {
    let (refused, taken): (Vec<_>, Vec<_>) = batch.into_iter().partition(Request::has_new_work);
    for request in refused {
        request.answer(Err(Error::NoRoom));
    }
    taken
}

/// What a batch brought about, for those who must be told.
#[derive(Default)]
struct Made {
    commands: u64,
    has_moves: bool,
    has_new_timer: bool,
}

fn needs(batch: &[Request], parked: &[Request], now: Timestamp) -> Needs {
    let mut needs = Needs { now, ..Needs::default() };
    for request in batch {
        needs.has_commands |= !request.commands.is_empty();
        for command in &request.commands {
            needs.jobs.extend(command.job());
            needs.items.extend(command.item());
            needs.effects.extend(command.effect().map(|(job, name)| (job, name.into())));
            if let Command::Submit(wish) = command {
                needs.keys.extend(wish.idempotency.as_ref().map(|key| key.hash));
            }
        }
    }
    let pulls = batch.iter().chain(parked).filter_map(|request| request.pull.as_ref());
    needs.pulls.extend(pulls.map(Pull::ask));
    needs
}

fn decide_request(
    shared: &Shared,
    request: &mut Request,
    desk: &mut dyn Desk,
    now: Timestamp,
    made: &mut Made,
) {
    let is_single = request.commands.len() == 1;
    request.reply = Reply::default();
    request.reply.outcomes.reserve_exact(request.commands.len());
    for command in &request.commands {
        made.commands += 1;
        let outcome = decide_one(shared, command, desk, now).map(|decision| {
            if is_single {
                request.reply.job = echoed(&decision, desk);
            }
            enact(decision, desk, made)
        });
        tally(shared, &outcome);
        request.reply.outcomes.push(outcome);
    }
}

/// The job a single submission is answered with: as submitted, before any worker takes it.
fn echoed(decision: &Decision, desk: &dyn Desk) -> Option<Box<Job>> {
    match (&decision.receipt, decision.events.first()) {
        (Receipt::Submitted { .. }, Some(Event::JobSubmitted(job))) => Some(job.clone()),
        (Receipt::Existing { job, .. }, _) => desk.job(*job).map(|job| Box::new(job.clone())),
        _ => None,
    }
}

fn decide_one(
    shared: &Shared,
    command: &Command,
    desk: &dyn Desk,
    now: Timestamp,
) -> Result<Decision, Rejection> {
    if command.job().is_some_and(|id| desk.is_unreadable(id)) {
        return Err(Rejection::JobUnreadable);
    }
    let job = command.job().and_then(|id| desk.job(id));
    let mut facts = Facts {
        now,
        fresh_id: 0,
        fresh_secret: 0,
        job,
        item: command.item().and_then(|id| desk.item(id)),
        job_type: job.and_then(|job| desk.job_type(&job.job_type)),
        are_types_strict: shared.config.are_types_strict,
        key_holder: None,
        key_job: None,
    };
    #[expect(clippy::wildcard_enum_match_arm, reason = "most commands need nothing fresh")]
    match command {
        Command::Submit(wish) => {
            facts.fresh_id = shared.ids.next(now, shared.entropy.bits());
            facts.job_type = desk.job_type(&wish.job_type);
            facts.key_holder = wish.idempotency.as_ref().and_then(|key| desk.key_holder(key.hash));
            // A second job under a key whose first one cannot be read would be done twice.
            let held = facts.key_holder.filter(|holder| holder.holds_at(now));
            if held.is_some_and(|holder| desk.is_unreadable(holder.job)) {
                return Err(Rejection::JobUnreadable);
            }
            facts.key_job = facts.key_holder.and_then(|holder| desk.job(holder.job));
        }
        Command::SetType(spec) => facts.job_type = desk.job_type(&spec.name),
        Command::RequeueItem { .. } => facts.fresh_id = shared.ids.next(now, shared.entropy.bits()),
        Command::Claim(_) | Command::Transition { .. } | Command::RunInternally(_) => {
            facts.fresh_secret = shared.entropy.bits();
        }
        Command::RevokeToken { token } if desk.token(*token).is_none() => {
            return Err(Rejection::TokenUnknown);
        }
        _ => {}
    }
    decide(command, &facts)
}

fn enact(decision: Decision, desk: &mut dyn Desk, made: &mut Made) -> Receipt {
    for event in &decision.events {
        match event {
            Event::JobSubmitted(_) | Event::JobMoved(_) => {
                made.has_moves = true;
                made.has_new_timer = true;
            }
            Event::LeaseRenewed { .. } => made.has_new_timer = true,
            Event::EffectCommitted { .. }
            | Event::ItemOpened(_)
            | Event::ItemChanged { .. }
            | Event::TypeSet(_)
            | Event::QueueSet(_)
            | Event::TokenIssued(_)
            | Event::TokenRevoked { .. } => {}
        }
    }
    if !decision.events.is_empty() {
        desk.apply(decision.events);
    }
    decision.receipt
}

fn serve_pull(
    shared: &Shared,
    request: &mut Request,
    desk: &mut dyn Desk,
    now: Timestamp,
    made: &mut Made,
) {
    let Some(pull) = &request.pull else { return };
    if request.is_abandoned() {
        return;
    }
    let ready = desk.take_ready(&pull.ask().wanted(), pull.limit, now);
    let mut grants = Vec::with_capacity(ready.len());
    let mut bytes = 0;
    for id in ready {
        // What is left over is ready again when the batch ends, for pulls that wait as well.
        if bytes >= PULL_BYTES_MAX {
            shared.work_is_due.notify_one();
            break;
        }
        let claim = Claim { job: id, worker: pull.worker.clone(), lease_ms: pull.lease_ms };
        made.commands += 1;
        if let Ok(decision) = decide_one(shared, &Command::Claim(claim), desk, now) {
            enact(decision, desk, made);
            grants.extend(desk.job(id).map(|job| Grant { job: job.clone() }));
            bytes += grants.last().map_or(0, |grant| grant.job.payload.len());
        }
    }
    shared.workers.pulled(pull, now, grants.len());
    request.reply.grants = grants;
}

fn tally(shared: &Shared, outcome: &Result<Receipt, Rejection>) {
    let counter = match outcome {
        Err(Rejection::IllegalMove { .. }) => &shared.tally.illegal_moves,
        Err(Rejection::LeaseLost) => &shared.tally.stale_leases,
        Ok(Receipt::Existing { .. }) => &shared.tally.idempotent_hits,
        _ => return,
    };
    counter.fetch_add(1, Ordering::Relaxed);
}
