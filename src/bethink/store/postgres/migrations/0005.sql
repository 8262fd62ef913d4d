-- Schema version 5: memories are tied to code.

-- A JSON list of anchors (model/anchor.py); NULL where there are none.
ALTER TABLE bethink.item ADD COLUMN anchors text COLLATE "C";
CREATE INDEX item_anchored ON bethink.item (space_id, stored_at, id) WHERE anchors IS NOT NULL;
