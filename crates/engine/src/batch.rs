//! The requests that will share a commit: bounded by number and by bytes, so that neither many
//! small requests nor a few large ones make a commit that its store cannot take in one piece.

use crate::limits::{BATCH_BYTES_MAX, COMMAND_BYTES};
use crate::request::Request;
use mainspring_kernel::Command;
use tokio::sync::mpsc;

/// Requests that were gathered.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) requests: Vec<Request>,
    bytes: usize,
}

impl Batch {
    /// Takes one request, whatever it weighs: somebody has to carry it.
    pub(crate) fn push(&mut self, request: Request) {
        self.bytes += request.commands.iter().flat_map(Command::parts).map(weight).sum::<usize>();
        self.requests.push(request);
    }

    /// Takes what has arrived, until the batch is full.
    pub(crate) fn fill(&mut self, inbox: &mut mpsc::Receiver<Request>, requests_max: usize) {
        while !self.is_full(requests_max)
            && let Ok(request) = inbox.try_recv()
        {
            self.push(request);
        }
    }

    /// Whether the next request has to wait for the next commit.
    pub(crate) fn is_full(&self, requests_max: usize) -> bool {
        self.requests.len() >= requests_max || self.bytes >= BATCH_BYTES_MAX
    }
}

/// Roughly how many bytes a command carries.
fn weight(command: &Command) -> usize {
    #[expect(clippy::wildcard_enum_match_arm, reason = "everything else carries names only")]
    let text = match command {
        Command::Submit(wish) => {
            let labels = wish.labels.iter().map(|(name, value)| name.len() + value.len());
            let plan = wish.plan.as_ref().map_or(0, |plan| plan.spec.payload.len());
            wish.payload.len() + labels.sum::<usize>() + plan
        }
        Command::Complete(report) => report.result.as_ref().map_or(0, |result| result.len()),
        Command::CommitEffect(effect) => effect.value.len(),
        Command::Fail(report) => report.failure.message.len(),
        Command::Entity(command) => command.text_bytes(),
        _ => 0,
    };
    COMMAND_BYTES + text
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::JobId;
    use mainspring_kernel::command::Complete;
    use mainspring_kernel::job::LeaseToken;

    /// A request of `count` reports with a result of `bytes` each.
    fn request(count: usize, bytes: usize) -> Request {
        let report = |_| {
            let token = LeaseToken { fence: 1, secret: 1 };
            let result = Some("x".repeat(bytes).into());
            Command::Complete(Complete { job: JobId(1), token, result })
        };
        let (nobody, _) = mpsc::channel(1);
        Request::new((0..count).map(report).collect(), None, &nobody).0
    }

    fn inbox_of(requests: impl Iterator<Item = Request>) -> mpsc::Receiver<Request> {
        let (sender, inbox) = mpsc::channel(1_000);
        requests.for_each(|request| assert!(sender.try_send(request).is_ok()));
        inbox
    }

    #[test]
    fn a_batch_is_full_by_number() {
        let mut inbox = inbox_of((0..10).map(|_| request(1, 1)));
        let mut batch = Batch::default();
        batch.fill(&mut inbox, 7);
        assert_eq!((batch.requests.len(), inbox.len()), (7, 3));
        // What is there already counts once, not twice.
        let mut inbox = inbox_of((0..10).map(|_| request(1, 1)));
        let mut batch = Batch::default();
        batch.fill(&mut inbox, 5);
        batch.fill(&mut inbox, 9);
        assert_eq!((batch.requests.len(), inbox.len()), (9, 1));
    }

    #[test]
    fn a_batch_is_full_by_bytes_and_takes_at_least_one_request() {
        let mut inbox = inbox_of((0..40).map(|_| request(2, 1 << 20)));
        let mut batch = Batch::default();
        batch.fill(&mut inbox, 4_096);
        assert_eq!((batch.requests.len(), inbox.len()), (8, 32));
        let mut batch = Batch::default();
        batch.push(request(40, 1 << 20));
        batch.fill(&mut inbox, 4_096);
        assert_eq!((batch.requests.len(), inbox.len()), (1, 32));
    }
}
