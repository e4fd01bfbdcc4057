//! Power cuts: a seeded sequence of commits on a simulated disk, cut at every write and every sync,
//! with what was not synced lost, torn and reordered. Each image is opened and compared with a
//! model: the store must be as it was after some prefix of the commits that contains every
//! acknowledged one (D6), must never refuse to start, and must go on working.
//! Read next: `crash/script.rs` for what is committed, `crash/watch.rs` for the boundaries.

mod script;
mod text;
mod threads;
mod watch;

pub use threads::{Crowd, cut_a_crowd};
pub use watch::{Lie, Told, Watched};

use crate::drive;
use crate::rng::Rng;
use mainspring_kernel::{Command, Receipt, Timestamp};
use mainspring_store::Store;
use mainspring_store::conformance::ModelStore;
use mainspring_store_memory::disk::sim::{CrashChoice, Faults};
use mainspring_store_memory::disk::{Disk, SimDisk};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use script::{Script, Step};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use text::{difference, has_alarm, text};

/// How one campaign runs.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    /// Decides everything.
    pub seed: u64,
    /// Commits, flushes and other steps.
    pub steps: usize,
    /// Most images at one boundary, besides the two ends.
    pub images_max: usize,
    /// Images are made at this share of the boundaries.
    pub boundaries_percent: u64,
    /// A planted bug of the disk.
    pub lie: Lie,
    /// A planted bug of the store: answers before the sync.
    pub acknowledges_early: bool,
}

impl Campaign {
    /// A campaign without planted bugs.
    pub fn new(seed: u64) -> Self {
        Campaign {
            seed,
            steps: 60,
            images_max: 10,
            boundaries_percent: 100,
            lie: Lie::None,
            acknowledges_early: false,
        }
    }

    /// The same with few images: many of them try more orders of things in the same time.
    pub fn sparse(seed: u64) -> Self {
        Campaign { images_max: 1, boundaries_percent: 10, ..Campaign::new(seed) }
    }
}

/// What a campaign did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Disk images opened and judged.
    pub images: u64,
    /// Writes, syncs and directory changes after which images were made.
    pub boundaries: u64,
    /// Commits made.
    pub commits: u64,
    /// Images that were cut a second time while they were being opened.
    pub second_cuts: u64,
    /// Images on which new commits were made and cut again.
    pub continued: u64,
    /// Comparisons of the live store with the model.
    pub live_checks: u64,
    /// Snapshots taken with commits in between.
    pub fuzzy_snapshots: u64,
    /// Those of them during which the journal went to another segment.
    pub rotated_snapshots: u64,
    /// Entities that were rung.
    pub rung: u64,
    /// Images in which the alarm of an entity stands.
    pub alarmed: u64,
}

impl Summary {
    /// Adds up campaigns.
    pub fn add(&mut self, other: Summary) {
        self.images += other.images;
        self.boundaries += other.boundaries;
        self.commits += other.commits;
        self.second_cuts += other.second_cuts;
        self.continued += other.continued;
        self.live_checks += other.live_checks;
        self.fuzzy_snapshots += other.fuzzy_snapshots;
        self.rotated_snapshots += other.rotated_snapshots;
        self.rung += other.rung;
        self.alarmed += other.alarmed;
    }
}

/// Long after everything: dumps are made as of then, so that they can be compared.
const FAR: Timestamp = Timestamp::from_millis(1_790_000_000_000 + 40 * 24 * 3_600_000);

/// Runs a campaign.
///
/// # Errors
/// What an image or the live store had wrong, with what it takes to see it again.
pub fn run(campaign: Campaign) -> Result<Summary, String> {
    let mut run = Run::new(campaign)?;
    for nth in 0..campaign.steps {
        let step = run.script.step(nth);
        run.take(&step).map_err(|why| format!("seed {} step {nth}: {why}", campaign.seed))?;
        run.judge().map_err(|why| format!("seed {} step {nth}: {why}", campaign.seed))?;
    }
    Ok(Summary { rung: run.script.rung, ..run.summary })
}

fn config(seed: u64) -> MemoryConfig {
    MemoryConfig {
        segment_bytes: 8 << 10,
        snapshot_bytes_min: 12 << 10,
        finished_bytes_max: 2_000,
        has_threads: false,
        ..MemoryConfig::standard(seed)
    }
}

/// An image taken, to be judged when the step is over.
struct Image {
    disk: SimDisk,
    choice: CrashChoice,
    acknowledged: u64,
}

/// What the boundaries have seen.
struct Shelf {
    images: Vec<Image>,
    boundaries: u64,
    rng: Rng,
}

/// What is expected after each commit.
struct Expected {
    text: String,
    keys: BTreeMap<String, Receipt>,
}

struct Run {
    campaign: Campaign,
    script: Script,
    store: MemoryStore,
    model: ModelStore,
    disk: SimDisk,
    shelf: Arc<Mutex<Shelf>>,
    acknowledged: Arc<AtomicU64>,
    expected: Vec<Expected>,
    rng: Rng,
    summary: Summary,
}

impl Run {
    fn new(campaign: Campaign) -> Result<Self, String> {
        let disk = SimDisk::new();
        let acknowledged = Arc::new(AtomicU64::new(0));
        let rng = Rng::new(campaign.seed, 2);
        let shelf = Arc::new(Mutex::new(Shelf { images: Vec::new(), boundaries: 0, rng }));
        let told = {
            let (disk, shelf, acknowledged) = (disk.clone(), shelf.clone(), acknowledged.clone());
            Arc::new(move || {
                let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
                shelf.boundary(&disk, acknowledged.load(Ordering::Relaxed), campaign);
            })
        };
        let watched = Watched::new(disk.clone(), campaign.lie, told);
        let store = MemoryStore::open(Arc::new(watched), config(campaign.seed), drive::BEGINNING)
            .map_err(|error| format!("a new disk was refused: {error}"))?;
        let model = ModelStore::default();
        let mut run = Run {
            campaign,
            script: Script::new(campaign.seed),
            store,
            model,
            disk,
            shelf,
            acknowledged,
            expected: Vec::new(),
            rng: Rng::new(campaign.seed, 3),
            summary: Summary::default(),
        };
        run.expect();
        run.judge()?;
        Ok(run)
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        let now = self.script.now;
        let done = match step {
            Step::Commit { commands, pull } => self.commit(commands, *pull),
            Step::Flush => self.store.flush().map_err(|error| error.to_string()),
            Step::Tidy => self.store.tidy(now).map_err(|error| error.to_string()),
            Step::Snapshot => self.store.take_snapshot(now).map_err(|error| error.to_string()),
            Step::FuzzySnapshot => self.fuzzy_snapshot(),
            Step::Compare => self.compare_live(),
        };
        if self.campaign.lie == Lie::None { done } else { done.or(Ok(())) }
    }

    fn commit(&mut self, commands: &[Command], pull: usize) -> Result<(), String> {
        commit_both(
            &self.store,
            &self.model,
            &mut self.script,
            (commands, pull),
            &self.acknowledged,
            self.campaign.acknowledges_early,
        )?;
        self.expect();
        Ok(())
    }

    /// A snapshot with commits and syncs wherever the keeper lets go of the lock.
    fn fuzzy_snapshot(&mut self) -> Result<(), String> {
        let Run { store, model, script, acknowledged, expected, campaign, disk, .. } = self;
        let (now, mut outcome) = (script.now, Ok(()));
        let segment = newest_segment(disk);
        let taken = store.take_snapshot_with(now, &mut || {
            if script.rng.chance(40)
                && let Step::Commit { commands, pull } = script.commit_step()
            {
                let batch = (&*commands, pull);
                let early = campaign.acknowledges_early;
                let done = commit_both(store, model, script, batch, acknowledged, early);
                expected.push(expectation(model, script));
                outcome = std::mem::replace(&mut outcome, Ok(())).and(done);
            }
            if script.rng.chance(30) {
                let done = store.flush().map_err(|error| error.to_string());
                outcome = std::mem::replace(&mut outcome, Ok(())).and(done);
            }
        });
        self.summary.rotated_snapshots += u64::from(newest_segment(&self.disk) > segment);
        self.summary.commits = self.expected.len() as u64;
        self.summary.fuzzy_snapshots += 1;
        taken.map_err(|error| error.to_string())?;
        outcome
    }

    fn expect(&mut self) {
        self.expected.push(expectation(&self.model, &self.script));
        self.summary.commits = self.expected.len() as u64;
    }

    /// The live store answers what the model answers.
    fn compare_live(&mut self) -> Result<(), String> {
        self.store.flush().map_err(|error| error.to_string())?;
        self.summary.live_checks += 1;
        let found = text(&self.store);
        let wanted = &self.expected.last().expect("one before the first commit").text;
        if found == *wanted { Ok(()) } else { Err(difference("the live store", wanted, &found)) }
    }

    /// Opens every image made since the last time.
    fn judge(&mut self) -> Result<(), String> {
        let (images, boundaries) = {
            let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
            (std::mem::take(&mut shelf.images), shelf.boundaries)
        };
        self.summary.boundaries = boundaries;
        for image in images {
            self.summary.images += 1;
            let how = format!("{:?} after {} acknowledged", image.choice, image.acknowledged);
            self.judge_image(&image).map_err(|why| format!("{how}: {why}"))?;
        }
        Ok(())
    }

    fn judge_image(&mut self, image: &Image) -> Result<(), String> {
        let mut disk = image.disk.clone();
        if self.rng.chance(12) {
            self.summary.second_cuts += 1;
            let cut = self.rng.below(12);
            disk.set_faults(Faults { power_off_after: Some(cut), ..Faults::default() });
            drop(open(&disk, self.rng.bits()));
            disk = disk.crash(CrashChoice::Random(self.rng.bits()));
        }
        let store = open(&disk, self.rng.bits())?;
        let found = text(&store);
        let from = usize::try_from(image.acknowledged).expect("few commits");
        let prefixes = &self.expected[from..];
        let Some(prefix) = prefixes.iter().find(|expected| expected.text == found) else {
            let near = prefixes.iter().map(|e| difference("D6: no prefix", &e.text, &found));
            let near = near.min_by_key(|text| text.lines().count());
            return Err(near.expect("what is acknowledged was committed"));
        };
        self.summary.alarmed += u64::from(has_alarm(&found));
        check_keys(&store, prefix, &mut self.script)?;
        if self.rng.chance(25) {
            self.summary.continued += 1;
            self.go_on(&disk, store)?;
        }
        Ok(())
    }

    /// New commits on a recovered store survive the next crash.
    fn go_on(&mut self, disk: &SimDisk, store: MemoryStore) -> Result<(), String> {
        let wish = drive::wish("acme", "ada", "plain", r#"{"after":"the crash"}"#);
        let command = Command::Submit(Box::new(wish));
        let fresh = &mut self.script.fresh;
        let done = drive::commit(&store, &[command], 2, FAR, fresh).map_err(|e| e.to_string())?;
        let Some(Ok(Receipt::Submitted { job })) = done.outcomes.first() else {
            return Err(format!("a submission after recovery was answered {:?}", done.outcomes));
        };
        store.flush().map_err(|error| format!("after recovery: {error}"))?;
        if self.rng.chance(30) {
            store.take_snapshot(FAR).map_err(|error| format!("after recovery: {error}"))?;
        }
        let before = text(&store);
        let disk = disk.crash(CrashChoice::Random(self.rng.bits()));
        drop(store);
        let store = open(&disk, self.rng.bits())?;
        if drive::ready(store.job(*job)).ok().flatten().is_none() {
            return Err(format!("D1: {job}, accepted after recovery, is gone"));
        }
        let after = text(&store);
        if before == after { Ok(()) } else { Err(difference("the next crash", &before, &after)) }
    }
}

impl Shelf {
    fn boundary(&mut self, disk: &SimDisk, acknowledged: u64, campaign: Campaign) {
        self.boundaries += 1;
        if !self.rng.chance(campaign.boundaries_percent) {
            return;
        }
        let mut choices = disk.crash_choices(4, self.rng.bits());
        // Dropping everything and keeping everything are always among them.
        let (first, last) = (choices.first().copied(), choices.last().copied());
        while choices.len() > campaign.images_max {
            let nth = self.rng.below(choices.len() as u64) as usize;
            choices.swap_remove(nth);
        }
        let ends = first.into_iter().chain(last).filter(|end| !choices.contains(end));
        for choice in ends.collect::<Vec<_>>().into_iter().chain(choices.iter().copied()) {
            self.images.push(Image { disk: disk.crash(choice), choice, acknowledged });
        }
    }
}

/// The journal's newest segment that is in use or ready.
fn newest_segment(disk: &SimDisk) -> Option<String> {
    let names = disk.list().ok()?;
    names.into_iter().filter(|name| name.starts_with("journal-")).max()
}

fn has_snapshot(disk: &SimDisk) -> bool {
    disk.list().is_ok_and(|names| names.iter().any(|name| name.ends_with(".snap")))
}

fn open(disk: &SimDisk, seed: u64) -> Result<MemoryStore, String> {
    MemoryStore::open(Arc::new(disk.clone()), config(seed), drive::BEGINNING).map_err(|error| {
        use std::error::Error;
        let cause = error.source().map(|cause| cause.to_string()).unwrap_or_default();
        format!("D6: the store refuses to open: {error} {cause}")
    })
}

/// Commits on the store, and the very same events on the model.
fn commit_both(
    store: &MemoryStore,
    model: &ModelStore,
    script: &mut Script,
    (commands, pull): (&[Command], usize),
    acknowledged: &Arc<AtomicU64>,
    is_early: bool,
) -> Result<(), String> {
    let now = script.now;
    let done = drive::commit(store, commands, pull, now, &mut script.fresh)
        .map_err(|error| format!("a commit was refused: {error}"))?;
    script.learn(commands, &done);
    let events = done.events;
    let needs = mainspring_store::Needs { now, ..Default::default() };
    let mut work = |desk: &mut dyn mainspring_store::Desk| desk.apply(events.clone());
    drive::ready(model.commit(needs, &mut work)).map(drop).map_err(|error| error.to_string())?;
    if is_early {
        acknowledged.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    }
    let acknowledged = acknowledged.clone();
    done.ticket.then(move |outcome| {
        if outcome.is_ok() {
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    });
    Ok(())
}

fn expectation(model: &ModelStore, script: &Script) -> Expected {
    Expected { text: text(model), keys: script.keys.clone() }
}

/// Keys that are held for ever are known after recovery.
fn check_keys(store: &MemoryStore, prefix: &Expected, script: &mut Script) -> Result<(), String> {
    for (name, receipt) in &prefix.keys {
        let Receipt::Submitted { job } = receipt else { continue };
        let command = script.keyed(name);
        let done = drive::commit(store, &[command], 0, FAR, &mut script.fresh)
            .map_err(|error| error.to_string())?;
        match done.outcomes.first() {
            Some(Ok(Receipt::Existing { job: found, .. })) if found == job => {}
            other => return Err(format!("I1: key {name} of {job} was answered {other:?}")),
        }
    }
    Ok(())
}
