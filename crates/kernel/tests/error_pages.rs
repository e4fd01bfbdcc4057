//! Every code that the kernel can give has a page that says what it means and what to do.

use mainspring_kernel::Rejection;
use mainspring_kernel::dispatch::WAITING_CODES;
use mainspring_kernel::event::REASON_CODES;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

fn codes() -> BTreeSet<&'static str> {
    [Rejection::CODES, REASON_CODES, WAITING_CODES].into_iter().flatten().copied().collect()
}

#[test]
fn every_code_has_a_page_with_meaning_cause_and_cure() {
    for code in codes() {
        let path = pages().join(format!("{code}.md"));
        let page = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{} is missing: {error}", path.display()));
        assert_eq!(page.lines().next(), Some(&*format!("# {code}")), "the title is the code");
        let mut rest = &*page;
        for heading in ["## Meaning\n\n", "## Cause\n\n", "## Cure\n\n"] {
            let (_, after) = rest
                .split_once(heading)
                .unwrap_or_else(|| panic!("{code}.md has no {heading:?} in its place"));
            assert!(!after.starts_with('#') && !after.trim().is_empty(), "{code}: {heading:?}");
            rest = after;
        }
    }
}

#[test]
fn rejection_codes_are_unique_and_look_like_codes() {
    let unique: BTreeSet<_> = Rejection::CODES.iter().collect();
    assert_eq!(unique.len(), Rejection::CODES.len());
    for code in codes() {
        assert!(code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'), "{code}");
    }
}
