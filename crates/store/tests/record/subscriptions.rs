//! Fixed values of subscriptions, and moves as files of the stream have them.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use super::samples::{id, later, plain_job, user};
use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::subscription::{
    EventName, Filter, FormerSecret, Gap, Hold, Pause, SigningSecret, Subscription,
    SubscriptionSpec, Target, Trouble,
};
use mainspring_kernel::evolve::{Reason, Transition};
use mainspring_kernel::job::Actor;
use mainspring_kernel::{JobType, QueueName, StateName, Timestamp};
use mainspring_store::LoggedMove;
use mainspring_store::record::{decode_moves, encode_moves, first_of_moves};
use std::path::Path;
use std::sync::Arc;

/// A subscription that nothing has happened to.
pub(crate) fn fresh() -> Body {
    let target = Target::Nats { subject: "mainspring.acme".into() };
    let filter = Filter::default();
    Body::Subscription(Box::new(Subscription {
        spec: SubscriptionSpec { name: "all".into(), target, filter },
        secret: None,
        former: None,
        pause: None,
        position: 0,
        hold: None,
        delivered: 0,
        failed: 0,
        failures: 0,
        delivered_at: None,
        trouble: None,
        missed: 0,
        gaps: Vec::new(),
        ahead: Vec::new(),
    }))
}

/// One that everything has happened to, made of whatever there is.
pub(crate) fn full(name: Arc<str>, large: u64, at: Option<Timestamp>, small: u32) -> Body {
    let then = at.unwrap_or(later(5));
    Body::Subscription(Box::new(Subscription {
        spec: SubscriptionSpec {
            name: name.as_ref().into(),
            target: Target::Webhook { url: "https://a.example/hook".into() },
            filter: Filter {
                events: EventName::ALL.to_vec(),
                types: vec![JobType::stored(name.clone())],
                queues: vec![QueueName::stored(name), QueueName::stored("fast".into())],
                is_for_all: true,
            },
        },
        secret: Some(SigningSecret([7; 32])),
        former: at.map(|until| FormerSecret { secret: SigningSecret([8; 32]), until }),
        pause: at.map(|_| Pause { by: Some(user("ada")), note: Some("lunch".into()) }),
        position: large,
        hold: Some(Hold { holder: u128::from(large) << 60, until: then }),
        delivered: large,
        failed: u64::from(small),
        failures: small,
        delivered_at: at,
        trouble: Some(Trouble { at: then, message: "the receiver answered 503".into() }),
        missed: 9,
        gaps: vec![Gap { from: 3, to: 11, at: then }],
        ahead: Vec::new(),
    }))
}

/// A consumer that was told of something before its turn.
pub(crate) fn consumer() -> Body {
    let Body::Subscription(mut it) = fresh() else { unreachable!("it is one") };
    it.spec.target = Target::Consumer { name: "all".into() };
    it.ahead = vec![id(3), id(4)];
    Body::Subscription(it)
}

/// A stretch of the stream.
pub(crate) fn moves() -> Vec<LoggedMove> {
    let job = plain_job("{}");
    let step = Transition {
        seq: 2,
        from: Some(StateName::Queued),
        to: StateName::Cancelled,
        at: later(7),
        attempt: 1,
        reason: Some(Box::new(Reason { code: "JOB_CANCELLED".into(), message: "why".into() })),
        actor: Actor::User(user("ada")),
    };
    let named = LoggedMove { trace_id: "trace-a".into(), ..LoggedMove::of(42, &job, step) };
    vec![LoggedMove::of(41, &job, Transition::submitted(&job)), named]
}

/// Files of the stream are read by later versions, too.
#[test]
fn old_moves_still_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/stream_moves.hex");
    let mut written = Vec::new();
    encode_moves(&moves(), &mut written);
    let text: String = written.iter().map(|byte| format!("{byte:02x}")).collect();
    if std::env::var_os("MAINSPRING_BLESS").is_some() && !path.exists() {
        std::fs::write(&path, text.clone() + "\n").unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(kept.trim(), text, "moves are written differently now");
    assert_eq!(decode_moves(&written), Ok(moves()));
    assert_eq!(first_of_moves(&written), Ok(41));
    assert_ne!(moves()[1].job, id(0));
    for cut in 0..written.len() {
        assert!(decode_moves(&written[..cut]).is_err());
        for value in [0x00, 0x5b, 0x7b, 0x9b, 0x9f, 0xff] {
            let mut damaged = written.clone();
            damaged[cut] = value;
            let _ = decode_moves(&damaged);
        }
    }
}
