//! The jobs around a job: what it came from and what it waited for on one side, what came of it on
//! the other, as a drawing that leads there. The first few of each; wide and tall, the style sheet
//! shows the one that fits.

use super::parts::{Html, escaped};
use super::words::{self, Lang, words};
use crate::ask::Ask;
use crate::auth;
use crate::limits::{DASHBOARD_PAGE, KIN_SHOWN_MAX};
use crate::refusal::Refusal;
use mainspring_engine::store::{EntityFilter, JobFilter, Scope};
use mainspring_kernel::entity::Kind;
use mainspring_kernel::{DlqItem, DlqState, Job, JobId, Principal, StateName};
use std::fmt::Write;

words! {
    KinWords {
        name: "Jobs around this one", "相关作业";
        parent: "parent", "父作业";
        waited_for: "waited for", "所等待";
        requeued_from: "requeued from", "重新运行自";
        child: "child", "子作业";
        waits: "waits for this", "等待本作业";
        requeued_as: "runs again as", "重新运行为";
        here: "this job", "本作业";
        more: "There are more.", "还有更多。";
    }
}

/// A job near this one, and what it is to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Relative {
    id: JobId,
    job_type: String,
    state: StateName,
    relation: &'static str,
}

/// The jobs around one.
#[derive(Debug, Default)]
struct Kin {
    before: Vec<Relative>,
    after: Vec<Relative>,
    has_more: bool,
}

/// The jobs around a job, drawn; nothing if there are none that whoever looks may see.
pub(super) async fn drawn(
    ask: &Ask,
    who: &Principal,
    (job, item): (&Job, Option<&DlqItem>),
    lang: Lang,
) -> Result<Option<Html>, Refusal> {
    let words = KinWords::of(lang);
    let kin = found(ask, who, (job, item), words).await?;
    if kin.before.is_empty() && kin.after.is_empty() {
        return Ok(None);
    }
    let here = Relative {
        id: job.id,
        job_type: job.job_type.to_string(),
        state: job.state.name(),
        relation: words.here,
    };
    Ok(Some(draw(&here, &kin, lang, words)))
}

async fn found(
    ask: &Ask,
    who: &Principal,
    (job, item): (&Job, Option<&DlqItem>),
    words: &'static KinWords,
) -> Result<Kin, Refusal> {
    let (engine, scope) = (ask.engine(), auth::scope(who));
    let mut named: Vec<(bool, JobId, &'static str)> = Vec::new();
    if let Some(extras) = job.extras.as_deref() {
        named.extend(extras.parent.map(|id| (true, id, words.parent)));
        let from = extras.source_dlq.map(|item| JobId(item.0));
        named.extend(from.map(|id| (true, id, words.requeued_from)));
    }
    let waited_for = job.after().into_iter().flat_map(|after| &after.jobs);
    named.extend(waited_for.map(|id| (true, *id, words.waited_for)));
    if let Some(DlqState::Requeued { job, .. }) = item.map(|item| &item.state) {
        named.push((false, *job, words.requeued_as));
    }
    // Who waits for it now; who did once is found by the trace, as children are.
    let waits = EntityFilter {
        field: Some(("job".to_owned(), job.id.to_string())),
        ..EntityFilter::of(Kind::Wait, Scope::All)
    };
    let waits = engine.entities(&waits, None, KIN_SHOWN_MAX).await?;
    named.extend(waits.items.iter().map(|wait| (false, JobId(wait.id.bits), words.waits)));
    let mut kin = Kin { has_more: waits.next.is_some(), ..Kin::default() };
    for (is_before, id, relation) in named {
        let side = if is_before { &mut kin.before } else { &mut kin.after };
        if side.len() >= KIN_SHOWN_MAX {
            kin.has_more = true;
            continue;
        }
        if let Some(found) = engine.job_within(id, &scope).await? {
            side.push(relative(&found.job, relation));
        }
    }
    let trace = Some(job.trace_id());
    let traced = JobFilter { trace_id: trace, ..JobFilter::of(scope) };
    let traced = engine.jobs(&traced, None, DASHBOARD_PAGE).await?;
    kin.has_more |= traced.next.is_some();
    // Oldest first, as they came.
    for other in traced.items.iter().rev().filter(|other| other.id != job.id) {
        let relation =
            match (other.extras.as_deref().and_then(|extras| extras.parent), other.after()) {
                (Some(parent), _) if parent == job.id => words.child,
                (_, Some(after)) if after.jobs.contains(&job.id) => words.waits,
                _ => continue,
            };
        let is_known = kin.after.iter().any(|known| known.id == other.id);
        match kin.after.len() < KIN_SHOWN_MAX {
            _ if is_known => {}
            true => kin.after.push(relative(other, relation)),
            false => kin.has_more = true,
        }
    }
    Ok(kin)
}

fn relative(job: &Job, relation: &'static str) -> Relative {
    let (job_type, state) = (job.job_type.to_string(), job.state.name());
    Relative { id: job.id, job_type, state, relation }
}

/// Half of the width and of the height of a job in the drawing.
const HALF: (i32, i32) = (124, 24);
/// From one job to the one below it.
const STEP: i32 = 60;
/// Letters of a type that fit.
const LETTERS: usize = 26;

fn draw(here: &Relative, kin: &Kin, lang: Lang, words: &'static KinWords) -> Html {
    let mut svg = String::with_capacity(8 << 10);
    wide(&mut svg, here, kin, (lang, words));
    tall(&mut svg, here, kin, (lang, words));
    if kin.has_more {
        let _ = write!(svg, "<p class=\"soft small\">{}</p>", words.more);
    }
    Html(svg)
}

/// Before, here and after side by side.
fn wide(svg: &mut String, here: &Relative, kin: &Kin, told: (Lang, &'static KinWords)) {
    let rows = kin.before.len().max(kin.after.len()).max(1) as i32;
    let middle = rows * STEP / 2;
    let height = |count: usize, index: usize| {
        middle - (count as i32 * STEP) / 2 + index as i32 * STEP + STEP / 2
    };
    let columns: [i32; 3] = match kin.before.is_empty() {
        true => [0, 128, 428],
        false => [128, 428, 728],
    };
    begin(svg, "map kin map-wide", (856, rows * STEP), told.1);
    for (index, one) in kin.before.iter().enumerate() {
        let y = height(kin.before.len(), index);
        let (from, to) = (columns[0] + HALF.0, columns[1] - HALF.0);
        curve(svg, (from, y), (to, middle));
        node(svg, (columns[0], y), one, told.0);
    }
    for (index, one) in kin.after.iter().enumerate() {
        let y = height(kin.after.len(), index);
        let (from, to) = (columns[1] + HALF.0, columns[2] - HALF.0);
        curve(svg, (from, middle), (to, y));
        node(svg, (columns[2], y), one, told.0);
    }
    node(svg, (columns[1], middle), here, told.0);
    svg.push_str("</svg>");
}

/// The same below each other, for narrow screens.
fn tall(svg: &mut String, here: &Relative, kin: &Kin, told: (Lang, &'static KinWords)) {
    let rows = (kin.before.len() + kin.after.len() + 1) as i32;
    let (x, at) = (160, |row: usize| row as i32 * STEP + STEP / 2);
    let (left, right) = (x - HALF.0, x + HALF.0);
    let own = at(kin.before.len());
    begin(svg, "map kin map-tall", (320, rows * STEP), told.1);
    for (row, one) in kin.before.iter().enumerate() {
        let y = at(row);
        let _ = write!(svg, "<path class=\"move\" d=\"M{left} {y}H10V{}H{}\"/>", own - 6, left - 6);
        node(svg, (x, y), one, told.0);
    }
    if !kin.before.is_empty() {
        arrow(svg, (left, own - 6), 1);
    }
    for (index, one) in kin.after.iter().enumerate() {
        let y = at(kin.before.len() + 1 + index);
        let _ = write!(svg, "<path class=\"move\" d=\"M{right} {own}H310V{y}H{}\"/>", right + 6);
        arrow(svg, (right, y), -1);
        node(svg, (x, y), one, told.0);
    }
    node(svg, (x, own), here, told.0);
    svg.push_str("</svg>");
}

fn begin(svg: &mut String, class: &str, (width, height): (i32, i32), words: &'static KinWords) {
    let name = words.name;
    // Writing to a string cannot fail, here and below.
    let _ = write!(
        svg,
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"group\" \
         aria-label=\"{name}\">"
    );
}

fn curve(svg: &mut String, (fx, fy): (i32, i32), (tx, ty): (i32, i32)) {
    let (half, end) = ((fx + tx) / 2, tx - 6);
    let path = format!("M{fx} {fy}C{half} {fy} {half} {ty} {end} {ty}");
    let _ = write!(svg, "<path class=\"move\" d=\"{path}\"/>");
    arrow(svg, (tx, ty), 1);
}

/// A small triangle that ends at a point, to the right or to the left.
fn arrow(svg: &mut String, (x, y): (i32, i32), way: i32) {
    let back = x - 8 * way;
    let (up, down) = (y - 4, y + 4);
    let _ = write!(svg, "<path class=\"head\" d=\"M{x} {y}L{back} {up}L{back} {down}Z\"/>");
}

fn node(svg: &mut String, (x, y): (i32, i32), one: &Relative, lang: Lang) {
    let (left, top, wide, high) = (x - HALF.0, y - HALF.1, 2 * HALF.0, 2 * HALF.1);
    let (id, state, relation) = (one.id, one.state.as_str(), one.relation);
    let label = words::state(lang, one.state);
    let clipped: String = match one.job_type.chars().count() > LETTERS {
        true => one.job_type.chars().take(LETTERS - 1).chain(['…']).collect(),
        false => one.job_type.clone(),
    };
    let (title, name) = (escaped(&one.job_type), escaped(&clipped));
    let _ = write!(
        svg,
        "<a class=\"node s-{state}\" href=\"/ui/jobs/{id}\"><title>{title} {id}</title><rect \
         x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" rx=\"10\"/><rect \
         class=\"mark\" x=\"{left}\" y=\"{}\" width=\"4\" height=\"{}\" rx=\"2\"/><text \
         class=\"name\" x=\"{}\" y=\"{}\">{name}</text><text class=\"label\" x=\"{}\" y=\"{}\">\
         {relation} · {label}</text></a>",
        top + 8,
        high - 16,
        left + 16,
        y - 3,
        left + 16,
        y + 14,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: u128, job_type: &str) -> Relative {
        let (job_type, state) = (job_type.to_owned(), StateName::Queued);
        Relative { id: JobId(id), job_type, state, relation: "child" }
    }

    #[test]
    fn everybody_is_on_both_drawings_and_names_are_text() {
        let kin = Kin {
            before: vec![one(1, "<b>bold</b>")],
            after: vec![one(3, &"long ".repeat(20)), one(4, "plain")],
            has_more: true,
        };
        let svg = draw(&one(2, "here"), &kin, Lang::En, KinWords::of(Lang::En)).0;
        for id in 1..=4 {
            let link = format!("href=\"/ui/jobs/{}\"", JobId(id));
            assert_eq!(svg.matches(&link).count(), 2, "{id}");
        }
        assert!(!svg.contains("<b>") && svg.contains("&lt;b&gt;bold"), "{svg}");
        assert!(svg.contains("long long lo") && svg.contains('…') && svg.contains("more"));
        assert_eq!(svg.matches("class=\"head\"").count(), 6, "an arrow for each");
    }
}
