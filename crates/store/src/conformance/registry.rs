//! Types, queues and tokens.

use super::bench::{Bench, kind, queue, submit, tenant, user, wish};
use mainspring_kernel::{
    Command, QueueOrder, QueueSpec, Receipt, Rejection, Roles, Timestamp, Token, TokenId, TypeSpec,
};

pub(super) async fn types_are_kept_by_name(bench: &mut Bench) {
    let spec = |name: &str, priority| {
        let spec = TypeSpec { priority, ..TypeSpec::plain(kind(name)) };
        Command::SetType(Box::new(spec))
    };
    bench.run(&[spec("saw", 1), spec("axe", 2), spec("saw", 3)]).await;
    let types = bench.store.types().await.expect("reads work");
    let seen: Vec<_> = types.iter().map(|spec| (spec.name.as_str(), spec.priority)).collect();
    assert_eq!(seen, [("axe", 2), ("saw", 3)]);
}

pub(super) async fn queues_are_kept_by_name(bench: &mut Bench) {
    let spec = |name: &str, is_paused, order| QueueSpec {
        is_paused,
        order,
        ..QueueSpec::plain(queue(name))
    };
    let slow = spec("slow", true, QueueOrder::Due);
    let fast = spec("fast", false, QueueOrder::Aged);
    bench.done(Command::SetQueue(spec("slow", false, QueueOrder::Aged))).await;
    bench.done(Command::SetQueue(fast.clone())).await;
    bench.done(Command::SetQueue(slow.clone())).await;
    assert_eq!(bench.store.queues().await.expect("reads work"), [fast, slow]);
}

pub(super) fn token(id: u128) -> Token {
    Token {
        id: TokenId(id),
        digest: [7; 32],
        tenant: tenant("acme"),
        user: user("ada"),
        roles: Roles(3),
        issued_at: Timestamp::from_millis(1),
        issued_by: user("root"),
        issued_with: None,
        expires_at: None,
        revoked_at: None,
    }
}

pub(super) async fn tokens_are_issued_and_revoked(bench: &mut Bench) {
    for id in [2, 1] {
        bench.done(Command::IssueToken(Box::new(token(id)))).await;
    }
    assert_eq!(bench.store.tokens().await.expect("reads work"), [token(1), token(2)]);
    bench.done(Command::RevokeToken { token: TokenId(2) }).await;
    let revoked = Some(Token { revoked_at: Some(bench.now), ..token(2) });
    assert_eq!(bench.store.token(TokenId(2)).await.expect("reads work"), revoked);
    assert_eq!(bench.store.token(TokenId(1)).await.expect("reads work"), Some(token(1)));
    let unknown = Command::RevokeToken { token: TokenId(3) };
    assert_eq!(bench.one(unknown).await, Err(Rejection::TokenUnknown));
}

pub(super) async fn a_token_ends_at_the_earlier_of_two_ends(bench: &mut Bench) {
    bench.done(Command::IssueToken(Box::new(token(4)))).await;
    let second = Timestamp::from_millis;
    for (at, end) in [(second(9_000), 9_000), (second(5_000), 5_000), (second(7_000), 5_000)] {
        bench.done(Command::ExpireToken { token: TokenId(4), at }).await;
        let ending = Some(Token { expires_at: Some(second(end)), ..token(4) });
        assert_eq!(bench.store.token(TokenId(4)).await.expect("reads work"), ending);
    }
    // What was revoked is not brought back.
    bench.done(Command::RevokeToken { token: TokenId(4) }).await;
    bench.done(Command::ExpireToken { token: TokenId(4), at: second(8_000) }).await;
    let found = bench.store.token(TokenId(4)).await.expect("reads work").expect("it is kept");
    assert_eq!((found.revoked_at, found.expires_at), (Some(bench.now), Some(second(5_000))));
    let unknown = Command::ExpireToken { token: TokenId(5), at: second(1) };
    assert_eq!(bench.one(unknown).await, Err(Rejection::TokenUnknown));
}

pub(super) async fn a_type_is_seen_by_the_rest_of_its_batch(bench: &mut Bench) {
    let spec = TypeSpec { priority: 99, queue: queue("slow"), ..TypeSpec::plain(kind("mill")) };
    let outcomes = bench.run(&[Command::SetType(Box::new(spec)), submit(wish())]).await;
    let Ok(Receipt::Submitted { job }) = outcomes[1] else { panic!("{outcomes:?}") };
    let job = bench.job(job).await.job;
    assert_eq!((job.priority, job.queue), (99, queue("slow")));
}
