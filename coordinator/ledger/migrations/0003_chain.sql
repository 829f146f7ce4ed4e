-- Each event carries the SHA-256 over its own content and the hash of the event before it in its run, and the run's row how
-- many events there are and the hash of the last: what is changed, moved or cut off later no longer fits. What is hashed stands
-- in README.md. Events of before get their hashes in this same transaction, and the trigger that guards them comes back in 0004.
DROP TRIGGER event_is_never_changed;
ALTER TABLE event ADD COLUMN hash BLOB CHECK (length(hash) = 32);
ALTER TABLE run ADD COLUMN events INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN head BLOB CHECK (length(head) = 32); -- null without events
