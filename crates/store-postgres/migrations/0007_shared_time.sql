-- compatible: what the servers know about the clock of the database.
--
-- Time is the database's as long as that goes on. When it is set, the servers agree here on what that
-- means (kernel/src/shared_time.rs): one of them writes, by compare-and-set on the epoch, the others
-- follow. All instants are microseconds since 1970.
CREATE TABLE mainspring.clock (
    is_one   boolean PRIMARY KEY DEFAULT true CHECK (is_one),
    -- Grows by one with every change.
    epoch    bigint NOT NULL,
    -- How far time was ahead of the database's clock when that showed since_us.
    ahead_us bigint NOT NULL CHECK (ahead_us >= 0),
    since_us bigint NOT NULL,
    -- What the database's clock showed when a server last looked and found nothing odd.
    seen_us  bigint NOT NULL,
    -- Spans over which it was set forward: from and to in turn, oldest first.
    jumps_us bigint[] NOT NULL
);
INSERT INTO mainspring.clock (epoch, ahead_us, since_us, seen_us, jumps_us) VALUES (0, 0, 0, 0, '{}');
