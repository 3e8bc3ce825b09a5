-- Finding episodes that are over for long, to let go of them, without a scan.
CREATE INDEX alerts_resolved ON alerts (resolved) WHERE resolved IS NOT NULL;
