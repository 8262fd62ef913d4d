-- Schema version 2: signatures, and forgetting by ticks.

-- 256 bits of a memory's words, for likeness without a model.
CREATE TABLE signature (
    rid INTEGER PRIMARY KEY REFERENCES item (rid),
    bits BLOB NOT NULL
) STRICT;

-- Every so many recalls all memories fade a little. A tick says by how much, and what
-- all ticks so far amount to: how far a memory has faded is a difference of two totals,
-- so no memory is touched when one is written.
CREATE TABLE tick (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    amount REAL NOT NULL,
    total REAL NOT NULL
) STRICT;
CREATE INDEX tick_at ON tick (at);

-- usage.decay is what it was at decay_at; the ticks since then come off.
ALTER TABLE usage ADD COLUMN decay_at INTEGER;
