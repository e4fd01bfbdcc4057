//! Links that resolve, links that do not, and sentences about the absent store.

use super::*;

/// Problems of a page in `docs/`, in a tree that holds only two files.
fn links(text: &str) -> Vec<String> {
    let exists =
        |path: &Path| ["README.md", "docs/glossary.md"].iter().any(|k| path == Path::new(k));
    check_links("docs/page.md", text, exists).iter().map(ToString::to_string).collect()
}

#[test]
fn links_between_files_resolve() {
    for text in [
        "[a](glossary.md)",
        "[a](./glossary.md#lease \"the lease\")",
        "![a](../README.md) and [b](/README.md)",
        "[a](https://example.org/x.md), [b](#here), [c](mailto:me@example.org)",
        "[name]: <glossary.md>",
        "`[a](nowhere.md)`",
        "```\n[a](nowhere.md)\n```",
    ] {
        assert!(links(text).is_empty(), "{text}: {:?}", links(text));
    }
}

#[test]
fn broken_links_are_told_with_their_line() {
    assert_eq!(
        links("# Page\n\nSee [a](nowhere.md).\n[b]: gone.md\n[c](../../other.md)"),
        [
            "docs/page.md:3: the link `nowhere.md` leads nowhere",
            "docs/page.md:4: the link `gone.md` leads nowhere",
            "docs/page.md:5: the link `../../other.md` leaves the repository",
        ]
    );
}

#[test]
fn the_absent_store_may_only_be_denied() {
    let lines = |text: &str| -> Vec<usize> {
        check_absent_store("README.md", text).into_iter().map(|problem| problem.line).collect()
    };
    assert!(lines("We do not support SQLite.\nThere is no sqlite\nadapter.").is_empty());
    assert_eq!(lines("Not yet.\nSQLite is supported."), [2]);
    assert_eq!(lines("Stores: memory,\nsqlite and PostgreSQL."), [2]);
    assert_eq!(lines("| memory | not for clusters |\n| sqlite | small |"), [2]);
    assert_eq!(lines("- nothing\n- it works with\n  SQLite\n- more"), [3]);
}

#[test]
fn the_overview_has_a_length() {
    let text = "line\n".repeat(201);
    assert_eq!(check("ARCHITECTURE.md", &text).len(), 1);
    assert!(check("docs/operations.md", &text).is_empty());
}
