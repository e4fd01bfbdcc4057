//! Workers that go. A pull that waits keeps its place until its time is over or its caller is gone,
//! and a caller that goes while the answer is on its way loses the jobs in it. A worker that means
//! to stop says so instead: its waiting pulls come back at once, with what they got until then.

use mainspring_kernel::{TenantId, WorkerId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

type Who = (Option<TenantId>, WorkerId);

/// The pulls that wait, by who asked.
#[derive(Debug, Default)]
pub(crate) struct Leaving(Mutex<HashMap<Who, (Arc<Notify>, usize)>>);

/// One pull that waits. Forgotten when dropped.
pub(crate) struct Stay<'a> {
    leaving: &'a Leaving,
    who: Who,
    bell: Arc<Notify>,
}

impl Leaving {
    /// Notes that `who` waits.
    pub(crate) fn stay(&self, who: Who) -> Stay<'_> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (bell, count) = all.entry(who.clone()).or_default();
        *count += 1;
        Stay { leaving: self, bell: bell.clone(), who }
    }

    /// Sends home every pull of `who` that waits now.
    pub(crate) fn leave(&self, who: &Who) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((bell, _)) = all.get(who) {
            bell.notify_waiters();
        }
    }
}

impl Stay<'_> {
    /// Ready when the worker leaves. Listens from the first poll on.
    pub(crate) async fn is_over(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        let mut all = self.leaving.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = all.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.who);
            }
        }
    }
}
