//! Lists of any kind, as the server tells them.

use super::{Call, Client, path, path_with};
use crate::error::Error;
use mainspring_api::{Json, Page};

impl Client {
    /// One page of a list, by the parts of its path: `["dlq", "items"]`. Entries are as they came.
    ///
    /// # Errors
    /// If there is no such list, or the server refuses or cannot be reached.
    ///
    /// ```no_run
    /// # async fn example(client: mainspring_sdk::Client) -> Result<(), mainspring_sdk::Error> {
    /// let page = client.page(&["schedules"], None).await?;
    /// println!("{} of them", page.items.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn page(&self, list: &[&str], cursor: Option<&str>) -> Result<Page<Json>, Error> {
        let limit = Some("100".to_owned());
        let query = [("limit", limit), ("cursor", cursor.map(ToOwned::to_owned))];
        self.call(Call::get(path_with(list, &query))).await
    }

    /// A list that has no pages.
    ///
    /// # Errors
    /// If there is no such list, or the server refuses or cannot be reached.
    pub async fn whole(&self, list: &[&str]) -> Result<Page<Json>, Error> {
        self.call(Call::get(path(list))).await
    }
}
