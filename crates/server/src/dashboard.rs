//! The dashboard at `/`: pages that the server renders itself. A room like a contract's: it hangs
//! on the shell (routes, who asks, answers), and asks the engine through what the native contract
//! has. It decides nothing, counts nothing on request and calls no store.
//!
//! # How to add a page
//!
//! 1. A file `dashboard/<page>.rs` with a `PAGE` (path below `/ui/`, its name in both languages,
//!    who may, its routes), and a line in [`PAGES`]: then it is served and linked.
//! 2. A handler per route, `async fn(Ask, Principal) -> Result<Reply, Refusal>`, in the table
//!    inside `page!(ROLES, handler)`. A form that changes something is `post(.., Takes::Form, ..)`:
//!    the shell has checked session, role and the form's own token before the handler runs.
//! 3. A template `templates/<page>.html` that extends `layout.html`, and a struct with a field
//!    `frame: Frame` from `Frame::new(&ask, &who, &PAGE)`. Everything is escaped unless it is one
//!    of the types in `parts.rs`. Texts stand in a table `words! { .. }` of the file, English and
//!    Chinese side by side.
//! 4. Ask through [`inside::Inside`]: `inside.get("/api/v1/alerts?state=open")` has the native
//!    handler answer in this process, with its rules and its audit trail, and `inside.may(..)`
//!    says whether its role would do. What native's own functions look up may be called as well.
//! 5. What should move by itself gets `id` and `data-live`; the script fetches the page again when
//!    something has moved and swaps such elements only.
//!
//! `bulk.rs` is the smallest example of a list (`list`), of a thing (`show`) and of forms
//! (`create`, `stop`). A refusal that a page should tell by itself goes through `shell::told`.

pub(crate) mod once;

mod alerts;
mod assets;
mod audit;
mod blocks;
mod bulk;
mod chart;
mod cookies;
mod dlq;
mod form;
mod health;
mod inside;
mod job;
mod jobs;
mod json_text;
mod kin;
mod language;
mod live;
mod making;
mod map;
mod needs;
mod objects;
mod overview;
mod parts;
mod pulse;
mod questions;
mod refused;
mod schedule_new;
mod schedules;
mod session;
mod shell;
mod sign_in;
mod strip;
mod subscriptions;
mod tally;
mod tenants;
mod tokens;
mod triggers;
mod types;
mod watched;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use form::check;
pub(crate) use refused::Wording;

use crate::config::Config;
use crate::contracts::native;
use crate::refusal::{self, Refusal};
use crate::route::{Route, Router};
use hyper::HeaderMap;
use mainspring_engine::{Engine, Grouped};
use mainspring_kernel::{Principal, Role};
use pulse::Pulse;
use session::Sessions;
use std::sync::Arc;
use tally::Tallies;
use watched::Watched;

/// A page that the navigation links.
pub(crate) struct Page {
    /// Where it is.
    pub(crate) path: &'static str,
    /// What it is called, in English and in Chinese.
    pub(crate) name: [&'static str; 2],
    /// Under what it stands in the navigation.
    pub(crate) group: Group,
    /// Who is shown the link; its routes say who may.
    pub(crate) roles: &'static [Role],
    /// Its routes, those of its things and of its forms.
    pub(crate) routes: fn() -> Vec<Route>,
    /// Its picture: a path in a square of 16.
    pub(crate) icon: &'static str,
}

/// The parts of the navigation, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Jobs and what becomes of them.
    Work,
    /// What starts jobs by itself.
    Time,
    /// What jobs are made of and where they run.
    House,
    /// Who did what, and who may.
    People,
}

impl Group {
    const ALL: [(Group, [&'static str; 2]); 4] = [
        (Group::Work, ["Work", "作业"]),
        (Group::Time, ["Time", "时间"]),
        (Group::House, ["House", "设施"]),
        (Group::People, ["People", "人员"]),
    ];
}

/// Every page, in the order of the navigation.
pub(crate) static PAGES: &[&Page] = &[
    &overview::PAGE,
    &jobs::PAGE,
    &dlq::PAGE,
    &questions::PAGE,
    &alerts::PAGE,
    &bulk::PAGE,
    &schedules::PAGE,
    &triggers::PAGE,
    &types::TYPES,
    &types::QUEUES,
    &types::WORKERS,
    &objects::PAGE,
    &health::PAGE,
    &audit::PAGE,
    &subscriptions::PAGE,
    &tokens::PAGE,
];

/// All routes of the dashboard.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes: Vec<Route> = PAGES.iter().flat_map(|page| (page.routes)()).collect();
    routes.extend(making::routes());
    routes.extend(sign_in::routes());
    routes.extend(language::routes());
    routes.extend(assets::routes());
    routes.extend(live::routes());
    routes
}

/// What the dashboard of one server remembers. All of it is gone with the process, and bounded.
pub(crate) struct Dashboard {
    pub(crate) sessions: Sessions,
    pub(crate) once: once::OnceLinks,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) tallies: Arc<Tallies>,
    groups: Arc<Watched<Arc<Grouped>>>,
    /// The routes of the native contract, whether or not others may ask by them.
    native: Router,
}

impl Dashboard {
    pub(crate) fn new(config: &Config) -> Self {
        Dashboard {
            sessions: Sessions::default(),
            once: once::OnceLinks::new(config.once.clone()),
            pulse: Arc::default(),
            tallies: Arc::default(),
            groups: Arc::default(),
            native: Router::new(native::routes(config)),
        }
    }

    /// Looks at the server every so often, until it stops.
    pub(crate) async fn look(&self, engine: Engine) {
        let stopping = engine.stopping();
        tokio::select! {
            () = stopping.cancelled() => {}
            () = pulse::run(&self.pulse, &engine) => {}
            () = self.tallies.run(&engine) => {}
            () = dlq::groups::run(&self.groups, &engine) => {}
        }
    }

    /// Whoever is signed in; a token that has ended signs out with it, at once.
    pub(crate) async fn visitor(
        &self,
        engine: &Engine,
        headers: &HeaderMap,
    ) -> Result<Principal, Refusal> {
        let id = cookies::session(headers).ok_or_else(refusal::unauthorized)?;
        let now = engine.now();
        let token = self.sessions.token(&id, now).ok_or_else(refusal::unauthorized)?;
        match engine.token(token).await?.filter(|token| token.is_live(now)) {
            Some(token) => Ok(token.principal()),
            None => {
                self.sessions.end(&id);
                Err(refusal::unauthorized())
            }
        }
    }
}
