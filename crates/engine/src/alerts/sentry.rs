//! The task that looks for what people should look at. It sleeps while there is nothing to look at:
//! no signs, nothing beyond a threshold, no job that is due. Otherwise it looks every so often.

use super::AlertConfig;
use super::reports::Told;
use crate::engine::Shared;
use crate::limits::{ALERTS_FOUND_MAX, ALERTS_PER_RULE_MAX, GROWTH_COUNTED_MAX, SLEEP_MAX};
use crate::timers::send_each;
use mainspring_kernel::entity::Kind;
use mainspring_kernel::entity::alert::watch::{Thresholds, Watch};
use mainspring_kernel::entity::alert::{
    AlertCommand, AlertState, Level, Milli, Rule, SERVER_TENANT, Sighting,
};
use mainspring_kernel::{EntityId, TenantId, Timestamp};
use mainspring_store::{EntityFilter, Error, ItemFilter, JobFilter, Scope};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Dead letters are counted over this long.
const GROWTH_WINDOW: Duration = Duration::from_secs(60);
/// What was so in one moment is told of for at least this long: who looks once a day sees it.
const SKIP_QUIET: Duration = Duration::from_secs(24 * 3_600);

/// What is looked at: a rule, a tenant, and what it is about.
pub(super) type Key = (Rule, TenantId, Box<str>);

/// What the task remembers. Made anew at the next start.
#[derive(Default)]
pub(super) struct Sentry {
    /// Whether the alerts that stand were looked up.
    has_begun: bool,
    /// Since when what is beyond its threshold.
    watches: BTreeMap<Key, Watch>,
    /// Tenants with dead letters, and when the last of them were told.
    growth: BTreeMap<TenantId, Timestamp>,
    /// Tenants whose share of retries is looked at.
    pub(super) retrying: BTreeSet<TenantId>,
    /// Whether jobs are due that somebody should come for.
    pub(super) has_due: bool,
    /// Whether the circuit of a type is not closed.
    pub(super) has_open: bool,
    /// Whether anything is promised of a type.
    pub(super) has_promises: bool,
}

/// What was seen of one thing.
pub(super) struct Seen {
    pub(super) key: Key,
    pub(super) value: Milli,
    pub(super) thresholds: Thresholds,
    pub(super) quiet: Duration,
}

/// Runs until the engine stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    if !shared.reports.is_on {
        return;
    }
    let mut sentry = Sentry::default();
    let every = shared.config.alerts.check_every;
    let mut types_changed = shared.types_changed.subscribe();
    loop {
        types_changed.mark_unchanged();
        let is_idle = match sentry.turn(&shared).await {
            Ok(is_idle) => is_idle,
            Err(Error::Stopped) => return,
            Err(error) => {
                if !matches!(error, Error::Away(_)) {
                    tracing::warn!(%error, "what people should look at could not be looked up");
                }
                false
            }
        };
        let again_at = Instant::now() + every.max(MIN_PAUSE);
        let sleep_until = if is_idle { again_at.max(Instant::now() + SLEEP_MAX) } else { again_at };
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = shared.reports.changed.notified(), if is_idle => {}
            _ = types_changed.changed(), if is_idle => {}
            () = tokio::time::sleep_until(sleep_until) => {}
        }
    }
}

/// However often is asked for.
const MIN_PAUSE: Duration = Duration::from_millis(10);

impl Sentry {
    /// Looks once; whether there is nothing to look at for the time being.
    async fn turn(&mut self, shared: &Arc<Shared>) -> Result<bool, Error> {
        let config = shared.config.alerts;
        let now = shared.clock.now();
        if !self.has_begun {
            self.begin(shared).await?;
        }
        let told = shared.reports.take();
        let mut seen = Vec::new();
        self.growth(shared, &told, now, &mut seen).await?;
        told_of(&told, &config, &mut seen);
        refused(shared, now, &mut seen);
        of_server(shared, &told, &mut seen);
        self.promises(shared, &told, now, &mut seen).await?;
        let retried = told.tenants.iter().filter(|(_, signs)| signs.has_retried);
        self.retrying.extend(retried.map(|(tenant, _)| tenant.clone()));
        self.ratios(shared, &mut seen).await?;
        self.workers(shared, now, &mut seen).await?;
        self.circuits(shared, &mut seen).await?;
        let sightings = self.judge(seen, now);
        self.raise(shared, sightings).await?;
        Ok(self.watches.is_empty()
            && self.growth.is_empty()
            && self.retrying.is_empty()
            && !self.has_due
            && !self.has_open
            && !self.has_promises)
    }

    /// Looks up the alerts that stand: what they are about is looked at, though nothing is told of
    /// it again.
    async fn begin(&mut self, shared: &Shared) -> Result<(), Error> {
        for state in [AlertState::Open, AlertState::Acknowledged] {
            let filter = EntityFilter {
                state: Some(state.as_str().to_owned()),
                field: Some(("rule".to_owned(), Rule::RetryingRatio.as_str().to_owned())),
                ..EntityFilter::of(Kind::Alert, Scope::All)
            };
            let page = shared.store.entities(&filter, None, ALERTS_FOUND_MAX).await?;
            self.retrying.extend(page.items.into_iter().map(|entity| entity.tenant));
        }
        self.has_begun = true;
        Ok(())
    }

    /// Dead letters of the last minute, by tenant, whichever server wrote them.
    async fn growth(
        &mut self,
        shared: &Shared,
        told: &Told,
        now: Timestamp,
        seen: &mut Vec<Seen>,
    ) -> Result<(), Error> {
        let config = &shared.config.alerts;
        if config.dlq_growth_per_minute == 0 {
            return Ok(());
        }
        for (tenant, _) in told.tenants.iter().filter(|(_, signs)| signs.dead > 0) {
            self.growth.insert(tenant.clone(), now);
        }
        self.growth.retain(|_, at| now.since(*at) < GROWTH_WINDOW);
        for tenant in self.growth.keys() {
            let filter = ItemFilter {
                state: None,
                job: JobFilter::of(Scope::Tenant(tenant.clone())),
                signature: None,
                since: Some(now - GROWTH_WINDOW),
                until: None,
            };
            let count = shared.store.count_items(&filter, GROWTH_COUNTED_MAX).await?;
            seen.push(Seen {
                key: (Rule::DlqGrowth, tenant.clone(), "".into()),
                value: Milli::whole(count as u64),
                thresholds: at_once(Milli::whole(config.dlq_growth_per_minute)),
                quiet: config.quiet,
            });
        }
        Ok(())
    }

    /// What is beyond its threshold, and for long enough. Nothing is known any more of what was not
    /// seen this time.
    fn judge(&mut self, seen: Vec<Seen>, now: Timestamp) -> Vec<Sighting> {
        let mut before = std::mem::take(&mut self.watches);
        let mut sightings = Vec::new();
        for Seen { key, value, thresholds, quiet } in seen {
            let mut watch = before.remove(&key).unwrap_or_default();
            let Some(level) = watch.see(value, thresholds, now) else { continue };
            let (rule, tenant, subject) = key.clone();
            self.watches.insert(key, watch);
            sightings.push(Sighting {
                tenant,
                rule,
                subject,
                level,
                value,
                threshold: thresholds.raise,
                quiet_ms: u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX),
            });
        }
        sightings
    }

    async fn raise(&self, shared: &Arc<Shared>, sightings: Vec<Sighting>) -> Result<(), Error> {
        let mut wanted = Vec::with_capacity(sightings.len());
        for sighting in sightings {
            if has_room(shared, &sighting).await? {
                wanted.push(sighting);
            }
        }
        let see = |sighting: Sighting| AlertCommand::See(Box::new(sighting)).into();
        // What could not be had is seen again the next time.
        send_each(shared, wanted, see, |_, _| {}).await?;
        Ok(())
    }
}

/// What has subjects that callers choose has so many alerts and no more: they are never given away.
async fn has_room(shared: &Shared, sighting: &Sighting) -> Result<bool, Error> {
    if sighting.subject.is_empty() || sighting.level == Level::Lingering {
        return Ok(true);
    }
    if shared.store.entity(sighting.id()).await?.is_some() {
        return Ok(true);
    }
    let field = Some(("rule".to_owned(), sighting.rule.as_str().to_owned()));
    let scope = Scope::Tenant(sighting.tenant.clone());
    let filter = EntityFilter { field, ..EntityFilter::of(Kind::Alert, scope) };
    Ok(shared.store.count_entities(&filter, ALERTS_PER_RULE_MAX).await? < ALERTS_PER_RULE_MAX)
}

/// What was told and needs no looking up.
fn told_of(told: &Told, config: &AlertConfig, seen: &mut Vec<Seen>) {
    for (tenant, signs) in &told.tenants {
        let (value, raise) = (millis(signs.late), millis(config.lag));
        if raise > Milli(0) && value > Milli(0) {
            let (key, thresholds) = ((Rule::Lag, tenant.clone(), "".into()), at_once(raise));
            seen.push(Seen { key, value, thresholds, quiet: config.quiet });
        }
    }
    for (schedule, (tenant, skipped)) in &told.skips {
        if config.tells_skips {
            seen.push(skip(*schedule, tenant, *skipped, config));
        }
    }
}

/// Moves refused in a row, whichever servers answered.
fn refused(shared: &Shared, now: Timestamp, seen: &mut Vec<Seen>) {
    let config = shared.config.alerts;
    let raise = Milli::whole(config.invalid_transitions);
    let longest = shared.reports.rows.longest(now, config.quiet);
    let beyond = longest.into_iter().filter(|(_, count)| raise > Milli(0) && *count > 0);
    seen.extend(beyond.map(|(tenant, count)| Seen {
        key: (Rule::InvalidTransitions, tenant, "".into()),
        value: Milli::whole(count),
        thresholds: at_once(raise),
        quiet: config.quiet,
    }));
}

/// What concerns the server itself.
fn of_server(shared: &Shared, told: &Told, seen: &mut Vec<Seen>) {
    let tenant = || TenantId::stored(SERVER_TENANT.into());
    let mut note = |rule: Rule, subject: &str, quiet: Duration| {
        let (key, value) = ((rule, tenant(), subject.into()), Milli::whole(1));
        seen.push(Seen { key, value, thresholds: at_once(value), quiet });
    };
    let quiet = shared.config.alerts.quiet;
    if shared.store.is_low_on_space() {
        note(Rule::LowOnSpace, "", quiet);
    }
    if let Some(why) = shared.reports.certificate_trouble() {
        note(Rule::Certificate, &why, quiet);
    }
    if let Some(why) = &told.died {
        note(Rule::PartDied, why, quiet.max(SKIP_QUIET));
    }
}

fn skip(schedule: EntityId, tenant: &TenantId, skipped: u64, config: &AlertConfig) -> Seen {
    Seen {
        key: (Rule::ScheduleSkipped, tenant.clone(), schedule.to_string().into()),
        value: Milli::whole(skipped),
        thresholds: at_once(Milli::whole(1)),
        quiet: config.quiet.max(SKIP_QUIET),
    }
}

/// What is told of once it is so.
pub(super) fn at_once(raise: Milli) -> Thresholds {
    Thresholds { raise, hold_ms: 0 }
}

/// Seconds, to the thousandth.
pub(super) fn millis(span: Duration) -> Milli {
    Milli(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}
