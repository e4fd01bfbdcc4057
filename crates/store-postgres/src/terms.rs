//! Facts about jobs and items as numbers, for the tables `term` and `item_term`. Of tenant and
//! fact, so that no tenant's list reads another's rows; the same as `term_number()` makes in SQL.

use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::{DlqItem, Job};
use mainspring_store::Term;
use mainspring_store::filter::lasting_item_terms;

/// The number of a fact.
pub(crate) fn number(tenant: &str, term: Term<'_>) -> i64 {
    let (kind, first, second) = term.parts();
    let kind = kind.to_string();
    let parts = [tenant, &kind, &first, second].map(str::as_bytes);
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest(&parts).0[..8]);
    i64::from_be_bytes(bytes)
}

/// The number of the code of a job's last failed attempt.
pub(crate) fn code(job: &Job) -> Option<i64> {
    let last_failure = job.last_failure.as_ref()?;
    Some(number(job.tenant.as_str(), Term::Code(&last_failure.failure.code)))
}

/// The numbers of what few jobs have when they are submitted, each once: labels and a parent.
pub(crate) fn submitted(job: &Job) -> Vec<i64> {
    let labels = job.extras.iter().flat_map(|extras| &extras.labels);
    let tenant = job.tenant.as_str();
    let mut numbers: Vec<i64> =
        labels.map(|(name, value)| number(tenant, Term::Label(name, value))).collect();
    let parent = job.extras.as_ref().and_then(|extras| extras.parent);
    numbers.extend(parent.map(|parent| number(tenant, Term::Parent(parent))));
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The numbers of all lasting facts about an item; a trigger sees to its state.
pub(crate) fn of_item(item: &DlqItem) -> Vec<i64> {
    let tenant = item.job.tenant.as_str();
    let mut numbers = Vec::new();
    lasting_item_terms(item, |term| numbers.push(number(tenant, term)));
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
