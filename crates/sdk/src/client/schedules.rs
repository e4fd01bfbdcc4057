//! Calls about schedules.

use super::{Call, Client, Repeat, path, path_with};
use crate::error::Error;
use mainspring_api::schedule::{
    Backfill, Backfilled, PauseSchedule, Preview, RemovedSchedule, Schedule, ScheduleHistory,
    SetSchedule, Triggered,
};
use mainspring_api::{Page, Time};
use reqwest::Method;

/// Which schedules to list. Fields left `None` do not filter.
#[derive(Debug, Clone, Default)]
pub struct ScheduleFilter {
    /// Only those in this state.
    pub status: Option<String>,
    /// Only those that make jobs of this type.
    pub job_type: Option<String>,
    /// Only those of this user.
    pub owner: Option<String>,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
}

impl Client {
    /// Makes a schedule.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn create_schedule(&self, wish: &SetSchedule) -> Result<Schedule, Error> {
        self.call(Call::post(path(&["schedules"]), wish, Repeat::Unsafe)).await
    }

    /// Schedules, newest first.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn schedules(&self, filter: &ScheduleFilter) -> Result<Page<Schedule>, Error> {
        let ScheduleFilter { status, job_type, owner, cursor, limit } = filter.clone();
        let query = [
            ("status", status),
            ("job_type", job_type),
            ("owner", owner),
            ("cursor", cursor),
            ("limit", limit.map(|limit| limit.to_string())),
        ];
        self.call(Call::get(path_with(&["schedules"], &query))).await
    }

    /// One schedule.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn schedule(&self, id: &str) -> Result<Schedule, Error> {
        self.call(Call::get(path(&["schedules", id]))).await
    }

    /// Has a schedule do something else from now on: all of what it is to do is replaced.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn update_schedule(&self, id: &str, wish: &SetSchedule) -> Result<Schedule, Error> {
        self.call(Call::put(path(&["schedules", id]), wish)).await
    }

    /// Takes a schedule away.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn delete_schedule(&self, id: &str) -> Result<RemovedSchedule, Error> {
        self.call(Call::new(Method::DELETE, path(&["schedules", id]), Repeat::Unsafe)).await
    }

    /// Has a schedule rest until it is resumed.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn pause_schedule(&self, id: &str, note: Option<&str>) -> Result<Schedule, Error> {
        let body = PauseSchedule { note: note.map(ToOwned::to_owned) };
        self.call(Call::post(path(&["schedules", id, "pause"]), &body, Repeat::Safe)).await
    }

    /// Has a paused schedule go on with what is due from now on.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn resume_schedule(&self, id: &str) -> Result<Schedule, Error> {
        self.call(Call::new(Method::POST, path(&["schedules", id, "resume"]), Repeat::Safe)).await
    }

    /// Ends a schedule for good; it can still be read.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn stop_schedule(&self, id: &str) -> Result<Schedule, Error> {
        self.call(Call::new(Method::POST, path(&["schedules", id, "stop"]), Repeat::Safe)).await
    }

    /// Makes a job of a schedule now.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn trigger_schedule(&self, id: &str) -> Result<Triggered, Error> {
        let call = Call::new(Method::POST, path(&["schedules", id, "trigger"]), Repeat::Unsafe);
        self.call(call).await
    }

    /// Makes the jobs that firings of the past have not had. Safe to repeat: no firing has two.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn backfill_schedule(&self, id: &str, wish: &Backfill) -> Result<Backfilled, Error> {
        self.call(Call::post(path(&["schedules", id, "backfill"]), wish, Repeat::Safe)).await
    }

    /// When a schedule will fire.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn preview_schedule(
        &self,
        id: &str,
        count: Option<u32>,
        from: Option<Time>,
    ) -> Result<Preview, Error> {
        self.call(Call::get(path_with(&["schedules", id, "preview"], &preview(count, from)))).await
    }

    /// When a schedule would fire that is not made yet.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn preview_unsaved(
        &self,
        wish: &SetSchedule,
        count: Option<u32>,
        from: Option<Time>,
    ) -> Result<Preview, Error> {
        let path = path_with(&["schedules", "preview"], &preview(count, from));
        self.call(Call::post(path, wish, Repeat::Safe)).await
    }

    /// What became of a schedule's latest firings.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn schedule_history(&self, id: &str) -> Result<ScheduleHistory, Error> {
        self.call(Call::get(path(&["schedules", id, "history"]))).await
    }
}

fn preview(count: Option<u32>, from: Option<Time>) -> [(&'static str, Option<String>); 2] {
    [("count", count.map(|count| count.to_string())), ("from", from.map(|from| from.to_string()))]
}
