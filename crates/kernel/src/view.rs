//! How each contract sees a job: the one lifecycle read in five vocabularies.
//! Each view has the name by which the configuration knows its contract.
//!
//! Every view is a set of total, pure functions: the state shown, the counter shown, and the moves
//! shown for one native move. Nothing here is stored and nothing here decides. A legal native
//! history always shows as a legal history of each view; `tests/views.rs` holds that to account.

pub mod agent;
pub mod jobs;
pub mod native;
pub mod scheduler;
pub mod tasks;

use std::array;
use std::iter::Flatten;

/// One move as a contract shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move<S> {
    /// The state shown before.
    pub from: S,
    /// The state shown after.
    pub to: S,
}

/// What one native move shows: no move, one, or two that happen at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moves<S>([Option<Move<S>>; 2]);

impl<S: Copy + PartialEq> Moves<S> {
    /// Nothing to show.
    pub const NONE: Moves<S> = Moves([None, None]);

    /// From `from` to `to` by way of `via`. Standing still is not a move, so a `via` that equals
    /// one of the ends is no stop.
    fn along(from: S, via: S, to: S) -> Self {
        let step = |from: S, to: S| (from != to).then_some(Move { from, to });
        Moves([step(from, via), step(via, to)])
    }

    /// The state shown after these moves, if it was `last` before them.
    pub fn end(&self, last: S) -> S {
        self.into_iter().last().map_or(last, |shown| shown.to)
    }
}

impl<S> IntoIterator for Moves<S> {
    type Item = Move<S>;
    type IntoIter = Flatten<array::IntoIter<Option<Move<S>>, 2>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}

/// The states of a view: an enum with its wire names.
macro_rules! states {
    ($(#[$doc:meta])* $name:ident { $($(#[$state_doc:meta])* $state:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$state_doc])* $state,)*
        }

        impl $name {
            /// Every state, in lifecycle order.
            pub const ALL: &'static [$name] = &[$($name::$state),*];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$state => $text,)* }
            }

            /// The state of that name.
            pub fn parse(text: &str) -> Option<$name> {
                Self::ALL.iter().copied().find(|state| state.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
use states;
