//! A connection that does not wait for ever: the head of a request must arrive within one limit,
//! the next request within another. hyper has one timer for both, and an idle worker is no attack.
//! The limit on idleness is a loose one, up to twice as long, so that a request costs no timer.

use hyper::rt::{Read, ReadBufCursor, Write};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// What the connection learns from its requests.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Whether a request is being answered.
    is_busy: AtomicBool,
    /// How many requests there were.
    requests: AtomicU32,
}

/// Held while a request is answered, its body's last byte included.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Pace>);

impl Pace {
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.is_busy.store(true, Ordering::Relaxed);
        Busy(self.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.is_busy.store(false, Ordering::Relaxed);
    }
}

/// How long a client may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) head: Duration,
    pub(crate) idle: Duration,
}

/// A connection with limits.
pub(crate) struct Paced<T> {
    inner: T,
    pace: Arc<Pace>,
    patience: Patience,
    /// When the client has to have done what it is waited for; `None` while a request is answered.
    deadline: Option<Instant>,
    /// Whether part of a head has arrived.
    has_head_begun: bool,
    /// The requests there were when `deadline` was set.
    requests: u32,
    timer: Pin<Box<Sleep>>,
}

impl<T> Paced<T> {
    pub(crate) fn new(inner: T, pace: Arc<Pace>, patience: Patience) -> Self {
        // A fresh connection has to say something at once.
        let deadline = Instant::now() + patience.head;
        Paced {
            inner,
            pace,
            patience,
            deadline: Some(deadline),
            has_head_begun: false,
            requests: 0,
            timer: Box::pin(sleep_until(deadline)),
        }
    }

    fn arrived(&mut self) {
        let requests = self.pace.requests.load(Ordering::Relaxed);
        if self.pace.is_busy.load(Ordering::Relaxed) {
            return;
        }
        if !self.has_head_begun || requests != self.requests {
            self.has_head_begun = true;
            self.requests = requests;
            self.deadline = Some(Instant::now() + self.patience.head);
        }
    }

    /// Whether the client has been waited for long enough.
    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        if self.pace.is_busy.load(Ordering::Relaxed) {
            // hyper need not read again when the answer is sent, so the timer has to be running
            // by then: it rings at some time and finds out whether the connection is idle.
            self.deadline = None;
            while self.timer.as_mut().poll(cx).is_ready() {
                self.timer.as_mut().reset(Instant::now() + self.patience.idle);
            }
            return false;
        }
        let requests = self.pace.requests.load(Ordering::Relaxed);
        if requests != self.requests {
            self.requests = requests;
            self.has_head_begun = false;
            self.deadline = None;
        }
        let idle = self.patience.idle;
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + idle);
        // The timer may stand earlier than needed: it is moved when it rings, not every time.
        if deadline < self.timer.deadline() {
            self.timer.as_mut().reset(deadline);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.timer.deadline() >= deadline {
                return true;
            }
            self.timer.as_mut().reset(deadline);
        }
        false
    }
}

impl<T: Read + Unpin> Read for Paced<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.inner).poll_read(cx, buf) {
            Poll::Ready(outcome) => {
                self.arrived();
                Poll::Ready(outcome)
            }
            Poll::Pending if self.is_late(cx) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client is too slow")))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: Write + Unpin> Write for Paced<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }
}
