//! A whole store out of its directory, or into a new one. What another store sends is written as a
//! snapshot beside the place where it shall be, read again, and put there only if it is the same.

use crate::disk::{Disk, RealDisk};
use crate::memory::{MemoryConfig, MemoryStore};
use mainspring_kernel::entity::Kind;
use mainspring_kernel::{DlqId, EntityId, JobId, Timestamp};
use mainspring_store::record::Record;
use mainspring_store::transfer::Seal;
use mainspring_store::{EntityFilter, Error, ItemFilter, JobFilter, Scope, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Records handed over at once.
const PAGE: usize = 500;
/// Nothing is dropped on the way, however old.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Reads a store that no server uses.
pub struct MemoryExport {
    store: MemoryStore,
    stage: Stage,
}

enum Stage {
    Registries,
    Jobs(Option<JobId>),
    Items(Option<DlqId>),
    Entities(usize, Option<EntityId>),
    Moves(u64),
    Rest,
    Over,
}

fn config() -> MemoryConfig {
    MemoryConfig {
        keep_finished: FOR_EVER,
        keep_items: FOR_EVER,
        keep_stream: FOR_EVER,
        ..MemoryConfig::standard(1)
    }
}

fn failed(text: String) -> Error {
    Error::Failed(text.into())
}

impl MemoryExport {
    /// Opens the store in a directory, as a server would, and keeps servers out.
    ///
    /// # Errors
    /// If there is no store, or a server uses it.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self, Error> {
        let shown = path.display();
        let is_there = path.join(crate::manifest::NAME).exists() || has_journal(path);
        if !is_there {
            return Err(failed(format!("there is no store in {shown}")));
        }
        let disk = RealDisk::open(path).map_err(|error| failed(format!("{shown}: {error}")))?;
        Self::over(Arc::new(disk), now).map_err(|error| match error {
            Error::Failed(text) => failed(format!("{shown}: {text}")),
            other @ (Error::Stopped
            | Error::NoRoom
            | Error::Busy
            | Error::Refused(_)
            | Error::Broken(_)
            | Error::Unreadable(_)
            | Error::Away(_)) => other,
        })
    }

    /// The same on any disk.
    ///
    /// # Errors
    /// As [`MemoryExport::open`].
    pub fn over(disk: Arc<dyn Disk>, now: Timestamp) -> Result<Self, Error> {
        let store =
            MemoryStore::open(disk, config(), now).map_err(|error| failed(error.to_string()))?;
        Ok(MemoryExport { store, stage: Stage::Registries })
    }

    /// The next records; none at the end.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Record>>, Error> {
        let (found, next) = match self.stage {
            Stage::Registries => (self.registries().await?, Stage::Jobs(None)),
            Stage::Jobs(before) => self.jobs(before).await?,
            Stage::Items(before) => self.items(before).await?,
            Stage::Entities(kind, before) => self.entities(kind, before).await?,
            Stage::Moves(after) => self.moves(after).await?,
            Stage::Rest => {
                let (keys, counters) = self.store.inner();
                let keys = keys.into_iter().map(|(hash, holder)| Record::Key { hash, holder });
                let meters = self.store.meters();
                let meters = meters.iter().map(|(key, meter)| Record::Meter { key, meter });
                let last = std::iter::once(Record::Counters(counters));
                (keys.chain(meters).chain(last).collect(), Stage::Over)
            }
            Stage::Over => return Ok(None),
        };
        self.stage = next;
        Ok(Some(found))
    }

    async fn registries(&self) -> Result<Vec<Record>, Error> {
        let types = self.store.types().await?.into_iter().map(|it| Record::Type(Box::new(it)));
        let queues = self.store.queues().await?.into_iter().map(Record::Queue);
        let tokens = self.store.tokens().await?.into_iter().map(|it| Record::Token(Box::new(it)));
        Ok(types.chain(queues).chain(tokens).collect())
    }

    async fn jobs(&self, before: Option<JobId>) -> Result<(Vec<Record>, Stage), Error> {
        let filter = JobFilter::of(Scope::All);
        let page = self.store.jobs(&filter, before, PAGE).await?;
        // A list leaves out what cannot be read; a copy must not.
        if self.store.health().damaged_blocks > 0 {
            let text = "finished jobs are damaged; see `mainspring doctor --data-dir`";
            return Err(failed(text.to_owned()));
        }
        let mut found = Vec::with_capacity(page.items.len());
        for job in page.items {
            let whole = self.store.job(job.id).await?;
            let whole = whole.ok_or_else(|| failed(format!("{} is listed, not there", job.id)))?;
            found.push(Record::Job(Box::new(whole)));
        }
        let next = page.next.map_or(Stage::Items(None), |next| Stage::Jobs(Some(next)));
        Ok((found, next))
    }

    async fn items(&self, before: Option<DlqId>) -> Result<(Vec<Record>, Stage), Error> {
        let filter = ItemFilter::of(Scope::All);
        let page = self.store.items(&filter, before, PAGE).await?;
        let found = page.items.into_iter().map(|item| Record::Item(Box::new(item))).collect();
        let next =
            page.next.map_or(Stage::Entities(0, None), |next| Stage::Items(Some(next.dlq())));
        Ok((found, next))
    }

    /// The entities of one kind after another.
    async fn entities(
        &self,
        place: usize,
        before: Option<EntityId>,
    ) -> Result<(Vec<Record>, Stage), Error> {
        let Some(kind) = Kind::ALL.get(place) else { return Ok((Vec::new(), Stage::Moves(0))) };
        let filter = EntityFilter::of(*kind, Scope::All);
        let page = self.store.entities(&filter, before, PAGE).await?;
        let found = page.items.into_iter().map(|it| Record::Entity(Box::new(it))).collect();
        let next = page.next.map(|next| Stage::Entities(place, Some(next)));
        Ok((found, next.unwrap_or(Stage::Entities(place + 1, None))))
    }

    /// What is kept of the stream.
    async fn moves(&self, after: u64) -> Result<(Vec<Record>, Stage), Error> {
        let moves = self.store.moves_after(after, PAGE).await?.moves;
        Ok(match moves.last().map(|last| last.position) {
            Some(last) => (vec![Record::Moves(moves)], Stage::Moves(last)),
            None => (Vec::new(), Stage::Rest),
        })
    }

    /// Lets go of the directory.
    ///
    /// # Errors
    /// If the journal cannot be closed.
    pub async fn close(self) -> Result<(), Error> {
        self.store.close().await
    }
}

fn has_journal(path: &Path) -> bool {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("journal-"))
}

/// Writes a new store.
pub struct MemoryImport {
    store: MemoryStore,
    path: PathBuf,
    beside: PathBuf,
    now: Timestamp,
}

impl MemoryImport {
    /// Prepares to make a store in a directory that is empty or not there.
    ///
    /// # Errors
    /// If something is there, also from an attempt that was interrupted.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self, Error> {
        let shown = path.display();
        let is_empty = std::fs::read_dir(path).map_or(!path.exists(), |mut it| it.next().is_none());
        if !is_empty {
            return Err(failed(format!("{shown} is not empty; name a new directory")));
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".moving");
        let beside = path.with_file_name(name);
        if beside.exists() {
            let text = "is left of a move that did not end; remove it and start again";
            return Err(failed(format!("{} {text}", beside.display())));
        }
        let io = |error: std::io::Error| failed(format!("{}: {error}", beside.display()));
        std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700)
            .create(&beside)
            .map_err(io)?;
        let disk = Arc::new(RealDisk::open(&beside).map_err(io)?);
        let store =
            MemoryStore::open(disk, config(), now).map_err(|error| failed(error.to_string()))?;
        Ok(MemoryImport { store, path: path.to_owned(), beside, now })
    }

    /// Takes more in.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn put(&mut self, records: Vec<Record>) -> Result<(), Error> {
        self.store.restore(records)
    }

    /// Writes everything, reads it again, and puts it in its place if it is what `sent` says.
    ///
    /// # Errors
    /// If it cannot be written, or is not the same.
    pub async fn finish(self, sent: &Seal) -> Result<(), Error> {
        self.store.take_snapshot(self.now)?;
        self.store.close().await?;
        drop(self.store);
        let mut export = MemoryExport::open(&self.beside, self.now)?;
        let mut found = Seal::default();
        while let Some(records) = export.next().await? {
            records.iter().for_each(|record| found.add(record));
        }
        export.close().await?;
        let differences = sent.differences(&found);
        if !differences.is_empty() {
            return Err(failed(format!("the copy is not the same: {}", differences.join("; "))));
        }
        let io = |error: std::io::Error| failed(format!("{}: {error}", self.path.display()));
        std::fs::rename(&self.beside, &self.path).map_err(io)
    }
}
