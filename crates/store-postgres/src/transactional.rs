//! Submitting inside the caller's own transaction: a thin typed call of the SQL function `submit`.
//! The job exists if and only if the caller commits; what the function does and why is told in
//! `migrations/0002_submit_in_sql.sql`.

use crate::config::SCHEMA;
use crate::queries::in_schema;
use crate::values::{At, job_id};
use mainspring_kernel::{JobId, Timestamp};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

/// A wish for a job. Everything but the first four fields may be left to the type's defaults.
#[derive(Debug, Clone, Default)]
pub struct Submission<'a> {
    /// Whose job it is.
    pub tenant: &'a str,
    /// Who of the tenant.
    pub user_id: &'a str,
    /// The kind of work.
    pub job_type: &'a str,
    /// What the worker gets: JSON, kept byte for byte.
    pub payload: &'a str,
    /// Not before this instant.
    pub run_at: Option<Timestamp>,
    /// Not before this long from now; not together with `run_at`.
    pub delay_ms: Option<i64>,
    /// 0 to 255, higher is sooner.
    pub priority: Option<u8>,
    /// The queue.
    pub queue: Option<&'a str>,
    /// Retries after the first try.
    pub max_retries: Option<u16>,
    /// How long one try may take.
    pub timeout_ms: Option<u32>,
    /// Two wishes with the same key are one job.
    pub idempotency_key: Option<&'a str>,
    /// Where the key counts; the user's own keys unless it is named.
    pub idempotency_scope: Option<&'a str>,
    /// The trace the job belongs to.
    pub trace_id: Option<&'a str>,
    /// What it is about.
    pub subject: Option<&'a str>,
    /// Names and values.
    pub labels: &'a [(&'a str, &'a str)],
    /// The job it came from.
    pub parent: Option<JobId>,
    /// Cancelled if it is not started by then.
    pub expires_at: Option<Timestamp>,
}

/// The job of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    /// Its id.
    pub job: JobId,
    /// Whether the key was taken before, and the job is that of the first submission.
    pub is_hit: bool,
}

/// Why a submission failed. The caller's transaction is over either way: roll it back, or to a
/// savepoint made before.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The wish was refused.
    #[error("{code}: {reason}")]
    Refused {
        /// The stable code of the API: `REQ_VALIDATION_FAILED`, `TYPE_UNKNOWN` or
        /// `IDEMPOTENCY_CONFLICT`.
        code: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The database failed. After a serialization failure or a deadlock the transaction can be
    /// tried again from its start.
    #[error(transparent)]
    Failed(#[from] tokio_postgres::Error),
}

const CALL: &str = "SELECT id, is_hit FROM mainspring.submit(tenant => $1, user_id => $2, \
    job_type => $3, payload => $4::text::json, run_at => $5, delay_ms => $6, priority => $7, \
    queue => $8, max_retries => $9, timeout_ms => $10, idempotency_key => $11, \
    idempotency_scope => $12, trace_id => $13, subject => $14, labels => $15::text::json, \
    parent_id => $16, expires_at => $17)";

/// What `refuse()` raises.
const REFUSALS: [(&str, &str); 3] = [
    ("MS101", "REQ_VALIDATION_FAILED"),
    ("MS102", "TYPE_UNKNOWN"),
    ("MS103", "IDEMPOTENCY_CONFLICT"),
];

/// Submits a job within `transaction`.
///
/// # Errors
/// If the wish is refused or the database fails.
pub async fn submit_in(
    transaction: &tokio_postgres::Transaction<'_>,
    wish: &Submission<'_>,
) -> Result<Submitted, SubmitError> {
    submit_in_schema(transaction, SCHEMA, wish).await
}

/// The same where Mainspring lives in another schema.
///
/// # Errors
/// If the wish is refused or the database fails.
pub async fn submit_in_schema(
    transaction: &tokio_postgres::Transaction<'_>,
    schema: &str,
    wish: &Submission<'_>,
) -> Result<Submitted, SubmitError> {
    let number = |number: Option<u32>| number.map(i64::from);
    let run_at = wish.run_at.map(At);
    let priority = number(wish.priority.map(u32::from));
    let max_retries = number(wish.max_retries.map(u32::from));
    let timeout_ms = number(wish.timeout_ms);
    let labels = labels(wish.labels);
    let parent = wish.parent.map(|id| id.to_string());
    let expires_at = wish.expires_at.map(At);
    let values: [(&(dyn ToSql + Sync), Type); 17] = [
        (&wish.tenant, Type::TEXT),
        (&wish.user_id, Type::TEXT),
        (&wish.job_type, Type::TEXT),
        (&wish.payload, Type::TEXT),
        (&run_at, Type::TIMESTAMPTZ),
        (&wish.delay_ms, Type::INT8),
        (&priority, Type::INT8),
        (&wish.queue, Type::TEXT),
        (&max_retries, Type::INT8),
        (&timeout_ms, Type::INT8),
        (&wish.idempotency_key, Type::TEXT),
        (&wish.idempotency_scope, Type::TEXT),
        (&wish.trace_id, Type::TEXT),
        (&wish.subject, Type::TEXT),
        (&labels, Type::TEXT),
        (&parent, Type::TEXT),
        (&expires_at, Type::TIMESTAMPTZ),
    ];
    // Unnamed, so that it works behind a transaction pooler.
    let rows = transaction.query_typed(&in_schema(CALL, schema), &values).await.map_err(told)?;
    let Some(row) = rows.first() else {
        let reason = "submit() answered with no row".to_owned();
        return Err(SubmitError::Refused { code: "REQ_VALIDATION_FAILED", reason });
    };
    Ok(Submitted { job: job_id(row.try_get(0)?), is_hit: row.try_get(1)? })
}

/// Labels in the order given, as an object.
fn labels(pairs: &[(&str, &str)]) -> Option<String> {
    if pairs.is_empty() {
        return None;
    }
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let entries: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}:{}", text(name), text(value))).collect();
    Some(format!("{{{}}}", entries.join(",")))
}

fn told(error: tokio_postgres::Error) -> SubmitError {
    let Some(fault) = error.as_db_error() else { return SubmitError::Failed(error) };
    if let Some((_, code)) = REFUSALS.iter().find(|(state, _)| fault.code().code() == *state) {
        let reason = fault.message().strip_prefix(code).unwrap_or(fault.message());
        let reason = reason.strip_prefix(": ").unwrap_or(reason).to_owned();
        return SubmitError::Refused { code, reason };
    }
    // The only text that is read by PostgreSQL's own rules is the payload.
    if *fault.code() == SqlState::INVALID_TEXT_REPRESENTATION {
        let reason = format!("payload must be JSON: {}", fault.message());
        return SubmitError::Refused { code: "REQ_VALIDATION_FAILED", reason };
    }
    // PostgreSQL refuses a NUL in any text before submit() sees it.
    if *fault.code() == SqlState::CHARACTER_NOT_IN_REPERTOIRE {
        let reason = "texts must not contain control characters".to_owned();
        return SubmitError::Refused { code: "REQ_VALIDATION_FAILED", reason };
    }
    SubmitError::Failed(error)
}
