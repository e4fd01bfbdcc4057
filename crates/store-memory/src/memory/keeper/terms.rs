//! The numbers by which lists find finished jobs, for the blocks of terms behind an archive run.

use mainspring_kernel::Job;
use mainspring_store::filter::{Term, lasting_terms, passing_terms};

/// The numbers of a finished job's terms.
pub(super) fn term_numbers(job: &Job, known: &mut TermNumbers) -> Vec<u64> {
    let mut numbers = Vec::with_capacity(8);
    lasting_terms(job, |term| numbers.push(known.number(term)));
    passing_terms(job, |term| numbers.push(known.number(term)));
    numbers
}

/// Tenant, owner, user, type, queue and state; traces and labels differ from job to job.
const SHARED_KINDS: usize = 6;

/// The last term of each kind that many jobs share. Their numbers are digests, six for every job
/// that ends, which showed in a profile of a drain by the thousand (`perf record`, E3).
#[derive(Default)]
pub(super) struct TermNumbers([Option<Known>; SHARED_KINDS]);

/// Both texts of a term, and its number.
type Known = (Box<str>, Box<str>, u64);

impl TermNumbers {
    fn number(&mut self, term: Term<'_>) -> u64 {
        let (kind, first, second) = term.parts();
        let place = usize::from(kind).checked_sub(1);
        let Some(last) = place.and_then(|place| self.0.get_mut(place)) else {
            return term.number();
        };
        if let Some((known_first, known_second, number)) = last
            && **known_first == *first
            && **known_second == *second
        {
            return *number;
        }
        let number = term.number();
        *last = Some((first.into(), second.into(), number));
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_the_terms_own_whatever_came_before() {
        let names = ["a", "b", "", "ab"];
        let mut known = TermNumbers::default();
        for first in names.iter().chain(names.iter().rev()) {
            for second in names {
                for term in [
                    Term::Tenant(first),
                    Term::Owner(first, second),
                    Term::User(second),
                    Term::Type(first),
                    Term::Queue(second),
                    Term::State(first),
                    Term::Trace(first),
                    Term::Label(first, second),
                    Term::Code(second),
                    Term::Signature(first),
                ] {
                    assert_eq!(known.number(term), term.number(), "{term:?}");
                    assert_eq!(known.number(term), term.number(), "{term:?} again");
                }
            }
        }
    }
}
