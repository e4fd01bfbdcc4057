//! Changes to the registries: written before anything else of their batch, with every waiting job
//! moved to the lane and the place it has from now on, while no other server commits.

use crate::connections::{Call, Connection};
use crate::fault::Fault;
use crate::queries::Query;
use crate::registry::{Registry, limit};
use crate::this_server::ThisServer;
use crate::values::hash_uuid;
use mainspring_kernel::{Event, QueueOrder, QueueSpec, TenantId, Token, TypeSpec, UserId};
use mainspring_store::record::{encode_token, encode_type};
use std::time::Duration;
use uuid::Uuid;

/// A queue of a million jobs takes a while to be put in another order.
const LONG: Duration = Duration::from_secs(60);

/// Writes `settings` in the transaction under way: from `known` to `registry`.
pub(crate) async fn write(
    connection: &mut Connection<'_>,
    server: &ThisServer,
    known: &Registry,
    registry: &Registry,
    settings: &[Event],
) -> Result<(), Fault> {
    for event in settings {
        match event {
            // The last change of a name counts.
            Event::TypeSet(spec) => {
                if let Some(spec) = registry.types.get(&spec.name) {
                    set_type(connection, known.types.get(&spec.name), spec).await?;
                }
            }
            Event::QueueSet(spec) => {
                if let Some(spec) = registry.queues.get(&spec.name) {
                    let order = known.order(&spec.name);
                    set_queue(connection, order, spec).await?;
                }
            }
            Event::TokenIssued(token) => {
                set_token(connection, registry.tokens.get(&token.id)).await?
            }
            Event::TokenRevoked { token, .. } => {
                set_token(connection, registry.tokens.get(token)).await?;
            }
            Event::JobSubmitted(_)
            | Event::JobMoved(_)
            | Event::LeaseRenewed { .. }
            | Event::EffectCommitted { .. }
            | Event::ItemOpened(_)
            | Event::ItemChanged { .. }
            | Event::EntitySet(_)
            | Event::EntityRemoved { .. } => {}
        }
    }
    // Lanes that were split are seen by this transaction only, until it commits.
    let rows =
        connection.run(false, vec![Call::new(Query::LoadLanes, vec![Box::new(0_i32)])], false);
    let rows = rows.await?.pop().unwrap_or_default();
    server.lanes_mut().learn(&rows)
}

async fn set_type(
    connection: &mut Connection<'_>,
    old: Option<&TypeSpec>,
    spec: &TypeSpec,
) -> Result<(), Fault> {
    let mut record = Vec::new();
    encode_type(spec, &mut record);
    let is_by_user = spec.is_limited_by_user();
    let name = spec.name.as_str().to_owned();
    let mut calls = vec![Call::new(
        Query::SetType,
        vec![
            Box::new(name.clone()),
            Box::new(spec.queue.as_str().to_owned()),
            Box::new(i16::from(spec.priority)),
            Box::new(i16::try_from(spec.max_retries).unwrap_or(i16::MAX)),
            Box::new(i32::try_from(spec.timeout_ms).unwrap_or(i32::MAX)),
            Box::new(is_by_user),
            Box::new(record),
        ],
    )];
    if old.is_some_and(TypeSpec::is_limited_by_user) != is_by_user {
        for query in [Query::SplitLanes, Query::RelaneReady, Query::RelaneWaiting] {
            calls.push(Call::new(query, vec![Box::new(name.clone()), Box::new(is_by_user)]));
        }
    }
    connection.run_within(LONG, false, calls, false).await?;
    let counts_same = |old: &TypeSpec| {
        old.concurrency_limit.is_some() == spec.concurrency_limit.is_some()
            && old.concurrency_scope == spec.concurrency_scope
    };
    match old {
        Some(old) if counts_same(old) => Ok(()),
        None if spec.concurrency_limit.is_none() => Ok(()),
        _ => count_anew(connection, spec).await,
    }
}

/// Running jobs are counted under the limit that is true from now on.
async fn count_anew(connection: &mut Connection<'_>, spec: &TypeSpec) -> Result<(), Fault> {
    let call = Call::new(Query::LoadRunning, vec![Box::new(spec.name.as_str().to_owned())]);
    let rows =
        connection.run_within(LONG, false, vec![call], false).await?.pop().unwrap_or_default();
    let (mut ids, mut keys) = (Vec::new(), Vec::new());
    for row in rows {
        let tenant = TenantId::stored(row.try_get::<_, &str>(1)?.into());
        let user = UserId::stored(row.try_get::<_, &str>(2)?.into());
        let key = limit(spec, &tenant, Some(&user)).map(|(_, key)| key);
        ids.push(row.try_get::<_, Uuid>(0)?);
        keys.push(key.map(hash_uuid));
    }
    let call = Call::new(Query::RelimitLive, vec![Box::new(ids), Box::new(keys)]);
    connection.run_within(LONG, false, vec![call], false).await.map(|_| ())
}

async fn set_queue(
    connection: &mut Connection<'_>,
    old: QueueOrder,
    spec: &QueueSpec,
) -> Result<(), Fault> {
    let name = spec.name.as_str().to_owned();
    let is_by_due = spec.order == QueueOrder::Due;
    let mut calls = vec![Call::new(
        Query::SetQueue,
        vec![Box::new(name.clone()), Box::new(spec.is_paused), Box::new(is_by_due)],
    )];
    if old != spec.order {
        for query in [Query::ReorderReady, Query::ReorderWaiting] {
            calls.push(Call::new(query, vec![Box::new(name.clone()), Box::new(is_by_due)]));
        }
    }
    connection.run_within(LONG, false, calls, false).await.map(|_| ())
}

async fn set_token(connection: &mut Connection<'_>, token: Option<&Token>) -> Result<(), Fault> {
    let Some(token) = token else { return Ok(()) };
    let mut record = Vec::new();
    encode_token(token, &mut record);
    let id = Uuid::from_u128(token.id.0);
    let call = Call::new(Query::SetToken, vec![Box::new(id), Box::new(record)]);
    connection.run_within(LONG, false, vec![call], false).await.map(|_| ())
}
