//! Ready jobs that the database refuses to hand out. A batch that was refused with them and taken
//! without them proves that the culprit is among them; the next batches hand out half as many each,
//! until one is left. That one is passed over for a while, and everybody else gets their jobs.

use crate::stock::Offer;
use crate::throttle::Throttle;
use crate::values::Map;
use mainspring_kernel::JobId;
use std::time::Duration;
use tokio::time::Instant;

/// How long a culprit is passed over.
const PASSED_OVER: Duration = Duration::from_secs(60);
/// Culprits in mind, at most: one that is forgotten is found again.
const CULPRITS_MAX: usize = 10_000;
/// Jobs handed out at a time at which caution ends.
const CAUTIOUS_MAX: usize = 256;
/// The log is told this often.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Who is suspected.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    culprits: Map<JobId, Instant>,
    /// How many may be handed out together, while a culprit is looked for.
    most: Option<usize>,
    told: Throttle,
}

impl Suspects {
    /// Tells the log why something is refused, now and then.
    pub(crate) fn tell(&mut self, why: &str) {
        if self.told.is_due(TELL_EVERY) {
            self.told.done(Instant::now());
            tracing::error!(why, "PostgreSQL refuses a batch that hands out jobs");
        }
    }

    /// A batch was taken: with these jobs handed out, or only without them.
    pub(crate) fn learn(&mut self, claimed: &[JobId], is_without: bool) {
        match (is_without, claimed) {
            (true, []) => {}
            (true, [culprit]) => {
                tracing::error!(job = %culprit, "PostgreSQL refuses to hand out a job");
                if self.culprits.len() >= CULPRITS_MAX {
                    self.culprits.clear();
                }
                self.culprits.insert(*culprit, Instant::now() + PASSED_OVER);
            }
            (true, suspects) => self.most = Some(suspects.len() / 2),
            (false, []) => {}
            // More again, until everything is as before.
            (false, _) => self.most = self.most.map(|n| n * 2).filter(|n| *n < CAUTIOUS_MAX),
        }
    }

    /// Those that may be handed out, and those that stay in stock.
    pub(crate) fn sift(&mut self, mut offers: Vec<Offer>) -> (Vec<Offer>, Vec<Offer>) {
        if !self.culprits.is_empty() {
            let now = Instant::now();
            self.culprits.retain(|_, until| now < *until);
            offers.retain(|(.., stored)| !self.culprits.contains_key(&stored.job.id));
        }
        let rest = self.most.filter(|most| *most < offers.len());
        let rest = rest.map(|most| offers.split_off(most)).unwrap_or_default();
        (offers, rest)
    }
}
