//! The one source of chance: lease secrets, job ids, token secrets.

use mainspring_kernel::Timestamp;
use std::sync::{Mutex, PoisonError};

/// Where unguessable bits come from.
pub trait Entropy: Send + Sync + 'static {
    /// 128 fresh bits.
    fn bits(&self) -> u128;
}

/// The operating system's, fetched by the page because a grant of a thousand leases needs a
/// thousand secrets.
#[derive(Debug, Default)]
pub struct SystemEntropy(Mutex<Vec<u128>>);

/// How many values one call to the system brings.
const PAGE: usize = 256;

impl Entropy for SystemEntropy {
    fn bits(&self) -> u128 {
        let mut page = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if page.is_empty() {
            let mut bytes = [0u8; PAGE * 16];
            getrandom::fill(&mut bytes).expect("the operating system has a source of randomness");
            page.extend(bytes.as_chunks::<16>().0.iter().map(|chunk| u128::from_le_bytes(*chunk)));
        }
        page.pop().expect("the page was just filled")
    }
}

/// Makes job ids: version 7 layout, so that they sort by the time they were given, and strictly
/// rising within one process, so that newest-first lists are exact.
#[derive(Debug, Default)]
pub(crate) struct Ids(Mutex<(u64, u16)>);

impl Ids {
    pub(crate) fn next(&self, now: Timestamp, random: u128) -> u128 {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        *last = match *last {
            (at, order) if at >= millis && order < 0xfff => (at, order + 1),
            (at, _) if at >= millis => (at + 1, 0),
            _ => (millis, 0),
        };
        let (millis, order) = *last;
        let random = random & 0x3fff_ffff_ffff_ffff;
        (u128::from(millis & 0xffff_ffff_ffff) << 80)
            | (0x7 << 76)
            | (u128::from(order) << 64)
            | (0b10 << 62)
            | random
    }
}
