//! Agent runs as jobs: which types they have, where the fields of a run are kept, and the one
//! function that makes a submission of a run. Contracts call it for callers, triggers for
//! themselves. How a run is seen is in `view/agent.rs`; what waits for a person is in
//! `entity/question.rs`.
//!
//! The prompt and what only readers of a run want to know are the payload; what lists are asked
//! for, or a rule looks at, are labels; the rest are fields that every job has.

use crate::calendar::utc_text;
use crate::command::{Ended, Submit};
use crate::fingerprint::{Digest, digest};
use crate::id::JobId;
use crate::idempotency;
use crate::job::{Idempotency, Job};
use crate::limits::{
    RETRIES_MAX, RETRY_DELAY_MS_MAX, RUN_ID_BYTES_MAX, RUN_PRIORITY_DEFAULT, RUN_PRIORITY_MAX,
};
use crate::name::{JobType, QueueName, TenantId, UserId};
use crate::rejection::Rejection;
use crate::text;
use crate::time::Timestamp;
use std::fmt::Write as _;

/// Sets the names of runs and plans apart from other names that callers choose. They share one
/// space: what finished is found by its name alone.
pub const NAMESPACE: &str = "agent";
/// The queue of all of them.
pub const QUEUE: &str = "agent";
/// The label with the task that a run was made for.
pub const PARENT_LABEL: &str = "parent_task_id";
/// The label with the trigger that made a run.
pub const TRIGGER_LABEL: &str = "source_trigger_id";
/// The label with the instant for which the trigger made it.
pub const TRIGGERED_LABEL: &str = "triggered_at";
/// The label with the wait before a retry.
pub const BACKOFF_LABEL: &str = "backoff_ms";

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A prompt that a worker carries out.
    Run,
    /// A prompt that a planner turns into runs and triggers.
    Plan,
    /// A question of a trigger about its condition; nobody's to see.
    Evaluation,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Purpose; 3] = [Purpose::Run, Purpose::Plan, Purpose::Evaluation];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Purpose::Run => "run",
            Purpose::Plan => "plan",
            Purpose::Evaluation => "evaluation",
        }
    }

    /// The purpose of that name.
    pub fn parse(text: &str) -> Option<Purpose> {
        Purpose::ALL.into_iter().find(|purpose| purpose.as_str() == text)
    }

    /// The name of its type.
    pub const fn type_name(self) -> &'static str {
        match self {
            Purpose::Run => "agent_run",
            Purpose::Plan => "agent_plan",
            Purpose::Evaluation => "agent_evaluation",
        }
    }

    /// Its type.
    pub fn job_type(self) -> JobType {
        JobType::stored(self.type_name().into())
    }

    /// What jobs of that type are for, if they are runs at all.
    pub fn of(job_type: &JobType) -> Option<Purpose> {
        Purpose::ALL.into_iter().find(|purpose| purpose.type_name() == job_type.as_str())
    }
}

/// How a run is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunId {
    /// As its caller chose, once in a tenant.
    Chosen(Box<str>),
    /// As the job that it will be: the fresh id of the facts, for those who submit inside a
    /// decision.
    Job(JobId),
}

/// The wish for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunWish {
    /// What it is for.
    pub purpose: Purpose,
    /// How it is called.
    pub id: RunId,
    /// What is to be done.
    pub prompt: Box<str>,
    /// 0 to 10, higher is sooner; the type's if `None`.
    pub priority: Option<u8>,
    /// The trace it belongs to.
    pub trace: Option<Box<str>>,
    /// The task it was made for.
    pub parent_task_id: Option<Box<str>>,
    /// Seconds that one attempt may take; the type's if `None`.
    pub timeout_secs: Option<u32>,
    /// Not before this.
    pub defer_until: Option<Timestamp>,
    /// How many attempts it may have in all, those before included.
    pub max_attempts: u16,
    /// The wait before a retry.
    pub backoff_ms: u64,
    /// The trigger that makes it.
    pub source_trigger_id: Option<Box<str>>,
    /// For which instant.
    pub triggered_at: Option<Timestamp>,
    /// When it was made, if that was elsewhere and before.
    pub created_at: Option<Timestamp>,
    /// The number of the attempt that is next, if it was queued elsewhere for another try, or how
    /// many there were, if it ended there; else 0.
    pub attempts: u16,
    /// How it ended, if that was elsewhere and before.
    pub past: Option<Box<Past>>,
}

/// How a run ended before it came here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// Start of its last attempt.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// How long its last attempt took.
    pub duration_ms: Option<u64>,
    /// How.
    pub ended: Ended,
}

impl RunWish {
    /// A run of `prompt` that leaves everything else open and has one attempt.
    pub fn plain(purpose: Purpose, id: RunId, prompt: &str) -> Self {
        RunWish {
            purpose,
            id,
            prompt: prompt.into(),
            priority: None,
            trace: None,
            parent_task_id: None,
            timeout_secs: None,
            defer_until: None,
            max_attempts: 1,
            backoff_ms: 0,
            source_trigger_id: None,
            triggered_at: None,
            created_at: None,
            attempts: 0,
            past: None,
        }
    }

    /// The submission of it, by `user` of `tenant`. A chosen name is held as long as the job is
    /// kept; `window_secs` says after how long nothing is kept any more.
    ///
    /// # Errors
    /// If a field is out of bounds.
    pub fn submit(
        &self,
        tenant: &TenantId,
        user: &UserId,
        window_secs: Option<u32>,
    ) -> Result<Submit, Rejection> {
        self.check()?;
        let (name, alias) = match &self.id {
            RunId::Chosen(id) => {
                let fingerprint = Some(self.fingerprint());
                let alias = idempotency::alias(tenant, NAMESPACE, id, window_secs);
                (id.to_string(), Some(Box::new(Idempotency { fingerprint, ..alias })))
            }
            RunId::Job(job) => (job.to_string(), None),
        };
        let submit = Submit {
            payload: self.payload().into(),
            run_at: self.defer_until.filter(|_| self.past.is_none()),
            priority: self.priority,
            timeout_ms: self.timeout_secs.map(|secs| secs.saturating_mul(1000)),
            max_retries: Some(self.max_attempts.saturating_sub(self.attempts.max(1))),
            alias,
            trace: self.trace.clone(),
            subject: Some(format!("{}:{name}", self.purpose.as_str()).into()),
            labels: self.labels(),
            ended: self.past.as_ref().map(|past| Box::new(past.ended.clone())),
            ..Submit::plain(tenant.clone(), user.clone(), self.purpose.job_type())
        };
        submit.check()?;
        Ok(submit)
    }

    fn check(&self) -> Result<(), Rejection> {
        if let RunId::Chosen(id) = &self.id {
            check_id("id", id)?;
        }
        if self.prompt.trim().is_empty() && self.past.is_none() {
            return Err(invalid("prompt", "must not be blank"));
        }
        if self.priority.is_some_and(|priority| priority > RUN_PRIORITY_MAX) {
            return Err(invalid("priority", "must be between 0 and 10"));
        }
        if !(1..=RETRIES_MAX).contains(&self.max_attempts) {
            return Err(invalid("max_attempts", "must be between 1 and 1000"));
        }
        if self.backoff_ms > RETRY_DELAY_MS_MAX {
            return Err(invalid("backoff_ms", "must be at most 2592000000 (thirty days)"));
        }
        let texts = [
            ("parent_task_id", &self.parent_task_id),
            ("source_trigger_id", &self.source_trigger_id),
        ];
        for (field, id) in texts {
            id.as_deref().map_or(Ok(()), |id| check_text(field, id))?;
        }
        Ok(())
    }

    /// What a repeat of the wish must agree with. When it was made does not count, nor does how far
    /// it had come or in which trace it is asked for.
    fn fingerprint(&self) -> Digest {
        let number = |number: Option<u64>| number.map_or_else(String::new, |it| it.to_string());
        let text = |text: &Option<Box<str>>| text.as_deref().unwrap_or("").to_owned();
        let instant = |at: Option<Timestamp>| at.map_or_else(String::new, |at| at.0.to_string());
        let parts = [
            self.purpose.type_name().to_owned(),
            self.prompt.to_string(),
            self.priority.unwrap_or(RUN_PRIORITY_DEFAULT).to_string(),
            text(&self.parent_task_id),
            number(self.timeout_secs.map(u64::from)),
            instant(self.defer_until),
            text(&self.source_trigger_id),
            instant(self.triggered_at),
        ];
        let parts: Vec<&[u8]> = parts.iter().map(String::as_bytes).collect();
        digest(&parts)
    }

    fn labels(&self) -> Vec<(Box<str>, Box<str>)> {
        let backoff = (self.backoff_ms > 0).then(|| self.backoff_ms.to_string());
        let labels = [
            (PARENT_LABEL, self.parent_task_id.as_deref().map(str::to_owned)),
            (TRIGGER_LABEL, self.source_trigger_id.as_deref().map(str::to_owned)),
            (TRIGGERED_LABEL, self.triggered_at.map(utc_text)),
            (BACKOFF_LABEL, backoff),
        ];
        let given = labels.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn payload(&self) -> String {
        let mut json = String::with_capacity(self.prompt.len() + 64);
        json.push_str("{\"prompt\":");
        push_json(&mut json, &self.prompt);
        if let Some(secs) = self.timeout_secs {
            let _ = write!(json, ",\"timeout\":{secs}");
        }
        let past = self.past.as_deref();
        let times = [
            ("deferUntil", self.defer_until),
            ("createdAt", self.created_at),
            ("startedAt", past.and_then(|past| past.started_at)),
            ("completedAt", past.and_then(|past| past.completed_at)),
        ];
        for (field, at) in times.into_iter().filter_map(|(field, at)| Some((field, at?))) {
            let _ = write!(json, ",\"{field}\":\"{}\"", utc_text(at));
        }
        let numbers = [
            ("attempts", Some(u64::from(self.attempts)).filter(|attempts| *attempts > 0)),
            ("durationMs", past.and_then(|past| past.duration_ms)),
        ];
        for (field, number) in numbers.into_iter().filter_map(|(field, it)| Some((field, it?))) {
            let _ = write!(json, ",\"{field}\":{number}");
        }
        json.push('}');
        json
    }
}

/// Refuses what cannot be the name of a run, a plan or a trigger.
///
/// # Errors
/// If it is blank, padded, too long, has control characters, or could be taken for something else.
pub fn check_id(field: &'static str, id: &str) -> Result<(), Rejection> {
    check_text(field, id)?;
    if id.parse::<JobId>().is_ok() || matches!(id, "." | "..") {
        let reason = "must not look like the id of a job, nor be a part of a path";
        return Err(invalid(field, reason));
    }
    Ok(())
}

fn check_text(field: &'static str, text: &str) -> Result<(), Rejection> {
    if text.trim().is_empty() || text.trim() != text {
        return Err(invalid(field, "must not be blank, nor begin or end with a space"));
    }
    if text.len() > RUN_ID_BYTES_MAX {
        return Err(invalid(field, "must be at most 160 bytes long"));
    }
    text::refuse_control(field, text)
}

/// The name of a run: the one its caller chose, or the id of its job.
pub fn id_of(job: &Job) -> String {
    match job.alias().filter(|alias| &*alias.scope == NAMESPACE) {
        Some(alias) => alias.key.to_string(),
        None => job.id.to_string(),
    }
}

/// A label of a job.
pub fn label<'a>(job: &'a Job, name: &str) -> Option<&'a str> {
    let labels = &job.extras.as_ref()?.labels;
    labels.iter().find(|(known, _)| &**known == name).map(|(_, value)| &**value)
}

/// How long a run waits before it is tried again: as long as it says, the same each time. `None` if
/// `job` is no run.
pub fn backoff_ms(job: &Job) -> Option<u64> {
    Purpose::of(&job.job_type)?;
    let said = label(job, BACKOFF_LABEL).and_then(|text| text.parse().ok()).unwrap_or(0);
    Some(said.min(RETRY_DELAY_MS_MAX))
}

/// The name of the queue of runs.
pub fn queue() -> QueueName {
    QueueName::stored(QUEUE.into())
}

/// Writes `text` as JSON has it.
pub fn push_json(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if (letter as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", letter as u32);
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}

fn invalid(field: &'static str, reason: &'static str) -> Rejection {
    Rejection::FieldInvalid { field, reason }
}
