//! The way of one server to a store that several share: it takes time, it can be cut, and hints of
//! what one server did reach the others late or never.

use mainspring_store::{Error, News};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// What all the ways have in common.
pub trait Network: Send + Sync {
    /// How long the next message takes, in microseconds.
    fn delay(&self) -> u64;
    /// Whether the next hint arrives.
    fn is_hint_heard(&self) -> bool;
}

/// One server's way.
pub struct Link {
    network: Arc<dyn Network>,
    is_cut: AtomicBool,
    /// Whatever is under way takes this much longer, in microseconds.
    stall: AtomicU64,
    news: Mutex<Option<Arc<dyn News>>>,
    others: Mutex<Vec<Weak<Link>>>,
}

impl Link {
    /// A way of its own.
    pub fn new(network: Arc<dyn Network>) -> Arc<Self> {
        Arc::new(Link {
            network,
            is_cut: AtomicBool::new(false),
            stall: AtomicU64::new(0),
            news: Mutex::new(None),
            others: Mutex::new(Vec::new()),
        })
    }

    /// Lets hints of this one's doings go to `other`.
    pub fn join(&self, other: &Arc<Link>) {
        self.others.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(other));
    }

    /// The server is dead to the store from now on.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// The next messages take this much longer: the server stands still.
    pub fn stall(&self, time: Duration) {
        self.stall.store(u64::try_from(time.as_micros()).unwrap_or(0), Ordering::Relaxed);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// A message is under way.
    pub(super) async fn travel(&self) -> Result<(), Error> {
        let micros = self.network.delay() + self.stall.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_micros(micros)).await;
        if self.is_cut() { Err(Error::Stopped) } else { Ok(()) }
    }

    pub(super) fn watch(&self, news: Arc<dyn News>) {
        *self.news.lock().unwrap_or_else(PoisonError::into_inner) = Some(news);
    }

    /// The others may hear that something happened.
    pub(super) fn hint(&self) {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for other in others.iter().filter_map(Weak::upgrade) {
            if self.network.is_hint_heard() {
                other.look();
            }
        }
    }

    /// Whoever is at this end looks again.
    pub fn look(&self) {
        let news = self.news.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(news) = news.filter(|_| !self.is_cut()) {
            news.work();
            news.moved();
            news.timers();
        }
    }
}
