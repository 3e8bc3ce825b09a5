-- People and programs that may look and act. Secrets are here as hashes only.

CREATE TABLE operators (
    name          TEXT PRIMARY KEY CHECK (name <> ''),
    role          TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'editor', 'administrator')),
    -- argon2id; null: signs in by one-time link only.
    password_hash TEXT,
    created       INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
    operator     TEXT    NOT NULL REFERENCES operators (name) ON DELETE CASCADE,
    created      INTEGER NOT NULL,
    seen         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_operator ON sessions (operator, created);
CREATE INDEX sessions_by_seen ON sessions (seen);

-- One-time links: a row is deleted by the one sign-in that uses it.
CREATE TABLE login_links (
    token_sha256 TEXT PRIMARY KEY CHECK (length(token_sha256) = 64),
    operator     TEXT    NOT NULL REFERENCES operators (name) ON DELETE CASCADE,
    expires      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_tokens (
    name         TEXT PRIMARY KEY CHECK (name <> ''),
    token_sha256 TEXT    NOT NULL UNIQUE CHECK (length(token_sha256) = 64),
    role         TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'editor', 'administrator')),
    created      INTEGER NOT NULL,
    expires      INTEGER NOT NULL
) STRICT;

-- INSERT OR REPLACE deletes without firing a delete trigger: what is append only refuses it too.
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the record is append only'); END;
CREATE TRIGGER policies_no_replace BEFORE INSERT ON policies
WHEN EXISTS (SELECT 1 FROM policies WHERE dependency = NEW.dependency AND revision = NEW.revision)
BEGIN SELECT RAISE(ABORT, 'policies are append only: a change is a new revision'); END;

-- Finding a receiver's next notice, and an episode's notices, without a scan.
CREATE INDEX outbox_by_receiver ON outbox (receiver, alert, id) WHERE state = 'waiting';
