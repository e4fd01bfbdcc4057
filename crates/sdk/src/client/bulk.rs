//! Calls about bulk operations.

use super::{Call, Client, Repeat, path, path_with};
use crate::error::Error;
use mainspring_api::Page;
use mainspring_api::bulk::{ApproveBulk, Bulk, BulkOutcome, BulkPreview, CreateBulk, StopBulk};

impl Client {
    /// What an operation would be about; nothing is done.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn preview_bulk(&self, wish: &CreateBulk) -> Result<BulkPreview, Error> {
        let wish = CreateBulk { dry_run: Some(true), ..wish.clone() };
        self.call(Call::post(path(&["bulk"]), &wish, Repeat::Safe)).await
    }

    /// Begins an operation.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn create_bulk(&self, wish: &CreateBulk) -> Result<Bulk, Error> {
        let wish = CreateBulk { dry_run: None, ..wish.clone() };
        self.call(Call::post(path(&["bulk"]), &wish, Repeat::Unsafe)).await
    }

    /// Operations of the tenant, newest first.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn bulks(
        &self,
        status: Option<String>,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<Page<Bulk>, Error> {
        let query = [("status", status), ("cursor", cursor), ("limit", Some(limit.to_string()))];
        self.call(Call::get(path_with(&["bulk"], &query))).await
    }

    /// One operation.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn bulk(&self, id: &str) -> Result<Bulk, Error> {
        self.call(Call::get(path(&["bulk", id]))).await
    }

    /// What became of each thing, in the order in which it was done.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn bulk_items(
        &self,
        id: &str,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<Page<BulkOutcome>, Error> {
        let query = [("cursor", cursor), ("limit", Some(limit.to_string()))];
        self.call(Call::get(path_with(&["bulk", id, "items"], &query))).await
    }

    /// Agrees to an operation that was read at `version`, as another person than the one who asked.
    ///
    /// # Errors
    /// If it does not wait for that, the two are not two people, or the server refuses or cannot be
    /// reached.
    pub async fn approve_bulk(&self, id: &str, version: u32) -> Result<Bulk, Error> {
        let body = ApproveBulk { version };
        self.call(Call::post(path(&["bulk", id, "approve"]), &body, Repeat::Unsafe)).await
    }

    /// Ends an operation; what is done stays done.
    ///
    /// # Errors
    /// If it has ended, or the server refuses or cannot be reached.
    pub async fn stop_bulk(&self, id: &str, reason: Option<&str>) -> Result<Bulk, Error> {
        let body = StopBulk { reason: reason.map(ToOwned::to_owned) };
        self.call(Call::post(path(&["bulk", id, "stop"]), &body, Repeat::Unsafe)).await
    }
}
