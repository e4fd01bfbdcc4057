//! Events for one receiver, one signed request after another over a connection that is kept while
//! it is used. Where a URL leads is found out anew for every connection.

use super::address::{Allowed, Target};
use super::exchange::{Answer, Broken, Exchange, Line};
use super::signature::{self, Secret};
use crate::limits::LINE_KEPT;
use tokio::time::Instant;

/// Why an event was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undelivered {
    /// The receiver says that it is no more.
    Gone,
    /// It may be taken another time.
    Failed(String),
}

/// One event, ready to be sent.
pub(crate) struct Letter<'a> {
    /// Names it for good.
    pub(crate) id: &'a str,
    /// When it is sent, in seconds since 1970.
    pub(crate) at: i64,
    pub(crate) body: &'a [u8],
    /// What it is signed with.
    pub(crate) secrets: &'a [Secret],
}

/// Sends to one receiver.
pub(crate) struct Postbox {
    exchange: Exchange,
    allows_private: bool,
    line: Option<(Line, Instant)>,
}

impl Postbox {
    pub(crate) fn new(exchange: Exchange, allows_private: bool) -> Self {
        Postbox { exchange, allows_private, line: None }
    }

    /// Sends something that is not signed; the status of the answer, or why there is none.
    pub(crate) async fn post(
        &mut self,
        url: &str,
        headers: &[(&str, String)],
        body: &[u8],
    ) -> Result<u16, String> {
        let answer = self.ask(url, headers, body).await;
        answer.map(|answer| answer.status).map_err(|why| match why {
            Undelivered::Failed(why) => why,
            Undelivered::Gone => "it is gone".to_owned(),
        })
    }

    /// Sends one event. It was taken if the receiver answered with success.
    pub(crate) async fn send(&mut self, url: &str, letter: &Letter<'_>) -> Result<(), Undelivered> {
        let headers = [
            ("webhook-id", letter.id.to_owned()),
            ("webhook-timestamp", letter.at.to_string()),
            (
                "webhook-signature",
                signature::header(letter.secrets, letter.id, letter.at, letter.body),
            ),
        ];
        judge(&self.ask(url, &headers, letter.body).await?)
    }

    async fn ask(
        &mut self,
        url: &str,
        headers: &[(&str, String)],
        body: &[u8],
    ) -> Result<Answer, Undelivered> {
        let target = Target::of(url).map_err(Undelivered::Failed)?;
        // A connection that was kept may have been closed by the other end meanwhile, which is no
        // fault of anybody's: then a new one is tried at once.
        if let Some(mut line) = self.kept()
            && let Ok(answer) = line.0.ask(&target, headers, body.into(), "keep-alive").await
        {
            self.line = Some(line);
            return Ok(answer);
        }
        let allowed = match self.allows_private {
            true => Allowed::Any,
            false => Allowed::Public,
        };
        let addresses = target.addresses(allowed).await;
        let addresses = addresses.map_err(|failure| Undelivered::Failed(failure.message))?;
        let asked = async {
            let mut line = self.exchange.line(&target, &addresses).await?;
            let answer = line.ask(&target, headers, body.into(), "keep-alive").await?;
            Ok((line, answer))
        };
        match asked.await {
            Ok((line, answer)) => {
                self.line = Some((line, Instant::now()));
                Ok(answer)
            }
            Err(Broken::TooLarge) => Err(Undelivered::Failed("the answer has no end".to_owned())),
            Err(Broken::Failed(why)) => Err(Undelivered::Failed(why)),
        }
    }

    /// The connection that was kept, if it may still be used.
    fn kept(&mut self) -> Option<(Line, Instant)> {
        self.line.take().filter(|(line, since)| line.is_open() && since.elapsed() < LINE_KEPT)
    }
}

fn judge(answer: &Answer) -> Result<(), Undelivered> {
    match answer.status {
        200..=299 => Ok(()),
        410 => Err(Undelivered::Gone),
        300..=399 => {
            let status = answer.status;
            let why = format!("the receiver answered {status}; redirects are not followed");
            Err(Undelivered::Failed(why))
        }
        status => Err(Undelivered::Failed(format!("the receiver answered {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_success_is_success() {
        let judged = |status| judge(&Answer { status, retry_after: None, body: Vec::new() });
        for status in [200, 202, 204, 299] {
            assert_eq!(judged(status), Ok(()), "{status}");
        }
        assert_eq!(judged(410), Err(Undelivered::Gone));
        for status in [101, 301, 400, 404, 429, 500, 599] {
            assert!(matches!(judged(status), Err(Undelivered::Failed(_))), "{status}");
        }
    }
}
