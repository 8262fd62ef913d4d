-- Schema version 1. Times are milliseconds since 1970 UTC.

CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Every revision of every memory is a row; the live one has live_to NULL.
-- A row's content never changes: an update closes it and adds the next.
CREATE TABLE item (
    rid INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    rev INTEGER NOT NULL DEFAULT 1,
    level TEXT NOT NULL CHECK (level IN ('raw', 'item', 'insight')),
    kind TEXT NOT NULL,
    layer TEXT,
    topic TEXT,
    tier TEXT NOT NULL DEFAULT 'general',
    text TEXT NOT NULL,
    about TEXT NOT NULL DEFAULT '',
    original TEXT,
    caption TEXT,
    language TEXT,
    speaker TEXT,
    session TEXT,
    seq INTEGER,
    parent TEXT,
    subject TEXT,
    attribute TEXT,
    source TEXT NOT NULL,
    source_class TEXT NOT NULL,
    writer TEXT NOT NULL,
    trust INTEGER NOT NULL CHECK (trust BETWEEN 0 AND 3),
    integrity INTEGER NOT NULL CHECK (integrity BETWEEN 0 AND 4),
    credibility INTEGER NOT NULL CHECK (credibility BETWEEN 0 AND 6),
    classification INTEGER NOT NULL CHECK (classification BETWEEN 0 AND 3),
    emotion REAL NOT NULL DEFAULT 0,
    importance REAL NOT NULL DEFAULT 0.5,
    confidence REAL NOT NULL DEFAULT 1,
    relevance REAL NOT NULL DEFAULT 0,
    pinned INTEGER NOT NULL DEFAULT 0,
    protected INTEGER NOT NULL DEFAULT 0,
    occurred_at INTEGER,
    occurred_end INTEGER,
    stored_at INTEGER NOT NULL,
    valid_from INTEGER,
    valid_to INTEGER,
    live_from INTEGER NOT NULL,
    live_to INTEGER,
    ended_by TEXT,
    status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'superseded', 'quarantined')),
    tokens INTEGER NOT NULL DEFAULT 0,
    length INTEGER NOT NULL DEFAULT 0,
    tags TEXT NOT NULL DEFAULT '[]',
    entities TEXT NOT NULL DEFAULT '[]',
    flags TEXT NOT NULL DEFAULT '[]',
    metadata TEXT NOT NULL DEFAULT '{}',
    fingerprint TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    UNIQUE (id, rev)
) STRICT;
CREATE UNIQUE INDEX item_live ON item (id) WHERE live_to IS NULL;
CREATE INDEX item_fingerprint ON item (fingerprint) WHERE live_to IS NULL;
CREATE INDEX item_session ON item (session, seq) WHERE session IS NOT NULL;
CREATE INDEX item_occurred ON item (coalesce(occurred_at, stored_at));
CREATE INDEX item_stored ON item (stored_at, id);
CREATE INDEX item_parent ON item (parent) WHERE parent IS NOT NULL;
CREATE INDEX item_slot ON item (subject, attribute) WHERE subject IS NOT NULL;
CREATE INDEX item_topic ON item (topic) WHERE topic IS NOT NULL;
CREATE INDEX item_source ON item (source);

-- The word indexes read item's own columns, so no text is stored twice.
CREATE VIRTUAL TABLE words USING fts5 (
    text, about,
    content='item', content_rowid='rid',
    tokenize='porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE grams USING fts5 (
    text, original,
    content='item', content_rowid='rid',
    tokenize='trigram remove_diacritics 1', detail='none', columnsize=0
);
-- Document frequencies, and the vocabulary by its trigrams for misspelled queries.
CREATE TABLE term (tid INTEGER PRIMARY KEY, t TEXT NOT NULL UNIQUE, df INTEGER NOT NULL) STRICT;
CREATE VIRTUAL TABLE vocabulary USING fts5 (
    t, content='term', content_rowid='tid',
    tokenize='trigram', detail='none', columnsize=0
);

CREATE TABLE model (
    mid INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    dim INTEGER NOT NULL,
    slots INTEGER NOT NULL DEFAULT 0
) STRICT;
-- float16 vector and the embedder's own tokens; its sign bits also stand in a chunk.
CREATE TABLE vector (
    rid INTEGER PRIMARY KEY REFERENCES item (rid),
    mid INTEGER NOT NULL REFERENCES model (mid),
    slot INTEGER NOT NULL,
    data BLOB NOT NULL,
    tokens BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX vector_slot ON vector (mid, slot);
-- 4,096 slots a row: packed sign bits and, beside them, the rid of each slot (0: free).
CREATE TABLE chunk (
    cid INTEGER PRIMARY KEY,
    mid INTEGER NOT NULL REFERENCES model (mid),
    number INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 0,
    bits BLOB NOT NULL,
    rids BLOB NOT NULL,
    UNIQUE (mid, number)
) STRICT;

CREATE TABLE sketch (
    band INTEGER NOT NULL,
    rid INTEGER NOT NULL REFERENCES item (rid),
    PRIMARY KEY (band, rid)
) STRICT, WITHOUT ROWID;
CREATE INDEX sketch_rid ON sketch (rid);

CREATE TABLE entity (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    mentions INTEGER NOT NULL DEFAULT 0,
    embedding BLOB,
    model TEXT,
    momentum REAL NOT NULL DEFAULT 0,
    momentum_at INTEGER,
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE alias (
    alias TEXT NOT NULL,
    entity TEXT NOT NULL REFERENCES entity (id),
    PRIMARY KEY (alias, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX alias_entity ON alias (entity);

-- The one graph: relations, mentions, provenance, conversation order. An item
-- 'mentions' what its live revision speaks of, and 'mentioned' what only earlier ones did.
CREATE TABLE link (
    src_kind TEXT NOT NULL,
    src TEXT NOT NULL,
    type TEXT NOT NULL,
    dst_kind TEXT NOT NULL,
    dst TEXT NOT NULL,
    weight REAL NOT NULL DEFAULT 1,
    confidence REAL NOT NULL DEFAULT 1,
    context TEXT,
    source TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (src, type, dst, src_kind, dst_kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX link_dst ON link (dst, type);

CREATE TABLE thread (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    anchor TEXT,
    headline TEXT NOT NULL,
    lifecycle TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE thread_member (
    thread TEXT NOT NULL REFERENCES thread (id),
    item TEXT NOT NULL,
    role TEXT NOT NULL,
    weight REAL NOT NULL DEFAULT 1,
    added_at INTEGER NOT NULL,
    PRIMARY KEY (thread, item)
) STRICT, WITHOUT ROWID;
CREATE INDEX thread_member_item ON thread_member (item);
CREATE TABLE thread_event (
    thread TEXT NOT NULL REFERENCES thread (id),
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    item TEXT,
    at INTEGER NOT NULL,
    meaningful INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (thread, seq)
) STRICT, WITHOUT ROWID;

-- How often and when a memory was returned, apart from its content.
CREATE TABLE usage (
    id TEXT PRIMARY KEY,
    recalls INTEGER NOT NULL DEFAULT 0,
    last_at INTEGER,
    stamps TEXT NOT NULL DEFAULT '[]',
    decay REAL NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_day (
    id TEXT NOT NULL,
    day INTEGER NOT NULL,
    recalls INTEGER NOT NULL,
    PRIMARY KEY (id, day)
) STRICT, WITHOUT ROWID;

-- The journal: who did what to which id. Each line's chain is a hash over the
-- line before and itself, so that an edit shows. Never holds content.
CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    item TEXT,
    actor TEXT NOT NULL,
    detail TEXT NOT NULL,
    chain TEXT NOT NULL
) STRICT;
CREATE INDEX event_item ON event (item) WHERE item IS NOT NULL;

CREATE TABLE idempotency (
    key TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_id ON idempotency (id);

CREATE TABLE tombstone (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- An erased word must leave the index at once, not when segments happen to merge.
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
INSERT INTO grams (grams, rank) VALUES ('secure-delete', 1);
INSERT INTO vocabulary (vocabulary, rank) VALUES ('secure-delete', 1);

-- generation: transactions so far. journal: last line's number and chain, so that a
-- journal cut short shows. unscrubbed (when there): an erase has yet to clean the file.
INSERT INTO meta (name, value) VALUES ('generation', '0'), ('journal', '0:');
