//! Jobs that wait for others: whatever is told, in whatever order and however often, they start
//! once, after all of them, or never.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use mainspring_kernel::command::Submit;
use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::wait::{Members, Wait, member_id};
use mainspring_kernel::job::{After, AfterCondition, Bounds};
use mainspring_kernel::{
    Command, Entity, Event, Facts, Job, JobId, JobType, Receipt, Rejection, State, StateName,
    TenantId, Timestamp, UserId, decide, evolve,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const WAITER: JobId = JobId(9_000);

/// All there is: jobs and one wait.
#[derive(Default)]
struct World {
    now: i64,
    jobs: BTreeMap<JobId, Job>,
    wait: Option<Entity>,
}

fn wish() -> Submit {
    let name = |text: &str| text.into();
    let (tenant, user) = (TenantId::stored(name("acme")), UserId::stored(name("ada")));
    Submit::plain(tenant, user, JobType::stored(name("mill")))
}

impl World {
    fn decide(&mut self, command: &Command, fresh_id: u128) -> Result<Receipt, Rejection> {
        self.now += 1_000;
        let watched: Vec<_> = command.watched().iter().map(|id| (*id, self.jobs.get(id))).collect();
        let facts = Facts {
            fresh_id,
            watched: &watched,
            job: command.job().and_then(|id| self.jobs.get(&id)),
            entity: self.wait.as_ref(),
            ..Facts::at(Timestamp(self.now))
        };
        let decision = decide(command, &facts)?;
        for event in decision.events {
            #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is decided here")]
            match event {
                Event::JobSubmitted(job) => {
                    self.jobs.insert(job.id, *job);
                }
                Event::JobMoved(event) => {
                    evolve(self.jobs.get_mut(&event.job).unwrap(), &event).unwrap();
                }
                Event::EntitySet(entity) => self.wait = Some(*entity),
                Event::EntityRemoved { .. } => self.wait = None,
                other => panic!("{other:?}"),
            }
        }
        Ok(decision.receipt)
    }

    fn end(&mut self, id: JobId, ends_well: bool) {
        let finished_at = Timestamp(self.now);
        let job = self.jobs.get_mut(&id).unwrap();
        job.state = match ends_well {
            true => State::Succeeded { finished_at, result: None },
            false => State::Failed { finished_at },
        };
    }

    fn waiter(&self) -> &Job {
        &self.jobs[&WAITER]
    }
}

#[derive(Debug, Clone)]
enum Step {
    End(usize, bool),
    Tell(Vec<usize>),
    Ring,
    Cancel,
}

fn step(count: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..count, any::<bool>()).prop_map(|(nth, well)| Step::End(nth, well)),
        4 => proptest::collection::vec(0..count, 0..4).prop_map(Step::Tell),
        2 => Just(Step::Ring),
        1 => Just(Step::Cancel),
    ]
}

proptest! {
    #[test]
    fn a_job_starts_once_after_all_that_it_waits_for(
        (count, steps) in (1..6_usize).prop_flat_map(|n| {
            (Just(n), proptest::collection::vec(step(n), 0..30))
        }),
        is_strict in any::<bool>(),
        delay_ms in prop_oneof![Just(None), Just(Some(500))],
    ) {
        let mut world = World::default();
        for nth in 0..count {
            world.decide(&Command::Submit(Box::new(wish())), nth as u128 + 1).unwrap();
        }
        let ids: Vec<JobId> = (0..count).map(|nth| JobId(nth as u128 + 1)).collect();
        let condition = if is_strict { AfterCondition::Success } else { AfterCondition::End };
        let after = Some(After { jobs: ids.clone(), members: 0, condition });
        let bounds = Bounds { after, ..Bounds::default() };
        let waits = Command::Submit(Box::new(Submit { bounds, delay_ms, ..wish() }));
        let run_at = Timestamp(world.now + 1_000 + delay_ms.unwrap_or(0) as i64 * 1_000);
        world.decide(&waits, WAITER.0).unwrap();
        prop_assert!(world.waiter().waits_for_jobs() && world.wait.is_some());
        let mut is_cancelled = false;
        for step in steps {
            let before = world.waiter().clone();
            match step {
                Step::End(nth, well) => {
                    if !world.jobs[&ids[nth]].state.name().is_terminal() {
                        world.end(ids[nth], well);
                    }
                }
                Step::Tell(some) => {
                    let jobs = some.iter().map(|nth| ids[*nth]).collect();
                    let _ = world.decide(&Command::Settle { entity: Wait::id_of(WAITER), jobs }, 0);
                }
                Step::Ring => ring(&mut world),
                Step::Cancel => {
                    let by = wish().user;
                    let cancel = Command::Cancel { job: WAITER, by, reason: None };
                    is_cancelled |= world.decide(&cancel, 0).is_ok();
                }
            }
            let now = world.waiter();
            prop_assert!(before.seq <= now.seq);
            if before.waits_for_jobs() && !now.waits_for_jobs() && now.state == State::Queued {
                let has_ended = |id: &JobId| world.jobs[id].state.name().is_terminal();
                prop_assert!(ids.iter().all(has_ended), "not before all have ended");
                prop_assert!(now.run_at >= run_at, "and not before its time");
                prop_assert!(world.wait.is_none());
            }
        }
        // Everybody ends, nobody tells: it looks for itself.
        for id in &ids {
            if !world.jobs[id].state.name().is_terminal() {
                world.end(*id, true);
            }
        }
        for _ in 0..2 {
            ring(&mut world);
        }
        let all_well = ids.iter().all(|id| world.jobs[id].state.name() == StateName::Succeeded);
        let waiter = world.waiter();
        prop_assert!(world.wait.is_none(), "nothing is left behind");
        prop_assert!(!waiter.waits_for_jobs());
        if is_strict && !all_well && !is_cancelled {
            prop_assert_eq!(waiter.state.name(), StateName::Cancelled);
            prop_assert_eq!(waiter.course().unwrap().ended_by, Some("DEPENDENCY_FAILED"));
        } else if !is_cancelled {
            prop_assert_eq!(waiter.state.name(), StateName::Queued);
            prop_assert_eq!(waiter.seq, 2, "released once");
        }
    }
}

/// The alarm of the wait rings, if there is one.
fn ring(world: &mut World) {
    let Some(at) = world.wait.as_ref().and_then(Entity::alarm_at) else { return };
    world.now = world.now.max(at.0);
    let entity = Wait::id_of(WAITER);
    let asked = world.decide(&Command::Ring { entity, at, jobs: Vec::new() }, 0).unwrap();
    if let Receipt::Wanting { jobs } = asked {
        world.decide(&Command::Ring { entity, at, jobs }, 0).unwrap();
    }
}

#[test]
fn a_batch_is_one_bit_for_each_job() {
    let first = JobId((5 << 80) | (0x7ffe << 64) | 9);
    let members = Members { first, count: 10_000, ended: vec![0; 1_250] };
    assert_eq!(members.left(), 10_000);
    let wait = Wait {
        condition: AfterCondition::End,
        run_at: Timestamp(0),
        open: Vec::new(),
        members: Some(members),
        look_at: Timestamp(0),
        looks: 0,
        cursor: 0,
    };
    let second = JobId((5 << 80) | (0x7fff << 64) | 9);
    let third = JobId((6 << 80) | (0x7000 << 64) | 9);
    assert_eq!(wait.some_left(3), [first, second, third], "the order counts on into the next");
    assert_eq!(member_id(third, 2_u64.wrapping_neg()), first, "and back");
    let Body::Wait(_) = Body::Wait(Box::new(wait)) else { panic!("it is a wait") };
}
