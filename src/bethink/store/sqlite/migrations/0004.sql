-- Schema version 4: what a reader below a classification sees depends on nothing above it.

-- Few memories are secret; a reader that may not see them counts them out of every statistic.
CREATE INDEX item_classified ON item (classification) WHERE classification > 1;

-- A name is as classified as the least classified memory that gave it. What gave the names
-- so far is not known: they are as classified as the least classified that has the entity.
ALTER TABLE alias ADD COLUMN classification INTEGER NOT NULL DEFAULT 0;
UPDATE alias SET classification = coalesce(
    (SELECT min(i.classification) FROM link AS l JOIN item AS i ON i.id = l.src
    WHERE l.dst = alias.entity AND l.src_kind = 'item' AND l.dst_kind = 'entity'), 0);

-- A key that a memory above the writer's classification has used is free for the writer.
CREATE TABLE idempotency_by_memory (
    key TEXT NOT NULL,
    id TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (key, id)
) STRICT, WITHOUT ROWID;
INSERT INTO idempotency_by_memory (key, id, fingerprint, at)
    SELECT key, id, fingerprint, at FROM idempotency;
DROP TABLE idempotency;
ALTER TABLE idempotency_by_memory RENAME TO idempotency;
CREATE INDEX idempotency_id ON idempotency (id);
