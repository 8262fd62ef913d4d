-- The tables as those see them who see nothing above a classification, and nothing less trusted
-- than they ask for (bethink.store.sql.ceiling, which puts in the names with a colon).
-- A memory is hidden by its last revision, an earlier one also by its own classification.
CREATE TEMP VIEW item AS SELECT * FROM main.item
    WHERE classification <= :ceiling AND trust >= :trust
    AND id NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW link AS SELECT * FROM main.link
    WHERE (src_kind <> 'item' OR src NOT IN (SELECT id FROM temp.hidden_item))
    AND (dst_kind <> 'item' OR dst NOT IN (SELECT id FROM temp.hidden_item))
    AND (src_kind <> 'entity' OR src NOT IN (SELECT id FROM temp.hidden_only))
    AND (dst_kind <> 'entity' OR dst NOT IN (SELECT id FROM temp.hidden_only))
    AND stated_by NOT IN (SELECT id FROM temp.hidden_item)
    AND (type <> 'mentioned' OR dst NOT IN (SELECT id FROM temp.hidden_entity) OR EXISTS (
        SELECT 1 FROM main.item AS r WHERE r.id = src AND r.classification <= :ceiling
        AND r.trust >= :trust AND instr(r.entities, json_quote(dst)) > 0));
CREATE TEMP VIEW entity AS SELECT e.id, e.kind, e.name,
    e.mentions - coalesce((SELECT h.mentions FROM temp.hidden_entity AS h WHERE h.id = e.id), 0)
        AS mentions,
    0.0 AS momentum, NULL AS momentum_at,
    CASE WHEN e.id IN (SELECT id FROM temp.hidden_entity) THEN (
        SELECT min(i.live_from) FROM link AS l JOIN item AS i ON i.id = l.src
        WHERE l.dst = e.id AND :speaks)
    ELSE e.created_at END AS created_at,
    CASE WHEN e.id IN (SELECT id FROM temp.hidden_entity) THEN (
        SELECT max(i.live_from) FROM link AS l JOIN item AS i ON i.id = l.src
        WHERE l.dst = e.id AND :speaks)
    ELSE e.last_seen_at END AS last_seen_at
    FROM main.entity AS e WHERE e.id NOT IN (SELECT id FROM temp.hidden_only);
CREATE TEMP VIEW alias AS SELECT * FROM main.alias
    WHERE classification <= :ceiling AND entity NOT IN (SELECT id FROM temp.hidden_only);
CREATE TEMP VIEW term AS SELECT tid, t,
    df - coalesce((SELECT h.n FROM temp.hidden_term AS h WHERE h.t = main.term.t), 0) AS df
    FROM main.term
    WHERE df > coalesce((SELECT h.n FROM temp.hidden_term AS h WHERE h.t = main.term.t), 0);
CREATE TEMP VIEW meta AS SELECT name, CASE name
    WHEN 'documents'
        THEN CAST(CAST(value AS INTEGER) - (SELECT documents FROM temp.hidden_sum) AS TEXT)
    WHEN 'total_length'
        THEN CAST(CAST(value AS INTEGER) - (SELECT length FROM temp.hidden_sum) AS TEXT)
    ELSE value END AS value FROM main.meta;
CREATE TEMP VIEW file_edit AS SELECT * FROM main.file_edit
    WHERE item IS NULL OR item NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW thread AS SELECT * FROM main.thread AS t WHERE t.classification <= :ceiling
    AND EXISTS (SELECT 1 FROM main.thread_member AS m
    WHERE m.thread = t.id AND m.classification = t.classification
        AND m.item NOT IN (SELECT id FROM temp.hidden_item));
-- A line of a maintenance run begins with the highest classification of what it names. Those of
-- earlier versions do not: one that only counts may count anything, and what one names may be a
-- secret erased since. Who asked for a run, or undid it, is told to those who see a line of it.
-- As a list these secrets are looked up once, not for every line.
CREATE TEMP VIEW event AS SELECT * FROM main.event AS e
    WHERE item NOT IN (SELECT id FROM temp.hidden_item)
    AND (substr(item, 1, 3) = 'run' AND CASE WHEN substr(e.detail, 1, 9) = '{"class":'
            THEN CAST(substr(e.detail, 10, 1) AS INTEGER) <= :ceiling
        WHEN e.kind IN ('ran', 'run_undone') THEN EXISTS (SELECT 1 FROM main.event AS x
            WHERE x.item = e.detail AND substr(x.detail, 1, 9) = '{"class":'
            AND CAST(substr(x.detail, 10, 1) AS INTEGER) <= :ceiling)
        WHEN e.kind = 'maintained' AND instr(e.detail, '"makes') + instr(e.detail, '"ends"')
            + instr(e.detail, '"judges"') + instr(e.detail, '"links"') = 0 THEN FALSE
        ELSE NOT EXISTS (SELECT 1 FROM main.tombstone AS g WHERE g.id IN (
                SELECT t.id FROM main.tombstone AS t CROSS JOIN main.event AS x ON x.item = t.id
                AND x.kind = 'erased' AND substr(x.detail, 1, 15) = 'classification '
                AND CAST(substr(x.detail, 16) AS INTEGER) > :ceiling)
            AND instr(e.detail, g.id) > 0) END
        OR EXISTS (SELECT 1 FROM main.item AS i WHERE i.id = e.item)
        OR EXISTS (SELECT 1 FROM main.event AS x WHERE x.item = e.item AND x.kind = 'erased'
            AND :ceiling >= iif(substr(x.detail, 1, 15) = 'classification ',
                CAST(substr(x.detail, 16) AS INTEGER), 1)))
    AND NOT EXISTS (SELECT 1 FROM temp.hidden_item AS h WHERE instr(e.detail, h.id) > 0)
    AND NOT (e.kind IN ('linked', 'unlinked') AND EXISTS (SELECT 1 FROM main.event AS x
        WHERE x.item = substr(e.detail, instr(e.detail, ' ') + 1) AND x.kind = 'erased'
            AND substr(x.detail, 1, 15) = 'classification '
            AND CAST(substr(x.detail, 16) AS INTEGER) > :ceiling));
CREATE TEMP VIEW tombstone AS SELECT * FROM main.tombstone WHERE FALSE;
-- The rest are tables without the rows that name what is hidden.
CREATE TEMP VIEW sketch AS SELECT * FROM main.sketch
    WHERE rid NOT IN (SELECT rid FROM temp.hidden_row);
CREATE TEMP VIEW vector AS SELECT * FROM main.vector
    WHERE rid NOT IN (SELECT rid FROM temp.hidden_row);
CREATE TEMP VIEW usage AS SELECT * FROM main.usage
    WHERE id NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW usage_day AS SELECT * FROM main.usage_day
    WHERE id NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW status_change AS SELECT * FROM main.status_change
    WHERE id NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW idempotency AS SELECT * FROM main.idempotency
    WHERE id NOT IN (SELECT id FROM temp.hidden_item);
CREATE TEMP VIEW entity_vector AS SELECT * FROM main.entity_vector
    WHERE entity NOT IN (SELECT id FROM temp.hidden_only);
