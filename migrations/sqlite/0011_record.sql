-- Finding who did what, and what was done when, without a scan of the whole record.
CREATE INDEX audit_by_actor ON audit (actor, id);
CREATE INDEX audit_by_action ON audit (action, id);
CREATE INDEX audit_by_time ON audit (at);
