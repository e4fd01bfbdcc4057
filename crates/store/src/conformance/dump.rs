//! Everything a store answers, as text: equal stores have equal dumps.

use crate::store::{Error, Store};
use crate::{
    Counts, EntityFilter, ItemFilter, JobFilter, JobWithHistory, LoggedMove, MovesPage, QueueCount,
    Scope, TypeCount,
};
use mainspring_kernel::entity::Kind;
use mainspring_kernel::job::{Effect, EffectTotals};
use mainspring_kernel::{DlqItem, Job, QueueSpec, Timestamp, Token, Transition, TypeSpec};
use std::fmt::Write;

const PAGE: usize = 100;

/// All that `store` answers about `now`. Ends with the moves, which a store may have forgotten.
///
/// # Errors
/// If a read fails.
pub async fn dump(store: &dyn Store, now: Timestamp) -> Result<String, Error> {
    let mut text = String::new();
    let filter = JobFilter::of(Scope::All);
    let mut before = None;
    loop {
        let page = store.jobs(&filter, before, PAGE).await?;
        for listed in page.items {
            if let Some(JobWithHistory { job, history }) = store.job(listed.id).await? {
                let (mut bare, mut listed) = (job.clone(), listed);
                let left = store.checkpoint(job.id).await?;
                assert_eq!(job.has_checkpoint(), left.is_some(), "a job knows of its checkpoint");
                for job in [&mut bare, &mut listed] {
                    job.forget_effects();
                    job.forget_checkpoint();
                }
                assert_eq!(bare, listed, "a list and a read agree");
                let totals = job.effect_totals();
                push(&mut text, "job", &format!("{} {totals:?}", job_text(&bare)));
                left.iter().for_each(|value| push(&mut text, "  left", value));
                let effects = store.effects(job.id).await?;
                let counted = effects.iter().map(Effect::totals);
                let counted = counted.fold(EffectTotals::default(), EffectTotals::plus);
                assert_eq!(counted, totals, "a job knows how many effects it has");
                for Effect { name, value, committed_at } in effects {
                    push(&mut text, "  effect", &format!("{name} {value} {committed_at:?}"));
                }
                history.iter().for_each(|line| push(&mut text, "  move", &line_text(line)));
            }
        }
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    let filter = ItemFilter::of(Scope::All);
    let mut before = None;
    loop {
        let page = store.items(&filter, before, PAGE).await?;
        for item in page.items {
            let DlqItem { id, job, created_at, updated_at, version, state, first_asked_at } = item;
            let rest = format!(
                "{id} {created_at:?} {updated_at:?} {version} {state:?} {first_asked_at:?}"
            );
            push(&mut text, "item", &format!("{rest} {}", job_text(&job)));
        }
        before = page.next.map(|id| id.dlq());
        if before.is_none() {
            break;
        }
    }
    for kind in Kind::ALL {
        let filter = EntityFilter::of(*kind, Scope::All);
        let mut before = None;
        loop {
            let page = store.entities(&filter, before, PAGE).await?;
            for entity in page.items {
                let found = store.entity(entity.id).await?;
                assert_eq!(found.as_ref(), Some(&entity), "a list and a read agree");
                push(&mut text, "entity", &format!("{entity:?}"));
            }
            before = page.next;
            if before.is_none() {
                break;
            }
        }
    }
    push(&mut text, "alarms", &format!("{:?}", store.alarms(now, usize::MAX).await?));
    for spec in store.types().await? {
        push(&mut text, "type", &type_text(&spec));
    }
    for QueueSpec { name, is_paused, order, share } in store.queues().await? {
        push(&mut text, "queue", &format!("{name} {is_paused} {order:?} {share:?}"));
    }
    for token in store.tokens().await? {
        push(&mut text, "token", &token_text(&token));
    }
    let mut running = store.running().await?;
    running.sort_unstable();
    push(&mut text, "running", &format!("{running:?}"));
    let mut overdue = store.overdue(now, usize::MAX).await?;
    overdue.sort_unstable();
    push(&mut text, "overdue", &format!("{overdue:?}"));
    push(&mut text, "counts", &counts_text(store.counts(now).await?));
    let MovesPage { moves, has_gap: _, newest } = store.moves_after(0, usize::MAX).await?;
    push(&mut text, "newest", &newest.to_string());
    for logged in moves {
        push(&mut text, "moved", &move_text(logged));
    }
    Ok(text)
}

fn move_text(logged: LoggedMove) -> String {
    let LoggedMove {
        position,
        job,
        tenant,
        user,
        job_type,
        queue,
        trace_id,
        created_at,
        run_at,
        transition,
    } = logged;
    let rest = line_text(&transition);
    // Which of the two is later is all that views ask, and the same whenever it is read.
    let is_ahead = run_at > created_at;
    let whose = format!("{tenant} {user} {job_type} {queue} {trace_id}");
    format!("{position} {job} {whose} {created_at:?} {is_ahead} {rest}")
}

fn push(text: &mut String, what: &str, line: &str) {
    writeln!(text, "{what} {line}").expect("a string takes any text");
}

fn job_text(job: &Job) -> String {
    let Job {
        id,
        tenant,
        user,
        job_type,
        queue,
        payload,
        priority,
        max_retries,
        retry_count,
        timeout_ms,
        seq,
        fence,
        created_at,
        updated_at,
        run_at,
        started_at,
        trace,
        idempotency,
        last_failure,
        last_report,
        extras,
        state,
    } = job;
    format!(
        "{id} {tenant} {user} {job_type} {queue} {payload} {priority} {retry_count}/{max_retries} \
         {timeout_ms} {seq} {fence} {created_at:?} {updated_at:?} {run_at:?} {started_at:?} \
         {trace:?} {idempotency:?} {last_failure:?} {last_report:?} {extras:?} {state:?}"
    )
}

fn line_text(line: &Transition) -> String {
    let Transition { seq, from, to, at, attempt, reason, actor } = line;
    format!("{seq} {from:?} {to} {at:?} {attempt} {reason:?} {actor}")
}

fn type_text(spec: &TypeSpec) -> String {
    let TypeSpec {
        name,
        domain,
        is_schedulable,
        priority,
        timeout_ms,
        max_retries,
        concurrency_limit,
        concurrency_scope,
        queue,
        backoff,
        file_entry,
        executor,
        flow,
        sla,
    } = spec;
    format!(
        "{name} {domain} {is_schedulable} {priority} {timeout_ms} {max_retries} \
         {concurrency_limit:?} {concurrency_scope:?} {queue} {backoff:?} {file_entry:?} {executor:?} \
         {flow:?} {sla:?}"
    )
}

fn token_text(token: &Token) -> String {
    let Token {
        id,
        digest,
        tenant,
        user,
        roles,
        issued_at,
        issued_by,
        issued_with,
        expires_at,
        revoked_at,
    } = token;
    format!(
        "{id} {digest:?} {tenant} {user} {roles:?} {issued_at:?} {issued_by} {issued_with:?} \
         {expires_at:?} {revoked_at:?}"
    )
}

fn counts_text(counts: Counts) -> String {
    let Counts {
        by_state,
        due,
        oldest_due,
        retries,
        submitted,
        claims,
        jobs_retried,
        items_open,
        queues,
        types,
    } = counts;
    let mut text = format!(
        "{by_state:?} {due} {oldest_due:?} {retries} {submitted} {claims} {jobs_retried} \
         {items_open}"
    );
    // A store may or may not list a queue that has nothing in it.
    for QueueCount { name, ready, pending, running, oldest_due } in queues {
        if ready + pending + running > 0 {
            text += &format!(" {name}:{ready}/{pending}/{running} {oldest_due:?}");
        }
    }
    for TypeCount { name, queued, running, retrying } in types {
        text += &format!(" {name}={queued}/{running}/{retrying}");
    }
    text
}
