//! Those who look on and interfere: read, cancel, run dead letters again, drop them by twos.

use super::Api;
use super::fleet::{Signals, Yard};
use crate::history::Call;
use crate::rng::Rng;
use serde_json::Value;
use std::time::Duration;

/// Two people of one tenant.
pub(super) struct Operator<'a> {
    pub(super) api: Api,
    pub(super) second: Api,
    pub(super) rng: Rng,
    pub(super) yard: &'a Yard,
    pub(super) signals: &'a Signals,
}

impl Operator<'_> {
    /// Interferes until things wind down.
    pub(super) fn run(mut self) {
        while !self.signals.is_winding_down() {
            match self.rng.below(10) {
                0..5 => {
                    if let Some(job) = self.yard.some(&mut self.rng) {
                        self.api.read(&job);
                    }
                }
                5..8 => {
                    if let Some(job) = self.yard.some(&mut self.rng) {
                        self.api.cancel(&job);
                    }
                }
                _ => self.dead_letters(),
            }
            let pause = self.rng.within(10, 30);
            std::thread::sleep(Duration::from_millis(pause)); // paced: people are slow
        }
    }

    fn dead_letters(&mut self) {
        let Ok(page) = self.api.ask("GET", "/api/v1/dlq/items?limit=40", None) else { return };
        let items = page["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let actionable = |item: &&Value| item["status"] != "discarded";
        let items: Vec<&Value> = items.iter().filter(actionable).collect();
        if items.is_empty() {
            return;
        }
        let item = *self.rng.pick(&items);
        let (id, status) = (super::api::text(item, "dlq_id"), super::api::text(item, "status"));
        let who = ["one", "two"].map(str::to_owned);
        let [one, two] = who;
        match (&*status, self.rng.below(10)) {
            ("discard_requested", 0..5) => {
                // The one who asked must not be the one who agrees.
                self.api.discard(Call::ApproveDiscard { item: id.clone(), by: one });
                self.second.discard(Call::ApproveDiscard { item: id, by: two });
            }
            ("discard_requested", _) => {
                self.second.discard(Call::RejectDiscard { item: id, by: two });
            }
            ("open", 0..3) => {
                let reason = "of no use".to_owned();
                self.api.discard(Call::RequestDiscard { item: id, by: one, reason });
            }
            _ => {
                // Twice under the same key, which may fall on both sides of a crash.
                let key = format!("again-{id}");
                self.api.requeue(&id, &key);
                if self.rng.chance(30) {
                    self.api.requeue(&id, &key);
                }
            }
        }
    }
}
