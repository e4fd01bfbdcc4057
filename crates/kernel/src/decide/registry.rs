//! Registering a type. Its defaults stand in for what a submission leaves out, so they keep the
//! same bounds; otherwise a type with no timeout would end every attempt as it starts.

use super::{Decision, done, submit};
use crate::event::Event;
use crate::registry::TypeSpec;
use crate::rejection::Rejection;

pub(super) fn set_type(spec: &TypeSpec) -> Result<Decision, Rejection> {
    submit::check_timeout(spec.timeout_ms)?;
    submit::check_retries(spec.max_retries)?;
    Ok(done(Event::TypeSet(Box::new(spec.clone()))))
}
