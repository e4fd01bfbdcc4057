//! The model passes the suite that it is the oracle of.
#![cfg(feature = "conformance")]

use futures_util::FutureExt;
use futures_util::future::ready;
use mainspring_store::Store;
use mainspring_store::conformance::{ModelStore, case_names, differ, exercise};
use std::sync::Arc;

#[test]
fn the_model_conforms() {
    let open = || {
        let store: Arc<dyn Store> = Arc::new(ModelStore::default());
        ready(store).boxed()
    };
    // Nothing in the model ever waits, so one poll is enough and no runtime is needed.
    exercise(&open).now_or_never().expect("the model never waits");
}

/// Two models cannot differ; this shows that the comparison itself holds together.
#[test]
fn the_model_equals_itself() {
    for seed in 0..20 {
        let open = || Arc::new(ModelStore::default());
        differ(seed, 200, open(), open()).now_or_never().expect("the model never waits");
    }
}

#[test]
fn case_names_are_unique() {
    let mut names = case_names();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(count >= 76, "{count} cases");
}
