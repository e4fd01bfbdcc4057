//! Calls about types, queues, workers and the server itself.

use super::{Call, Client, Repeat, path, path_with};
use crate::error::Error;
use mainspring_api::Page;
use mainspring_api::audit::{AuditLine, AuditVerdict};
use mainspring_api::registry::{Queue, SetQueue, SetTenant, SetType, Tenant, Type, Worker};
use mainspring_api::runtime::Runtime;
use reqwest::Method;

impl Client {
    /// Every registered type, by name.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn types(&self) -> Result<Page<Type>, Error> {
        self.call(Call::get(path(&["types"]))).await
    }

    /// One type.
    ///
    /// # Errors
    /// If there is none of that name, or the server cannot be reached.
    pub async fn job_type(&self, name: &str) -> Result<Type, Error> {
        self.call(Call::get(path(&["types", name]))).await
    }

    /// Registers or replaces a type.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn set_type(&self, name: &str, spec: &SetType) -> Result<Type, Error> {
        self.call(Call::put(path(&["types", name]), spec)).await
    }

    /// Stops handing out jobs of a type.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn pause_type(&self, name: &str) -> Result<Type, Error> {
        let path = path(&["types", name, "pause"]);
        self.call(Call::new(Method::POST, path, Repeat::Safe)).await
    }

    /// Hands out jobs of a type again.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn resume_type(&self, name: &str) -> Result<Type, Error> {
        let path = path(&["types", name, "resume"]);
        self.call(Call::new(Method::POST, path, Repeat::Safe)).await
    }

    /// Closes the circuit of a type.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn reset_circuit(&self, name: &str) -> Result<Type, Error> {
        let path = path(&["types", name, "circuit", "reset"]);
        self.call(Call::new(Method::POST, path, Repeat::Safe)).await
    }

    /// Every tenant that somebody has set.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn tenants(&self) -> Result<Vec<Tenant>, Error> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let query = [("limit", Some("100".to_owned())), ("cursor", cursor)];
            let page: Page<Tenant> = self.call(Call::get(path_with(&["tenants"], &query))).await?;
            all.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                all.sort_by(|a, b| a.tenant_id.cmp(&b.tenant_id));
                return Ok(all);
            }
        }
    }

    /// What a tenant gets, may have, and has.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn tenant(&self, name: &str) -> Result<Tenant, Error> {
        self.call(Call::get(path(&["tenants", name]))).await
    }

    /// Says what a tenant gets and may have.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn set_tenant(&self, name: &str, spec: &SetTenant) -> Result<Tenant, Error> {
        self.call(Call::put(path(&["tenants", name]), spec)).await
    }

    /// Every queue with its numbers.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn queues(&self) -> Result<Page<Queue>, Error> {
        self.call(Call::get(path(&["queues"]))).await
    }

    /// Sets the order in which a queue hands out its jobs.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn set_queue(&self, name: &str, spec: &SetQueue) -> Result<Queue, Error> {
        self.call(Call::put(path(&["queues", name]), spec)).await
    }

    /// Stops a queue from handing out jobs.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn pause_queue(&self, name: &str) -> Result<Queue, Error> {
        let path = path(&["queues", name, "pause"]);
        self.call(Call::new(Method::POST, path, Repeat::Safe)).await
    }

    /// Lets a queue hand out jobs again.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn resume_queue(&self, name: &str) -> Result<Queue, Error> {
        let path = path(&["queues", name, "resume"]);
        self.call(Call::new(Method::POST, path, Repeat::Safe)).await
    }

    /// Workers heard of lately, by name; a page of up to 100 behind `cursor`, or the first.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn workers(&self, cursor: Option<&str>) -> Result<Page<Worker>, Error> {
        let query = [("limit", Some("100".to_owned())), ("cursor", cursor.map(str::to_owned))];
        self.call(Call::get(path_with(&["workers"], &query))).await
    }

    /// The latest lines of the audit trail, up to 100.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn audit(&self, limit: u32) -> Result<Page<AuditLine>, Error> {
        let query = [("limit", Some(limit.to_string()))];
        self.call(Call::get(path_with(&["audit"], &query))).await
    }

    /// Whether the audit trail is whole, and the latest moves of jobs are what was sealed, or those
    /// before a position: `history.next` of an earlier answer.
    ///
    /// # Errors
    /// If it is not, or if the server refuses or cannot be reached.
    pub async fn verify_audit(&self, before: Option<u64>) -> Result<AuditVerdict, Error> {
        let query = [("before", before.map(|before| before.to_string()))];
        self.call(Call::get(path_with(&["audit", "verify"], &query))).await
    }

    /// The server at a glance.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn runtime(&self) -> Result<Runtime, Error> {
        self.call(Call::get(path(&["runtime"]))).await
    }
}
