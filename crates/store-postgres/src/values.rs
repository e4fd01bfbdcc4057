//! How our values travel: instants as `timestamptz`, ids and digests as `uuid`.

use bytes::{BufMut, BytesMut};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{DlqId, JobId, Timestamp};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

/// A map on the hot path.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// Microseconds from 1970 to 2000, where PostgreSQL counts from.
const EPOCH_2000: i64 = 946_684_800_000_000;

/// An instant as PostgreSQL writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At(pub(crate) Timestamp);

type BoxError = Box<dyn std::error::Error + Sync + Send>;

impl ToSql for At {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        // The ends of our scale are PostgreSQL's infinities.
        let micros = match self.0.0 {
            i64::MAX => i64::MAX,
            micros => micros.saturating_sub(EPOCH_2000),
        };
        out.put_i64(micros);
        Ok(IsNull::No)
    }

    fn accepts(wanted: &Type) -> bool {
        *wanted == Type::TIMESTAMPTZ
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for At {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, BoxError> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        Ok(At(Timestamp(match micros {
            i64::MAX => i64::MAX,
            micros => micros.saturating_add(EPOCH_2000),
        })))
    }

    fn accepts(given: &Type) -> bool {
        *given == Type::TIMESTAMPTZ
    }
}

pub(crate) fn uuid(id: JobId) -> Uuid {
    Uuid::from_u128(id.0)
}

pub(crate) fn item_uuid(id: DlqId) -> Uuid {
    Uuid::from_u128(id.0)
}

pub(crate) fn hash_uuid(digest: Digest) -> Uuid {
    Uuid::from_bytes(digest.0)
}

pub(crate) fn job_id(id: Uuid) -> JobId {
    JobId(id.as_u128())
}

pub(crate) fn digest(id: Uuid) -> Digest {
    Digest(id.into_bytes())
}
