//! Rows as columns: what statements over arrays take.

use crate::connections::{Call, Value};
use crate::queries::Query;
use crate::values::{At, uuid};
use mainspring_kernel::{Job, Timestamp};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// Jobs that wait, as columns.
#[derive(Default)]
pub(crate) struct Waits {
    pub(crate) lanes: Vec<i32>,
    pub(crate) keys: Vec<i64>,
    pub(crate) ids: Vec<Uuid>,
    pub(crate) due_at: Vec<At>,
    pub(crate) is_retry: Vec<bool>,
}

/// Rows of `live`, as columns.
#[derive(Default)]
pub(crate) struct Lives {
    pub(crate) ids: Vec<Uuid>,
    pub(crate) versions: Vec<i32>,
    pub(crate) states: Vec<i16>,
    pub(crate) lanes: Vec<i32>,
    pub(crate) alarms: Vec<Option<At>>,
    pub(crate) limits: Vec<Option<Uuid>>,
    pub(crate) workers: Vec<Option<String>>,
    pub(crate) records: Vec<Vec<u8>>,
}

#[derive(Default)]
pub(crate) struct Ends {
    pub(crate) ids: Vec<Uuid>,
    pub(crate) states: Vec<i16>,
    pub(crate) at: Vec<At>,
    pub(crate) records: Vec<Vec<u8>>,
}

#[derive(Default)]
pub(crate) struct Submissions {
    pub(crate) ids: Vec<Uuid>,
    pub(crate) lanes: Vec<i32>,
    pub(crate) priorities: Vec<i16>,
    pub(crate) max_retries: Vec<i16>,
    pub(crate) timeouts: Vec<i32>,
    pub(crate) run_at: Vec<At>,
    pub(crate) users: Vec<String>,
    pub(crate) payloads: Vec<Text>,
    pub(crate) traces: Vec<Option<String>>,
    pub(crate) more: Vec<Option<String>>,
}

/// A payload that is shared and not copied.
#[derive(Debug)]
pub(crate) struct Text(pub(crate) mainspring_kernel::job::Payload);

impl tokio_postgres::types::ToSql for Text {
    fn to_sql(
        &self,
        kind: &tokio_postgres::types::Type,
        out: &mut bytes::BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        (&*self.0).to_sql(kind, out)
    }

    fn accepts(kind: &tokio_postgres::types::Type) -> bool {
        *kind == tokio_postgres::types::Type::TEXT
    }

    tokio_postgres::types::to_sql_checked!();
}

impl Waits {
    pub(crate) fn push(
        &mut self,
        lane: i32,
        key: i64,
        job: &Job,
        due_at: Timestamp,
        is_retry: bool,
    ) {
        self.lanes.push(lane);
        self.keys.push(key);
        self.ids.push(uuid(job.id));
        self.due_at.push(At(due_at));
        self.is_retry.push(is_retry);
    }

    /// Rows that are deleted.
    pub(crate) fn delete(self, query: Query) -> Option<Call> {
        let values: Vec<Value> = vec![Box::new(self.lanes), Box::new(self.keys)];
        call(query, values, self.ids, Vec::new())
    }

    /// Rows that are deleted wherever they are; each may stand in one of two lanes.
    pub(crate) fn leave(self, beside: Vec<i32>) -> Option<Call> {
        let before: Vec<Value> = vec![Box::new(self.lanes), Box::new(self.keys)];
        call(Query::DeleteWaiting, before, self.ids, vec![Box::new(beside)])
    }

    /// Rows of `ready`.
    pub(crate) fn insert_ready(self) -> Option<Call> {
        let before: Vec<Value> = vec![Box::new(self.lanes), Box::new(self.keys)];
        let after: Vec<Value> = vec![Box::new(self.due_at), Box::new(self.is_retry)];
        call(Query::InsertReady, before, self.ids, after)
    }

    /// Rows of `waiting`.
    pub(crate) fn insert_waiting(self) -> Option<Call> {
        let after: Vec<Value> = vec![
            Box::new(self.due_at),
            Box::new(self.lanes),
            Box::new(self.keys),
            Box::new(self.is_retry),
        ];
        call(Query::InsertWaiting, Vec::new(), self.ids, after)
    }
}

impl Lives {
    /// Rows that are new.
    pub(crate) fn insert(self) -> Option<Call> {
        let after: Vec<Value> = vec![
            Box::new(self.states),
            Box::new(self.lanes),
            Box::new(self.alarms),
            Box::new(self.limits),
            Box::new(self.workers),
            Box::new(self.records),
        ];
        call(Query::InsertLive, Vec::new(), self.ids, after)
    }

    /// Rows that change.
    pub(crate) fn update(self) -> Option<Call> {
        let after: Vec<Value> = vec![
            Box::new(self.versions),
            Box::new(self.states),
            Box::new(self.alarms),
            Box::new(self.limits),
            Box::new(self.workers),
            Box::new(self.records),
        ];
        call(Query::UpdateLive, Vec::new(), self.ids, after)
    }
}

impl Ends {
    /// Rows of `finished`.
    pub(crate) fn insert(self) -> Option<Call> {
        let after: Vec<Value> =
            vec![Box::new(self.states), Box::new(self.at), Box::new(self.records)];
        call(Query::InsertFinished, Vec::new(), self.ids, after)
    }
}

impl Submissions {
    /// Rows of `job`.
    pub(crate) fn insert(self, created_at: At) -> Option<Call> {
        let after: Vec<Value> = vec![
            Box::new(self.lanes),
            Box::new(self.priorities),
            Box::new(self.max_retries),
            Box::new(self.timeouts),
            Box::new(created_at),
            Box::new(self.run_at),
            Box::new(self.users),
            Box::new(self.payloads),
            Box::new(self.traces),
            Box::new(self.more),
        ];
        call(Query::InsertJobs, Vec::new(), self.ids, after)
    }
}

/// A statement over rows of two columns.
pub(crate) fn pairs<A, B>(query: Query, (first, second): (Vec<A>, Vec<B>)) -> Option<Call>
where
    A: ToSql + Sync + Send + 'static,
    B: ToSql + Sync + Send + 'static,
{
    (!first.is_empty()).then(|| Call::new(query, vec![Box::new(first), Box::new(second)]))
}

/// A statement over rows with these ids; none if there are none.
fn call(query: Query, before: Vec<Value>, ids: Vec<Uuid>, after: Vec<Value>) -> Option<Call> {
    if ids.is_empty() {
        return None;
    }
    let mut values = before;
    values.push(Box::new(ids));
    values.extend(after);
    Some(Call::new(query, values))
}
