//! The one write path. Requests that arrive together share a commit: the loop takes whatever has
//! gathered while the last batch was decided, lets the kernel decide each command, serves the
//! pulls that wait, and hands the events to the store in one piece. Answers go out when the store
//! says they are durable (`deliveries.rs`); the next batch does not wait for that.

use crate::aside::Aside;
use crate::batch::Batch;
use crate::dispatcher::Dispatcher;
use crate::engine::Shared;
use crate::limits::ATTEMPTS_PER_TURN;
use crate::request::Request;
use crate::triggers::Hint;
use draft::{Draft, Effects};
use mainspring_kernel::{Command, JobId, Timestamp};
use mainspring_store::{Desk, Error, Needs, needs_of};
use std::collections::{HashSet, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

mod draft;

/// Runs until the engine stops; what was accepted by then is still committed.
pub(crate) async fn run(shared: Arc<Shared>, mut inbox: mpsc::Receiver<Request>) {
    let mut dispatcher = Dispatcher::default();
    let mut aside = Aside::default();
    let mut gathered = Batch::default();
    // Requests that fill a commit, while workers wait. Whatever comes beside them goes first, and
    // each goes alone.
    let mut large: VecDeque<Request> = VecDeque::new();
    let mut expected = 0;
    loop {
        if large.is_empty() {
            tokio::select! {
                biased;
                first = inbox.recv() => match first {
                    Some(first) => gathered.push(first),
                    None => break,
                },
                () = shared.work_is_due.notified() => {}
                () = dispatcher.next_is_late() => {}
                () = aside.next_is_due() => {}
                () = shared.stop.cancelled(), if !inbox.is_closed() => inbox.close(),
            }
        }
        dispatcher.send_home_late();
        aside.send_home_late();
        gather(&shared, &mut inbox, &mut gathered, expected).await;
        let requests = std::mem::take(&mut gathered).requests;
        expected = requests.len();
        let most = if dispatcher.len() > 0 { shared.store.takes_at_once() } else { usize::MAX };
        let fills_one = |request: &Request| request.commands.len() >= most;
        let (filling, small): (Vec<_>, Vec<_>) = requests.into_iter().partition(fills_one);
        large.extend(filling);
        let batch = aside.sift(small);
        let serves_pulls = dispatcher.len() > 0 && aside.may_serve_pulls();
        if !batch.is_empty() || (serves_pulls && large.is_empty()) {
            commit(&shared, &mut dispatcher, &mut aside, batch).await;
        }
        if let Some(one) = large.pop_front() {
            let batch = aside.sift(vec![one]);
            if !batch.is_empty() {
                commit(&shared, &mut dispatcher, &mut aside, batch).await;
            }
        }
        if !aside.is_empty() {
            commit_aside(&shared, &mut dispatcher, &mut aside).await;
        }
        if inbox.is_closed() {
            dispatcher.send_all_home();
            aside.send_all_home();
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
    if shared.settles_here() && !gathered.requests.is_empty() {
        // Whoever is ready has its turn first, and what arrived by then is read: one sync for all.
        turn_of_others().await;
    }
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

/// Ends when every task that is ready by now has had its turn. tokio's `yield_now` would leave the
/// commit loop with its thread, where it is lost if that thread is the one in reserve, which then
/// blocks; a task that wakes itself is at the end of a queue that others take from.
async fn turn_of_others() {
    let mut has_waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Decides and writes a batch. If something outside holds what one of its requests needs, they are
/// put aside and tried in parts, so that in the end only that request waits, or is refused.
async fn commit(
    shared: &Arc<Shared>,
    dispatcher: &mut Dispatcher,
    aside: &mut Aside,
    batch: Vec<Request>,
) {
    let serves_pulls = dispatcher.len() > 0 && aside.may_serve_pulls();
    let way = if serves_pulls { Way::Usual } else { Way::WithoutPulls };
    let outcome = commit_part(shared, dispatcher, batch, way).await;
    if serves_pulls {
        aside.tried_pulls(outcome.is_ok());
    }
    match outcome {
        Ok(()) => {}
        // Perhaps what they were to be given is held: the batch may get through without them.
        Err((batch, _)) if serves_pulls => aside.try_apart(batch),
        Err((batch, error)) => {
            let held = held_jobs(shared, &batch).await;
            aside.put(batch, &held, &error);
        }
    }
}

/// Which of the jobs that a busy batch names are held by somebody outside, if the store can tell.
async fn held_jobs(shared: &Shared, batch: &[Request]) -> HashSet<JobId> {
    let commands = batch.iter().flat_map(|request| &request.commands);
    let jobs: Vec<JobId> = commands.flat_map(Command::parts).filter_map(Command::job).collect();
    let held = match batch.len() > 1 && !jobs.is_empty() {
        // Only to be quicker: without it they are found one by one.
        true => shared.store.held(&jobs).await.unwrap_or_default(),
        false => Vec::new(),
    };
    held.into_iter().collect()
}

/// Tries what was put aside, as far as its turn goes.
async fn commit_aside(shared: &Arc<Shared>, dispatcher: &mut Dispatcher, aside: &mut Aside) {
    let (mut spent, mut refused, mut decided) = (Duration::ZERO, 0, 0);
    while refused < ATTEMPTS_PER_TURN
        && let Some(mut lot) = aside.take_due()
    {
        let (began, things) = (Instant::now(), lot.things());
        let requests = std::mem::take(&mut lot.requests);
        match commit_part(shared, dispatcher, requests, Way::Apart).await {
            Ok(()) => {
                aside.freed(&things);
                decided += 1;
            }
            Err((requests, error)) => {
                let held = held_jobs(shared, &requests).await;
                lot.requests = requests;
                aside.refused(lot, &held, &error);
                spent += began.elapsed();
                refused += 1;
            }
        }
    }
    if refused > 0 {
        aside.rest_for(spent);
    }
    if decided > 0 && dispatcher.len() > 0 {
        // Pulls that wait are not tried together with what may be held.
        shared.work_is_due.notify_one();
    }
}

/// How a batch is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// With the pulls that wait.
    Usual,
    /// Without them.
    WithoutPulls,
    /// By itself, and without waiting for anybody.
    Apart,
}

/// Decides and writes one batch; gives it back if a smaller one may succeed, or it itself later.
async fn commit_part(
    shared: &Arc<Shared>,
    dispatcher: &mut Dispatcher,
    mut batch: Vec<Request>,
    way: Way,
) -> Result<(), (Vec<Request>, Error)> {
    if shared.store.is_low_on_space() {
        batch = refuse_new_work(batch);
    }
    let (now, began) = (shared.clock.now(), Instant::now());
    let mut parked = match way {
        Way::Usual => dispatcher.take(),
        Way::WithoutPulls | Way::Apart => Vec::new(),
    };
    let mut needs = needs(&batch, &parked, now);
    needs.is_hasty = way == Way::Apart;
    needs.is_settled_by_caller = shared.settles_here()
        && batch.len() + parked.len() <= shared.config.settled_here_max
        && shared.deliveries.is_open();
    let is_settled_here = needs.is_settled_by_caller;
    let mut draft = Draft::default();
    let mut work = |desk: &mut dyn Desk| {
        draft = Draft::default();
        draft.decide(shared, (&batch, &parked), desk, now);
    };
    match shared.store.commit(needs, &mut work).await {
        Ok(ticket) => {
            let effects = draft.settle(&mut batch, &mut parked);
            if effects.has_new_timer {
                shared.timer_changed.notify_one();
            }
            if effects.has_new_bulk {
                shared.bulks_changed.notify_one();
            }
            if effects.has_left_over {
                shared.work_is_due.notify_one();
            }
            let everyone = parked.into_iter().chain(batch);
            let (served, waiting): (Vec<_>, Vec<_>) = everyone.partition(Request::is_served);
            dispatcher.park(shared, waiting, now);
            if effects.has_new_tokens {
                shared.tokens_changed.send_modify(|turn| *turn += 1);
            }
            if effects.has_new_types {
                shared.types_changed.send_modify(|turn| *turn += 1);
            }
            let delivery = Delivery { served, effects, decided: (now, began) };
            match ticket.known() {
                Ok(outcome) => delivery.hand_out(shared, &outcome),
                Err(ticket) => {
                    let told = shared.clone();
                    ticket.then(move |outcome| told.deliveries.put(&told, delivery, outcome));
                }
            }
            if is_settled_here {
                shared.deliveries.settle_soon(shared);
            }
        }
        Err(error) => {
            dispatcher.park(shared, parked, now);
            if error.is_divisible() {
                return Err((batch, error));
            }
            // Perhaps it counts all the same: whoever waits for it looks again.
            let delivery =
                Delivery { served: batch, effects: draft.effects, decided: (now, began) };
            delivery.hand_out(shared, &Err(error));
        }
    }
    Ok(())
}

/// What has to be told once it is known how a commit ended.
pub(crate) struct Delivery {
    served: Vec<Request>,
    effects: Effects,
    decided: (Timestamp, Instant),
}

impl Delivery {
    /// Answers everyone who was served. Only a commit that is durable is told of and counted.
    pub(crate) fn hand_out(self, shared: &Shared, outcome: &Result<(), Error>) {
        let Delivery { served, effects, decided: (now, began) } = self;
        if outcome.is_ok() {
            effects.count(&shared.tally, &shared.meters, began.elapsed());
            tell_triggers(shared, &effects);
            shared.dependents.tell(&effects.ended, &effects.settled, &effects.waits);
            shared.reports.tell(&effects.signals);
            if effects.has_new_alerts {
                shared.alerts_changed.send_modify(|rung| *rung += 1);
            }
        }
        for request in served {
            if let (Ok(()), Some(pull)) = (outcome, &request.pull) {
                shared.workers.pulled(pull, now, request.reply().grants.len());
            }
            request.answer(outcome.clone());
        }
        if !effects.tenants.is_empty() {
            shared.moved.send_modify(|turn| *turn += 1);
            shared.waiters.jobs.ring(&effects.ended);
            shared.waiters.tenants.ring(&effects.tenants);
        }
    }
}

/// Tells whoever looks at the world for triggers what it should know.
fn tell_triggers(shared: &Shared, effects: &Effects) {
    let changed = effects.triggers.iter().map(|(id, now)| Hint::Trigger(*id, now.clone()));
    let ended = effects.ended.iter().zip(&effects.ended_as);
    let ended = ended.filter(|_| shared.hints.wants_ends());
    let ended = ended.map(|(job, alias)| Hint::Ended(*job, *alias));
    shared.hints.tell(changed.chain(ended));
}

fn refuse_new_work(batch: Vec<Request>) -> Vec<Request> {
    let (refused, taken): (Vec<_>, Vec<_>) = batch.into_iter().partition(Request::has_new_work);
    for request in refused {
        request.answer(Err(Error::NoRoom));
    }
    taken
}

fn needs(batch: &[Request], parked: &[Request], now: Timestamp) -> Needs {
    let mut needs = needs_of(batch.iter().flat_map(|request| &request.commands), now);
    let pulls = batch.iter().chain(parked).filter_map(|request| request.pull.as_ref());
    for pull in pulls {
        needs.due_by = needs.due_by.max(pull.due_by(now));
        needs.pulls.push(pull.needs());
    }
    needs
}
