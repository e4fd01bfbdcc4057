//! Planted bugs: each is a mistake a scheduler could make, switched on at run time in wrappers
//! around the real parts. A test proves that simulation, checker and crash images find every one of
//! them; if one survives, the tests are blind there. No production crate knows of them.

mod desk;
mod link;
mod spoilt;
mod store;
mod trial;

pub use link::{Link, Network};
pub use store::{Fate, Kind, Luck, PlantedStore};

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
    /// The dead-letter item of a few exhausted jobs is not written.
    DropItemSometimes,
    /// A key is free two seconds before its window is over.
    FreeKeyEarly,
    /// A key that has a window is never free again.
    KeepKeyForever,
    /// The key of a cancelled job is forgotten by a restart.
    ForgetKeyOfCancelled,
    /// Now and then the best job is passed over.
    SkipBest,
    /// The reaper comes six seconds late.
    ReapLate,
    /// Retries wait four seconds longer than they should.
    RetryLate,
    /// From the third try on an effect is committed again.
    EffectAgain,
    /// From the third lease on any token of the job will do.
    StaleTokenLate,
    /// One in fifty commits is answered before the journal has synced.
    AcknowledgeSometimes,
    /// The keeper loses a few finished jobs.
    HideArchived,
    /// The keeper removes a file of the archive that is in use.
    DropRun,
    /// The keeper cuts off the end of a few histories.
    CutHistory,
    /// A stream leaves out a move now and then.
    SkipMove,
    /// A few dead-letter items are not listed any more once they are closed.
    ForgetItem,
    /// A list of one tenant shows the jobs of all.
    ListLeak,
    /// One in twelve reads shows a job as it was when it was first looked at.
    ReadOld,
    /// A pull for one tenant gets jobs of any.
    IgnoreTenant,
    /// A pull for one queue gets jobs of any.
    IgnoreQueue,
    /// A job is handed out by a commit that then fails.
    PhantomGrant,
    /// What a caller that went away was given is not given back.
    KeepForGhost,
    /// A few submissions are refused and done.
    RefuseAndDo,
    /// A retry is shown before it is counted, now and then.
    TornRead,
    /// The cancel of a job that has failed twice is acknowledged and not done.
    LoseRareCancel,
    /// The clock runs backwards when it is set back.
    ClockBack,
    /// Leases are not extended when the clock is set forward.
    IgnoreJump,
    /// Leases are extended by half of a jump of more than a hundred seconds.
    HalfJump,
    /// One server decides on what it saw before another changed it.
    StaleDecision,
    /// The clocks of servers are up to half a minute apart.
    NodeSkew,
    /// An entity fires and its job is not submitted, now and then.
    LoseFiring,
    /// An entity fires a second job for the same instant.
    FireTwice,
    /// An alarm is rung and not set anew.
    ForgetAlarm,
    /// A schedule does not tell of firings that have no job, now and then.
    SkipUntold,
    /// The alarm of a schedule that fired stays where it was, now and then.
    AlarmStays,
    /// A schedule that fired passes over the next instant.
    PassOver,
    /// A schedule that waits for a job to end forgets what waits.
    ForgetWaiting,
    /// What the clocks show twice fires twice where it should once, and once where it should twice.
    /// No simulated world lasts long enough for it: `tests/folds.rs` looks for it.
    WrongFold,
    /// A trigger forgets an edge that it holds, now and then.
    LoseEdge,
    /// A trigger that fired does not take the edge, now and then.
    KeepEdge,
    /// A trigger forgets when it last fired.
    IgnoreCooldown,
    /// A job that waited for others is forgotten when they are done.
    LoseRelease,
    /// A rate limit lets one more through at once.
    WrongRate,
    /// A restart forgets what was handed out under a rate limit, now and then.
    ForgetBuckets,
    /// A bucket fills up twice as fast as it should.
    WrongRefill,
    /// A limit that is counted by key is one too high.
    WrongKeyLimit,
    /// A circuit never opens.
    NoCircuit,
    /// While one job of a type that has a circuit is tried, another goes.
    TwoProbes,
    /// Retries go before everything else.
    RetriesFirst,
}

impl Plant {
    /// Every mistake that shows in simulated worlds.
    pub const ALL: [Plant; 71] = [
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
        Plant::DropItemSometimes,
        Plant::FreeKeyEarly,
        Plant::KeepKeyForever,
        Plant::ForgetKeyOfCancelled,
        Plant::SkipBest,
        Plant::ReapLate,
        Plant::RetryLate,
        Plant::EffectAgain,
        Plant::StaleTokenLate,
        Plant::AcknowledgeSometimes,
        Plant::HideArchived,
        Plant::DropRun,
        Plant::CutHistory,
        Plant::SkipMove,
        Plant::ForgetItem,
        Plant::ListLeak,
        Plant::ReadOld,
        Plant::IgnoreTenant,
        Plant::IgnoreQueue,
        Plant::PhantomGrant,
        Plant::KeepForGhost,
        Plant::RefuseAndDo,
        Plant::TornRead,
        Plant::LoseRareCancel,
        Plant::ClockBack,
        Plant::IgnoreJump,
        Plant::HalfJump,
        Plant::StaleDecision,
        Plant::NodeSkew,
        Plant::LoseFiring,
        Plant::FireTwice,
        Plant::ForgetAlarm,
        Plant::SkipUntold,
        Plant::AlarmStays,
        Plant::PassOver,
        Plant::ForgetWaiting,
        Plant::LoseEdge,
        Plant::KeepEdge,
        Plant::IgnoreCooldown,
        Plant::LoseRelease,
        Plant::WrongRate,
        Plant::ForgetBuckets,
        Plant::WrongRefill,
        Plant::WrongKeyLimit,
        Plant::NoCircuit,
        Plant::TwoProbes,
        Plant::RetriesFirst,
    ];

    /// Whether it takes several servers to make it.
    pub fn is_of_nodes(self) -> bool {
        matches!(self, Plant::StaleDecision | Plant::NodeSkew)
    }
}

/// A number that belongs to a job and to nothing else about it, below `end`.
pub(crate) fn lot(job: mainspring_kernel::JobId, end: u64) -> u64 {
    let digest = mainspring_kernel::fingerprint::digest(&[&job.0.to_le_bytes()]);
    u64::from(u16::from_le_bytes([digest.0[0], digest.0[1]])) % end
}
