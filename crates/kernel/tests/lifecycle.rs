//! The full state × command grid, written to `docs/lifecycle.md` from the rules themselves. The
//! test fails when the file is stale; `cargo xtask bless` rewrites it.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

#[path = "support/world.rs"]
mod world;

use mainspring_kernel::dlq::DlqState;
use mainspring_kernel::event::Change;
use mainspring_kernel::{Command, Decision, DlqId, Event, JobId, Receipt, Rejection, StateName};
use std::fmt::Write;
use std::path::Path;
use world::{Act, Holder, World};

/// Where a job can be, with what matters about it: a title, and how it gets there.
type Situation = (&'static str, fn(&mut World));

const SUBMIT: Act =
    Act::Submit { ahead_ms: None, max_retries: 1, timeout_ms: 60_000, expires_ms: Some(5_000) };
const NEWEST: Holder = Holder::Newest;
const COMPLETE: Act = Act::Complete { by: NEWEST, result: Some("1") };
const FAIL: Act = Act::Fail { by: NEWEST, code: "E", retryable: true, delay_ms: None };

fn play(world: &mut World, acts: &[Act]) {
    for act in acts {
        let outcome = world.act(0, act);
        assert!(outcome.is_none_or(|outcome| outcome.answer.is_ok()), "{act:?} sets the scene");
    }
}

fn waiting_ahead(world: &mut World) {
    let ahead_ms = Some(1_000);
    play(
        world,
        &[Act::Submit { ahead_ms, max_retries: 1, timeout_ms: 60_000, expires_ms: Some(5_000) }],
    );
}

fn running(world: &mut World) {
    play(world, &[SUBMIT, Act::Claim { lease_ms: 1_000 }]);
}

fn running_last_try(world: &mut World) {
    running(world);
    play(world, &[FAIL, Act::Wait { ms: 2_000 }, Act::Claim { lease_ms: 1_000 }]);
}

fn retrying(world: &mut World) {
    running(world);
    play(world, &[FAIL]);
}

fn by_hand(world: &mut World, to: StateName) {
    play(world, &[Act::Transition { to }]);
}

fn dlq_pending(world: &mut World) {
    running(world);
    by_hand(world, StateName::DlqPending);
}

fn dlq_recorded(world: &mut World) {
    dlq_pending(world);
    by_hand(world, StateName::DlqRecorded);
}

const GROUPS: [(&str, &[Situation]); 5] = [
    (
        "A job that is queued",
        &[
            ("pending", waiting_ahead),
            ("ready", |world| play(world, &[SUBMIT])),
            ("ready, expired", |world| play(world, &[SUBMIT, Act::Wait { ms: 5_000 }])),
        ],
    ),
    (
        "A job that is running",
        &[
            ("a try left", running),
            ("no try left", running_last_try),
            ("lease over", |world| {
                running(world);
                play(world, &[Act::Wait { ms: 1_000 }]);
            }),
            ("past its deadline", |world| {
                running(world);
                play(
                    world,
                    &[Act::Heartbeat { by: NEWEST, lease_ms: 90_000 }, Act::Wait { ms: 60_000 }],
                );
            }),
        ],
    ),
    (
        "A job that is retrying",
        &[
            ("not due", retrying),
            ("due", |world| {
                retrying(world);
                play(world, &[Act::Wait { ms: 2_000 }]);
            }),
            ("released", |world| {
                running(world);
                play(world, &[Act::Release { by: NEWEST }]);
            }),
        ],
    ),
    (
        "A job on its way to the dead-letter queue",
        &[
            ("dlq_pending", dlq_pending),
            ("dlq_pending, stuck", |world| {
                dlq_pending(world);
                play(world, &[Act::Wait { ms: 30_000 }]);
            }),
            ("dlq_recorded", dlq_recorded),
            ("dlq_recorded, stuck", |world| {
                dlq_recorded(world);
                play(world, &[Act::Wait { ms: 30_000 }]);
            }),
        ],
    ),
    (
        "A job that has ended",
        &[
            ("succeeded", |world| {
                running(world);
                play(world, &[COMPLETE]);
            }),
            ("failed", |world| {
                running_last_try(world);
                play(world, &[FAIL]);
            }),
            ("cancelled while queued", |world| play(world, &[SUBMIT, Act::Cancel])),
            ("cancelled while running", |world| {
                running(world);
                play(world, &[Act::Cancel]);
            }),
        ],
    ),
];

fn commands() -> Vec<(String, Act)> {
    let named = |name: &str, act| (name.to_owned(), act);
    let mut commands = vec![
        named("claim", Act::Claim { lease_ms: 1_000 }),
        named("complete", COMPLETE),
        named("complete, another result", Act::Complete { by: NEWEST, result: Some("2") }),
        named("complete, foreign token", Act::Complete { by: Holder::Nobody, result: None }),
        named("complete, earlier token", Act::Complete { by: Holder::Earlier(0), result: None }),
        named("fail, retryable", FAIL),
        named(
            "fail, not retryable",
            Act::Fail { by: NEWEST, code: "E", retryable: false, delay_ms: None },
        ),
        named("release", Act::Release { by: NEWEST }),
        named("heartbeat", Act::Heartbeat { by: NEWEST, lease_ms: 1_000 }),
        named("heartbeat, foreign token", Act::Heartbeat { by: Holder::Nobody, lease_ms: 1_000 }),
        named("commit_effect", Act::Effect { by: NEWEST, name: "x" }),
        named("cancel", Act::Cancel),
        named("reap", Act::Reap),
        named("extend_lease", Act::Extend { ms: 90_000 }),
    ];
    for ending in ["success", "retry", "fatal", "dlq"] {
        commands.push((format!("run_internally, {ending}"), Act::Run { ending }));
    }
    for to in StateName::ALL {
        commands.push((format!("transition to {to}"), Act::Transition { to }));
    }
    commands
}

fn told(answer: &Result<Decision, Rejection>) -> String {
    let decision = match answer {
        Err(rejection) => return format!("`{}`", rejection.code()),
        Ok(decision) => decision,
    };
    let moves: Vec<String> = decision.events.iter().filter_map(step).collect();
    match (&decision.receipt, moves.is_empty()) {
        (Receipt::Moved { .. }, true) => "answered again".to_owned(),
        (Receipt::Requeued { .. }, true) => "answered again".to_owned(),
        (Receipt::CancelledMeanwhile, _) => "told to stop".to_owned(),
        _ => moves.join(" "),
    }
}

fn step(event: &Event) -> Option<String> {
    match event {
        Event::JobMoved(moved) => Some(match &moved.change {
            Change::Claimed(_) => "→ running".to_owned(),
            Change::Succeeded { .. } => "→ succeeded".to_owned(),
            Change::RetryScheduled { .. } => "→ retrying".to_owned(),
            Change::Released { .. } => "→ retrying, no try used".to_owned(),
            Change::Hastened => "due at once".to_owned(),
            Change::Unblocked { .. } => "waits for no job".to_owned(),
            Change::DeadLettered { is_exhausted: true, .. } => "→ dlq_pending (exhausted)".into(),
            Change::DeadLettered { is_exhausted: false, .. } => "→ dlq_pending".to_owned(),
            Change::DlqRecorded => "→ dlq_recorded".to_owned(),
            Change::Failed => "→ failed".to_owned(),
            Change::Cancelled { code, .. } => format!("→ cancelled (`{code}`)"),
        }),
        Event::LeaseRenewed { .. } => Some("renewed".to_owned()),
        Event::EffectCommitted { .. } => Some("committed".to_owned()),
        Event::ItemOpened(_) => None,
        Event::ItemChanged { state, .. } => Some(format!("→ {}", state.as_str())),
        Event::JobSubmitted(_) => Some("a new job,".to_owned()),
        Event::EntitySet(_)
        | Event::EntityRemoved { .. }
        | Event::TypeSet(_)
        | Event::QueueSet(_)
        | Event::TokenIssued(_)
        | Event::TokenRevoked { .. } => None,
    }
}

fn row(out: &mut String, cells: impl IntoIterator<Item = String>) {
    out.push('|');
    for cell in cells {
        write!(out, " {cell} |").unwrap();
    }
    out.push('\n');
}

fn head(out: &mut String, first: &str, titles: &[&str]) {
    row(out, std::iter::once(first).chain(titles.iter().copied()).map(str::to_owned));
    row(out, (0..=titles.len()).map(|_| "---".to_owned()));
}

fn grid(out: &mut String) {
    for (title, situations) in GROUPS {
        writeln!(out, "### {title}\n").unwrap();
        head(out, "command", &situations.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for (name, act) in commands() {
            let cells = situations.iter().map(|(_, arrange)| {
                let mut world = World::default();
                arrange(&mut world);
                told(&world.act(0, &act).expect("an act on a job is a command").answer)
            });
            row(out, std::iter::once(name).chain(cells));
        }
        out.push('\n');
    }
}

fn item_grid(out: &mut String) {
    let arrangements: [(&str, &[Act]); 4] = [
        ("open", &[]),
        ("requeued, key k", &[Act::Requeue { key: Some("k") }]),
        ("discard_requested by ann", &[Act::Propose { by: "ann", reason: "why" }]),
        ("discarded", &[Act::Propose { by: "ann", reason: "why" }, Act::Approve { by: "bob" }]),
    ];
    let acts = [
        ("requeue, no key", Act::Requeue { key: None }),
        ("requeue, key k", Act::Requeue { key: Some("k") }),
        ("requeue, key l", Act::Requeue { key: Some("l") }),
        ("request_discard", Act::Propose { by: "bob", reason: "why" }),
        ("request_discard, blank reason", Act::Propose { by: "bob", reason: " " }),
        ("approve_discard by bob", Act::Approve { by: "bob" }),
        ("approve_discard by ann", Act::Approve { by: "ann" }),
        ("reject_discard", Act::Reject),
        ("discard_reviewed by ann, bob", Act::Review { one: "ann", two: "bob" }),
        ("discard_reviewed by bob, bob", Act::Review { one: "bob", two: " bob " }),
        ("break_glass by ann", Act::BreakGlass),
    ];
    head(out, "command", &arrangements.map(|(name, _)| name));
    for (name, act) in acts {
        let cells = arrangements.iter().map(|(_, scene)| {
            let mut world = World::default();
            running_last_try(&mut world);
            play(&mut world, &[FAIL]);
            play(&mut world, scene);
            told(&world.act(0, &act).expect("an act on an item is a command").answer)
        });
        row(out, std::iter::once(name.to_owned()).chain(cells));
    }
    out.push('\n');
}

fn diagram(out: &mut String) {
    out.push_str("```text\n");
    for from in StateName::ALL {
        let next: Vec<&str> = StateName::ALL
            .iter()
            .filter(|to| from.may_become(**to))
            .map(|to| to.as_str())
            .collect();
        let arrow = if next.is_empty() { "--|" } else { "-->" };
        writeln!(
            out,
            "{}",
            format!("{:<13}{arrow} {}", from.as_str(), next.join(" | ")).trim_end()
        )
        .unwrap();
    }
    out.push_str("```\n\n");
}

fn table(out: &mut String) {
    head(out, "from \\ to", &StateName::ALL.map(StateName::as_str));
    for from in StateName::ALL {
        let cell = |to: StateName| if from.may_become(to) { "yes" } else { "" }.to_owned();
        row(out, std::iter::once(from.to_string()).chain(StateName::ALL.map(cell)));
    }
    out.push('\n');
}

fn document() -> String {
    let mut out = String::from(
        "# Lifecycle\n\nWritten by `crates/kernel/tests/lifecycle.rs` from the rules themselves. \
         Do not edit; run `cargo xtask bless`.\n\n## States\n\nWhere a job may go from each \
         state; `--|` is an end.\n\n",
    );
    diagram(&mut out);
    out.push_str("## Transition table\n\n");
    out.push_str("Everything that is not a yes is refused and changes nothing.\n\n");
    table(&mut out);
    out.push_str(
        "## Every command in every state\n\nA cell shows the moves a command brings about, or \
         the code it is refused with. The job has one retry. A token is the job's newest unless \
         the row says otherwise; a job that never ran has none. *Answered again* means: the \
         answer of the first time, and no change. An expired job was not started in time.\n\n",
    );
    grid(&mut out);
    out.push_str("## Dead-letter items\n\n");
    item_grid(&mut out);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[test]
fn the_lifecycle_page_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lifecycle.md");
    let fresh = document();
    if std::env::var_os("MAINSPRING_BLESS").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == fresh, "docs/lifecycle.md is stale: run `cargo xtask bless` and read the diff");
}

/// Exactly the moves of the jobs-and-DLQ contract can be made by hand; everything else is illegal.
/// A way into each state, in their order.
const ARRANGE: [Situation; 8] = [
    ("queued", |world| play(world, &[SUBMIT])),
    ("running", running),
    ("retrying", retrying),
    ("dlq_pending", dlq_pending),
    ("dlq_recorded", dlq_recorded),
    ("succeeded", GROUPS[4].1[0].1),
    ("failed", GROUPS[4].1[1].1),
    ("cancelled", GROUPS[4].1[2].1),
];

#[test]
fn by_hand_only_the_moves_of_the_contract_can_be_made() {
    use StateName::*;
    let legal = [
        (Queued, Running),
        (Running, Succeeded),
        (Running, Retrying),
        (Running, DlqPending),
        (Retrying, Running),
        (Retrying, DlqPending),
        (DlqPending, DlqRecorded),
        (DlqRecorded, Failed),
    ];
    for (from, (_, arrange)) in StateName::ALL.into_iter().zip(ARRANGE) {
        for to in StateName::ALL {
            let mut world = World::default();
            arrange(&mut world);
            let before = world.jobs.clone();
            assert_eq!(before.values().next().unwrap().state.name(), from);
            let outcome = world.act(0, &Act::Transition { to }).unwrap();
            if legal.contains(&(from, to)) {
                assert_eq!(outcome.answer.unwrap().receipt, Receipt::Moved { state: to });
            } else {
                assert_eq!(outcome.answer, Err(Rejection::IllegalMove { from, to }));
                assert_eq!(world.jobs, before, "a refused move changes nothing");
            }
        }
    }
}

/// What the job orchestration contract calls one move may be several of ours, or none: only what it
/// means is let through.
#[test]
fn a_move_by_hand_is_exactly_the_one_that_is_shown() {
    use mainspring_kernel::view::jobs::State;
    let legal = [
        (StateName::Queued, State::Running),
        (StateName::Running, State::Succeeded),
        (StateName::Running, State::Failed),
    ];
    for (from, (_, arrange)) in StateName::ALL.into_iter().zip(ARRANGE) {
        for to in State::ALL.iter().copied() {
            let mut world = World::default();
            arrange(&mut world);
            let before = world.jobs.clone();
            let outcome = world.act(0, &Act::MoveShown { to }).unwrap();
            if legal.contains(&(from, to)) {
                let state = to.native();
                assert_eq!(outcome.answer.unwrap().receipt, Receipt::Moved { state });
                assert_eq!(world.items.len(), usize::from(to == State::Failed));
            } else {
                let to = to.native();
                assert_eq!(outcome.answer, Err(Rejection::IllegalMove { from, to }));
                assert_eq!(world.jobs, before, "a refused move changes nothing");
            }
        }
    }
}

#[test]
fn unknown_jobs_and_items_are_refused_with_one_code_each() {
    let mut world = World::default();
    for (name, act) in commands() {
        let answer = world.act(0, &act).unwrap().answer;
        let is_report = ["complete", "fail", "release", "heartbeat", "commit_effect"]
            .iter()
            .any(|report| name.starts_with(report));
        let expected = if is_report { Rejection::LeaseLost } else { Rejection::JobUnknown };
        assert_eq!(answer, Err(expected), "{name}");
    }
    for act in [Act::Requeue { key: None }, Act::Approve { by: "bob" }, Act::Reject] {
        assert_eq!(world.act(0, &act).unwrap().answer, Err(Rejection::ItemUnknown));
    }
    assert_eq!(DlqState::Open.as_str(), "open");
    assert!(Command::Reap { job: JobId(1) }.item().is_none());
    assert_eq!(DlqId(1).job(), JobId(1));
}
