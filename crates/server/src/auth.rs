//! Who asks: bearer tokens, looked up by their public part and compared by digest.
//!
//! No verdict is kept here: every request asks the engine for its token. A revoked one stops
//! working with its next request at the server that revoked it, and at other servers of the same
//! database once they have looked, within a second. Tokens and the `Authorization` header are
//! never logged.

use crate::limits::{ADMIN_TOKEN_BYTES_MIN, SEEN_BYTES_MAX};
use crate::refusal::{self, Refusal};
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use mainspring_api::TENANT_HEADER;
use mainspring_engine::store::Scope;
use mainspring_engine::{Engine, Error};
use mainspring_kernel::access::Sight;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::{Command, Principal, Role, Roles, TenantId, Token, TokenId, UserId};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use subtle::ConstantTimeEq;

/// A bearer text taken apart: which token it claims to be, and what proves it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claimed {
    id: TokenId,
    digest: [u8; 32],
}

impl Claimed {
    /// `ms_<26 letters>_<64 hex digits>` names its token; any other text stands for itself.
    fn of(text: &str) -> Self {
        let parts = text.strip_prefix("ms_").and_then(|rest| rest.split_once('_'));
        if let Some((letters, secret)) = parts
            && secret.len() == 64
            && let Ok(id) = format!("{}_{letters}", TokenId::PREFIX).parse()
        {
            return Claimed { id, digest: sha256(secret) };
        }
        let id = u128::from_be_bytes(digest(&[b"bearer", text.as_bytes()]).0);
        Claimed { id: TokenId(id), digest: sha256(text) }
    }
}

/// The last token that was shown on a connection, taken apart: the next request shows the same one.
#[derive(Default)]
pub(crate) struct Seen(Mutex<Option<(Box<str>, Claimed)>>);

impl Seen {
    fn claimed(&self, text: &str) -> Claimed {
        if text.len() > SEEN_BYTES_MAX {
            return Claimed::of(text);
        }
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, claimed)) = &*seen
            && bool::from(last.as_bytes().ct_eq(text.as_bytes()))
        {
            return claimed.clone();
        }
        let claimed = Claimed::of(text);
        *seen = Some((text.into(), claimed.clone()));
        claimed
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seen")
    }
}

fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// The principal a request proves, or the one identical refusal.
pub(crate) async fn principal(
    engine: &Engine,
    headers: &HeaderMap,
    seen: Option<&Seen>,
) -> Result<Principal, Refusal> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(refusal::unauthorized());
    };
    let bearer = value.to_str().ok().and_then(bearer).ok_or_else(refusal::unauthorized)?;
    proof(engine, seen.map_or_else(|| Claimed::of(bearer), |seen| seen.claimed(bearer))).await
}

/// Which token a text claims to be.
pub(crate) fn token_of(text: &str) -> TokenId {
    Claimed::of(text).id
}

/// The principal that the text of a token proves, or the one identical refusal.
pub(crate) async fn proven(engine: &Engine, text: &str) -> Result<Principal, Refusal> {
    proof(engine, Claimed::of(text)).await
}

async fn proof(engine: &Engine, claimed: Claimed) -> Result<Principal, Refusal> {
    let token = engine.token(claimed.id).await?.ok_or_else(refusal::unauthorized)?;
    let is_proven = bool::from(token.digest.ct_eq(&claimed.digest));
    if is_proven && token.is_live(engine.now()) {
        Ok(token.principal())
    } else {
        Err(refusal::unauthorized())
    }
}

/// `who` in the tenant that `x-tenant-id` names, if it names one.
pub(crate) fn in_named_tenant(who: Principal, headers: &HeaderMap) -> Result<Principal, Refusal> {
    let mut values = headers.get_all(TENANT_HEADER).iter();
    let Some(value) = values.next() else { return Ok(who) };
    let tenant = value.to_str().ok().filter(|_| values.next().is_none());
    let tenant = tenant.and_then(|text| TenantId::new(text).ok());
    let tenant = tenant.ok_or_else(|| refusal::invalid(TENANT_HEADER, "must name one tenant"))?;
    who.within(tenant).ok_or_else(refusal::tenant_violation)
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, text) = value.split_once(' ')?;
    let text = text.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !text.is_empty()).then_some(text)
}

/// What a principal's lists show.
pub(crate) fn scope(who: &Principal) -> Scope {
    match who.sight() {
        Sight::Everything => Scope::All,
        Sight::Tenant => Scope::Tenant(who.tenant.clone()),
        Sight::Own => Scope::User(who.tenant.clone(), who.user.clone()),
    }
}

/// A fresh secret and the token that goes with it: what is shown once, and what is kept.
pub(crate) fn fresh(
    engine: &Engine,
    whose: (TenantId, UserId),
    roles: Roles,
    issued_by: UserId,
) -> (String, Token) {
    let id = TokenId(engine.fresh_bits());
    let secret = format!("{:032x}{:032x}", engine.fresh_bits(), engine.fresh_bits());
    let letters = id.to_string().split_off(TokenId::PREFIX.len() + 1);
    let text = format!("ms_{letters}_{secret}");
    (text, stored(engine, id, sha256(&secret), whose, roles, issued_by))
}

fn stored(
    engine: &Engine,
    id: TokenId,
    digest: [u8; 32],
    (tenant, user): (TenantId, UserId),
    roles: Roles,
    issued_by: UserId,
) -> Token {
    Token {
        id,
        digest,
        tenant,
        user,
        roles,
        issued_at: engine.now(),
        issued_by,
        issued_with: None,
        expires_at: None,
        revoked_at: None,
    }
}

/// Why there is no admin token at startup.
#[derive(Debug)]
pub enum BootstrapError {
    /// The given text is too short to be a secret.
    TooShort,
    /// The store failed.
    Store(Error),
}

impl std::fmt::Display for BootstrapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BootstrapError::TooShort => {
                write!(f, "an admin token must be at least {ADMIN_TOKEN_BYTES_MIN} bytes long")
            }
            BootstrapError::Store(_) => f.write_str("cannot store the admin token"),
        }
    }
}

impl std::error::Error for BootstrapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BootstrapError::TooShort => None,
            BootstrapError::Store(source) => Some(source),
        }
    }
}

impl From<Error> for BootstrapError {
    fn from(error: Error) -> Self {
        BootstrapError::Store(error)
    }
}

/// Makes sure that somebody can administer the server.
///
/// A `given` text works as an admin token from now on, whatever other tokens there are. Without
/// one, a fresh token is made if no live admin token exists. Answers with the text of a token that
/// was stored by this call, to be shown once; `None` if nothing had to be stored.
///
/// # Errors
/// If the given text is too short or the store failed.
pub async fn bootstrap_admin(
    engine: &Engine,
    given: Option<String>,
) -> Result<Option<String>, BootstrapError> {
    let whose = || (TenantId::stored("default".into()), UserId::stored("admin".into()));
    let roles = Roles::of(&[Role::Admin]);
    let by = UserId::stored("system".into());
    let (text, token) = match given {
        Some(text) if text.len() < ADMIN_TOKEN_BYTES_MIN => return Err(BootstrapError::TooShort),
        Some(text) => {
            let claimed = Claimed::of(&text);
            let known = engine.token(claimed.id).await?;
            let works = known.is_some_and(|token| {
                token.is_live(engine.now())
                    && token.digest == claimed.digest
                    && token.roles.has(Role::Admin)
            });
            if works {
                return Ok(None);
            }
            (text, stored(engine, claimed.id, claimed.digest, whose(), roles, by))
        }
        None => {
            let now = engine.now();
            let tokens = engine.tokens().await?;
            if tokens.iter().any(|token| token.roles.has(Role::Admin) && token.is_live(now)) {
                return Ok(None);
            }
            fresh(engine, whose(), roles, by)
        }
    };
    match engine.execute_one(Command::IssueToken(Box::new(token))).await? {
        Ok(_) => Ok(Some(text)),
        Err(rejection) => Err(Error::Failed(rejection.to_string().into()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_remembers_a_token_and_nothing_long() {
        let seen = Seen::default();
        let kept = || seen.0.lock().unwrap().as_ref().map(|(text, _)| text.clone());
        let long = "a".repeat(SEEN_BYTES_MAX + 1);
        for (text, keeps) in [(&*long, None), ("one", Some("one")), ("two", Some("two"))] {
            for _ in 0..2 {
                assert_eq!(seen.claimed(text), Claimed::of(text));
                assert_eq!(kept().as_deref(), keeps);
            }
        }
        assert_eq!(seen.claimed(&long), Claimed::of(&long));
        assert_eq!(kept().as_deref(), Some("two"));
    }

    #[test]
    fn a_token_names_itself_and_other_text_stands_for_itself() {
        let id = TokenId(42);
        let letters = &id.to_string()[4..];
        let secret = "a".repeat(64);
        let claimed = Claimed::of(&format!("ms_{letters}_{secret}"));
        assert_eq!(claimed, Claimed { id, digest: sha256(&secret) });

        let given = Claimed::of("correct horse battery");
        assert_eq!(given, Claimed::of("correct horse battery"));
        assert_ne!(given.id, Claimed::of("correct horse batterz").id);
        // A broken token is an unknown text, not somebody's token with a wrong secret.
        assert_ne!(Claimed::of(&format!("ms_{letters}_{}", "a".repeat(63))).id, id);
    }

    #[test]
    fn only_bearer_counts() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer  abc "), Some("abc"));
        for other in ["abc", "Basic abc", "Bearer", "Bearer ", ""] {
            assert_eq!(bearer(other), None, "{other}");
        }
    }
}
