//! Calls about subscriptions.

use super::{Call, Client, Repeat, path, path_with};
use crate::error::Error;
use mainspring_api::Page;
use mainspring_api::subscription::{
    CreateSubscription, PauseSubscription, RemovedSubscription, RotateSecret, Subscription,
};
use reqwest::Method;

/// Which subscriptions to list. Fields left `None` do not filter.
#[derive(Debug, Clone, Default)]
pub struct SubscriptionsFilter {
    /// Only those in this state.
    pub status: Option<String>,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
}

impl Client {
    /// Makes a subscription. Its secret is in this answer only.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn create_subscription(
        &self,
        wish: &CreateSubscription,
    ) -> Result<Subscription, Error> {
        self.call(Call::post(path(&["subscriptions"]), wish, Repeat::Unsafe)).await
    }

    /// Subscriptions, newest first.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn subscriptions(
        &self,
        filter: &SubscriptionsFilter,
    ) -> Result<Page<Subscription>, Error> {
        let SubscriptionsFilter { status, cursor, limit } = filter.clone();
        let query = [
            ("status", status),
            ("cursor", cursor),
            ("limit", limit.map(|limit| limit.to_string())),
        ];
        self.call(Call::get(path_with(&["subscriptions"], &query))).await
    }

    /// One subscription.
    ///
    /// # Errors
    /// If it cannot be seen, or the server cannot be reached.
    pub async fn subscription(&self, id: &str) -> Result<Subscription, Error> {
        self.call(Call::get(path(&["subscriptions", id]))).await
    }

    /// Has a subscription rest until it is resumed.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn pause_subscription(
        &self,
        id: &str,
        note: Option<&str>,
    ) -> Result<Subscription, Error> {
        let body = PauseSubscription { note: note.map(ToOwned::to_owned) };
        self.call(Call::post(path(&["subscriptions", id, "pause"]), &body, Repeat::Safe)).await
    }

    /// Has a subscription go on where it was, at once.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn resume_subscription(&self, id: &str) -> Result<Subscription, Error> {
        let path = path(&["subscriptions", id, "resume"]);
        self.call(Call::new(Method::POST, path, Repeat::Safe)).await
    }

    /// Has requests signed with a new secret, which is in this answer only.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn rotate_subscription_secret(
        &self,
        id: &str,
        overlap_seconds: Option<u64>,
    ) -> Result<Subscription, Error> {
        let body = RotateSecret { overlap_seconds };
        let path = path(&["subscriptions", id, "rotate-secret"]);
        self.call(Call::post(path, &body, Repeat::Unsafe)).await
    }

    /// Takes a subscription away.
    ///
    /// # Errors
    /// If the server refuses or cannot be reached.
    pub async fn delete_subscription(&self, id: &str) -> Result<RemovedSubscription, Error> {
        self.call(Call::new(Method::DELETE, path(&["subscriptions", id]), Repeat::Unsafe)).await
    }
}
