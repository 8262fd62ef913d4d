-- Schema version 3.

-- Behind row-level security an index serves only conditions that tell nothing of a row that is
-- hidden: a column compared with a value does, a function of a column does not. So the key of
-- an entity, its id without the kind, is a column.
ALTER TABLE bethink.entity ADD COLUMN key text COLLATE "C" NOT NULL
    GENERATED ALWAYS AS (substr(id, strpos(id, ':') + 1)) STORED;
DROP INDEX bethink.entity_key;
CREATE INDEX entity_key ON bethink.entity (space_id, key);

-- The longest duration, in the words in which it is asked for.
DROP INDEX bethink.item_lasting;
CREATE INDEX item_lasting ON bethink.item
    (space_id, (occurred_end - CASE WHEN occurred_at IS NULL THEN stored_at ELSE occurred_at END))
    WHERE occurred_end IS NOT NULL;
