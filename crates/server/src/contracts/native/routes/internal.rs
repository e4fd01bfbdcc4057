//! The routes of the internal role: moves by hand, and other systems' words for queues, outbox and
//! workflows. There only where the configuration says so.

use super::super::audit;
use super::super::filters::PAGE;
use super::super::internal::{self as by_hand, outbox, queue, workflows};
use crate::openapi::{Doc, Gives, KeyRule, shape};
use crate::route::table::{get, post};
use crate::route::{Route, Rule, Takes};
use mainspring_api as api;

/// The rule that the internal role is needed, around a handler.
macro_rules! internal {
    ($handler:path) => {
        Rule::Internal(|ask, who| Box::pin($handler(ask, who)))
    };
}

const FAILING: [(&str, &str); 3] = [
    ("force_fail", "End in the dead letter queue."),
    ("transient_fail", "Fail by the retry rules."),
    ("error_code", "The code to fail with."),
];

pub(super) fn table() -> Vec<Route> {
    let mut routes = vec![
        post(
            "/api/v1/internal/jobs/{job_id}/run",
            internal!(by_hand::run),
            Takes::Nothing,
            Doc::new("internal", "runJob", "Run one attempt by hand")
                .query(&FAILING)
                .gives(200, Gives::One(shape::<api::internal::Ran>)),
        ),
        post(
            "/api/v1/internal/jobs/{job_id}/transition",
            internal!(by_hand::transition),
            Takes::Json,
            Doc::new("internal", "moveJob", "Move a job by hand")
                .takes(shape::<api::internal::Transition>)
                .gives(200, Gives::One(shape::<api::internal::Moved>)),
        ),
    ];
    routes.extend(outbox_routes());
    routes.extend(queue_routes());
    routes.extend(workflow_routes());
    routes
}

fn outbox_routes() -> Vec<Route> {
    vec![
        get(
            "/api/v1/internal/outbox/events",
            internal!(outbox::events),
            Doc::new("internal", "listOutboxEvents", "List submissions in their order")
                .query(&outbox::EVENTS)
                .gives(200, Gives::One(shape::<api::internal::OutboxEvents>)),
        ),
        post(
            "/api/v1/internal/outbox/events/{event_id}/publish",
            internal!(outbox::publish),
            Takes::Nothing,
            Doc::new("internal", "publishOutboxEvent", "Tell a consumer of one submission")
                .query(&outbox::RELAY[..2])
                .gives(200, Gives::One(shape::<api::internal::OutboxPublished>)),
        ),
        post(
            "/api/v1/internal/outbox/relay",
            internal!(outbox::relay),
            Takes::Nothing,
            Doc::new("internal", "relayOutbox", "Tell a consumer of what it was not told of yet")
                .text("Each consumer is told of each event once, whoever asks.")
                .query(&outbox::RELAY)
                .gives(200, Gives::One(shape::<api::internal::OutboxRelayed>)),
        ),
    ]
}

fn queue_routes() -> Vec<Route> {
    let message = Gives::One(shape::<api::internal::QueueMessage>);
    let settled = Gives::One(shape::<api::internal::MessageSettled>);
    vec![
        post(
            "/api/v1/internal/queue/{queue_name}/enqueue",
            internal!(queue::enqueue),
            Takes::Json,
            Doc::new("internal", "enqueue", "Submit a job as a message of a queue")
                .key(KeyRule::HeaderOrBody)
                .takes(shape::<api::job::Submit>)
                .gives(201, message)
                .also(200, "The message of the job that the key names", message),
        ),
        post(
            "/api/v1/internal/queue/{queue_name}/dequeue",
            internal!(queue::dequeue),
            Takes::MaybeJson,
            Doc::new("internal", "dequeue", "Take messages of a queue")
                .text("What is not acknowledged in time comes again.")
                .takes(shape::<api::internal::Dequeue>)
                .gives(200, Gives::One(shape::<api::internal::Dequeued>)),
        ),
        post(
            "/api/v1/internal/queue/{queue_name}/ack",
            internal!(queue::ack),
            Takes::Json,
            Doc::new("internal", "ackMessage", "Say that a message was dealt with")
                .takes(shape::<api::internal::AckMessage>)
                .gives(200, settled),
        ),
        post(
            "/api/v1/internal/queue/{queue_name}/nack",
            internal!(queue::nack),
            Takes::Json,
            Doc::new("internal", "nackMessage", "Say that a message could not be dealt with")
                .takes(shape::<api::internal::NackMessage>)
                .gives(200, settled),
        ),
        post(
            "/api/v1/internal/worker/queues/{queue_name}/drain-once",
            internal!(queue::drain),
            Takes::Nothing,
            Doc::new("internal", "drainQueue", "Take messages and end their attempts at once")
                .query(&[
                    ("max_messages", "Messages to take, up to 100; one if left out."),
                    FAILING[0],
                    FAILING[1],
                    FAILING[2],
                ])
                .gives(200, Gives::One(shape::<api::internal::Drained>)),
        ),
    ]
}

fn workflow_routes() -> Vec<Route> {
    let waits = Gives::One(shape::<api::internal::Interrupted>);
    vec![
        get(
            "/api/v1/internal/workflows/{thread_id}/checkpoints",
            internal!(workflows::checkpoints),
            Doc::new("internal", "listCheckpoints", "List the steps of the jobs of a trace")
                .query(&PAGE)
                .gives(200, Gives::One(shape::<api::internal::Checkpoints>)),
        ),
        get(
            "/api/v1/internal/ops/metrics/summary",
            internal!(workflows::summary),
            Doc::new("internal", "getMetricsSummary", "Read the numbers of the tenant")
                .gives(200, Gives::One(shape::<api::internal::MetricsSummary>)),
        ),
        get(
            "/api/v1/internal/audit/integrity",
            internal!(audit::verify),
            Doc::new("internal", "getAuditIntegrity", "See whether the audit trail is whole")
                .query(&audit::VERIFY)
                .gives(200, Gives::One(shape::<api::audit::AuditVerdict>)),
        ),
        post(
            "/api/v1/internal/jobs/{job_id}/interrupt",
            internal!(workflows::interrupt),
            Takes::Json,
            Doc::new("internal", "interruptJob", "Have a job wait for a person")
                .text("It waits for a day, without using a try.")
                .takes(shape::<api::internal::Interrupt>)
                .gives(200, waits),
        ),
        get(
            "/api/v1/internal/jobs/{job_id}/interrupt",
            internal!(workflows::interrupted),
            Doc::new("internal", "getInterrupt", "Read what a job waits for").gives(200, waits),
        ),
        post(
            "/api/v1/internal/workflows/resume",
            internal!(workflows::resume),
            Takes::Json,
            Doc::new("internal", "resumeJob", "Have a job go on with a person's answer")
                .takes(shape::<api::internal::Resume>)
                .gives(200, waits),
        ),
    ]
}
