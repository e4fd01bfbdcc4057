//! A request on its way: from the handle through the commit loop and back with its answer. What it
//! is told is put in here only once the store has taken the decision.

use crate::engine::Reply;
use crate::pull::{Grant, Pull};
use mainspring_kernel::command::Release;
use mainspring_kernel::{Command, TenantId};
use mainspring_store::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// What to do with a request that needs what somebody outside holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// A caller waits for it: it may be free in a moment.
    Waits,
    /// Whoever sent it comes again by itself.
    ComesAgain,
}

/// Commands that belong together, perhaps with a pull behind them. They are decided in one commit
/// or not at all.
pub(crate) struct Request {
    pub(crate) commands: Vec<Command>,
    pub(crate) pull: Option<Pull>,
    /// When a pull that waits is sent home empty; set when it is first parked.
    pub(crate) until: Option<Instant>,
    pub(crate) patience: Patience,
    reply: Reply,
    answer: Option<oneshot::Sender<Result<Parcel, Error>>>,
    /// Where the leases of a caller that went away are given back.
    requests: mpsc::Sender<Request>,
}

impl Request {
    pub(crate) fn new(
        commands: Vec<Command>,
        pull: Option<Pull>,
        requests: &mpsc::Sender<Request>,
    ) -> (Self, oneshot::Receiver<Result<Parcel, Error>>) {
        let (answer, reply) = oneshot::channel();
        let request = Request {
            commands,
            pull,
            until: None,
            patience: Patience::Waits,
            reply: Reply::default(),
            answer: Some(answer),
            requests: requests.clone(),
        };
        (request, reply)
    }

    /// Whether the caller has gone away: its pull must not take jobs nobody will see.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    /// What it is told if the commit turns out to be durable.
    pub(crate) fn settle(&mut self, reply: Reply) {
        self.reply = reply;
    }

    pub(crate) fn reply(&self) -> &Reply {
        &self.reply
    }

    /// Answers; a caller that went away in the meantime leaves its leases behind.
    pub(crate) fn answer(mut self, outcome: Result<(), Error>) {
        let Some(answer) = self.answer.take() else { return };
        let reply = std::mem::take(&mut self.reply);
        let parcel = || Parcel { reply: Some(reply), requests: self.requests.clone() };
        // What cannot be delivered is dropped, which gives its leases back.
        let _ = answer.send(outcome.map(|()| parcel()));
    }

    /// A request waits on only if it is a pull that got nothing and is willing to wait.
    pub(crate) fn is_served(&self) -> bool {
        self.pull.as_ref().is_none_or(|pull| {
            !self.reply.grants.is_empty() || !self.commands.is_empty() || pull.wait.is_zero()
        })
    }

    pub(crate) fn has_new_work(&self) -> bool {
        #[expect(clippy::wildcard_enum_match_arm, reason = "three commands ask for new work")]
        let is_new = |command: &Command| match command {
            Command::Submit(_) | Command::RequeueItem { .. } => true,
            Command::Entity(command) => command.is_new_work(),
            _ => false,
        };
        self.commands.iter().flat_map(Command::parts).any(is_new)
    }

    /// Whether it only makes jobs, and names nothing for it that is there, but keys.
    pub(crate) fn only_makes_jobs(&self) -> bool {
        let is_plain = |command: &Command| {
            matches!(command, Command::Submit(_))
                && command.watched().is_empty()
                && command.entity().is_none()
        };
        self.pull.is_none() && self.commands.iter().flat_map(Command::parts).all(is_plain)
    }

    /// Whose job it submits, if it submits any.
    pub(crate) fn tenant(&self) -> Option<&TenantId> {
        self.commands.iter().flat_map(Command::parts).find_map(|command| {
            if let Command::Submit(wish) = command { Some(&wish.tenant) } else { None }
        })
    }
}

/// An answer on its way to a caller. One that nobody unpacks gives its leases back: the caller may
/// go away at any moment, and a job must not wait for a worker that never heard of it.
pub(crate) struct Parcel {
    reply: Option<Reply>,
    requests: mpsc::Sender<Request>,
}

impl Parcel {
    pub(crate) fn unpack(mut self) -> Reply {
        self.reply.take().unwrap_or_default()
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        let Some(unseen) = self.reply.take() else { return };
        let unseen: Vec<Command> = unseen.grants.iter().filter_map(given_back).collect();
        if !unseen.is_empty() {
            let (request, _) = Request::new(unseen, None, &self.requests);
            // If the queue is full the leases run out by themselves.
            let _ = self.requests.try_send(request);
        }
    }
}

/// The command that gives back a job that nobody will work on.
pub(crate) fn given_back(grant: &Grant) -> Option<Command> {
    let lease = grant.job.lease()?;
    Some(Command::Release(Release {
        job: grant.job.id,
        token: lease.token(),
        reason: Some("the worker went away before it got the job".into()),
    }))
}
