//! The rules of alerts, without a store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::alert::watch::{Thresholds, Watch};
use mainspring_kernel::entity::alert::{
    Alert, AlertCommand, AlertState, Level, Milli, Rule, Severity, Sighting,
};
use mainspring_kernel::limits::{ALERT_LATE_MS, MESSAGE_BYTES_MAX};
use mainspring_kernel::{
    Command, Decision, Entity, Event, Facts, Rejection, TenantId, Timestamp, UserId, decide,
};

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
const QUIET_MS: u64 = 60_000;

fn after(ms: u64) -> Timestamp {
    NOW.plus_millis(ms)
}

fn sighting(level: Level, value: u64) -> Sighting {
    Sighting {
        tenant: TenantId::stored("acme".into()),
        rule: Rule::DlqGrowth,
        subject: "".into(),
        level,
        value: Milli::whole(value),
        threshold: Milli::whole(20),
        quiet_ms: QUIET_MS,
    }
}

fn ask(command: Command, entity: Option<&Entity>, now: Timestamp) -> Result<Decision, Rejection> {
    decide(&command, &Facts { entity, ..Facts::at(now) })
}

fn see(
    level: Level,
    value: u64,
    entity: Option<&Entity>,
    now: Timestamp,
) -> Result<Decision, Rejection> {
    ask(AlertCommand::See(Box::new(sighting(level, value))).into(), entity, now)
}

fn acknowledge(entity: &Entity, note: Option<&str>, now: Timestamp) -> Result<Decision, Rejection> {
    let (id, by) = (entity.id, UserId::stored("ada".into()));
    let command = AlertCommand::Acknowledge { id, by, note: note.map(Into::into) };
    ask(command.into(), Some(entity), now)
}

fn ring(entity: &Entity, now: Timestamp) -> Result<Decision, Rejection> {
    let (id, at) = (entity.id, entity.alarm_at().unwrap());
    ask(Command::Ring { entity: id, at, jobs: Vec::new() }, Some(entity), now)
}

/// The entity that a decision made.
fn made(decided: Result<Decision, Rejection>) -> Entity {
    let mut events = decided.unwrap().events;
    match (events.pop(), events.pop()) {
        (Some(Event::EntitySet(entity)), None) => *entity,
        other => panic!("{other:?}"),
    }
}

fn alert(entity: &Entity) -> &Alert {
    let Body::Alert(alert) = &entity.body else { panic!("{entity:?}") };
    alert
}

#[test]
fn an_alert_is_raised_once_and_goes_on_while_it_is_seen() {
    assert_eq!(see(Level::Lingering, 15, None, NOW), Err(Rejection::NotDue), "raises nothing");
    let raised = made(see(Level::Beyond, 25, None, NOW));
    assert_eq!((raised.id, raised.version), (sighting(Level::Beyond, 1).id(), 1));
    assert_eq!((raised.state(), alert(&raised).count), ("open", 1));
    assert_eq!(raised.alarm_at(), Some(after(QUIET_MS)));
    assert!(alert(&raised).message.starts_with("25 jobs failed for good"), "{raised:?}");
    // Another server, or the same a moment later: nothing is written.
    for level in [Level::Beyond, Level::Lingering] {
        assert_eq!(see(level, 30, Some(&raised), after(QUIET_MS / 4 - 1)).unwrap().events, []);
    }
    let later = made(see(Level::Lingering, 12, Some(&raised), after(QUIET_MS / 4)));
    assert_eq!((later.version, alert(&later).raised_at), (2, NOW));
    assert_eq!(alert(&later).value, Milli::whole(12));
    assert_eq!(later.alarm_at(), Some(after(QUIET_MS / 4 + QUIET_MS)));
}

#[test]
fn an_alert_clears_by_its_alarm_and_comes_again_as_the_same() {
    let raised = made(see(Level::Beyond, 25, None, NOW));
    assert_eq!(ring(&raised, after(QUIET_MS - 1)), Err(Rejection::NotDue));
    let cleared = made(ring(&raised, after(QUIET_MS)));
    assert_eq!((cleared.state(), cleared.alarm_at()), ("cleared", None));
    assert_eq!(alert(&cleared).cleared_at, Some(after(QUIET_MS)));
    let now = after(QUIET_MS * 2);
    assert_eq!(see(Level::Lingering, 15, Some(&cleared), now), Err(Rejection::NotDue));
    let again = made(see(Level::Beyond, 40, Some(&cleared), now));
    assert_eq!((again.id, again.version, again.state()), (raised.id, 3, "open"));
    assert_eq!((alert(&again).count, alert(&again).raised_at), (2, now));
    assert_eq!((&alert(&again).acknowledged, alert(&again).cleared_at), (&None, None));
}

#[test]
fn nothing_clears_because_nobody_was_there_to_look() {
    let raised = made(see(Level::Beyond, 25, None, NOW));
    let late = after(QUIET_MS + ALERT_LATE_MS + 1);
    let kept = made(ring(&raised, late));
    assert_eq!((kept.state(), kept.alarm_at()), ("open", Some(late.plus_millis(QUIET_MS))));
    let cleared = made(ring(&kept, late.plus_millis(QUIET_MS + ALERT_LATE_MS)));
    assert_eq!(cleared.state(), "cleared");
}

#[test]
fn an_acknowledgement_holds_until_the_alert_is_over() {
    let raised = made(see(Level::Beyond, 25, None, NOW));
    let known = made(acknowledge(&raised, Some("on it"), after(1)));
    assert_eq!(alert(&known).state(), AlertState::Acknowledged);
    let told = alert(&known).acknowledged.as_ref().unwrap();
    assert_eq!((told.by.as_str(), told.note.as_deref(), told.at), ("ada", Some("on it"), after(1)));
    assert_eq!(acknowledge(&known, None, after(2)).unwrap().events, [], "whoever comes second");
    let seen = made(see(Level::Beyond, 25, Some(&known), after(QUIET_MS / 2)));
    assert_eq!(seen.state(), "acknowledged", "seeing it again does not undo it");
    let cleared = made(ring(&seen, after(QUIET_MS / 2 + QUIET_MS)));
    let refused = acknowledge(&cleared, None, after(QUIET_MS * 2)).unwrap_err();
    assert_eq!(refused, Rejection::AlertConflict { state: "cleared" });
    for bad in ["x".repeat(MESSAGE_BYTES_MAX + 1), "a\u{0}b".to_owned()] {
        let refused = acknowledge(&raised, Some(&bad), NOW).unwrap_err();
        assert_eq!(refused.code(), "REQ_VALIDATION_FAILED");
    }
}

#[test]
fn alerts_about_other_things_are_other_alerts() {
    let one = sighting(Level::Beyond, 1);
    let other = |change: fn(&mut Sighting)| {
        let mut other = one.clone();
        change(&mut other);
        other.id()
    };
    let ids = [
        one.id(),
        other(|it| it.tenant = TenantId::stored("else".into())),
        other(|it| it.rule = Rule::Lag),
        other(|it| it.subject = "t".into()),
    ];
    for (index, id) in ids.iter().enumerate() {
        assert!(!ids[..index].contains(id), "{index}");
    }
    assert_eq!(other(|it| it.value = Milli(7)), one.id());
    assert_eq!(Rule::InvalidTransitions.severity(), Severity::P1);
}

#[test]
fn it_takes_a_while_to_be_beyond_and_half_to_be_over() {
    let thresholds = Thresholds { raise: Milli(200), hold_ms: 1_000 };
    let mut watch = Watch::default();
    let mut see = |value, ms| watch.see(Milli(value), thresholds, after(ms));
    assert_eq!(see(99, 0), None);
    assert_eq!(see(100, 1), Some(Level::Lingering), "what stands goes on");
    assert_eq!(see(200, 10), Some(Level::Lingering), "not for long enough");
    assert_eq!(see(300, 1_009), Some(Level::Lingering));
    assert_eq!(see(200, 1_010), Some(Level::Beyond));
    assert_eq!(see(199, 1_020), Some(Level::Lingering));
    assert_eq!(see(500, 1_030), Some(Level::Lingering), "from the beginning");
    assert_eq!(see(500, 2_030), Some(Level::Beyond));
    let at_once = Thresholds { raise: Milli::whole(5), hold_ms: 0 };
    assert_eq!(Watch::default().see(Milli::whole(5), at_once, NOW), Some(Level::Beyond));
    assert_eq!(Watch::default().see(Milli::whole(4), at_once, NOW), Some(Level::Lingering));
    assert_eq!(Watch::default().see(Milli::whole(2), at_once, NOW), None);
}

#[test]
fn numbers_have_thousandths() {
    assert_eq!(Milli::share(5, 20), Milli(250));
    assert_eq!(Milli::share(0, 0), Milli(0));
    assert_eq!(Milli::share(u64::MAX, u64::MAX), Milli(1_000));
    assert_eq!(Milli::share(9, 3), Milli(1_000), "not more than all");
    assert_eq!(Milli::whole(u64::MAX), Milli(u64::MAX));
    assert_eq!((Milli(1_500).to_string(), Milli(7_000).to_string()), ("1.500".into(), "7".into()));
}
