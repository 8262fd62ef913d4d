-- Schema version 6: a hash of what may change of a revision.

-- content_hash covers what never changes. This one covers when, how and whether a revision
-- ended, and its status, bound to its content hash and its row.
ALTER TABLE item ADD COLUMN state_hash INTEGER;
UPDATE item SET state_hash = hash_state(CAST(content_hash AS BLOB), rid,
    CAST(live_to AS BLOB), CAST(status AS BLOB), CAST(ended_by AS BLOB));

-- CRC-32 of a vector's data and tokens, so that rot shows. NULL: made before there was one.
ALTER TABLE vector ADD COLUMN crc INTEGER;

-- What a memory left between entities, and in threads, is found without reading all of it.
CREATE INDEX link_context ON link (context)
    WHERE src_kind = 'entity' AND dst_kind = 'entity' AND context IS NOT NULL;
CREATE INDEX link_source ON link (source) WHERE src_kind = 'entity' AND dst_kind = 'entity';
CREATE INDEX thread_event_item ON thread_event (item) WHERE item IS NOT NULL;
