-- What the controller's core must find again after any end of its process.
-- Times are milliseconds since 1970. JSON columns hold the core's own types.

-- The store's life: raised by one at each start, so that agents accept what a restored store says.
CREATE TABLE meta (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL CHECK (epoch >= 0)
) STRICT;

-- Every revision of every policy. Append only.
CREATE TABLE policies (
    dependency TEXT    NOT NULL CHECK (dependency <> ''),
    revision   INTEGER NOT NULL CHECK (revision > 0),
    json       TEXT    NOT NULL CHECK (json_valid(json)),
    actor      TEXT    NOT NULL,
    via        TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (dependency, revision)
) STRICT;

CREATE TRIGGER policies_no_update BEFORE UPDATE ON policies
BEGIN SELECT RAISE(ABORT, 'policies are append only: a change is a new revision'); END;
CREATE TRIGGER policies_no_delete BEFORE DELETE ON policies
BEGIN SELECT RAISE(ABORT, 'policies are append only: old revisions stay'); END;

-- Where each kill switch stands, also released ones. `dependency` is '' for the one over everything.
CREATE TABLE kills (
    scope      TEXT    NOT NULL CHECK (scope IN ('everything', 'dependency')),
    dependency TEXT    NOT NULL,
    engaged    INTEGER NOT NULL CHECK (engaged IN (0, 1)),
    actor      TEXT    NOT NULL,
    via        TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (scope, dependency)
) STRICT;

-- Each route's mode.
CREATE TABLE modes (
    dependency TEXT    NOT NULL,
    operation  TEXT    NOT NULL,
    mode       TEXT    NOT NULL CHECK (json_valid(mode)),
    since      INTEGER NOT NULL,
    sequence   INTEGER NOT NULL CHECK (sequence >= 0),
    PRIMARY KEY (dependency, operation)
) STRICT;

-- Automatic changes of mode, with the figures that led to them.
CREATE TABLE transitions (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    dependency TEXT    NOT NULL,
    operation  TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    json       TEXT    NOT NULL CHECK (json_valid(json))
) STRICT;
CREATE INDEX transitions_by_route ON transitions (dependency, operation, id);

-- The record: who did what, when, from where, why. Append only (S13).
CREATE TABLE audit (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    at           INTEGER NOT NULL,
    actor        TEXT    NOT NULL,
    via          TEXT    NOT NULL,
    action       TEXT    NOT NULL,
    target       TEXT    NOT NULL,
    before_value TEXT    NOT NULL,
    after_value  TEXT    NOT NULL,
    reason       TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_by_target ON audit (target, id);

CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the record is append only'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the record is append only'); END;

-- Episodes of alerts.
CREATE TABLE alerts (
    id         TEXT PRIMARY KEY CHECK (id <> ''),
    rule       TEXT    NOT NULL,
    dependency TEXT    NOT NULL,
    operation  TEXT    NOT NULL,
    replica    TEXT,
    summary    TEXT    NOT NULL,
    since      INTEGER NOT NULL,
    resolved   INTEGER
) STRICT;
CREATE INDEX alerts_firing ON alerts (since) WHERE resolved IS NULL;

-- Notices for receivers, written in the same transaction as the change they tell of. One firing and
-- one resolved for each episode and receiver (P15): the key says so.
CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    alert      TEXT    NOT NULL REFERENCES alerts (id),
    kind       TEXT    NOT NULL CHECK (kind IN ('firing', 'resolved')),
    receiver   TEXT    NOT NULL,
    -- The episode as it was when the notice was written: AlertState.
    json       TEXT    NOT NULL CHECK (json_valid(json)),
    state      TEXT    NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'given_up')),
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL,
    last_error TEXT,
    at         INTEGER NOT NULL,
    done       INTEGER,
    UNIQUE (alert, receiver, kind)
) STRICT;
CREATE INDEX outbox_waiting ON outbox (next_at) WHERE state = 'waiting';

-- Points of the routes' courses, kept for seven days.
CREATE TABLE history (
    id         INTEGER PRIMARY KEY,
    dependency TEXT    NOT NULL,
    operation  TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    json       TEXT    NOT NULL CHECK (json_valid(json))
) STRICT;
CREATE INDEX history_by_route ON history (dependency, operation, at);
CREATE INDEX history_by_time ON history (at);

-- Credentials of agents: hashes, never the tokens.
CREATE TABLE agent_tokens (
    token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
    service      TEXT    NOT NULL CHECK (service <> ''),
    created      INTEGER NOT NULL
) STRICT;
