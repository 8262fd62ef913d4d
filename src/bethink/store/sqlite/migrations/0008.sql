-- Schema version 8: what there is is counted when it is written.

-- How many live memories there are of each sort that statistics tell apart. Triggers keep it,
-- in the transaction of every change; the check 'counts' compares it with the memories. Its
-- columns take any value, so that a row that rot has changed can still be changed and erased.
CREATE TABLE tally (
    level ANY,
    kind ANY,
    layer ANY,
    tier ANY,
    status ANY,
    source_class ANY,
    count INTEGER NOT NULL
) STRICT;
CREATE INDEX tally_sort ON tally (kind, tier, level, layer, status, source_class);
INSERT INTO tally (level, kind, layer, tier, status, source_class, count)
    SELECT level, kind, layer, tier, status, source_class, count(*) FROM item
    WHERE live_to IS NULL GROUP BY level, kind, layer, tier, status, source_class;

CREATE TRIGGER tally_stored AFTER INSERT ON item WHEN new.live_to IS NULL BEGIN
    INSERT INTO tally (level, kind, layer, tier, status, source_class, count)
        SELECT new.level, new.kind, new.layer, new.tier, new.status, new.source_class, 0
        WHERE NOT EXISTS (SELECT 1 FROM tally
            WHERE kind IS new.kind AND tier IS new.tier AND level IS new.level
            AND layer IS new.layer AND status IS new.status
            AND source_class IS new.source_class);
    UPDATE tally SET count = count + 1
        WHERE kind IS new.kind AND tier IS new.tier AND level IS new.level
        AND layer IS new.layer AND status IS new.status AND source_class IS new.source_class;
END;
CREATE TRIGGER tally_erased AFTER DELETE ON item WHEN old.live_to IS NULL BEGIN
    UPDATE tally SET count = count - 1
        WHERE kind IS old.kind AND tier IS old.tier AND level IS old.level
        AND layer IS old.layer AND status IS old.status AND source_class IS old.source_class;
    DELETE FROM tally WHERE count < 1
        AND kind IS old.kind AND tier IS old.tier AND level IS old.level
        AND layer IS old.layer AND status IS old.status AND source_class IS old.source_class;
END;
CREATE TRIGGER tally_ended
AFTER UPDATE OF level, kind, layer, tier, status, source_class, live_to ON item
WHEN old.live_to IS NULL BEGIN
    UPDATE tally SET count = count - 1
        WHERE kind IS old.kind AND tier IS old.tier AND level IS old.level
        AND layer IS old.layer AND status IS old.status AND source_class IS old.source_class;
    DELETE FROM tally WHERE count < 1
        AND kind IS old.kind AND tier IS old.tier AND level IS old.level
        AND layer IS old.layer AND status IS old.status AND source_class IS old.source_class;
END;
CREATE TRIGGER tally_begun
AFTER UPDATE OF level, kind, layer, tier, status, source_class, live_to ON item
WHEN new.live_to IS NULL BEGIN
    INSERT INTO tally (level, kind, layer, tier, status, source_class, count)
        SELECT new.level, new.kind, new.layer, new.tier, new.status, new.source_class, 0
        WHERE NOT EXISTS (SELECT 1 FROM tally
            WHERE kind IS new.kind AND tier IS new.tier AND level IS new.level
            AND layer IS new.layer AND status IS new.status
            AND source_class IS new.source_class);
    UPDATE tally SET count = count + 1
        WHERE kind IS new.kind AND tier IS new.tier AND level IS new.level
        AND layer IS new.layer AND status IS new.status AND source_class IS new.source_class;
END;

-- How many links there are, one that several memories state once: only links between entities
-- have such rows. Every connection has recursive_triggers on, so that a row which another
-- replaces is counted out.
CREATE TABLE link_tally (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL) STRICT;
INSERT INTO link_tally (one, count) SELECT 1, count(*)
    FROM (SELECT DISTINCT src, type, dst, src_kind, dst_kind FROM link);
CREATE TRIGGER link_made AFTER INSERT ON link
WHEN new.src_kind <> 'entity' OR new.dst_kind <> 'entity' OR NOT EXISTS (SELECT 1 FROM link
    WHERE src = new.src AND type = new.type AND dst = new.dst AND src_kind = new.src_kind
    AND dst_kind = new.dst_kind AND stated_by <> new.stated_by)
BEGIN
    UPDATE link_tally SET count = count + 1;
END;
CREATE TRIGGER link_removed AFTER DELETE ON link
WHEN old.src_kind <> 'entity' OR old.dst_kind <> 'entity' OR NOT EXISTS (SELECT 1 FROM link
    WHERE src = old.src AND type = old.type AND dst = old.dst AND src_kind = old.src_kind
    AND dst_kind = old.dst_kind)
BEGIN
    UPDATE link_tally SET count = count - 1;
END;
CREATE TRIGGER link_left AFTER UPDATE OF src_kind, src, type, dst_kind, dst, stated_by ON link
WHEN NOT EXISTS (SELECT 1 FROM link
    WHERE src = old.src AND type = old.type AND dst = old.dst AND src_kind = old.src_kind
    AND dst_kind = old.dst_kind)
BEGIN
    UPDATE link_tally SET count = count - 1;
END;
CREATE TRIGGER link_turned AFTER UPDATE OF src_kind, src, type, dst_kind, dst, stated_by ON link
WHEN (new.src, new.type, new.dst, new.src_kind, new.dst_kind)
    IS NOT (old.src, old.type, old.dst, old.src_kind, old.dst_kind)
AND NOT EXISTS (SELECT 1 FROM link
    WHERE src = new.src AND type = new.type AND dst = new.dst AND src_kind = new.src_kind
    AND dst_kind = new.dst_kind AND stated_by <> new.stated_by)
BEGIN
    UPDATE link_tally SET count = count + 1;
END;

-- A list of a tag's memories looks only at those that have tags.
CREATE INDEX item_tagged ON item (tags) WHERE tags <> '[]';

-- Eight segments of a word index are merged at a time, not four: every write rewrites fewer of
-- those before it, and a search meets as many.
INSERT INTO words (words, rank) VALUES ('automerge', 8);
INSERT INTO grams (grams, rank) VALUES ('automerge', 8);
INSERT INTO vocabulary (vocabulary, rank) VALUES ('automerge', 8);
