//! The lease: one worker's right to one attempt, and the token that proves it.

use crate::name::{UserId, WorkerId};
use crate::shared_time::{Jump, Silence};
use crate::time::Timestamp;
use std::fmt;

/// One worker's right to one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Strictly greater than that of every earlier lease of the job.
    pub fence: u32,
    /// Unguessable; together with the fence it is the lease token.
    pub secret: u128,
    /// Who holds it.
    pub worker: WorkerId,
    /// When it was granted, which is when the attempt started.
    pub granted_at: Timestamp,
    /// When it ends unless renewed.
    pub expires_at: Timestamp,
    /// When the attempt is over whatever the worker does (start-to-close timeout).
    pub deadline_at: Timestamp,
    /// Up to when jumps of the clock and silences are counted in; since the grant if it does not
    /// say.
    pub settled_at: Option<Timestamp>,
    /// When the attempt was due, where that counts: of a governed job.
    pub due_at: Option<Timestamp>,
    /// Whose token it was granted to, where that counts: of a governed job.
    pub holder: Option<UserId>,
}

impl Lease {
    /// What the worker presents.
    pub fn token(&self) -> LeaseToken {
        LeaseToken { fence: self.fence, secret: self.secret }
    }

    /// Whether the lease still counts at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at && now < self.deadline_at
    }

    /// When this lease and its attempt really end, now that the clock was set forward over `jumps`
    /// and nobody could be reached in `silences`; `None` if that changes nothing.
    ///
    /// What was running at a jump is longer by it: time that never was cannot be used up. A server
    /// that learns of a jump late grants and renews by the time before it, so what counts is when
    /// the lease was settled, not who settled it.
    ///
    /// A lease, not its attempt, is longer by the part of a silence in which it was running, and
    /// lasts for a grace after it, so that a heartbeat gets through. What was asked within the
    /// silence is decided after it, by the time at which it was asked.
    pub fn settled(&self, jumps: &[Jump], silences: &[Silence], now: Timestamp) -> Option<Settled> {
        let since = self.settled_at.unwrap_or(self.granted_at);
        let (expires_at, deadline_at) = (self.expires_at, self.deadline_at);
        let mut settled = Settled { expires_at, deadline_at, at: now };
        let mut silences = silences.iter().filter(|silence| since < silence.to).peekable();
        for jump in jumps.iter().filter(|jump| since < jump.to && jump.to <= now) {
            while let Some(silence) = silences.next_if(|silence| silence.to <= jump.from) {
                settled.be_silent(silence, since);
            }
            settled.jump(jump);
        }
        silences.for_each(|silence| settled.be_silent(silence, since));
        let is_other = (settled.expires_at, settled.deadline_at) != (expires_at, deadline_at);
        is_other.then_some(settled)
    }

    /// The instant at which the reaper has to look at this lease.
    pub fn ends_at(&self) -> Timestamp {
        self.expires_at.min(self.deadline_at)
    }
}

/// A lease after jumps of the clock and silences were counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// When it ends unless renewed.
    pub expires_at: Timestamp,
    /// When the attempt is over.
    pub deadline_at: Timestamp,
    /// Up to when they are counted in.
    pub at: Timestamp,
}

impl Settled {
    fn was_running_at(&self, instant: Timestamp) -> bool {
        self.expires_at.min(self.deadline_at) > instant
    }

    fn jump(&mut self, jump: &Jump) {
        if self.was_running_at(jump.from) {
            self.expires_at = self.expires_at + jump.span();
            self.deadline_at = self.deadline_at + jump.span();
        }
    }

    fn be_silent(&mut self, silence: &Silence, since: Timestamp) {
        if self.was_running_at(silence.from) {
            let lost = silence.to.since(silence.from.max(since));
            self.expires_at = (self.expires_at + lost).max(silence.to + silence.grace());
            self.at = self.at.max(silence.to);
        }
    }
}

/// The credential of one attempt: a counter that orders leases and a secret nobody can guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseToken {
    /// The fencing number.
    pub fence: u32,
    /// The secret.
    pub secret: u128,
}

impl fmt::Display for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:032x}", self.fence, self.secret)
    }
}

impl std::str::FromStr for LeaseToken {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (fence, secret) = text.split_once('.').ok_or(())?;
        if secret.len() != 32 || secret.bytes().any(|b| b.is_ascii_uppercase() || b == b'+') {
            return Err(());
        }
        Ok(Self {
            fence: fence.parse().map_err(|_| ())?,
            secret: u128::from_str_radix(secret, 16).map_err(|_| ())?,
        })
    }
}
