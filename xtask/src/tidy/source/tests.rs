//! Each rule with a line that keeps it and a line that breaks it.

use super::*;

fn shown(file: &str, text: &str) -> Vec<String> {
    check(file, text).iter().map(ToString::to_string).collect()
}

/// Problems of one line in an ordinary file.
fn line(text: &str) -> Vec<String> {
    shown("crates/x/src/job.rs", &format!("//! A file.\n{text}\n"))
}

/// Problems of one line in a test file.
fn test_line(text: &str) -> Vec<String> {
    shown("crates/x/tests/jobs.rs", &format!("//! Tests.\n{text}\n"))
}

#[test]
fn a_file_opens_with_its_purpose() {
    assert_eq!(
        shown("crates/x/src/job.rs", "use std::fmt;\n"),
        ["crates/x/src/job.rs:1: the file must open with `//!` and its purpose"]
    );
    assert!(shown("crates/x/src/job.rs", "//! Jobs.\n").is_empty());
}

#[test]
fn empty_names_are_refused_for_files_and_types() {
    for file in ["src/utils.rs", "src/common/time.rs", "src/job_manager.rs", "src/job/mod.rs"] {
        assert_eq!(shown(file, "//! A file.\n").len(), 1, "{file}");
    }
    for file in ["src/database.rs", "src/data_dir.rs", "src/information.rs"] {
        assert!(shown(file, "//! A file.\n").is_empty(), "{file}");
    }
    for text in ["struct Info;", "pub(crate) enum JobManager {", "pub type Data = u8;"] {
        assert_eq!(line(text).len(), 1, "{text}");
    }
    for text in ["struct InfoLine;", "    type Data = u8;", "struct Database;", "// struct Info"] {
        assert!(line(text).is_empty(), "{text}");
    }
}

#[test]
fn unfinished_code_is_refused_outside_strings() {
    for text in ["    todo!()", "unimplemented!(\"x\")", "#[ignore]", "#[ignore = \"slow\"]"] {
        assert_eq!(line(text).len(), 1, "{text}");
    }
    assert_eq!(line("#[should_panic(expected = \"x\")]").len(), 1);
    assert!(line("let rule = \"todo!() #[ignore]\";").is_empty());
}

#[test]
fn a_reminder_needs_an_issue() {
    assert_eq!(line("// TODO: later").len(), 1);
    assert_eq!(line("// TODO # 12").len(), 1);
    assert!(line("// TODO(#12): later").is_empty());
    assert!(line("// TODOS and todo are words").is_empty());
    assert!(line("let word = \"TODO\";").is_empty());
    assert_eq!(line("/* FIXME #12 */").len(), 1);
    assert_eq!(check_reminders("a.sql", "select 1;\n-- TODO index").len(), 1);
}

#[test]
fn only_paced_tests_sleep() {
    for text in [
        "std::thread::sleep(pause);",
        "tokio::time::sleep(pause).await;",
        "    sleep(pause).await;",
        "use std::thread::sleep;",
        "thread::sleep(pause); // because",
    ] {
        assert_eq!(test_line(text).len(), 1, "{text}");
        assert!(line(text).is_empty(), "{text}");
    }
    for text in [
        "thread::sleep(pause); // paced: the load is one request per second",
        "clock.sleep(pause).await;",
        "fn sleep(pause: Duration) {",
        "oversleep(pause);",
    ] {
        assert!(test_line(text).is_empty(), "{text}");
    }
}

#[test]
fn an_inline_test_module_is_test_code() {
    let inline = "//! A file.\n#[cfg(test)]\nmod tests {\n    thread::sleep(x);\n}\n";
    assert_eq!(shown("src/job.rs", inline).len(), 1);
    let beside = "//! A file.\n#[cfg(test)]\nmod tests;\nfn f() { thread::sleep(x) }\n";
    assert!(shown("src/job.rs", beside).is_empty());
}

#[test]
fn long_lines_are_refused_unless_text_makes_them_long() {
    let long = "x".repeat(101);
    assert_eq!(line(&long).len(), 1);
    assert!(line(&"é".repeat(100)).is_empty());
    assert!(line(&format!("f(\"{long}\")")).is_empty());
    assert!(line(&format!("// see https://{long}")).is_empty());
}

#[test]
fn long_files_warn_then_fail() {
    let file = |lines: usize| format!("//! A file.\n{}", "x\n".repeat(lines - 1));
    assert!(shown("src/job.rs", &file(400)).is_empty());
    let warned = shown("src/job.rs", &file(401));
    assert!(warned[0].starts_with("src/job.rs:401: warning: "), "{warned:?}");
    let failed = shown("src/job.rs", &file(701));
    assert!(failed[0].starts_with("src/job.rs:701: the file has 701 lines"), "{failed:?}");
}
