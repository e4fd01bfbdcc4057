//! What becomes of what is asked of a subscription.

use super::command::SubscriptionCommand;
use super::{FormerSecret, Gap, Hold, Pause, Subscription, SubscriptionSpec, Target, Trouble};
use crate::decide::{Decision, Receipt};
use crate::entity::{Body, Entity, Kind};
use crate::event::Event;
use crate::executor::check_url;
use crate::facts::Facts;
use crate::limits::{
    MESSAGE_BYTES_MAX, NAME_BYTES_MAX, SUBJECT_BYTES_MAX, SUBSCRIPTION_AHEAD_MAX,
    SUBSCRIPTION_GAPS_MAX, SUBSCRIPTION_NAMES_MAX, SUBSCRIPTION_OVERLAP_MS_MAX,
};
use crate::rejection::Rejection;
use crate::text::{cleaned, refuse_control};

fn bad(field: &'static str, reason: &'static str) -> Rejection {
    Rejection::FieldInvalid { field, reason }
}

pub(in crate::entity) fn decide(
    command: &SubscriptionCommand,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let known = || {
        let unknown = Rejection::EntityUnknown { kind: Kind::Subscription };
        let entity = facts.entity.ok_or(unknown.clone())?;
        let Body::Subscription(body) = &entity.body else { return Err(unknown) };
        Ok((entity, &**body))
    };
    let changed = |entity: &Entity, body: Subscription| {
        let body = Body::Subscription(Box::new(body));
        Event::EntitySet(Box::new(entity.changed(body, facts.now)))
    };
    let event = match command {
        SubscriptionCommand::Create { .. } => created(command, facts)?,
        SubscriptionCommand::Pause { by, note, .. } => {
            let (entity, subscription) = known()?;
            if let Some(note) = note {
                check_note(note)?;
            }
            let pause = Some(Pause { by: by.clone(), note: note.clone() });
            changed(entity, Subscription { pause, ..subscription.clone() })
        }
        SubscriptionCommand::Resume { .. } => {
            let (entity, subscription) = known()?;
            let rested = Subscription { pause: None, failures: 0, ..subscription.clone() };
            changed(entity, rested)
        }
        SubscriptionCommand::Rotate { secret, overlap_ms, .. } => {
            let (entity, subscription) = known()?;
            if *overlap_ms > SUBSCRIPTION_OVERLAP_MS_MAX {
                return Err(bad("overlap_seconds", "must be at most 604800"));
            }
            let Some(present) = subscription.secret.clone() else {
                return Err(conflict(subscription));
            };
            let until = facts.now.plus_millis(*overlap_ms);
            let former = (*overlap_ms > 0).then_some(FormerSecret { secret: present, until });
            let secret = Some(secret.clone());
            changed(entity, Subscription { secret, former, ..subscription.clone() })
        }
        SubscriptionCommand::Remove { .. } => {
            let (entity, subscription) = known()?;
            // Its id follows from its name, and no id is given again.
            if matches!(subscription.spec.target, Target::Consumer { .. }) {
                return Err(conflict(subscription));
            }
            Event::EntityRemoved { entity: entity.id, version: entity.version + 1 }
        }
        SubscriptionCommand::Take { holder, for_ms, is_alone, .. } => {
            let (entity, subscription) = known()?;
            let is_taken = subscription
                .hold
                .is_some_and(|hold| hold.holder != *holder && facts.now < hold.until);
            if subscription.pause.is_some() || is_taken && !is_alone {
                return Err(Rejection::NotDue);
            }
            let hold = Some(Hold { holder: *holder, until: facts.now.plus_millis(*for_ms) });
            changed(entity, Subscription { hold, ..subscription.clone() })
        }
        SubscriptionCommand::Note { .. } => {
            let (entity, subscription) = known()?;
            changed(entity, noted(command, subscription, facts)?)
        }
        SubscriptionCommand::Advance { .. } => {
            let (entity, subscription) = known()?;
            changed(entity, advanced(command, subscription, facts)?)
        }
        SubscriptionCommand::TellAhead { job, .. } => {
            let (entity, subscription) = known()?;
            if subscription.ahead.contains(job) {
                return Ok(Decision { events: Vec::new(), receipt: Receipt::Done });
            }
            if subscription.ahead.len() >= SUBSCRIPTION_AHEAD_MAX {
                return Err(bad("event_id", "cannot go before its turn: relay the others first"));
            }
            let mut next = subscription.clone();
            next.ahead.push(*job);
            next.delivered += 1;
            next.delivered_at = Some(facts.now);
            changed(entity, next)
        }
    };
    Ok(Decision { events: vec![event], receipt: Receipt::Done })
}

fn created(command: &SubscriptionCommand, facts: &Facts<'_>) -> Result<Event, Rejection> {
    let SubscriptionCommand::Create { id, tenant, owner, spec, secret, position } = command else {
        return Err(Rejection::NotDue);
    };
    if facts.entity.is_some() {
        return Err(Rejection::EntityExists { kind: Kind::Subscription });
    }
    check(spec)?;
    Ok(Event::EntitySet(Box::new(Entity {
        id: *id,
        version: 1,
        tenant: tenant.clone(),
        owner: owner.clone(),
        created_at: facts.now,
        updated_at: facts.now,
        body: Body::Subscription(Box::new(Subscription {
            spec: (**spec).clone(),
            secret: secret.clone(),
            former: None,
            pause: None,
            position: *position,
            hold: None,
            delivered: 0,
            failed: 0,
            failures: 0,
            delivered_at: None,
            trouble: None,
            missed: 0,
            gaps: Vec::new(),
            ahead: Vec::new(),
        })),
    })))
}

/// What the sender tells. Whoever has lost the hold has nothing to tell any more: the events go out
/// again, under the same ids.
fn noted(
    command: &SubscriptionCommand,
    subscription: &Subscription,
    facts: &Facts<'_>,
) -> Result<Subscription, Rejection> {
    let SubscriptionCommand::Note { holder, for_ms, position, delivered, trouble, gap, .. } =
        command
    else {
        return Err(Rejection::NotDue);
    };
    let is_holder = subscription.hold.is_some_and(|hold| hold.holder == *holder);
    // A position never goes back: that it was settled was told by a holder before.
    if !is_holder || *position < subscription.position && gap.is_none() {
        return Err(Rejection::EntityChanged { kind: Kind::Subscription });
    }
    let mut next = subscription.clone();
    let until = facts.now.plus_millis(*for_ms);
    next.hold = (*for_ms > 0).then_some(Hold { holder: *holder, until });
    next.position = *position;
    next.delivered += delivered;
    if *delivered > 0 {
        next.delivered_at = Some(facts.now);
        next.failures = 0;
    }
    if let Some(message) = trouble {
        let message = cleaned(message).chars().take(MESSAGE_BYTES_MAX / 4).collect::<String>();
        next.trouble = Some(Trouble { at: facts.now, message: message.into() });
        next.failed += 1;
        next.failures = next.failures.saturating_add(1);
    }
    next.note_gap(*gap, facts);
    // What no longer counts need not be kept.
    next.former = next.former.filter(|former| facts.now < former.until);
    Ok(next)
}

/// What a consumer was told of. Whoever comes second with the same has nothing to tell.
fn advanced(
    command: &SubscriptionCommand,
    subscription: &Subscription,
    facts: &Facts<'_>,
) -> Result<Subscription, Rejection> {
    let SubscriptionCommand::Advance { from, position, delivered, passed, gap, .. } = command
    else {
        return Err(Rejection::NotDue);
    };
    if *from != subscription.position || *position < *from {
        return Err(Rejection::EntityChanged { kind: Kind::Subscription });
    }
    let mut next = subscription.clone();
    next.position = *position;
    next.delivered += delivered;
    if *delivered > 0 {
        next.delivered_at = Some(facts.now);
    }
    next.ahead.retain(|job| !passed.contains(job));
    next.note_gap(*gap, facts);
    Ok(next)
}

impl Subscription {
    fn note_gap(&mut self, gap: Option<Gap>, facts: &Facts<'_>) {
        let Some(Gap { from, to, .. }) = gap else { return };
        self.missed += (to + 1).saturating_sub(from);
        self.gaps.push(Gap { from, to, at: facts.now });
        let over = self.gaps.len().saturating_sub(SUBSCRIPTION_GAPS_MAX);
        self.gaps.drain(..over);
    }
}

fn check_note(note: &str) -> Result<(), Rejection> {
    if note.len() > MESSAGE_BYTES_MAX {
        return Err(bad("note", "must be at most 4096 bytes long"));
    }
    refuse_control("note", note)
}

/// What its target has no room for.
const fn conflict(subscription: &Subscription) -> Rejection {
    Rejection::SubscriptionConflict { target: subscription.spec.target.kind() }
}

fn check(spec: &SubscriptionSpec) -> Result<(), Rejection> {
    let SubscriptionSpec { name, target, filter } = spec;
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(bad("name", "must be 1 to 200 bytes long"));
    }
    refuse_control("name", name)?;
    match target {
        Target::Webhook { url } => check_url("url", url)?,
        Target::Nats { subject } => check_subject(subject)?,
        // The name was checked above: it is the same.
        Target::Consumer { .. } => {}
    }
    let lists = [filter.events.len(), filter.types.len(), filter.queues.len()];
    if lists.into_iter().any(|len| len > SUBSCRIPTION_NAMES_MAX) {
        return Err(bad("filter", "must name at most 100 of each"));
    }
    Ok(())
}

/// A subject is words between dots. Words that NATS keeps to itself begin with `$` or `_`, and
/// letters that stand for others have no place in what is published.
fn check_subject(subject: &str) -> Result<(), Rejection> {
    const FIELD: &str = "nats_subject";
    if subject.is_empty() || subject.len() > SUBJECT_BYTES_MAX {
        return Err(bad(FIELD, "must be 1 to 128 bytes long"));
    }
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphanumeric())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    match subject.split('.').all(is_word) {
        true => Ok(()),
        false => Err(bad(FIELD, "must be words of letters, digits, _ and - between dots")),
    }
}
