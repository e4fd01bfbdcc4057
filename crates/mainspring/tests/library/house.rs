//! A Mainspring on either store, and the tasks of these tests.

use mainspring::{Mainspring, Options, Task};
use mainspring_testkit::blackbox::Store;
use mainspring_testkit::postgres::Database;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tempfile::TempDir;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is to be done: the test says what happens to it.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) n: u32,
}

impl Task for Work {
    const TYPE: &'static str = "work";
    type Output = u32;
}

/// A place in which a Mainspring is kept, and can be opened again.
pub(crate) struct House {
    place: Place,
}

enum Place {
    Directory(TempDir),
    Database(Database),
}

impl House {
    pub(crate) fn new(store: Store) -> Self {
        let place = match store.database() {
            Some(database) => Place::Database(database),
            None => Place::Directory(tempfile::tempdir().unwrap()),
        };
        House { place }
    }

    /// How another process finds it.
    pub(crate) fn place(&self) -> String {
        match &self.place {
            Place::Directory(directory) => directory.path().join("data").display().to_string(),
            Place::Database(database) => database.url.clone(),
        }
    }

    pub(crate) async fn open(&self) -> Mainspring {
        self.open_with(options()).await.unwrap()
    }

    pub(crate) async fn open_with(
        &self,
        options: Options,
    ) -> Result<Mainspring, mainspring::Error> {
        match &self.place {
            Place::Directory(_) => options.open(self.place()).await,
            Place::Database(_) => options.connect(&self.place()).await,
        }
    }
}

/// The usual settings. The databases of tests do not sync.
pub(crate) fn options() -> Options {
    Mainspring::options().allow_unsafe_database(true)
}

/// Runs a test in a house on that store, within patience.
pub(crate) fn on(store: Store, test: impl AsyncFnOnce(&House)) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(async {
        let house = House::new(store);
        let ended = tokio::time::timeout(PATIENCE, test(&house)).await;
        ended.expect("a test ends within its patience");
    });
}
