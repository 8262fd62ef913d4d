-- Schema version 2: a link between entities is a row for each memory that states it.

-- The rows of all spaces are changed: row-level security, which is forced again at the end of
-- every migration, would hide them from the owner, too.
ALTER TABLE bethink.item NO FORCE ROW LEVEL SECURITY;
ALTER TABLE bethink.entity NO FORCE ROW LEVEL SECURITY;
ALTER TABLE bethink.link NO FORCE ROW LEVEL SECURITY;

-- stated_by: the memory that a link between entities comes from, '' for all other links. What
-- one memory states no other overwrites; a reader sees a link by the memories it may see.
ALTER TABLE bethink.link ADD COLUMN stated_by text COLLATE "C" NOT NULL DEFAULT '';
-- Of a link that several memories state only the last of them is known.
UPDATE bethink.link AS l SET stated_by = coalesce(
    (SELECT i.id FROM bethink.item AS i
        WHERE i.space_id = l.space_id AND i.id = l.context LIMIT 1),
    (SELECT i.id FROM bethink.item AS i
        WHERE i.space_id = l.space_id AND i.id = l.source LIMIT 1), '')
    WHERE l.src_kind = 'entity' AND l.dst_kind = 'entity';
ALTER TABLE bethink.link DROP CONSTRAINT link_pkey;
ALTER TABLE bethink.link
    ADD PRIMARY KEY (space_id, src, type, dst, src_kind, dst_kind, stated_by);
DROP INDEX bethink.link_context;
DROP INDEX bethink.link_source;
CREATE INDEX link_statement ON bethink.link (space_id, stated_by) WHERE stated_by <> '';

-- An entity is as old, and as recent, as the memories that mention it: what was erased
-- leaves no time behind.
UPDATE bethink.entity AS e SET created_at = s.first, last_seen_at = s.last,
    momentum = 0, momentum_at = NULL
    FROM (SELECT l.space_id, l.dst, min(i.live_from) AS first, max(i.live_from) AS last
        FROM bethink.link AS l
        JOIN bethink.item AS i ON i.space_id = l.space_id AND i.id = l.src
        WHERE l.type IN ('mentions', 'mentioned')
        AND l.src_kind = 'item' AND l.dst_kind = 'entity'
        AND (strpos(i.entities, to_json(l.dst)::text) > 0
            OR substr(l.source, 1, 8) = 'same_as:'
            AND strpos(i.entities, to_json(substr(l.source, 9))::text) > 0)
        GROUP BY l.space_id, l.dst) AS s
    WHERE e.space_id = s.space_id AND e.id = s.dst;

-- Memories with a layer and pinned ones are counted by entity without a look at the others.
CREATE INDEX item_layered ON bethink.item (space_id, id)
    WHERE live_to IS NULL AND (layer IS NOT NULL OR pinned = 1);

-- A thread is kept for each classification it was stored with: the highest of its memories. A
-- reader sees the highest that it may see; who writes below never touches one above.
ALTER TABLE bethink.thread NO FORCE ROW LEVEL SECURITY;
ALTER TABLE bethink.thread_member NO FORCE ROW LEVEL SECURITY;
ALTER TABLE bethink.thread_event NO FORCE ROW LEVEL SECURITY;
ALTER TABLE bethink.thread_member DROP CONSTRAINT thread_member_space_id_thread_fkey;
ALTER TABLE bethink.thread_event DROP CONSTRAINT thread_event_space_id_thread_fkey;
ALTER TABLE bethink.thread ADD COLUMN classification bigint NOT NULL DEFAULT 0;
ALTER TABLE bethink.thread_member ADD COLUMN classification bigint NOT NULL DEFAULT 0;
ALTER TABLE bethink.thread_event ADD COLUMN classification bigint NOT NULL DEFAULT 0;
UPDATE bethink.thread AS t SET classification = coalesce((
    SELECT max(i.classification) FROM bethink.thread_member AS m
    JOIN bethink.item AS i ON i.space_id = m.space_id AND i.id = m.item
    WHERE m.space_id = t.space_id AND m.thread = t.id
    AND i.rev = (SELECT max(r.rev) FROM bethink.item AS r
        WHERE r.space_id = i.space_id AND r.id = i.id)), 0);
UPDATE bethink.thread_member AS m SET classification = t.classification
    FROM bethink.thread AS t WHERE t.space_id = m.space_id AND t.id = m.thread;
UPDATE bethink.thread_event AS e SET classification = t.classification
    FROM bethink.thread AS t WHERE t.space_id = e.space_id AND t.id = e.thread;
ALTER TABLE bethink.thread DROP CONSTRAINT thread_pkey;
ALTER TABLE bethink.thread_member DROP CONSTRAINT thread_member_pkey;
ALTER TABLE bethink.thread_event DROP CONSTRAINT thread_event_pkey;
ALTER TABLE bethink.thread ADD PRIMARY KEY (space_id, id, classification);
ALTER TABLE bethink.thread_member ADD PRIMARY KEY (space_id, thread, classification, item);
ALTER TABLE bethink.thread_event ADD PRIMARY KEY (space_id, thread, classification, seq);
ALTER TABLE bethink.thread_member ADD FOREIGN KEY (space_id, thread, classification)
    REFERENCES bethink.thread (space_id, id, classification);
ALTER TABLE bethink.thread_event ADD FOREIGN KEY (space_id, thread, classification)
    REFERENCES bethink.thread (space_id, id, classification);
