//! A future that is looked at only when it has rung. What ends a connection from outside happens
//! once in its life; to be asked at every step of every request, it would take a lock each time.

use futures_util::task::AtomicWaker;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Ends as what it holds does.
pub(crate) struct Rung<F> {
    held: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// What the held future wakes: it notes that it did, and wakes the task.
struct Bell {
    has_rung: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_rung.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<F: Future> Rung<F> {
    pub(crate) fn new(held: F) -> Self {
        // The first look is owed.
        let bell = Bell { has_rung: AtomicBool::new(true), task: AtomicWaker::new() };
        let bell = Arc::new(bell);
        Rung { held: Box::pin(held), waker: Waker::from(bell.clone()), bell }
    }
}

impl<F: Future> Future for Rung<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Before the look at the flag, so that no ring in between is missed.
        self.bell.task.register(cx.waker());
        if !self.bell.has_rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let this = &mut *self;
        this.held.as_mut().poll(&mut Context::from_waker(&this.waker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::cell::Cell;
    use std::future::poll_fn;

    #[tokio::test]
    async fn it_is_looked_at_once_and_again_when_it_rings() {
        let (looks, bell) = (Cell::new(0), tokio::sync::Notify::new());
        let mut rung = std::pin::pin!(bell.notified());
        let held = poll_fn(|cx| {
            looks.set(looks.get() + 1);
            rung.as_mut().poll(cx)
        });
        let mut outer = Rung::new(held);
        for _ in 0..3 {
            assert_eq!((&mut outer).now_or_never(), None);
        }
        assert_eq!(looks.get(), 1);
        bell.notify_waiters();
        outer.await;
        assert_eq!(looks.get(), 2);
    }
}
