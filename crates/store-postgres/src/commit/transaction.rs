//! The transaction of one try. It begins with the first statements that are sent, and those begin
//! with `guard()`: the registries (`type`, `queue`, `token`) are still those that the batch decides
//! by, and nobody changes them before it ends.

use crate::connections::{Call, Connection, Part};
use crate::fault::Fault;
use crate::queries::Query;
use tokio_postgres::Row;

/// A transaction that may have begun.
pub(crate) struct Transaction<'a> {
    pub(crate) connection: Connection<'a>,
    /// The version of the registries that the batch decides by.
    registry_version: i64,
    has_begun: bool,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(connection: Connection<'a>, registry_version: i64) -> Self {
        Transaction { connection, registry_version, has_begun: false }
    }

    fn guard(&self, query: Query) -> Call {
        Call::new(query, vec![Box::new(self.registry_version)])
    }

    /// Begins as one that changes the registries: no other server commits until it ends.
    pub(crate) async fn begin_for_change(&mut self) -> Result<(), Fault> {
        let guard = self.guard(Query::GuardForChange);
        self.send(vec![guard]).await.map(|_| ())
    }

    /// Sends statements, the first ones with the beginning; answers the rows of each.
    pub(crate) async fn run(&mut self, mut calls: Vec<Call>) -> Result<Vec<Vec<Row>>, Fault> {
        if self.has_begun {
            return self.send(calls).await;
        }
        calls.insert(0, self.guard(Query::Guard));
        let mut answers = self.send(calls).await?;
        answers.remove(0);
        Ok(answers)
    }

    /// Sends one statement.
    pub(crate) async fn run_one(&mut self, call: Call) -> Result<Vec<Row>, Fault> {
        Ok(self.run(vec![call]).await?.pop().unwrap_or_default())
    }

    async fn send(&mut self, calls: Vec<Call>) -> Result<Vec<Vec<Row>>, Fault> {
        let part = if self.has_begun { Part::Middle } else { Part::First };
        self.has_begun = true;
        let outcome = self.connection.run(part, calls).await;
        self.has_begun = outcome.is_ok();
        outcome
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Sends the last statements and the commit.
    pub(crate) async fn commit(mut self, mut calls: Vec<Call>) -> Result<(), Fault> {
        if !self.has_begun {
            calls.insert(0, self.guard(Query::Guard));
        }
        let part = if self.has_begun { Part::Last } else { Part::All };
        let outcome = self.connection.run(part, calls).await;
        // A statement that was answered with a no took the whole transaction down.
        let is_refused = self.connection.is_refused;
        match outcome {
            Err(Fault::Away(why)) if !is_refused => Err(Fault::Unknown(why)),
            outcome => outcome.map(|_| ()),
        }
    }

    /// Undoes everything.
    pub(crate) async fn undo(mut self) {
        if self.has_begun {
            self.connection.undo().await;
        }
    }
}
