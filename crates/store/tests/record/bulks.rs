//! Fixed values of bulk operations.

use super::samples::{id, later, user};
use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::alert::Milli;
use mainspring_kernel::entity::bulk::{
    Bulk, BulkAction, BulkFilter, BulkPage, BulkSpec, BulkStatus, Canary, Outcome, Signed, Stopped,
};
use mainspring_kernel::{JobType, QueueName, StateName, Timestamp, TokenId};

fn outcomes() -> Vec<Outcome> {
    let code = Some("DLQ_REQUEUE_CONFLICT".into());
    vec![
        Outcome { target: id(5).0, made: Some(id(6)), code: None },
        Outcome { target: id(4).0, made: None, code },
    ]
}

/// A bulk operation, made of whatever there is.
pub(crate) fn bulk(name: &str, at: Option<Timestamp>, small: u32) -> Body {
    let everything = BulkFilter {
        state: Some(StateName::Retrying),
        job_type: Some(JobType::stored(name.into())),
        queue: Some(QueueName::stored(name.into())),
        trace_id: Some(name.into()),
        user: Some(user(name)),
        labels: vec![(name.into(), "red".into())],
        error_code: Some(name.into()),
        signature: Some("0123456789abcdef".into()),
        since: at,
        until: at,
    };
    let little = BulkFilter { error_code: Some(name.into()), ..BulkFilter::default() };
    let canary = Canary { first: small, max_failure_ratio: Milli(250) };
    Body::Bulk(Box::new(Bulk {
        spec: BulkSpec {
            action: BulkAction::Requeue,
            filter: if at.is_some() { everything } else { little },
            reason: name.into(),
            canary: at.map(|_| canary),
        },
        asked_with: TokenId(77),
        asked_at: later(1),
        matched: 900,
        status: if at.is_some() { BulkStatus::Stopped } else { BulkStatus::Running },
        approved: at.map(|at| Signed { by: user("bob"), at }),
        stopped: at.map(|_| Stopped { by: Some(user("eve")), why: name.into() }),
        cursor: at.map(|_| id(4).0),
        done: 1,
        failed: u64::from(small),
        outcomes: outcomes(),
        pages: small,
        canaries: vec![id(6)],
        is_judged: at.is_none(),
        ended_at: at,
    }))
}

/// What became of some things.
pub(crate) fn bulk_page() -> Body {
    Body::BulkPage(BulkPage { keep_until: later(900), outcomes: outcomes() })
}
