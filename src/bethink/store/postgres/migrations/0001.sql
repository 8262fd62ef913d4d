-- Schema version 1. Times are milliseconds since 1970 UTC.
--
-- One schema for all spaces: space_id leads every key and every index, so that a space lies
-- together, on one shard where the tables are distributed. Text is compared by its bytes, so
-- that an order is the same on every server. Ids are made by the client, from a space's rows.

CREATE TABLE bethink.space (
    space_id bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE bethink.meta (
    space_id bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    PRIMARY KEY (space_id, name)
);

-- Every revision of every memory is a row; the live one has live_to NULL.
CREATE TABLE bethink.item (
    space_id bigint NOT NULL,
    rid bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    rev bigint NOT NULL DEFAULT 1,
    level text COLLATE "C" NOT NULL CHECK (level IN ('raw', 'item', 'insight')),
    kind text COLLATE "C" NOT NULL,
    layer text COLLATE "C",
    topic text COLLATE "C",
    tier text COLLATE "C" NOT NULL DEFAULT 'general',
    text text COLLATE "C" NOT NULL,
    about text COLLATE "C" NOT NULL DEFAULT '',
    original text COLLATE "C",
    caption text COLLATE "C",
    language text COLLATE "C",
    speaker text COLLATE "C",
    session text COLLATE "C",
    seq bigint,
    parent text COLLATE "C",
    subject text COLLATE "C",
    attribute text COLLATE "C",
    source text COLLATE "C" NOT NULL,
    source_class text COLLATE "C" NOT NULL,
    writer text COLLATE "C" NOT NULL,
    trust bigint NOT NULL CHECK (trust BETWEEN 0 AND 3),
    integrity bigint NOT NULL CHECK (integrity BETWEEN 0 AND 4),
    credibility bigint NOT NULL CHECK (credibility BETWEEN 0 AND 6),
    classification bigint NOT NULL CHECK (classification BETWEEN 0 AND 3),
    emotion double precision NOT NULL DEFAULT 0,
    importance double precision NOT NULL DEFAULT 0.5,
    confidence double precision NOT NULL DEFAULT 1,
    relevance double precision NOT NULL DEFAULT 0,
    pinned bigint NOT NULL DEFAULT 0,
    protected bigint NOT NULL DEFAULT 0,
    occurred_at bigint,
    occurred_end bigint,
    stored_at bigint NOT NULL,
    valid_from bigint,
    valid_to bigint,
    live_from bigint NOT NULL,
    live_to bigint,
    ended_by text COLLATE "C",
    status text COLLATE "C" NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'superseded', 'quarantined')),
    tokens bigint NOT NULL DEFAULT 0,
    length bigint NOT NULL DEFAULT 0,
    tags text COLLATE "C" NOT NULL DEFAULT '[]',
    entities text COLLATE "C" NOT NULL DEFAULT '[]',
    flags text COLLATE "C" NOT NULL DEFAULT '[]',
    metadata text COLLATE "C" NOT NULL DEFAULT '{}',
    fingerprint text COLLATE "C" NOT NULL,
    content_hash text COLLATE "C" NOT NULL,
    state_hash bigint,
    PRIMARY KEY (space_id, rid),
    UNIQUE (space_id, id, rev)
);
CREATE UNIQUE INDEX item_live ON bethink.item (space_id, id) WHERE live_to IS NULL;
CREATE INDEX item_fingerprint ON bethink.item (space_id, fingerprint) WHERE live_to IS NULL;
CREATE INDEX item_session ON bethink.item (space_id, session, seq) WHERE session IS NOT NULL;
-- Not by coalesce: behind row-level security it is looked up in no index.
CREATE INDEX item_occurred ON bethink.item
    (space_id, (CASE WHEN occurred_at IS NULL THEN stored_at ELSE occurred_at END));
CREATE INDEX item_stored ON bethink.item (space_id, stored_at, id);
CREATE INDEX item_parent ON bethink.item (space_id, parent) WHERE parent IS NOT NULL;
CREATE INDEX item_slot ON bethink.item (space_id, subject, attribute) WHERE subject IS NOT NULL;
CREATE INDEX item_topic ON bethink.item (space_id, topic, stored_at) WHERE topic IS NOT NULL;
CREATE INDEX item_speaker ON bethink.item (space_id, speaker) WHERE speaker IS NOT NULL;
CREATE INDEX item_source ON bethink.item (space_id, source);
CREATE INDEX item_level ON bethink.item (space_id, level) INCLUDE (rid)
    WHERE live_to IS NULL;
CREATE INDEX item_lasting ON bethink.item
    (space_id, (occurred_end - coalesce(occurred_at, stored_at))) WHERE occurred_end IS NOT NULL;
CREATE INDEX item_begun ON bethink.item (space_id, live_from);
CREATE INDEX item_long ON bethink.item (space_id, rid) WHERE length > 120;
CREATE INDEX item_classified ON bethink.item (space_id, classification) WHERE classification > 1;
CREATE INDEX item_untrusted ON bethink.item (space_id, trust) WHERE trust < 1;

-- Postings of the index terms, to rank by, packed as in the file of SQLite (`search.postings`).
CREATE TABLE bethink.posting_block (
    space_id bigint NOT NULL,
    key bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (space_id, key)
);
CREATE TABLE bethink.posting_new (
    space_id bigint NOT NULL,
    rid bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (space_id, rid)
);
-- What the pieces of words are looked for in: text and original in the form of their trigrams.
CREATE TABLE bethink.gram (
    space_id bigint NOT NULL,
    rid bigint NOT NULL,
    folded text COLLATE "C" NOT NULL,
    PRIMARY KEY (space_id, rid)
);
-- Document frequencies, and the vocabulary by its trigrams for misspelled queries.
CREATE TABLE bethink.term (
    space_id bigint NOT NULL,
    tid bigint NOT NULL,
    t text COLLATE "C" NOT NULL,
    df bigint NOT NULL,
    PRIMARY KEY (space_id, tid),
    UNIQUE (space_id, t) INCLUDE (df)
);
CREATE TABLE bethink.term_gram (
    space_id bigint NOT NULL,
    gram text COLLATE "C" NOT NULL,
    tid bigint NOT NULL,
    PRIMARY KEY (space_id, gram, tid)
);

CREATE TABLE bethink.model (
    space_id bigint NOT NULL,
    mid bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    dim bigint NOT NULL,
    slots bigint NOT NULL DEFAULT 0,
    passages bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (space_id, mid),
    UNIQUE (space_id, name)
);
-- A memory's own vector has its rid as key, that of its passage n (from 1) n * 2^40 + rid.
CREATE TABLE bethink.vector (
    space_id bigint NOT NULL,
    key bigint NOT NULL,
    rid bigint NOT NULL,
    mid bigint NOT NULL,
    slot bigint NOT NULL,
    data bytea NOT NULL,
    tokens bytea NOT NULL,
    passages bigint,
    crc bigint,
    PRIMARY KEY (space_id, key),
    FOREIGN KEY (space_id, rid) REFERENCES bethink.item (space_id, rid),
    FOREIGN KEY (space_id, mid) REFERENCES bethink.model (space_id, mid)
);
CREATE INDEX vector_slot ON bethink.vector (space_id, mid, slot);
CREATE INDEX vector_rid ON bethink.vector (space_id, rid);
-- 4,096 slots are a chunk. A client caches chunks by version; the bits of a slot are a row of
-- their own, so that one more vector writes a few bytes.
CREATE TABLE bethink.chunk (
    space_id bigint NOT NULL,
    cid bigint NOT NULL,
    mid bigint NOT NULL,
    number bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (space_id, cid),
    UNIQUE (space_id, mid, number)
);
CREATE TABLE bethink.chunk_slot (
    space_id bigint NOT NULL,
    cid bigint NOT NULL,
    place integer NOT NULL,
    key bigint NOT NULL,
    bits bytea NOT NULL,
    PRIMARY KEY (space_id, cid, place) INCLUDE (key, bits),
    FOREIGN KEY (space_id, cid) REFERENCES bethink.chunk (space_id, cid) ON DELETE CASCADE
);

CREATE TABLE bethink.sketch (
    space_id bigint NOT NULL,
    band bigint NOT NULL,
    rid bigint NOT NULL,
    PRIMARY KEY (space_id, band, rid),
    FOREIGN KEY (space_id, rid) REFERENCES bethink.item (space_id, rid)
);
CREATE INDEX sketch_rid ON bethink.sketch (space_id, rid);
CREATE TABLE bethink.signature (
    space_id bigint NOT NULL,
    rid bigint NOT NULL,
    bits bytea NOT NULL,
    counts bytea NOT NULL,
    PRIMARY KEY (space_id, rid),
    FOREIGN KEY (space_id, rid) REFERENCES bethink.item (space_id, rid)
);

CREATE TABLE bethink.entity (
    space_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    mentions bigint NOT NULL DEFAULT 0,
    momentum double precision NOT NULL DEFAULT 0,
    momentum_at bigint,
    created_at bigint NOT NULL,
    last_seen_at bigint,
    PRIMARY KEY (space_id, id)
);
CREATE INDEX entity_key ON bethink.entity (space_id, substr(id, strpos(id, ':') + 1));
CREATE TABLE bethink.alias (
    space_id bigint NOT NULL,
    alias text COLLATE "C" NOT NULL,
    entity text COLLATE "C" NOT NULL,
    classification bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (space_id, alias, entity),
    FOREIGN KEY (space_id, entity) REFERENCES bethink.entity (space_id, id)
);
CREATE INDEX alias_entity ON bethink.alias (space_id, entity);
CREATE TABLE bethink.entity_vector (
    space_id bigint NOT NULL,
    entity text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (space_id, entity),
    FOREIGN KEY (space_id, entity) REFERENCES bethink.entity (space_id, id)
);
-- The one graph: relations, mentions, provenance, conversation order.
CREATE TABLE bethink.link (
    space_id bigint NOT NULL,
    src_kind text COLLATE "C" NOT NULL,
    src text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    dst_kind text COLLATE "C" NOT NULL,
    dst text COLLATE "C" NOT NULL,
    weight double precision NOT NULL DEFAULT 1,
    confidence double precision NOT NULL DEFAULT 1,
    context text COLLATE "C",
    source text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (space_id, src, type, dst, src_kind, dst_kind)
);
CREATE INDEX link_dst ON bethink.link (space_id, dst, type, created_at);
CREATE INDEX link_context ON bethink.link (space_id, context)
    WHERE src_kind = 'entity' AND dst_kind = 'entity' AND context IS NOT NULL;
CREATE INDEX link_source ON bethink.link (space_id, source)
    WHERE src_kind = 'entity' AND dst_kind = 'entity';

CREATE TABLE bethink.thread (
    space_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    anchor text COLLATE "C",
    headline text COLLATE "C" NOT NULL,
    lifecycle text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (space_id, id)
);
CREATE TABLE bethink.thread_member (
    space_id bigint NOT NULL,
    thread text COLLATE "C" NOT NULL,
    item text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL,
    weight double precision NOT NULL DEFAULT 1,
    added_at bigint NOT NULL,
    PRIMARY KEY (space_id, thread, item),
    FOREIGN KEY (space_id, thread) REFERENCES bethink.thread (space_id, id)
);
CREATE INDEX thread_member_item ON bethink.thread_member (space_id, item);
CREATE TABLE bethink.thread_event (
    space_id bigint NOT NULL,
    thread text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    item text COLLATE "C",
    at bigint NOT NULL,
    meaningful bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (space_id, thread, seq),
    FOREIGN KEY (space_id, thread) REFERENCES bethink.thread (space_id, id)
);

CREATE TABLE bethink.usage (
    space_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    recalls bigint NOT NULL DEFAULT 0,
    last_at bigint,
    stamps text COLLATE "C" NOT NULL DEFAULT '[]',
    decay double precision NOT NULL DEFAULT 1,
    decay_at bigint,
    regained text COLLATE "C",
    PRIMARY KEY (space_id, id)
);
CREATE TABLE bethink.usage_day (
    space_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    day bigint NOT NULL,
    recalls bigint NOT NULL,
    PRIMARY KEY (space_id, id, day)
);
CREATE TABLE bethink.tick (
    space_id bigint NOT NULL,
    number bigint NOT NULL,
    at bigint NOT NULL,
    amount double precision NOT NULL,
    total double precision NOT NULL,
    PRIMARY KEY (space_id, number)
);
CREATE INDEX tick_at ON bethink.tick (space_id, at);
CREATE TABLE bethink.status_change (
    space_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    status text COLLATE "C" NOT NULL CHECK (status IN ('active', 'superseded', 'quarantined')),
    PRIMARY KEY (space_id, id, at)
);

CREATE INDEX thread_event_item ON bethink.thread_event (space_id, item) WHERE item IS NOT NULL;

-- The journal: who did what to which id, each line chained to the one before.
CREATE TABLE bethink.event (
    space_id bigint NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    item text COLLATE "C",
    actor text COLLATE "C" NOT NULL,
    detail text COLLATE "C" NOT NULL,
    chain text COLLATE "C" NOT NULL,
    PRIMARY KEY (space_id, seq)
);
CREATE INDEX event_item ON bethink.event (space_id, item) WHERE item IS NOT NULL;

CREATE TABLE bethink.idempotency (
    space_id bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (space_id, key, id)
);
CREATE INDEX idempotency_id ON bethink.idempotency (space_id, id);
CREATE TABLE bethink.tombstone (
    space_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    actor text COLLATE "C" NOT NULL,
    PRIMARY KEY (space_id, id)
);
CREATE TABLE bethink.erased_key (
    space_id bigint NOT NULL,
    key_hash text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    content_hash text COLLATE "C" NOT NULL,
    classification bigint NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (space_id, key_hash, id)
);

-- Paths and intents may be longer than an index entry: their hash is what is unique.
CREATE TABLE bethink.file_edit (
    space_id bigint NOT NULL,
    number bigint NOT NULL,
    path text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    intent text COLLATE "C" NOT NULL DEFAULT '',
    session text COLLATE "C" NOT NULL DEFAULT '',
    turn text COLLATE "C" NOT NULL DEFAULT '',
    item text COLLATE "C",
    edit_hash text COLLATE "C" NOT NULL GENERATED ALWAYS AS (
        md5(md5(path) || md5(operation) || at::text || md5(intent) || md5(session) || md5(turn))
    ) STORED,
    PRIMARY KEY (space_id, number),
    UNIQUE (space_id, edit_hash)
);
CREATE INDEX file_edit_item ON bethink.file_edit (space_id, item) WHERE item IS NOT NULL;
CREATE TABLE bethink.file_snapshot (
    space_id bigint NOT NULL,
    path text COLLATE "C" NOT NULL,
    path_hash text COLLATE "C" NOT NULL GENERATED ALWAYS AS (md5(path)) STORED,
    sha256 text COLLATE "C" NOT NULL,
    mtime_ns bigint NOT NULL,
    size bigint NOT NULL,
    chunks text COLLATE "C" NOT NULL,
    read_at bigint NOT NULL,
    reads bigint NOT NULL,
    PRIMARY KEY (space_id, path_hash)
);
