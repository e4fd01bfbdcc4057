//! The book of ready jobs against a naive model: the same jobs, in the same order, for any mix of
//! arrivals, removals and filtered pulls; and the fairness that the book's documentation promises.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

use mainspring_kernel::dispatch::{Book, LaneKey, Place, Rank, Room, Wanted, order_key};
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::flow::LimitKeys;
use mainspring_kernel::limits::RETRY_EVERY;
use mainspring_kernel::{JobType, QueueName, QueueOrder, TenantId, Timestamp, UserId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
enum Step {
    Insert { lane: LaneKey, key: i64 },
    Remove(usize),
    Take(Pull),
}

#[derive(Debug, Clone)]
struct Pull {
    tenant: Option<TenantId>,
    types: Option<Vec<JobType>>,
    queues: Option<Vec<QueueName>>,
    limit: usize,
    paused: BTreeSet<QueueName>,
    /// Free places per type; a type not named here has no limit.
    room: BTreeMap<JobType, usize>,
}

fn tenant() -> impl Strategy<Value = TenantId> {
    prop::sample::select(&NAMES[..]).prop_map(|name| TenantId::new(name).unwrap())
}

fn queue() -> impl Strategy<Value = QueueName> {
    prop::sample::select(&NAMES[..3]).prop_map(|name| QueueName::new(name).unwrap())
}

fn job_type() -> impl Strategy<Value = JobType> {
    prop::sample::select(&NAMES[..3]).prop_map(|name| JobType::new(name).unwrap())
}

fn lane() -> impl Strategy<Value = LaneKey> {
    let user = prop::option::weighted(0.2, Just(UserId::new("u").unwrap()));
    let parts = (tenant(), queue(), job_type(), user, prop::bool::weighted(0.4));
    parts.prop_map(|(tenant, queue, job_type, user, is_retry)| LaneKey {
        tenant,
        queue,
        job_type,
        user,
        keys: None,
        is_retry,
    })
}

fn pull() -> impl Strategy<Value = Pull> {
    (
        prop::option::weighted(0.25, tenant()),
        prop::option::weighted(0.3, prop::collection::vec(job_type(), 0..3)),
        prop::option::weighted(0.3, prop::collection::vec(queue(), 0..3)),
        0..6usize,
        prop::collection::btree_set(queue(), 0..2),
        prop::collection::btree_map(job_type(), 0..4usize, 0..3),
    )
        .prop_map(|(tenant, types, queues, limit, paused, room)| Pull {
            tenant,
            types,
            queues,
            limit,
            paused,
            room,
        })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (lane(), 0..6i64).prop_map(|(lane, key)| Step::Insert { lane, key }),
        1 => any::<usize>().prop_map(Step::Remove),
        3 => pull().prop_map(Step::Take),
    ]
}

#[derive(Debug, Clone)]
struct Waiting {
    lane: LaneKey,
    key: i64,
    id: u32,
}

/// The same promises in the plainest words: lists, searched from the front.
#[derive(Debug, Default)]
struct Model {
    waiting: Vec<Waiting>,
    /// When each was last served.
    tenants: BTreeMap<TenantId, usize>,
    queues: BTreeMap<(TenantId, QueueName), usize>,
    /// How many were no retries since the last one that was.
    since_retry: BTreeMap<(TenantId, QueueName), u32>,
    served: usize,
}

impl Model {
    fn owes_fresh(&self, own: &(TenantId, QueueName)) -> bool {
        self.since_retry.get(own).is_some_and(|since| *since < RETRY_EVERY - 1)
    }

    fn insert(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    fn remove(&mut self, id: u32) {
        self.waiting.retain(|waiting| waiting.id != id);
    }

    /// The job that `pull` gets next: of the tenants with an eligible job the one served longest
    /// ago, of its queues with one the same, and there the smallest key, first come first served;
    /// but no retry as long as others are owed there, unless there is nothing else or the queue
    /// promises an order.
    fn next(&self, pull: &Pull, room: &BTreeMap<JobType, usize>) -> Option<Waiting> {
        let eligible = self.waiting.iter().filter(|job| is_eligible(&job.lane, pull, room));
        let next = eligible.min_by_key(|job| {
            let LaneKey { tenant, queue, .. } = &job.lane;
            let tenant_turn = self.tenants.get(tenant).copied();
            let own = (tenant.clone(), queue.clone());
            let queue_turn = self.queues.get(&own).copied();
            let is_late = gives_way(&job.lane) && self.owes_fresh(&own);
            ((tenant_turn, tenant), (queue_turn, queue), is_late, (job.key, job.id))
        });
        next.cloned()
    }

    fn take(&mut self, pull: &Pull) -> Vec<u32> {
        let mut room = pull.room.clone();
        let mut taken = Vec::new();
        while taken.len() < pull.limit {
            let Some(next) = self.next(pull, &room) else { break };
            if let Some(free) = room.get_mut(&next.lane.job_type) {
                *free -= 1;
            }
            let gives_way = gives_way(&next.lane);
            let LaneKey { tenant, queue, .. } = next.lane;
            let own = (tenant.clone(), queue.clone());
            if gives_way {
                self.since_retry.insert(own, 0);
            } else if let Some(since) = self.since_retry.get_mut(&own) {
                *since += 1;
            }
            self.served += 1;
            self.tenants.insert(tenant.clone(), self.served);
            self.queues.insert((tenant, queue), self.served);
            self.remove(next.id);
            taken.push(next.id);
        }
        taken
    }
}

fn is_eligible(lane: &LaneKey, pull: &Pull, room: &BTreeMap<JobType, usize>) -> bool {
    pull.tenant.as_ref().is_none_or(|tenant| *tenant == lane.tenant)
        && pull.types.as_ref().is_none_or(|types| types.contains(&lane.job_type))
        && pull.queues.as_ref().is_none_or(|queues| queues.contains(&lane.queue))
        && !pull.paused.contains(&lane.queue)
        && room.get(&lane.job_type).is_none_or(|free| *free > 0)
}

/// One of the queues promises an order.
fn order(queue: &QueueName) -> QueueOrder {
    if queue.as_str() == "c" { QueueOrder::Due } else { QueueOrder::Aged }
}

/// Nothing is paused.
fn open(queue: &QueueName) -> Option<QueueOrder> {
    Some(order(queue))
}

fn gives_way(lane: &LaneKey) -> bool {
    lane.is_retry && order(&lane.queue).bounds_retries()
}

fn take(book: &mut Book<u32>, pull: &Pull) -> Vec<u32> {
    let wanted = Wanted {
        tenant: pull.tenant.as_ref(),
        types: pull.types.as_deref(),
        queues: pull.queues.as_deref(),
    };
    let mut room = pull.room.clone();
    let mut open = |queue: &QueueName| (!pull.paused.contains(queue)).then(|| order(queue));
    let mut has_room = |lane: &LaneKey| match room.get_mut(&lane.job_type) {
        Some(0) => Room::Full,
        Some(free) => {
            *free -= 1;
            Room::Free
        }
        None => Room::Free,
    };
    book.take(&wanted, pull.limit, &|_| 1, &mut open, &mut has_room)
}

fn rank(key: i64, id: u32) -> Rank {
    Rank { key, number: u64::from(id) }
}

/// One book, its model, and who may still be served how often before whom.
#[derive(Default)]
struct Run {
    book: Book<u32>,
    model: Model,
    places: BTreeMap<u32, (Place, LaneKey)>,
    /// For a waiting tenant: who was served while it was eligible, since it was last served.
    passed_by: BTreeMap<TenantId, BTreeSet<TenantId>>,
    next_id: u32,
}

impl Run {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Insert { lane, key } => {
                let id = self.next_id;
                self.next_id += 1;
                let place = self.book.insert(lane, rank(*key, id), id);
                self.places.insert(id, (place, lane.clone()));
                self.model.insert(Waiting { lane: lane.clone(), key: *key, id });
            }
            Step::Remove(pick) if !self.places.is_empty() => {
                let id = *self.places.keys().nth(pick % self.places.len()).unwrap();
                let (place, _) = self.places.remove(&id).unwrap();
                let key = self.model.waiting.iter().find(|job| job.id == id).unwrap().key;
                assert!(self.book.remove(place, rank(key, id), id));
                assert!(!self.book.remove(place, rank(key, id), id), "a job leaves once");
                self.model.remove(id);
            }
            Step::Remove(_) => {}
            Step::Take(pull) => self.take(pull),
        }
        assert_eq!(self.book.len(), self.model.waiting.len());
        for (id, (place, lane)) in &self.places {
            let key = |job: &Waiting| (job.key, job.id);
            let own = self.model.waiting.iter().find(|job| job.id == *id).map(key).unwrap();
            let lane = self.model.waiting.iter().filter(|job| job.lane == *lane);
            let ahead = self.book.ahead(*place, rank(own.0, *id), *id, 100);
            assert_eq!(ahead, lane.filter(|job| key(job) < own).count());
        }
        let waiting = self.model.waiting.iter().map(|job| &job.lane.tenant);
        let waits = |tenant: &TenantId| waiting.clone().any(|other| other == tenant);
        self.passed_by.retain(|tenant, _| waits(tenant));
    }

    fn take(&mut self, pull: &Pull) {
        let before = self.model.waiting.clone();
        let expected = self.model.take(pull);
        assert_eq!(take(&mut self.book, pull), expected);
        let count = expected.len();
        let mut room = pull.room.clone();
        let mut left = before;
        for id in expected {
            let (_, lane) = self.places.remove(&id).unwrap();
            for tenant in left.iter().map(|job| &job.lane.tenant).collect::<BTreeSet<_>>() {
                let mut own = left.iter().filter(|job| job.lane.tenant == *tenant);
                let waited = own.any(|job| is_eligible(&job.lane, pull, &room));
                if *tenant != lane.tenant && waited {
                    let passed = self.passed_by.entry(tenant.clone()).or_default();
                    assert!(passed.insert(lane.tenant.clone()), "{tenant} was passed by twice");
                }
            }
            self.passed_by.remove(&lane.tenant);
            left.retain(|job| job.id != id);
            if let Some(free) = room.get_mut(&lane.job_type) {
                *free -= 1;
            }
        }
        let is_more = left.iter().any(|job| is_eligible(&job.lane, pull, &room));
        assert!(!is_more || count == pull.limit, "a pull stops only when it is full or all is dry");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_book_agrees_with_the_model_and_nobody_is_passed_by_twice(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut run = Run::default();
        for step in &steps {
            run.step(step);
        }
    }

    #[test]
    fn a_full_pull_empties_the_book(lanes in prop::collection::vec((lane(), 0..9i64), 0..60)) {
        let mut book = Book::default();
        for (id, (lane, key)) in lanes.iter().enumerate() {
            book.insert(lane, rank(*key, u32::try_from(id).unwrap()), id);
        }
        let all = Wanted { tenant: None, types: None, queues: None };
        let mut taken = book.take(&all, usize::MAX, &|_| 1, &mut open, &mut |_| Room::Free);
        prop_assert!(book.is_empty());
        taken.sort_unstable();
        prop_assert_eq!(taken, (0..lanes.len()).collect::<Vec<_>>());
    }

    #[test]
    fn due_order_is_run_at_then_priority(
        (one, other) in ((0..9i64, any::<u8>()), (0..9i64, any::<u8>())),
    ) {
        let key = |(at, priority)| order_key(QueueOrder::Due, Timestamp(at), priority);
        let plain = |(at, priority): (i64, u8)| (at, std::cmp::Reverse(priority));
        prop_assert_eq!(key(one).cmp(&key(other)), plain(one).cmp(&plain(other)));
    }

    #[test]
    fn order_keys_never_overflow(at in any::<i64>(), priority in any::<u8>()) {
        for order in [QueueOrder::Aged, QueueOrder::Due] {
            let key = order_key(order, Timestamp(at), priority);
            prop_assert!(priority == 0 || key <= order_key(order, Timestamp(at), priority - 1));
        }
    }
}

fn simple(tenant: &str, queue: &str, job_type: &str) -> LaneKey {
    LaneKey {
        tenant: TenantId::new(tenant).unwrap(),
        queue: QueueName::new(queue).unwrap(),
        job_type: JobType::new(job_type).unwrap(),
        user: None,
        keys: None,
        is_retry: false,
    }
}

const ALL: Wanted<'static> = Wanted { tenant: None, types: None, queues: None };

fn take_one(book: &mut Book<&'static str>, wanted: &Wanted<'_>) -> Option<&'static str> {
    book.take(wanted, 1, &|_| 1, &mut open, &mut |_| Room::Free).pop()
}

/// With a cursor in a ring, the pulls for `b` put the turn back behind `b` every time, and `a`
/// waited for ever.
#[test]
fn pulls_for_one_tenant_do_not_push_the_turn_past_another() {
    let mut book = Book::default();
    for number in 0..20 {
        for tenant in ["a", "b", "c"] {
            book.insert(&simple(tenant, "q", "t"), rank(0, number), tenant);
        }
    }
    let b = TenantId::new("b").unwrap();
    let mut served = Vec::new();
    for _ in 0..6 {
        served.extend(take_one(&mut book, &ALL));
        assert_eq!(take_one(&mut book, &Wanted { tenant: Some(&b), ..ALL }), Some("b"));
    }
    assert_eq!(served, ["a", "c", "a", "c", "a", "c"]);
}

#[test]
fn pulls_for_one_queue_do_not_push_the_turn_past_another() {
    let mut book = Book::default();
    for number in 0..20 {
        for queue in ["a", "b", "c"] {
            book.insert(&simple("t", queue, "t"), rank(0, number), queue);
        }
    }
    let only_b = [QueueName::new("b").unwrap()];
    let mut served = Vec::new();
    for _ in 0..4 {
        served.extend(take_one(&mut book, &ALL));
        assert_eq!(take_one(&mut book, &Wanted { queues: Some(&only_b), ..ALL }), Some("b"));
    }
    assert_eq!(served, ["a", "c", "a", "c"]);
}

#[test]
fn a_full_lane_hides_nobody_behind_it() {
    let mut book = Book::default();
    book.insert(&simple("t", "q", "full"), rank(0, 0), "full");
    book.insert(&simple("t", "q", "free"), rank(9, 1), "free");
    let mut has_room = |lane: &LaneKey| Room::from(lane.job_type.as_str() != "full");
    assert_eq!(book.take(&ALL, 9, &|_| 1, &mut open, &mut has_room), ["free"]);
    assert_eq!(book.len(), 1);
}

#[test]
fn waiting_makes_up_for_priority() {
    let key =
        |secs: i64, priority| order_key(QueueOrder::Aged, Timestamp(secs * 1_000_000), priority);
    assert!(key(0, 10) < key(0, 5), "of the same age, the higher priority goes first");
    assert!(key(0, 5) < key(6, 10), "six seconds older outranks five points");
    assert_eq!(key(0, 5), key(5, 10), "one point is worth one second");
}

/// A lane of one of many keys.
fn keyed(tenant: &str, key: usize) -> LaneKey {
    let keys = LimitKeys { concurrency: Some(key.to_string().into()), rate: None };
    LaneKey { keys: Some(Arc::new(keys)), ..simple(tenant, "q", "t") }
}

/// Keys that are full cost a pull nothing from the second time on, and nobody behind them waits.
#[test]
fn a_key_that_is_full_is_asked_about_once() {
    let mut book = Book::default();
    let under = |key: usize| digest(&[&key.to_be_bytes()]);
    for key in 0..1_000 {
        for job in 0..2u32 {
            book.insert(&keyed("a", key), rank(key as i64, job), (key, job));
        }
    }
    book.insert(&keyed("b", 5_000), rank(0, 0), (5_000, 0));
    let mut asked = 0;
    let mut pull = |book: &mut Book<(usize, u32)>, free: usize, limit: usize| {
        asked = 0;
        let mut has_room = |lane: &LaneKey| {
            asked += 1;
            let key: usize = lane.concurrency_key().unwrap().parse().unwrap();
            if key == free { Room::Free } else { Room::Aside(under(key)) }
        };
        let taken = book.take(&ALL, limit, &|_| 1, &mut open, &mut has_room);
        (taken, asked)
    };
    let (taken, asked) = pull(&mut book, 999, 1);
    assert_eq!((taken, asked), (vec![(999, 0)], 1_000), "it stands behind all others");
    let (taken, asked) = pull(&mut book, 999, 1);
    // The other tenant's turn came first.
    assert_eq!((taken, asked), (vec![(999, 1)], 2));
    assert_eq!(pull(&mut book, 0, 9), (vec![], 0), "all are aside");
    // Another one of a key that is aside stands aside, too.
    book.insert(&keyed("a", 7), rank(-1, 9), (7, 9));
    assert_eq!(pull(&mut book, 7, 9), (vec![], 0));
    book.free(under(7));
    assert_eq!(pull(&mut book, 7, 9).0, [(7, 9), (7, 0), (7, 1)]);
    assert_eq!(book.len(), 2_002 - 5, "the others are still there");
    // A lane that is emptied while it is aside is forgotten, and made anew.
    let lane = keyed("b", 5_000);
    let place = book.insert(&lane, rank(1, 1), (5_000, 1));
    assert!(book.remove(place, rank(0, 0), (5_000, 0)));
    assert!(book.remove(place, rank(1, 1), (5_000, 1)));
    book.insert(&lane, rank(2, 2), (5_000, 2));
    assert_eq!(pull(&mut book, 5_000, 9).0, [(5_000, 2)]);
    book.free(under(5_000));
    assert_eq!(pull(&mut book, 5_000, 9), (vec![], 0));
}

#[test]
fn tenants_get_turns_by_their_weight_and_none_while_they_are_paused() {
    let mut book = Book::default();
    for number in 0..60 {
        for tenant in ["a", "b", "c", "p"] {
            book.insert(&simple(tenant, "q", "t"), rank(0, number), tenant);
        }
    }
    let weight = |tenant: &TenantId| match tenant.as_str() {
        "a" => 3,
        "b" => 2,
        "p" => 0,
        _ => 1,
    };
    let mut served = Vec::new();
    for limit in [1, 1, 4, 2, 4, 12] {
        // What is undone was no turn.
        book.mark();
        let undone = book.take(&ALL, limit, &weight, &mut open, &mut |_| Room::Free);
        book.undo_servings();
        for (number, tenant) in undone.iter().enumerate() {
            book.insert(&simple(tenant, "q", "t"), rank(-1, number as u32), *tenant);
        }
        book.mark();
        let taken = book.take(&ALL, limit, &weight, &mut open, &mut |_| Room::Free);
        assert_eq!(taken, undone);
        served.extend(taken);
    }
    let round = ["a", "a", "a", "b", "b", "c"];
    assert_eq!(served, [round; 4].concat());
    // Coming back gains nothing: who is there alone is served, and goes behind whoever comes.
    let only = Wanted { tenant: Some(&TenantId::new("a").unwrap()), ..ALL };
    assert_eq!(book.take(&only, 5, &weight, &mut open, &mut |_| Room::Free), ["a"; 5]);
    let next = book.take(&ALL, 3, &weight, &mut open, &mut |_| Room::Free);
    assert_eq!(next, ["b", "b", "c"]);
}

fn retries(tenant: &str, queue: &str, job_type: &str) -> LaneKey {
    LaneKey { is_retry: true, ..simple(tenant, queue, job_type) }
}

/// Whatever fails over and over, the fresh ones keep all but one of so many turns.
#[test]
fn a_storm_of_retries_leaves_the_fresh_jobs_most_of_the_turns() {
    let mut book = Book::default();
    for number in 0..1_000 {
        // They have been due for longer than any of the others.
        book.insert(&retries("t", "q", "storm"), rank(-1, number), "retry");
    }
    let others = RETRY_EVERY as usize - 1;
    for number in 0..4 * (RETRY_EVERY - 1) {
        let job_type = if number % 2 == 0 { "storm" } else { "other" };
        book.insert(&simple("t", "q", job_type), rank(0, number), "fresh");
    }
    let mut take = |limit| book.take(&ALL, limit, &|_| 1, &mut open, &mut |_| Room::Free);
    assert_eq!(take(3), ["retry", "fresh", "fresh"], "the first in line goes first");
    assert_eq!(take(others - 2), vec!["fresh"; others - 2]);
    let turn = [vec!["retry"], vec!["fresh"; others]].concat();
    assert_eq!(take(3 * turn.len()), turn.repeat(3));
    assert_eq!(take(9), ["retry"; 9], "with nothing else to do, they go at once");
}

/// What is undone was no retry, and another queue is not held to it.
#[test]
fn a_retry_that_was_not_given_counts_for_nothing() {
    let mut book = Book::default();
    for queue in ["q", "r"] {
        for number in 0..3 {
            book.insert(&retries("t", queue, "t"), rank(-1, number), "retry");
            book.insert(&simple("t", queue, "t"), rank(0, number), "fresh");
        }
    }
    book.mark();
    assert_eq!(take_one(&mut book, &ALL), Some("retry"));
    book.undo_servings();
    book.insert(&retries("t", "q", "t"), rank(-1, 0), "retry");
    book.mark();
    assert_eq!(take_one(&mut book, &ALL), Some("retry"), "of q, as if nothing had been");
    assert_eq!(take_one(&mut book, &ALL), Some("retry"), "of r");
    assert_eq!(take_one(&mut book, &ALL), Some("fresh"));
}

/// Where the order is a promise, nobody gives way.
#[test]
fn retries_keep_their_place_in_a_queue_that_promises_an_order() {
    let mut book = Book::default();
    for number in 0..3 {
        book.insert(&retries("t", "c", "t"), rank(-1, number), "retry");
        book.insert(&simple("t", "c", "t"), rank(0, number), "fresh");
    }
    let taken = book.take(&ALL, 6, &|_| 1, &mut open, &mut |_| Room::Free);
    assert_eq!(taken, ["retry", "retry", "retry", "fresh", "fresh", "fresh"]);
}

/// A book that was given the first few of a lane does not hand out retries in place of the others.
#[test]
fn what_the_book_was_not_given_goes_before_retries() {
    let mut book = Book::default();
    let fill = |book: &mut Book<&str>, lanes: &[LaneKey]| {
        for lane in lanes {
            for number in 0..2 {
                book.insert(lane, rank(-1, number), if lane.is_retry { "retry" } else { "fresh" });
            }
        }
    };
    let [late, fresh, other] =
        [retries("t", "q", "t"), simple("t", "q", "t"), retries("t", "r", "t")];
    book.mark();
    fill(&mut book, &[late.clone(), fresh.clone()]);
    book.has_more_of(&fresh);
    let take = |book: &mut Book<_>| book.take(&ALL, 9, &|_| 1, &mut open, &mut |_| Room::Free);
    assert_eq!(take(&mut book), ["retry", "fresh", "fresh"], "one of so many at most");
    assert!(book.is_short());
    // Of other queues, and of lanes of retries, that says nothing.
    fill(&mut book, std::slice::from_ref(&other));
    book.has_more_of(&other);
    assert_eq!(take(&mut book), ["retry", "retry"]);
    // Whoever looked again knows that there is nothing else.
    book.mark();
    assert!(!book.is_short());
    assert_eq!(take(&mut book), ["retry"]);
}
