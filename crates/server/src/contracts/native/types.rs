//! The type registry.

use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit::{self, Note};
use crate::config::Executing;
use crate::json;
use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_kernel::command::TypeChange;
use mainspring_kernel::entity::audit::Seen;
use mainspring_kernel::executor::{Executor, ExecutorWish, Mode};
use mainspring_kernel::flow::{Circuit, CircuitState, KeySource, RateLimit};
use mainspring_kernel::limits::{NAME_BYTES_MAX, RETRIES_MAX, TIMEOUT_MS_MAX};
use mainspring_kernel::registry::{ConcurrencyScope, Sla};
use mainspring_kernel::retry::Backoff;
use mainspring_kernel::{Command, JobType, Principal, QueueName, TypeSpec};

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let types = ask.engine().types().await?;
    let mut items = Vec::with_capacity(types.len());
    for spec in types.iter().filter(|spec| !spec.is_of_a_contract()) {
        items.push(standing(&ask, spec, &who).await?);
    }
    Ok(Reply::data(&api::Page::whole(items)))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let types = ask.engine().types().await?;
    let found = types.into_iter().find(|spec| spec.name.as_str() == ask.param());
    let built_in = || JobType::new(ask.param()).ok().and_then(|name| TypeSpec::built_in(&name));
    let found = found.or_else(built_in).ok_or_else(refusal::type_unknown)?;
    Ok(Reply::data(&standing(&ask, &found, &who).await?))
}

/// A type with where its circuit stands.
async fn standing(
    ask: &Ask,
    spec: &TypeSpec,
    who: &Principal,
) -> Result<api::registry::Type, Refusal> {
    let now = ask.engine().now();
    let circuit = ask.engine().circuit(spec).await?;
    let circuit_state = circuit.map(|circuit| api::registry::TypeCircuitState {
        state: circuit.as_str(now).to_owned(),
        until: match circuit {
            CircuitState::Open { until } => Some(api::Time(until.0)),
            CircuitState::Closed { .. } | CircuitState::HalfOpen { .. } => None,
        },
    });
    Ok(api::registry::Type { circuit_state, ..shown(spec, who) })
}

pub(super) async fn pause(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let change = TypeChange::Pause { by: who.user.clone() };
    change_type(ask, who, "type.pause", change).await
}

pub(super) async fn resume(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    change_type(ask, who, "type.resume", TypeChange::Resume).await
}

pub(super) async fn reset_circuit(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    change_type(ask, who, "type.circuit_reset", TypeChange::ResetCircuit).await
}

async fn change_type(
    ask: Ask,
    who: Principal,
    action: &'static str,
    change: TypeChange,
) -> Result<Reply, Refusal> {
    let name = JobType::new(ask.param()).map_err(|_| refusal::type_unknown())?;
    let known = ask.engine().types().await?.into_iter().find(|it| it.name == name);
    let known = known.or_else(|| TypeSpec::built_in(&name)).ok_or_else(refusal::type_unknown)?;
    let before = audit::json(&standing(&ask, &known, &who).await?);
    let note = Note {
        action,
        object_type: "type",
        object_id: name.to_string(),
        before,
        ..Note::default()
    };
    audit::change(&ask, &who, Command::ChangeType { name: name.clone(), change }, note).await?;
    let found = ask.engine().types().await?.into_iter().find(|it| it.name == name);
    Ok(Reply::data(&standing(&ask, &found.unwrap_or(known), &who).await?))
}

pub(super) async fn set(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::registry::SetType = json::read(json::check(&ask.body)?)?;
    let spec = spec(ask.param(), wish)?.kept();
    possible(spec.executor.as_deref(), &ask.app.config.executing)?;
    let mut outcome = change(&ask, &who, &spec).await;
    for _ in 1..audit::TRIES {
        if !audit::has_changed(&outcome) {
            break;
        }
        outcome = change(&ask, &who, &spec).await;
    }
    Ok(Reply::data(&outcome?))
}

/// Sets a type as it was asked for, and tells what it was; answers what it is.
async fn change(
    ask: &Ask,
    who: &Principal,
    spec: &TypeSpec,
) -> Result<api::registry::Type, Refusal> {
    let known = ask.engine().types().await?.into_iter().find(|it| it.name == spec.name);
    let flow = spec.flow.clone().kept(known.as_ref().map(|known| &*known.flow));
    let spec = TypeSpec { flow: Box::new(flow), ..spec.clone() };
    let answer = shown(&spec, who);
    let note = Note {
        action: "type.set",
        object_type: "type",
        object_id: spec.name.to_string(),
        before: known.as_ref().and_then(|known| audit::json(&shown(known, who))),
        after: audit::json(&answer),
        seen: Some(Seen::Type(spec.name.clone(), known.map(Box::new))),
        ..Note::default()
    };
    audit::change(ask, who, Command::SetType(Box::new(spec)), note).await?;
    Ok(answer)
}

fn spec(name: &str, wish: api::registry::SetType) -> Result<TypeSpec, Refusal> {
    let name = JobType::new(name).map_err(|bad| refusal::invalid("job_type", bad))?;
    let mut spec = TypeSpec::plain(name);
    if let Some(domain) = wish.domain {
        if domain.is_empty() || domain.len() > NAME_BYTES_MAX {
            return Err(refusal::invalid("domain", "must be between 1 and 200 bytes long"));
        }
        spec.domain = domain.into();
    }
    if let Some(seconds) = wish.timeout_seconds {
        let millis = seconds.checked_mul(1000).filter(|ms| (1..=TIMEOUT_MS_MAX).contains(ms));
        spec.timeout_ms = millis.ok_or_else(|| {
            refusal::invalid("timeout_seconds", "must be between 1 and 604800 (seven days)")
        })?;
    }
    if wish.max_retries.is_some_and(|tries| tries > RETRIES_MAX) {
        return Err(refusal::invalid("max_retries", "must be at most 1000"));
    }
    if let Some(scope) = &wish.concurrency_scope {
        spec.concurrency_scope = ConcurrencyScope::parse(scope).ok_or_else(|| {
            refusal::invalid("concurrency_scope", "must be global, tenant or user")
        })?;
    }
    if let Some(queue) = &wish.queue {
        spec.queue = QueueName::new(queue).map_err(|bad| refusal::invalid("queue", bad))?;
    }
    spec.is_schedulable = wish.schedulable.unwrap_or(spec.is_schedulable);
    spec.priority = wish.priority.unwrap_or(spec.priority);
    spec.max_retries = wish.max_retries.unwrap_or(spec.max_retries);
    spec.concurrency_limit = wish.concurrency_limit;
    // A default gives way to what was asked for.
    let (base_ms, max_ms) = (wish.backoff_base_ms, wish.backoff_max_ms);
    let Backoff { base_ms: base_default, max_ms: max_default } = spec.backoff;
    spec.backoff = Backoff {
        base_ms: base_ms.unwrap_or(base_default.min(max_ms.unwrap_or(u32::MAX))),
        max_ms: max_ms.unwrap_or(max_default.max(base_ms.unwrap_or(0))),
    };
    if spec.backoff.max_ms < spec.backoff.base_ms {
        return Err(refusal::invalid("backoff_max_ms", "must not be below backoff_base_ms"));
    }
    spec.executor = wish.executor.map(executor).transpose()?.map(Box::new);
    spec.flow.concurrency_key = wish.concurrency_key.map(KeySource::new);
    spec.flow.rate_limit = wish
        .rate_limit
        .map(|limit| RateLimit::new(limit.per_second, limit.burst, limit.key.map(KeySource::new)));
    spec.flow.circuit = wish.circuit.as_ref().map(circuit);
    spec.flow.check()?;
    spec.sla = wish.sla.map(|api::registry::TypeSla { start_within_ms, finish_within_ms }| Sla {
        start_within_ms,
        finish_within_ms,
    });
    spec.sla.map_or(Ok(()), Sla::check)?;
    Ok(spec)
}

fn circuit(wish: &api::registry::TypeCircuit) -> Circuit {
    let permille = (wish.failure_ratio * 1000.0).floor();
    Circuit {
        failure_permille: if (0.0..=1000.0).contains(&permille) { permille as u16 } else { 0 },
        min_calls: wish.min_calls,
        open_secs: wish.open_seconds,
    }
}

fn executor(wish: api::registry::TypeExecutor) -> Result<Executor, Refusal> {
    let mode = Mode::parse(&wish.mode).ok_or_else(|| {
        refusal::invalid("executor.mode", "must be pull, inprocess, process or webhook")
    })?;
    let wish = ExecutorWish {
        mode,
        command: wish.command,
        args: wish.args,
        cwd: wish.cwd,
        env: wish.env,
        shell: wish.shell,
        kill_grace_ms: wish.kill_grace_ms,
        url: wish.url,
        timeout_ms: wish.timeout_ms,
    };
    Ok(wish.made()?)
}

/// Refuses what this server could not do, or may not: whoever holds an admin's token has the types,
/// not the machine.
fn possible(executor: Option<&Executor>, here: &Executing) -> Result<(), Refusal> {
    match executor {
        Some(Executor::Process(process)) if !here.startable.allows(process) => {
            let reason = "is not among [executor] programs in the server's configuration";
            Err(refusal::invalid("executor.command", reason))
        }
        Some(Executor::Webhook(_)) if !here.can_sign => {
            let reason = "needs a secret in the server's configuration, [webhooks] secrets";
            Err(refusal::invalid("executor.url", reason))
        }
        Some(
            Executor::Pull | Executor::InProcess | Executor::Process(_) | Executor::Webhook(_),
        )
        | None => Ok(()),
    }
}

fn shown(spec: &TypeSpec, who: &Principal) -> api::registry::Type {
    api::registry::Type {
        job_type: spec.name.to_string(),
        domain: spec.domain.to_string(),
        schedulable: spec.is_schedulable,
        priority: spec.priority,
        timeout_seconds: spec.timeout_ms.div_ceil(1000),
        max_retries: spec.max_retries,
        concurrency_limit: spec.concurrency_limit,
        concurrency_scope: spec.concurrency_scope.as_str().to_owned(),
        queue: spec.queue.to_string(),
        backoff_base_ms: spec.backoff.base_ms,
        backoff_max_ms: spec.backoff.max_ms,
        executor: spec.executor.as_deref().map(|executor| shown_executor(executor, who)),
        concurrency_key: spec.flow.concurrency_key.as_ref().map(|key| key.as_str().to_owned()),
        rate_limit: spec.flow.rate_limit.as_ref().map(|limit| api::registry::TypeRateLimit {
            per_second: limit.per_second(),
            burst: Some(limit.burst),
            key: limit.key.as_ref().map(|key| key.as_str().to_owned()),
        }),
        circuit: spec.flow.circuit.map(|circuit| api::registry::TypeCircuit {
            failure_ratio: f64::from(circuit.failure_permille) / 1000.0,
            min_calls: circuit.min_calls,
            open_seconds: circuit.open_secs,
        }),
        circuit_state: None,
        paused_by: spec.flow.paused.as_ref().map(|pause| pause.by.to_string()),
        paused_at: spec.flow.paused.as_ref().map(|pause| api::Time(pause.at.0)),
        sla: spec.sla.map(|Sla { start_within_ms, finish_within_ms }| api::registry::TypeSla {
            start_within_ms,
            finish_within_ms,
        }),
    }
}

/// Commands and addresses may hold secrets: they are shown to those who can set them.
fn shown_executor(executor: &Executor, who: &Principal) -> api::registry::TypeExecutor {
    let mode = executor.mode().as_str().to_owned();
    let plain = api::registry::TypeExecutor { mode, ..Default::default() };
    let texts = |texts: &[Box<str>]| texts.iter().map(ToString::to_string).collect();
    match executor {
        Executor::Process(process) if who.is_admin() => api::registry::TypeExecutor {
            command: Some(process.command.to_string()),
            args: Some(texts(&process.args)),
            cwd: process.cwd.as_ref().map(ToString::to_string),
            env: Some(texts(&process.env)),
            shell: Some(process.is_shell),
            kill_grace_ms: Some(process.kill_grace_ms),
            ..plain
        },
        Executor::Webhook(webhook) if who.is_admin() => api::registry::TypeExecutor {
            url: Some(webhook.url.to_string()),
            timeout_ms: Some(webhook.timeout_ms),
            ..plain
        },
        Executor::Pull | Executor::InProcess | Executor::Process(_) | Executor::Webhook(_) => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::executor::Startable;

    fn read(text: &str) -> Result<TypeSpec, Refusal> {
        spec("mail", serde_json::from_str(text).unwrap())
    }

    #[test]
    fn what_is_left_out_is_the_default_of_the_house() {
        assert_eq!(read("{}").unwrap(), TypeSpec::plain(JobType::new("mail").unwrap()));
        let set = read(r#"{"timeout_seconds":2,"concurrency_limit":0,"queue":"q"}"#).unwrap();
        assert_eq!((set.timeout_ms, set.concurrency_limit), (2_000, Some(0)));
    }

    #[test]
    fn a_default_gives_way_to_the_delay_that_was_asked_for() {
        let backoff = |text: &str| read(text).unwrap().backoff;
        let long = Backoff { base_ms: 60_000, max_ms: 60_000 };
        assert_eq!(backoff(r#"{"backoff_base_ms":60000}"#), long);
        let short = Backoff { base_ms: 5, max_ms: 5 };
        assert_eq!(backoff(r#"{"backoff_max_ms":5}"#), short);
    }

    #[test]
    fn only_what_the_server_may_and_can_do_is_taken() {
        let take = |text: &str, programs: &[&str], can_sign: bool| {
            let programs = programs.iter().map(|it| (*it).to_owned()).collect();
            let startable = Startable { programs, commands: Vec::new() };
            let here = Executing { mode: Mode::Pull, startable, can_sign };
            possible(read(text).unwrap().executor.as_deref(), &here).is_ok()
        };
        let process = r#"{"executor":{"mode":"process","command":"/bin/date"}}"#;
        let shell = r#"{"executor":{"mode":"process","command":"/bin/date","shell":true}}"#;
        let webhook = r#"{"executor":{"mode":"webhook","url":"https://a.example"}}"#;
        assert!(take(process, &["/bin/date"], false));
        assert!(!take(process, &["/bin/dat"], false) && !take(process, &[], true));
        assert!(!take(shell, &["/bin/date"], false) && take(shell, &["/bin/sh"], false));
        assert!(take(webhook, &[], true) && !take(webhook, &[], false));
        assert!(take("{}", &[], false));
    }

    #[test]
    fn bounds_are_kept() {
        for text in [
            r#"{"timeout_seconds":0}"#,
            r#"{"timeout_seconds":604801}"#,
            r#"{"max_retries":1001}"#,
            r#"{"concurrency_scope":"world"}"#,
            r#"{"queue":""}"#,
            r#"{"domain":""}"#,
            r#"{"backoff_base_ms":2,"backoff_max_ms":1}"#,
            r#"{"concurrency_key":""}"#,
            r#"{"concurrency_key":"/a~"}"#,
            r#"{"rate_limit":{"per_second":0}}"#,
            r#"{"rate_limit":{"per_second":1e9}}"#,
            r#"{"rate_limit":{"per_second":1,"burst":0}}"#,
            r#"{"rate_limit":{"per_second":1,"key":"/~"}}"#,
            r#"{"circuit":{"failure_ratio":0,"min_calls":1,"open_seconds":1}}"#,
            r#"{"circuit":{"failure_ratio":1.1,"min_calls":1,"open_seconds":1}}"#,
            r#"{"circuit":{"failure_ratio":1,"min_calls":101,"open_seconds":1}}"#,
            r#"{"executor":{"mode":"celery"}}"#,
            r#"{"executor":{"mode":"process"}}"#,
            r#"{"executor":{"mode":"pull","url":"https://a.example"}}"#,
            r#"{"sla":{}}"#,
            r#"{"sla":{"start_within_ms":999}}"#,
            r#"{"sla":{"finish_within_ms":604800001}}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
