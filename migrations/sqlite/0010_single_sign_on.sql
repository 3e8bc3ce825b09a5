-- Operators who come in by single sign-on: the provider's issuer and its name for them, which nobody
-- else ever gets. Null: an account of this controller's own.
ALTER TABLE operators ADD COLUMN sso_identity TEXT CHECK (sso_identity <> '');
CREATE UNIQUE INDEX operators_by_identity ON operators (sso_identity) WHERE sso_identity IS NOT NULL;
