//! The data: every job in the tables where it belongs and in no other, numbers that are what a
//! recount gives, leases that somebody looks after.

use super::{Look, Report};
use crate::migrate::MigrateError;
use crate::neighbours::GONE_AFTER;
use crate::values::At;
use tokio_postgres::types::Type;

/// Rows of each table that a check looks at.
const LOOKED_AT_MAX: i64 = 200_000;
/// Above this many live jobs the numbers are not counted again.
const RECOUNTED_MAX: i64 = 5_000_000;
/// Commits that may wait to be stamped.
const OUTBOX_MAX: i64 = 10_000;
/// Seconds after which a lease that ended, or a job that is due, should have been seen to.
const LATE_SECS: u64 = 60;

/// A rule that every job keeps: its code, what it means if a row is found, the cure, the statement.
/// `{n}` is how many rows to look at.
struct Rule {
    code: &'static str,
    text: &'static str,
    cure: &'static str,
    sql: &'static str,
}

const RESTORE: &str = "restore the job from a backup, or submit it again";
const REMOVE: &str = "with all servers stopped, delete the row that is wrong";

const RULES: &[Rule] = &[
    Rule {
        code: "job_missing",
        text: "rows of ready, waiting, live or finished have no job",
        cure: "restore the jobs from a backup, or delete the rows with all servers stopped",
        sql: "SELECT w.id FROM (
                (SELECT id FROM mainspring.ready LIMIT {n})
                UNION ALL (SELECT id FROM mainspring.waiting LIMIT {n})
                UNION ALL (SELECT id FROM mainspring.live LIMIT {n})
                UNION ALL (SELECT id FROM mainspring.finished LIMIT {n})
            ) w WHERE (SELECT 1 FROM mainspring.job j WHERE j.id = w.id) IS NULL",
    },
    Rule {
        code: "job_nowhere",
        text: "jobs are neither ready, waiting, live nor finished: nobody will ever run them",
        cure: RESTORE,
        sql: "SELECT c.id FROM (
                SELECT j.id FROM (SELECT id FROM mainspring.job LIMIT {n}) j
                WHERE (SELECT 1 FROM mainspring.finished f WHERE f.id = j.id) IS NULL
                    AND (SELECT 1 FROM mainspring.live l WHERE l.id = j.id) IS NULL
                    AND (SELECT 1 FROM mainspring.waiting w WHERE w.id = j.id) IS NULL
            ) c LEFT JOIN mainspring.ready r ON r.id = c.id WHERE r.id IS NULL",
    },
    Rule {
        code: "job_twice",
        text: "jobs are in two places at once",
        cure: REMOVE,
        sql: "SELECT r.id FROM (SELECT id, is_retry FROM mainspring.ready LIMIT {n}) r
            WHERE (SELECT 1 FROM mainspring.waiting w WHERE w.id = r.id) IS NOT NULL
                OR (SELECT 1 FROM mainspring.finished f WHERE f.id = r.id) IS NOT NULL
                OR (NOT r.is_retry
                    AND (SELECT 1 FROM mainspring.live l WHERE l.id = r.id) IS NOT NULL)
            UNION SELECT w.id FROM (SELECT id, is_retry FROM mainspring.waiting LIMIT {n}) w
            WHERE (SELECT 1 FROM mainspring.finished f WHERE f.id = w.id) IS NOT NULL
                OR (NOT w.is_retry
                    AND (SELECT 1 FROM mainspring.live l WHERE l.id = w.id) IS NOT NULL)
            UNION SELECT l.id FROM (SELECT id FROM mainspring.live LIMIT {n}) l
            WHERE (SELECT 1 FROM mainspring.finished f WHERE f.id = l.id) IS NOT NULL
            UNION SELECT r.id FROM (SELECT id FROM mainspring.ready LIMIT {n}) r
            GROUP BY r.id HAVING count(*) > 1",
    },
    Rule {
        code: "retry_without_live",
        text: "jobs wait for another try without having been tried",
        cure: REMOVE,
        sql: "SELECT r.id FROM (
                (SELECT id FROM mainspring.ready WHERE is_retry LIMIT {n})
                UNION ALL (SELECT id FROM mainspring.waiting WHERE is_retry LIMIT {n})
            ) r WHERE (SELECT l.state FROM mainspring.live l WHERE l.id = r.id) IS DISTINCT FROM 2",
    },
    Rule {
        code: "retry_without_place",
        text: "jobs are to be tried again, but are neither ready nor waiting",
        cure: RESTORE,
        sql: "SELECT c.id FROM (
                SELECT l.id FROM (SELECT id FROM mainspring.live WHERE state = 2 LIMIT {n}) l
                WHERE (SELECT 1 FROM mainspring.waiting w WHERE w.id = l.id) IS NULL
            ) c LEFT JOIN mainspring.ready r ON r.id = c.id WHERE r.id IS NULL",
    },
    Rule {
        code: "effect_without_job",
        text: "effects belong to jobs that there are not",
        cure: "restore the jobs from a backup, or delete the rows of effect",
        sql: "SELECT DISTINCT e.job AS id FROM (SELECT job FROM mainspring.effect LIMIT {n}) e
            WHERE (SELECT 1 FROM mainspring.job j WHERE j.id = e.job) IS NULL",
    },
    Rule {
        code: "lane_missing",
        text: "jobs stand in a lane that there is not",
        cure: "restore the table lane from a backup",
        sql: "SELECT j.id FROM (SELECT id, lane FROM mainspring.job LIMIT {n}) j
            WHERE (SELECT 1 FROM mainspring.lane n WHERE n.lane = j.lane) IS NULL
            UNION SELECT r.id FROM (SELECT id, lane FROM mainspring.ready LIMIT {n}) r
            WHERE (SELECT 1 FROM mainspring.lane n WHERE n.lane = r.lane) IS NULL",
    },
    Rule {
        code: "key_missing",
        text: "jobs that have not ended do not hold their idempotency key, or the name chosen for them",
        cure: "insert the key into held_key: its hash is in the column more of the job",
        sql: "SELECT j.id FROM (
                (SELECT id FROM mainspring.ready LIMIT {n})
                UNION (SELECT id FROM mainspring.waiting LIMIT {n})
                UNION (SELECT id FROM mainspring.live LIMIT {n})
            ) w CROSS JOIN LATERAL (
                SELECT j.id, (j.more -> n.name ->> 'hash')::uuid AS hash
                FROM mainspring.job j, (VALUES ('key'), ('alias')) n (name)
                WHERE j.id = w.id AND j.more IS NOT NULL OFFSET 0
            ) j
            WHERE j.hash IS NOT NULL AND (SELECT k.job FROM mainspring.held_key k
                WHERE k.hash = j.hash) IS DISTINCT FROM j.id",
    },
    Rule {
        code: "key_stuck",
        text: "idempotency keys are held by jobs that have ended or are gone",
        cure: "delete the rows of held_key of these jobs",
        sql: "SELECT k.job AS id FROM (
                SELECT job FROM mainspring.held_key WHERE free_at IS NULL LIMIT {n}) k
            WHERE (SELECT 1 FROM mainspring.finished f WHERE f.id = k.job) IS NOT NULL
                OR (SELECT 1 FROM mainspring.job j WHERE j.id = k.job) IS NULL",
    },
    Rule {
        code: "entity_unlisted",
        text: "entities have no terms, or terms no entity: lists miss some or show too many",
        cure: "with all servers stopped, copy everything to another database by mainspring move",
        sql:
            "SELECT e.id FROM (SELECT kind, id FROM mainspring.entity LIMIT {n}) e
            LEFT JOIN (SELECT kind, id, count(*) FROM mainspring.entity_term GROUP BY kind, id) t
            USING (kind, id) WHERE t.id IS NULL
            UNION SELECT t.id FROM (SELECT kind, id FROM mainspring.entity_term LIMIT {n}) t
            WHERE (SELECT 1 FROM mainspring.entity e WHERE e.kind = t.kind AND e.id = t.id) IS NULL",
    },
    Rule {
        code: "alarm_missing",
        text: "nobody will look after these jobs if their worker dies or they expire",
        cure: "set alarm_at of live to now, or insert the row of expiry: the reaper does the rest",
        sql: "(SELECT id FROM mainspring.live WHERE state <> 2 AND alarm_at IS NULL LIMIT {n})
            UNION ALL SELECT j.id FROM (
                (SELECT id FROM mainspring.ready WHERE NOT is_retry LIMIT {n})
                UNION ALL (SELECT id FROM mainspring.waiting WHERE NOT is_retry LIMIT {n})
            ) w CROSS JOIN LATERAL (
                SELECT j.id, least((j.more ->> 'expires_at')::bigint,
                    (j.more ->> 'deadline_at')::bigint,
                    CASE WHEN j.run_at < '9999-12-30Z' THEN (extract(epoch FROM j.run_at)
                        * 1000000)::bigint + (j.more ->> 'queue_timeout_ms')::bigint * 1000 END
                    ) AS expires_at
                FROM mainspring.job j WHERE j.id = w.id AND j.more IS NOT NULL OFFSET 0
            ) j
            WHERE j.expires_at IS NOT NULL AND (SELECT 1 FROM mainspring.expiry e
                WHERE e.id = j.id AND e.expires_at = 'epoch'::timestamptz
                    + j.expires_at * interval '1 microsecond') IS NULL",
    },
];

pub(super) async fn examine(look: &Look<'_>, report: &mut Report) -> Result<(), MigrateError> {
    let live = sizes(look, report).await?;
    let found = report.findings.len();
    for rule in RULES {
        apply(look, report, rule).await?;
    }
    if report.findings.len() == found {
        report.fact("jobs", format!("about {live} not ended, each in one place"));
    }
    if live <= RECOUNTED_MAX {
        recount(look, report).await?;
    } else {
        report.notes.push(format!("numbers were not counted again: about {live} jobs live"));
    }
    leases(look, report).await?;
    servers(look, report).await
}

/// Roughly how many jobs have not ended; says which tables are looked at in part.
async fn sizes(look: &Look<'_>, report: &mut Report) -> Result<i64, MigrateError> {
    let sql = "SELECT p.relname::text, (
            SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint FROM pg_class c
            WHERE c.oid = p.oid OR c.oid IN (
                SELECT inhrelid FROM pg_inherits WHERE inhparent = p.oid))
        FROM pg_class p
        WHERE p.relnamespace = to_regnamespace($1)
            AND p.relname IN ('job', 'ready', 'waiting', 'live', 'finished', 'held_key')";
    let mut live = 0;
    for row in look.ask(sql, &[(&look.config.schema, Type::TEXT)]).await? {
        let (name, rows): (&str, i64) = (row.get(0), row.get(1));
        if ["ready", "waiting", "live"].contains(&name) {
            live += rows;
        }
        if rows > LOOKED_AT_MAX {
            report.notes.push(format!("{name}: looked at {LOOKED_AT_MAX} of about {rows} rows"));
        }
    }
    Ok(live)
}

async fn apply(look: &Look<'_>, report: &mut Report, rule: &Rule) -> Result<(), MigrateError> {
    let sql = format!(
        "SELECT count(*), array_to_string((array_agg(v.id::text))[1:3], ', ') FROM ({}) v",
        rule.sql.replace("{n}", &LOOKED_AT_MAX.to_string())
    );
    let rows = match look.ask(&sql, &[]).await {
        Ok(rows) => rows,
        Err(error @ MigrateError::Away(_)) => return Err(error),
        Err(error) => {
            // A rule that could not be applied is not a rule that holds.
            report.fail(
                "check_failed",
                format!("{} could not be checked: {error}", rule.code),
                "if it took too long, try again at a quieter hour; else report it as a bug",
            );
            return Ok(());
        }
    };
    if let Some(row) = rows.first()
        && row.get::<_, i64>(0) > 0
    {
        let (count, some): (i64, String) = (row.get(0), row.get(1));
        report.fail(rule.code, format!("{count}: {} ({some})", rule.text), rule.cure);
    }
    Ok(())
}

/// Compares the numbers kept with what is there.
async fn recount(look: &Look<'_>, report: &mut Report) -> Result<(), MigrateError> {
    let sql = include_str!("../../scripts/recount.sql");
    let rows = look.ask(sql, &[]).await?;
    for row in &rows {
        let (name, kept, counted): (&str, i64, i64) = (row.get(0), row.get(1), row.get(2));
        report.fail(
            "tally_wrong",
            format!("{name} is kept as {kept} and counted as {counted}"),
            format!(
                "only metrics are off; with all servers stopped: UPDATE {}.tally SET n = n + {} \
                 WHERE name = '{name}'",
                look.config.schema,
                counted - kept
            ),
        );
    }
    if rows.is_empty() {
        report.fact("numbers", "as counted");
    }
    Ok(())
}

/// Leases that ended and jobs that are due, without anybody having seen to them.
async fn leases(look: &Look<'_>, report: &mut Report) -> Result<(), MigrateError> {
    let now = (look.config.now)();
    let late = At(now - std::time::Duration::from_secs(LATE_SECS));
    let sql = "SELECT
        (SELECT count(*) FROM (SELECT 1 FROM mainspring.live WHERE alarm_at < $1 LIMIT $2) w),
        (SELECT count(*) FROM (SELECT 1 FROM mainspring.waiting WHERE due_at < $1 LIMIT $2) w),
        (SELECT count(*) FROM (SELECT 1 FROM mainspring.outbox LIMIT $2) w)";
    let most = LOOKED_AT_MAX;
    let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
        [(&late, Type::TIMESTAMPTZ), (&most, Type::INT8)];
    let rows = look.ask(sql, &values).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let (leases, due, outbox): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    if leases > 0 {
        report.warn(
            "lease_not_reaped",
            format!("{leases} leases ended over {LATE_SECS} s ago and nobody took the jobs back"),
            "start a server; if one runs, see its log and its clock",
        );
    }
    if due > 0 {
        report.warn(
            "due_not_ready",
            format!("{due} jobs have been due for over {LATE_SECS} s and wait still"),
            "start a server; if one runs, see its log and its clock",
        );
    }
    match outbox > OUTBOX_MAX {
        true => report.warn(
            "outbox_backlog",
            format!("{outbox} commits or more wait for their place in the stream"),
            "start a server; if one runs, see its log",
        ),
        false => report.fact("outbox", format!("{outbox} commits wait for their place")),
    }
    Ok(())
}

/// The servers: those seen lately, and those that went without a word.
async fn servers(look: &Look<'_>, report: &mut Report) -> Result<(), MigrateError> {
    let sql = "SELECT name, version, extract(epoch FROM clock_timestamp() - seen_at)::float8
        FROM mainspring.node ORDER BY seen_at DESC LIMIT 100";
    let mut seen = 0;
    for row in look.ask(sql, &[]).await? {
        let (name, version, age): (&str, &str, f64) = (row.get(0), row.get(1), row.get(2));
        if age <= GONE_AFTER.as_secs_f64() {
            seen += 1;
            continue;
        }
        report.warn(
            "server_gone",
            format!("{name}, version {version}, has not been seen for {age:.0} s"),
            "see why it ended; it is forgotten after a day",
        );
    }
    report.fact("servers", format!("{seen} seen lately"));
    Ok(())
}
