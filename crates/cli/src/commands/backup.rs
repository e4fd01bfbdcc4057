//! `mainspring backup` and `mainspring restore`: the memory store's files to somewhere else, while
//! a server uses them, and back into a directory of their own.

use crate::config::layers::process_environment;
use crate::exit::{self, usage};
use crate::output::{Output, say, say_json};
use crate::progress::Progress;
use crate::session::DATA_DIR_DEFAULT;
use anyhow::{Context, bail};
use indicatif::{HumanBytes, HumanCount};
use mainspring_engine::{Clock, SystemClock};
use mainspring_store::Store;
use mainspring_store_memory::backup::{self, BackupError};
use mainspring_store_memory::disk::{DirLock, Disk, RealDisk};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use serde_json::json;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What to copy, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// A directory that does not exist yet
    to: PathBuf,
    /// The data directory; a server may be using it [default: ./mainspring-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// What to bring back, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// A directory that `backup` made
    from: PathBuf,
    /// The new data directory: it does not exist yet, or is empty
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

/// The audit trail's anchor, where the configuration does not say otherwise.
const ANCHOR: &str = "audit.anchor";
/// Nothing is dropped on the way, however old.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

pub(crate) fn take(args: BackupArgs, output: Output) -> anyhow::Result<u8> {
    let from = args.data_dir.or_else(|| process_environment("MAINSPRING_DATA_DIR").map(Into::into));
    let from = from.unwrap_or_else(|| DATA_DIR_DEFAULT.into());
    if !from.is_dir() {
        return Err(usage(format!("there is no directory {}", from.display())));
    }
    if args.to.exists() {
        return Err(usage(format!("{} exists already; name a new directory", args.to.display())));
    }
    let draft = Draft::begin(&args.to, "partial")?;
    // Before the journal: what is noted here is in it.
    let beside = copy_anchor(&from, &draft.path)?;
    let source = RealDisk::open(&from).with_context(|| format!("cannot use {}", from.display()))?;
    let bar = Progress::of_bytes("copying", output);
    let taken = backup::take(&source, &draft.disk, &beside, &mut |done, all| bar.at(done, all));
    drop(bar);
    let taken = match taken {
        Err(BackupError::NoStore) => {
            return Err(usage(format!(
                "there is no memory store in {}; back PostgreSQL up with pg_dump",
                from.display()
            )));
        }
        taken => taken.with_context(|| format!("cannot copy {}", from.display()))?,
    };
    draft.publish(&args.to)?;
    match output {
        Output::Json => say_json(&json!({
            "to": args.to.display().to_string(),
            "files": taken.files, "bytes": taken.bytes, "frames": taken.frames,
        })),
        Output::Table => say(&format!(
            "copied {} files, {}, to {}",
            HumanCount(taken.files),
            HumanBytes(taken.bytes),
            args.to.display()
        )),
    }
    Ok(exit::OK)
}

pub(crate) async fn restore(args: RestoreArgs, output: Output) -> anyhow::Result<u8> {
    if !args.from.is_dir() {
        return Err(usage(format!("there is no directory {}", args.from.display())));
    }
    let is_empty = match std::fs::read_dir(&args.data_dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(error).context(args.data_dir.display().to_string()),
    };
    if !is_empty {
        return Err(usage(format!(
            "{} is not empty; name a new directory, or move what is there away",
            args.data_dir.display()
        )));
    }
    let shown = args.from.display();
    let source = RealDisk::open(&args.from).with_context(|| format!("cannot use {shown}"))?;
    let files = backup::verify(&source).with_context(|| format!("{shown} cannot be used"))?;
    let mut draft = Draft::begin(&args.data_dir, "restoring")?;
    let bar = Progress::of_bytes("restoring", output);
    backup::restore(&source, &draft.disk, &files, &mut |done, all| bar.at(done, all))?;
    drop(bar);
    let recovery = open_once(&mut draft).await.context("the restored files do not open")?;
    draft.publish(&args.data_dir)?;
    let (jobs, running) = (recovery.jobs, recovery.running);
    match output {
        Output::Json => say_json(&json!({
            "data_dir": args.data_dir.display().to_string(), "files": files.len(),
            "jobs": jobs, "running": running, "entities": recovery.entities,
            "frames": recovery.frames,
        })),
        Output::Table => {
            say(&format!(
                "restored {} jobs that have not ended ({} running) and {} entities from {} files",
                HumanCount(jobs),
                HumanCount(running),
                HumanCount(recovery.entities),
                HumanCount(files.len() as u64)
            ));
            say(&format!("start it with: mainspring serve --data-dir {}", args.data_dir.display()));
            say("the admin token is the one of then; MAINSPRING_ADMIN_TOKEN sets another");
        }
    }
    Ok(exit::OK)
}

/// Opens the store as a server would: then it is known that a server can.
async fn open_once(draft: &mut Draft) -> anyhow::Result<mainspring_store::Recovery> {
    let config = MemoryConfig {
        keep_finished: FOR_EVER,
        keep_items: FOR_EVER,
        keep_stream: FOR_EVER,
        ..MemoryConfig::standard(1)
    };
    // The store wants it for itself.
    draft.lock = None;
    let disk = Arc::new(RealDisk::open(&draft.path)?);
    let store = MemoryStore::open(disk, config, SystemClock::new().now())?;
    let recovery = store.health().recovery;
    store.close().await?;
    Ok(recovery)
}

fn copy_anchor(from: &Path, to: &Path) -> anyhow::Result<Vec<&'static str>> {
    let copied = std::fs::read(from.join(ANCHOR)).and_then(|text| {
        let path = to.join(ANCHOR);
        std::fs::write(&path, text)?;
        File::open(path)?.sync_all()
    });
    match copied {
        Ok(()) => Ok(vec![ANCHOR]),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).context("cannot copy the anchor of the audit trail"),
    }
}

/// A directory in the making, beside the place where it shall be: whoever is killed leaves nothing
/// behind that could be taken for the whole.
struct Draft {
    path: PathBuf,
    disk: RealDisk,
    lock: Option<DirLock>,
    is_done: bool,
}

impl Draft {
    fn begin(target: &Path, suffix: &str) -> anyhow::Result<Self> {
        let Some(name) = target.file_name() else {
            return Err(usage(format!("{} is no name of a directory", target.display())));
        };
        let mut name = name.to_owned();
        name.push(format!(".{suffix}"));
        let path = target.with_file_name(name);
        // What a killed one left; a living one has it locked.
        let disk = RealDisk::open(&path)
            .with_context(|| format!("cannot make the directory {}", path.display()))?;
        let Some(lock) = disk.try_lock()? else {
            bail!("another process is writing {}", path.display());
        };
        for name in disk.list()? {
            disk.remove(&name).with_context(|| format!("cannot remove {name} of a broken try"))?;
        }
        Ok(Draft { path, disk, lock: Some(lock), is_done: false })
    }

    /// Gives it its name.
    fn publish(mut self, target: &Path) -> anyhow::Result<()> {
        self.disk.sync_dir()?;
        // An empty directory may be there: it is replaced.
        std::fs::rename(&self.path, target)
            .with_context(|| format!("cannot rename {}", self.path.display()))?;
        self.is_done = true;
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
