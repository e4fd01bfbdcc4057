//! Power cuts for the real binary. A kill alone proves little, because the kernel still writes what
//! the process had not synced. The shim (`shim.c`, built on the spot) notes the block in flight,
//! and [`Shim::tear`] takes back some or all of its sectors.

use crate::rng::Rng;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const SECTOR: u64 = 512;

/// The shim, and the note it keeps.
#[derive(Debug)]
pub struct Shim {
    library: PathBuf,
    note: PathBuf,
}

/// A block that was written and never acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The journal file.
    pub path: PathBuf,
    /// Where it begins.
    pub offset: u64,
    /// Its length.
    pub length: u64,
}

impl Shim {
    /// Builds the shim in `directory`.
    ///
    /// # Panics
    /// If there is no C compiler: without the shim the test would prove less than it says.
    pub fn build(directory: &Path) -> Self {
        let (source, library) = (directory.join("shim.c"), directory.join("shim.so"));
        std::fs::write(&source, include_str!("shim.c")).expect("writes");
        let built = Command::new("gcc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .status();
        assert!(built.is_ok_and(|status| status.success()), "gcc is needed to build the shim");
        let note = directory.join("note");
        std::fs::write(&note, [0; 4096]).expect("writes");
        Shim { library, note }
    }

    /// The environment of a server under the shim; the sync number `eio` fails, if not zero.
    pub fn environment(&self, eio: u64) -> Vec<(String, String)> {
        let path = |path: &Path| path.display().to_string();
        vec![
            ("LD_PRELOAD".to_owned(), path(&self.library)),
            ("MAINSPRING_SHIM_NOTE".to_owned(), path(&self.note)),
            ("MAINSPRING_SHIM_EIO".to_owned(), eio.to_string()),
        ]
    }

    /// The block in flight when the process ended.
    ///
    /// # Panics
    /// If the note cannot be read.
    pub fn pending(&self) -> Option<Pending> {
        let bytes = std::fs::read(&self.note).expect("the note");
        let number = |nth: usize| {
            let eight: [u8; 8] = bytes[8 * nth..8 * nth + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(eight)
        };
        let path: Vec<u8> = bytes[32..].iter().copied().take_while(|byte| *byte != 0).collect();
        let path = String::from_utf8(path).expect("a path").into();
        (number(0) == 1).then(|| Pending { path, offset: number(1), length: number(2) })
    }

    /// Syncs of journal blocks so far, over all lives since [`Shim::forget`].
    ///
    /// # Panics
    /// If the note cannot be read.
    pub fn syncs(&self) -> u64 {
        let bytes = std::fs::read(&self.note).expect("the note");
        u64::from_le_bytes(bytes[24..32].try_into().expect("eight bytes"))
    }

    /// Starts a new note.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn forget(&self) {
        std::fs::write(&self.note, [0; 4096]).expect("writes");
    }

    /// After a kill: takes back all or some sectors of the block in flight, as a power cut would.
    /// Answers how many bytes are gone; zero if nothing was in flight.
    ///
    /// # Panics
    /// If the journal cannot be written.
    pub fn tear(&self, rng: &mut Rng) -> u64 {
        let Some(Pending { path, offset, length }) = self.pending() else { return 0 };
        self.forget();
        let Ok(file) = OpenOptions::new().read(true).write(true).open(&path) else { return 0 };
        let (end, is_all, mut gone) = (offset + length, rng.chance(40), 0);
        let mut at = offset;
        while at < end {
            let until = ((at / SECTOR + 1) * SECTOR).min(end);
            if is_all || rng.chance(50) {
                let size = usize::try_from(until - at).expect("a sector");
                file.write_all_at(&vec![0; size], at).expect("the journal can be torn");
                gone += until - at;
            }
            at = until;
        }
        file.sync_all().expect("the journal can be synced");
        gone
    }
}
