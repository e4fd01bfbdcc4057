//! Calls about the dead letter queue and tokens.

use super::{Call, Client, Repeat, path, path_with};
use crate::error::Error;
use mainspring_api::dlq::{
    Approve, BreakGlass, Discard, DlqGroups, DlqItem, DlqStanding, Requeued,
};
use mainspring_api::token::{Caller, IssueToken, RotateToken, Token};
use mainspring_api::{IDEMPOTENCY_HEADER, Page, Time};
use reqwest::Method;

/// Which DLQ items to list: the same as for jobs, but `status` is the item's, and so are the times.
pub type ItemFilter = super::JobFilter;

impl Client {
    /// DLQ items, newest first.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn dlq_items(&self, filter: &ItemFilter) -> Result<Page<DlqItem>, Error> {
        self.call(Call::get(path_with(&["dlq", "items"], &filter.query()))).await
    }

    /// DLQ items by their failure, those with most first. With an instant it is told which failures
    /// were first seen then or later.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn dlq_groups(
        &self,
        filter: &ItemFilter,
        new_since: Option<Time>,
    ) -> Result<DlqGroups, Error> {
        let mut query = filter.query();
        query.push(("new_since", new_since.map(|at| at.to_string())));
        self.call(Call::get(path_with(&["dlq", "groups"], &query))).await
    }

    /// One DLQ item with its payload.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn dlq_item(&self, id: &str) -> Result<DlqItem, Error> {
        self.call(Call::get(path(&["dlq", "items", id]))).await
    }

    /// Runs an item again as a new job. The key makes the call safe to repeat.
    ///
    /// # Errors
    /// If the item is not open, or the server refuses or cannot be reached.
    pub async fn requeue(&self, id: &str, key: &str) -> Result<Requeued, Error> {
        let call = Call::new(Method::POST, path(&["dlq", "items", id, "requeue"]), Repeat::Safe);
        self.call(call.header(IDEMPOTENCY_HEADER, key)).await
    }

    /// Asks for an item to be dropped; another person has to approve.
    ///
    /// # Errors
    /// If the item is not open, or the server refuses or cannot be reached.
    pub async fn discard(&self, id: &str, reason: &str) -> Result<DlqStanding, Error> {
        let body = Discard { reason: reason.to_owned(), ..Discard::default() };
        self.call(Call::post(path(&["dlq", "items", id, "discard"]), &body, Repeat::Unsafe)).await
    }

    /// Agrees to drop an item that was read at `version`, as another person than the one who
    /// asked.
    ///
    /// # Errors
    /// If nobody asked, the item has changed, the two are not two people, or the server refuses or
    /// cannot be reached.
    pub async fn approve_discard(&self, id: &str, version: u32) -> Result<DlqStanding, Error> {
        let path = path(&["dlq", "items", id, "approve"]);
        self.call(Call::post(path, &Approve { version }, Repeat::Unsafe)).await
    }

    /// Drops an item alone, in an emergency. The item shows for ever who did it, why and when.
    ///
    /// # Errors
    /// If the caller is no admin, the item is closed, or the server cannot be reached.
    pub async fn break_glass(&self, id: &str, reason: &str) -> Result<DlqStanding, Error> {
        let path = path(&["dlq", "items", id, "break-glass"]);
        let body = BreakGlass { reason: reason.to_owned() };
        self.call(Call::post(path, &body, Repeat::Unsafe)).await
    }

    /// Refuses to drop an item: it is open again.
    ///
    /// # Errors
    /// If nobody asked, or the server refuses or cannot be reached.
    pub async fn reject_discard(&self, id: &str) -> Result<DlqStanding, Error> {
        let path = path(&["dlq", "items", id, "reject"]);
        self.call(Call::new(Method::POST, path, Repeat::Unsafe)).await
    }

    /// Whose token this client has.
    ///
    /// # Errors
    /// If it is nobody's, or the server cannot be reached.
    pub async fn whoami(&self) -> Result<Caller, Error> {
        self.call(Call::get(path(&["whoami"]))).await
    }

    /// Issues a token. Its secret is in the answer and nowhere else.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn issue_token(&self, wish: &IssueToken) -> Result<Token, Error> {
        self.call(Call::post(path(&["tokens"]), wish, Repeat::Unsafe)).await
    }

    /// Every token, without secrets.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn tokens(&self) -> Result<Page<Token>, Error> {
        self.call(Call::get(path(&["tokens"]))).await
    }

    /// Replaces a token by one with a new secret, which is in the answer and nowhere else. The old
    /// one goes on working for so many seconds.
    ///
    /// # Errors
    /// If there is no such token, or the server refuses or cannot be reached.
    pub async fn rotate_token(&self, id: &str, overlap_seconds: u64) -> Result<Token, Error> {
        let wish = RotateToken { overlap_seconds: Some(overlap_seconds) };
        self.call(Call::post(path(&["tokens", id, "rotate"]), &wish, Repeat::Unsafe)).await
    }

    /// Ends a token at once.
    ///
    /// # Errors
    /// If there is no such token, or the server refuses or cannot be reached.
    pub async fn revoke_token(&self, id: &str) -> Result<Token, Error> {
        let call = Call::new(Method::DELETE, path(&["tokens", id]), Repeat::Safe);
        self.call(call).await
    }
}
