//! Calls about jobs.

use super::{Call, Client, Repeat, path, path_with};
use crate::error::Error;
use crate::submit::Submit;
use mainspring_api::job::{
    Cancel, Explanation, History, Job, Submit as Wish, SubmitBatch, SubmittedBatch, SubmittedItem,
};
use mainspring_api::{Json, Page, Time};
use reqwest::Method;
use std::time::Duration;

/// Which jobs to list. Fields left `None` do not filter.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Only jobs in this state.
    pub status: Option<String>,
    /// Only jobs of this type.
    pub job_type: Option<String>,
    /// Only jobs of this queue.
    pub queue: Option<String>,
    /// Only jobs of this trace.
    pub trace_id: Option<String>,
    /// Only jobs submitted by this user.
    pub user_id: Option<String>,
    /// Only jobs with all of these labels.
    pub labels: Vec<(String, String)>,
    /// Only jobs whose last failed attempt said this.
    pub error_code: Option<String>,
    /// Only jobs made from this one; dead letters are not asked for it.
    pub parent_id: Option<String>,
    /// Only dead letters with this failure; jobs have none.
    pub signature: Option<String>,
    /// Only jobs created then or later.
    pub created_after: Option<Time>,
    /// Only jobs created earlier.
    pub created_before: Option<Time>,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
}

/// The answer to a submission.
#[derive(Debug, Clone)]
pub enum Submitted {
    /// The job: a new one, or the one that its idempotency key names.
    Job(Box<Job>),
    /// The key names a job that this caller may not read: only where it stands is told.
    Hidden {
        /// That job.
        job_id: String,
        /// Where it stands, if it is still kept.
        status: Option<String>,
    },
}

impl Submitted {
    /// The job's id.
    pub fn job_id(&self) -> &str {
        match self {
            Submitted::Job(job) => &job.job_id,
            Submitted::Hidden { job_id, .. } => job_id,
        }
    }

    /// Where the job stands.
    pub fn status(&self) -> Option<&str> {
        match self {
            Submitted::Job(job) => Some(&job.status),
            Submitted::Hidden { status, .. } => status.as_deref(),
        }
    }

    /// The job, if this caller may read it.
    pub fn into_job(self) -> Option<Job> {
        match self {
            Submitted::Job(job) => Some(*job),
            Submitted::Hidden { .. } => None,
        }
    }

    fn read(answer: &Json) -> Result<Self, serde_json::Error> {
        let text = answer.get();
        serde_json::from_str::<Job>(text).map(|job| Submitted::Job(Box::new(job))).or_else(
            |error| match serde_json::from_str::<SubmittedItem>(text)? {
                SubmittedItem { job_id: Some(job_id), status, .. } => {
                    Ok(Submitted::Hidden { job_id, status })
                }
                SubmittedItem { job_id: None, .. } => Err(error),
            },
        )
    }
}

impl JobFilter {
    /// The parameters of a list.
    pub(super) fn query(&self) -> Vec<(&'static str, Option<String>)> {
        let mut query = vec![
            ("status", self.status.clone()),
            ("type", self.job_type.clone()),
            ("queue", self.queue.clone()),
            ("trace_id", self.trace_id.clone()),
            ("user_id", self.user_id.clone()),
            ("error_code", self.error_code.clone()),
            ("parent_id", self.parent_id.clone()),
            ("signature", self.signature.clone()),
            ("created_after", self.created_after.map(|at| at.to_string())),
            ("created_before", self.created_before.map(|at| at.to_string())),
            ("cursor", self.cursor.clone()),
            ("limit", self.limit.map(|limit| limit.to_string())),
        ];
        let labels = self.labels.iter().map(|(name, value)| Some(format!("{name}={value}")));
        query.extend(labels.map(|label| ("label", label)));
        query
    }
}

impl Client {
    /// Submits one job. With an idempotency key the call is repeated if its answer is lost.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn submit(&self, job: &Submit) -> Result<Submitted, Error> {
        self.submit_and_wait(job, Duration::ZERO).await
    }

    /// Submits one job and waits for its end, at most `wait`. The job may be unfinished then.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn submit_and_wait(&self, job: &Submit, wait: Duration) -> Result<Submitted, Error> {
        let has_key = job.wish.idempotency_key.is_some();
        let repeat = if has_key { Repeat::Safe } else { Repeat::Unsafe };
        let wait_ms = (!wait.is_zero()).then(|| wait.as_millis().to_string());
        let path = path_with(&["jobs"], &[("wait_ms", wait_ms)]);
        let answer: Json = self.call(Call::post(path, &job.wish, repeat).wait(wait)).await?;
        Submitted::read(&answer).map_err(|error| Error::Unreadable {
            call: "POST /api/v1/jobs".to_owned(),
            status: 200,
            reason: error.to_string(),
        })
    }

    /// Submits up to 10,000 jobs in one call; each has its own result, in order.
    ///
    /// # Errors
    /// If the server refuses the whole call or cannot be reached.
    pub async fn submit_batch(&self, jobs: Vec<Wish>) -> Result<SubmittedBatch, Error> {
        let has_keys = jobs.iter().all(|job| job.idempotency_key.is_some());
        let repeat = if has_keys { Repeat::Safe } else { Repeat::Unsafe };
        let batch = SubmitBatch { jobs, then: None };
        self.call(Call::post(path(&["jobs", "batch"]), &batch, repeat)).await
    }

    /// Submits jobs and one that waits for all of them: all are taken or none. Its answer is the
    /// last.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn submit_batch_then(
        &self,
        jobs: Vec<Wish>,
        then: Wish,
    ) -> Result<SubmittedBatch, Error> {
        let has_keys = jobs.iter().chain([&then]).all(|job| job.idempotency_key.is_some());
        let repeat = if has_keys { Repeat::Safe } else { Repeat::Unsafe };
        let batch = SubmitBatch { jobs, then: Some(then) };
        self.call(Call::post(path(&["jobs", "batch"]), &batch, repeat)).await
    }

    /// One job.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn job(&self, id: &str) -> Result<Job, Error> {
        self.call(Call::get(path(&["jobs", id]))).await
    }

    /// Jobs, newest first.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn jobs(&self, filter: &JobFilter) -> Result<Page<Job>, Error> {
        self.call(Call::get(path_with(&["jobs"], &filter.query()))).await
    }

    /// A job's history.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn job_events(&self, id: &str) -> Result<History, Error> {
        self.call(Call::get(path(&["jobs", id, "events"]))).await
    }

    /// Why a job is not running yet.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn explain(&self, id: &str) -> Result<Explanation, Error> {
        self.call(Call::get(path(&["jobs", id, "explain"]))).await
    }

    /// Ends a job that is not finished.
    ///
    /// # Errors
    /// If it has ended already or cannot be seen, or the server cannot be reached.
    pub async fn cancel(&self, id: &str, reason: Option<&str>) -> Result<Job, Error> {
        let body = Cancel { reason: reason.map(ToOwned::to_owned) };
        self.call(Call::post(path(&["jobs", id, "cancel"]), &body, Repeat::Unsafe)).await
    }

    /// Runs one attempt by hand: `switch` is none, `force_fail` or `transient_fail`. For replays;
    /// needs the internal role and a server with internal routes.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn run_internally(
        &self,
        id: &str,
        switch: Option<&str>,
    ) -> Result<mainspring_api::internal::Ran, Error> {
        let query: Vec<_> =
            switch.map(|name| (name, Some("true".to_owned()))).into_iter().collect();
        let path = path_with(&["internal", "jobs", id, "run"], &query);
        let call = Call::new(Method::POST, path, Repeat::Unsafe);
        self.call(call.header("x-internal-debug", "true")).await
    }

    /// Moves a job by hand. For replays; as [`Client::run_internally`].
    ///
    /// # Errors
    /// If the lifecycle has no such move, or the server refuses or cannot be reached.
    pub async fn move_internally(
        &self,
        id: &str,
        new_status: &str,
    ) -> Result<mainspring_api::internal::Moved, Error> {
        let body = mainspring_api::internal::Transition { new_status: new_status.to_owned() };
        let path = path(&["internal", "jobs", id, "transition"]);
        self.call(Call::post(path, &body, Repeat::Unsafe).header("x-internal-debug", "true")).await
    }
}
