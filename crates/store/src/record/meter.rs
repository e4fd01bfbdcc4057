//! Buckets and circuits.

use super::BadRecord;
use super::wire::{Pen, Reader};
use mainspring_kernel::flow::{Bucket, CircuitState, Meter};
use mainspring_kernel::{JobId, Timestamp};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_meter(pen: &mut Pen<'_>, meter: &Meter) {
    match meter {
        Meter::Bucket(Bucket { full_at }) => {
            pen.array(2);
            pen.number(0u8);
            pen.bits(full_at.cast_unsigned().into());
        }
        Meter::Circuit { state, at } => {
            pen.array(4);
            pen.number(1u8);
            pen.instant(*at, Timestamp::EPOCH);
            // How it stands, and what goes with that.
            let (stands, bits) = match state {
                CircuitState::Closed { ends, count } => (u16::from(*count), *ends),
                CircuitState::Open { until } => (256, until.0.cast_unsigned().into()),
                CircuitState::HalfOpen { probe } => (257, probe.0),
            };
            pen.number(stands);
            pen.bits(bits);
        }
    }
}

pub(super) fn read_meter(reader: &mut Reader<'_, '_>) -> Read<Meter> {
    let (kind, mut fields) = reader.kind()?;
    let at = &mut fields;
    let meter = match kind {
        0 => Meter::Bucket(Bucket { full_at: low(reader.field(at, Reader::bits)?) }),
        1 => {
            let noted_at = reader.field(at, |reader| reader.instant(Timestamp::EPOCH))?;
            let stands: u16 = reader.field(at, Reader::small)?;
            let bits = reader.field(at, Reader::bits)?;
            let state = match stands {
                256 => CircuitState::Open { until: Timestamp(low(bits)) },
                257 => CircuitState::HalfOpen { probe: JobId(bits) },
                count => CircuitState::Closed {
                    ends: bits,
                    count: u8::try_from(count).map_err(|_| reader.bad("unknown circuit"))?,
                },
            };
            Meter::Circuit { state, at: noted_at }
        }
        _ => return Err(reader.bad("unknown meter")),
    };
    reader.end(fields)?;
    Ok(meter)
}

fn low(bits: u128) -> i64 {
    (bits as u64).cast_signed()
}
