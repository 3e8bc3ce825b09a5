-- Silences: alerts that match all of what is named (null: anything) have no firing notice sent
-- meanwhile. A row is never changed: a silence ends at its time, or by a row in the table after.
CREATE TABLE silences (
    id         INTEGER PRIMARY KEY CHECK (id > 0),
    rule       TEXT    CHECK (rule <> ''),
    dependency TEXT    CHECK (dependency <> ''),
    operation  TEXT    CHECK (operation IS NULL OR (operation <> '' AND dependency IS NOT NULL)),
    replica    TEXT    CHECK (replica <> ''),
    actor      TEXT    NOT NULL,
    via        TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    since      INTEGER NOT NULL,
    ends       INTEGER NOT NULL CHECK (ends > since)
) STRICT;

-- Silences that somebody ended before their time.
CREATE TABLE silence_ends (
    silence INTEGER PRIMARY KEY REFERENCES silences (id),
    at      INTEGER NOT NULL
) STRICT;

CREATE TRIGGER silences_no_update BEFORE UPDATE ON silences
BEGIN SELECT RAISE(ABORT, 'silences are append only: end one, and make another'); END;
CREATE TRIGGER silences_no_delete BEFORE DELETE ON silences
BEGIN SELECT RAISE(ABORT, 'silences are append only: they end by their time'); END;
CREATE TRIGGER silences_no_replace BEFORE INSERT ON silences
WHEN EXISTS (SELECT 1 FROM silences WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'silences are append only: a number is used once'); END;
CREATE TRIGGER silence_ends_no_update BEFORE UPDATE ON silence_ends
BEGIN SELECT RAISE(ABORT, 'silences are append only: an end stays where it is'); END;
CREATE TRIGGER silence_ends_no_delete BEFORE DELETE ON silence_ends
BEGIN SELECT RAISE(ABORT, 'silences are append only: what is ended is not begun again'); END;

-- Who said that they work on an alert; the newest row of an episode is the one that holds. They go
-- with their episode, when that is long over. No reference: somebody may be quicker than the write
-- of what they saw.
CREATE TABLE acknowledgements (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    alert   TEXT    NOT NULL CHECK (alert <> ''),
    actor   TEXT    NOT NULL,
    via     TEXT    NOT NULL,
    comment TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    -- Null: until the alert is over.
    until   INTEGER
) STRICT;
CREATE INDEX acknowledgements_by_alert ON acknowledgements (alert, id);

CREATE TRIGGER acknowledgements_no_update BEFORE UPDATE ON acknowledgements
BEGIN SELECT RAISE(ABORT, 'acknowledgements are append only: a new one takes the place of the last'); END;

-- Whether receivers were told of the episode: not one that began under a silence, until that ends.
ALTER TABLE alerts ADD COLUMN told INTEGER NOT NULL DEFAULT 1 CHECK (told IN (0, 1));
