//! Bulk operations between the wire and the kernel.

use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_engine::Admitted;
use mainspring_kernel::entity::Entity;
use mainspring_kernel::entity::alert::Milli;
use mainspring_kernel::entity::bulk::{Bulk, BulkAction, BulkFilter, BulkSpec, Canary};
use mainspring_kernel::limits::{ERROR_CODE_BYTES_MAX, NAME_BYTES_MAX};
use mainspring_kernel::signature::Signature;
use mainspring_kernel::text::{NO_CONTROL, has_control, is_code_letter};
use mainspring_kernel::{DlqState, JobType, QueueName, StateName, Timestamp, UserId};
use std::fmt::Display;

/// What is wanted, as the kernel has it.
pub(super) fn spec(wish: api::bulk::CreateBulk) -> Result<BulkSpec, Refusal> {
    let action = BulkAction::parse(&wish.action).ok_or_else(|| {
        refusal::invalid("action", "must be requeue, discard, cancel, pause or resume")
    })?;
    let filter = kernel_filter(action, &wish.filter)?;
    let canary = wish.canary.map(canary).transpose()?;
    Ok(BulkSpec { action, filter, reason: wish.reason.into(), canary })
}

fn canary(wish: api::bulk::BulkCanary) -> Result<Canary, Refusal> {
    let ratio = wish.max_failure_ratio;
    if !(0.0..=1.0).contains(&ratio) {
        return Err(refusal::invalid("canary.max_failure_ratio", "must be between 0 and 1"));
    }
    let max_failure_ratio = Milli((ratio * 1_000.0).round() as u64);
    Ok(Canary { first: wish.first, max_failure_ratio })
}

fn kernel_filter(action: BulkAction, wish: &api::bulk::BulkFilter) -> Result<BulkFilter, Refusal> {
    let bad = |field: &'static str| {
        move |why: &dyn Display| refusal::invalid(format!("filter.{field}"), why)
    };
    let state = match (action, wish.status.as_deref()) {
        (_, None) => None,
        (BulkAction::Requeue | BulkAction::Discard, Some(open)) => {
            if open != DlqState::Open.as_str() {
                return Err(bad("status")(&"must be open, or left out"));
            }
            None
        }
        (BulkAction::Cancel | BulkAction::Pause | BulkAction::Resume, Some(state)) => {
            Some(StateName::parse(state).ok_or_else(|| bad("status")(&"is not a state"))?)
        }
    };
    let job_type = wish.job_type.as_deref().map(JobType::new).transpose();
    let queue = wish.queue.as_deref().map(QueueName::new).transpose();
    let user = wish.user_id.as_deref().map(UserId::new).transpose();
    let text = |field: &'static str, text: &Option<String>, most: usize| match text.as_deref() {
        Some(text) if text.is_empty() || text.len() > most => {
            Err(bad(field)(&format_args!("must be between 1 and {most} bytes long")))
        }
        Some(text) if has_control(text) => Err(bad(field)(&NO_CONTROL)),
        text => Ok(text.map(Into::into)),
    };
    let labels = wish.label.iter().flatten().map(|label| {
        let parts = label.split_once('=').filter(|(name, _)| !name.is_empty());
        let parts = parts.filter(|_| label.len() <= 2 * NAME_BYTES_MAX + 1 && !has_control(label));
        let (name, value) =
            parts.ok_or_else(|| bad("label")(&"must be names, an equals sign and a value each"))?;
        Ok::<_, Refusal>((name.into(), value.into()))
    });
    let error_code: Option<Box<str>> = text("error_code", &wish.error_code, ERROR_CODE_BYTES_MAX)?;
    if !error_code.as_deref().is_none_or(|code| code.chars().all(is_code_letter)) {
        return Err(bad("error_code")(&"must be letters, digits and _.:- only"));
    }
    if wish.signature.as_deref().is_some_and(|text| Signature::parse(text).is_none()) {
        return Err(bad("signature")(&"must be sixteen hexadecimal digits"));
    }
    Ok(BulkFilter {
        state,
        job_type: job_type.map_err(|why| bad("type")(&why))?,
        queue: queue.map_err(|why| bad("queue")(&why))?,
        trace_id: text("trace_id", &wish.trace_id, NAME_BYTES_MAX)?,
        user: user.map_err(|why| bad("user_id")(&why))?,
        labels: labels.collect::<Result<_, _>>()?,
        error_code,
        signature: wish.signature.as_deref().map(Into::into),
        since: wish.created_after.map(|at| Timestamp(at.0)),
        until: wish.created_before.map(|at| Timestamp(at.0)),
    })
}

/// The filter of an operation, as the wire has it.
pub(super) fn filter(spec: &BulkSpec) -> api::bulk::BulkFilter {
    let filter = &spec.filter;
    let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
    let labels: Vec<String> =
        filter.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    api::bulk::BulkFilter {
        status: filter.state.map(|state| state.as_str().to_owned()),
        job_type: filter.job_type.as_ref().map(ToString::to_string),
        queue: filter.queue.as_ref().map(ToString::to_string),
        trace_id: text(&filter.trace_id),
        user_id: filter.user.as_ref().map(ToString::to_string),
        label: Some(labels).filter(|labels| !labels.is_empty()),
        error_code: text(&filter.error_code),
        signature: text(&filter.signature),
        created_after: filter.since.map(|at| api::Time(at.0)),
        created_before: filter.until.map(|at| api::Time(at.0)),
    }
}

/// An operation, as the wire has it.
pub(super) fn shown(entity: &Entity, bulk: &Bulk) -> api::bulk::Bulk {
    let time = |at: Timestamp| api::Time(at.0);
    let stopped = bulk.stopped.as_ref();
    let canary = bulk.spec.canary.map(|canary| api::bulk::BulkCanary {
        first: canary.first,
        max_failure_ratio: canary.max_failure_ratio.0 as f64 / 1_000.0,
    });
    api::bulk::Bulk {
        bulk_id: entity.id.to_string(),
        action: bulk.spec.action.as_str().to_owned(),
        filter: filter(&bulk.spec),
        reason: bulk.spec.reason.to_string(),
        status: bulk.status.as_str().to_owned(),
        tenant_id: entity.tenant.to_string(),
        requested_by: entity.owner.to_string(),
        requested_at: time(bulk.asked_at),
        approved_by: bulk.approved.as_ref().map(|signed| signed.by.to_string()),
        approved_at: bulk.approved.as_ref().map(|signed| time(signed.at)),
        canary,
        matched: bulk.matched,
        done: bulk.done,
        failed: bulk.failed,
        stopped_by: stopped.and_then(|it| it.by.as_ref()).map(ToString::to_string),
        stopped_reason: stopped.map(|it| it.why.to_string()),
        ended_at: bulk.ended_at.map(time),
        version: entity.version,
    }
}

/// What an operation would be about.
pub(super) fn sampled(
    action: BulkAction,
    admitted: &Admitted,
    needs_approval: bool,
) -> api::bulk::BulkPreview {
    let said = |job: &mainspring_kernel::Job| {
        job.last_failure.as_ref().map(|last| last.failure.message.to_string())
    };
    let items = admitted.items.iter().map(|item| api::bulk::BulkSample {
        id: item.id.to_string(),
        job_type: item.job.job_type.to_string(),
        status: item.state.as_str().to_owned(),
        error_message: said(&item.job),
    });
    let jobs = admitted.jobs.iter().map(|job| api::bulk::BulkSample {
        id: job.id.to_string(),
        job_type: job.job_type.to_string(),
        status: job.state.name().as_str().to_owned(),
        error_message: said(job),
    });
    api::bulk::BulkPreview {
        status: "preview".to_owned(),
        action: action.as_str().to_owned(),
        matched: admitted.matched,
        needs_approval,
        samples: items.chain(jobs).collect(),
    }
}
