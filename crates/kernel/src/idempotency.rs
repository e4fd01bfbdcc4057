//! Idempotency keys of the native contract: what makes one unique, and which wishes mean the same.
//! The SQL function `submit()` follows the same recipe.

use crate::canonical::{NotCanonical, canonical};
use crate::entity::alert::ALERT_KEY_SCOPE;
use crate::fingerprint::{Digest, digest};
use crate::governance::KEY_SCOPE;
use crate::job::Idempotency;
use crate::limits::{KEY_BYTES_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX};
use crate::name::{JobType, TenantId, UserId};
use crate::rejection::Rejection;
use crate::text;

/// Stands before a scope that was given, so that none can pass for a user's own.
pub const SCOPE_PREFIX: &str = "scope:";

/// Stands before the scope of a key of the task contract, so that none can pass for another's.
pub const TASK_SCOPE_PREFIX: &str = "task:";

/// A wish that comes with a key.
#[derive(Debug, Clone, Copy)]
pub struct Keyed<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// Who submits.
    pub user: &'a UserId,
    /// The key as given.
    pub key: &'a str,
    /// The scope as given; the user's own if `None`.
    pub scope: Option<&'a str>,
    /// The kind of work.
    pub job_type: &'a JobType,
    /// What the worker gets.
    pub payload: &'a str,
    /// Seconds the key stays taken after the job ended; `None` is for ever.
    pub window_secs: Option<u32>,
}

impl Keyed<'_> {
    /// The key with its digests.
    ///
    /// # Errors
    /// If the key or scope is no such text, or the payload has no canonical form.
    pub fn idempotency(&self) -> Result<Idempotency, Rejection> {
        self.in_space(b"key")
    }

    /// The same among the keys of the contract `/jobs`, which are keys of their own: the same text
    /// there and here names two intentions.
    ///
    /// # Errors
    /// If the key or scope is no such text, or the payload has no canonical form.
    pub fn idempotency_of_jobs(&self) -> Result<Idempotency, Rejection> {
        self.in_space(b"jobs key")
    }

    fn in_space(&self, space: &[u8]) -> Result<Idempotency, Rejection> {
        let scope = match self.scope {
            Some(scope) => format!("{SCOPE_PREFIX}{scope}"),
            None => format!("user:{}", self.user),
        };
        let (tenant, key) = (self.tenant.as_str(), self.key);
        let made = Idempotency {
            hash: digest(&[space, tenant.as_bytes(), scope.as_bytes(), key.as_bytes()]),
            scope: scope.into(),
            key: key.into(),
            fingerprint: None,
            window_secs: self.window_secs,
        };
        check(&made)?;
        let fingerprint = Some(fingerprint(self.job_type, self.payload)?);
        Ok(Idempotency { fingerprint, ..made })
    }
}

/// A key of the contract `/scheduler`: one space for each tenant, held for ever, and compared by
/// nothing but itself.
///
/// # Errors
/// If the key is no such text.
pub fn scheduler_key(tenant: &TenantId, key: &str) -> Result<Idempotency, Rejection> {
    let made = Idempotency {
        hash: digest(&[b"scheduler key", tenant.as_str().as_bytes(), key.as_bytes()]),
        scope: KEY_SCOPE.into(),
        key: key.into(),
        fingerprint: None,
        window_secs: None,
    };
    check(&made)?;
    Ok(made)
}

/// The key of the job that tells of an alert. It is held for a week after the job has ended.
pub fn alert_key(tenant: &TenantId, key: &str) -> Idempotency {
    let parts = [tenant.as_str().as_bytes(), ALERT_KEY_SCOPE.as_bytes(), key.as_bytes()];
    Idempotency {
        hash: digest(&parts),
        scope: ALERT_KEY_SCOPE.into(),
        key: key.into(),
        fingerprint: None,
        window_secs: Some(7 * 24 * 3_600),
    }
}

/// The name `id` that a caller chose for a job, among those of `namespace` in a tenant. It is held
/// as long as the job is kept; `window_secs` says after how long nothing is kept any more.
pub fn alias(
    tenant: &TenantId,
    namespace: &'static str,
    id: &str,
    window_secs: Option<u32>,
) -> Idempotency {
    Idempotency {
        hash: alias_hash(tenant, namespace, id),
        scope: namespace.into(),
        key: id.into(),
        fingerprint: None,
        window_secs,
    }
}

/// The digest by which the job of that name is found.
pub fn alias_hash(tenant: &TenantId, namespace: &'static str, id: &str) -> Digest {
    digest(&[b"alias", tenant.as_str().as_bytes(), namespace.as_bytes(), id.as_bytes()])
}

/// Refuses a chosen name that is no such text.
pub(crate) fn check_alias(alias: &Idempotency) -> Result<(), Rejection> {
    if alias.key.is_empty() || alias.key.len() > NAME_BYTES_MAX {
        let reason = "must be between 1 and 200 bytes long";
        return Err(Rejection::FieldInvalid { field: "id", reason });
    }
    text::refuse_control("id", &alias.key)
}

/// Refuses a key or scope that is no such text.
///
/// # Errors
/// If it is too long, empty or has control characters.
pub fn check(key: &Idempotency) -> Result<(), Rejection> {
    let invalid = |field, reason| Err(Rejection::FieldInvalid { field, reason });
    if key.key.is_empty() || key.key.len() > KEY_BYTES_MAX {
        return invalid("idempotency_key", "must be between 1 and 512 bytes long");
    }
    text::refuse_control("idempotency_key", &key.key)?;
    if key.scope.len() > KEY_BYTES_MAX {
        return invalid("idempotency_scope", "must be at most 512 bytes long");
    }
    text::refuse_control("idempotency_scope", &key.scope)
}

/// The fingerprint of a wish: its type and its payload in canonical form.
///
/// # Errors
/// If the payload is too large, nested too deep or repeats a key.
pub fn fingerprint(job_type: &JobType, payload: &str) -> Result<Digest, Rejection> {
    let invalid = |reason| Rejection::FieldInvalid { field: "payload", reason };
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(invalid("must be at most 1 MiB of JSON"));
    }
    let body = canonical(payload).map_err(|why| match why {
        NotCanonical::TooDeep => invalid("must not nest arrays and objects more than 64 deep"),
        NotCanonical::RepeatedKey => invalid("must not repeat a key in one object"),
    })?;
    Ok(digest(&[b"native-2", job_type.as_str().as_bytes(), body.as_bytes()]))
}

/// Whether a key that was taken before fingerprints were canonical was taken by this very payload.
/// Only such a one can have this digest, so nothing else is let through.
pub(crate) fn is_same_to_the_letter(held: Digest, job_type: &JobType, payload: &str) -> bool {
    held == digest(&[b"native", job_type.as_str().as_bytes(), payload.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(payload: &str, key: &str, scope: Option<&str>) -> Result<Idempotency, Rejection> {
        Keyed {
            tenant: &TenantId::stored("acme".into()),
            user: &UserId::stored("ann".into()),
            key,
            scope,
            job_type: &JobType::stored("mail".into()),
            payload,
            window_secs: None,
        }
        .idempotency()
    }

    #[test]
    fn the_spelling_of_a_payload_does_not_matter() {
        let one = keyed(r#"{"a":1,"b":"\u0041"}"#, "k", None).unwrap();
        assert_eq!(one, keyed(r#"{ "b" : "A", "a" : 1 }"#, "k", None).unwrap());
        let other = keyed(r#"{"a":1.0,"b":"A"}"#, "k", None).unwrap();
        assert_eq!(one.hash, other.hash);
        assert_ne!(one.fingerprint, other.fingerprint);
    }

    #[test]
    fn the_keys_of_a_contract_are_its_own() {
        let keyed = Keyed {
            tenant: &TenantId::stored("acme".into()),
            user: &UserId::stored("ann".into()),
            key: "k",
            scope: None,
            job_type: &JobType::stored("mail".into()),
            payload: "1",
            window_secs: None,
        };
        let (native, jobs) = (keyed.idempotency().unwrap(), keyed.idempotency_of_jobs().unwrap());
        assert_ne!(native.hash, jobs.hash);
        assert_eq!((&*jobs.scope, &*jobs.key), ("user:ann", "k"));
        assert_eq!(native.fingerprint, jobs.fingerprint);
    }

    #[test]
    fn what_is_no_key_or_has_no_canonical_form_is_refused() {
        let long = "x".repeat(PAYLOAD_BYTES_MAX + 1);
        for (payload, key, scope) in [
            ("1", "", None),
            ("1", "a\0b", None),
            ("1", "a\u{9f}", None),
            ("1", "k", Some("a\tb")),
            (r#"{"a":1,"a":1}"#, "k", None),
            (&*"[".repeat(65), "k", None),
            (&*long, "k", None),
        ] {
            let refused = keyed(payload, key, scope).unwrap_err();
            assert_eq!(refused.code(), "REQ_VALIDATION_FAILED");
        }
    }
}
