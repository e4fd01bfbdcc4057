//! Changes to the registries: written before anything else of their batch, with every waiting job
//! moved to the lane and the place it has from now on, while no other server commits.

use crate::connections::{Call, Connection, Part, Value};
use crate::fault::Fault;
use crate::queries::Query;
use crate::registry::{
    Registry, RegistryChange, limit, rate_key, write_queue, write_token, write_type,
};
use crate::this_server::ThisServer;
use crate::values::hash_uuid;
use mainspring_kernel::{QueueOrder, QueueSpec, TenantId, TokenId, TypeSpec, UserId};
use std::time::Duration;
use uuid::Uuid;

/// A queue of a million jobs takes a while to be put in another order.
const LONG: Duration = Duration::from_secs(60);

/// Writes `changes` in the transaction under way: from `known` to `registry`. Answers the lanes
/// that it learned of and that are not there unless it commits.
pub(crate) async fn write(
    connection: &mut Connection<'_>,
    server: &ThisServer,
    known: &Registry,
    registry: &Registry,
    changes: &[RegistryChange],
) -> Result<Vec<i32>, Fault> {
    for change in changes {
        match change {
            // The last change of a name counts.
            RegistryChange::Type(spec) => {
                if let Some(spec) = registry.types.get(&spec.name) {
                    set_type(connection, known.types.get(&spec.name), spec).await?;
                }
            }
            RegistryChange::Queue(spec) => {
                if let Some(spec) = registry.queues.get(&spec.name) {
                    set_queue(connection, known.order(&spec.name), spec).await?;
                }
            }
            RegistryChange::Token(token) => set_token(connection, registry, token.id).await?,
            RegistryChange::Revoked { token, .. } => {
                set_token(connection, registry, *token).await?;
            }
        }
    }
    // Lanes that were split are seen by this transaction only, until it commits.
    let rows =
        connection.run(Part::Middle, vec![Call::new(Query::LoadLanes, vec![Box::new(0_i32)])]);
    let rows = rows.await?.pop().unwrap_or_default();
    server.lanes_mut().learn(&rows)
}

async fn set_type(
    connection: &mut Connection<'_>,
    old: Option<&TypeSpec>,
    spec: &TypeSpec,
) -> Result<(), Fault> {
    let name = spec.name.as_str().to_owned();
    let mut calls = vec![write_type(spec)];
    let parts = parts(spec);
    if old.map_or([false; 3], self::parts) != parts {
        for query in [Query::SplitLanes, Query::RelaneReady, Query::RelaneWaiting] {
            let mut values: Vec<Value> = vec![Box::new(name.clone())];
            values.extend(parts.map(|part| -> Value { Box::new(part) }));
            calls.push(Call::new(query, values));
        }
    }
    connection.run_within(LONG, Part::Middle, calls).await?;
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

/// What the lanes of a type are set apart by: user, concurrency key, rate key.
fn parts(spec: &TypeSpec) -> [bool; 3] {
    [spec.is_limited_by_user(), spec.concurrency_limit.is_some(), rate_key(spec).is_some()]
}

/// Running jobs are counted under the limit that is true from now on.
async fn count_anew(connection: &mut Connection<'_>, spec: &TypeSpec) -> Result<(), Fault> {
    let call = Call::new(Query::LoadRunning, vec![Box::new(spec.name.as_str().to_owned())]);
    let rows =
        connection.run_within(LONG, Part::Middle, vec![call]).await?.pop().unwrap_or_default();
    let (mut ids, mut keys) = (Vec::new(), Vec::new());
    for row in rows {
        let tenant = TenantId::stored(row.try_get::<_, &str>(1)?.into());
        let user = UserId::stored(row.try_get::<_, &str>(2)?.into());
        let own: Option<&str> = row.try_get(3)?;
        let key = limit(spec, &tenant, Some(&user), own).map(|(_, key)| key);
        ids.push(row.try_get::<_, Uuid>(0)?);
        keys.push(key.map(hash_uuid));
    }
    let call = Call::new(Query::RelimitLive, vec![Box::new(ids), Box::new(keys)]);
    connection.run_within(LONG, Part::Middle, vec![call]).await.map(|_| ())
}

async fn set_queue(
    connection: &mut Connection<'_>,
    old: QueueOrder,
    spec: &QueueSpec,
) -> Result<(), Fault> {
    let name = spec.name.as_str().to_owned();
    let is_by_due = spec.order == QueueOrder::Due;
    let mut calls = vec![write_queue(spec)];
    if old != spec.order {
        for query in [Query::ReorderReady, Query::ReorderWaiting] {
            calls.push(Call::new(query, vec![Box::new(name.clone()), Box::new(is_by_due)]));
        }
    }
    connection.run_within(LONG, Part::Middle, calls).await.map(|_| ())
}

async fn set_token(
    connection: &mut Connection<'_>,
    registry: &Registry,
    id: TokenId,
) -> Result<(), Fault> {
    let Some(token) = registry.tokens.get(&id) else { return Ok(()) };
    connection.run_within(LONG, Part::Middle, vec![write_token(token)]).await.map(|_| ())
}
