-- Schema version 7: a link between entities is a row for each memory that states it.

-- stated_by: the memory that a link between entities comes from, '' for all other links. What
-- one memory states no other overwrites; a reader sees a link by the memories it may see.
CREATE TABLE link_by_statement (
    src_kind TEXT NOT NULL,
    src TEXT NOT NULL,
    type TEXT NOT NULL,
    dst_kind TEXT NOT NULL,
    dst TEXT NOT NULL,
    stated_by TEXT NOT NULL DEFAULT '',
    weight REAL NOT NULL DEFAULT 1,
    confidence REAL NOT NULL DEFAULT 1,
    context TEXT,
    source TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (src, type, dst, src_kind, dst_kind, stated_by)
) STRICT, WITHOUT ROWID;
-- Of a link that several memories state only the last of them is known.
INSERT INTO link_by_statement
    SELECT src_kind, src, type, dst_kind, dst,
        CASE WHEN src_kind <> 'entity' OR dst_kind <> 'entity' THEN ''
            WHEN EXISTS (SELECT 1 FROM item WHERE item.id = link.context) THEN context
            WHEN EXISTS (SELECT 1 FROM item WHERE item.id = link.source) THEN source
            ELSE '' END,
        weight, confidence, context, source, created_at
    FROM link ORDER BY src, type, dst, src_kind, dst_kind;
DROP TABLE link;
ALTER TABLE link_by_statement RENAME TO link;
CREATE INDEX link_dst ON link (dst, type, created_at);
CREATE INDEX link_statement ON link (stated_by) WHERE stated_by <> '';

-- An entity is as old, and as recent, as the memories that mention it: what was erased
-- leaves no time behind.
UPDATE entity SET (created_at, last_seen_at, momentum, momentum_at) = (
    SELECT coalesce(min(i.live_from), entity.created_at), max(i.live_from), 0.0, NULL
    FROM link AS l JOIN item AS i ON i.id = l.src
    WHERE l.dst = entity.id AND l.type IN ('mentions', 'mentioned')
    AND l.src_kind = 'item' AND l.dst_kind = 'entity'
    AND (instr(i.entities, json_quote(l.dst)) > 0
        OR substr(l.source, 1, 8) = 'same_as:'
        AND instr(i.entities, json_quote(substr(l.source, 9))) > 0));

-- Memories with a layer and pinned ones are counted by entity without a look at the others.
-- As an expression, so that only that query asks for it.
CREATE INDEX item_layered ON item (
    CASE WHEN layer IS NULL THEN pinned ELSE 1 END, id, layer, pinned, classification
) WHERE live_to IS NULL AND (layer IS NOT NULL OR pinned = 1);

-- A thread is kept for each classification it was stored with: the highest of its memories. A
-- reader sees the highest that it may see; who writes below never touches one above.
CREATE TABLE thread_by_class (
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    anchor TEXT,
    headline TEXT NOT NULL,
    lifecycle TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    classification INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (id, classification)
) STRICT, WITHOUT ROWID;
INSERT INTO thread_by_class
    SELECT id, kind, anchor, headline, lifecycle, state, created_at, updated_at, coalesce((
        SELECT max(i.classification) FROM thread_member AS m JOIN item AS i ON i.id = m.item
        WHERE m.thread = thread.id
        AND i.rev = (SELECT max(r.rev) FROM item AS r WHERE r.id = i.id)), 0)
    FROM thread ORDER BY id;
CREATE TABLE thread_member_by_class (
    thread TEXT NOT NULL,
    item TEXT NOT NULL,
    role TEXT NOT NULL,
    weight REAL NOT NULL DEFAULT 1,
    added_at INTEGER NOT NULL,
    classification INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (thread, classification, item),
    FOREIGN KEY (thread, classification) REFERENCES thread_by_class (id, classification)
) STRICT, WITHOUT ROWID;
INSERT INTO thread_member_by_class
    SELECT m.thread, m.item, m.role, m.weight, m.added_at, t.classification
    FROM thread_member AS m JOIN thread_by_class AS t ON t.id = m.thread ORDER BY m.thread, m.item;
CREATE TABLE thread_event_by_class (
    thread TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    item TEXT,
    at INTEGER NOT NULL,
    meaningful INTEGER NOT NULL DEFAULT 1,
    classification INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (thread, classification, seq),
    FOREIGN KEY (thread, classification) REFERENCES thread_by_class (id, classification)
) STRICT, WITHOUT ROWID;
INSERT INTO thread_event_by_class
    SELECT e.thread, e.seq, e.kind, e.item, e.at, e.meaningful, t.classification
    FROM thread_event AS e JOIN thread_by_class AS t ON t.id = e.thread ORDER BY e.thread, e.seq;
DROP TABLE thread_event;
DROP TABLE thread_member;
DROP TABLE thread;
ALTER TABLE thread_by_class RENAME TO thread;
ALTER TABLE thread_member_by_class RENAME TO thread_member;
ALTER TABLE thread_event_by_class RENAME TO thread_event;
CREATE INDEX thread_member_item ON thread_member (item);
CREATE INDEX thread_event_item ON thread_event (item) WHERE item IS NOT NULL;
