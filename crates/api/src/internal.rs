//! Moves by hand, for replay and rehearsal; the routes exist only where they are switched on.

use crate::{Json, Time};
use serde::{Deserialize, Serialize};

/// What came of an attempt that was run by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ran {
    /// The job.
    pub job_id: String,
    /// Where it stands.
    pub final_status: String,
    /// Retries scheduled so far.
    pub retry_count: u16,
    /// The DLQ item, if it came to that.
    pub dlq_id: Option<String>,
    /// How long until the next try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// When the next try is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
}

/// A move asked for by hand.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Transition {
    /// Where to.
    pub new_status: String,
}

/// Where a job stands after a move by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Moved {
    /// The job.
    pub job_id: String,
    /// Where it stands.
    pub status: String,
    /// Retries scheduled so far.
    pub retry_count: u16,
}

/// One submission, as the outbox tells of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutboxEvent {
    /// Its place among all events.
    pub position: u64,
    /// Names it for good.
    pub event_id: String,
    /// Whose job.
    pub tenant_id: String,
    /// Always `job.created`.
    pub event_type: String,
    /// Always `job`.
    pub aggregate_type: String,
    /// The job.
    pub aggregate_id: String,
    /// What is told of the job.
    pub payload: OutboxPayload,
    /// `pending` or `published`, for the consumer that was asked about.
    pub status: String,
    /// By when it was published at the latest.
    pub published_at: Option<Time>,
    /// When the job was submitted.
    pub created_at: Time,
}

/// What the outbox tells of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutboxPayload {
    /// The job.
    pub job_id: String,
    /// Its type.
    pub job_type: String,
    /// Its queue.
    pub queue: String,
    /// Whose it is.
    pub user_id: String,
    /// Its trace.
    pub trace_id: String,
}

/// A stretch of the outbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutboxEvents {
    /// The oldest first.
    pub items: Vec<OutboxEvent>,
    /// Pass it as `after` for those that follow; null if there are none yet.
    pub next_after: Option<u64>,
    /// The consumer that `status` is about.
    pub consumer_name: String,
}

/// An event that a consumer was told of.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutboxPublished {
    /// Which event.
    pub event_id: String,
    /// Always `published`.
    pub status: String,
    /// Which consumer.
    pub consumer_name: String,
    /// The message of it.
    pub message_id: String,
}

/// What a consumer was told of in one go.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutboxRelayed {
    /// Events that it was told of now.
    pub published_count: u64,
    /// Messages of them: each is a job in its queue.
    pub queued_count: u64,
    /// The messages.
    pub message_ids: Vec<String>,
    /// Which consumer.
    pub consumer_name: String,
    /// Whether there may be more: ask again.
    pub has_more: bool,
}

/// A job as a message of its queue.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueMessage {
    /// Names this delivery: whoever acknowledges it shows it.
    pub message_id: String,
    /// The event of its submission.
    pub event_id: String,
    /// The job.
    pub job_id: String,
    /// Whose.
    pub tenant_id: String,
    /// Its trace.
    pub trace_id: String,
    /// Its type.
    pub job_type: String,
    /// Its queue.
    pub queue_name: String,
    /// Which attempt this is, or will be, counted from one.
    pub attempt: u32,
    /// From when on it can be dequeued.
    pub available_at: Time,
    /// What it is about, if it was dequeued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Value, required = false))]
    pub payload: Option<Json>,
    /// Until when it is hidden from others, if it was dequeued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_until: Option<Time>,
}

/// The wish for messages of a queue.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Dequeue {
    /// Who takes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// At most this many; one if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_messages: Option<u64>,
    /// How long they are hidden from others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility_ms: Option<u64>,
}

/// Messages that were taken.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Dequeued {
    /// The messages.
    pub messages: Vec<QueueMessage>,
}

/// A message was dealt with: its job is done.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AckMessage {
    /// Which, as it was dequeued.
    pub message_id: String,
}

/// A message could not be dealt with.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NackMessage {
    /// Which, as it was dequeued.
    pub message_id: String,
    /// Whether it comes again, as the next attempt; a dead letter otherwise. True if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue: Option<bool>,
    /// How long it is hidden before that; by the rule for retries if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

/// What became of a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MessageSettled {
    /// Which.
    pub message_id: String,
    /// Its job.
    pub job_id: String,
    /// Where the job stands.
    pub status: String,
    /// Which attempt comes next, if one does; the last one otherwise.
    pub attempt: u32,
}

/// What one pass over a queue came to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Drained {
    /// Messages taken.
    pub processed: u64,
    /// Jobs of them that are done.
    pub succeeded: u64,
    /// Jobs of them that are tried again.
    pub retrying: u64,
    /// Jobs of them that became dead letters.
    pub failed: u64,
    /// Messages that are gone from the queue.
    pub acked: u64,
    /// Messages that come again.
    pub requeued: u64,
    /// The messages.
    pub message_ids: Vec<String>,
}

/// One step of a job, for replay.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Checkpoint {
    /// Names it for good: the event of the move.
    pub checkpoint_id: String,
    /// The trace that the job is in.
    pub thread_id: String,
    /// The job.
    pub job_id: String,
    /// The number of the move in the job's history.
    pub seq: u32,
    /// `job_started`, `job_retrying`, `job_failed`, `job_succeeded` or `job_cancelled`.
    pub node: String,
    /// Where the job stood then.
    pub status: String,
    /// What replay goes by.
    pub payload: CheckpointPayload,
    /// When.
    pub occurred_at: Time,
}

/// What replay goes by.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckpointPayload {
    /// The trace.
    pub trace_id: String,
    /// The job.
    pub job_id: String,
    /// Retries scheduled by then.
    pub retry_count: u32,
    /// As `running->retrying`.
    pub status_transition: String,
    /// Why, as a code.
    pub reason_code: Option<String>,
}

/// Steps of the jobs of one trace.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Checkpoints {
    /// The oldest job first, its steps in order.
    pub items: Vec<Checkpoint>,
    /// Where the next page starts.
    pub next_cursor: Option<String>,
}

/// Numbers of one tenant. What there is more of than `counted_up_to` is told as that.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MetricsSummary {
    /// Of jobs.
    pub api: SummaryApi,
    /// Of the work on them.
    pub worker: SummaryWorker,
    /// Against what is promised.
    pub slo: SummarySlo,
    /// What else is known.
    pub observability: SummaryObservability,
}

/// Numbers of jobs that are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SummaryApi {
    /// All of them.
    pub total_jobs: u64,
    /// Those that ended well.
    pub succeeded_jobs: u64,
    /// Those that failed for good.
    pub failed_jobs: u64,
    /// The share of those that failed among those that ended.
    pub error_rate: f64,
}

/// Numbers of the work on jobs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SummaryWorker {
    /// Jobs that wait for another try.
    pub retrying_jobs: u64,
    /// Dead letters that wait for a decision.
    pub dlq_open: u64,
    /// Submissions that the consumer `default` was not told of, counted up to 1000.
    pub outbox_pending: u64,
    /// Retries of a job whose type says nothing else.
    pub max_retries: u16,
    /// How long the first of them waits.
    pub retry_backoff_base_ms: u64,
    /// How long any of them waits at most.
    pub retry_backoff_max_ms: u64,
    /// The queue of jobs that name none.
    pub queue_name: String,
    /// Jobs that wait in it.
    pub queue_pending: u64,
}

/// Against what is promised.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SummarySlo {
    /// The share of jobs that ended well among those that ended.
    pub success_rate: f64,
}

/// What else is known.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SummaryObservability {
    /// Jobs that have not ended.
    pub backlog_jobs: u64,
    /// What they take up.
    pub backlog_bytes: u64,
    /// The newest position of the stream of events.
    pub stream_position: u64,
    /// Up to here is counted.
    pub counted_up_to: u64,
}

/// Has a job wait for a person.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Interrupt {
    /// What the person is asked.
    pub question: String,
    /// Answers to choose from; any will do if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
    /// The lease of whoever works on the job; not needed if nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_token: Option<String>,
}

/// What a job waits for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Interrupted {
    /// The job.
    pub job_id: String,
    /// `open`, `answered`, `defaulted`, `expired` or `withdrawn`.
    pub status: String,
    /// What the person is asked.
    pub question: String,
    /// Answers to choose from.
    pub options: Vec<String>,
    /// What has to be shown for the answer, once; null when none is waited for any more.
    pub resume_token: Option<String>,
    /// Until when an answer counts.
    pub expires_at: Option<Time>,
    /// The answer, if there is one.
    pub answer: Option<String>,
    /// Who gave it.
    pub reviewer_id: Option<String>,
}

/// Has a job go on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Resume {
    /// What the job showed when it began to wait.
    pub resume_token: String,
    /// Who answers.
    #[serde(default)]
    pub reviewer_id: String,
    /// So.
    pub answer: String,
}
