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
