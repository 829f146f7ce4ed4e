-- A run as lists show it: a projection of its events, replaced in the transaction of the events that changed it.
-- Times are RFC 3339 in UTC with nine decimals, so that text order is time order.
CREATE TABLE run (
    id       TEXT PRIMARY KEY,
    workflow TEXT NOT NULL,
    state    TEXT NOT NULL,
    created  TEXT NOT NULL,
    started  TEXT,
    ended    TEXT,
    key      TEXT UNIQUE,
    summary  TEXT
) STRICT;
CREATE INDEX run_created ON run (created, id);
CREATE INDEX run_state ON run (state);

-- What happened. pos is the order over all runs, seq the order within one.
CREATE TABLE event (
    pos     INTEGER PRIMARY KEY,
    run_id  TEXT NOT NULL REFERENCES run (id),
    seq     INTEGER NOT NULL CHECK (seq > 0),
    time    TEXT NOT NULL,
    kind    TEXT NOT NULL,
    payload TEXT NOT NULL,
    UNIQUE (run_id, seq)
) STRICT;
CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event
BEGIN SELECT RAISE (ABORT, 'events are never changed'); END;
CREATE TRIGGER event_is_never_removed BEFORE DELETE ON event
BEGIN SELECT RAISE (ABORT, 'events are never removed'); END;

-- Bodies by the SHA-256 of their bytes. body is null for a large one, which is the file artifacts/ab/cdef...
CREATE TABLE artifact (
    sha256 TEXT PRIMARY KEY CHECK (length(sha256) = 64),
    size   INTEGER NOT NULL,
    name   TEXT NOT NULL,
    body   BLOB CHECK (body IS NULL OR length(body) = size)
) STRICT;

-- Small values that belong to no run.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- For people: every run's story, with seconds since the run was created.
CREATE VIEW trace AS
SELECT e.run_id AS run, r.workflow, e.seq,
       round((julianday(e.time) - julianday(r.created)) * 86400, 3) AS at_s,
       e.time, e.kind, e.payload
FROM event e JOIN run r ON r.id = e.run_id
ORDER BY e.pos;
