//! Buckets and circuits (`meter`) on the desk. Like limits that have to be counted, they are loaded
//! only for batches that turn out to need them, under a lock that other servers wait for.

use crate::connections::{Call, Value};
use crate::fault::Fault;
use crate::queries::Query;
use crate::values::{At, digest, hash_uuid};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::{Meter, Meters};
use mainspring_store::record::{Names, Record, encode_meter, records_of};
use std::collections::HashSet;
use tokio_postgres::Row;
use uuid::Uuid;

/// What was loaded, and what the batch made of it.
#[derive(Debug, Default)]
pub(crate) struct DeskMeters {
    pub(crate) all: Meters,
    loaded: HashSet<Digest>,
    pub(crate) changed: HashSet<Digest>,
}

impl DeskMeters {
    /// Those of `wanted` that have rows, and that the others have none.
    pub(crate) fn read(wanted: &HashSet<Digest>, rows: &[Row]) -> Result<Self, Fault> {
        let mut all = Meters::default();
        for row in rows {
            all.set(digest(row.try_get(0)?), read_meter(row.try_get(1)?)?);
        }
        Ok(DeskMeters { all, loaded: wanted.clone(), changed: HashSet::new() })
    }

    /// How many are known.
    pub(crate) fn len(&self) -> usize {
        self.loaded.len()
    }

    /// Whether it is known how it stands.
    pub(crate) fn knows(&self, key: Digest) -> bool {
        self.loaded.contains(&key)
    }

    /// The statement that writes what changed, in the order of the keys.
    pub(crate) fn write(&self) -> Option<Call> {
        let mut changed: Vec<Digest> = self.changed.iter().copied().collect();
        changed.sort_unstable();
        let changed: Vec<(Digest, Meter)> =
            changed.into_iter().filter_map(|key| Some((key, self.all.get(key)?))).collect();
        set_meters(&changed)
    }
}

/// The statement that writes these.
pub(crate) fn set_meters(meters: &[(Digest, Meter)]) -> Option<Call> {
    let (mut keys, mut idle, mut records) = (Vec::new(), Vec::new(), Vec::new());
    for (key, meter) in meters {
        keys.push(hash_uuid(*key));
        idle.push(At(meter.idle_from()));
        let mut record = Vec::new();
        encode_meter(*key, meter, &mut record);
        records.push(record);
    }
    let values: Vec<Value> = vec![Box::new(keys), Box::new(idle), Box::new(records)];
    (!meters.is_empty()).then(|| Call::new(Query::SetMeters, values))
}

/// The statement that loads these.
pub(crate) fn load_meters(keys: &HashSet<Digest>) -> Call {
    let keys: Vec<Uuid> = keys.iter().map(|key| hash_uuid(*key)).collect();
    Call::new(Query::LoadMeters, vec![Box::new(keys)])
}

/// A bucket or a circuit from its record.
pub(crate) fn read_meter(record: &[u8]) -> Result<Meter, Fault> {
    let mut names = Names::default();
    match records_of(record, &mut names).next() {
        Some(Ok(Record::Meter { meter, .. })) => Ok(meter),
        Some(Err(bad)) => Err(bad.into()),
        _ => Err(Fault::Broken("a meter is no meter".into())),
    }
}
