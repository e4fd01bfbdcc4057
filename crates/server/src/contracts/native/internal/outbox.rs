//! The outbox as other systems know it: submissions in the order of the stream, and consumers that
//! are told of each once. A consumer is a subscription that nothing is sent for
//! (`kernel/src/entity/subscription.rs`): it stands at a position of the stream, and goes on when
//! somebody relays. The messages themselves are the jobs, which are in their queues already.

use super::queue::{event_id, message_id};
use crate::answer::Reply;
use crate::ask::{Ask, Query};
use crate::limits::{OUTBOX_PAGES_MAX, POSITION_MAX, STREAM_PAGE, SUBSCRIPTIONS_PER_TENANT_MAX};
use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_engine::store::{EntityFilter, LoggedMove, Scope};
use mainspring_kernel::entity::subscription::{
    EventName, Filter, Gap, Subscription, SubscriptionCommand, SubscriptionSpec, Target,
    of_consumer,
};
use mainspring_kernel::entity::{Body, EntityId, Kind};
use mainspring_kernel::{JobId, Principal, QueueName, Rejection, Timestamp};
use std::time::Duration;

/// The consumer that is meant where none is named.
const DEFAULT: &str = "default";
/// Relays of one consumer at once are told so after this many tries.
const TRIES: usize = 5;

/// Which consumer a request is about.
struct Consumer {
    id: EntityId,
    name: String,
    /// Only what is in this queue.
    queue: Option<QueueName>,
}

impl Consumer {
    fn of(query: &Query, who: &Principal) -> Result<Consumer, Refusal> {
        let name = query.get("consumer_name").unwrap_or(DEFAULT).to_owned();
        // A name like any other: of the same length, and without padding.
        QueueName::new(&name).map_err(|bad| refusal::invalid("consumer_name", bad.reason))?;
        let queue = query.get("queue_name").map(QueueName::new).transpose();
        let queue = queue.map_err(|bad| refusal::invalid("queue_name", bad.reason))?;
        let id = of_consumer(&who.tenant, queue.as_ref().map_or("", |queue| queue.as_str()), &name);
        Ok(Consumer { id, name, queue })
    }

    async fn find(&self, ask: &Ask) -> Result<Option<Subscription>, Refusal> {
        let found = ask.engine().entity(self.id).await?;
        Ok(found.and_then(
            |entity| {
                if let Body::Subscription(it) = entity.body { Some(*it) } else { None }
            },
        ))
    }

    /// The consumer, made on first use at the beginning of the stream.
    async fn find_or_make(&self, ask: &Ask, who: &Principal) -> Result<Subscription, Refusal> {
        if let Some(known) = self.find(ask).await? {
            return Ok(known);
        }
        let all = EntityFilter::of(Kind::Subscription, Scope::Tenant(who.tenant.clone()));
        let most = SUBSCRIPTIONS_PER_TENANT_MAX;
        if ask.engine().count_entities(&all, most).await? >= most {
            return Err(refusal::too_many_subscriptions(most));
        }
        let spec = SubscriptionSpec {
            name: self.name.as_str().into(),
            target: Target::Consumer { name: self.name.as_str().into() },
            filter: Filter {
                events: vec![EventName::Submitted],
                queues: self.queue.iter().cloned().collect(),
                ..Filter::default()
            },
        };
        let command = SubscriptionCommand::Create {
            id: self.id,
            tenant: who.tenant.clone(),
            owner: who.user.clone(),
            spec: Box::new(spec),
            secret: None,
            position: 0,
        };
        match ask.engine().execute_one(command.into()).await? {
            Ok(_) | Err(Rejection::EntityExists { .. }) => {}
            Err(no) => return Err(no.into()),
        }
        self.find(ask).await?.ok_or_else(refusal::internal)
    }

    fn wants(&self, who: &Principal, it: &LoggedMove) -> bool {
        it.tenant == who.tenant
            && EventName::of(&it.transition) == EventName::Submitted
            && self.queue.as_ref().is_none_or(|queue| it.queue == *queue)
    }

    /// Submissions after a position, up to `most`, with where the search ended and whether that was
    /// the end of the stream. What others did is passed over, a bounded number of moves at a time.
    async fn submissions(
        &self,
        ask: &Ask,
        who: &Principal,
        (from, most): (u64, usize),
    ) -> Result<Stretch, Refusal> {
        let mut stretch = Stretch { found: Vec::new(), ends_at: from, is_at_end: false, gap: None };
        for _ in 0..OUTBOX_PAGES_MAX {
            let at = stretch.ends_at;
            let page = ask.engine().moves_after(at, STREAM_PAGE, Duration::ZERO).await?;
            if page.has_gap {
                let first = page.moves.first().map_or(page.newest + 1, |it| it.position);
                let gap = Gap { from: at + 1, to: first - 1, at: Timestamp::EPOCH };
                stretch.gap = Some(gap).filter(|gap| gap.from <= gap.to);
                stretch.ends_at = stretch.gap.map_or(at, |gap| gap.to);
            }
            let (newest, is_empty) = (page.newest, page.moves.is_empty());
            for it in page.moves {
                let is_wanted = self.wants(who, &it);
                if is_wanted && stretch.found.len() >= most {
                    return Ok(stretch);
                }
                stretch.ends_at = it.position;
                if is_wanted {
                    stretch.found.push(it);
                }
            }
            stretch.is_at_end = is_empty || stretch.ends_at >= newest;
            if stretch.is_at_end {
                break;
            }
        }
        Ok(stretch)
    }
}

/// A part of the stream.
struct Stretch {
    found: Vec<LoggedMove>,
    ends_at: u64,
    is_at_end: bool,
    gap: Option<Gap>,
}

/// Submissions that a consumer was not told of, counted up to `most`.
pub(super) async fn pending(ask: &Ask, who: &Principal, most: usize) -> Result<u64, Refusal> {
    let consumer = Consumer {
        id: of_consumer(&who.tenant, "", DEFAULT),
        name: DEFAULT.to_owned(),
        queue: None,
    };
    let known = consumer.find(ask).await?;
    let (from, ahead) = known.map_or((0, Vec::new()), |it| (it.position, it.ahead));
    let stretch = consumer.submissions(ask, who, (from, most)).await?;
    Ok(stretch.found.iter().filter(|it| !ahead.contains(&it.job)).count() as u64)
}

pub(in super::super) const EVENTS: [(&str, &str); 5] = [
    ("limit", "Events of a page, up to 100."),
    ("after", "Events behind this position; from the beginning if left out."),
    ("status", "Only those that are `pending` or `published`."),
    ("consumer_name", "For this consumer; `default` if left out."),
    ("queue_name", "Of jobs in this queue only; it is another consumer of that name then."),
];

pub(in super::super) async fn events(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&EVENTS.map(|(name, _)| name))?;
    let (limit, after) = (query.limit()?, query.number("after")?);
    if after.is_some_and(|after| after > POSITION_MAX) {
        return Err(refusal::invalid("after", format_args!("must be at most {POSITION_MAX}")));
    }
    let wanted = match query.get("status") {
        None => None,
        Some(status @ ("pending" | "published")) => Some(status),
        Some(_) => return Err(refusal::invalid("status", "must be pending or published")),
    };
    let consumer = Consumer::of(&query, &who)?;
    let known = consumer.find(&ask).await?;
    let standing = known.as_ref().map_or(0, |it| it.position);
    let published = |it: &LoggedMove| {
        it.position <= standing || known.as_ref().is_some_and(|known| known.ahead.contains(&it.job))
    };
    let from = match (after, wanted) {
        (Some(after), _) => after,
        (None, Some("pending")) => standing,
        (None, _) => 0,
    };
    let stretch = consumer.submissions(&ask, &who, (from, limit)).await?;
    let published_by = known.as_ref().and_then(|it| it.delivered_at).map(|at| api::Time(at.0));
    let shown = |it: &LoggedMove| {
        let is_published = published(it);
        api::internal::OutboxEvent {
            position: it.position,
            event_id: event_id(it.job),
            tenant_id: it.tenant.to_string(),
            event_type: "job.created".to_owned(),
            aggregate_type: "job".to_owned(),
            aggregate_id: it.job.to_string(),
            payload: api::internal::OutboxPayload {
                job_id: it.job.to_string(),
                job_type: it.job_type.to_string(),
                queue: it.queue.to_string(),
                user_id: it.user.to_string(),
                trace_id: it.trace_id.to_string(),
            },
            status: if is_published { "published" } else { "pending" }.to_owned(),
            published_at: published_by.filter(|_| is_published),
            created_at: api::Time(it.created_at.0),
        }
    };
    let is_asked =
        |it: &&LoggedMove| wanted.is_none_or(|wanted| published(it) == (wanted == "published"));
    Ok(Reply::data(&api::internal::OutboxEvents {
        items: stretch.found.iter().filter(is_asked).map(shown).collect(),
        next_after: (!stretch.is_at_end).then_some(stretch.ends_at),
        consumer_name: consumer.name,
    }))
}

/// The job whose submission an event is.
fn job_of(event: &str) -> Option<JobId> {
    let (letters, seq) = event.strip_prefix("evt_")?.rsplit_once('_')?;
    let job = format!("{}_{letters}", JobId::PREFIX).parse().ok()?;
    (seq == "1").then_some(job)
}

/// Tells a consumer of one submission, before its turn if it has to be.
pub(in super::super) async fn publish(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&["consumer_name", "queue_name"])?;
    let consumer = Consumer::of(&query, &who)?;
    let scope = Scope::Tenant(who.tenant.clone());
    let found = match job_of(ask.param()) {
        Some(job) => ask.engine().job_within(job, &scope).await?,
        None => None,
    };
    let is_there = |queue: &QueueName| consumer.queue.as_ref().is_none_or(|it| it == queue);
    let Some(job) = found.map(|found| found.job).filter(|job| is_there(&job.queue)) else {
        return Err(match who.is_admin() {
            true => refusal::outbox_event_unknown(),
            false => refusal::denied(),
        });
    };
    let known = consumer.find_or_make(&ask, &who).await?;
    // What lies behind the consumer was told already. What is too far ahead to be found counts as
    // not told: a second telling has the same id.
    let stretch = consumer.submissions(&ask, &who, (known.position, usize::MAX)).await?;
    let is_pending = !stretch.is_at_end || stretch.found.iter().any(|it| it.job == job.id);
    if is_pending {
        let command = SubscriptionCommand::TellAhead { id: consumer.id, job: job.id };
        ask.engine().execute_one(command.into()).await??;
    }
    Ok(Reply::data(&api::internal::OutboxPublished {
        event_id: event_id(job.id),
        status: "published".to_owned(),
        consumer_name: consumer.name,
        message_id: message_id(job.id, None),
    }))
}

pub(in super::super) const RELAY: [(&str, &str); 3] = [
    ("queue_name", "Only of jobs in this queue."),
    ("consumer_name", "Which consumer; `default` if left out."),
    ("limit", "Events to tell of, up to 100."),
];

pub(in super::super) async fn relay(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&RELAY.map(|(name, _)| name))?;
    let limit = query.limit()?;
    let consumer = Consumer::of(&query, &who)?;
    for _ in 0..TRIES {
        let known = consumer.find_or_make(&ask, &who).await?;
        let stretch = consumer.submissions(&ask, &who, (known.position, limit)).await?;
        let passed: Vec<JobId> = stretch.found.iter().map(|it| it.job).collect();
        let is_new = |job: &&JobId| !known.ahead.contains(job);
        let new: Vec<JobId> = passed.iter().filter(is_new).copied().collect();
        if stretch.ends_at > known.position {
            let command = SubscriptionCommand::Advance {
                id: consumer.id,
                from: known.position,
                position: stretch.ends_at,
                delivered: new.len() as u64,
                passed,
                gap: stretch.gap,
            };
            match ask.engine().execute_one(command.into()).await? {
                Ok(_) => {}
                // Somebody else relayed meanwhile: theirs are not told again.
                Err(Rejection::EntityChanged { .. }) => continue,
                Err(no) => return Err(no.into()),
            }
        }
        return Ok(Reply::data(&api::internal::OutboxRelayed {
            published_count: new.len() as u64,
            queued_count: new.len() as u64,
            message_ids: new.iter().map(|job| message_id(*job, None)).collect(),
            consumer_name: consumer.name,
            has_more: !stretch.is_at_end,
        }));
    }
    Err(Rejection::EntityChanged { kind: Kind::Subscription }.into())
}
