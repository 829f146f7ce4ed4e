-- What calls of tools with an effect did: before the call acts without an end, afterwards with one. It is asked for by the key of the
-- call alone, when nobody heard of its end.
CREATE TABLE tool_call (
    key     TEXT PRIMARY KEY,
    updated TEXT NOT NULL,
    value   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
