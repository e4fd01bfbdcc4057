//! What needs a person: alerts that stand, discards that wait for a second person, questions that
//! jobs have asked. The first few of each, as lists show them; nothing is counted.

use super::parts::When;
use super::words::{Lang, fill, words};
use crate::ask::Ask;
use crate::auth;
use crate::limits::NEEDS_SHOWN_MAX;
use crate::refusal::Refusal;
use mainspring_engine::store::{EntityFilter, ItemFilter, JobFilter, Scope};
use mainspring_kernel::access::Sight;
use mainspring_kernel::entity::alert::{AlertState, Rule};
use mainspring_kernel::entity::question::Question;
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::{DlqState, Entity, Principal};

words! {
    Needs {
        alert: "Alert", "告警";
        skipped: "Skipped firing", "漏掉的触发";
        circuit: "Open circuit", "熔断";
        discard: "Discard asked for", "申请丢弃";
        discard_text: "{} asks to drop the dead letter of {}: {}", "{} 申请丢弃 {} 的死信：{}";
        question: "Question", "提问";
    }
}

/// One thing that needs a person.
pub(super) struct Need {
    /// How it is coloured.
    pub(super) class: &'static str,
    pub(super) kind: &'static str,
    pub(super) text: String,
    pub(super) since: When,
    /// Where it is dealt with.
    pub(super) href: String,
}

/// The first few, and whether there are more.
#[derive(Default)]
pub(super) struct NeedList {
    pub(super) items: Vec<Need>,
    pub(super) has_more: bool,
}

pub(super) async fn list(ask: &Ask, who: &Principal, lang: Lang) -> Result<NeedList, Refusal> {
    let words = Needs::of(lang);
    let mut needs = NeedList::default();
    if who.sight() != Sight::Own {
        alerts(ask, who, words, &mut needs).await?;
    }
    discards(ask, who, words, &mut needs).await?;
    questions(ask, who, words, &mut needs).await?;
    Ok(needs)
}

/// The first entities of a kind that are in a state.
async fn first(
    ask: &Ask,
    (kind, state): (Kind, &str),
    scope: Scope,
    needs: &mut NeedList,
) -> Result<Vec<Entity>, Refusal> {
    let state = Some(state.to_owned());
    let filter = EntityFilter { state, ..EntityFilter::of(kind, scope) };
    let page = ask.engine().entities(&filter, None, NEEDS_SHOWN_MAX).await?;
    needs.has_more |= page.next.is_some();
    Ok(page.items)
}

async fn alerts(
    ask: &Ask,
    who: &Principal,
    words: &'static Needs,
    needs: &mut NeedList,
) -> Result<(), Refusal> {
    let (which, whose) =
        ((Kind::Alert, AlertState::Open.as_str()), Scope::Tenant(who.tenant.clone()));
    for entity in first(ask, which, whose, needs).await? {
        let Body::Alert(alert) = &entity.body else { continue };
        let is_skip = alert.rule == Rule::ScheduleSkipped;
        let is_circuit = alert.rule == Rule::CircuitOpen;
        needs.items.push(Need {
            class: "need-alert",
            kind: match (is_skip, is_circuit) {
                (true, _) => words.skipped,
                (_, true) => words.circuit,
                (false, false) => words.alert,
            },
            text: format!("{} {}", alert.rule.severity().as_str(), alert.message),
            since: When(alert.raised_at),
            href: format!("/ui/alerts/{}", entity.id),
        });
    }
    Ok(())
}

async fn discards(
    ask: &Ask,
    who: &Principal,
    words: &'static Needs,
    needs: &mut NeedList,
) -> Result<(), Refusal> {
    let filter = ItemFilter {
        state: Some(DlqState::WAITING_NAMES[1].to_owned()),
        job: JobFilter::of(auth::scope(who)),
        signature: None,
        since: None,
        until: None,
    };
    let page = ask.engine().items(&filter, None, NEEDS_SHOWN_MAX).await?;
    needs.has_more |= page.next.is_some();
    for item in page.items {
        let DlqState::DiscardRequested(asked) = &item.state else { continue };
        let (by, job_type) = (asked.by.to_string(), item.job.job_type.to_string());
        needs.items.push(Need {
            class: "need-discard",
            kind: words.discard,
            text: fill(words.discard_text, &[&by, &job_type, &asked.reason]),
            since: When(asked.at),
            href: format!("/ui/dlq/items/{}", item.id),
        });
    }
    Ok(())
}

async fn questions(
    ask: &Ask,
    who: &Principal,
    words: &'static Needs,
    needs: &mut NeedList,
) -> Result<(), Refusal> {
    let which = (Kind::Question, Question::STATES[0]);
    for entity in first(ask, which, auth::scope(who), needs).await? {
        let Body::Question(question) = &entity.body else { continue };
        let Some(found) = ask.engine().job(question.job).await? else { continue };
        needs.items.push(Need {
            class: "need-question",
            kind: words.question,
            text: question.asked.text.to_string(),
            since: When(found.job.updated_at),
            href: "/ui/questions".to_owned(),
        });
    }
    Ok(())
}
