//! The rules of subscriptions, without a store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_kernel::entity::subscription::{
    EventName, Filter, Gap, SigningSecret, Subscription, SubscriptionCommand, SubscriptionSpec,
    Target, wait_ms,
};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::evolve::Transition;
use mainspring_kernel::job::Actor;
use mainspring_kernel::limits::SUBSCRIPTION_AHEAD_MAX;
use mainspring_kernel::{
    Command, Entity, EntityId, Event, Facts, JobId, JobType, QueueName, Rejection, StateName,
    TenantId, Timestamp, UserId, decide,
};

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
const ID: EntityId = EntityId { kind: Kind::Subscription, bits: 7 };
const CHANGED: Rejection = Rejection::EntityChanged { kind: Kind::Subscription };

fn user() -> UserId {
    UserId::stored("ada".into())
}

fn spec(target: Target) -> SubscriptionSpec {
    SubscriptionSpec { name: "all".into(), target, filter: Filter::default() }
}

fn webhook() -> SubscriptionSpec {
    spec(Target::Webhook { url: "https://a.example/x".into() })
}

fn create(spec: SubscriptionSpec) -> Command {
    SubscriptionCommand::Create {
        id: ID,
        tenant: TenantId::stored("acme".into()),
        owner: user(),
        spec: Box::new(spec),
        secret: Some(SigningSecret([1; 32])),
        position: 10,
    }
    .into()
}

fn take(holder: u128, is_alone: bool) -> Command {
    SubscriptionCommand::Take { id: ID, holder, for_ms: 1_000, is_alone }.into()
}

fn note(holder: u128, position: u64, delivered: u64, trouble: Option<&str>) -> Command {
    let (for_ms, trouble) = (1_000, trouble.map(Into::into));
    SubscriptionCommand::Note { id: ID, holder, for_ms, position, delivered, trouble, gap: None }
        .into()
}

/// One subscription and a clock.
struct World {
    entity: Option<Entity>,
    now: Timestamp,
}

impl World {
    fn new() -> Self {
        let mut world = World { entity: None, now: NOW };
        world.tell(create(webhook())).unwrap();
        world
    }

    fn tell(&mut self, command: Command) -> Result<(), Rejection> {
        let facts = Facts { entity: self.entity.as_ref(), ..Facts::at(self.now) };
        let decision = decide(&command, &facts)?;
        let version = self.entity.as_ref().map_or(0, |entity| entity.version);
        match decision.events.as_slice() {
            [Event::EntitySet(entity)] => {
                assert_eq!(entity.version, version + 1);
                self.entity = Some((**entity).clone());
            }
            [Event::EntityRemoved { version: removed, .. }] => {
                assert_eq!(*removed, version + 1);
                self.entity = None;
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    }

    fn later(&mut self, millis: u64) {
        self.now = self.now.plus_millis(millis);
    }

    fn see(&self) -> &Subscription {
        let Some(Entity { body: Body::Subscription(it), .. }) = &self.entity else { panic!() };
        it
    }
}

#[test]
fn one_sends_until_its_hold_runs_out() {
    let mut world = World::new();
    world.tell(take(1, false)).unwrap();
    assert!(world.see().is_held_by(1, world.now) && !world.see().is_held_by(2, world.now));
    assert_eq!(world.tell(take(2, false)), Err(Rejection::NotDue));
    assert_eq!(world.tell(note(2, 11, 1, None)), Err(CHANGED), "only the holder tells");
    world.later(600);
    world.tell(note(1, 12, 2, None)).unwrap();
    world.later(999);
    assert_eq!(world.tell(take(2, false)), Err(Rejection::NotDue), "a note renews the hold");
    world.later(1);
    assert!(!world.see().is_held_by(1, world.now));
    world.tell(take(2, false)).unwrap();
    assert_eq!(world.tell(note(1, 13, 1, None)), Err(CHANGED), "whoever lost it has lost it");
    assert_eq!(world.see().position, 12);
    // Where there is no other server, whoever held it is gone.
    world.tell(take(3, true)).unwrap();
    // Who lets go lets anybody have it at once.
    let go = SubscriptionCommand::Note {
        id: ID,
        holder: 3,
        for_ms: 0,
        position: 12,
        delivered: 0,
        trouble: None,
        gap: None,
    };
    world.tell(go.into()).unwrap();
    assert_eq!(world.see().hold, None);
    world.tell(take(4, false)).unwrap();
}

#[test]
fn a_position_goes_on_and_never_back() {
    let mut world = World::new();
    world.tell(take(1, false)).unwrap();
    world.tell(note(1, 20, 5, None)).unwrap();
    assert_eq!(world.tell(note(1, 19, 1, None)), Err(CHANGED));
    let see = world.see();
    assert_eq!((see.position, see.delivered, see.failed), (20, 5, 0));
    assert_eq!(see.delivered_at, Some(NOW));
}

#[test]
fn failures_show_and_pass_with_the_next_success() {
    let mut world = World::new();
    world.tell(take(1, false)).unwrap();
    for n in 1..=3 {
        world.tell(note(1, 10, 0, Some("no\u{0} answer"))).unwrap();
        let see = world.see();
        assert_eq!((see.state(), see.failures, see.failed), ("failing", n, u64::from(n)));
    }
    assert_eq!(&*world.see().trouble.as_ref().unwrap().message, "no\u{fffd} answer");
    world.tell(note(1, 11, 1, None)).unwrap();
    assert_eq!((world.see().state(), world.see().failures, world.see().failed), ("active", 0, 3));
    assert!(world.see().trouble.is_some(), "what went wrong last is still told");
    // Taken and failed in one note: the failure was the later one.
    world.tell(note(1, 12, 1, Some("x"))).unwrap();
    assert_eq!((world.see().failures, world.see().state()), (1, "failing"));
    world.tell(SubscriptionCommand::Resume { id: ID }.into()).unwrap();
    assert_eq!(world.see().failures, 0, "whoever says so has it tried at once");
    let long = "x".repeat(100_000);
    world.tell(note(1, 12, 0, Some(&long))).unwrap();
    assert!(world.see().trouble.as_ref().unwrap().message.len() <= 4096);
}

#[test]
fn waits_double_up_to_a_minute() {
    let waits: Vec<u64> = [1, 2, 3, 7, 8, 9, u32::MAX].map(wait_ms).into();
    assert_eq!(waits, [500, 1_000, 2_000, 32_000, 60_000, 60_000, 60_000]);
}

#[test]
fn a_pause_keeps_new_senders_out_and_lets_the_present_one_tell() {
    let mut world = World::new();
    world.tell(take(1, false)).unwrap();
    let pause = SubscriptionCommand::Pause { id: ID, by: Some(user()), note: Some("lunch".into()) };
    world.tell(pause.into()).unwrap();
    assert_eq!(world.see().state(), "paused");
    world.tell(note(1, 15, 3, None)).unwrap();
    assert_eq!(world.see().position, 15, "what was taken is not sent again");
    world.later(5_000);
    assert_eq!(world.tell(take(2, true)), Err(Rejection::NotDue));
    world.tell(SubscriptionCommand::Resume { id: ID }.into()).unwrap();
    world.tell(take(2, false)).unwrap();
    world.tell(SubscriptionCommand::Remove { id: ID }.into()).unwrap();
    let unknown = Rejection::EntityUnknown { kind: Kind::Subscription };
    assert_eq!(world.tell(note(2, 16, 1, None)), Err(unknown));
}

#[test]
fn both_secrets_sign_during_the_overlap_and_no_longer() {
    let mut world = World::new();
    let rotate = |byte: u8, overlap_ms: u64| SubscriptionCommand::Rotate {
        id: ID,
        secret: SigningSecret([byte; 32]),
        overlap_ms,
    };
    let signs = |world: &World| {
        world.see().secrets(world.now).map(|secret| secret.0[0]).collect::<Vec<_>>()
    };
    world.tell(rotate(2, 1_000).into()).unwrap();
    assert_eq!(signs(&world), [2, 1]);
    world.later(999);
    assert_eq!(signs(&world), [2, 1]);
    world.later(1);
    assert_eq!(signs(&world), [2]);
    world.tell(take(1, false)).unwrap();
    world.tell(note(1, 11, 1, None)).unwrap();
    assert_eq!(world.see().former, None, "what no longer counts is not kept");
    world.tell(rotate(3, 1_000).into()).unwrap();
    world.tell(rotate(4, 0).into()).unwrap();
    assert_eq!(signs(&world), [4], "a leaked one is out at once");
    let long = rotate(5, 8 * 24 * 3_600_000);
    assert!(matches!(world.tell(long.into()), Err(Rejection::FieldInvalid { .. })));
    let shown = format!("{:?}", world.see());
    assert!(shown.contains("SigningSecret(..)") && !shown.contains("[4"), "{shown}");
}

#[test]
fn gaps_are_counted_and_the_latest_are_kept() {
    let mut world = World::new();
    world.tell(take(1, false)).unwrap();
    for n in 0..20_u64 {
        let (from, to) = (100 * n + 11, 100 * n + 20);
        let gap = Some(Gap { from, to, at: Timestamp::EPOCH });
        let command = SubscriptionCommand::Note {
            id: ID,
            holder: 1,
            for_ms: 1_000,
            position: to,
            delivered: 0,
            trouble: None,
            gap,
        };
        world.tell(command.into()).unwrap();
    }
    let see = world.see();
    assert_eq!((see.missed, see.gaps.len()), (200, 16));
    assert_eq!(see.gaps.last(), Some(&Gap { from: 1911, to: 1920, at: NOW }));
}

#[test]
fn what_cannot_be_sent_to_is_refused() {
    let refused = |spec: SubscriptionSpec| {
        let facts = Facts::at(NOW);
        matches!(decide(&create(spec), &facts), Err(Rejection::FieldInvalid { .. }))
    };
    let url = |url: &str| spec(Target::Webhook { url: url.into() });
    let subject = |subject: &str| spec(Target::Nats { subject: subject.into() });
    for bad in ["", "a.example", "ftp://a", "https://", "https://u@a", "https://a b", "http://a\n"]
    {
        assert!(refused(url(bad)), "{bad:?}");
    }
    let long = "a".repeat(129);
    for bad in ["", ".", "a.", ".a", "a..b", "a.*", "a.>", "a b", "$SYS", "a.$b", "_INBOX", "é"] {
        assert!(refused(subject(bad)), "{bad:?}");
    }
    assert!(refused(subject(&long)));
    for good in ["a", "a.b", "A-1.b_2.c"] {
        assert!(!refused(subject(good)), "{good:?}");
    }
    let named = |name: &str| SubscriptionSpec { name: name.into(), ..webhook() };
    assert!(refused(named("")) && refused(named(&"x".repeat(201))) && refused(named("a\u{7}")));
    let types = vec![JobType::stored("t".into()); 101];
    let many = SubscriptionSpec { filter: Filter { types, ..Filter::default() }, ..webhook() };
    assert!(refused(many));
}

#[test]
fn every_move_has_one_name_and_filters_go_by_all_they_say() {
    let step = |from: Option<StateName>, to: StateName| Transition {
        seq: 1,
        from,
        to,
        at: NOW,
        attempt: 1,
        reason: None,
        actor: Actor::Reaper,
    };
    assert_eq!(EventName::of(&step(None, StateName::Queued)), EventName::Submitted);
    for to in StateName::ALL {
        let name = EventName::of(&step(Some(StateName::Running), to));
        assert_eq!(name.as_str(), format!("job.{}", to.as_str()));
        assert_eq!(EventName::parse(name.as_str()), Some(name));
    }
    let (mail, fast) = (JobType::stored("mail".into()), QueueName::stored("fast".into()));
    let other = JobType::stored("other".into());
    assert!(Filter::default().admits(EventName::Failed, &mail, &fast));
    let filter = Filter {
        events: vec![EventName::Failed],
        types: vec![mail.clone()],
        queues: vec![fast.clone()],
        is_for_all: false,
    };
    assert!(filter.admits(EventName::Failed, &mail, &fast));
    assert!(!filter.admits(EventName::Succeeded, &mail, &fast));
    assert!(!filter.admits(EventName::Failed, &other, &fast));
    assert!(!filter.admits(EventName::Failed, &mail, &QueueName::stored("slow".into())));
}

#[test]
fn a_consumer_is_told_once_whoever_tells_it_and_is_kept() {
    let mut world = World { entity: None, now: NOW };
    world.tell(create(spec(Target::Consumer { name: "all".into() }))).unwrap();
    let advance = |from: u64, position: u64, passed: Vec<JobId>| -> Command {
        let delivered = passed.len() as u64;
        let (id, gap) = (ID, None);
        SubscriptionCommand::Advance { id, from, position, delivered, passed, gap }.into()
    };
    let ahead = |job: u128| -> Command {
        SubscriptionCommand::TellAhead { id: ID, job: JobId(job) }.into()
    };
    world.tell(advance(10, 13, vec![JobId(1)])).unwrap();
    assert_eq!((world.see().position, world.see().delivered), (13, 1));
    assert_eq!(world.tell(advance(10, 15, Vec::new())), Err(CHANGED), "somebody was faster");
    assert_eq!(world.tell(advance(13, 12, Vec::new())), Err(CHANGED), "it never goes back");
    world.tell(ahead(2)).unwrap();
    world.tell(ahead(3)).unwrap();
    assert_eq!((world.see().ahead.len(), world.see().delivered), (2, 3));
    let facts = Facts { entity: world.entity.as_ref(), ..Facts::at(world.now) };
    assert!(decide(&ahead(2), &facts).unwrap().events.is_empty(), "told already");
    world.tell(advance(13, 20, vec![JobId(2)])).unwrap();
    assert_eq!(world.see().ahead, [JobId(3)], "what was passed is not ahead any more");
    for job in 10..10 + SUBSCRIPTION_AHEAD_MAX as u128 - 1 {
        world.tell(ahead(job)).unwrap();
    }
    assert!(matches!(world.tell(ahead(5)), Err(Rejection::FieldInvalid { .. })), "so many");
    let remove = SubscriptionCommand::Remove { id: ID };
    assert_eq!(
        world.tell(remove.into()),
        Err(Rejection::SubscriptionConflict { target: "consumer" })
    );
}
