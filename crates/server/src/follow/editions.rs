//! What streams that show the same jobs share: moves in a contract's words, read and written once,
//! by the first stream that gets to them. Streams go from the end of one edition to the end of the
//! next, so whoever follows the newest moves finds them on the shelf; whoever comes from behind
//! joins the others as soon as it meets them. What is kept is bounded; what is not is made again.

use super::Tell;
use crate::limits::{SHARED_BYTES_MAX, SHARED_PIECE_BYTES_MAX, STREAM_PAGE, STREAM_READ_MS_MIN};
use crate::write::Out;
use bytes::Bytes;
use foldhash::fast::RandomState;
use mainspring_engine::store::{LoggedMove, Scope};
use mainspring_engine::{Engine, Error};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// Editions kept of one view.
const EDITIONS_MAX: usize = 128;

const READ_EVERY: Duration = Duration::from_millis(STREAM_READ_MS_MIN);

/// Which words, about whose jobs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The contract's name.
    pub(crate) words: &'static str,
    pub(crate) scope: Scope,
}

/// All views that a stream shows.
pub(crate) struct Editions {
    /// Turns are counted from here on.
    pub(crate) epoch: Instant,
    views: Mutex<HashMap<Key, Weak<View>, RandomState>>,
    pub(crate) work: Arc<Work>,
    /// Streams that were ever opened, by which they take turns.
    opened: AtomicU64,
}

/// How much was done for streams, ever.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Times that a stream came to see whether there is anything for it.
    pub(crate) turns: AtomicU64,
    /// Reads of the store.
    pub(crate) reads: AtomicU64,
    /// Moves put into words.
    pub(crate) moves: AtomicU64,
}

/// What one contract shows of the jobs in one scope.
pub(crate) struct View {
    scope: Scope,
    /// Held by the one who makes the next edition.
    teller: tokio::sync::Mutex<Box<dyn Tell>>,
    shelf: Mutex<Shelf>,
    work: Arc<Work>,
}

#[derive(Default)]
struct Shelf {
    editions: VecDeque<Edition>,
    bytes: usize,
    /// When the store was read last.
    read_at: Option<Instant>,
    /// How many reads have begun.
    begun: u64,
    /// After which position one of them found nothing, and which one.
    nothing: Option<(u64, u64)>,
}

/// What moved after one position, up to another.
#[derive(Debug, Clone)]
struct Edition {
    after: u64,
    until: u64,
    bytes: Bytes,
    /// Whether there was more to read.
    is_more: bool,
}

/// What a stream has to send.
pub(crate) struct Piece {
    /// Empty if nothing that moved is in scope.
    pub(crate) bytes: Bytes,
    pub(crate) until: u64,
    /// Whether there is more already.
    pub(crate) is_more: bool,
}

impl Editions {
    pub(crate) fn new() -> Self {
        Editions {
            epoch: Instant::now(),
            views: Mutex::default(),
            work: Arc::default(),
            opened: AtomicU64::new(0),
        }
    }

    /// The view that streams of this kind share, and the number of this one among all streams.
    pub(crate) fn view(&self, key: Key, teller: fn() -> Box<dyn Tell>) -> (Arc<View>, u64) {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = views.get(&key).and_then(Weak::upgrade) {
            return (view, number);
        }
        views.retain(|_, view| view.strong_count() > 0);
        let view = Arc::new(View {
            scope: key.scope.clone(),
            teller: tokio::sync::Mutex::new(teller()),
            shelf: Mutex::default(),
            work: self.work.clone(),
        });
        views.insert(key, Arc::downgrade(&view));
        (view, number)
    }
}

impl View {
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// How many reads have begun so far.
    pub(crate) fn begun(&self) -> u64 {
        self.shelf().begun
    }

    /// What moved after a position; nothing if that is nothing yet. A look of somebody else will
    /// do if it is not among the reads that had `begun` before. Where streams take turns the store
    /// is not read in every one of them: an empty piece then tells nothing of what there is.
    pub(crate) async fn after(
        self: &Arc<Self>,
        engine: &Engine,
        position: u64,
        begun: u64,
        is_in_turn: bool,
    ) -> Result<Option<Piece>, Error> {
        self.work.turns.fetch_add(1, Ordering::Relaxed);
        if let Some(piece) = self.shelf().from(position) {
            return Ok(Some(piece));
        }
        let mut teller = self.teller.lock().await;
        if let Some(piece) = self.shelf().from(position) {
            return Ok(Some(piece));
        }
        let is_later = |(at, number): (u64, u64)| at == position && number > begun;
        if self.shelf().nothing.is_some_and(is_later) {
            return Ok(None);
        }
        let began = Instant::now();
        let is_soon = |at: Instant| began.duration_since(at) < READ_EVERY;
        if is_in_turn && self.shelf().read_at.is_some_and(is_soon) {
            return Ok(Some(Piece { bytes: Bytes::new(), until: position, is_more: false }));
        }
        let number = self.shelf().begins(began);
        self.work.reads.fetch_add(1, Ordering::Relaxed);
        let page = engine.moves_after(position, STREAM_PAGE, Duration::ZERO).await?;
        if page.moves.is_empty() && !page.has_gap {
            self.shelf().nothing = Some((position, number));
            return Ok(None);
        }
        let mut edition = Edition {
            after: position,
            until: page.newest,
            bytes: Bytes::new(),
            is_more: page.moves.len() >= STREAM_PAGE,
        };
        if page.has_gap {
            let mut out = Out::sized(64);
            super::write_reset(page.newest, &mut out);
            edition.bytes = out.0.into();
        } else {
            self.tell(&mut **teller, engine, &page.moves, &mut edition).await?;
        }
        let (bytes, until, is_more) = (edition.bytes.clone(), edition.until, edition.is_more);
        // Kept for others only: the reference in hand is this stream's own.
        if Arc::strong_count(self) > 1 {
            self.shelf().put(edition);
        }
        Ok(Some(Piece { bytes, until, is_more }))
    }

    /// Writes an edition that ends where others have gone on, if it gets that far.
    async fn tell(
        &self,
        teller: &mut dyn Tell,
        engine: &Engine,
        moves: &[LoggedMove],
        edition: &mut Edition,
    ) -> Result<(), Error> {
        let last = moves.last().map_or(edition.after, |last| last.position);
        let meeting = self.shelf().meeting(edition.after, last);
        edition.is_more |= meeting.is_some();
        edition.until = meeting.unwrap_or(last);
        let covered = |logged: &&LoggedMove| {
            logged.position <= edition.until && self.scope.covers(&logged.tenant, &logged.user)
        };
        let moves: Vec<&LoggedMove> = moves.iter().filter(covered).collect();
        let mut out = Out::sized(512 * moves.len());
        teller.tell(engine, &moves, &mut out).await?;
        self.work.moves.fetch_add(moves.len() as u64, Ordering::Relaxed);
        edition.bytes = out.0.into();
        Ok(())
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    /// A read begins; its number.
    fn begins(&mut self, at: Instant) -> u64 {
        (self.read_at, self.begun) = (Some(at), self.begun + 1);
        self.begun
    }

    /// Everything from a position on, as one piece; a large rest is left for later.
    fn from(&self, position: u64) -> Option<Piece> {
        let first = self.editions.iter().find(|edition| edition.after == position)?;
        let (mut all, mut bytes, mut last) = (vec![&first.bytes], first.bytes.len(), first);
        while let Some(next) = self.editions.iter().find(|next| next.after == last.until) {
            if bytes + next.bytes.len() > SHARED_PIECE_BYTES_MAX {
                return Some(Piece { bytes: joined(&all), until: last.until, is_more: true });
            }
            bytes += next.bytes.len();
            all.push(&next.bytes);
            last = next;
        }
        Some(Piece { bytes: joined(&all), until: last.until, is_more: last.is_more })
    }

    /// The next place after `after`, up to `last`, from which others have gone on.
    fn meeting(&self, after: u64, last: u64) -> Option<u64> {
        let places = self.editions.iter().map(|edition| edition.after);
        places.filter(|place| *place > after && *place <= last).min()
    }

    fn put(&mut self, edition: Edition) {
        self.bytes += edition.bytes.len();
        self.editions.push_back(edition);
        while self.bytes > SHARED_BYTES_MAX || self.editions.len() > EDITIONS_MAX {
            let Some(oldest) = self.editions.pop_front() else { return };
            self.bytes -= oldest.bytes.len();
        }
    }
}

/// Several pieces as one; of those that say nothing, nothing is left.
fn joined(pieces: &[&Bytes]) -> Bytes {
    let mut telling = pieces.iter().filter(|piece| !piece.is_empty());
    match (telling.next(), telling.next()) {
        (None, _) => Bytes::new(),
        (Some(only), None) => (*only).clone(),
        (Some(_), Some(_)) => {
            let mut all = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
            pieces.iter().for_each(|piece| all.extend_from_slice(piece));
            all.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edition(after: u64, until: u64, bytes: usize) -> Edition {
        Edition { after, until, bytes: vec![b'x'; bytes].into(), is_more: false }
    }

    #[test]
    fn a_row_of_editions_is_one_piece_as_far_as_it_goes() {
        let mut shelf = Shelf::default();
        for (after, until, bytes) in [(5, 9, 3), (9, 12, 0), (12, 13, 4), (20, 22, 1)] {
            shelf.put(edition(after, until, bytes));
        }
        let piece = shelf.from(5).unwrap();
        assert_eq!((piece.until, piece.bytes.len(), piece.is_more), (13, 7, false));
        assert_eq!(shelf.from(9).unwrap().bytes.len(), 4);
        assert!(shelf.from(13).is_none() && shelf.from(6).is_none());
        shelf.put(edition(13, 14, SHARED_PIECE_BYTES_MAX));
        let piece = shelf.from(5).unwrap();
        assert_eq!((piece.until, piece.is_more), (13, true), "the rest is too much for one piece");
        assert_eq!(shelf.from(13).unwrap().until, 14, "but not by itself");
    }

    #[test]
    fn whoever_comes_from_behind_joins_where_others_went_on() {
        let mut shelf = Shelf::default();
        shelf.put(edition(10, 20, 1));
        shelf.put(edition(20, 30, 1));
        assert_eq!(shelf.meeting(3, 40), Some(10), "the rest is written already");
        assert_eq!(shelf.meeting(10, 40), Some(20));
        assert_eq!((shelf.meeting(20, 40), shelf.meeting(3, 9)), (None, None));
    }

    #[test]
    fn what_is_kept_is_bounded_in_bytes_and_in_number() {
        let mut shelf = Shelf::default();
        for n in 0..10 * EDITIONS_MAX as u64 {
            shelf.put(edition(n, n + 1, 1));
        }
        assert_eq!((shelf.editions.len(), shelf.bytes), (EDITIONS_MAX, EDITIONS_MAX));
        shelf.put(edition(5_000, 5_001, SHARED_BYTES_MAX));
        assert_eq!((shelf.editions.len(), shelf.bytes), (1, SHARED_BYTES_MAX));
        shelf.put(edition(5_001, 5_002, SHARED_BYTES_MAX + 1));
        assert_eq!((shelf.editions.len(), shelf.bytes), (0, 0), "one that is too large is not");
    }
}
