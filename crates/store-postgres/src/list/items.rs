//! Lists of dead-letter items: every fact about an item is a row, so any of them may lead.

use super::lead::{self, Lead};
use super::pieces::{self, Bound, Conditions, Pieces, Span, counted, run};
use super::{LOOKED_AT, candidates};
use crate::connections::{Call, Part, Value};
use crate::fault::Fault;
use crate::queries::Query;
use crate::rows::read_item;
use crate::terms;
use crate::this_server::ThisServer;
use crate::values::{At, item_uuid, uuid};
use mainspring_kernel::{DlqId, DlqItem};
use mainspring_store::{ItemFilter, Page, Term};
use tokio_postgres::types::Type;
use uuid::Uuid;

/// Items of before that are listed in one go.
const LISTED_MAX: i32 = 500;

/// Dead-letter items, newest first, older than `before`.
pub(crate) async fn items(
    server: &ThisServer,
    filter: &ItemFilter,
    before: Option<DlqId>,
    limit: usize,
) -> Result<Page<DlqItem>, Fault> {
    let Some(wanted) = pieces::wanted(server, &filter.job).await? else {
        return Ok(Page { items: Vec::new(), next: None });
    };
    let mut span = Span::of(&filter.job, before.map(DlqId::job));
    let (lead, facts) = lead(server, filter, &wanted, span).await?;
    let own = filter.job.traced_job().map(uuid);
    let (mut found, mut looked_at) = (Vec::new(), (limit + 1).max(LOOKED_AT.0));
    while found.len() <= limit {
        let (ids, floor) = candidates(server, &lead, span, looked_at, own).await?;
        for ids in ids.chunks(looked_at) {
            if found.len() <= limit {
                found.extend(read(server, ids, filter, &facts, limit + 1 - found.len()).await?);
            }
        }
        match floor {
            Some(floor) => span.end = floor,
            None => break,
        }
        looked_at = (looked_at * 4).min(LOOKED_AT.1);
    }
    Ok(Page::cut(found, limit, |item| item.id.job()))
}

/// How many items a filter admits, up to `most`.
pub(crate) async fn count_items(
    server: &ThisServer,
    filter: &ItemFilter,
    most: usize,
) -> Result<usize, Fault> {
    // One that is in the trace by its id has no fact that says so.
    if filter.job.traced_job().is_some() {
        return Ok(items(server, filter, None, most).await?.items.len());
    }
    let Some(wanted) = pieces::wanted(server, &filter.job).await? else { return Ok(0) };
    let span = Span::of(&filter.job, None);
    let (lead, facts) = lead(server, filter, &wanted, span).await?;
    let (sql, values) = pieces::searched(&lead, span, most, Bound::Counted(usize::MAX));
    let mut conditions = Conditions::new(values);
    for numbers in facts {
        conditions.fact("item_term", "d.id", numbers);
    }
    let mut item = "";
    if filter.since.is_some() || filter.until.is_some() {
        item = "CROSS JOIN LATERAL (SELECT i.created_at FROM mainspring.item i
                    WHERE i.id = d.id LIMIT 1) i";
        written(filter, &mut conditions);
    }
    let Conditions { sql: conditions, values } = conditions;
    let sql =
        format!("SELECT count(*) FROM (SELECT 1 {sql} {item} WHERE true{conditions} LIMIT $4) c");
    counted(&run(server, &sql, &values).await?)
}

/// The fact that leads, and the others.
async fn lead(
    server: &ThisServer,
    filter: &ItemFilter,
    wanted: &Pieces<'_>,
    span: Span,
) -> Result<(Lead, Vec<Vec<i64>>), Fault> {
    let mut facts: Vec<Vec<i64>> = Vec::new();
    let mut leads = Vec::new();
    for term in filter.terms() {
        let numbers = wanted.numbers(term);
        leads.push(Lead::ItemTerms(numbers.clone()));
        let is_by_id = matches!(term, Term::Trace(_)) && filter.job.traced_job().is_some();
        if !is_by_id {
            facts.push(numbers);
        }
    }
    if leads.is_empty() {
        leads.push(Lead::AllItems);
    }
    let mut leads = lead::shortest(server, leads, span).await?;
    let lead = leads.swap_remove(0);
    // What leads need not be asked again, but for one that came in by its id.
    if filter.job.traced_job().is_none() {
        facts.retain(|numbers| !matches!(&lead, Lead::ItemTerms(led) if led == numbers));
    }
    Ok((lead, facts))
}

/// Those of some items that are wanted, newest first.
async fn read(
    server: &ThisServer,
    ids: &[Uuid],
    filter: &ItemFilter,
    facts: &[Vec<i64>],
    limit: usize,
) -> Result<Vec<DlqItem>, Fault> {
    let values: Vec<(Value, Type)> = vec![
        (Box::new(ids.to_vec()), Type::UUID_ARRAY),
        (Box::new(i64::try_from(limit).unwrap_or(i64::MAX)), Type::INT8),
    ];
    let mut conditions = Conditions::new(values);
    for numbers in facts {
        conditions.fact("item_term", "i.id", numbers.clone());
    }
    written(filter, &mut conditions);
    let Conditions { sql: conditions, values } = conditions;
    let sql = format!(
        "SELECT i.record FROM unnest($1::uuid[]) w (id)
         CROSS JOIN LATERAL (SELECT * FROM mainspring.item i WHERE i.id = w.id LIMIT 1) i
         WHERE true{conditions} ORDER BY i.id DESC LIMIT $2"
    );
    let rows = run(server, &sql, &values).await?;
    let items: Result<Vec<DlqItem>, Fault> =
        rows.iter().map(|row| read_item(row.try_get(0)?)).collect();
    Ok(items?.into_iter().filter(|item| filter.admits(item)).collect())
}

fn written(filter: &ItemFilter, conditions: &mut Conditions) {
    if let Some(since) = filter.since {
        conditions.with(" AND i.created_at >= ?", Box::new(At(since)), Type::TIMESTAMPTZ);
    }
    if let Some(until) = filter.until {
        conditions.with(" AND i.created_at < ?", Box::new(At(until)), Type::TIMESTAMPTZ);
    }
}

/// Lists items that were written by servers that knew no lists, some at a time. The error codes of
/// their jobs are listed with them.
pub(crate) async fn list_old_items(server: &ThisServer) -> Result<(), Fault> {
    loop {
        let rows =
            server.connections.read(Query::FindUnlistedItems, vec![Box::new(LISTED_MAX)]).await?;
        if rows.is_empty() {
            return Ok(());
        }
        let (mut facts, mut codes) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
        let (mut ids, mut versions) = (Vec::new(), Vec::new());
        for row in &rows {
            let item = read_item(row.try_get(0)?)?;
            let id = item_uuid(item.id);
            for number in terms::of_item(&item) {
                facts.0.push(number);
                facts.1.push(id);
            }
            if let Some(code) = terms::code(&item.job) {
                codes.0.push(code);
                codes.1.push(id);
            }
            ids.push(id);
            versions.push(i32::try_from(item.version).unwrap_or(i32::MAX));
        }
        let calls = vec![
            Call::new(Query::InsertItemTerms, vec![Box::new(facts.0), Box::new(facts.1)]),
            Call::new(Query::InsertTerms, vec![Box::new(codes.0), Box::new(codes.1)]),
            Call::new(Query::MarkItemsListed, vec![Box::new(ids), Box::new(versions)]),
        ];
        let mut connection = server.connections.get().await?;
        connection.run(Part::All, calls).await?;
    }
}
