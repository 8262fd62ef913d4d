-- Schema version 9: the log of operations, by which a space is the same on several machines.

-- What each device did to which memory (store/sql/oplog/fold.py). series: the device and the
-- classification; mark: a hash of what it says; seen: the number, in the series, of the last
-- operation that says what the device had seen. data is JSON, compressed.
CREATE TABLE op (
    series TEXT NOT NULL,
    number INTEGER NOT NULL,
    mark TEXT NOT NULL,
    clock INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    item TEXT NOT NULL,
    seen INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (series, number, mark)
) STRICT, WITHOUT ROWID;
CREATE INDEX op_item ON op (item, kind);
-- Up to which number the log has all that a series has.
CREATE TABLE series (name TEXT PRIMARY KEY, upto INTEGER NOT NULL) STRICT, WITHOUT ROWID;
-- The machines whose operations are taken; key: their public key.
CREATE TABLE device (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    accepted INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- Memories that were changed in two places at once: what was done elsewhere, as JSON.
CREATE TABLE conflict (item TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT, WITHOUT ROWID;
-- Memories whose links were changed without a line in the journal since the log was written.
CREATE TABLE unlogged (item TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
