//! Waits, bounds and courses, as samples and as strategies.

use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::wait::{Members, Wait};
use mainspring_kernel::event::CANCEL_CODES;
use mainspring_kernel::job::{After, AfterCondition, Bounds, Course, ProgressNote};
use mainspring_kernel::{JobId, Timestamp};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

/// A wait for jobs that were named and for a batch.
pub(crate) fn full(large: u64, at: Timestamp, small: u32) -> Body {
    let first = JobId(u128::from(large) << 16);
    let members = Members { first, count: 11, ended: vec![0b101, (small % 8) as u8] };
    Body::Wait(Box::new(Wait {
        condition: AfterCondition::End,
        run_at: at,
        open: vec![JobId(7), JobId(u128::from(large))],
        members: (small % 2 == 1).then_some(members),
        look_at: at.plus_millis(2_000),
        looks: small,
        cursor: 3,
    }))
}

/// Everything that a submission can ask for.
pub(crate) fn all_bounds(at: Timestamp) -> Box<Bounds> {
    let jobs = vec![JobId(7), JobId(9)];
    let after = Some(After { jobs, members: 12, condition: AfterCondition::End });
    Box::new(Bounds { deadline_at: Some(at), queue_timeout_ms: Some(60_000), after })
}

/// A job that was put off, got somewhere, and was given up.
pub(crate) fn whole_course() -> Box<Course> {
    Box::new(Course {
        message: Some("half of it".into()),
        checkpoint: Some(r#"{"row":17}"#.into()),
        is_checkpoint_elsewhere: false,
        snoozes: 2,
        ended_by: Some("TOTAL_TIMEOUT"),
    })
}

pub(crate) fn bounds() -> BoxedStrategy<Box<Bounds>> {
    let condition = prop_oneof![Just(AfterCondition::Success), Just(AfterCondition::End)];
    let jobs = vec(any::<u128>().prop_map(JobId), 0..4);
    let after = (jobs, any::<u32>(), condition).prop_map(|(jobs, members, condition)| After {
        jobs,
        members,
        condition,
    });
    (of(any::<i64>().prop_map(Timestamp)), of(any::<u32>()), of(after))
        .prop_map(|(deadline_at, queue_timeout_ms, after)| {
            Box::new(Bounds { deadline_at, queue_timeout_ms, after })
        })
        .boxed()
}

pub(crate) fn course() -> BoxedStrategy<Box<Course>> {
    let codes = proptest::sample::select(CANCEL_CODES.to_vec());
    (of(".{0,9}"), of(".{0,9}"), any::<u16>(), of(codes))
        .prop_map(|(message, checkpoint, snoozes, ended_by)| {
            Box::new(Course {
                message: message.map(Into::into),
                checkpoint: checkpoint.map(Into::into),
                is_checkpoint_elsewhere: false,
                snoozes,
                ended_by,
            })
        })
        .boxed()
}

pub(crate) fn note() -> BoxedStrategy<Box<ProgressNote>> {
    (of(".{0,9}"), of(".{0,9}"))
        .prop_map(|(message, checkpoint)| {
            let (message, checkpoint) = (message.map(Into::into), checkpoint.map(Into::into));
            Box::new(ProgressNote { message, checkpoint })
        })
        .boxed()
}
