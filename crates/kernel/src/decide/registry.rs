//! Registering a type, configuring a queue. Its defaults stand in for what a submission leaves
//! out, so they keep the same bounds; otherwise a type with no timeout would end every attempt as
//! it starts.

use super::{Decision, done, submit};
use crate::command::TypeChange;
use crate::event::Event;
use crate::facts::Facts;
use crate::flow::Pause;
use crate::governance::is_reserved;
use crate::limits::NAME_BYTES_MAX;
use crate::name::JobType;
use crate::registry::{QueueSpec, Sla, TypeSpec};
use crate::rejection::Rejection;
use crate::text::refuse_control;

/// Sets how a queue behaves; those of gates are set by setting the gate.
pub(super) fn set_queue(spec: &QueueSpec) -> Result<Decision, Rejection> {
    match is_reserved(&spec.name) {
        true => {
            let reason = "belongs to a gate";
            Err(Rejection::FieldInvalid { field: "name", reason })
        }
        false => Ok(done(Event::QueueSet(spec.clone().kept()))),
    }
}

pub(super) fn set_type(spec: &TypeSpec, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    submit::check_timeout(spec.timeout_ms)?;
    submit::check_retries(spec.max_retries)?;
    if spec.domain.is_empty() || spec.domain.len() > NAME_BYTES_MAX {
        let reason = "must be between 1 and 200 bytes long";
        return Err(Rejection::FieldInvalid { field: "domain", reason });
    }
    refuse_control("domain", &spec.domain)?;
    spec.executor.as_ref().map_or(Ok(()), |executor| executor.check())?;
    spec.flow.check()?;
    let flow = Box::new((*spec.flow).clone().kept(facts.job_type.map(|known| &*known.flow)));
    spec.sla.map_or(Ok(()), Sla::check)?;
    // Whoever changes a type by hand does not change what the file last said about it: that is how
    // the change holds until the file says something new.
    let file_entry = spec.file_entry.or(facts.job_type.and_then(|known| known.file_entry));
    Ok(done(Event::TypeSet(Box::new(TypeSpec { file_entry, flow, ..spec.clone() }.kept()))))
}

/// Changes a type as it is now, whatever somebody else sets at the same time.
pub(super) fn change_type(
    name: &JobType,
    change: &TypeChange,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let known = facts.job_type.cloned().or_else(|| TypeSpec::built_in(name));
    let Some(mut spec) = known else {
        return Err(Rejection::TypeUnknown { name: name.to_string() });
    };
    match change {
        // Who paused it first did.
        TypeChange::Pause { by } => {
            let pause = || Pause { by: by.clone(), at: facts.now };
            spec.flow.paused.get_or_insert_with(pause);
        }
        TypeChange::Resume => spec.flow.paused = None,
        TypeChange::ResetCircuit => {
            spec.flow.circuit_turn = spec.flow.circuit_turn.wrapping_add(1);
        }
    }
    Ok(done(Event::TypeSet(Box::new(spec))))
}
