-- Schema version 2: signatures, forgetting by ticks, and what goes on around entities.

-- What was said of an entity lately is found without looking at all that ever was.
DROP INDEX link_dst;
CREATE INDEX link_dst ON link (dst, type, created_at);

-- One level may hold few of many memories. As an expression, so that only a search that
-- knows this asks for it (scope.py).
CREATE INDEX item_level ON item (level || '') WHERE live_to IS NULL;

-- 256 bits of a memory's words, for likeness without a model; those of a long text's
-- stretches follow its own. Counts: how many words each stands for, two bytes each.
CREATE TABLE signature (
    rid INTEGER PRIMARY KEY REFERENCES item (rid),
    bits BLOB NOT NULL,
    counts BLOB NOT NULL
) STRICT;

-- Every so many recalls all memories fade a little. A tick says by how much, and what
-- all ticks so far amount to: how far a memory has faded is a difference of two totals,
-- so no memory is touched when one is written.
CREATE TABLE tick (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    amount REAL NOT NULL,
    total REAL NOT NULL
) STRICT;
CREATE INDEX tick_at ON tick (at);

-- usage.decay is what it was at decay_at; the ticks from then on come off. A memory that
-- was never recalled fades from when it was stored. meta's 'recalls' counts up to a tick.
ALTER TABLE usage ADD COLUMN decay_at INTEGER;
-- The last twenty times that decay was set, as [when, decay, decay_at].
ALTER TABLE usage ADD COLUMN regained TEXT;

-- What "kind: name" means to a model, apart from the entity: an entity's own row is written
-- again with every mention. meta's 'entities' counts changes of entities and vectors.
ALTER TABLE entity DROP COLUMN embedding;
ALTER TABLE entity DROP COLUMN model;
CREATE TABLE entity_vector (
    entity TEXT PRIMARY KEY REFERENCES entity (id),
    model TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT;
INSERT INTO meta (name, value) VALUES ('entities', '0');

-- What was done to files, and to what end. An edit belongs to the memory it is told in.
CREATE TABLE file_edit (
    number INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    operation TEXT NOT NULL,
    at INTEGER NOT NULL,
    intent TEXT NOT NULL DEFAULT '',
    session TEXT NOT NULL DEFAULT '',
    turn TEXT NOT NULL DEFAULT '',
    item TEXT,
    UNIQUE (path, operation, at, intent, session, turn)
) STRICT;
CREATE INDEX file_edit_item ON file_edit (item) WHERE item IS NOT NULL;
-- How files looked when last read: hashes and names of their pieces, no text.
CREATE TABLE file_snapshot (
    path TEXT PRIMARY KEY,
    sha256 TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL,
    size INTEGER NOT NULL,
    chunks TEXT NOT NULL,
    read_at INTEGER NOT NULL,
    reads INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How long things went on, to find what reaches into a time without looking at all there is.
CREATE INDEX item_lasting ON item (occurred_end - coalesce(occurred_at, stored_at))
    WHERE occurred_end IS NOT NULL;

-- What was there at a moment, and how long it was in words, without reading it.
CREATE INDEX item_begun ON item (live_from, length);

-- Which revisions hold a word: a view of the index of words, to count those of a moment.
CREATE VIRTUAL TABLE posting USING fts5vocab ('words', 'instance');

-- How memories stood when: each change of an item's status, for answers as of a moment.
-- What never changed was always active. The journal knows of the changes so far; where it
-- says nothing, the last revision has stood so from its beginning.
CREATE TABLE status_change (
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'superseded', 'quarantined')),
    PRIMARY KEY (id, at)
) STRICT, WITHOUT ROWID;
INSERT OR REPLACE INTO status_change (id, at, status)
    SELECT item, at, detail FROM event
    WHERE kind = 'status' AND detail IN ('active', 'superseded', 'quarantined')
        AND EXISTS (SELECT 1 FROM item WHERE item.id = event.item)
    ORDER BY seq;
INSERT OR REPLACE INTO status_change (id, at, status)
    SELECT id, max(live_from, coalesce(changed_at, live_from)), status FROM (
        SELECT i.id, i.status, i.live_from, max(s.at) AS changed_at, s.status AS known
        FROM item AS i LEFT JOIN status_change AS s ON s.id = i.id
        WHERE i.rev = (SELECT max(rev) FROM item WHERE id = i.id)
        GROUP BY i.id)
    WHERE status <> coalesce(known, 'active');
