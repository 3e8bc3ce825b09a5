-- Minutes of routes, to be replayed under another policy: kept for a day.
CREATE TABLE minutes (
    id         INTEGER PRIMARY KEY,
    dependency TEXT    NOT NULL,
    operation  TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    span_ms    INTEGER NOT NULL CHECK (span_ms > 0),
    calls      INTEGER NOT NULL CHECK (calls >= 0),
    hedged     INTEGER NOT NULL CHECK (hedged >= 0),
    -- Primaries by latency, packed as agents send them, in the layout that is named.
    layout     INTEGER NOT NULL,
    done       BLOB    NOT NULL,
    censored   BLOB    NOT NULL,
    json       TEXT    NOT NULL CHECK (json_valid(json))
) STRICT;
CREATE INDEX minutes_by_route ON minutes (dependency, operation, at);
CREATE INDEX minutes_by_time ON minutes (at);
