//! The model passes the suite that it is the oracle of.
#![cfg(feature = "conformance")]

use futures_util::FutureExt;
use futures_util::future::ready;
use mainspring_store::Store;
use mainspring_store::conformance::{ModelStore, exercise};
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
