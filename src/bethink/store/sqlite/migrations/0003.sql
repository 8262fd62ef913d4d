-- Schema version 3: vectors of the passages of long memories.

-- A memory's own vector has its rid as key, that of its passage n (from 1) n * 2^40 + rid.
-- passages, of a memory's own: how many it has; NULL where they have yet to be made.
CREATE TABLE vector_of_passages (
    key INTEGER PRIMARY KEY,
    rid INTEGER NOT NULL REFERENCES item (rid),
    mid INTEGER NOT NULL REFERENCES model (mid),
    slot INTEGER NOT NULL,
    data BLOB NOT NULL,
    tokens BLOB NOT NULL,
    passages INTEGER
) STRICT;
-- No text of so few bytes is long.
INSERT INTO vector_of_passages (key, rid, mid, slot, data, tokens, passages)
    SELECT v.rid, v.rid, v.mid, v.slot, v.data, v.tokens,
        CASE WHEN length(CAST(i.text AS BLOB)) > 240 THEN NULL ELSE 0 END
    FROM vector AS v LEFT JOIN item AS i ON i.rid = v.rid ORDER BY v.rid;
DROP TABLE vector;
ALTER TABLE vector_of_passages RENAME TO vector;
CREATE UNIQUE INDEX vector_slot ON vector (mid, slot);
CREATE INDEX vector_rid ON vector (rid);
-- How many of a model's slots are vectors of passages.
ALTER TABLE model ADD COLUMN passages INTEGER NOT NULL DEFAULT 0;

-- Which memories are long, by their index words, for a search that scores them by passage.
CREATE INDEX item_long ON item (rid, length) WHERE length > 120;
