//! System templates: schedules that the configuration asks for. Each has one schedule, whose id
//! follows from tenant and name, so that it is there once however often and on however many servers
//! it is asked for.

use mainspring_engine::{Engine, Error};
use mainspring_kernel::entity::schedule::ScheduleSpec;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{EntityId, Rejection, TenantId};

/// A schedule that the configuration asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// What the schedule is to do.
    pub spec: ScheduleSpec,
    /// Digest of what the configuration says: a change of it changes the schedule.
    pub entry: Digest,
}

/// The templates of a server.
#[derive(Debug, Clone)]
pub struct Templates {
    /// Whose their schedules are.
    pub tenant: TenantId,
    /// The templates, by name.
    pub list: Vec<Template>,
    /// How many of their schedules were there when the server started.
    pub recovered: u64,
}

impl Templates {
    /// None.
    pub fn none() -> Self {
        let tenant = TenantId::stored("default".into());
        Templates { tenant, list: Vec::new(), recovered: 0 }
    }
}

/// The schedule of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ensured {
    /// The template's name.
    pub name: String,
    /// The schedule.
    pub id: EntityId,
    /// Whether it was made now.
    pub is_new: bool,
}

/// Makes sure that the schedule of every template is there.
///
/// # Errors
/// If the store failed; the inner error if the rules refuse one of them, by name. Those before it
/// are there.
pub async fn ensure(
    engine: &Engine,
    templates: &Templates,
) -> Result<Result<Vec<Ensured>, (String, Rejection)>, Error> {
    let mut all = Vec::with_capacity(templates.list.len());
    for Template { name, spec, entry } in &templates.list {
        let tenant = templates.tenant.clone();
        match engine.ensure_template(tenant, name, *entry, spec.clone()).await? {
            Ok(it) => all.push(Ensured { name: name.clone(), id: it.id, is_new: it.is_new }),
            Err(rejection) => return Ok(Err((name.clone(), rejection))),
        }
    }
    Ok(Ok(all))
}
