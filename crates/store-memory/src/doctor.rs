//! Looking at the files of a store, also beside a server that uses them: every block of every file
//! that the manifest names is read, and everything that is not what was written is told with its
//! place. Changes nothing. The journal is not looked at: it is checked whole at every start, and
//! its end moves while a server runs.

use crate::archive::open_run;
use crate::disk::Disk;
use crate::error::FileError;
use crate::manifest::Manifest;
use crate::snapshot::SnapshotReader;
use mainspring_store::record::{Names, decode_job, records_of};

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    /// Files read.
    pub files: u64,
    /// Blocks and chunks in them.
    pub blocks: u64,
    /// What is wrong, each with its file and place.
    pub damage: Vec<FileError>,
}

/// A server replaces files while it runs: then it is looked again, at most this often.
const LOOKS_MAX: usize = 10;

/// Reads everything the manifest names.
///
/// # Errors
/// If the directory or the manifest cannot be read.
pub fn examine(disk: &dyn Disk) -> Result<Report, FileError> {
    let mut manifest = Manifest::load(disk)?;
    for _ in 0..LOOKS_MAX {
        let report = look(disk, manifest.as_ref());
        let newer = Manifest::load(disk)?;
        let has_missing = report.damage.iter().any(FileError::is_missing);
        if !has_missing || newer == manifest {
            return Ok(report);
        }
        manifest = newer;
    }
    Ok(look(disk, manifest.as_ref()))
}

fn look(disk: &dyn Disk, manifest: Option<&Manifest>) -> Report {
    let mut report = Report::default();
    let Some(manifest) = manifest else { return report };
    if let Some(name) = &manifest.snapshot {
        report.files += 1;
        if let Err(error) = snapshot(disk, name, &mut report.blocks) {
            report.damage.push(error);
        }
    }
    for name in &manifest.runs {
        report.files += 1;
        match open_run(disk, name) {
            Ok(run) => {
                let found = run.examine(&mut |record| {
                    decode_job(&record.value, &mut Names::default())
                        .map(drop)
                        .map_err(|bad| bad.to_string())
                });
                report.blocks += found.blocks;
                report.damage.extend(found.damage);
            }
            Err(error) => report.damage.push(error),
        }
    }
    report
}

/// The first contradiction ends it: nothing after it can be used either.
fn snapshot(disk: &dyn Disk, name: &str, blocks: &mut u64) -> Result<(), FileError> {
    let mut reader = SnapshotReader::open(disk, name)?;
    let mut names = Names::default();
    loop {
        let at = reader.position();
        let Some(chunk) = reader.next_chunk()? else { return Ok(()) };
        *blocks += 1;
        if let Some(Err(bad)) = records_of(chunk, &mut names).find(Result::is_err) {
            return Err(FileError::damaged(name, at, bad.to_string()));
        }
    }
}
