//! What a batch adds to the numbers kept.

use crate::values::Map;
use mainspring_kernel::{QueueName, StateName};

/// Changes to the numbers kept.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    pub(crate) states: [i64; 8],
    pub(crate) submitted: i64,
    pub(crate) claims: i64,
    pub(crate) retries: i64,
    pub(crate) jobs_retried: i64,
    queues: Map<QueueName, QueueTally>,
}

/// Changes to the numbers of one queue.
#[derive(Debug, Default)]
pub(crate) struct QueueTally {
    pub(crate) ready: i64,
    pub(crate) pending: i64,
    pub(crate) running: i64,
}

impl Tallies {
    pub(crate) fn queue(&mut self, queue: &QueueName) -> &mut QueueTally {
        if !self.queues.contains_key(queue) {
            self.queues.insert(queue.clone(), QueueTally::default());
        }
        self.queues.get_mut(queue).expect("just made sure")
    }

    /// The changes by name; those that add up to nothing are left out.
    pub(crate) fn by_name(&self) -> (Vec<String>, Vec<i64>) {
        let Tallies { states, submitted, claims, retries, jobs_retried, queues } = self;
        let mut all: Vec<(String, i64)> = StateName::ALL
            .iter()
            .zip(states)
            .map(|(state, by)| (format!("state/{state}"), *by))
            .collect();
        all.extend([
            ("total/submitted".to_owned(), *submitted),
            ("total/claims".to_owned(), *claims),
            ("total/retries".to_owned(), *retries),
            ("total/jobs_retried".to_owned(), *jobs_retried),
        ]);
        for (queue, QueueTally { ready, pending, running }) in queues {
            all.extend([
                (format!("ready/{queue}"), *ready),
                (format!("pending/{queue}"), *pending),
                (format!("running/{queue}"), *running),
            ]);
        }
        all.into_iter().filter(|(_, by)| *by != 0).unzip()
    }
}
