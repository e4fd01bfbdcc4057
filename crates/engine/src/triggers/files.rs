//! The paths that triggers ask for: who asks for which, what was last seen there, and which of them
//! a change concerns. One path is looked at once, however many triggers ask for it.

use super::notice::{Asking, Change, MISSING, Notice, REMOTE, TOO_MANY, UNTOLD};
use super::pattern::{Pattern, Unseeable, patterns};
use super::walk::{Place, Walked, walk};
use crate::limits::{LOOK_GAP, LOOK_SHARE, LOOKS_AT_ONCE};
use mainspring_kernel::{EntityId, Timestamp};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

type PathId = u64;

/// A path below a root that triggers ask for.
struct Asked {
    pattern: Pattern,
    by: HashSet<EntityId>,
    newest: Option<Timestamp>,
    /// Where something might come to be, or go.
    places: Vec<Place>,
    /// When it is looked at next.
    look_at: Option<Instant>,
    looked_at: Option<Instant>,
    took: Duration,
    /// Why it is looked at from time to time.
    polled: Option<&'static str>,
    is_looked_at: bool,
    /// Whether its triggers are to be judged by the next look, also if it finds nothing new.
    is_awaited: bool,
}

impl Asked {
    /// Whether a look at it takes time that others would have to wait for.
    fn is_large(&self) -> bool {
        self.took > LOOK_GAP / 10
    }
}

/// Who is concerned by what happens in a folder.
#[derive(Default)]
struct Concerned {
    by_name: HashMap<OsString, Vec<PathId>>,
    by_any: Vec<PathId>,
}

/// The paths that triggers ask for.
pub(super) struct Files {
    roots: Vec<PathBuf>,
    check_every: Duration,
    asked: HashMap<PathId, Asked>,
    by_pattern: HashMap<Pattern, PathId>,
    folders: HashMap<PathBuf, Concerned>,
    due: BTreeSet<(Instant, PathId)>,
    /// Files that changed below paths that take time to look at.
    touched: HashSet<(PathId, PathBuf)>,
    pub(super) notice: Option<Notice>,
    next_id: PathId,
}

/// A look to be made.
pub(super) struct Look {
    path: PathId,
    pattern: Pattern,
    asking: Option<Asking>,
    /// How many folders it may have watched.
    room: usize,
    /// Whether it is at one file of the path alone.
    is_touch: bool,
}

/// A look that was made.
pub(super) struct Looked {
    path: PathId,
    walked: Walked,
    watches: Vec<(i32, PathBuf)>,
    unwatched: Option<&'static str>,
    is_touch: bool,
}

/// Files that changed and are looked at alone, at most; with more, their paths are looked at.
const TOUCHED_MAX: usize = 10_000;

impl Look {
    /// Makes it: on a thread that may wait.
    pub(super) fn make(self) -> Looked {
        let (mut watches, mut unwatched) = (Vec::new(), None);
        let mut enter = |folder: &Path| match &self.asking {
            Some(_) if watches.len() >= self.room => unwatched = Some(TOO_MANY),
            Some(asking) if unwatched.is_none() => match asking.watch(folder) {
                Ok(watch) => watches.push((watch, folder.to_owned())),
                Err(why) => unwatched = Some(why),
            },
            Some(_) | None => {}
        };
        let walked = walk(&self.pattern, &mut enter);
        Looked { path: self.path, walked, watches, unwatched, is_touch: self.is_touch }
    }
}

impl Files {
    pub(super) fn new(roots: Vec<PathBuf>, check_every: Duration) -> Self {
        // Without roots there is nothing to be told of.
        let notice = (!roots.is_empty()).then(Notice::new).flatten();
        Files {
            roots,
            check_every,
            asked: HashMap::new(),
            by_pattern: HashMap::new(),
            folders: HashMap::new(),
            due: BTreeSet::new(),
            touched: HashSet::new(),
            notice,
            next_id: 0,
        }
    }

    /// A trigger asks for a path.
    pub(super) fn ask(&mut self, by: EntityId, path: &str) -> Result<Vec<PathId>, Unseeable> {
        let patterns = patterns(&self.roots, path)?;
        Ok(patterns.into_iter().map(|pattern| self.ask_one(by, pattern)).collect())
    }

    fn ask_one(&mut self, by: EntityId, pattern: Pattern) -> PathId {
        let id = match self.by_pattern.get(&pattern) {
            Some(id) => *id,
            None => {
                self.next_id += 1;
                self.by_pattern.insert(pattern.clone(), self.next_id);
                let asked = Asked {
                    pattern,
                    by: HashSet::new(),
                    newest: None,
                    places: Vec::new(),
                    look_at: None,
                    looked_at: None,
                    took: Duration::ZERO,
                    polled: self.notice.is_none().then_some(UNTOLD),
                    is_looked_at: false,
                    is_awaited: false,
                };
                self.asked.insert(self.next_id, asked);
                self.look_soon(self.next_id);
                self.next_id
            }
        };
        if let Some(asked) = self.asked.get_mut(&id) {
            asked.by.insert(by);
        }
        id
    }

    /// A trigger asks for a path no more.
    pub(super) fn forget(&mut self, by: EntityId, path: PathId) {
        let Some(asked) = self.asked.get_mut(&path) else { return };
        asked.by.remove(&by);
        if !asked.by.is_empty() {
            return;
        }
        if let Some(asked) = self.asked.remove(&path) {
            self.by_pattern.remove(&asked.pattern);
            if let Some(at) = asked.look_at {
                self.due.remove(&(at, path));
            }
            self.leave(path, &asked.places);
        }
    }

    /// What was last seen of a path; `None` before the first look.
    pub(super) fn seen(&self, path: PathId) -> Option<Option<Timestamp>> {
        self.asked.get(&path).filter(|asked| asked.looked_at.is_some()).map(|asked| asked.newest)
    }

    /// Why a path is looked at from time to time, if it is.
    pub(super) fn polled(&self, path: PathId) -> Option<&'static str> {
        self.asked.get(&path).and_then(|asked| asked.polled)
    }

    /// When the next look is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        match self.touched.is_empty() {
            true => self.due.first().map(|(at, _)| *at),
            false => Some(Instant::now()),
        }
    }

    /// Looks that are due: many small ones, or one that takes time.
    pub(super) fn take_due(&mut self, now: Instant, may_be_large: bool) -> Vec<Look> {
        let asking = self.notice.as_ref().map(Notice::asking);
        let room = self.notice.as_ref().map_or(0, Notice::room);
        let mut looks = Vec::new();
        let mut taken = Vec::new();
        if !may_be_large {
            for (path, file) in std::mem::take(&mut self.touched) {
                let pattern = self.asked.get(&path).and_then(|asked| asked.pattern.of_file(&file));
                let touch = |pattern| Look { path, pattern, asking: None, room: 0, is_touch: true };
                looks.extend(pattern.map(touch));
            }
        }
        for (at, path) in self.due.iter().take_while(|(at, _)| *at <= now) {
            let Some(asked) = self.asked.get(path) else { continue };
            let is_new = asked.looked_at.is_none();
            let is_large = if is_new { !asked.pattern.is_plain() } else { asked.is_large() };
            if asked.is_looked_at || is_large != may_be_large {
                continue;
            }
            let room = room + asked.places.len();
            let (pattern, asking) = (asked.pattern.clone(), asking.clone());
            looks.push(Look { path: *path, pattern, asking, room, is_touch: false });
            taken.push((*at, *path));
            if looks.len() >= LOOKS_AT_ONCE || is_large {
                break;
            }
        }
        for (at, path) in taken {
            self.due.remove(&(at, path));
            if let Some(asked) = self.asked.get_mut(&path) {
                asked.look_at = None;
                asked.is_looked_at = true;
            }
        }
        looks
    }

    /// Takes in what a look found; the triggers that this concerns.
    pub(super) fn take_in(&mut self, looked: Looked, now: Instant) -> Vec<EntityId> {
        let Looked { path, walked, watches, unwatched, is_touch } = looked;
        if is_touch {
            return self.take_in_touch(path, walked.newest);
        }
        for (watch, folder) in watches {
            if let Some(notice) = &mut self.notice {
                notice.note(watch, folder);
            }
        }
        let Some(asked) = self.asked.get_mut(&path) else { return Vec::new() };
        let why = match &self.notice {
            _ if walked.is_missing => Some(MISSING),
            None => Some(UNTOLD),
            Some(_) if walked.is_remote => Some(REMOTE),
            Some(_) => unwatched,
        };
        if why != asked.polled {
            let folder = asked.pattern.root.display();
            match why {
                Some(why) => tracing::warn!(%folder, why, "files of a trigger are polled"),
                None => tracing::info!(%folder, "files of a trigger are watched"),
            }
        }
        if walked.is_cut {
            let (folder, took_ms) = (asked.pattern.root.display(), walked.took.as_millis());
            tracing::warn!(%folder, took_ms, "a look at files of a trigger was cut short");
        }
        // A look that began before it was waited for may have come too early.
        let is_awaited = asked.look_at.is_none() && std::mem::take(&mut asked.is_awaited);
        let is_news = is_awaited || asked.looked_at.is_none() || asked.newest != walked.newest;
        asked.polled = why;
        asked.newest = walked.newest;
        asked.looked_at = Some(now);
        asked.is_looked_at = false;
        asked.took = walked.took;
        let by: Vec<EntityId> = asked.by.iter().copied().collect();
        let pause = self.check_every.max(asked.took * LOOK_SHARE);
        if why.is_some() && asked.look_at.is_none() {
            asked.look_at = Some(now + pause);
            self.due.insert((now + pause, path));
        }
        if asked.places != walked.places {
            let before = std::mem::replace(&mut asked.places, walked.places.clone());
            self.leave(path, &before);
            self.stand(path, walked.places);
        }
        if is_news { by } else { Vec::new() }
    }

    /// One file has changed, or is gone.
    fn take_in_touch(&mut self, path: PathId, newest: Option<Timestamp>) -> Vec<EntityId> {
        let Some(asked) = self.asked.get_mut(&path) else { return Vec::new() };
        match newest {
            Some(_) if newest > asked.newest => {
                asked.newest = newest;
                asked.by.iter().copied().collect()
            }
            Some(_) => Vec::new(),
            None => {
                self.look_soon(path);
                Vec::new()
            }
        }
    }

    fn stand(&mut self, path: PathId, places: Vec<Place>) {
        for Place { folder, name } in places {
            let concerned = self.folders.entry(folder).or_default();
            match name {
                Some(name) => concerned.by_name.entry(name).or_default().push(path),
                None => concerned.by_any.push(path),
            }
        }
    }

    fn leave(&mut self, path: PathId, places: &[Place]) {
        let mut is_any_empty = false;
        for Place { folder, name } in places {
            let Some(concerned) = self.folders.get_mut(folder) else { continue };
            match name {
                Some(name) => {
                    if let Some(paths) = concerned.by_name.get_mut(name) {
                        paths.retain(|other| *other != path);
                        if paths.is_empty() {
                            concerned.by_name.remove(name);
                        }
                    }
                }
                None => concerned.by_any.retain(|other| *other != path),
            }
            if concerned.by_name.is_empty() && concerned.by_any.is_empty() {
                self.folders.remove(folder);
                is_any_empty = true;
            }
        }
        if let (true, Some(notice)) = (is_any_empty, &mut self.notice) {
            let folders = &self.folders;
            notice.keep(|folder| folders.contains_key(folder));
        }
    }

    /// Has the paths looked at that changes concern.
    pub(super) fn changed(&mut self, changes: Vec<Change>) {
        let mut paths: HashSet<PathId> = HashSet::new();
        for change in changes {
            match change {
                Change::File(folder, name) => {
                    let Some(concerned) = self.folders.get(&folder) else { continue };
                    paths.extend(concerned.by_name.get(&name).into_iter().flatten());
                    let file = folder.join(name);
                    let is_meant = |path: &&PathId| {
                        self.asked.get(path).is_some_and(|asked| asked.pattern.means(&file))
                    };
                    for path in concerned.by_any.iter().filter(is_meant) {
                        let is_large = self.asked.get(path).is_some_and(Asked::is_large);
                        match is_large && self.touched.len() < TOUCHED_MAX {
                            true => drop(self.touched.insert((*path, file.clone()))),
                            false => drop(paths.insert(*path)),
                        }
                    }
                }
                Change::Folder(folder) => {
                    let Some(concerned) = self.folders.get(&folder) else { continue };
                    paths.extend(concerned.by_name.values().flatten());
                    paths.extend(&concerned.by_any);
                }
                Change::Somewhere => {
                    let open = self.asked.iter().filter(|(_, asked)| asked.is_looked_at);
                    paths.extend(open.map(|(path, _)| *path));
                }
                Change::Anywhere => paths.extend(self.asked.keys()),
            }
        }
        for path in paths {
            self.look_soon(path);
        }
    }

    /// Has a path looked at before its triggers are judged: what was seen a moment ago may have
    /// changed since. Not one that takes time: its files are looked at one by one as they change.
    pub(super) fn look_before_judging(&mut self, path: PathId) -> bool {
        match self.asked.get_mut(&path) {
            Some(asked) if !asked.is_large() => {
                asked.is_awaited = true;
                self.look_soon(path);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Has a path looked at, at once unless that was a moment ago.
    fn look_soon(&mut self, path: PathId) {
        let Some(asked) = self.asked.get_mut(&path) else { return };
        let gap = LOOK_GAP.max(asked.took * LOOK_SHARE);
        let at = asked.looked_at.map_or_else(Instant::now, |last| (last + gap).max(Instant::now()));
        if asked.look_at.is_none_or(|known| at < known) {
            if let Some(known) = asked.look_at.replace(at) {
                self.due.remove(&(known, path));
            }
            self.due.insert((at, path));
        }
    }
}
