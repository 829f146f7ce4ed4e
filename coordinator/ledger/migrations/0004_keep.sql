CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event
BEGIN SELECT RAISE (ABORT, 'events are never changed'); END;

-- When a body was stored last, null where that was not noted; and when it was dropped: then name and size are all that is left.
ALTER TABLE artifact ADD COLUMN stored TEXT;
ALTER TABLE artifact ADD COLUMN pruned TEXT CHECK (pruned IS NULL OR body IS NULL);

-- Results that were accepted, by the hash of their canonical request, for runs that ask to reuse them. The newest few of a request
-- are kept, and none whose body was dropped.
CREATE TABLE accepted (
    pos     INTEGER PRIMARY KEY,
    request TEXT NOT NULL,
    model   TEXT NOT NULL, -- its digest; '' where no model took part
    run_id  TEXT NOT NULL REFERENCES run (id),
    step    INTEGER NOT NULL,
    item    INTEGER NOT NULL,
    time    TEXT NOT NULL,
    result  TEXT NOT NULL, -- as the event says it
    body    TEXT           -- the artifact that the result names, null for a value
) STRICT;
CREATE INDEX accepted_request ON accepted (request, pos);
CREATE INDEX accepted_body ON accepted (body) WHERE body IS NOT NULL;

-- What starts runs by itself: what the user said, and what became of it so far.
CREATE TABLE schedule (
    name    TEXT PRIMARY KEY,
    updated TEXT NOT NULL,
    value   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What was dropped of a run, and when, by the key under which its events name the bodies.
CREATE TABLE pruned (
    run_id TEXT NOT NULL REFERENCES run (id),
    key    TEXT NOT NULL,
    time   TEXT NOT NULL,
    bodies INTEGER NOT NULL,
    bytes  INTEGER NOT NULL,
    PRIMARY KEY (run_id, key, time)
) STRICT, WITHOUT ROWID;
