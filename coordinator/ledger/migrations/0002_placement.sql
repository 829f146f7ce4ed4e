-- What was measured or decided of a node, and of one thing on it: a model's speed, a model that we loaded. Replaced as it changes.
CREATE TABLE learned (
    kind    TEXT NOT NULL,
    node    TEXT NOT NULL,
    subject TEXT NOT NULL, -- such as a model's digest; '' is the node itself
    time    TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (kind, node, subject)
) STRICT, WITHOUT ROWID;

-- Why a step's calls were placed, or waited, as it was decided. The newest few of each step are kept.
CREATE TABLE decision (
    pos    INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES run (id),
    step   INTEGER NOT NULL,
    item   INTEGER NOT NULL,
    time   TEXT NOT NULL,
    action TEXT NOT NULL,
    node   TEXT NOT NULL, -- '' where none was chosen
    why    TEXT NOT NULL
) STRICT;
CREATE INDEX decision_step ON decision (run_id, step, pos);

-- What happened to a node that no run's events tell. The newest are kept.
CREATE TABLE incident (
    pos   INTEGER PRIMARY KEY,
    time  TEXT NOT NULL,
    node  TEXT NOT NULL,
    kind  TEXT NOT NULL,
    model TEXT NOT NULL, -- '' where it is about none
    text  TEXT NOT NULL
) STRICT;
CREATE INDEX incident_node ON incident (node, pos);
