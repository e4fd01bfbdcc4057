//! Those who submit: one by one or in batches, with keys that are used again across crashes.

use super::Api;
use super::fleet::{Signals, Yard};
use super::wish::Wish;
use crate::history::{Answer, Outcome};
use crate::rng::Rng;
use std::time::Duration;

/// Wishes kept to be sent again.
const KEPT_MAX: usize = 60;

/// One submitter of one tenant.
pub(super) struct Client<'a> {
    pub(super) api: Api,
    pub(super) rng: Rng,
    pub(super) yard: &'a Yard,
    pub(super) signals: &'a Signals,
    pub(super) types: &'a [&'a str],
    /// Distinguishes the wishes of this client from all others.
    pub(super) name: String,
}

impl Client<'_> {
    /// Submits until told to stop; then sends once more whatever nobody knows about.
    pub(super) fn run(mut self) {
        let mut count = 0;
        let mut kept: Vec<Wish> = Vec::new();
        let mut unknown: Vec<Wish> = Vec::new();
        while !self.signals.is_winding_down() {
            let mut wishes = Vec::new();
            if let Some(wish) = unknown.pop() {
                wishes.push(wish);
            } else {
                let size = if self.rng.chance(12) { self.rng.within(2, 24) } else { 1 };
                for _ in 0..size {
                    count += 1;
                    wishes.push(self.wish(count, &kept));
                }
            }
            self.send(wishes, &mut kept, &mut unknown);
            let pause = self.rng.within(15, 50);
            std::thread::sleep(Duration::from_millis(pause)); // paced: a client's rhythm
        }
        for wish in unknown {
            self.api.submit(&wish);
        }
    }

    fn wish(&mut self, count: u64, kept: &[Wish]) -> Wish {
        let name = &self.name;
        if !kept.is_empty() && self.rng.chance(15) {
            let mut again = self.rng.pick(kept).clone();
            if self.rng.chance(20) {
                // The same key for other work: must be refused.
                again.payload = format!("{{\"n\":\"{name}-{count}-other\"}}");
            }
            return again;
        }
        let pad = "x".repeat(self.rng.within(10, 700) as usize);
        Wish {
            job_type: (*self.rng.pick(self.types)).to_owned(),
            payload: format!("{{\"n\":\"{name}-{count}\",\"pad\":\"{pad}\"}}"),
            key: self.rng.chance(50).then(|| format!("key-{name}-{count}")),
            delay_ms: if self.rng.chance(15) { self.rng.within(1, 400) } else { 0 },
        }
    }

    fn send(&mut self, wishes: Vec<Wish>, kept: &mut Vec<Wish>, unknown: &mut Vec<Wish>) {
        let outcomes = match &wishes[..] {
            [wish] => vec![self.api.submit(wish)],
            many => self.api.submit_batch(many),
        };
        for (wish, outcome) in wishes.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Ok(Answer::Submitted { job, is_hit: false, .. }) => self.yard.add(job),
                Outcome::Info if wish.key.is_some() => unknown.push(wish.clone()),
                Outcome::Fail(code) if code == "UNREACHABLE" => {
                    std::thread::sleep(Duration::from_millis(5)); // paced: the server is away
                    continue;
                }
                Outcome::Ok(_) | Outcome::Fail(_) | Outcome::Info | Outcome::Gone => {}
            }
            let is_original = !wish.payload.ends_with("-other\"}");
            if wish.key.is_some() && is_original {
                if kept.len() >= KEPT_MAX {
                    kept.swap_remove(self.rng.below(KEPT_MAX as u64) as usize);
                }
                kept.push(wish);
            }
        }
    }
}
