//! `MANIFEST`: which files make up the store, replaced as a whole.
//!
//! The one file whose name is fixed; everything it names is durable before it is written, and
//! nothing is deleted before the manifest that forgets it is durable. Must never be edited in
//! place. Read next: `snapshot.rs`, `archive.rs`.

use crate::bytes::{Fields, checksum, publish, read_exact, temporary};
use crate::disk::Disk;
use crate::error::FileError;

/// Where the manifest lives in the data directory.
pub const NAME: &str = "MANIFEST";

const MAGIC: &[u8; 8] = b"MSMANIFS";
const VERSION: u32 = 1;
const HEADER: usize = 20;
/// A larger one is not ours: names are short and runs are merged long before.
const BYTES_MAX: u64 = 16 << 20;

/// The files of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Identity of the store, chosen once.
    pub store_uuid: [u8; 16],
    /// Snapshot to load before the journal, if there is one yet.
    pub snapshot: Option<String>,
    /// Journal segment where replay starts.
    pub first_segment: u64,
    /// Archive runs, oldest first: the order decides which of two equal keys counts.
    pub runs: Vec<String>,
}

impl Manifest {
    /// Reads the manifest; `None` when the directory has none, that is, holds no store yet.
    ///
    /// # Errors
    /// `Io`, or `Damaged` when the file is not what was written.
    pub fn load(disk: &dyn Disk) -> Result<Option<Self>, FileError> {
        let names = disk.list().map_err(|source| FileError::io("list", "the directory", source))?;
        if !names.iter().any(|name| name == NAME) {
            return Ok(None);
        }
        let failed = |source| FileError::io("read", NAME, source);
        let file = disk.open_read(NAME).map_err(failed)?;
        let size = file.size().map_err(failed)?;
        if size > BYTES_MAX {
            return Err(FileError::damaged(NAME, BYTES_MAX, "the manifest is too large"));
        }
        let bytes = read_exact(file.as_ref(), NAME, 0, size as usize)?;
        decode(&bytes)
            .map(Some)
            .ok_or_else(|| FileError::damaged(NAME, 0, "the manifest is invalid"))
    }

    /// Replaces the manifest; when this returns, the new one survives a crash. After an error
    /// either may be found.
    ///
    /// # Errors
    /// When a step of the replacement fails.
    pub fn store(&self, disk: &dyn Disk) -> Result<(), FileError> {
        let temporary = temporary(NAME);
        let file = disk
            .create(&temporary)
            .map_err(|source| FileError::io("create", &temporary, source))?;
        file.write_at(0, &self.encode())
            .and_then(|()| file.sync_data())
            .map_err(|source| FileError::io("write", &temporary, source))?;
        publish(disk, NAME)
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = self.store_uuid.to_vec();
        body.extend_from_slice(&self.first_segment.to_le_bytes());
        // A snapshot has a name, so the empty name stands for none.
        put_name(&mut body, self.snapshot.as_deref().unwrap_or_default());
        body.extend_from_slice(&(self.runs.len() as u32).to_le_bytes());
        for run in &self.runs {
            put_name(&mut body, run);
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        let sum = checksum(&[&bytes, &body]);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }
}

fn put_name(body: &mut Vec<u8>, name: &str) {
    body.extend_from_slice(&(name.len() as u32).to_le_bytes());
    body.extend_from_slice(name.as_bytes());
}

fn take_name(fields: &mut Fields<'_>) -> Option<String> {
    let length = fields.u32()? as usize;
    String::from_utf8(fields.take(length)?.to_vec()).ok()
}

fn decode(bytes: &[u8]) -> Option<Manifest> {
    let mut fields = Fields(bytes);
    let is_ours = fields.take(8)? == MAGIC && fields.u32()? == VERSION;
    let length = fields.u32()? as usize;
    let sum = fields.u32()?;
    let is_whole =
        fields.0.len() == length && sum == checksum(&[&bytes[..HEADER - 4], &bytes[HEADER..]]);
    if !is_ours || !is_whole {
        return None;
    }
    let store_uuid = fields.array()?;
    let first_segment = fields.u64()?;
    let snapshot = Some(take_name(&mut fields)?).filter(|name| !name.is_empty());
    let count = fields.u32()?;
    let runs = (0..count).map(|_| take_name(&mut fields)).collect::<Option<Vec<_>>>()?;
    fields.0.is_empty().then_some(Manifest { store_uuid, snapshot, first_segment, runs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;
    use crate::disk::sim::Faults;

    fn manifest(first_segment: u64) -> Manifest {
        let runs = vec!["archive-1.run".to_owned(), "archive-2.run".to_owned()];
        let snapshot = (first_segment > 1).then(|| "snap".to_owned());
        Manifest { store_uuid: [7; 16], snapshot, first_segment, runs }
    }

    #[test]
    fn what_was_stored_is_loaded_and_damage_is_refused() {
        let disk = SimDisk::new();
        assert_eq!(Manifest::load(&disk).unwrap(), None);
        for first_segment in [1, 9] {
            manifest(first_segment).store(&disk).unwrap();
            assert_eq!(Manifest::load(&disk).unwrap(), Some(manifest(first_segment)));
        }
        let whole = disk.contents(NAME).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            disk.overwrite(NAME, bytes);
            assert!(Manifest::load(&disk).is_err(), "bit {bit}");
            disk.overwrite(NAME, whole[..bit / 8].to_vec());
            assert!(Manifest::load(&disk).is_err(), "size {}", bit / 8);
        }
    }

    #[test]
    fn a_crash_leaves_the_old_manifest_or_the_new_one() {
        for changes in 0..6 {
            let disk = SimDisk::new();
            manifest(1).store(&disk).unwrap();
            disk.set_faults(Faults { power_off_after: Some(changes), ..Faults::default() });
            let is_stored = manifest(2).store(&disk).is_ok();
            for choice in disk.crash_choices(20, changes) {
                let found = Manifest::load(&disk.crash(choice)).unwrap().unwrap();
                let is_known = found == manifest(2) || (!is_stored && found == manifest(1));
                assert!(is_known, "{changes} {choice:?}");
            }
        }
    }
}
