//! Events as receivers see them: what moved, in the words of the stream of moves.

use mainspring_kernel::entity::subscription::EventName;
use mainspring_kernel::{JobId, StateName, Timestamp};
use mainspring_store::LoggedMove;
use mainspring_worker::Time;
use serde::Serialize;

/// One event, ready to be sent.
pub(super) struct Event {
    /// Names it for good: whoever gets it twice knows it by this.
    pub(super) id: String,
    /// What kind of event it is.
    pub(super) name: &'static str,
    pub(super) body: Vec<u8>,
}

#[derive(Serialize)]
struct Envelope<T> {
    #[serde(rename = "type")]
    name: &'static str,
    timestamp: Time,
    data: T,
}

#[derive(Serialize)]
struct Moved<'a> {
    position: u64,
    job_id: String,
    tenant_id: &'a str,
    user_id: &'a str,
    job_type: &'a str,
    queue: &'a str,
    seq: u32,
    event_id: &'a str,
    from_state: Option<&'static str>,
    to_state: &'static str,
    occurred_at: Time,
    attempt: u32,
    reason_code: Option<&'a str>,
    reason_message: Option<&'a str>,
    actor: String,
    trace_id: &'a str,
}

#[derive(Serialize)]
struct Missed {
    from: u64,
    to: u64,
}

/// What a gap in the stream is called outside.
const GAP: &str = "bus.gap";

impl Event {
    /// The event of a move.
    pub(super) fn of(logged: &LoggedMove) -> Result<Event, serde_json::Error> {
        let step = &logged.transition;
        let job_id = logged.job.to_string();
        // The letters of the job's id, then the number of the move: as everywhere.
        let letters = &job_id[JobId::PREFIX.len() + 1..];
        let id = format!("evt_{letters}_{}", step.seq);
        let name = EventName::of(step).as_str();
        let at = Time(step.at.0);
        let data = Moved {
            position: logged.position,
            tenant_id: logged.tenant.as_str(),
            user_id: logged.user.as_str(),
            job_type: logged.job_type.as_str(),
            queue: logged.queue.as_str(),
            seq: step.seq,
            event_id: &id,
            from_state: step.from.map(StateName::as_str),
            to_state: step.to.as_str(),
            occurred_at: at,
            attempt: step.attempt,
            reason_code: step.reason.as_ref().map(|reason| &*reason.code),
            reason_message: step.reason.as_ref().map(|reason| &*reason.message),
            actor: step.actor.to_string(),
            trace_id: &logged.trace_id,
            job_id,
        };
        let body = serde_json::to_vec(&Envelope { name, timestamp: at, data })?;
        Ok(Event { id, name, body })
    }

    /// Tells that the events of these positions are no longer kept.
    pub(super) fn gap(
        subscription: &str,
        (from, to): (u64, u64),
        now: Timestamp,
    ) -> Result<Event, serde_json::Error> {
        let data = Missed { from, to };
        let body = serde_json::to_vec(&Envelope { name: GAP, timestamp: Time(now.0), data })?;
        Ok(Event { id: format!("gap_{subscription}_{from}_{to}"), name: GAP, body })
    }
}
