//! Which jobs and items a list is about, and by which terms a store finds them.
//!
//! A term is a fact about a job that a filter can ask for, such as its type. What a job has and
//! what a filter wants are told here once; how terms are indexed is each store's own business. A
//! store may find too much by terms and must then ask [`JobFilter::admits`], never too little.

use mainspring_kernel::entity::Kind;
use mainspring_kernel::entity::wait::Wait;
use mainspring_kernel::fingerprint::{digest, number};
use mainspring_kernel::signature::Signature;
use mainspring_kernel::{
    DlqItem, Entity, Job, JobId, JobType, QueueName, StateName, TenantId, Timestamp, UserId,
};
use std::borrow::Cow;

/// Whose things a read may show. The first filter of every list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Everything.
    All,
    /// One tenant.
    Tenant(TenantId),
    /// One user of one tenant.
    User(TenantId, UserId),
}

impl Scope {
    /// Whether what `user` of `tenant` owns is in scope.
    pub fn covers(&self, tenant: &TenantId, user: &UserId) -> bool {
        match self {
            Scope::All => true,
            Scope::Tenant(only) => only == tenant,
            Scope::User(only, one) => only == tenant && one == user,
        }
    }

    /// The one tenant in scope, if it is one.
    pub fn tenant(&self) -> Option<&TenantId> {
        match self {
            Scope::All => None,
            Scope::Tenant(tenant) | Scope::User(tenant, _) => Some(tenant),
        }
    }

    /// The term that everything in scope has, unless that is everything.
    pub fn term(&self) -> Option<Term<'_>> {
        match self {
            Scope::All => None,
            Scope::Tenant(tenant) => Some(Term::Tenant(tenant.as_str())),
            Scope::User(tenant, user) => Some(Term::Owner(tenant.as_str(), user.as_str())),
        }
    }
}

/// Which jobs to list: those that are everything that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFilter {
    /// Whose.
    pub scope: Scope,
    /// In this state.
    pub state: Option<StateName>,
    /// Of this type.
    pub job_type: Option<JobType>,
    /// In this queue.
    pub queue: Option<QueueName>,
    /// With this trace.
    pub trace_id: Option<String>,
    /// Submitted by this user, of whichever tenants are in scope.
    pub user: Option<UserId>,
    /// With all of these labels.
    pub labels: Vec<(String, String)>,
    /// Whose last failed attempt said this.
    pub error_code: Option<String>,
    /// Made from this job.
    pub parent: Option<JobId>,
    /// Not older than this, by the milliseconds in the id.
    pub since: Option<Timestamp>,
    /// Older than this, by the milliseconds in the id.
    pub until: Option<Timestamp>,
}

/// Which dead-letter items to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemFilter {
    /// In this state, by its name.
    pub state: Option<String>,
    /// Of such jobs, as they were when they failed. Its state is not asked for.
    pub job: JobFilter,
    /// With this failure, as [`Signature`] writes it.
    pub signature: Option<String>,
    /// Written then or later.
    pub since: Option<Timestamp>,
    /// Written earlier.
    pub until: Option<Timestamp>,
}

/// A fact about a job that a filter can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term<'a> {
    /// Its tenant.
    Tenant(&'a str),
    /// Its tenant and user.
    Owner(&'a str, &'a str),
    /// Its user, whatever the tenant.
    User(&'a str),
    /// Its type.
    Type(&'a str),
    /// Its queue.
    Queue(&'a str),
    /// Its state.
    State(&'a str),
    /// The trace it was given; one that follows from the job's id is no term.
    Trace(&'a str),
    /// A label.
    Label(&'a str, &'a str),
    /// The code of its last failed attempt.
    Code(&'a str),
    /// Which failure a dead letter has.
    Signature(&'a str),
    /// The job that it was made from.
    Parent(JobId),
}

impl Term<'_> {
    /// What it is, as parts; no two terms have equal parts.
    pub fn parts(&self) -> (u8, Cow<'_, str>, &str) {
        let (kind, first, second) = match *self {
            Term::Tenant(tenant) => (1, tenant, ""),
            Term::Owner(tenant, user) => (2, tenant, user),
            Term::User(user) => (3, user, ""),
            Term::Type(name) => (4, name, ""),
            Term::Queue(name) => (5, name, ""),
            Term::State(name) => (6, name, ""),
            Term::Trace(trace) => (7, trace, ""),
            Term::Label(name, value) => (8, name, value),
            Term::Code(code) => (9, code, ""),
            Term::Signature(signature) => (10, signature, ""),
            Term::Parent(job) => return (11, Cow::Owned(job.to_string()), ""),
        };
        (kind, Cow::Borrowed(first), second)
    }

    /// A number for the term that is the same for ever: it is stored.
    pub fn number(&self) -> u64 {
        let (kind, first, second) = self.parts();
        number(digest(&[&[kind], first.as_bytes(), second.as_bytes()]))
    }
}

/// The terms of a job that never change.
pub fn lasting_terms<'a>(job: &'a Job, mut visit: impl FnMut(Term<'a>)) {
    let (tenant, user) = (job.tenant.as_str(), job.user.as_str());
    visit(Term::Tenant(tenant));
    visit(Term::Owner(tenant, user));
    visit(Term::User(user));
    visit(Term::Type(job.job_type.as_str()));
    visit(Term::Queue(job.queue.as_str()));
    if let Some(trace) = &job.trace {
        visit(Term::Trace(trace));
    }
    for (name, value) in job.extras.iter().flat_map(|extras| &extras.labels) {
        visit(Term::Label(name, value));
    }
    if let Some(parent) = job.extras.as_ref().and_then(|extras| extras.parent) {
        visit(Term::Parent(parent));
    }
}

/// The terms of a job that change as it moves.
pub fn passing_terms<'a>(job: &'a Job, mut visit: impl FnMut(Term<'a>)) {
    visit(Term::State(job.state.name().as_str()));
    if let Some(last_failure) = &job.last_failure {
        visit(Term::Code(&last_failure.failure.code));
    }
}

impl JobFilter {
    /// Everything in `scope`.
    pub fn of(scope: Scope) -> Self {
        JobFilter {
            scope,
            state: None,
            job_type: None,
            queue: None,
            trace_id: None,
            user: None,
            labels: Vec::new(),
            error_code: None,
            parent: None,
            since: None,
            until: None,
        }
    }

    /// Whether `job` is asked for.
    pub fn admits(&self, job: &Job) -> bool {
        let has_label = |(name, value): &(String, String)| {
            let labels = job.extras.iter().flat_map(|extras| &extras.labels);
            labels.into_iter().any(|(other, held)| **other == **name && **held == **value)
        };
        let (oldest, end) = self.ids();
        self.scope.covers(&job.tenant, &job.user)
            && self.state.is_none_or(|state| job.state.name() == state)
            && self.job_type.as_ref().is_none_or(|wanted| *wanted == job.job_type)
            && self.queue.as_ref().is_none_or(|wanted| *wanted == job.queue)
            && self.user.as_ref().is_none_or(|wanted| *wanted == job.user)
            && self.trace_id.as_ref().is_none_or(|wanted| is_in_trace(job, wanted))
            && self.labels.iter().all(has_label)
            && self.error_code.as_ref().is_none_or(|wanted| {
                job.last_failure
                    .as_ref()
                    .is_some_and(|last_failure| *last_failure.failure.code == **wanted)
            })
            && self.parent.is_none_or(|wanted| {
                job.extras.as_ref().and_then(|extras| extras.parent) == Some(wanted)
            })
            && oldest <= job.id
            && end.is_none_or(|end| job.id < end)
    }

    /// The terms a job must have, all of them. What has no term is left to `admits`.
    pub fn terms(&self) -> Vec<Term<'_>> {
        let mut terms = Vec::new();
        let (tenant, owner) = match &self.scope {
            Scope::All => (None, None),
            Scope::Tenant(tenant) => (Some(tenant), None),
            Scope::User(tenant, user) => (Some(tenant), Some(user)),
        };
        // One user of one tenant is narrower than either.
        match (tenant, owner.or(self.user.as_ref())) {
            (Some(tenant), Some(user)) => terms.push(Term::Owner(tenant.as_str(), user.as_str())),
            (Some(tenant), None) => terms.push(Term::Tenant(tenant.as_str())),
            (None, Some(user)) => terms.push(Term::User(user.as_str())),
            (None, None) => {}
        }
        // Somebody who asks for another's jobs among their own finds none, and looks at few.
        let other = self.user.as_ref().filter(|user| owner.is_some_and(|owner| owner != *user));
        terms.extend(other.map(|user| Term::User(user.as_str())));
        terms.extend(self.job_type.as_ref().map(|name| Term::Type(name.as_str())));
        terms.extend(self.queue.as_ref().map(|name| Term::Queue(name.as_str())));
        terms.extend(self.trace_id.as_deref().map(Term::Trace));
        terms.extend(self.labels.iter().map(|(name, value)| Term::Label(name, value)));
        terms.extend(self.error_code.as_deref().map(Term::Code));
        terms.extend(self.parent.map(Term::Parent));
        terms.extend(self.state.map(|state| Term::State(state.as_str())));
        terms
    }

    /// The one job that is in the wanted trace without having been given it: its id makes the
    /// trace. It must be looked at beside those that have the term.
    pub fn traced_job(&self) -> Option<JobId> {
        JobId::of_trace(self.trace_id.as_deref()?)
    }

    /// The least id that can be wanted, and the least beyond those that can.
    pub fn ids(&self) -> (JobId, Option<JobId>) {
        (self.since.map_or(JobId(0), JobId::first_at), self.until.map(JobId::first_at))
    }

    /// The first id below which a part of the list starts.
    pub fn end(&self, before: Option<JobId>) -> Option<JobId> {
        match (self.ids().1, before) {
            (Some(end), Some(before)) => Some(end.min(before)),
            (end, before) => end.or(before),
        }
    }
}

fn is_in_trace(job: &Job, wanted: &str) -> bool {
    match &job.trace {
        Some(trace) => **trace == *wanted,
        None => job.trace_id() == wanted,
    }
}

impl ItemFilter {
    /// Everything in `scope`.
    pub fn of(scope: Scope) -> Self {
        let (state, signature) = (None, None);
        ItemFilter { state, job: JobFilter::of(scope), signature, since: None, until: None }
    }

    /// Whether `item` is asked for.
    pub fn admits(&self, item: &DlqItem) -> bool {
        self.state.as_deref().is_none_or(|state| item.state.as_str() == state)
            && self.since.is_none_or(|since| item.created_at >= since)
            && self.until.is_none_or(|until| item.created_at < until)
            && self.signature.as_deref().is_none_or(|wanted| signature(item) == wanted)
            && self.job.admits(&item.job)
    }

    /// The terms an item must have, all of them.
    pub fn terms(&self) -> Vec<Term<'_>> {
        let mut terms = self.job.terms();
        terms.extend(self.state.as_deref().map(Term::State));
        terms.extend(self.signature.as_deref().map(Term::Signature));
        terms
    }
}

/// The terms of an item that never change: those of its job, and why it failed.
pub fn lasting_item_terms(item: &DlqItem, mut visit: impl FnMut(Term<'_>)) {
    lasting_terms(&item.job, &mut visit);
    if let Some(last_failure) = &item.job.last_failure {
        visit(Term::Code(&last_failure.failure.code));
    }
    visit(Term::Signature(&signature(item)));
}

fn signature(item: &DlqItem) -> String {
    Signature::of_item(item).to_string()
}

/// Which entities of a kind to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityFilter {
    /// Of this kind.
    pub kind: Kind,
    /// Whose.
    pub scope: Scope,
    /// In this state.
    pub state: Option<String>,
    /// With this value in this field.
    pub field: Option<(String, String)>,
}

/// A number for everything that a list of entities can ask for at once: kind, owner, state and one
/// field. An entity has one for each question it answers, so that a page is a stretch of one index,
/// whatever is asked. The same for ever: it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityTerm(pub u64);

impl EntityTerm {
    fn of(kind: Kind, scope: &Scope, state: Option<&str>, field: Option<(&str, &str)>) -> Self {
        let (tenant, user) = match scope {
            Scope::All => ("", ""),
            Scope::Tenant(tenant) => (tenant.as_str(), ""),
            Scope::User(tenant, user) => (tenant.as_str(), user.as_str()),
        };
        // No state and no name of a field is empty.
        let (name, value) = field.unwrap_or_default();
        let parts = [tenant, user, state.unwrap_or_default(), name, value].map(str::as_bytes);
        let [tenant, user, state, name, value] = parts;
        EntityTerm(number(digest(&[&[kind.number()], tenant, user, state, name, value])))
    }
}

/// The terms of an entity, in order and each once.
pub fn entity_terms(entity: &Entity) -> Vec<EntityTerm> {
    let mut scopes = vec![
        Scope::All,
        Scope::Tenant(entity.tenant.clone()),
        Scope::User(entity.tenant.clone(), entity.owner.clone()),
    ];
    let mut states = vec![None, Some(entity.state())];
    let mut terms = Vec::with_capacity(scopes.len() * states.len() * 2);
    let mut ask = |scopes: &[Scope], states: &[Option<&str>], field: Option<(&str, &str)>| {
        for scope in scopes {
            for state in states {
                terms.push(EntityTerm::of(entity.id.kind, scope, *state, field));
            }
        }
    };
    ask(&scopes, &states, None);
    if entity.id.kind == Kind::Wait {
        // Nobody but the engine asks for the fields of waits, and one may have a hundred.
        (scopes, states) = (vec![Scope::All], vec![None]);
    }
    entity.fields(|name, value| ask(&scopes, &states, Some((name, value))));
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// The terms of waits that name `job`, or a batch that it may belong to.
pub fn wait_terms(job: JobId) -> [EntityTerm; 2] {
    let term = |name: &str, id: JobId| {
        EntityTerm::of(Kind::Wait, &Scope::All, None, Some((name, &id.to_string())))
    };
    [term("job", job), term("batch", Wait::batch_of(job))]
}

impl EntityFilter {
    /// Every entity of a kind that is in scope.
    pub fn of(kind: Kind, scope: Scope) -> Self {
        EntityFilter { kind, scope, state: None, field: None }
    }

    /// The term that exactly those entities have that are asked for, but for chance.
    pub fn term(&self) -> EntityTerm {
        let field = self.field.as_ref().map(|(name, value)| (name.as_str(), value.as_str()));
        EntityTerm::of(self.kind, &self.scope, self.state.as_deref(), field)
    }

    /// Whether `entity` is asked for.
    pub fn admits(&self, entity: &Entity) -> bool {
        let mut has_field = self.field.is_none();
        entity.fields(|name, value| {
            has_field |=
                self.field.as_ref().is_some_and(|(wanted, held)| wanted == name && held == value);
        });
        entity.id.kind == self.kind
            && self.scope.covers(&entity.tenant, &entity.owner)
            && self.state.as_deref().is_none_or(|state| entity.state() == state)
            && has_field
    }
}
