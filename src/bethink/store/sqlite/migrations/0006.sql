-- Schema version 6: a hash of what may change of a revision.

-- content_hash covers what never changes. This one covers when, how and whether a revision
-- ended, and its status, bound to its content hash and its row.
ALTER TABLE item ADD COLUMN state_hash INTEGER;
UPDATE item SET state_hash = hash_state(CAST(content_hash AS BLOB), rid,
    CAST(live_to AS BLOB), CAST(status AS BLOB), CAST(ended_by AS BLOB));

-- Postings of the index terms, to rank by: in which revisions a term occurs, and how often.
-- A block holds those of 1,024 or 16,384 neighbouring row ids: key is its first row id / 1,024
-- above 32 bits of the term's tid; data has three bytes for each revision, its distance from
-- the first and the count (255: or more). The term 0 is any word: its count is the length.
CREATE TABLE posting_block (key INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
-- Revisions that are in no block yet: five bytes for each of their terms, tid and count.
CREATE TABLE posting_new (rid INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
-- Below which row id there are blocks, and how often any block was changed.
INSERT INTO meta (name, value) VALUES ('packed', '0:0');

-- Filters find few memories by an index, without looking at all there are.
CREATE INDEX entity_key ON entity (substr(id, instr(id, ':') + 1));
CREATE INDEX entity_mentions ON entity (mentions, last_seen_at);
CREATE INDEX item_speaker ON item (speaker, stored_at) WHERE speaker IS NOT NULL;
DROP INDEX item_topic;
CREATE INDEX item_topic ON item (topic, stored_at) WHERE topic IS NOT NULL;

-- What a memory left between entities, and in threads, is found without reading all of it.
CREATE INDEX link_context ON link (context)
    WHERE src_kind = 'entity' AND dst_kind = 'entity' AND context IS NOT NULL;
CREATE INDEX link_source ON link (source) WHERE src_kind = 'entity' AND dst_kind = 'entity';
CREATE INDEX thread_event_item ON thread_event (item) WHERE item IS NOT NULL;

-- What there is of each sort is counted from indexes alone.
CREATE INDEX item_sort ON item (level, kind, layer, tier, status, source_class, live_to)
    WHERE live_to IS NULL;
CREATE INDEX item_ended ON item (id, live_to) WHERE live_to IS NOT NULL;

-- What nobody vouches for is found at once: how sure an answer is, is judged without it.
CREATE INDEX item_untrusted ON item (id) WHERE trust < 1;

-- CRC-32 of a vector's data and tokens, so that rot shows. NULL: made before there was one.
ALTER TABLE vector ADD COLUMN crc INTEGER;
