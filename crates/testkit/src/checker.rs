//! Judges a history. Knows nothing of the server but the transition table: whatever recorded the
//! history, simulation or black box, the same rules hold. Each rule has the short name under which
//! it is published; `info` outcomes are accepted both ways.
//!
//! Read `checker/facts.rs` first, then the rules by subject.

mod audit;
mod circuits;
mod durability;
mod facts;
mod firings;
mod items;
mod keys;
mod leases;
mod lifecycle;
mod limits;
mod liveness;
mod order;
mod refusals;
mod reports;
mod retries;
mod stream;
mod tenants;
mod validity;

pub use validity::{Coverage, Minimum};

use crate::history::History;
use facts::Facts;
use std::fmt;

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// The job, item or other thing it was broken for.
    pub subject: String,
    /// How.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.rule, self.subject, self.text)
    }
}

/// Where the rules put what they find.
#[derive(Debug, Default)]
struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, rule: &'static str, subject: &str, text: impl Into<String>) {
        self.0.push(Violation { rule, subject: subject.to_owned(), text: text.into() });
    }

    /// Notes a violation unless `holds`.
    fn expect(&mut self, holds: bool, rule: &'static str, subject: &str, text: impl Into<String>) {
        if !holds {
            self.add(rule, subject, text);
        }
    }
}

/// Every violation in `history`, in the order of the rules.
pub fn check(history: &History) -> Vec<Violation> {
    let facts = Facts::new(history);
    let mut found = Findings::default();
    durability::check(&facts, &mut found);
    lifecycle::check(&facts, &mut found);
    leases::check(&facts, &mut found);
    reports::check(&facts, &mut found);
    retries::check(&facts, &mut found);
    keys::check(&facts, &mut found);
    items::check(&facts, &mut found);
    audit::check(&facts, &mut found);
    firings::check(&facts, &mut found);
    limits::check(&facts, &mut found);
    circuits::check(&facts, &mut found);
    order::check(&facts, &mut found);
    tenants::check(&facts, &mut found);
    refusals::check(&facts, &mut found);
    stream::check(&facts, &mut found);
    liveness::check(&facts, &mut found);
    validity::check_settled(&facts, &mut found);
    found.0
}
