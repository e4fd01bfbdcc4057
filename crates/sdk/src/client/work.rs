//! Calls of workers. Reports may be repeated: the server answers a repeated report again without
//! applying it again. [`crate::Worker`] makes all of these for you.

use super::{Call, Client, Repeat, path};
use crate::error::Error;
use mainspring_api::work::{
    Beaten, CommitEffect, Complete, Effect, Fail, Heartbeat, Leave, Left, Pull, Pulled, Release,
    Reported,
};
use mainspring_api::{Json, LEASE_HEADER};
use std::time::Duration;

fn wait_of(pull: Option<&Pull>) -> Duration {
    Duration::from_millis(pull.and_then(|pull| pull.wait_ms).unwrap_or(0))
}

impl Client {
    /// Fetches jobs, waiting for the first one as long as the pull says.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn pull(&self, pull: &Pull) -> Result<Pulled, Error> {
        let wait = wait_of(Some(pull));
        self.call(Call::post(path(&["work", "pull"]), pull, Repeat::Never).wait(wait)).await
    }

    /// Says that a worker is about to stop: its waiting pulls are answered at once.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn leave(&self, worker_id: &str) -> Result<Left, Error> {
        let body = Leave { worker_id: worker_id.to_owned() };
        self.call(Call::post(path(&["work", "leave"]), &body, Repeat::Safe)).await
    }

    /// Reports successes, and fetches more if the call carries a pull. Not repeated by itself: the
    /// caller decides what to do about the jobs of a lost answer.
    ///
    /// # Errors
    /// If the server refuses the whole call or cannot be reached.
    pub async fn complete(&self, report: &Complete) -> Result<Reported, Error> {
        let wait = wait_of(report.pull.as_ref());
        self.call(Call::post(path(&["work", "complete"]), report, Repeat::Never).wait(wait)).await
    }

    /// Reports failures; otherwise as [`Client::complete`].
    ///
    /// # Errors
    /// If the server refuses the whole call or cannot be reached.
    pub async fn fail(&self, report: &Fail) -> Result<Reported, Error> {
        let wait = wait_of(report.pull.as_ref());
        self.call(Call::post(path(&["work", "fail"]), report, Repeat::Never).wait(wait)).await
    }

    /// Gives attempts back unused; otherwise as [`Client::complete`].
    ///
    /// # Errors
    /// If the server refuses the whole call or cannot be reached.
    pub async fn release(&self, report: &Release) -> Result<Reported, Error> {
        let wait = wait_of(report.pull.as_ref());
        self.call(Call::post(path(&["work", "release"]), report, Repeat::Never).wait(wait)).await
    }

    /// Renews leases and learns which are lost or cancelled.
    ///
    /// # Errors
    /// If the server refuses the whole call or cannot be reached.
    pub async fn heartbeat(&self, heartbeat: &Heartbeat) -> Result<Beaten, Error> {
        self.call(Call::post(path(&["work", "heartbeat"]), heartbeat, Repeat::Never)).await
    }

    /// Commits a side effect once; answers the value of the first commit.
    ///
    /// # Errors
    /// If the lease is over, or the server refuses or cannot be reached.
    pub async fn commit_effect(
        &self,
        job_id: &str,
        name: &str,
        lease_token: &str,
        value: Json,
    ) -> Result<Effect, Error> {
        self.call(commit_effect(job_id, name, lease_token, value, Repeat::Safe)).await
    }

    /// The same for a caller that repeats by itself.
    pub(crate) async fn commit_effect_once(
        &self,
        job_id: &str,
        name: &str,
        lease_token: &str,
        value: Json,
    ) -> Result<Effect, Error> {
        self.call(commit_effect(job_id, name, lease_token, value, Repeat::Never)).await
    }

    /// A committed side effect, if there is one. Only the holder of the lease may look.
    ///
    /// # Errors
    /// If the lease is over, or the server refuses or cannot be reached.
    pub async fn effect(
        &self,
        job_id: &str,
        name: &str,
        lease_token: &str,
    ) -> Result<Option<Effect>, Error> {
        known(self.call(effect(job_id, name, lease_token, Repeat::Safe)).await)
    }

    /// The same for a caller that repeats by itself.
    pub(crate) async fn effect_once(
        &self,
        job_id: &str,
        name: &str,
        lease_token: &str,
    ) -> Result<Option<Effect>, Error> {
        known(self.call(effect(job_id, name, lease_token, Repeat::Never)).await)
    }
}

fn commit_effect(job_id: &str, name: &str, lease_token: &str, value: Json, repeat: Repeat) -> Call {
    let body = CommitEffect { lease_token: Some(lease_token.to_owned()), value };
    Call::put(path(&["work", "effects", job_id, name]), &body).repeat(repeat)
}

fn effect(job_id: &str, name: &str, lease_token: &str, repeat: Repeat) -> Call {
    let call = Call::get(path(&["work", "effects", job_id, name]));
    call.header(LEASE_HEADER, lease_token).repeat(repeat)
}

fn known(answer: Result<Effect, Error>) -> Result<Option<Effect>, Error> {
    match answer {
        Ok(effect) => Ok(Some(effect)),
        Err(Error::Refused(refusal)) if refusal.code == "EFFECT_NOT_FOUND" => Ok(None),
        Err(error) => Err(error),
    }
}
