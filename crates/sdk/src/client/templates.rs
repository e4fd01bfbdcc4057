//! Calls about system templates, by way of the job orchestration contract: the native one has
//! their schedules like any others.

use super::{Call, Client, Repeat};
use crate::error::Error;
use reqwest::Method;
use serde::{Deserialize, Serialize};

/// A template of the server's configuration, and its schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// Its name.
    pub template_id: String,
    /// The type of its jobs.
    pub task_type: String,
    /// `interval` or `cron`.
    pub schedule_type: String,
    /// Seconds, or the cron expression.
    pub expression: String,
    /// Whether its schedule is there.
    pub registered: bool,
    /// Its schedule.
    pub schedule_id: Option<String>,
    /// `active` or `stopped`.
    pub schedule_status: Option<String>,
}

/// What became of the templates when they were recovered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateRecovery {
    /// How many there are.
    pub total: u64,
    /// How many schedules were made.
    pub created: u64,
    /// How many were there.
    pub deduplicated: u64,
    /// Each of them.
    pub items: Vec<RecoveredTemplate>,
}

/// What became of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveredTemplate {
    /// Its name.
    pub template_id: String,
    /// Its schedule.
    pub schedule_id: String,
    /// `created`, or `deduplicated` if it was there.
    pub status: String,
}

#[derive(Deserialize)]
struct Listed {
    items: Vec<Template>,
}

#[derive(Deserialize)]
struct Recovered {
    summary: TemplateRecovery,
}

const PATH: &str = "/jobs/system-schedules/templates";

impl Client {
    /// The templates of the server's configuration, by name; for admins.
    ///
    /// # Errors
    /// If the server refuses, does not speak the contract `/jobs`, or cannot be reached.
    pub async fn templates(&self) -> Result<Vec<Template>, Error> {
        let Listed { items } = self.call(Call::get(PATH.to_owned())).await?;
        Ok(items)
    }

    /// Makes the schedules of templates that are missing; for admins. Safe to repeat: each is there
    /// once.
    ///
    /// # Errors
    /// If the server refuses, does not speak the contract `/jobs`, or cannot be reached.
    pub async fn recover_templates(&self) -> Result<TemplateRecovery, Error> {
        let call = Call::new(Method::POST, format!("{PATH}/recover"), Repeat::Safe);
        let Recovered { summary } = self.call(call).await?;
        Ok(summary)
    }
}
