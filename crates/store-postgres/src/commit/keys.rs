//! Idempotency keys as rows of `held_key`. That no two jobs have the same key is the table's doing,
//! not a server's: its primary key lets one in, and the other batch is decided again.

use crate::commit::desk::PostgresDesk;
use crate::connections::{Call, Value};
use crate::queries::Query;
use crate::values::{At, hash_uuid, uuid};
use std::collections::HashSet;
use uuid::Uuid;

/// Who holds which key once the batch is committed: rows of `held_key` that are taken, and those of
/// jobs that ended, free after their window.
pub(super) fn write_keys(desk: &PostgresDesk<'_>) -> Vec<Call> {
    let mut calls = Vec::new();
    let (mut hashes, mut jobs, mut fingerprints, mut old, mut free_at) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut taken = HashSet::new();
    // Sorted, so that two servers that take the same keys wait for each other in one order.
    let mut keys: Vec<_> = desk.keys.iter().collect();
    keys.sort_by_key(|(hash, _)| **hash);
    for (hash, key) in keys {
        let Some(now) = key.now else { continue };
        if key.was.is_some_and(|was| was.job == now.job) {
            continue;
        }
        taken.insert(*hash);
        hashes.push(hash_uuid(*hash));
        jobs.push(uuid(now.job));
        fingerprints.push(now.fingerprint.map(hash_uuid));
        old.push(key.was.map(|was| uuid(was.job)));
        free_at.push(now.free_at.map(At));
    }
    if !hashes.is_empty() {
        calls.push(Call::new(
            Query::InsertKeys,
            vec![
                Box::new(hashes),
                Box::new(jobs),
                Box::new(fingerprints),
                Box::new(old),
                Box::new(free_at),
            ],
        ));
    }
    let freed: Vec<_> = desk.freed.iter().filter(|(hash, ..)| !taken.contains(hash)).collect();
    if !freed.is_empty() {
        let hashes: Vec<Uuid> = freed.iter().map(|(hash, ..)| hash_uuid(*hash)).collect();
        let jobs: Vec<Uuid> = freed.iter().map(|(_, job, _)| uuid(*job)).collect();
        let at: Vec<At> = freed.iter().map(|(.., at)| At(*at)).collect();
        let values: Vec<Value> = vec![Box::new(hashes), Box::new(jobs), Box::new(at)];
        calls.push(Call::new(Query::FreeKeys, values));
    }
    calls
}
