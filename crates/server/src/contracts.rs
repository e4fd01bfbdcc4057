//! The contracts: each translates its own words into commands and receipts back into its words.
//!
//! A contract is a folder below `contracts/` that gives routes and a way to word a refusal, and a
//! line in [`ALL`]. That is all the shell around it (`app`, `auth`, `route`, `ask`, `answer`,
//! `json`, `serve`) knows of it; what a contract needs of the shell it takes from there.

pub(crate) mod errors;

pub(crate) mod agent;
pub(crate) mod jobs;
pub(crate) mod native;
pub(crate) mod scheduler;
pub(crate) mod tasks;

#[cfg(test)]
mod tests;

use crate::answer::Body;
use crate::app::Ids;
use crate::config::Config;
use crate::dashboard;
use crate::openapi::Shape;
use crate::outside;
use crate::refusal::{self, Refusal};
use crate::route::Route;
use hyper::Response;
use mainspring_kernel::Rejection;

/// One contract, as the shell sees it.
pub(crate) struct Contract {
    /// Its name in `[server] contracts`.
    pub(crate) name: &'static str,
    /// What all its paths begin with.
    pub(crate) prefix: &'static str,
    /// Its routes, as far as the settings want them.
    pub(crate) routes: fn(&Config) -> Vec<Route>,
    /// How it says no: also for what the shell refuses before a handler is asked.
    pub(crate) word: Word,
    /// The shape of a refusal, for the OpenAPI document.
    pub(crate) failure: Shape,
    /// Codes of its own, which neither the shell nor the kernel has.
    pub(crate) codes: &'static [&'static str],
}

/// Makes an answer of a refusal.
pub(crate) type Word = fn(&Refusal, &Ids) -> Response<Body>;

/// Every contract there is.
static ALL: &[&Contract] =
    &[&native::CONTRACT, &tasks::CONTRACT, &jobs::CONTRACT, &agent::CONTRACT, &scheduler::CONTRACT];

/// Words what is refused at paths that no contract has.
static FALLBACK: &Contract = &native::CONTRACT;

/// The names that `[server] contracts` may have.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|contract| contract.name).collect()
}

/// The codes that a caller may see besides the kernel's own.
pub fn codes() -> Vec<&'static str> {
    let own = ALL.iter().flat_map(|contract| contract.codes);
    refusal::CODES.iter().chain(own).copied().collect()
}

/// Whether `code` is one that a test has looked for a page of.
pub(crate) fn has_page(code: &str) -> bool {
    let of_contract = |contract: &&Contract| contract.codes.contains(&code);
    refusal::CODES.contains(&code)
        || Rejection::CODES.contains(&code)
        || ALL.iter().any(of_contract)
}

/// The contracts that a server speaks.
#[derive(Clone)]
pub(crate) struct Spoken(Vec<&'static Contract>);

impl Spoken {
    /// Those that the settings name.
    pub(crate) fn of(config: &Config) -> Self {
        let is_named = |contract: &&&Contract| config.contracts.contains(&contract.name);
        Spoken(ALL.iter().filter(is_named).copied().collect())
    }

    /// All routes of a server: those of its contracts, and what lies outside of them.
    pub(crate) fn routes(&self, config: &Config) -> Vec<Route> {
        let mut routes: Vec<Route> =
            self.0.iter().flat_map(|contract| (contract.routes)(config)).collect();
        routes.extend(outside::routes());
        routes.extend(dashboard::routes());
        routes
    }

    /// The contract that `path` belongs to.
    pub(crate) fn contract(&self, path: &str) -> Option<&'static Contract> {
        let is_below = |contract: &&&Contract| {
            let rest = path.strip_prefix(contract.prefix);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.0.iter().find(is_below).copied()
    }

    /// How a refusal at `path` is worded.
    pub(crate) fn word(&self, path: &str) -> Word {
        self.contract(path).unwrap_or(FALLBACK).word
    }
}

/// How a refusal is worded while nobody knows what is asked for.
pub(crate) fn word_of_nobody() -> Word {
    FALLBACK.word
}

/// A field of ours as contracts spell it whose words run together.
fn camel(field: &str) -> String {
    let mut parts = field.split('_');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_at(part.chars().next().map_or(0, char::len_utf8));
        text.push_str(&first.to_uppercase());
        text.push_str(rest);
    }
    text
}
