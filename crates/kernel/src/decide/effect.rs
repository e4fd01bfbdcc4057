//! The effect ledger: a side effect is committed once per job and name, whichever try gets there.

use super::{Decision, Receipt, attempt};
use crate::command::CommitEffect;
use crate::event::Event;
use crate::facts::Facts;
use crate::job::Effect;
use crate::limits::{EFFECT_BYTES_MAX, EFFECTS_BYTES_MAX, EFFECTS_MAX, NAME_BYTES_MAX};
use crate::rejection::Rejection;
use crate::text::refuse_control;

pub(super) fn commit(wish: &CommitEffect, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let job = facts.job.ok_or(Rejection::LeaseLost)?;
    if attempt::live_lease(job, wish.token, facts).is_none() {
        return Err(Rejection::LeaseLost);
    }
    if let Some(first) = job.effect(&wish.name) {
        let receipt = Receipt::Effect { value: first.value.clone(), is_first: false };
        return Ok(Decision { events: Vec::new(), receipt });
    }
    if wish.name.is_empty() || wish.name.len() > NAME_BYTES_MAX {
        return Err(Rejection::FieldInvalid {
            field: "name",
            reason: "must be between 1 and 200 bytes long",
        });
    }
    refuse_control("name", &wish.name)?;
    if wish.value.len() > EFFECT_BYTES_MAX {
        return Err(Rejection::FieldInvalid {
            field: "value",
            reason: "must be at most 64 KiB of JSON",
        });
    }
    let effect =
        Effect { name: wish.name.clone(), value: wish.value.clone(), committed_at: facts.now };
    let totals = job.effect_totals().plus(effect.totals());
    if totals.count as usize > EFFECTS_MAX || totals.bytes as usize > EFFECTS_BYTES_MAX {
        return Err(Rejection::EffectsFull);
    }
    Ok(Decision {
        events: vec![Event::EffectCommitted { job: job.id, effect }],
        receipt: Receipt::Effect { value: wish.value.clone(), is_first: true },
    })
}
