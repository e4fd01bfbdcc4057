//! Jobs that are made again and again.

use crate::error::Error;
use crate::spring::Mainspring;
use crate::task::Task;
use mainspring_kernel::calendar::{Cron, Fold, Gap, Rhythm, Zone};
use mainspring_kernel::entity::schedule::{Overlap, ScheduleSpec};
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::{EntityId, JobType};
use std::time::Duration;

/// When jobs are made, and what happens when the last one still runs.
#[derive(Debug, Clone)]
#[must_use]
pub struct Schedule {
    rhythm: Result<Rhythm, String>,
    /// The words it was made of: another text is another schedule.
    text: String,
    overlap: Overlap,
}

impl Schedule {
    /// By a cron pattern of five fields, or six with seconds first, by UTC.
    pub fn cron(pattern: &str) -> Self {
        Self::cron_in(pattern, "UTC")
    }

    /// By a cron pattern, by the clocks of a zone such as `Europe/Berlin`. A time that the clocks
    /// jump over fires at the jump; one they show twice fires once.
    pub fn cron_in(pattern: &str, zone: &str) -> Self {
        let rhythm = match (Cron::parse(pattern), Zone::parse(zone)) {
            (Ok(cron), Some(zone)) => {
                Ok(Rhythm::Cron { cron, zone, gap: Gap::default(), fold: Fold::default() })
            }
            (Err(bad), _) => Err(format!("{pattern:?} is no cron pattern: {bad}")),
            (Ok(_), None) => Err(format!("{zone:?} is no time zone")),
        };
        Schedule { rhythm, text: format!("cron {pattern} {zone}"), overlap: Overlap::Allow }
    }

    /// Every so many whole seconds, counted from the beginning of 1970: the same on every machine.
    pub fn every(span: Duration) -> Self {
        let every_secs = span.as_secs();
        let rhythm = match every_secs {
            0 => Err("a schedule needs at least a second from one firing to the next".to_owned()),
            _ => Ok(Rhythm::Interval { every_secs, phase_secs: 0 }),
        };
        Schedule { rhythm, text: format!("every {every_secs}"), overlap: Overlap::Allow }
    }

    /// Lets a firing go by while the job of an earlier one has not ended.
    pub fn without_overlap(mut self) -> Self {
        self.overlap = Overlap::Skip;
        self
    }
}

impl Mainspring {
    /// Has a job made by a schedule of that name. Say it at every start: the same words change
    /// nothing, other words change the schedule, and any number of processes make one. Each firing
    /// makes exactly one job; firings missed while nobody was there are made up for by one.
    ///
    /// ```
    /// # use mainspring::{Mainspring, Schedule, Task};
    /// # use mainspring::Error;
    /// # async fn example<T: Task>(spring: Mainspring, report: T) -> Result<(), Error> {
    /// spring.schedule("nightly", Schedule::cron_in("0 3 * * *", "Europe/Berlin"), &report).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] if the pattern or zone is none; if the rules say no; if the store failed.
    pub async fn schedule<T: Task>(
        &self,
        name: &str,
        schedule: Schedule,
        task: &T,
    ) -> Result<EntityId, Error> {
        let rhythm =
            schedule.rhythm.map_err(|reason| Error::Invalid { what: "schedule", reason })?;
        let payload = serde_json::to_string(task)
            .map_err(|cause| Error::Json { what: "the payload", cause })?;
        let overlap = schedule.overlap;
        let entry = digest(&[
            b"library",
            T::TYPE.as_bytes(),
            payload.as_bytes(),
            schedule.text.as_bytes(),
            overlap.as_str().as_bytes(),
        ]);
        let plain = ScheduleSpec::plain(JobType::new(T::TYPE)?, rhythm);
        let spec =
            ScheduleSpec { name: Some(name.into()), payload: payload.into(), overlap, ..plain };
        let tenant = self.tenant().clone();
        let ensured = self.engine().ensure_template(tenant, name, entry, spec).await??;
        Ok(ensured.id)
    }
}
