-- Policies that are put in force in steps. A row is a rollout under way; it goes when that is over.
CREATE TABLE rollouts (
    dependency TEXT    PRIMARY KEY CHECK (dependency <> ''),
    -- The revision that is rolled out, and the one that agents outside the share hold; 0: none.
    revision   INTEGER NOT NULL CHECK (revision > base),
    base       INTEGER NOT NULL CHECK (base >= 0),
    -- Shares of the agents, and the time in each.
    plan       TEXT    NOT NULL CHECK (json_valid(plan)),
    -- The present share's place in the plan, from 0.
    stage      INTEGER NOT NULL CHECK (stage >= 0),
    since      INTEGER NOT NULL,
    actor      TEXT    NOT NULL,
    via        TEXT    NOT NULL
) STRICT;

-- Each route's mode for the agents that hold the revision that is rolled out. Rows of another
-- revision than the rollout's are of one that is over.
CREATE TABLE trial_modes (
    dependency TEXT    NOT NULL,
    operation  TEXT    NOT NULL,
    revision   INTEGER NOT NULL,
    mode       TEXT    NOT NULL CHECK (json_valid(mode)),
    since      INTEGER NOT NULL,
    sequence   INTEGER NOT NULL CHECK (sequence >= 0),
    PRIMARY KEY (dependency, operation, revision)
) STRICT;
