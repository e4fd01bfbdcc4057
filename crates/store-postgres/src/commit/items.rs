//! Dead-letter items as rows of `item`: written when a job goes there, changed at the version they
//! were decided on.

use crate::commit::columns::pairs;
use crate::commit::desk::{ItemEntry, PostgresDesk};
use crate::connections::Call;
use crate::queries::Query;
use crate::terms;
use crate::values::{At, item_uuid};
use mainspring_kernel::DlqItem;
use mainspring_store::record::encode_item;

/// The dead-letter items that the batch opened or changed: rows of `item`, with `item_term` for
/// lists.
pub(super) fn write_items(desk: &PostgresDesk<'_>) -> Vec<Call> {
    let mut calls = Vec::new();
    let changed = desk.items.values().filter(|entry| entry.is_changed);
    let (new, old): (Vec<_>, Vec<_>) = changed.partition(|entry| entry.was.is_none());
    let record = |entry: &&ItemEntry| {
        let mut record = Vec::new();
        encode_item(&entry.item, &mut record);
        record
    };
    let version = |version: u32| i32::try_from(version).unwrap_or(i32::MAX);
    if !new.is_empty() {
        let text = |of: fn(&ItemEntry) -> &str| -> Vec<String> {
            new.iter().map(|entry| of(entry).to_owned()).collect()
        };
        let at: Vec<At> = new.iter().map(|entry| At(entry.item.created_at)).collect();
        calls.push(Call::new(
            Query::InsertItems,
            vec![
                Box::new(new.iter().map(|it| item_uuid(it.item.id)).collect::<Vec<_>>()),
                Box::new(new.iter().map(|it| version(it.item.version)).collect::<Vec<_>>()),
                Box::new(text(|entry| entry.item.state.as_str())),
                Box::new(text(|entry| entry.item.job.tenant.as_str())),
                Box::new(text(|entry| entry.item.job.user.as_str())),
                Box::new(text(|entry| entry.item.job.job_type.as_str())),
                Box::new(at),
                Box::new(new.iter().map(record).collect::<Vec<_>>()),
            ],
        ));
        calls.extend(item_terms(new.iter().map(|entry| &entry.item)));
    }
    if !old.is_empty() {
        let states: Vec<String> =
            old.iter().map(|entry| entry.item.state.as_str().to_owned()).collect();
        let was: Vec<i32> = old.iter().filter_map(|entry| entry.was.map(version)).collect();
        calls.push(Call::new(
            Query::UpdateItems,
            vec![
                Box::new(old.iter().map(|it| item_uuid(it.item.id)).collect::<Vec<_>>()),
                Box::new(was),
                Box::new(old.iter().map(|it| version(it.item.version)).collect::<Vec<_>>()),
                Box::new(states),
                Box::new(old.iter().map(record).collect::<Vec<_>>()),
            ],
        ));
    }
    calls
}

/// The facts by which lists find items.
pub(crate) fn item_terms<'a>(items: impl Iterator<Item = &'a DlqItem>) -> Option<Call> {
    let (mut numbers, mut ids) = (Vec::new(), Vec::new());
    for item in items {
        for number in terms::of_item(item) {
            numbers.push(number);
            ids.push(item_uuid(item.id));
        }
    }
    pairs(Query::InsertItemTerms, (numbers, ids))
}
