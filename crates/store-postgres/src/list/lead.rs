//! Which index leads a list.

use super::pieces::{self, Pieces, Span};
use crate::connections::Value;
use crate::fault::Fault;
use crate::rows::state_number;
use crate::this_server::ThisServer;
use mainspring_kernel::StateName;
use mainspring_store::{JobFilter, Term};
use tokio_postgres::types::Type;

/// Lanes that are looked at one by one, at most. A tenant with more has its jobs looked through,
/// newest first, instead.
const LANES_MAX: usize = 512;
/// Rows counted to see which lead is the shortest.
const COUNTED_MAX: usize = 2_000;
/// Rows of a table of jobs on the way that are read as a whole.
const STANDING_MAX: usize = 10_000;
/// Least rows asked for of each of many values.
const SHARE_MIN: usize = 8;

/// A way to find jobs.
#[derive(Debug, Clone)]
pub(super) enum Lead {
    /// All of them by id.
    All,
    /// Those of lanes.
    Lanes(Vec<i32>),
    /// Those of a user in lanes.
    User(String, Vec<i32>),
    /// Those that were given a trace.
    Trace(String),
    /// Those with one of these facts, of different tenants.
    Terms(Vec<i64>),
    /// Those in a state of `live`, by its number.
    Live(i16),
    /// Those in a state of `finished`, by its number.
    Finished(i16),
    /// All that stand in a table of jobs on the way, in lanes if there are not too many.
    OnTheWay(OnTheWay, Option<Vec<i32>>),
    /// All dead-letter items by id.
    AllItems,
    /// Items with one of these facts, of different tenants.
    ItemTerms(Vec<i64>),
}

/// Jobs that are few, or the lead is not taken, for they come in no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnTheWay {
    /// Waiting for their first try.
    Queued,
    /// Waiting for another.
    Retrying,
    /// Started, and not waiting.
    Alarmed,
}

impl Lead {
    /// The rows it reads: `v.v` is the value, the span and the limit follow.
    pub(super) fn source(&self) -> &'static str {
        match self {
            Lead::All => "SELECT id FROM mainspring.job WHERE true",
            Lead::Lanes(_) => "SELECT id FROM mainspring.job WHERE lane = v.v",
            Lead::User(..) => "SELECT id FROM mainspring.job WHERE user_id = $5 AND lane = v.v",
            Lead::Trace(_) => "SELECT id FROM mainspring.job WHERE trace = v.v",
            Lead::Terms(_) => "SELECT id FROM mainspring.term WHERE term = v.v",
            Lead::AllItems => "SELECT id FROM mainspring.item WHERE true",
            Lead::ItemTerms(_) => "SELECT id FROM mainspring.item_term WHERE term = v.v",
            Lead::Live(_) => "SELECT id FROM mainspring.live WHERE state = v.v",
            Lead::Finished(_) => "SELECT id FROM mainspring.finished WHERE state = v.v",
            Lead::OnTheWay(OnTheWay::Queued, None) => {
                "SELECT id FROM (SELECT id, is_retry FROM mainspring.ready
                     UNION ALL SELECT id, is_retry FROM mainspring.waiting) s WHERE NOT is_retry"
            }
            Lead::OnTheWay(OnTheWay::Retrying, None) => {
                "SELECT id FROM (SELECT id, is_retry FROM mainspring.ready
                     UNION ALL SELECT id, is_retry FROM mainspring.waiting) s WHERE is_retry"
            }
            Lead::OnTheWay(OnTheWay::Queued, Some(_)) => {
                "SELECT id FROM (SELECT id, is_retry FROM mainspring.ready WHERE lane = v.v
                     UNION ALL SELECT id, is_retry FROM mainspring.waiting WHERE lane = v.v
                 ) s WHERE NOT is_retry"
            }
            Lead::OnTheWay(OnTheWay::Retrying, Some(_)) => {
                "SELECT id FROM (SELECT id, is_retry FROM mainspring.ready WHERE lane = v.v
                     UNION ALL SELECT id, is_retry FROM mainspring.waiting WHERE lane = v.v
                 ) s WHERE is_retry"
            }
            Lead::OnTheWay(OnTheWay::Alarmed, _) => {
                "SELECT id FROM mainspring.live WHERE alarm_at IS NOT NULL"
            }
        }
    }

    /// The rows that have to be read, wanted or not, to read the wanted ones.
    pub(super) fn whole(&self) -> &'static str {
        match self {
            Lead::OnTheWay(OnTheWay::Queued | OnTheWay::Retrying, None) => {
                "SELECT 1 FROM mainspring.ready UNION ALL SELECT 1 FROM mainspring.waiting"
            }
            Lead::OnTheWay(OnTheWay::Queued | OnTheWay::Retrying, Some(_)) => {
                "SELECT 1 FROM mainspring.ready WHERE lane = v.v
                 UNION ALL SELECT 1 FROM mainspring.waiting WHERE lane = v.v"
            }
            Lead::All
            | Lead::Lanes(_)
            | Lead::User(..)
            | Lead::Trace(_)
            | Lead::Terms(_)
            | Lead::Live(_)
            | Lead::Finished(_)
            | Lead::OnTheWay(OnTheWay::Alarmed, _)
            | Lead::AllItems
            | Lead::ItemTerms(_) => self.source(),
        }
    }

    /// Its values, one search each, and their type.
    pub(super) fn values(&self) -> (Value, Type, &'static str) {
        match self {
            Lead::All | Lead::AllItems | Lead::OnTheWay(_, None) => {
                (Box::new(vec![0_i32]), Type::INT4_ARRAY, "int")
            }
            Lead::Live(state) | Lead::Finished(state) => {
                (Box::new(vec![*state]), Type::INT2_ARRAY, "smallint")
            }
            Lead::Lanes(lanes) | Lead::User(_, lanes) | Lead::OnTheWay(_, Some(lanes)) => {
                (Box::new(lanes.clone()), Type::INT4_ARRAY, "int")
            }
            Lead::Trace(trace) => (Box::new(vec![trace.clone()]), Type::TEXT_ARRAY, "text"),
            Lead::Terms(terms) | Lead::ItemTerms(terms) => {
                (Box::new(terms.clone()), Type::INT8_ARRAY, "bigint")
            }
        }
    }

    /// A value all searches share.
    pub(super) fn also(&self) -> Option<(Value, Type)> {
        match self {
            Lead::User(user, _) => Some((Box::new(user.clone()), Type::TEXT)),
            Lead::All
            | Lead::Lanes(_)
            | Lead::Trace(_)
            | Lead::Terms(_)
            | Lead::Live(_)
            | Lead::Finished(_)
            | Lead::OnTheWay(..)
            | Lead::AllItems
            | Lead::ItemTerms(_) => None,
        }
    }

    /// Rows to ask each value for, so that `looked_at` candidates come together.
    pub(super) fn share(&self, looked_at: usize) -> usize {
        let values = match self {
            Lead::All | Lead::AllItems | Lead::Trace(_) | Lead::Live(_) | Lead::Finished(_) => 1,
            Lead::Lanes(lanes) | Lead::User(_, lanes) => lanes.len(),
            Lead::Terms(terms) | Lead::ItemTerms(terms) => terms.len(),
            // It must be whole, for it has no order; it was just seen to be short.
            Lead::OnTheWay(..) => return usize::MAX,
        };
        (2 * looked_at / values.max(1)).clamp(SHARE_MIN, looked_at)
    }
}

/// The leads that find all that `filter` admits: the shortest, and another if that is long, too.
pub(super) async fn choose(
    server: &ThisServer,
    filter: &JobFilter,
    wanted: &Pieces<'_>,
    span: Span,
) -> Result<Vec<Lead>, Fault> {
    let mut leads = Vec::new();
    if let Some(user) = &wanted.user {
        let lanes = pieces::lanes_of_user(server, user, wanted.lanes.as_deref()).await?;
        leads.push(Lead::User(user.clone(), lanes));
    }
    if let Some(trace) = &filter.trace_id {
        leads.push(Lead::Trace(trace.clone()));
    }
    let of_tenants = |term: Term<'_>| Lead::Terms(wanted.numbers(term));
    for (name, value) in &filter.labels {
        leads.push(of_tenants(Term::Label(name, value)));
    }
    leads.extend(filter.error_code.as_deref().map(|code| of_tenants(Term::Code(code))));
    leads.extend(filter.parent.map(|parent| of_tenants(Term::Parent(parent))));
    let few = |lanes: &&Vec<i32>| lanes.len() <= LANES_MAX;
    let few_lanes = wanted.lanes.as_ref().filter(few);
    let waiting_lanes = wanted.waiting_lanes.as_ref().filter(few);
    let standing = |standing| Lead::OnTheWay(standing, waiting_lanes.cloned());
    match filter.state {
        Some(state @ (StateName::Failed | StateName::Cancelled)) => {
            leads.push(of_tenants(Term::State(state.as_str())));
        }
        Some(StateName::Queued) => leads.push(standing(OnTheWay::Queued)),
        Some(state @ StateName::Retrying) => {
            leads.extend([standing(OnTheWay::Retrying), Lead::Live(state_number(state))]);
        }
        Some(state @ (StateName::Running | StateName::DlqPending | StateName::DlqRecorded)) => {
            leads
                .extend([Lead::OnTheWay(OnTheWay::Alarmed, None), Lead::Live(state_number(state))]);
        }
        // What most jobs come to; before the lanes, whose newest jobs may all be waiting.
        Some(state @ StateName::Succeeded) => leads.push(Lead::Finished(state_number(state))),
        None => {}
    }
    if let Some(lanes) = few_lanes {
        leads.push(Lead::Lanes(lanes.clone()));
    }
    if leads.iter().all(|lead| matches!(lead, Lead::OnTheWay(..))) {
        leads.push(Lead::All);
    }
    shortest(server, leads, span).await
}

/// Where jobs stand that wait for their first try, if a filter asks for no more than that: whoever
/// counts needs no order, and passes by no job that has ended. A lane in which a hundred thousand
/// had succeeded was looked through for a thousand that wait.
pub(super) fn queued(filter: &JobFilter, wanted: &Pieces<'_>) -> Option<Lead> {
    let plain = JobFilter {
        state: Some(StateName::Queued),
        job_type: filter.job_type.clone(),
        queue: filter.queue.clone(),
        ..JobFilter::of(filter.scope.clone())
    };
    let is_few = wanted.waiting_lanes.as_ref().is_none_or(|lanes| lanes.len() <= LANES_MAX);
    let is_plain = *filter == plain && wanted.user.is_none();
    (is_plain && is_few).then(|| Lead::OnTheWay(OnTheWay::Queued, wanted.waiting_lanes.clone()))
}

/// The lead that finds least; if that is much, the next one, too, for what both find is less.
pub(super) async fn shortest(
    server: &ThisServer,
    leads: Vec<Lead>,
    span: Span,
) -> Result<Vec<Lead>, Fault> {
    if leads.len() == 1 {
        return Ok(leads);
    }
    let mut measured: Vec<(usize, Lead)> = Vec::new();
    for lead in leads {
        let is_standing = matches!(lead, Lead::OnTheWay(..));
        let most = if is_standing { STANDING_MAX + 1 } else { COUNTED_MAX + 1 };
        // Counting all there is would tell nothing new.
        let count = match matches!(lead, Lead::All) {
            true => COUNTED_MAX + 1,
            false => pieces::measure(server, &lead, span, most).await?,
        };
        if is_standing && count > STANDING_MAX {
            continue;
        }
        let is_empty = count == 0;
        measured.push((count, lead));
        if is_empty {
            break;
        }
    }
    // Stable: of two that are equally long, the first.
    measured.sort_by_key(|(count, _)| *count);
    let is_short = measured.first().is_some_and(|(count, _)| *count <= COUNTED_MAX);
    let standing = measured.iter().position(|(_, lead)| matches!(lead, Lead::OnTheWay(..)));
    if let Some(at) = standing.filter(|_| !is_short) {
        // Among long ones it is the shortest: of the others only the beginning was counted. It has
        // no order in which it could be compared with another.
        measured.swap(0, at);
        measured.truncate(1);
    }
    measured.truncate(if is_short { 1 } else { 2 });
    let leads: Vec<Lead> = measured.into_iter().map(|(_, lead)| lead).collect();
    Ok(if leads.is_empty() { vec![Lead::All] } else { leads })
}
