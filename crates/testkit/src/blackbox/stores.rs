//! The same test on every store: it is written once, gets the store as its argument, and
//! `both_stores!` makes one test of it per store.

use super::server::{Options, Server};
use crate::postgres::{Database, shared};
use std::sync::{Arc, OnceLock};

/// Where a server keeps its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// RAM with a journal in a directory.
    Memory,
    /// A PostgreSQL database of its own.
    Postgres,
}

impl Store {
    /// A fresh server on this store that takes jobs of any type. A clone of the options means the
    /// same database.
    pub fn options(self, binary: &'static str) -> Options {
        let mut options = Options::new(binary);
        options.database = self.database().map(Arc::new);
        options
    }

    /// A fresh database, on a store that has one.
    pub fn database(self) -> Option<Database> {
        match self {
            Store::Memory => None,
            Store::Postgres => Some(Database::create(shared())),
        }
    }
}

/// One server per store for all tests of a file, started by the first test that needs it.
#[derive(Debug)]
pub struct PerStore {
    memory: OnceLock<Server>,
    postgres: OnceLock<Server>,
}

impl PerStore {
    /// For a static.
    #[expect(clippy::new_without_default, reason = "a static needs a const function")]
    pub const fn new() -> Self {
        PerStore { memory: OnceLock::new(), postgres: OnceLock::new() }
    }

    /// The server on this store; `options` says how the first caller starts it.
    pub fn get(&self, store: Store, options: impl FnOnce() -> Options) -> &Server {
        let server = match store {
            Store::Memory => &self.memory,
            Store::Postgres => &self.postgres,
        };
        server.get_or_init(|| Server::start(options()))
    }
}

/// Makes tests `memory::name` and `postgres::name` of every function named, each a
/// `fn name(store: Store)` of the file. One that is left out is dead code, and the build says so.
#[macro_export]
macro_rules! both_stores {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[test]
            fn $name() {
                super::$name($crate::blackbox::Store::Memory);
            })+
        }
        mod postgres {
            $(#[test]
            fn $name() {
                super::$name($crate::blackbox::Store::Postgres);
            })+
        }
    };
}
