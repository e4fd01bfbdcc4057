-- compatible: what workers leave for the next try. Servers of before know of none.
--
-- Beside the job, and not in the record of live: that is written anew with every heartbeat, this only
-- when a worker leaves something. The row goes when its job ends.
CREATE TABLE mainspring.checkpoint (
    job   uuid PRIMARY KEY,
    value text NOT NULL
);

-- A job that waits for its next try may have an alarm, too: its queue timeout or its deadline. What is
-- there keeps the stricter rule, so nothing has to be looked at.
ALTER TABLE mainspring.live DROP CONSTRAINT live_check;
ALTER TABLE mainspring.live ADD CONSTRAINT live_check
    CHECK (state = 2 OR alarm_at IS NOT NULL) NOT VALID;
ALTER TABLE mainspring.live VALIDATE CONSTRAINT live_check;

-- The rule of kernel/src/backlog.rs, with the jobs that a job names to wait for.
CREATE OR REPLACE FUNCTION mainspring.held_bytes(payload text, trace text, more json) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 512 + octet_length(payload) + coalesce(octet_length(trace), 0)
        + coalesce(octet_length(more #>> '{key,scope}'), 0)
        + coalesce(octet_length(more #>> '{key,key}'), 0)
        + coalesce(octet_length(more ->> 'subject'), 0)
        + coalesce((
            SELECT sum(octet_length(l.pair ->> 0) + octet_length(l.pair ->> 1))
            FROM json_array_elements(more -> 'labels') l (pair)
        ), 0)
        + coalesce(json_array_length(more #> '{after,jobs}'), 0) * 100
        + coalesce((more #>> '{after,members}')::bigint, 0)
$$;
