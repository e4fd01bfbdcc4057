//! Many runs as one sorted archive: the newest run wins, old runs go, small runs are merged.
//!
//! The list is ordered by age and a merge only ever replaces neighbours, so "newest wins" stays
//! true without versions in the records. Must never delete: it names the files that may go once the
//! manifest has forgotten them.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::run::{Run, RunDescending, open_run, write_run_with_terms};
use super::terms::{Pair, number_of};
use super::{Key, Record};
use crate::disk::Disk;
use crate::error::FileError;

/// Runs up to this size count as one class, and each class is this many times the one before.
const CLASS_BYTES: u64 = 1 << 20;
const CLASS_FACTOR: u64 = 4;

/// The runs of a store, oldest first. Cheap to clone, so readers work on a copy.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    runs: Vec<Arc<Run>>,
}

/// What is looked for among the records.
#[derive(Clone, Copy)]
pub struct Seek<'a> {
    /// Those that have all of these terms; with none, all of them.
    pub terms: &'a [u64],
    /// Whether one of them is of those that runs of older formats do not have.
    pub is_by_new_term: bool,
    /// From this key down, included.
    pub from: Key,
    /// Down to this key, included.
    pub to: Key,
    /// At most this many.
    pub limit: usize,
    /// Whether any of them will do, not the newest alone.
    pub is_any: bool,
    /// Whether a record is wanted, for runs that do not know its terms.
    pub admits: &'a dyn Fn(&Record) -> bool,
}

/// Keys that were found.
#[derive(Debug, Default)]
pub struct Found {
    /// Newest first, each once, with the newest run that has it.
    pub keys: Vec<(Key, Arc<Run>)>,
    /// Blocks read.
    pub reads: usize,
}

/// Pairs of term and key that are sorted at a time, while terms are made for a run without: about
/// fifty megabytes.
const PAIRS_MAX: u64 = 2 << 20;
/// Terms of a record, mostly.
const RECORD_TERMS: u64 = 8;

/// Neighbouring runs worth merging.
#[derive(Debug, Clone)]
pub struct MergePlan {
    pub(super) inputs: Vec<Arc<Run>>,
}

impl Archive {
    /// Opens the runs the manifest lists, oldest first.
    ///
    /// # Errors
    /// When any of them is missing or damaged.
    pub fn open(disk: &dyn Disk, names: &[String]) -> Result<Self, FileError> {
        let runs = names.iter().map(|name| open_run(disk, name).map(Arc::new));
        Ok(Self { runs: runs.collect::<Result<_, _>>()? })
    }

    /// Adds a run as the newest.
    pub fn push(&mut self, run: Run) {
        self.runs.push(Arc::new(run));
    }

    /// The runs, oldest first.
    pub fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// Names for the manifest, oldest first.
    pub fn names(&self) -> Vec<String> {
        self.runs.iter().map(|run| run.name().to_owned()).collect()
    }

    /// Blocks found damaged so far.
    pub fn damaged_blocks(&self) -> u64 {
        self.runs.iter().map(|run| run.damaged_blocks()).sum()
    }

    /// The record under a key, from the newest run that has it.
    ///
    /// # Errors
    /// `Io`, or `Damaged` when a block on the way is not what was written.
    pub fn get(&self, key: &Key) -> Result<Option<Record>, FileError> {
        for run in self.runs.iter().rev() {
            let (min, max) = run.key_range();
            if (min..=max).contains(key)
                && let Some(record) = run.get(key)?
            {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Whether there may be a record under a key that has a term: no, or almost certainly. Reads
    /// none of the records but of a run that cannot tell by terms.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn may_have(&self, key: &Key, term: u64) -> Result<bool, FileError> {
        for run in self.runs.iter().rev() {
            let (min, max) = run.key_range();
            if !(min..=max).contains(key) {
                continue;
            }
            match run.keys_with(&[term], (key, key), 1) {
                Ok(Some((keys, _))) if keys.is_empty() => {}
                Ok(_) | Err(FileError::Damaged { .. }) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// All records with a key up to and including `from`, newest first, each key once. A block that
    /// cannot be read is one error among them; the others go on.
    pub fn descending(&self, from: &Key) -> Descending {
        Descending::new(&self.runs, from)
    }

    /// The newest records that are looked for.
    ///
    /// # Errors
    /// `Io`, or `Damaged` when a block on the way is not what was written.
    pub fn seek(&self, seek: &Seek<'_>) -> Result<Found, FileError> {
        let mut found = Found::default();
        for run in self.runs.iter().rev() {
            let (min, max) = run.key_range();
            if max < seek.to || min > seek.from {
                continue;
            }
            if seek.is_any && found.keys.len() >= seek.limit {
                break;
            }
            let is_told = !seek.terms.is_empty() && (!seek.is_by_new_term || run.has_all_terms());
            let keys = match run.keys_with(seek.terms, (&seek.from, &seek.to), seek.limit) {
                Ok(Some((keys, reads))) if is_told => {
                    found.reads += reads;
                    keys
                }
                // The records themselves are whole: what the terms would have told, they tell.
                Ok(_) | Err(FileError::Damaged { .. }) => scan(run, seek, &mut found.reads)?,
                Err(error) => return Err(error),
            };
            found.keys.extend(keys.into_iter().map(|key| (key, run.clone())));
        }
        // Stable: among equal keys the newest run stays first.
        found.keys.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
        found.keys.dedup_by(|next, first| next.0 == first.0);
        found.keys.truncate(seek.limit);
        Ok(found)
    }

    /// Removes the runs in which every record is older than `stamp`; returns the files to delete
    /// once the manifest no longer lists them.
    pub fn drop_older_than(&mut self, stamp: i64) -> Vec<String> {
        let gone = self.runs.extract_if(.., |run| run.stamp_range().1 < stamp);
        gone.map(|run| run.name().to_owned()).collect()
    }

    /// The first stretch of more than `runs_max` neighbours in the same size class or below. A run
    /// with damage stays as it is: merging would drop what may still be read by other means.
    pub fn plan_merge(&self, runs_max: usize) -> Option<MergePlan> {
        // One of an older format is written anew by itself, so that it gets all of its terms.
        let is_old = |run: &&Arc<Run>| !run.has_all_terms() && run.damaged_blocks() == 0;
        if let Some(old) = self.runs.iter().find(is_old) {
            return Some(MergePlan { inputs: vec![old.clone()] });
        }
        let class_max = self.runs.iter().map(|run| class(run.bytes())).max()?;
        (0..=class_max).find_map(|limit| {
            let range = self.longest_stretch(limit);
            (range.len() > runs_max.max(1)).then(|| MergePlan { inputs: self.runs[range].to_vec() })
        })
    }

    /// Puts a merged run (`None` when nothing was left) in the place of its inputs; returns the
    /// files to delete once the manifest no longer lists them. Runs that were pushed or dropped
    /// since the plan was made do not matter.
    pub fn replace(&mut self, plan: &MergePlan, merged: Option<Run>) -> Vec<String> {
        let is_input = |run: &Arc<Run>| plan.inputs.iter().any(|input| Arc::ptr_eq(input, run));
        let at = self.runs.iter().position(is_input).unwrap_or(0);
        self.runs.retain(|run| !is_input(run));
        if let Some(merged) = merged {
            self.runs.insert(at, Arc::new(merged));
        }
        plan.inputs.iter().map(|run| run.name().to_owned()).collect()
    }

    fn longest_stretch(&self, limit: u32) -> Range<usize> {
        let mut longest = 0..0;
        let mut start = 0;
        for (at, run) in self.runs.iter().enumerate() {
            if class(run.bytes()) > limit || run.damaged_blocks() > 0 {
                start = at + 1;
            } else if at + 1 - start > longest.len() {
                longest = start..at + 1;
            }
        }
        longest
    }
}

impl MergePlan {
    /// Bytes that will be read, for pacing.
    pub fn bytes(&self) -> u64 {
        self.inputs.iter().map(|run| run.bytes()).sum()
    }

    /// Writes the merged run; needs no access to the archive, so it can run beside readers.
    /// Records with a stamp before `keep_from` are left out. `None` when nothing was left.
    /// `terms_of` tells the terms of a record, for inputs that do not know them.
    ///
    /// # Errors
    /// When an input is damaged or the output cannot be written.
    pub fn merge(
        &self,
        disk: &dyn Disk,
        name: &str,
        keep_from: i64,
        terms_of: &dyn Fn(&Record) -> Vec<u64>,
    ) -> Result<Option<Run>, FileError> {
        let from = |source| self.merge_from(source, (disk, name), keep_from, terms_of);
        match from(Source::Pairs) {
            // If it is the terms that are damaged, the records still tell them.
            Err(FileError::Damaged { .. }) => from(Source::Records),
            outcome => outcome,
        }
    }

    fn merge_from(
        &self,
        source: Source,
        (disk, name): (&dyn Disk, &str),
        keep_from: i64,
        terms_of: &dyn Fn(&Record) -> Vec<u64>,
    ) -> Result<Option<Run>, FileError> {
        let gone: RefCell<HashSet<u128>> = RefCell::default();
        let kept = Ascending::new(&self.inputs).filter(|record| {
            let Ok(record) = record else { return true };
            let is_kept = record.stamp >= keep_from;
            if !is_kept {
                gone.borrow_mut().insert(number_of(&record.key));
            }
            is_kept
        });
        write_run_with_terms(disk, name, kept, || {
            let streams = self.inputs.iter().map(|run| pairs_of(run, source, terms_of)).collect();
            let pairs = Pairs { streams, heads: Vec::new() };
            pairs.filter(|pair| !pair.as_ref().is_ok_and(|(_, key)| gone.borrow().contains(key)))
        })
    }
}

/// Keys of the wanted records of a run that cannot tell by terms, newest first.
fn scan(run: &Arc<Run>, seek: &Seek<'_>, reads: &mut usize) -> Result<Vec<Key>, FileError> {
    let mut keys = Vec::new();
    let mut records = run.descending(&seek.from);
    while keys.len() < seek.limit {
        let record = match records.next() {
            None => break,
            Some(Ok(record)) => record,
            // What is behind the damage is still there; the damage is counted and told.
            Some(Err(error)) if error.is_damage() => continue,
            Some(Err(error)) => return Err(error),
        };
        if record.key < seek.to {
            break;
        }
        if (seek.admits)(&record) {
            keys.push(record.key);
        }
    }
    *reads += records.reads();
    Ok(keys)
}

/// Where the terms of a merged run come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Its inputs' own.
    Pairs,
    /// Its inputs' records.
    Records,
}

type PairStream<'a> = Box<dyn Iterator<Item = Result<Pair, FileError>> + 'a>;

/// The pairs of a run in order, made from its records if it has none.
fn pairs_of<'a>(
    run: &'a Arc<Run>,
    source: Source,
    terms_of: &'a dyn Fn(&Record) -> Vec<u64>,
) -> PairStream<'a> {
    if run.has_all_terms() && source == Source::Pairs {
        return Box::new(run.pairs());
    }
    // As many passes over the records as keep what is sorted at a time small.
    let passes = (run.records() * RECORD_TERMS).div_ceil(PAIRS_MAX).next_power_of_two();
    let pass_of = move |term: u64| ((u128::from(term) * u128::from(passes)) >> 64) as u64;
    Box::new((0..passes).flat_map(move |pass| {
        let mut pairs = Vec::new();
        for record in run.ascending() {
            let record = match record {
                Ok(record) => record,
                Err(error) => return vec![Err(error)],
            };
            let terms = terms_of(&record).into_iter().filter(|term| pass_of(*term) == pass);
            pairs.extend(terms.map(|term| (term, number_of(&record.key))));
        }
        pairs.sort_unstable();
        pairs.into_iter().map(Ok).collect()
    }))
}

/// Sorted pairs of several runs as one. A linear search over the heads is enough.
struct Pairs<'a> {
    streams: Vec<PairStream<'a>>,
    heads: Vec<Option<Pair>>,
}

impl Iterator for Pairs<'_> {
    type Item = Result<Pair, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.heads.len() < self.streams.len() {
            for stream in &mut self.streams {
                match stream.next().transpose() {
                    Ok(head) => self.heads.push(head),
                    Err(error) => return Some(Err(error)),
                }
            }
        }
        let heads = self.heads.iter().enumerate();
        let (at, least) =
            heads.filter_map(|(at, head)| Some((at, (*head)?))).min_by_key(|it| it.1)?;
        match self.streams[at].next().transpose() {
            Ok(head) => self.heads[at] = head,
            Err(error) => return Some(Err(error)),
        }
        Some(Ok(least))
    }
}

fn class(bytes: u64) -> u32 {
    (bytes / CLASS_BYTES).checked_ilog(CLASS_FACTOR).map_or(0, |log| log + 1)
}

/// One run's next record in a merge.
#[derive(Debug)]
struct Head<I> {
    record: Record,
    rest: Stream<I>,
}

/// One run in a merge.
#[derive(Debug)]
struct Stream<I> {
    records: I,
    /// Smaller is newer.
    age: usize,
}

/// Newest-first iteration over an archive.
#[derive(Debug)]
pub struct Descending {
    merge: Merge<RunDescending>,
}

impl Descending {
    fn new(runs: &[Arc<Run>], from: &Key) -> Self {
        let runs = runs.iter().rev().filter(|run| run.key_range().0 <= *from);
        Self { merge: Merge::new(runs.map(|run| run.descending(from)), |a, b| a > b) }
    }
}

impl Iterator for Descending {
    type Item = Result<Record, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.merge.next()
    }
}

/// Oldest-first iteration, for writing merged runs.
struct Ascending {
    merge: Merge<super::run::RunAscending>,
}

impl Ascending {
    fn new(runs: &[Arc<Run>]) -> Self {
        Self { merge: Merge::new(runs.iter().rev().map(Run::ascending), |a, b| a < b) }
    }
}

impl Iterator for Ascending {
    type Item = Result<Record, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.merge.next()
    }
}

/// Merges sorted streams, newest run first: among equal keys the first stream wins. A linear search
/// over the heads is enough, merging keeps the runs few. An error of one stream is passed on, and
/// its later records come all the same.
#[derive(Debug)]
struct Merge<I> {
    /// Streams whose next record is not looked at yet.
    pending: Vec<Stream<I>>,
    heads: Vec<Head<I>>,
    comes_first: fn(&Key, &Key) -> bool,
}

impl<I: Iterator<Item = Result<Record, FileError>>> Merge<I> {
    fn new(streams: impl Iterator<Item = I>, comes_first: fn(&Key, &Key) -> bool) -> Self {
        let streams = streams.enumerate();
        let pending = streams.map(|(age, records)| Stream { records, age }).collect();
        Self { pending, heads: Vec::new(), comes_first }
    }

    fn step(&mut self) -> Result<Option<Record>, FileError> {
        while let Some(mut stream) = self.pending.pop() {
            match stream.records.next() {
                Some(Ok(record)) => self.heads.push(Head { record, rest: stream }),
                Some(Err(error)) => {
                    self.pending.push(stream);
                    return Err(error);
                }
                None => {}
            }
        }
        let Some(first) = self.heads.first() else { return Ok(None) };
        let mut key = first.record.key;
        for head in &self.heads {
            if (self.comes_first)(&head.record.key, &key) {
                key = head.record.key;
            }
        }
        let mut winner: Option<(usize, Record)> = None;
        for Head { record, rest } in self.heads.extract_if(.., |head| head.record.key == key) {
            if winner.as_ref().is_none_or(|(age, _)| rest.age < *age) {
                winner = Some((rest.age, record));
            }
            self.pending.push(rest);
        }
        Ok(winner.map(|(_, record)| record))
    }
}

impl<I: Iterator<Item = Result<Record, FileError>>> Iterator for Merge<I> {
    type Item = Result<Record, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}
