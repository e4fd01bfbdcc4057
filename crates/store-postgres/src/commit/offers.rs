//! The ready jobs that the pulls of a batch may take: rows of `ready` from the stock, and what has
//! to be read to fill it. They are only looked at, unless the stock says that others are too quick;
//! the claim is the deletion of the row, in `write.rs`.

use super::Writer;
use super::transaction::Transaction;
use crate::connections::{Call, Value};
use crate::fault::Fault;
use crate::queries::Query;
use crate::registry::Registry;
use crate::rows::read_job;
use crate::stock::{Offer, Plan};
use crate::this_server::ThisServer;
use mainspring_store::Needs;
use tokio::time::Instant;
use tokio_postgres::Row;

/// Lanes with rows in `ready` that are learned of at once, at most.
const LANES_FOUND_MAX: i32 = 10_000;

impl Writer {
    /// The rows of `ready` that the pulls may take, and which were read for it.
    pub(super) async fn gather_offers(
        &mut self,
        server: &ThisServer,
        transaction: &mut Transaction<'_>,
        needs: &Needs,
        registry: &Registry,
    ) -> Result<(Plan, Vec<Offer>), Fault> {
        if needs.pulls.is_empty() {
            return Ok(Default::default());
        }
        server.promote(needs.due_by.map_or(needs.now, |at| at.max(needs.now))).await?;
        self.find_lanes(server, transaction, needs).await?;
        // What reports of this batch free is free for its pulls.
        let reported = needs.jobs.iter().filter_map(|id| self.handed_out.get(id));
        let freed = reported.filter_map(|stored| registry.limit_of(&stored.job));
        self.stock.limits_freed(&freed.map(|(_, limit)| limit).collect());
        let named = needs.jobs.iter().filter(|id| !self.handed_out.contains_key(id)).count();
        let mut plan =
            self.stock.plan_reads((&needs.pulls, needs.now), named, registry, &server.lanes());
        server.know_lanes(&plan.lanes).await?;
        let began = Instant::now();
        let rows = read_ready_rows(server, transaction, &plan).await?;
        let offers = self.stock.take_offers(&mut plan, rows, began);
        let (offers, kept_back) = self.suspects.sift(offers);
        self.stock.put_back(kept_back);
        Ok((plan, offers))
    }

    /// Learns which lanes have rows in `ready`, if others may have put some there.
    async fn find_lanes(
        &mut self,
        server: &ThisServer,
        transaction: &mut Transaction<'_>,
        needs: &Needs,
    ) -> Result<(), Fault> {
        server.tell_stock(&mut self.stock);
        if let Some(later) = self.stock.finds_lanes_in() {
            server.work_by(needs.now + later);
        }
        if !self.stock.has_to_find_lanes() {
            return Ok(());
        }
        let began = Instant::now();
        let find = Call::new(Query::FindLanes, vec![Box::new(LANES_FOUND_MAX)]);
        let rows = transaction.run_one(find).await?;
        let lanes = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i32>, _>>()?;
        server.know_lanes(&lanes).await?;
        self.stock.found_lanes(lanes, began);
        Ok(())
    }
}

/// Reads the rows of `ready` that a plan names, with their jobs: looked at on any connection, or
/// locked in the transaction.
async fn read_ready_rows(
    server: &ThisServer,
    transaction: &mut Transaction<'_>,
    plan: &Plan,
) -> Result<Vec<Offer>, Fault> {
    if plan.to_read.is_empty() {
        return Ok(Vec::new());
    }
    let most = i32::try_from(plan.read_most).unwrap_or(i32::MAX);
    let values: Vec<Value> = vec![
        Box::new(plan.to_read.clone()),
        Box::new(plan.keys.clone()),
        Box::new(plan.ids.clone()),
        Box::new(most),
    ];
    let rows = match plan.is_locking {
        true => transaction.run_one(Call::new(Query::LockReady, values)).await?,
        false => server.connections.read(Query::PeekReady, values).await?,
    };
    server.learn_lanes(&rows, 2).await?;
    let lanes = server.lanes();
    let offer = |row: &Row| -> Result<Offer, Fault> {
        Ok((row.try_get(0)?, row.try_get(1)?, read_job(row, 2, false, &lanes)?))
    };
    rows.iter().map(offer).collect()
}
