//! One connection: sends statements in one go, perhaps with the beginning and the end of their
//! transaction, and leaves nothing open behind.

use super::session::Wait;
use super::{Call, Connections, Value};
use crate::fault::Fault;
use crate::outage::NO_ANSWER;
use deadpool_postgres::Object;
use futures_util::future::join_all;
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

/// Which part of its transaction is sent in one go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// From BEGIN to COMMIT.
    All,
    /// With BEGIN.
    First,
    /// Neither, or no transaction at all.
    Middle,
    /// With COMMIT.
    Last,
}

impl Part {
    const fn begins(self) -> bool {
        matches!(self, Part::All | Part::First)
    }

    const fn ends(self) -> bool {
        matches!(self, Part::All | Part::Last)
    }
}

/// One connection, for one transaction or a few reads.
pub(crate) struct Connection<'a> {
    client: Option<Object>,
    connections: &'a Connections,
    /// Whether the last transaction certainly failed: the database answered a statement with no.
    pub(crate) is_refused: bool,
    /// Whether a transaction may be open.
    is_open: bool,
    /// How long its transactions wait for locks.
    pub(crate) wait: Wait,
}

impl<'a> Connection<'a> {
    pub(super) fn new(client: Object, connections: &'a Connections) -> Self {
        Connection {
            client: Some(client),
            connections,
            is_refused: false,
            is_open: false,
            wait: Wait::Usual,
        }
    }
}

impl Connection<'_> {
    /// Runs one statement outside of a transaction.
    pub(crate) async fn one(&mut self, call: Call) -> Result<Vec<Row>, Fault> {
        if self.connections.is_pooled() {
            let mut rows = self.run(Part::All, vec![call]).await?;
            return Ok(rows.pop().unwrap_or_default());
        }
        let mut rows = self.run(Part::Middle, vec![call]).await?;
        Ok(rows.pop().unwrap_or_default())
    }

    /// Sends statements in one go, perhaps with the beginning and the end of their transaction.
    /// Answers the rows of each. After an error the transaction is gone.
    pub(crate) async fn run(
        &mut self,
        part: Part,
        calls: Vec<Call>,
    ) -> Result<Vec<Vec<Row>>, Fault> {
        let patience = self.connections.patience;
        self.run_within(patience, part, calls).await
    }

    /// The same for statements that may take their time.
    pub(crate) async fn run_within(
        &mut self,
        patience: Duration,
        part: Part,
        calls: Vec<Call>,
    ) -> Result<Vec<Vec<Row>>, Fault> {
        self.is_open |= part.begins();
        let started = Instant::now();
        let outcome = tokio::time::timeout(patience, self.send(part, &calls)).await;
        self.connections.times.took(started.elapsed());
        let outcome = outcome.unwrap_or_else(|_| Err(Fault::Away(NO_ANSWER.into())));
        match &outcome {
            Ok(_) => self.is_open &= !part.ends(),
            Err(fault) => self.clear(fault, part.ends()).await,
        }
        outcome
    }

    async fn send(&mut self, part: Part, calls: &[Call]) -> Result<Vec<Vec<Row>>, Fault> {
        let connections = self.connections;
        let Some(client) = &self.client else { return Err(Fault::Away("gone".into())) };
        let is_pooled = connections.is_pooled();
        let mut prepared: Vec<Option<Statement>> = Vec::with_capacity(calls.len());
        for call in calls {
            prepared.push(match is_pooled {
                true => None,
                false => {
                    let text = connections.queries.text(call.query);
                    Some(client.prepare_typed_cached(text, call.query.types()).await?)
                }
            });
        }
        // The first poll sends, and they are polled in this order.
        let begin = async {
            let begin = if is_pooled { connections.begin_pooled.as_str() } else { "BEGIN" };
            match part.begins() {
                true => client.batch_execute(&format!("{begin}{}", self.wait.setting())).await,
                false => Ok(()),
            }
        };
        let work = join_all(calls.iter().zip(&prepared).map(|(call, prepared)| async move {
            match prepared {
                Some(statement) => {
                    let values: Vec<&(dyn ToSql + Sync)> =
                        call.values.iter().map(|value| &**value as _).collect();
                    client.query(statement, &values).await
                }
                None => {
                    let types = call.query.types().iter().cloned();
                    let values: Vec<(&(dyn ToSql + Sync), _)> =
                        call.values.iter().map(|value| &**value as _).zip(types).collect();
                    client.query_typed(connections.queries.text(call.query), &values).await
                }
            }
        }));
        let end = async {
            match part.ends() {
                true => client.batch_execute("COMMIT").await,
                false => Ok(()),
            }
        };
        let (begin, work, end) = tokio::join!(biased; begin, work, end);
        let rows: Result<Vec<_>, _> = work.into_iter().collect();
        let rows = begin.and(rows);
        self.is_refused = rows.as_ref().is_err_and(|error| error.as_db_error().is_some());
        let rows = rows?;
        end?;
        Ok(rows)
    }

    /// Makes the connection usable again, or lets go of it.
    async fn clear(&mut self, fault: &Fault, has_ended: bool) {
        let Some(client) = &self.client else { return };
        let is_lost = matches!(fault, Fault::Away(_)) || client.is_closed();
        match (is_lost, has_ended) {
            (true, _) => self.discard(),
            (false, true) => self.is_open = false,
            (false, false) => self.undo().await,
        }
    }

    /// Undoes a transaction that was begun.
    pub(crate) async fn undo(&mut self) {
        let Some(client) = &self.client else { return };
        let patience = self.connections.patience;
        let undone = tokio::time::timeout(patience, client.batch_execute("ROLLBACK")).await;
        match undone {
            Ok(Ok(())) => self.is_open = false,
            _ => self.discard(),
        }
    }

    fn discard(&mut self) {
        if let Some(client) = self.client.take() {
            // Taken out of the pool, and closed with it.
            drop(Object::take(client));
            self.connections.shed();
        }
    }

    /// Text without parameters, outside of what is prepared: upkeep and migrations.
    pub(crate) async fn script(&mut self, sql: &str) -> Result<(), Fault> {
        let Some(client) = &self.client else { return Err(Fault::Away("gone".into())) };
        match client.batch_execute(sql).await {
            Ok(()) => Ok(()),
            Err(error) => {
                let fault = Fault::from(error);
                self.clear(&fault, false).await;
                Err(fault)
            }
        }
    }

    /// One statement that was composed at run time.
    pub(crate) async fn composed(
        &mut self,
        sql: &str,
        values: &[(Value, tokio_postgres::types::Type)],
    ) -> Result<Vec<Row>, Fault> {
        let Some(client) = &self.client else { return Err(Fault::Away("gone".into())) };
        let values: Vec<(&(dyn ToSql + Sync), _)> =
            values.iter().map(|(value, kind)| (&**value as _, kind.clone())).collect();
        let patience = self.connections.patience;
        let outcome = tokio::time::timeout(patience, client.query_typed(sql, &values)).await;
        let outcome = match outcome {
            Ok(answer) => answer.map_err(Fault::from),
            Err(_) => Err(Fault::Away(NO_ANSWER.into())),
        };
        if let Err(fault) = &outcome {
            self.clear(fault, true).await;
        }
        outcome
    }
}

impl Drop for Connection<'_> {
    /// Whoever gave up in the middle leaves a transaction open: that connection is closed, which
    /// undoes it, and not used again.
    fn drop(&mut self) {
        if self.is_open
            && let Some(client) = self.client.take()
        {
            drop(Object::take(client));
        }
    }
}
