//! What has to be remembered of jobs that were handed out: buckets and circuits, by a digest of
//! what they belong to. They change with the moves of jobs and with nothing else, so a store that
//! applies the same moves has the same meters; one that is idle is as good as none.

use super::bucket::Bucket;
use super::circuit::CircuitState;
use super::{bucket_key, circuit_key};
use crate::dispatch::{LaneKey, Taken};
use crate::event::{Change, JobEvent};
use crate::fingerprint::Digest;
use crate::job::Job;
use crate::limits::CIRCUIT_KEPT_MS;
use crate::registry::TypeSpec;
use crate::time::Timestamp;
use std::collections::HashMap;

/// One thing that is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meter {
    /// How full a bucket is.
    Bucket(Bucket),
    /// Where a circuit stands.
    Circuit {
        /// Where.
        state: CircuitState,
        /// When it was last told something.
        at: Timestamp,
    },
}

impl Meter {
    /// From when on it is as good as none, if nothing is told to it.
    pub fn idle_from(&self) -> Timestamp {
        match self {
            Meter::Bucket(bucket) => bucket.idle_from(),
            Meter::Circuit { at, .. } => at.plus_millis(CIRCUIT_KEPT_MS),
        }
    }
}

/// What holds jobs back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBy {
    /// The bucket is empty.
    Rate,
    /// The circuit is open, or one job is being tried.
    Circuit,
}

/// How a lane is held back by a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// By which.
    pub by: HeldBy,
    /// Until then; `None` is until the job ends that is being tried.
    pub until: Option<Timestamp>,
    /// What the meter is kept under.
    pub key: Digest,
    /// Whether nothing changes that but time, and the meter is one of many of its type.
    pub is_keyed: bool,
}

/// Meters by what they are kept under.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meters(HashMap<Digest, Meter>);

impl Meters {
    /// What the meters of a lane are kept under; a lane has two at most.
    pub fn keys_of(spec: &TypeSpec, rate_key: Option<&str>) -> impl Iterator<Item = Digest> {
        let name = spec.name.as_str();
        let bucket = spec.flow.rate_limit.as_ref();
        let key = bucket.and_then(|limit| limit.key.as_ref()).map(|_| rate_key.unwrap_or_default());
        let circuit = spec.flow.circuit.map(|_| circuit_key(name, spec.flow.circuit_turn));
        bucket.map(|_| bucket_key(name, key)).into_iter().chain(circuit)
    }

    /// The same for a job.
    pub fn keys_of_job(spec: &TypeSpec, job: &Job) -> impl Iterator<Item = Digest> {
        Meters::keys_of(spec, job.limit_keys().and_then(|keys| keys.rate.as_deref()))
    }

    /// What a move of a job of the type changes.
    pub fn keys_moved(spec: &TypeSpec, job: &Job, change: &Change) -> impl Iterator<Item = Digest> {
        let is_claim = matches!(change, Change::Claimed(_));
        let circuit = circuit_key(spec.name.as_str(), spec.flow.circuit_turn);
        let keys = Meters::keys_of_job(spec, job);
        let is_end = CircuitState::is_told(change);
        keys.filter(move |key| is_claim || (is_end && *key == circuit))
    }

    /// What the circuit of a type is kept under, if it has one.
    pub fn circuit_key(spec: &TypeSpec) -> Option<Digest> {
        spec.flow.circuit.map(|_| circuit_key(spec.name.as_str(), spec.flow.circuit_turn))
    }

    /// What is kept under a key; nothing is as good as idle.
    pub fn get(&self, key: Digest) -> Option<Meter> {
        self.0.get(&key).copied()
    }

    /// Keeps it, as it is now.
    pub fn set(&mut self, key: Digest, meter: Meter) {
        self.0.insert(key, meter);
    }

    /// All that is kept.
    pub fn iter(&self) -> impl Iterator<Item = (Digest, Meter)> {
        self.0.iter().map(|(key, meter)| (*key, *meter))
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets those that are idle at `now`.
    pub fn forget_idle(&mut self, now: Timestamp) {
        self.0.retain(|_, meter| meter.idle_from() > now);
    }

    fn bucket(&self, key: Digest) -> Bucket {
        match self.0.get(&key) {
            Some(Meter::Bucket(bucket)) => *bucket,
            Some(Meter::Circuit { .. }) | None => Bucket::default(),
        }
    }

    fn circuit(&self, key: Digest) -> CircuitState {
        match self.0.get(&key) {
            Some(Meter::Circuit { state, .. }) => *state,
            Some(Meter::Bucket(_)) | None => CircuitState::default(),
        }
    }

    /// The circuit of a type, if it has one.
    pub fn circuit_of(&self, spec: &TypeSpec) -> Option<CircuitState> {
        let key = circuit_key(spec.name.as_str(), spec.flow.circuit_turn);
        spec.flow.circuit.map(|_| self.circuit(key))
    }

    /// What holds back the jobs of a lane at `now`, beside those that this pull has `taken`. If
    /// nothing does, a place is taken for one of them.
    pub fn take(
        &self,
        spec: &TypeSpec,
        lane: &LaneKey,
        now: Timestamp,
        taken: &mut Taken<Digest>,
    ) -> Option<Held> {
        self.held(spec, lane.rate_key(), now, taken).or_else(|| {
            Meters::keys_of(spec, lane.rate_key()).for_each(|key| taken.add(key));
            None
        })
    }

    /// What holds back jobs of a type at `now`, with that rate key, beside those `taken`.
    pub fn held(
        &self,
        spec: &TypeSpec,
        rate_key: Option<&str>,
        now: Timestamp,
        taken: &Taken<Digest>,
    ) -> Option<Held> {
        for key in Meters::keys_of(spec, rate_key) {
            let held = |by, until, is_keyed| Some(Held { by, until, key, is_keyed });
            let is_circuit = spec.flow.circuit.is_some()
                && key == circuit_key(spec.name.as_str(), spec.flow.circuit_turn);
            if let (false, Some(limit)) = (is_circuit, &spec.flow.rate_limit) {
                let bucket = self.bucket(key);
                if bucket.room(limit, now) <= taken.count(&key) {
                    let until = bucket.refills_at(limit, now);
                    // What this pull has taken is not told to the bucket yet.
                    let is_keyed = limit.key.is_some() && until > now;
                    return held(HeldBy::Rate, Some(until.max(now.plus_millis(1))), is_keyed);
                }
            } else {
                let state = self.circuit(key);
                if state.room(now) <= taken.count(&key) {
                    let until = match state {
                        CircuitState::Open { until } => Some(until.max(now)),
                        CircuitState::Closed { .. } | CircuitState::HalfOpen { .. } => None,
                    };
                    return held(HeldBy::Circuit, until, false);
                }
            }
        }
        None
    }

    /// A job of the type moved; answers what changed.
    pub fn note(&mut self, spec: &TypeSpec, job: &Job, event: &JobEvent) -> Vec<Digest> {
        if !spec.flow.has_meters() {
            return Vec::new();
        }
        let mut changed = Vec::new();
        let rate_key = job.limit_keys().and_then(|keys| keys.rate.as_deref());
        for key in Meters::keys_of(spec, rate_key) {
            let is_circuit = spec.flow.circuit.is_some()
                && key == circuit_key(spec.name.as_str(), spec.flow.circuit_turn);
            let before = self.get(key);
            let after = match (is_circuit, &spec.flow.rate_limit, spec.flow.circuit) {
                (true, _, Some(circuit)) => {
                    let mut state = self.circuit(key);
                    state.note(&circuit, event.job, &event.change, event.at);
                    (state != self.circuit(key)).then_some(Meter::Circuit { state, at: event.at })
                }
                (_, Some(limit), _) if matches!(event.change, Change::Claimed(_)) => {
                    let mut bucket = self.bucket(key);
                    bucket.take(limit, event.at);
                    Some(Meter::Bucket(bucket))
                }
                _ => None,
            };
            if let Some(after) = after.filter(|after| before != Some(*after)) {
                self.set(key, after);
                changed.push(key);
            }
        }
        changed
    }
}
