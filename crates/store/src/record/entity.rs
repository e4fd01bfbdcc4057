//! Entities: what all kinds have in common, then what the kind says of itself. A new kind gets a
//! file of its own and a line in the two matches here.

mod alert;
mod audit;
mod beacon;
mod bulk;
mod gate;
mod object;
mod question;
mod schedule;
mod subscription;
mod tenant;
mod trigger;
mod wait;

use super::BadRecord;
use super::wire::{Pen, Reader};
use alert::{read_alert, write_alert};
use audit::{read_entry, read_head, write_entry, write_head};
use beacon::{read_beacon, write_beacon};
use bulk::{read_bulk, read_page, write_bulk, write_page};
use gate::{read_gate, write_gate};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::{Entity, EntityId, TenantId, Timestamp, UserId};
use object::{read_object, write_object};
use question::{read_question, write_question};
use schedule::{read_schedule, write_schedule};
use subscription::{read_subscription, write_subscription};
use tenant::{read_tenant, write_tenant};
use trigger::{read_trigger, write_trigger};
use wait::{read_wait, write_wait};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_entity(pen: &mut Pen<'_>, entity: &Entity, base: Timestamp) {
    let Entity { id, version, tenant, owner, created_at, updated_at, body } = entity;
    pen.array(8);
    pen.number(id.kind.number()); // 0
    pen.bits(id.bits); // 1
    pen.number(*version); // 2
    pen.text(tenant.as_str()); // 3
    pen.text(owner.as_str()); // 4
    pen.instant(*created_at, base); // 5
    pen.instant(*updated_at, *created_at); // 6
    match body {
        Body::Beacon(beacon) => write_beacon(pen, beacon, *created_at), // 7
        Body::Schedule(schedule) => write_schedule(pen, schedule, *created_at), // 7
        Body::Question(question) => write_question(pen, question, *created_at), // 7
        Body::Trigger(trigger) => write_trigger(pen, trigger, *created_at), // 7
        Body::Object(object) => write_object(pen, object, *created_at), // 7
        Body::Gate(gate) => write_gate(pen, gate),                      // 7
        Body::AuditHead(head) => write_head(pen, head),                 // 7
        Body::AuditEntry(entry) => write_entry(pen, entry, *created_at), // 7
        Body::Alert(alert) => write_alert(pen, alert, *created_at),     // 7
        Body::Bulk(bulk) => write_bulk(pen, bulk, *created_at),         // 7
        Body::BulkPage(page) => write_page(pen, page, *created_at),     // 7
        Body::Subscription(it) => write_subscription(pen, it, *created_at), // 7
        Body::Wait(wait) => write_wait(pen, wait, *created_at),         // 7
        Body::Tenant(card) => write_tenant(pen, card),                  // 7
    }
}

pub(super) fn read_entity(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Entity> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let kind = reader.field(at, read_kind)?;
    let bits = reader.field(at, Reader::bits)?;
    let version = reader.field(at, Reader::small)?;
    let tenant = TenantId::stored(reader.field(at, Reader::name)?);
    let owner = UserId::stored(reader.field(at, Reader::name)?);
    let created_at = reader.field(at, |reader| reader.instant(base))?;
    let updated_at = reader.field(at, |reader| reader.instant(created_at))?;
    let body = reader.field(at, |reader| {
        Ok(match kind {
            Kind::Beacon => Body::Beacon(read_beacon(reader, created_at)?),
            Kind::Schedule => Body::Schedule(Box::new(read_schedule(reader, created_at)?)),
            Kind::Question => Body::Question(Box::new(read_question(reader, created_at)?)),
            Kind::Trigger => Body::Trigger(Box::new(read_trigger(reader, created_at)?)),
            Kind::Object => Body::Object(Box::new(read_object(reader, created_at)?)),
            Kind::Gate => Body::Gate(read_gate(reader)?),
            Kind::AuditHead => Body::AuditHead(read_head(reader)?),
            Kind::AuditEntry => Body::AuditEntry(Box::new(read_entry(reader, created_at)?)),
            Kind::Alert => Body::Alert(Box::new(read_alert(reader, created_at)?)),
            Kind::Bulk => Body::Bulk(Box::new(read_bulk(reader, created_at)?)),
            Kind::BulkPage => Body::BulkPage(read_page(reader, created_at)?),
            Kind::Subscription => {
                Body::Subscription(Box::new(read_subscription(reader, created_at)?))
            }
            Kind::Wait => Body::Wait(Box::new(read_wait(reader, created_at)?)),
            Kind::Tenant => Body::Tenant(read_tenant(reader)?),
        })
    })?;
    reader.end(fields)?;
    let id = EntityId { kind, bits };
    Ok(Entity { id, version, tenant, owner, created_at, updated_at, body })
}

pub(super) fn write_id(pen: &mut Pen<'_>, id: EntityId) {
    pen.array(2);
    pen.number(id.kind.number()); // 0
    pen.bits(id.bits); // 1
}

pub(super) fn read_id(reader: &mut Reader<'_, '_>) -> Read<EntityId> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let id = EntityId { kind: reader.field(at, read_kind)?, bits: reader.field(at, Reader::bits)? };
    reader.end(fields)?;
    Ok(id)
}

fn read_kind(reader: &mut Reader<'_, '_>) -> Read<Kind> {
    let number = reader.small()?;
    Kind::of_number(number).ok_or_else(|| reader.bad("unknown kind of entity"))
}
