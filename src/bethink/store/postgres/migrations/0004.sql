-- Schema version 4: the log of operations, by which a space is the same on several machines.

CREATE TABLE bethink.op (
    space_id bigint NOT NULL,
    series text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    mark text COLLATE "C" NOT NULL,
    clock bigint NOT NULL,
    at bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    item text COLLATE "C" NOT NULL,
    seen bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (space_id, series, number, mark)
);
CREATE INDEX op_item ON bethink.op (space_id, item, kind);
CREATE TABLE bethink.series (
    space_id bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    upto bigint NOT NULL,
    PRIMARY KEY (space_id, name)
);
CREATE TABLE bethink.device (
    space_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    accepted bigint NOT NULL,
    PRIMARY KEY (space_id, id)
);
CREATE TABLE bethink.conflict (
    space_id bigint NOT NULL,
    item text COLLATE "C" NOT NULL,
    data text COLLATE "C" NOT NULL,
    PRIMARY KEY (space_id, item)
);
CREATE TABLE bethink.unlogged (
    space_id bigint NOT NULL,
    item text COLLATE "C" NOT NULL,
    PRIMARY KEY (space_id, item)
);
