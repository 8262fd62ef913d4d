-- Schema version 5: what was erased does not come back under the key it had.

-- A key may tell what it stood for, so only its hash is kept, and one of key and content.
-- From now on the journal is chained with a secret beside the space; meta's 'journal_keys'
-- says with which, by name, and from which line on.
CREATE TABLE erased_key (
    key_hash TEXT NOT NULL,
    id TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    classification INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (key_hash, id)
) STRICT, WITHOUT ROWID;
