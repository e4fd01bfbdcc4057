//! Room for connections. When every seat is taken, the connection whose client has kept the server
//! waiting longest makes room; when none has, the newcomer sits on one of a few seats kept for
//! probes and operators. So clients that never read or never speak cannot shut anybody else out.
//! A connection whose request the server is working on is never put out.

use crate::paced::Pace;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// All seats.
pub(crate) struct Seats {
    most: usize,
    kept: usize,
    patience: Duration,
    inner: Mutex<Inner>,
    left: Notify,
}

#[derive(Default)]
struct Inner {
    taken: HashMap<u64, Arc<Pace>>,
    /// How many of them are kept ones.
    kept: usize,
    next: u64,
}

/// One seat; free again when dropped.
pub(crate) struct Seat {
    id: u64,
    pub(crate) pace: Arc<Pace>,
    seats: Arc<Seats>,
}

impl Seats {
    /// `most` seats and `kept` more for probes and operators; a client that is waited for longer
    /// than `patience` makes room for others.
    pub(crate) fn new(most: usize, kept: usize, patience: Duration) -> Arc<Self> {
        let (inner, left) = (Mutex::default(), Notify::new());
        Arc::new(Seats { most, kept, patience, inner, left })
    }

    /// A seat for a new connection, somebody else's if need be.
    pub(crate) fn take(self: &Arc<Self>, now: Instant) -> Option<Seat> {
        let mut inner = self.inner();
        let is_full = inner.taken.len() - inner.kept >= self.most;
        if !is_full || inner.put_out(Kept::No, self.patience, now) {
            return Some(self.seat(&mut inner, Kept::No, now));
        }
        // A probe says at once what it wants and is gone: whoever lingers here makes room.
        if inner.kept < self.kept || inner.put_out(Kept::Yes, Duration::ZERO, now) {
            return Some(self.seat(&mut inner, Kept::Yes, now));
        }
        None
    }

    /// Makes room although there are seats: the system has no more file handles.
    pub(crate) fn make_room(&self) -> bool {
        self.inner().put_out(Kept::No, Duration::ZERO, Instant::now())
    }

    /// Ends when nobody is left.
    pub(crate) async fn empty(&self) {
        loop {
            let left = self.left.notified();
            if self.inner().taken.is_empty() {
                return;
            }
            left.await;
        }
    }

    fn seat(self: &Arc<Self>, inner: &mut Inner, kept: Kept, now: Instant) -> Seat {
        let pace = Arc::new(Pace::new(kept == Kept::Yes, now));
        inner.next += 1;
        inner.kept += usize::from(kept == Kept::Yes);
        inner.taken.insert(inner.next, pace.clone());
        Seat { id: inner.next, pace, seats: self.clone() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

impl Inner {
    /// Puts out the connection that has been waited for longest, if that is long enough.
    fn put_out(&mut self, kept: Kept, patience: Duration, now: Instant) -> bool {
        let of_kind = |pace: &Pace| pace.is_kept() == (kept == Kept::Yes);
        let slow = self.taken.iter().filter(|(_, pace)| of_kind(pace)).filter_map(|(id, pace)| {
            pace.waited_for(now).filter(|waited| *waited >= patience).map(|waited| (waited, *id))
        });
        let Some((_, id)) = slow.max() else { return false };
        if let Some(pace) = self.remove(id) {
            pace.put_out();
        }
        true
    }

    fn remove(&mut self, id: u64) -> Option<Arc<Pace>> {
        let pace = self.taken.remove(&id)?;
        self.kept -= usize::from(pace.is_kept());
        Some(pace)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut inner = self.seats.inner();
        inner.remove(self.id);
        if inner.taken.is_empty() {
            self.seats.left.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_one_waited_for_longest_makes_room_and_the_busy_stay() {
        let seats = Seats::new(3, 1, Duration::from_secs(1));
        let now = Instant::now();
        let busy = seats.take(now).unwrap();
        let _answering = busy.pace.begin();
        let slowest = seats.take(now).unwrap();
        let slow = seats.take(now + Duration::from_secs(2)).unwrap();
        let now = now + Duration::from_millis(3_500);
        let newcomer = seats.take(now).unwrap();
        assert!(!newcomer.pace.is_kept());
        assert!(slowest.pace.is_out() && !slow.pace.is_out() && !busy.pace.is_out());
        let other = seats.take(now).unwrap();
        assert!(slow.pace.is_out() && !other.pace.is_kept());
        // Nobody has been waited for long enough: the kept seat is all there is.
        let probe = seats.take(now).unwrap();
        assert!(probe.pace.is_kept() && !newcomer.pace.is_out() && !other.pace.is_out());
        let next_probe = seats.take(now).unwrap();
        assert!(next_probe.pace.is_kept() && probe.pace.is_out());
        let _working = next_probe.pace.begin();
        assert!(seats.take(now).is_none(), "a kept seat that is worked for is not taken away");
    }

    #[tokio::test]
    async fn a_seat_is_free_when_its_connection_ends() {
        let seats = Seats::new(1, 0, Duration::from_secs(60));
        let only = seats.take(Instant::now()).unwrap();
        assert!(seats.take(Instant::now()).is_none());
        drop(only);
        assert!(seats.take(Instant::now()).is_some());
        tokio::time::timeout(Duration::from_secs(1), seats.empty()).await.unwrap();
    }
}
