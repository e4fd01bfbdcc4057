//! Gates.

use super::super::BadRecord;
use super::super::wire::{Pen, Reader};
use mainspring_kernel::UserId;
use mainspring_kernel::entity::gate::{GateCard, GateState};
use mainspring_kernel::governance::Gate;

pub(super) fn write_gate(pen: &mut Pen<'_>, card: &GateCard) {
    let GateCard { gate, state, by, reason } = card;
    pen.array(4);
    pen.number(gate.number()); // 0
    pen.number(state.number()); // 1
    pen.text(by.as_str()); // 2
    pen.optional(reason.as_deref(), Pen::text); // 3
}

pub(super) fn read_gate(reader: &mut Reader<'_, '_>) -> Result<GateCard, BadRecord> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let gate = Gate::of_number(reader.field(at, Reader::small)?)
        .ok_or_else(|| reader.bad("unknown gate"))?;
    let state = GateState::of_number(reader.field(at, Reader::small)?)
        .ok_or_else(|| reader.bad("unknown state of a gate"))?;
    let card = GateCard {
        gate,
        state,
        by: UserId::stored(reader.field(at, Reader::name)?),
        reason: reader.optional(at, Reader::boxed)?,
    };
    reader.end(fields)?;
    Ok(card)
}
