//! Tenants.

use super::super::BadRecord;
use super::super::registry::{read_pause, read_share, write_pause, write_share};
use super::super::wire::{Pen, Reader};
use mainspring_kernel::entity::tenant::TenantCard;

pub(super) fn write_tenant(pen: &mut Pen<'_>, card: &TenantCard) {
    let TenantCard { share, paused } = card;
    pen.array(2);
    write_share(pen, share); // 0
    pen.optional(paused.as_ref(), write_pause); // 1
}

pub(super) fn read_tenant(reader: &mut Reader<'_, '_>) -> Result<TenantCard, BadRecord> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let card = TenantCard {
        share: reader.field(at, read_share)?,
        paused: reader.optional(at, read_pause)?,
    };
    reader.end(fields)?;
    Ok(card)
}
