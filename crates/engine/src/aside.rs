//! Requests that wait beside the commit path, because somebody outside holds what they need: an
//! idempotency key in an open transaction, a row that is locked. Nobody else waits with them.
//!
//! A batch that fails as busy is put here in lots, which are halved until the request is found that
//! cannot be had. What it needs is known as held from then on: it is tried again now and then,
//! whoever else needs it waits behind it, and submissions with keys of that tenant are decided
//! apart from everybody else's. Attempts that may run into a lock get a small share of the writer's
//! time.

use crate::limits::{
    ASIDE_MAX, ASIDE_SHARE, ASIDE_WAIT, HELD_MAX, HELD_PAUSE, HELD_PAUSE_MAX, HELD_PER_REQUEST_MAX,
    SUSPECT_FOR, SUSPECTS_MAX,
};
use crate::request::{Patience, Request};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{Command, DlqId, JobId, TenantId};
use mainspring_store::Error;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// Something that can be held by somebody outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Thing {
    Key(Digest),
    Job(JobId),
    Item(DlqId),
}

/// What is known of something that was found held.
#[derive(Debug)]
struct Held {
    /// When it is worth another attempt.
    again_at: Instant,
    pause: Duration,
    /// When it was last found held.
    found_at: Instant,
}

/// Requests that are tried together.
pub(crate) struct Lot {
    pub(crate) requests: Vec<Request>,
    /// Not tried before.
    again_at: Instant,
    /// When whoever still waits is refused.
    until: Instant,
}

impl Lot {
    fn new(requests: Vec<Request>, until: Instant) -> Self {
        Lot { requests, again_at: Instant::now(), until }
    }

    /// What its requests need.
    pub(crate) fn things(&self) -> Vec<Thing> {
        self.requests.iter().flat_map(things).collect()
    }
}

/// Everything that waits beside the commit path.
#[derive(Default)]
pub(crate) struct Aside {
    lots: VecDeque<Lot>,
    held: HashMap<Thing, Held>,
    /// Tenants whose keys were found held, and when last.
    suspects: HashMap<TenantId, Instant>,
    /// Until then it is everybody else's turn.
    rests_until: Option<Instant>,
    /// When pulls that wait are worth another attempt, if the last one was in vain.
    pulls_again_at: Option<Instant>,
    pulls_pause: Duration,
}

impl Aside {
    pub(crate) fn is_empty(&self) -> bool {
        self.lots.is_empty()
    }

    /// Takes out of what has arrived the requests that must not be decided together with others.
    pub(crate) fn sift(&mut self, arrived: Vec<Request>) -> Vec<Request> {
        if self.held.is_empty() && self.suspects.is_empty() {
            return arrived;
        }
        let now = Instant::now();
        self.held.retain(|_, held| now < held.found_at + SUSPECT_FOR);
        self.suspects.retain(|_, found_at| now < *found_at + SUSPECT_FOR);
        let mut clean = Vec::with_capacity(arrived.len());
        // In order, so that a simulated run can be repeated.
        let mut apart: BTreeMap<TenantId, Vec<Request>> = BTreeMap::new();
        let mut come_again = Vec::new();
        for request in arrived {
            if !self.needs_held(&request) {
                match self.suspect(&request) {
                    Some(tenant) => apart.entry(tenant).or_default().push(request),
                    None => clean.push(request),
                }
            } else if request.patience == Patience::ComesAgain && self.free_at(&request, now) <= now
            {
                come_again.push(request);
            } else {
                self.wait_alone(request, now, now + ASIDE_WAIT);
            }
        }
        let lots = apart.into_values().chain([come_again]).filter(|lot| !lot.is_empty());
        self.lots.extend(lots.map(|requests| Lot::new(requests, now + ASIDE_WAIT)));
        clean
    }

    fn needs_held(&self, request: &Request) -> bool {
        things(request).any(|thing| self.held.contains_key(&thing))
    }

    /// When everything a request needs is worth an attempt; not before `from`.
    fn free_at(&self, request: &Request, from: Instant) -> Instant {
        let again_at = |thing: Thing| self.held.get(&thing).map(|held| held.again_at);
        let things = things(request).take(HELD_PER_REQUEST_MAX);
        things.filter_map(again_at).fold(from, Instant::max)
    }

    fn suspect(&self, request: &Request) -> Option<TenantId> {
        let has_key = things(request).any(|thing| matches!(thing, Thing::Key(_)));
        let tenant = request.tenant().filter(|_| has_key)?;
        self.suspects.contains_key(tenant).then(|| tenant.clone())
    }

    /// A batch could not be decided together with pulls that wait: it is tried without them.
    pub(crate) fn try_apart(&mut self, requests: Vec<Request>) {
        if !requests.is_empty() {
            self.lots.push_back(Lot::new(requests, Instant::now() + ASIDE_WAIT));
        }
    }

    /// A batch could not be decided.
    pub(crate) fn put(&mut self, requests: Vec<Request>, jobs: &HashSet<JobId>, error: &Error) {
        self.refused(Lot::new(requests, Instant::now() + ASIDE_WAIT), jobs, error);
    }

    /// A lot could not be decided; somebody outside is known to hold `jobs`. Its halves are tried,
    /// or the one request in it waits.
    pub(crate) fn refused(&mut self, lot: Lot, jobs: &HashSet<JobId>, error: &Error) {
        let Lot { requests, until, .. } = lot;
        let needs_held = |request: &Request| {
            let parts = request.commands.iter().flat_map(Command::parts);
            parts.filter_map(Command::job).any(|job| jobs.contains(&job))
        };
        let is_alone = requests.len() == 1;
        let (held, mut rest): (Vec<_>, Vec<_>) = requests.into_iter().partition(needs_held);
        for request in held {
            self.found_held(request, until);
        }
        match (error, is_alone) {
            (Error::Busy, true) => rest.drain(..).for_each(|it| self.found_held(it, until)),
            (error, true) => rest.drain(..).for_each(|it| it.answer(Err(error.clone()))),
            (_, false) => {
                // Of those who need the same, one shows for all whether it can be had.
                let mut seen = HashSet::new();
                let is_first = |it: &Request| things(it).all(|thing| seen.insert(thing));
                let (mut firsts, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_first);
                let cut = cut(&mut firsts);
                let later = firsts.split_off(cut);
                let halves = [firsts, later].into_iter().filter(|half| !half.is_empty());
                self.lots.extend(halves.map(|half| Lot::new(half, until)));
                let now = Instant::now();
                others.into_iter().for_each(|it| self.wait_alone(it, now, until));
            }
        }
    }

    /// This one request needs something that somebody outside holds.
    fn found_held(&mut self, request: Request, until: Instant) {
        let now = Instant::now();
        for thing in things(&request).take(HELD_PER_REQUEST_MAX) {
            if self.held.len() < HELD_MAX || self.held.contains_key(&thing) {
                let held = self.held.entry(thing).or_insert(Held {
                    again_at: now,
                    pause: HELD_PAUSE / 2,
                    found_at: now,
                });
                held.pause = (held.pause * 2).min(HELD_PAUSE_MAX);
                held.again_at = now + held.pause;
                held.found_at = now;
            }
        }
        if let Some(tenant) = request.tenant()
            && (self.suspects.len() < SUSPECTS_MAX || self.suspects.contains_key(tenant))
        {
            self.suspects.insert(tenant.clone(), now);
        }
        self.wait_alone(request, now + HELD_PAUSE, until);
    }

    fn wait_alone(&mut self, request: Request, again_at: Instant, until: Instant) {
        let is_full = self.lots.iter().filter(|lot| lot.requests.len() == 1).count() >= ASIDE_MAX;
        match request.patience {
            Patience::Waits if !is_full => {
                self.lots.push_back(Lot { requests: vec![request], again_at, until });
            }
            Patience::Waits | Patience::ComesAgain => request.answer(Err(Error::Busy)),
        }
    }

    /// The next lot that is worth an attempt.
    pub(crate) fn take_due(&mut self) -> Option<Lot> {
        let now = Instant::now();
        if self.rests_until.is_some_and(|until| now < until) {
            return None;
        }
        loop {
            let index = self.lots.iter().position(|lot| self.due_at(lot) <= now)?;
            let lot = self.lots.remove(index)?;
            if lot.requests.len() == 1 {
                return Some(lot);
            }
            // What was found held since it was put together would fail the others again.
            let is_free = |request: &Request| self.free_at(request, now) <= now;
            let (free, held): (Vec<_>, Vec<_>) = lot.requests.into_iter().partition(is_free);
            for request in held {
                self.wait_alone(request, now, lot.until);
            }
            if !free.is_empty() {
                return Some(Lot { requests: free, ..lot });
            }
        }
    }

    /// When a lot is worth an attempt: at once, unless it is one request for what is held.
    fn due_at(&self, lot: &Lot) -> Instant {
        match lot.requests.as_slice() {
            [request] => self.free_at(request, lot.again_at),
            _ => lot.again_at,
        }
    }

    /// These could be had: whoever waits for the same is next.
    pub(crate) fn freed(&mut self, things: &[Thing]) {
        for thing in things {
            self.held.remove(thing);
        }
    }

    /// Attempts that ran into what is held took this long: now it is everybody else's turn.
    pub(crate) fn rest_for(&mut self, spent: Duration) {
        self.rests_until = Some(Instant::now() + spent * (ASIDE_SHARE - 1));
    }

    /// Whether pulls that wait are served with the next batch. Not for a while after one that was
    /// busy: perhaps it is what they would be given that somebody holds.
    pub(crate) fn may_serve_pulls(&self) -> bool {
        self.pulls_again_at.is_none_or(|at| at <= Instant::now())
    }

    /// A batch that was to serve the pulls that wait did, or was busy.
    pub(crate) fn tried_pulls(&mut self, is_served: bool) {
        if is_served {
            (self.pulls_again_at, self.pulls_pause) = (None, Duration::ZERO);
        } else {
            self.pulls_pause = (self.pulls_pause * 2).clamp(HELD_PAUSE, HELD_PAUSE_MAX);
            self.pulls_again_at = Some(Instant::now() + self.pulls_pause);
        }
    }

    /// Ends when something here has to be done; never, if nothing waits.
    pub(crate) async fn next_is_due(&mut self) {
        let lots = self.lots.iter().map(|lot| {
            let due_at = self.due_at(lot);
            self.rests_until.map_or(due_at, |until| due_at.max(until)).min(lot.until)
        });
        match lots.chain(self.pulls_again_at).min() {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
        self.pulls_again_at.take_if(|at| *at <= Instant::now());
    }

    /// Refuses those who have waited long enough.
    pub(crate) fn send_home_late(&mut self) {
        let now = Instant::now();
        for lot in &mut self.lots {
            if lot.until <= now {
                for request in lot.requests.drain(..) {
                    request.answer(Err(Error::Busy));
                }
            }
        }
        self.lots.retain(|lot| !lot.requests.is_empty());
    }

    /// Refuses everybody: the engine is stopping.
    pub(crate) fn send_all_home(&mut self) {
        for request in self.lots.drain(..).flat_map(|lot| lot.requests) {
            request.answer(Err(Error::Stopped));
        }
    }
}

/// What a request needs that somebody outside can hold.
pub(crate) fn things(request: &Request) -> impl Iterator<Item = Thing> {
    request.commands.iter().flat_map(Command::parts).flat_map(|command| {
        let key = if let Command::Submit(_) = command { command.key() } else { None };
        let key = key.into_iter().chain(command.alias()).map(Thing::Key);
        let job = command.job().map(Thing::Job);
        let item = command.item().map(Thing::Item);
        key.chain(job).chain(item)
    })
}

/// Where to part requests: between two tenants if there are several, else in the middle.
fn cut(requests: &mut [Request]) -> usize {
    requests.sort_by(|a, b| a.tenant().cmp(&b.tenant()));
    let middle = requests.len() / 2;
    let is_border = |at: &usize| requests[at - 1].tenant() != requests[*at].tenant();
    let borders = (1..requests.len()).filter(is_border);
    borders.min_by_key(|at| at.abs_diff(middle)).unwrap_or(middle)
}
