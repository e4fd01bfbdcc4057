//! The two-person rule, for whatever needs it: who asked cannot approve, nor can anybody who had a
//! hand in their token or they in theirs, nor anybody whose token is newer than the request; and a
//! request that is too old has to be made again. It compares people, not tokens: who is whom, and
//! who made whom, is in `person.rs`.

use crate::access::{Principal, Role, Token};
use crate::facts::Facts;
use crate::id::TokenId;
use crate::limits::APPROVAL_WITHIN_MS;
use crate::name::{TenantId, UserId};
use crate::person::{Hand, People};
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// A request that waits for a second person.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// Who asked.
    pub(crate) by: &'a UserId,
    /// With which token, if that was kept.
    pub(crate) token: Option<TokenId>,
    /// When.
    pub(crate) at: Timestamp,
    /// When it was first asked for.
    pub(crate) first_at: Timestamp,
}

/// Refuses a request that nobody could approve. Tokens issued from now on do not count, so that is
/// known already.
pub(crate) fn could_be_approved(
    by: &Principal,
    tenant: &TenantId,
    asked_at: Timestamp,
    facts: &Facts<'_>,
) -> Result<(), Rejection> {
    let mut people = People::new(facts.tokens);
    let may_approve = |token: &Token| {
        token.is_live(facts.now)
            && token.reaches(tenant)
            && token.roles.any(&[Role::Approver])
            && token.issued_at < asked_at
    };
    let can_be_approved = people.tokens().iter().any(|token| {
        may_approve(token) && people.are_independent(Hand::from(by), Hand::from(*token))
    });
    if can_be_approved { Ok(()) } else { Err(Rejection::NoSecondPerson) }
}

/// Refuses an approval by anybody but a second person.
pub(crate) fn approve(
    by: &Principal,
    asked: Asked<'_>,
    facts: &Facts<'_>,
) -> Result<(), Rejection> {
    let mut people = People::new(facts.tokens);
    if people.person(&by.user).is(&people.person(asked.by)) {
        return Err(Rejection::SamePerson);
    }
    if facts.now >= asked.at.plus_millis(APPROVAL_WITHIN_MS) {
        return Err(Rejection::RequestExpired);
    }
    if by.token_issued_at >= asked.first_at {
        return Err(Rejection::TokenTooNew);
    }
    let asker =
        Hand { user: asked.by, issued_by: asked.by, issued_with: asked.token, issued_at: asked.at };
    match people.are_independent(asker, Hand::from(by)) {
        true => Ok(()),
        false => Err(Rejection::NotIndependent),
    }
}
