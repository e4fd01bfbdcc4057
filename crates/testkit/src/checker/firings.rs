//! C1: an entity has one job for each time it fired, and says how many. C2: it tells what became of
//! every instant for which it was to fire, once. V3: it goes on firing.

use super::Findings;
use super::facts::Facts;
use std::collections::BTreeMap;

/// The entity that submitted a job under this key, if it was one.
pub(super) fn source(key: &str) -> Option<&str> {
    let (entity, instant) = key.split_once('@')?;
    instant.parse::<i64>().ok().map(|_| entity)
}

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    let dump = &facts.history.dump;
    let mut jobs: BTreeMap<&str, u64> = BTreeMap::new();
    for job in facts.jobs.values() {
        if let Some(entity) = job.key.as_deref().and_then(source) {
            *jobs.entry(entity).or_default() += 1;
        }
    }
    for firing in &dump.firings {
        let count = jobs.remove(&*firing.entity).unwrap_or(0);
        // What ended long ago may be gone, where such jobs are dropped.
        let is_right = match dump.kept_since {
            None => count == firing.count,
            Some(_) => count <= firing.count,
        };
        let text = format!("fired {} times and has {count} jobs", firing.count);
        found.expect(is_right, "C1", &firing.entity, text);
    }
    for firing in &dump.firings {
        let text = format!("tells of {} firings, and there were {}", firing.told, firing.due);
        found.expect(firing.told == firing.due, "C2", &firing.entity, text);
    }
    for (entity, count) in jobs {
        found.add("C1", entity, format!("is unknown and has {count} jobs"));
    }
    for entity in &dump.silent {
        found.add("V3", entity, "did not fire any more");
    }
}
