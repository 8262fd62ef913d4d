-- Schema version 10: memories are tied to code.

-- A JSON list of anchors (model/anchor.py); NULL where there are none.
ALTER TABLE item ADD COLUMN anchors TEXT;
CREATE INDEX item_anchored ON item (stored_at, id) WHERE anchors IS NOT NULL;
