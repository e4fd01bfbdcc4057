//! What jobs that have not ended come to, by tenant, as far as this server knows: what the database
//! had at the last look, and what this server has committed since. Servers that submit at the same
//! time may together go over a bound by what they take in between two looks.

use crate::connections::Value;
use crate::fault::Fault;
use crate::queries::Query;
use crate::this_server::ThisServer;
use crate::values::Map;
use mainspring_kernel::TenantId;
use mainspring_store::Held;

/// A change, or a number that may be off by a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) jobs: i64,
    pub(crate) bytes: i64,
}

impl Amount {
    fn add(&mut self, by: Amount) {
        self.jobs += by.jobs;
        self.bytes += by.bytes;
    }

    /// What there is; a number that is behind may seem to be less than nothing.
    pub(crate) fn held(self) -> Held {
        let plain = |n: i64| u64::try_from(n).unwrap_or(0);
        Held { jobs: plain(self.jobs), bytes: plain(self.bytes) }
    }
}

/// What this server knows.
#[derive(Debug, Default)]
pub(crate) struct KnownBacklog {
    tenants: Map<TenantId, Amount>,
    all: Amount,
    /// Committed here since the look that is under way began.
    since: Vec<(TenantId, Amount)>,
    is_looking: bool,
    /// Commits of this server that are on their way, and how many have arrived.
    on_their_way: u32,
    arrived: u64,
}

impl KnownBacklog {
    /// What the jobs of a tenant, and all jobs, come to.
    pub(crate) fn of(&self, tenant: &TenantId) -> (Amount, Amount) {
        (self.tenants.get(tenant).copied().unwrap_or_default(), self.all)
    }

    /// This server has committed changes.
    pub(crate) fn committed(&mut self, changes: Vec<(TenantId, Amount)>) {
        for (tenant, by) in &changes {
            self.tenants.entry(tenant.clone()).or_default().add(*by);
            self.all.add(*by);
        }
        if self.is_looking {
            self.since.extend(changes);
        }
    }

    /// A look begins: the commits that have arrived by then, if none is on its way.
    fn begin(&mut self) -> Option<u64> {
        self.is_looking = true;
        self.since.clear();
        (self.on_their_way == 0).then_some(self.arrived)
    }

    /// Whether no commit of this server came between.
    fn is_as_of(&self, begun: Option<u64>) -> bool {
        self.on_their_way == 0 && begun == Some(self.arrived)
    }

    /// The numbers of the database are these, without what was committed meanwhile.
    fn found(&mut self, tenants: Map<TenantId, Amount>) {
        self.all = Amount::default();
        tenants.values().for_each(|amount| self.all.add(*amount));
        self.tenants = tenants;
        self.is_looking = false;
        let since = std::mem::take(&mut self.since);
        self.committed(since);
    }
}

/// A commit that is on its way.
pub(crate) struct OnItsWay<'a>(&'a ThisServer);

impl<'a> OnItsWay<'a> {
    pub(crate) fn begin(server: &'a ThisServer) -> Self {
        server.backlog().on_their_way += 1;
        OnItsWay(server)
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        let mut held = self.0.backlog();
        held.on_their_way -= 1;
        held.arrived += 1;
    }
}

/// Looks that are tried for one that no commit of this server comes between.
const LOOKS: usize = 3;

/// Looks at the numbers of the database. What is committed here meanwhile may be in them already:
/// then it is counted twice until the next look, which errs on the side of refusing.
pub(crate) async fn look(server: &ThisServer) -> Result<(), Fault> {
    for left in (0..LOOKS).rev() {
        let begun = server.backlog().begin();
        let found = read(server).await?;
        let mut held = server.backlog();
        if held.is_as_of(begun) {
            held.since.clear();
        } else if left > 0 {
            continue;
        }
        held.found(found);
        break;
    }
    Ok(())
}

async fn read(server: &ThisServer) -> Result<Map<TenantId, Amount>, Fault> {
    let rows = server.connections.read(Query::ReadHeld, Vec::<Value>::new()).await?;
    let mut tenants: Map<TenantId, Amount> = Map::default();
    for row in &rows {
        let (name, n): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
        let Some((kind, tenant)) = name.split_once('/') else { continue };
        if !matches!(kind, "jobs" | "bytes") {
            continue;
        }
        let amount = tenants.entry(TenantId::stored(tenant.into())).or_default();
        match kind {
            "jobs" => amount.jobs = n,
            _ => amount.bytes = n,
        }
    }
    Ok(tenants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_during_a_look_is_not_lost() {
        let tenant = TenantId::new("t").unwrap();
        let change = |bytes| vec![(tenant.clone(), Amount { jobs: 1, bytes })];
        let mut known = KnownBacklog::default();
        known.committed(change(5));
        known.begin();
        known.committed(change(7));
        let found = [(tenant.clone(), Amount { jobs: 3, bytes: 100 })];
        known.found(found.into_iter().collect());
        let (own, all) = known.of(&tenant);
        assert_eq!(own, Amount { jobs: 4, bytes: 107 });
        assert_eq!(own, all);
        known.committed(vec![(tenant.clone(), Amount { jobs: -9, bytes: -900 })]);
        assert_eq!(known.of(&tenant).0.held(), Held::default(), "never less than nothing");
    }
}
