//! Planted bugs: each is a mistake a scheduler could make, switched on at run time in wrappers
//! around the real parts. A test proves that simulation, checker and crash images find every one of
//! them; if one survives, the tests are blind there. No production crate knows of them.

mod store;

pub use store::PlantedStore;

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Plant {
    /// None.
    #[default]
    None,
    /// Answers before the journal has synced.
    AcknowledgeEarly,
    /// The disk's sync does nothing.
    SkipSync,
    /// A report is checked by job only: any token of the job will do.
    StaleToken,
    /// A job that was handed out is handed out again.
    GrantTwice,
    /// Jobs run at once, whatever delay was wished.
    IgnoreDelay,
    /// Idempotency keys of before a restart are forgotten.
    ForgetKeys,
    /// The dead-letter item is not written.
    DropItem,
    /// A release uses up a try.
    CountRelease,
    /// Tries go on beyond the last.
    RetryForever,
    /// What cannot be helped by trying again is tried again.
    RetryFinal,
    /// Every lease has the same fence.
    FlatFence,
    /// The concurrency limit is one too high.
    WrongLimit,
    /// A pause is acknowledged and ignored.
    IgnorePause,
    /// An effect is committed once per attempt instead of once per job.
    EffectTwice,
    /// Histories are listed out of order.
    ShuffleEvents,
    /// A cancel is acknowledged and not done, now and then.
    LoseCancel,
    /// A renewal is acknowledged and not done: the reaper comes early.
    LoseRenewal,
    /// The first person may approve.
    OnePerson,
    /// A repeat under a key is not compared.
    IgnoreFingerprint,
    /// A payload is changed on its way in.
    ChangePayload,
    /// The reaper never comes.
    NoReaper,
    /// A counter is off by one.
    WrongCount,
    /// A stream repeats a move.
    RepeatMove,
    /// The backoff is ignored.
    NoBackoff,
}

impl Plant {
    /// Every mistake.
    pub const ALL: [Plant; 24] = [
        Plant::AcknowledgeEarly,
        Plant::SkipSync,
        Plant::StaleToken,
        Plant::GrantTwice,
        Plant::IgnoreDelay,
        Plant::ForgetKeys,
        Plant::DropItem,
        Plant::CountRelease,
        Plant::RetryForever,
        Plant::RetryFinal,
        Plant::FlatFence,
        Plant::WrongLimit,
        Plant::IgnorePause,
        Plant::EffectTwice,
        Plant::ShuffleEvents,
        Plant::LoseCancel,
        Plant::LoseRenewal,
        Plant::OnePerson,
        Plant::IgnoreFingerprint,
        Plant::ChangePayload,
        Plant::NoReaper,
        Plant::WrongCount,
        Plant::RepeatMove,
        Plant::NoBackoff,
    ];
}
