//! The stream of moves in the native contract's words. Following is the shell's (`follow.rs`).

use super::view;
use crate::answer::Reply;
use crate::ask::Ask;
use crate::follow::{self, Plainly, Words};
use crate::refusal::Refusal;
use crate::write::Out;
use mainspring_engine::store::LoggedMove;
use mainspring_kernel::Principal;

pub(super) async fn follow(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = Words { name: "native", teller: || Box::new(Plainly(write_move)) };
    follow::moves(&ask, &who, words).await
}

fn write_move(logged: &LoggedMove, out: &mut Out) {
    out.raw("id: ");
    out.number(logged.position);
    out.raw("\nevent: job_moved\ndata: {\"position\":");
    out.number(logged.position);
    out.raw(",\"job_id\":");
    out.job_id(logged.job);
    out.raw(",\"tenant_id\":");
    out.string(logged.tenant.as_str());
    out.raw(",\"user_id\":");
    out.string(logged.user.as_str());
    out.raw(",\"job_type\":");
    out.string(logged.job_type.as_str());
    out.raw(",");
    view::transition(logged.job, &logged.transition, &logged.trace_id, out);
    out.raw("}\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::evolve::Transition;
    use mainspring_kernel::job::Actor;
    use mainspring_kernel::{JobId, JobType, QueueName, StateName, TenantId, Timestamp, UserId};

    #[test]
    fn a_move_is_one_line_of_the_shared_type() {
        let logged = LoggedMove {
            position: 7,
            job: JobId(3),
            tenant: TenantId::new("t").unwrap(),
            user: UserId::new("u").unwrap(),
            job_type: JobType::new("j").unwrap(),
            queue: QueueName::new("q").unwrap(),
            trace_id: "line\nbreak".into(),
            created_at: Timestamp(0),
            run_at: Timestamp(0),
            transition: Transition {
                seq: 1,
                from: None,
                to: StateName::Queued,
                at: Timestamp(0),
                attempt: 1,
                reason: None,
                actor: Actor::Reaper,
            },
        };
        let mut out = Out::default();
        write_move(&logged, &mut out);
        let text = String::from_utf8(out.0).unwrap();
        let data = text.strip_prefix("id: 7\nevent: job_moved\ndata: ").unwrap();
        let data = data.strip_suffix("\n\n").unwrap();
        assert!(!data.contains('\n'));
        let read: mainspring_api::event::JobMoved = serde_json::from_str(data).unwrap();
        assert_eq!((read.position, &*read.trace_id), (7, "line\nbreak"));
        let again = serde_json::to_value(&read).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(data).unwrap(), again);
    }
}
