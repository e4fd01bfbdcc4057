//! The task that looks at the world for triggers. It sleeps until somebody tells it of something, a
//! file has had its time to settle, or a path that cannot be watched is to be looked at.

use super::files::{Files, Look, Looked};
use super::tasks::Tasks;
use super::watched::{Link, Watched};
use super::{Hint, TriggerConfig};
use crate::engine::Shared;
use crate::limits::{LOOK_SHARE, RETRY_AFTER, TRIGGERS_STEP};
use crate::timers::send_each;
use mainspring_kernel::entity::trigger::{Status, Trigger, TriggerCommand, TriggerType, evaluate};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::{Entity, EntityId, TenantId};
use mainspring_store::{EntityFilter, Error, Scope};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

struct Watcher {
    shared: Arc<Shared>,
    config: TriggerConfig,
    watched: HashMap<EntityId, Watched>,
    files: Files,
    tasks: Tasks,
    /// To be judged at once.
    judged: HashSet<EntityId>,
    /// To be judged later.
    later: BTreeSet<(Instant, EntityId)>,
    /// Looks that are being made: small ones, and one that takes time.
    looking: [Option<JoinHandle<Vec<Looked>>>; 2],
    tasks_at: Instant,
    /// When to look for triggers that others made.
    elsewhere_at: Option<Instant>,
}

/// Runs until the engine stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    let config = shared.config.triggers.clone();
    let check_every = Duration::from_millis(config.pace.check_ms.max(1));
    let mut watcher = Watcher {
        files: Files::new(config.roots.clone(), check_every),
        config,
        watched: HashMap::new(),
        tasks: Tasks::default(),
        judged: HashSet::new(),
        later: BTreeSet::new(),
        looking: [None, None],
        tasks_at: Instant::now(),
        elsewhere_at: Some(Instant::now()),
        shared,
    };
    let stop = watcher.shared.stop.clone();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = watcher.wait() => {}
        }
        match watcher.turn().await {
            Ok(()) => {}
            Err(Error::Stopped) => return,
            Err(error) => {
                if !matches!(error, Error::Away(_)) {
                    tracing::warn!(%error, "triggers could not reach the store");
                }
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(RETRY_AFTER) => {}
                }
            }
        }
    }
}

impl Watcher {
    /// Waits until there is something to do.
    async fn wait(&mut self) {
        if !self.judged.is_empty() || self.tasks.is_due() {
            return;
        }
        let tasks_at = self.tasks.is_waiting().then_some(self.tasks_at);
        let later = self.later.first().map(|(at, _)| *at);
        // What is due while others are looked at waits for those.
        let is_free = self.looking.iter().any(Option::is_none);
        let looks = self.files.next_due().filter(|_| is_free);
        let is_blocked = looks.is_some_and(|at| at <= Instant::now())
            && self.looking.iter().any(Option::is_some);
        let looks = looks.filter(|_| !is_blocked);
        let next = [tasks_at, later, looks, self.elsewhere_at].into_iter().flatten().min();
        let sleep = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let [small, large] = &mut self.looking;
        let (small_is_done, large_is_done) = (finished(small), finished(large));
        let notice = &mut self.files.notice;
        let changes = async {
            match notice {
                Some(notice) => notice.changes().await,
                None => std::future::pending().await,
            }
        };
        let mut changed = Vec::new();
        let mut looked = Vec::new();
        tokio::select! {
            biased;
            () = self.shared.hints.changed.notified() => {}
            done = small_is_done => looked = done,
            done = large_is_done => looked = done,
            some = changes => changed = some,
            () = sleep => {}
        }
        let now = Instant::now();
        for one in looked {
            self.judged.extend(self.files.take_in(one, now));
        }
        self.files.changed(changed);
    }

    async fn turn(&mut self) -> Result<(), Error> {
        let (hints, is_full) = self.shared.hints.take();
        for hint in hints {
            self.take_hint(hint).await?;
        }
        let now = Instant::now();
        if is_full || self.elsewhere_at.is_some_and(|at| at <= now) {
            self.find_all().await?;
            let took = now.elapsed() * LOOK_SHARE * 4;
            let every = self.config.look_elsewhere_every;
            self.elsewhere_at = every.map(|every| Instant::now() + every.max(took));
        }
        let is_their_turn = self.tasks_at <= now;
        if self.tasks.is_due() || (is_their_turn && self.tasks.is_waiting()) {
            self.judged.extend(self.tasks.look_up(&self.shared, is_their_turn).await?);
            if is_their_turn {
                self.tasks_at = now + Duration::from_millis(self.config.pace.check_ms.max(1));
            }
        }
        while let Some((at, id)) = self.later.first().copied().filter(|(at, _)| *at <= now) {
            self.later.remove(&(at, id));
            if !self.look_first(id) {
                self.judged.insert(id);
            }
        }
        self.start_looks(now);
        self.judge().await
    }

    /// Has the files of a trigger looked at before it is judged: a file that was about to settle
    /// may have changed again. Whether there are any.
    fn look_first(&mut self, id: EntityId) -> bool {
        let Some(known) = self.watched.get_mut(&id) else { return false };
        known.judge_at = None;
        let mut looks = false;
        for link in &known.links {
            if let Link::Files(Ok(paths)) = link {
                for path in paths {
                    looks |= self.files.look_before_judging(*path);
                }
            }
        }
        looks
    }

    fn start_looks(&mut self, now: Instant) {
        for (lane, may_be_large) in self.looking.iter_mut().zip([false, true]) {
            if lane.is_none() {
                let looks = self.files.take_due(now, may_be_large);
                if !looks.is_empty() {
                    let make = move || looks.into_iter().map(Look::make).collect();
                    *lane = Some(tokio::task::spawn_blocking(make));
                }
            }
        }
    }

    async fn take_hint(&mut self, hint: Hint) -> Result<(), Error> {
        match hint {
            Hint::Trigger(_, Some(entity)) => self.learn(*entity),
            // Perhaps there is another one of that name by now.
            Hint::Trigger(id, None) => self.look_again(id).await?,
            Hint::Ended(job, alias) => self.tasks.ended(job, alias),
            Hint::Ways(id, answer) => {
                let ways = self.watched.get(&id).map(|known| known.ways(&self.files));
                let _ = answer.send(ways.unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Takes note of how a trigger is now.
    fn learn(&mut self, entity: Entity) {
        let Entity { id, version, tenant, owner, created_at, body, .. } = entity;
        let Body::Trigger(trigger) = body else { return };
        if trigger.spec.kind != TriggerType::Conditional || trigger.status != Status::Active {
            return self.forget(id);
        }
        match self.watched.get_mut(&id) {
            Some(known) if known.made_at == created_at && known.version >= version => return,
            Some(known) if known.made_at == created_at => {
                (known.version, known.trigger) = (version, trigger);
            }
            Some(_) | None => {
                self.forget(id);
                let links = self.link(id, &tenant, &trigger);
                let made_at = created_at;
                let known = Watched { version, made_at, owner, trigger, links, judge_at: None };
                self.watched.insert(id, known);
            }
        }
        self.judged.insert(id);
    }

    fn link(&mut self, id: EntityId, tenant: &TenantId, trigger: &Trigger) -> Vec<Link> {
        let Some(condition) = trigger.spec.watched_condition() else { return Vec::new() };
        let mut links = Vec::new();
        for leaf in condition.leaves() {
            links.push(match (leaf.path(), leaf.task()) {
                (Some(path), _) => {
                    Link::Files(self.files.ask(id, path).map_err(|why| why.reason()))
                }
                (None, Some(task)) => {
                    // Before it is looked up, so that an end in between is told.
                    self.shared.hints.wants_ends.store(true, Ordering::SeqCst);
                    let name = (tenant.clone(), task.into());
                    self.tasks.wait(id, &name);
                    Link::Task(name)
                }
                (None, None) => Link::Asked,
            });
        }
        links
    }

    fn forget(&mut self, id: EntityId) {
        let Some(known) = self.watched.remove(&id) else { return };
        for link in known.links {
            match link {
                Link::Files(Ok(paths)) => {
                    paths.into_iter().for_each(|path| self.files.forget(id, path));
                }
                Link::Task(name) => self.tasks.forget(id, &name),
                Link::Files(Err(_)) | Link::Asked => {}
            }
        }
        if let Some(at) = known.judge_at {
            self.later.remove(&(at, id));
        }
        self.judged.remove(&id);
    }

    /// Finds every trigger that goes by a condition.
    async fn find_all(&mut self) -> Result<(), Error> {
        let filter = EntityFilter {
            state: Some(Status::Active.as_str().to_owned()),
            field: Some(("type".to_owned(), TriggerType::Conditional.as_str().to_owned())),
            ..EntityFilter::of(Kind::Trigger, Scope::All)
        };
        let mut gone: HashSet<EntityId> = self.watched.keys().copied().collect();
        let mut before = None;
        loop {
            let page = self.shared.store.entities(&filter, before, TRIGGERS_STEP).await?;
            for entity in page.items {
                gone.remove(&entity.id);
                let known = self.watched.get(&entity.id);
                let is_news = known.is_none_or(|known| {
                    known.version != entity.version || known.made_at != entity.created_at
                });
                if is_news {
                    self.learn(entity);
                }
            }
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        // One that was made meanwhile may stand behind where the list was read.
        for id in gone {
            self.look_again(id).await?;
        }
        Ok(())
    }

    async fn look_again(&mut self, id: EntityId) -> Result<(), Error> {
        match self.shared.store.entity(id).await? {
            Some(entity) => self.learn(entity),
            None => self.forget(id),
        }
        Ok(())
    }

    /// Judges those whose leaves may have changed, and tells the kernel what says anything new.
    async fn judge(&mut self) -> Result<(), Error> {
        let now = self.shared.clock.now();
        let ids: Vec<EntityId> = self.judged.drain().collect();
        let mut news = Vec::new();
        for id in ids {
            let Some(known) = self.watched.get_mut(&id) else { continue };
            if let Some(at) = known.judge_at.take() {
                self.later.remove(&(at, id));
            }
            let sights = known.sights(&self.files, &self.tasks);
            let spec = &known.trigger.spec;
            let Some(condition) = spec.watched_condition() else { continue };
            let found = evaluate(condition, &known.trigger.leaves, &sights, spec.rules(), now);
            if let Some(look_at) = found.look_at {
                let at = Instant::now() + look_at.since(now);
                known.judge_at = Some(at);
                self.later.insert((at, id));
            }
            if found.leaves != known.trigger.leaves {
                news.push(TriggerCommand::Observe { id, made_at: known.made_at, sights });
            }
        }
        if news.is_empty() {
            return Ok(());
        }
        let mut refused = Vec::new();
        let held = send_each(&self.shared, news, Into::into, |command, reply| {
            if let (TriggerCommand::Observe { id, .. }, Some(Err(_))) =
                (command, reply.outcomes.first())
            {
                refused.push(id);
            }
        })
        .await?;
        // Another server was faster: what it made of the trigger is not known here.
        for id in refused {
            self.look_again(id).await?;
        }
        let again_at = Instant::now() + RETRY_AFTER;
        for command in held {
            if let TriggerCommand::Observe { id, .. } = command {
                self.later.insert((again_at, id));
            }
        }
        Ok(())
    }
}

/// What a thread that looks has found, when it has.
async fn finished(lane: &mut Option<JoinHandle<Vec<Looked>>>) -> Vec<Looked> {
    match lane {
        Some(handle) => {
            let looked = handle.await;
            *lane = None;
            match looked {
                Ok(looked) => looked,
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
        None => std::future::pending().await,
    }
}
