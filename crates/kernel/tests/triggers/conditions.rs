//! What is true of conditions, as tables; what cannot be a condition.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use crate::sentry::{asked, changed, done, exists, files, ms, on};
use mainspring_kernel::entity::trigger::{
    Condition, LeafState, Rules, TriggerType, Truth, evaluate,
};

use Truth::{False, True, Undecided};

fn leaf(truth: Truth) -> (Condition, LeafState) {
    let (asked_at, answer) = (Some(ms(0)), Some(truth == True));
    match truth {
        Undecided => (asked(), LeafState::Llm { asked_at: None, answer: None }),
        True | False => (asked(), LeafState::Llm { asked_at, answer }),
    }
}

fn judge(make: impl Fn(Vec<Condition>) -> Condition, truths: &[Truth]) -> (Truth, Option<usize>) {
    let (shapes, states): (Vec<_>, Vec<_>) = truths.iter().map(|truth| leaf(*truth)).unzip();
    let found = evaluate(&make(shapes), &states, &[], on(asked()).rules(), ms(1));
    (found.truth, found.asks.map(|(at, _)| at))
}

#[test]
fn and_and_or_follow_three_valued_logic() {
    for (truths, and, or) in [
        (&[][..], True, False),
        (&[True][..], True, True),
        (&[True, False], False, True),
        (&[True, Undecided], Undecided, True),
        (&[False, Undecided], False, Undecided),
        (&[Undecided, True, False], False, True),
        (&[False, False], False, False),
    ] {
        assert_eq!(judge(Condition::And, truths).0, and, "and {truths:?}");
        assert_eq!(judge(Condition::Or, truths).0, or, "or {truths:?}");
    }
}

#[test]
fn a_question_is_asked_only_if_the_answer_decides() {
    assert_eq!(judge(Condition::And, &[False, Undecided]).1, None);
    assert_eq!(judge(Condition::Or, &[True, Undecided]).1, None);
    assert_eq!(judge(Condition::And, &[True, Undecided]).1, Some(1));
    let nested = |mut parts: Vec<Condition>| {
        let rest = parts.split_off(2);
        Condition::Or(vec![Condition::And(parts), Condition::And(rest)])
    };
    // The first question could not make its `and` true; the second one could.
    assert_eq!(judge(nested, &[False, Undecided, True, Undecided]), (Undecided, Some(3)));
}

#[test]
fn only_what_brings_a_firing_about_is_taken() {
    let condition = Condition::Or(vec![
        changed("a"),
        Condition::And(vec![changed("b"), exists("c")]),
        changed("d"),
    ]);
    let rules: Rules = on(asked()).rules();
    let known: Vec<LeafState> = [0, 1]
        .iter()
        .map(|_| LeafState::Changed { is_initialized: true, taken: None, held: None })
        .chain([LeafState::Exists { is_there: false }])
        .chain([LeafState::Changed { is_initialized: true, taken: None, held: None }])
        .collect();
    let sights = [files(0, Some(ms(0))), files(1, Some(ms(0))), files(3, Some(ms(0)))];
    let found = evaluate(&condition, &known, &sights, rules, ms(10_000));
    assert_eq!((found.truth, found.takes), (True, vec![0, 3]), "b is inside of a false `and`");
}

#[test]
fn a_file_counts_when_it_has_settled() {
    let rules = on(asked()).rules();
    let known = [LeafState::Changed { is_initialized: true, taken: Some(ms(0)), held: None }];
    let look = |now| evaluate(&changed("a"), &known, &[files(0, Some(ms(1_000)))], rules, now);
    assert_eq!((look(ms(1_499)).truth, look(ms(1_499)).look_at), (False, Some(ms(1_500))));
    assert_eq!((look(ms(1_500)).truth, look(ms(1_500)).look_at), (True, None));
    // Dated ahead of its time: nobody can say how long it has rested.
    assert_eq!(look(ms(500)).truth, True);
}

#[test]
fn nonsense_is_refused() {
    let deep = (0..10_000).fold(changed("a"), |inner, _| Condition::And(vec![inner]));
    assert!(deep.check().is_err());
    // A tree that is too deep to be walked is let go of without walking it.
    std::mem::forget(deep);
    let refused = [
        Condition::Or(vec![changed("a"); 17]),
        Condition::And(vec![Condition::And(Vec::new()); 65]),
        changed(""),
        changed("../a"),
        changed("a/./b"),
        changed("a/.."),
        changed("a/"),
        changed("/"),
        changed("a**"),
        changed("**/**/**/a"),
        changed("a\0b"),
        changed(&"x".repeat(1_025)),
        exists("/etc/../passwd"),
        done(""),
        done(&"x".repeat(201)),
        done("a\nb"),
        Condition::LlmEval { prompt: " ".into() },
        Condition::LlmEval { prompt: "x".repeat(16 * 1024 + 1).into() },
    ];
    for condition in refused {
        let shown = format!("{condition:?}").chars().take(60).collect::<String>();
        assert!(condition.check().is_err(), "{shown}");
    }
    for path in ["a", "src/**/*.ts", "/srv/x?", "**", "**/a/**", "a b/é"] {
        assert_eq!(changed(path).check(), Ok(()), "{path}");
    }
    assert_eq!(TriggerType::parse("sometimes"), None);
}
