//! The statements of lists, put together from fixed pieces.

use super::lead::Lead;
use crate::connections::Value;
use crate::fault::Fault;
use crate::queries::in_schema;
use crate::rows::state_number;
use crate::terms;
use crate::this_server::ThisServer;
use crate::values::uuid;
use mainspring_kernel::{JobId, StateName, TenantId};
use mainspring_store::{JobFilter, Scope, Term};
use std::collections::BTreeSet;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// The ids a list is about: from `floor`, included, to `end`, not included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) floor: Uuid,
    pub(super) end: Uuid,
}

impl Span {
    pub(super) fn of(filter: &JobFilter, before: Option<JobId>) -> Self {
        let end = filter.end(before).unwrap_or(JobId(u128::MAX));
        Span { floor: uuid(filter.ids().0), end: uuid(end) }
    }

    pub(super) fn has(&self, id: Uuid) -> bool {
        self.floor <= id && id < self.end
    }
}

/// What a filter asks for, as the tables have it.
#[derive(Debug)]
pub(super) struct Pieces<'a> {
    pub(super) filter: &'a JobFilter,
    /// The lanes that its tenant, queue and type leave; all of them if it names none of the three.
    pub(super) lanes: Option<Vec<i32>>,
    /// The same with those of keys and of retries: jobs wait in them, but are not kept under them.
    pub(super) waiting_lanes: Option<Vec<i32>>,
    pub(super) user: Option<String>,
    /// Every tenant in scope that has jobs.
    pub(super) tenants: Vec<TenantId>,
}

/// What `filter` asks for; `None` if nothing can be that.
pub(super) async fn wanted<'a>(
    server: &ThisServer,
    filter: &'a JobFilter,
) -> Result<Option<Pieces<'a>>, Fault> {
    let user = match (&filter.scope, &filter.user) {
        (Scope::User(_, own), Some(other)) if own != other => return Ok(None),
        (Scope::User(_, own), _) => Some(own.as_str().to_owned()),
        (Scope::All | Scope::Tenant(_), user) => user.as_ref().map(|it| it.as_str().to_owned()),
    };
    server.know_all_lanes().await?;
    let lanes = server.lanes();
    let matching = lanes.iter().filter(|(_, lane)| {
        filter.scope.tenant().is_none_or(|tenant| lane.tenant == *tenant)
            && filter.queue.as_ref().is_none_or(|queue| lane.queue == *queue)
            && filter.job_type.as_ref().is_none_or(|kind| lane.job_type == *kind)
    });
    let (mut numbers, mut tenants) = (Vec::new(), BTreeSet::new());
    let mut all = Vec::new();
    for (number, lane) in matching {
        all.push(number);
        numbers.extend((!lane.is_passing()).then_some(number));
        if !tenants.contains(&lane.tenant) {
            tenants.insert(lane.tenant.clone());
        }
    }
    if numbers.is_empty() {
        return Ok(None);
    }
    let is_any = filter.scope.tenant().is_none() && filter.queue.is_none();
    let is_named = !is_any || filter.job_type.is_some();
    let (lanes, waiting_lanes) = (is_named.then_some(numbers), is_named.then_some(all));
    let tenants = tenants.into_iter().collect();
    Ok(Some(Pieces { filter, lanes, waiting_lanes, user, tenants }))
}

/// Conditions under construction, with their parameters.
pub(super) struct Conditions {
    pub(super) sql: String,
    pub(super) values: Vec<(Value, Type)>,
}

impl Conditions {
    pub(super) fn new(values: Vec<(Value, Type)>) -> Self {
        Conditions { sql: String::new(), values }
    }

    /// Adds text as it stands.
    pub(super) fn text(&mut self, text: &str) {
        self.sql.push_str(text);
    }

    /// Adds text in which `?` stands for a value.
    pub(super) fn with(&mut self, text: &str, value: Value, kind: Type) {
        self.values.push((value, kind));
        self.sql.push_str(&text.replace('?', &format!("${}", self.values.len())));
    }

    /// Wants one of these facts about `id` to be in `table`.
    pub(super) fn fact(&mut self, table: &str, id: &str, numbers: Vec<i64>) {
        let text = format!(
            " AND EXISTS (SELECT FROM unnest(?::bigint[]) t (t) CROSS JOIN LATERAL (
                 SELECT FROM mainspring.{table} m WHERE m.term = t.t AND m.id = {id} LIMIT 1) m)"
        );
        self.with(&text, Box::new(numbers), Type::INT8_ARRAY);
    }
}

impl Pieces<'_> {
    /// Adds conditions on `j`, `l` and `f` for all that `lead` does not see to.
    fn add_to(&self, to: &mut Conditions, lead: Option<&Lead>) {
        let has_lane = matches!(lead, Some(Lead::Lanes(_) | Lead::User(..)));
        if let Some(lanes) = self.lanes.as_ref().filter(|_| !has_lane) {
            to.with(" AND j.lane = ANY (?)", Box::new(lanes.clone()), Type::INT4_ARRAY);
        }
        if let Some(user) = self.user.as_ref().filter(|_| !matches!(lead, Some(Lead::User(..)))) {
            to.with(" AND j.user_id = ?", Box::new(user.clone()), Type::TEXT);
        }
        if let Some(trace) = &self.filter.trace_id
            && !matches!(lead, Some(Lead::Trace(_)))
        {
            let own = self.filter.traced_job().map(uuid);
            to.with(" AND (j.trace = ?", Box::new(trace.clone()), Type::TEXT);
            to.with(" OR (j.trace IS NULL AND j.id = ?))", Box::new(own), Type::UUID);
        }
        let labels = self.filter.labels.iter().map(|(name, value)| Term::Label(name, value));
        let code = self.filter.error_code.as_deref().map(Term::Code);
        for term in labels.chain(code).chain(self.filter.parent.map(Term::Parent)) {
            let numbers = self.numbers(term);
            if !matches!(lead, Some(Lead::Terms(led)) if *led == numbers) {
                to.fact("term", "j.id", numbers);
            }
        }
        match self.filter.state {
            None => {}
            Some(StateName::Queued) => to.text(" AND l.id IS NULL AND f.id IS NULL"),
            Some(state) => {
                let column =
                    if state.is_terminal() { "f.state" } else { "f.id IS NULL AND l.state" };
                to.with(&format!(" AND {column} = ?"), Box::new(state_number(state)), Type::INT2);
            }
        }
    }

    /// The numbers of a fact, one for each tenant.
    pub(super) fn numbers(&self, term: Term<'_>) -> Vec<i64> {
        self.tenants.iter().map(|tenant| terms::number(tenant.as_str(), term)).collect()
    }
}

/// Where a job stands, joined to `j`.
const STANDS: &str = "
    LEFT JOIN LATERAL (SELECT l.id, l.state, l.version, l.record FROM mainspring.live l
        WHERE l.id = j.id LIMIT 1) l ON true
    LEFT JOIN LATERAL (SELECT f.id, f.state, f.record FROM mainspring.finished f
        WHERE f.id = j.id LIMIT 1) f ON true";

/// What a limit is a limit of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// Of what is found for each value, the newest.
    Found,
    /// Of what is counted in the end. So many are looked at for each value until then.
    Counted(usize),
}

/// The search of a lead, with span, values and limit: `$1` to `$4`, and `$5` if it has more.
pub(super) fn searched(
    lead: &Lead,
    span: Span,
    limit: usize,
    bound: Bound,
) -> (String, Vec<(Value, Type)>) {
    let ([values, search], parameters) = search(lead, span, limit, bound);
    (format!("FROM {values}\n         CROSS JOIN LATERAL ({search}) d"), parameters)
}

/// The values of a lead as `v`, and the search for one of them.
fn search(
    lead: &Lead,
    span: Span,
    limit: usize,
    bound: Bound,
) -> ([String; 2], Vec<(Value, Type)>) {
    let (values, kind, name) = lead.values();
    let mut parameters: Vec<(Value, Type)> = vec![
        (Box::new(span.end), Type::UUID),
        (Box::new(span.floor), Type::UUID),
        (values, kind),
        (Box::new(i64::try_from(limit).unwrap_or(i64::MAX)), Type::INT8),
    ];
    parameters.extend(lead.also());
    let order = match (bound, lead) {
        // Any of them will do, as they come.
        (Bound::Counted(_), Lead::OnTheWay(..)) => String::new(),
        // The order keeps the plan to the index, whatever the table is thought to hold.
        (Bound::Counted(within), _) => match i64::try_from(within) {
            Ok(within) => format!("ORDER BY id DESC LIMIT {within}"),
            Err(_) => "ORDER BY id DESC".to_owned(),
        },
        (Bound::Found, Lead::OnTheWay(..)) => "LIMIT $4".to_owned(),
        (Bound::Found, _) => "ORDER BY id DESC LIMIT $4".to_owned(),
    };
    let values = format!("unnest($3::{name}[]) WITH ORDINALITY v (v, n)");
    let search = format!("{} AND id < $1 AND id >= $2 {order}", lead.source());
    ([values, search], parameters)
}

/// Ids a lead finds, newest first for each of its values.
pub(super) async fn candidates(
    server: &ThisServer,
    lead: &Lead,
    span: Span,
    share: usize,
) -> Result<Vec<(i64, Uuid)>, Fault> {
    let (sql, values) = found(lead, span, share);
    let mut ids = Vec::new();
    for row in run(server, &sql, &values).await? {
        let (value, found): (i64, Vec<Uuid>) = (row.try_get(0)?, row.try_get(1)?);
        ids.extend(found.into_iter().map(|id| (value, id)));
    }
    Ok(ids)
}

/// The statement: a row for each value of the lead, with all that it finds in one array. Thousands
/// of rows with an id each cost both sides more than finding them does.
fn found(lead: &Lead, span: Span, share: usize) -> (String, Vec<(Value, Type)>) {
    let ([values, search], parameters) = search(lead, span, share, Bound::Found);
    (format!("SELECT v.n, ARRAY({search}) FROM {values}"), parameters)
}

/// How many ids a lead finds, up to `most`.
pub(super) async fn measure(
    server: &ThisServer,
    lead: &Lead,
    span: Span,
    most: usize,
) -> Result<usize, Fault> {
    let (sql, values) = measured(lead, span, most);
    counted(&run(server, &sql, &values).await?)
}

fn measured(lead: &Lead, span: Span, most: usize) -> (String, Vec<(Value, Type)>) {
    let (mut sql, values) = searched(lead, span, most, Bound::Found);
    if let Lead::OnTheWay(..) = lead {
        let (kind, whole) = (lead.values().2, lead.whole());
        sql = format!("FROM unnest($3::{kind}[]) v (v) CROSS JOIN LATERAL ({whole} LIMIT $4) d");
    }
    (format!("SELECT count(*) FROM (SELECT 1 {sql} LIMIT $4) c"), values)
}

/// How many of the first `within` jobs a lead finds for each value are wanted, up to `most`.
pub(super) async fn count(
    server: &ThisServer,
    lead: &Lead,
    wanted: &Pieces<'_>,
    span: Span,
    (within, most): (usize, usize),
) -> Result<usize, Fault> {
    let (sql, values) = count_of(lead, wanted, span, (within, most));
    counted(&run(server, &sql, &values).await?)
}

fn count_of(
    lead: &Lead,
    wanted: &Pieces<'_>,
    span: Span,
    (within, most): (usize, usize),
) -> (String, Vec<(Value, Type)>) {
    let (sql, values) = searched(lead, span, most, Bound::Counted(within));
    let mut conditions = Conditions::new(values);
    wanted.add_to(&mut conditions, Some(lead));
    let stands = if wanted.filter.state.is_some() { STANDS } else { "" };
    let Conditions { sql: conditions, values } = conditions;
    let job = match !conditions.is_empty() {
        true => {
            "CROSS JOIN LATERAL (SELECT j.id, j.lane, j.user_id, j.trace FROM mainspring.job j
                 WHERE j.id = d.id LIMIT 1) j"
        }
        false => "",
    };
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 {sql} {job} {stands} WHERE true{conditions} LIMIT $4) c"
    );
    (sql, values)
}

/// The wanted ones of some jobs, newest first.
pub(super) async fn read(
    server: &ThisServer,
    ids: &[Uuid],
    wanted: &Pieces<'_>,
    limit: usize,
) -> Result<Vec<Row>, Fault> {
    let (sql, values) = read_of(ids, wanted, limit);
    run(server, &sql, &values).await
}

fn read_of(ids: &[Uuid], wanted: &Pieces<'_>, limit: usize) -> (String, Vec<(Value, Type)>) {
    let values: Vec<(Value, Type)> = vec![
        (Box::new(ids.to_vec()), Type::UUID_ARRAY),
        (Box::new(i64::try_from(limit).unwrap_or(i64::MAX)), Type::INT8),
    ];
    let mut conditions = Conditions::new(values);
    wanted.add_to(&mut conditions, None);
    let Conditions { sql: conditions, values } = conditions;
    let sql = format!(
        "SELECT j.id, j.lane, j.priority, j.max_retries, j.timeout_ms, j.created_at, j.run_at,
             j.user_id, j.payload, j.trace, j.more::text, l.version, l.record, f.record
         FROM unnest($1::uuid[]) w (id)
         CROSS JOIN LATERAL (SELECT * FROM mainspring.job j WHERE j.id = w.id LIMIT 1) j
         {STANDS}
         WHERE true{conditions}
         ORDER BY j.id DESC LIMIT $2"
    );
    (sql, values)
}

/// From one lane of a user to the next by the index, however many jobs are between.
const LANES_OF_USER: &str = "WITH RECURSIVE lanes (lane) AS (
        (SELECT lane FROM mainspring.job WHERE user_id = $1 ORDER BY lane LIMIT 1)
        UNION ALL
        SELECT (SELECT lane FROM mainspring.job j WHERE j.user_id = $1 AND j.lane > lanes.lane
            ORDER BY j.lane LIMIT 1)
        FROM lanes WHERE lanes.lane IS NOT NULL
    )
    SELECT lane FROM lanes WHERE lane IS NOT NULL";

/// The lanes a user has jobs in, of those that are wanted.
pub(super) async fn lanes_of_user(
    server: &ThisServer,
    user: &str,
    wanted: Option<&[i32]>,
) -> Result<Vec<i32>, Fault> {
    let values: [(Value, Type); 1] = [(Box::new(user.to_owned()), Type::TEXT)];
    let rows = run(server, LANES_OF_USER, &values).await?;
    let lanes: Result<Vec<i32>, Fault> = rows.iter().map(|row| Ok(row.try_get(0)?)).collect();
    let wanted = wanted.map(|wanted| wanted.iter().copied().collect::<BTreeSet<i32>>());
    let is_wanted = |lane: &i32| wanted.as_ref().is_none_or(|wanted| wanted.contains(lane));
    Ok(lanes?.into_iter().filter(is_wanted).collect())
}

/// A statement of each kind, under a name, with the types of its parameters: for the test of plans.
pub(super) fn samples() -> Vec<(String, String, Vec<Type>)> {
    use super::lead::OnTheWay;
    let mut filter = JobFilter::of(Scope::All);
    let span = Span::of(&filter, None);
    filter.state = Some(StateName::Failed);
    filter.trace_id = Some("t".to_owned());
    filter.labels = vec![("a".to_owned(), "b".to_owned())];
    filter.error_code = Some("E".to_owned());
    let (lanes, user) = (Some(vec![1, 2]), Some("user1".to_owned()));
    let waiting_lanes = Some(vec![1, 2, 3]);
    let tenants = vec![TenantId::stored("tenant1".into()), TenantId::stored("tenant2".into())];
    let all = Pieces { filter: &filter, lanes, waiting_lanes, user, tenants };
    let leads = [
        ("all", Lead::All),
        ("lanes", Lead::Lanes(vec![1, 2])),
        ("user", Lead::User("user1".to_owned(), vec![1, 2])),
        ("trace", Lead::Trace("t".to_owned())),
        ("terms", Lead::Terms(vec![1, 2])),
        ("items", Lead::AllItems),
        ("item_terms", Lead::ItemTerms(vec![1, 2])),
        ("live", Lead::Live(2)),
        ("finished", Lead::Finished(5)),
        ("waiting", Lead::OnTheWay(OnTheWay::Queued, Some(vec![1, 2]))),
    ];
    let mut samples = Vec::new();
    let mut add = |name: String, (sql, values): (String, Vec<(Value, Type)>)| {
        samples.push((name, sql, values.into_iter().map(|(_, kind)| kind).collect()));
    };
    for (name, lead) in leads {
        add(format!("list_{name}"), found(&lead, span, 20));
        add(format!("list_{name}_measure"), measured(&lead, span, 20));
        if !matches!(lead, Lead::AllItems | Lead::ItemTerms(_)) {
            add(format!("list_{name}_count"), count_of(&lead, &all, span, (100, 20)));
        }
    }
    add("list_read".to_owned(), read_of(&[], &all, 20));
    let user: (Value, Type) = (Box::new(String::new()), Type::TEXT);
    add("list_lanes_of_user".to_owned(), (LANES_OF_USER.to_owned(), vec![user]));
    samples
}

pub(super) fn counted(rows: &[Row]) -> Result<usize, Fault> {
    let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

pub(super) async fn run(
    server: &ThisServer,
    sql: &str,
    values: &[(Value, Type)],
) -> Result<Vec<Row>, Fault> {
    let mut connection = server.connections.get().await?;
    connection.composed(&in_schema(sql, &server.config.schema), values).await
}
