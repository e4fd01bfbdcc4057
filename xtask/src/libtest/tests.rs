//! Lines as cargo and libtest print them.

use super::*;

fn heard(text: &str) -> Log {
    let mut log = Log::default();
    for line in text.lines() {
        log.hear(line);
    }
    log.close();
    log
}

fn run(binary: &str, path: &str, outcome: Outcome) -> TestRun {
    TestRun { binary: binary.to_owned(), path: path.to_owned(), outcome }
}

#[test]
fn a_whole_run_is_summed_with_its_doc_tests() {
    let log = heard(
        "   Compiling mainspring-server v0.1.0
     Running unittests src/lib.rs (target/debug/deps/mainspring_server-0a1b2c)

running 2 tests
test translate::tests::submit_is_pure ... ok
test limits::tests::bounds_hold ... FAILED

failures:
    limits::tests::bounds_hold

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/blackbox_jobs.rs (target/debug/deps/blackbox_jobs-99ff)

running 2 tests
test memory::g05_g06_fourth_failure_goes_to_the_dlq ... ok
test d17_late_ack ... ignored, needs time

test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.31s

   Doc-tests mainspring_sdk

running 1 test
test crates/sdk/src/client.rs - client::Client (line 12) - compile ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
",
    );
    assert_eq!((log.passed, log.failed), (3, 1));
    assert!(log.died.is_empty());
    assert_eq!(
        log.runs,
        [
            run("mainspring_server", "translate::tests::submit_is_pure", Outcome::Passed),
            run("mainspring_server", "limits::tests::bounds_hold", Outcome::Failed),
            run("blackbox_jobs", "memory::g05_g06_fourth_failure_goes_to_the_dlq", Outcome::Passed),
            run("blackbox_jobs", "d17_late_ack", Outcome::Ignored),
            run(
                "doc-tests",
                "crates/sdk/src/client.rs - client::Client (line 12) - compile",
                Outcome::Passed
            ),
        ]
    );
}

#[test]
fn a_binary_without_a_sum_has_died_and_fails() {
    let log = heard(
        "     Running tests/blackbox_jobs.rs (/elsewhere/debug/deps/blackbox_jobs-99ff)
running 3 tests
test g01_fields ... ok
error: test failed, to rerun pass `-p mainspring-server --test blackbox_jobs`
     Running tests/quick.rs (/elsewhere/debug/deps/quick-1)
running 1 test
test quick ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
",
    );
    assert_eq!((log.passed, log.failed), (2, 1));
    assert_eq!(log.died, ["blackbox_jobs"]);
}

#[test]
fn an_outcome_on_a_later_line_belongs_to_the_named_test() {
    let log = heard("running 1 test\ntest g01_fields ... server listens on 7070\nok\n");
    assert_eq!(log.runs, [run("", "g01_fields", Outcome::Passed)]);
}

#[test]
fn other_lines_change_nothing() {
    let log = heard(
        "test memory::g05 has been running for over 60 seconds
ok
Running late (not cargo)
test result of my own
running 3 tests of patience
    Finished `test` profile [optimized + debuginfo] target(s) in 0.03s
",
    );
    assert!(log.runs.is_empty() && log.died.is_empty());
    assert_eq!((log.passed, log.failed), (0, 0));
}

#[test]
fn what_passed_alone_counts_as_passed() {
    let mut log = heard(
        "running 3 tests
test a ... FAILED
test b ... FAILED
test c ... ok
test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s
",
    );
    log.passed_again(&["a".to_owned(), "c".to_owned()]);
    assert_eq!((log.passed, log.failed), (2, 1));
    let outcomes: Vec<Outcome> = log.runs.iter().map(|run| run.outcome).collect();
    assert_eq!(outcomes, [Outcome::Passed, Outcome::Failed, Outcome::Passed]);
}
