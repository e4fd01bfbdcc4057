//! Effects as rows of their own. A job that is loaded brings along only those that its batch names;
//! what was committed since it was loaded becomes rows. Records of before effects were rows have
//! them inside: those become rows when the job is next written.

use crate::commit::columns::Text;
use crate::commit::desk::Entry;
use crate::connections::{Call, Value};
use crate::queries::Query;
use crate::values::{At, uuid};
use mainspring_kernel::Job;
use mainspring_kernel::job::{Effect, EffectTotals};
use uuid::Uuid;

/// Rows of `effect`, as columns.
#[derive(Default)]
pub(crate) struct Effects {
    jobs: Vec<Uuid>,
    names: Vec<String>,
    numbers: Vec<i32>,
    values: Vec<Text>,
    at: Vec<At>,
}

impl Effects {
    /// Takes in those of `job` that have no rows yet: the last ones, `unwritten` many.
    pub(crate) fn push_last(&mut self, job: &Job, unwritten: usize) {
        let Some(extras) = &job.extras else { return };
        let total = extras.effects_elsewhere.count as usize + extras.effects.len();
        let first = extras.effects.len().saturating_sub(unwritten);
        for (number, effect) in (total - unwritten..).zip(&extras.effects[first..]) {
            self.jobs.push(uuid(job.id));
            self.names.push(effect.name.to_string());
            self.numbers.push(i32::try_from(number).unwrap_or(i32::MAX));
            self.values.push(Text(effect.value.clone()));
            self.at.push(At(effect.committed_at));
        }
    }

    /// The statement that writes them, if there are any.
    pub(crate) fn insert(self) -> Option<Call> {
        if self.jobs.is_empty() {
            return None;
        }
        let values: Vec<Value> = vec![
            Box::new(self.jobs),
            Box::new(self.names),
            Box::new(self.numbers),
            Box::new(self.values),
            Box::new(self.at),
        ];
        Some(Call::new(Query::InsertEffects, values))
    }
}

impl Entry {
    /// Lays an effect at hand that has a row.
    pub(crate) fn bring(&mut self, effect: Effect) {
        if self.job.effect(&effect.name).is_some() {
            return;
        }
        let extras = self.job.extras_mut();
        extras.effects_elsewhere = extras.effects_elsewhere.minus(effect.totals());
        // Before those that have none.
        extras.effects.insert(self.written_effects, effect);
        self.written_effects += 1;
    }

    /// How many of the effects at hand have no rows.
    pub(crate) fn unwritten_effects(&self) -> usize {
        let at_hand = self.job.extras.as_ref().map_or(0, |extras| extras.effects.len());
        at_hand.saturating_sub(self.written_effects)
    }

    /// Puts effects that have rows out of hand: a job that is remembered must not hold megabytes.
    pub(crate) fn put_effects_away(&mut self) {
        let written = if self.is_changed { usize::MAX } else { self.written_effects };
        let Some(extras) = &mut self.job.extras else { return };
        let away = extras.effects.drain(..written.min(extras.effects.len()));
        let totals = away.map(|effect| effect.totals());
        extras.effects_elsewhere = totals.fold(extras.effects_elsewhere, EffectTotals::plus);
        extras.effects.shrink_to_fit();
        self.written_effects = 0;
    }
}
