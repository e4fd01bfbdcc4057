//! A connection that does not wait for ever: the head of a request must arrive within one limit,
//! the next request within another, and an answer must be taken at a least pace. hyper has one
//! timer for the first two and none for the third, and an idle worker is no attack.
//! The limit on idleness is a loose one, up to twice as long, so that a request costs no timer.

use crate::auth;
use crate::limits::WRITE_BYTES_PER_SEC_MIN;
use crate::shares::{Full, Holder, Share, Shares};
use hyper::rt::{Read, ReadBufCursor, Write};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};

/// What the connection learns from its requests, and others from the connection.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Whether a request is being answered.
    is_busy: AtomicBool,
    /// Whether the body of that request has not all arrived.
    is_reading: AtomicBool,
    /// Whether the client does not take what is written.
    is_stalled: AtomicBool,
    /// How many requests there were.
    requests: AtomicU32,
    /// When the connection was made.
    since: Instant,
    /// Milliseconds from then to the last sign of life.
    alive_ms: AtomicU64,
    /// Whether it sits on a seat kept for probes and operators.
    is_kept: bool,
    is_out: AtomicBool,
    out: Notify,
    /// Whose connection it is, as far as requests have told.
    holder: Mutex<Option<Share>>,
    /// The last token that was shown here.
    pub(crate) seen: auth::Seen,
}

/// Held while a request is answered, its body's last byte included.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Pace>);

impl Pace {
    pub(crate) fn new(is_kept: bool, since: Instant) -> Self {
        Pace {
            is_busy: AtomicBool::new(false),
            is_reading: AtomicBool::new(false),
            is_stalled: AtomicBool::new(false),
            requests: AtomicU32::new(0),
            since,
            alive_ms: AtomicU64::new(0),
            is_kept,
            is_out: AtomicBool::new(false),
            out: Notify::new(),
            holder: Mutex::default(),
            seen: auth::Seen::default(),
        }
    }

    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.is_busy.store(true, Ordering::Relaxed);
        self.lives();
        Busy(self.clone())
    }

    /// The client is waited for until the body of its request is here.
    pub(crate) fn reads(&self, is_reading: bool) {
        self.is_reading.store(is_reading, Ordering::Relaxed);
    }

    /// Whether only probes and operators are served here.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Counts the connection as its caller's; an earlier caller's count is given back.
    pub(crate) fn belongs_to(&self, holder: Holder, shares: &Arc<Shares>) -> Result<(), Full> {
        let mut held = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        if held.as_ref().is_none_or(|held| *held.holder() != holder) {
            held.take();
            *held = Some(shares.take(holder, 1)?);
        }
        Ok(())
    }

    /// For how long the client has been waited for; nothing while it is the client that waits.
    pub(crate) fn waited_for(&self, now: Instant) -> Option<Duration> {
        let is_ours = self.is_busy.load(Ordering::Relaxed)
            && !self.is_reading.load(Ordering::Relaxed)
            && !self.is_stalled.load(Ordering::Relaxed);
        let alive = Duration::from_millis(self.alive_ms.load(Ordering::Relaxed));
        (!is_ours).then(|| now.saturating_duration_since(self.since + alive))
    }

    pub(crate) fn put_out(&self) {
        self.is_out.store(true, Ordering::Relaxed);
        self.out.notify_one();
    }

    #[cfg(test)]
    pub(crate) fn is_out(&self) -> bool {
        self.is_out.load(Ordering::Relaxed)
    }

    /// Ends when the connection has to make room.
    pub(crate) async fn is_put_out(&self) {
        self.out.notified().await;
    }

    fn lives(&self) {
        let alive = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.alive_ms.store(alive, Ordering::Relaxed);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.is_busy.store(false, Ordering::Relaxed);
        self.0.lives();
    }
}

/// How long a client may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) head: Duration,
    pub(crate) idle: Duration,
    pub(crate) write: Duration,
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
    /// When the client has to have taken what is written; set while it does not.
    written_by: Option<Instant>,
    write_timer: Option<Pin<Box<Sleep>>>,
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
            written_by: None,
            write_timer: None,
        }
    }

    /// The client took `taken` of `offered` bytes.
    fn wrote(&mut self, taken: usize, offered: usize) {
        let Some(deadline) = self.written_by else { return };
        self.pace.lives();
        if taken >= offered {
            self.written_by = None;
            self.pace.is_stalled.store(false, Ordering::Relaxed);
            return;
        }
        // A trickle buys the time that the least pace allows for it, and no more.
        let earned = Duration::from_secs_f64(taken as f64 / WRITE_BYTES_PER_SEC_MIN as f64);
        self.written_by = Some((deadline + earned).min(Instant::now() + self.patience.write));
    }

    /// Whether the client has not taken what is written for long enough.
    fn is_stuck(&mut self, cx: &mut Context<'_>) -> bool {
        let deadline = match self.written_by {
            Some(deadline) => deadline,
            None => {
                self.pace.lives();
                self.pace.is_stalled.store(true, Ordering::Relaxed);
                let deadline = Instant::now() + self.patience.write;
                self.written_by = Some(deadline);
                deadline
            }
        };
        let timer = self.write_timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        timer.as_mut().poll(cx).is_ready()
    }

    fn written(
        &mut self,
        outcome: Poll<io::Result<usize>>,
        offered: usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match outcome {
            Poll::Ready(Ok(taken)) => {
                self.wrote(taken, offered);
                Poll::Ready(Ok(taken))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if self.is_stuck(cx) => Poll::Ready(Err(too_slow())),
            Poll::Pending => Poll::Pending,
        }
    }

    fn arrived(&mut self) {
        let requests = self.pace.requests.load(Ordering::Relaxed);
        self.pace.lives();
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
            Poll::Pending if self.is_late(cx) => Poll::Ready(Err(too_slow())),
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
        let outcome = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.written(outcome, buf.len(), cx)
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
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.written(outcome, bufs.iter().map(|buf| buf.len()).sum(), cx)
    }
}

fn too_slow() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client is too slow")
}
