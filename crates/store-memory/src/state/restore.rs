//! Taking in what another store had, record by record.

use super::State;
use super::slab::Entry;
use mainspring_kernel::Totals;
use mainspring_store::JobWithHistory;
use mainspring_store::record::Record;

impl State {
    /// Puts one record in. Types and queues come before the jobs that they place.
    pub(crate) fn restore(&mut self, record: Record) {
        match record {
            Record::Job(found) if found.job.finished_at().is_some() => {
                self.take_in_ended(*found);
            }
            Record::Job(found) => {
                let JobWithHistory { mut job, history } = *found;
                self.index.share_names(&mut job);
                let slot =
                    self.slab.insert_entry(Entry::new(job, history.into_iter().skip(1).collect()));
                let entry = self.slab.get_mut(slot).expect("just inserted");
                entry.spot = self.index.enter(slot, &entry.job);
                super::list::enter(&mut self.postings, &entry.job);
            }
            Record::Item(item) => self.items.open(*item),
            Record::Entity(entity) => self.entities.set(*entity),
            Record::Type(spec) => self.index.set_type(*spec, &mut self.slab),
            Record::Queue(spec) => self.index.set_queue(spec, &mut self.slab),
            Record::Token(token) => {
                self.tokens.insert(token.id, *token);
            }
            Record::Key { hash, holder } => self.keys.set(hash, holder),
            Record::Meter { key, meter } => self.index.meters.set(key, meter),
            Record::Moves(moves) => moves.into_iter().for_each(|it| self.moves.take_in(it)),
            Record::Counters(counters) => {
                let mut totals = [0; 7];
                for (total, stored) in totals.iter_mut().zip(&counters) {
                    *total = *stored;
                }
                self.totals = Totals::from_array(totals);
                let newest = counters.get(7).copied().unwrap_or(0);
                if newest != self.moves.newest() {
                    self.moves.resume(newest);
                }
            }
        }
    }
}
