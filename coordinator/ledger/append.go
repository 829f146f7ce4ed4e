package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// timeFormat is RFC 3339 with a fixed width, so that text order is time order.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// statements are the prepared ones of the hot path.
type statements struct {
	putRun, keyOwner, end, putEvent, setEnd, putArtifact, setMeta, delMeta, putAccepted, dropAccepted *sql.Stmt // writer
	events, artifact, accepted                                                                        *sql.Stmt // readers
}

func (st *statements) prepare(ctx context.Context, writer, readers *sql.DB) error {
	for _, p := range []struct {
		to  **sql.Stmt
		db  *sql.DB
		sql string
	}{
		{&st.putRun, writer, `INSERT INTO run (id, workflow, state, created, started, ended, key, summary) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET workflow = excluded.workflow, state = excluded.state, created = excluded.created,
			started = excluded.started, ended = excluded.ended, key = excluded.key, summary = excluded.summary`},
		{&st.keyOwner, writer, `SELECT id FROM run WHERE key = ? AND id <> ?`},
		{&st.end, writer, `SELECT events, head FROM run WHERE id = ?`},
		{&st.putEvent, writer, `INSERT INTO event (run_id, seq, time, kind, payload, hash) VALUES (?, ?, ?, ?, ?, ?)`},
		{&st.setEnd, writer, `UPDATE run SET events = ?, head = ? WHERE id = ?`},
		{&st.putArtifact, writer, `INSERT INTO artifact (sha256, size, name, body, stored) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (sha256) DO UPDATE SET size = excluded.size, body = excluded.body, stored = excluded.stored, pruned = NULL
			WHERE body IS NOT excluded.body OR pruned IS NOT NULL OR stored IS NULL OR stored < ?6`},
		{&st.setMeta, writer, `INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`},
		{&st.delMeta, writer, `DELETE FROM meta WHERE key = ?`},
		{&st.events, readers, `SELECT seq, time, kind, payload FROM event WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?`},
		{&st.artifact, readers, `SELECT size, name, body, pruned FROM artifact WHERE sha256 = ?`},
		{&st.putAccepted, writer, `INSERT INTO accepted (request, model, run_id, step, item, time, result, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`},
		{&st.dropAccepted, writer, `DELETE FROM accepted WHERE request = ?1 AND pos <=
			(SELECT pos FROM accepted WHERE request = ?1 ORDER BY pos DESC LIMIT 1 OFFSET ?2)`},
		{&st.accepted, readers, `SELECT model, run_id, step, item, time, result, coalesce(body, '') FROM accepted WHERE request = ? ORDER BY pos DESC LIMIT ?`},
	} {
		stmt, err := p.db.PrepareContext(ctx, p.sql)
		if err != nil {
			return err
		}
		*p.to = stmt // closed with its database
	}
	return nil
}

// Append implements Store.
func (s *SQLite) Append(ctx context.Context, c Commit) error {
	if err := c.check(); err != nil {
		return err
	}
	s.bodies.RLock()
	defer s.bodies.RUnlock()
	bodies, err := s.placeBodies(ctx, c.Bodies)
	if err != nil {
		return err
	}
	return s.writing(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, b := range bodies {
			if err := b.insert(ctx, tx, &s.stmts); err != nil {
				return err
			}
		}
		for _, r := range c.Runs {
			if err := s.insertRun(ctx, tx, r); err != nil {
				return err
			}
		}
		if err := s.insertEvents(ctx, tx, c.Events); err != nil {
			return err
		}
		if err := s.insertMeta(ctx, tx, c.Meta); err != nil {
			return err
		}
		if err := s.insertAccepted(ctx, tx, c.Accepted); err != nil {
			return err
		}
		if err := insertSchedules(ctx, tx, c.Schedules); err != nil {
			return err
		}
		if err := insertToolCalls(ctx, tx, c.ToolCalls); err != nil {
			return err
		}
		return insertPlacement(ctx, tx, c)
	})
}

// check finds what would make the ledger unreadable, before anything is written.
func (c Commit) check() error {
	for _, e := range c.Events {
		if e.Payload != nil && !json.Valid(e.Payload) {
			return apierr.New(apierr.InvalidArgument, "event %d of run %s (%s) carries no valid JSON", e.Seq, e.RunID, e.Kind)
		}
		if !oneLine(e.RunID) || !oneLine(e.Kind) || !oneLine(string(e.Payload)) {
			return apierr.New(apierr.InvalidArgument, "event %d of run %q (%q) has a line break", e.Seq, e.RunID, e.Kind)
		}
	}
	for _, r := range c.Runs {
		if r.ID == "" {
			return apierr.New(apierr.InvalidArgument, "a run needs an ID")
		}
		if r.Summary != nil && !json.Valid(r.Summary) {
			return apierr.New(apierr.InvalidArgument, "the summary of run %s is no valid JSON", r.ID)
		}
	}
	for k, v := range c.Meta {
		if v != nil && !json.Valid(v) {
			return apierr.New(apierr.InvalidArgument, "the value of %s is no valid JSON", k)
		}
	}
	if err := c.checkReuse(); err != nil {
		return err
	}
	if err := c.checkToolCalls(); err != nil {
		return err
	}
	return c.checkPlacement()
}

func (s *SQLite) insertRun(ctx context.Context, tx *sql.Tx, r RunRow) error {
	if r.Key != "" {
		var owner string
		err := tx.StmtContext(ctx, s.stmts.keyOwner).QueryRowContext(ctx, r.Key, r.ID).Scan(&owner)
		if err == nil {
			return apierr.New(apierr.Conflict, "run %s has the key %q already", owner, r.Key).WithNext("loopkeeper show " + owner)
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("look up the key of run %s: %w", r.ID, err)
		}
	}
	_, err := tx.StmtContext(ctx, s.stmts.putRun).ExecContext(ctx, r.ID, r.Workflow, r.State, formatTime(r.Created),
		nullTime(r.Started), nullTime(r.Ended), nullString(r.Key), nullString(string(r.Summary)))
	if err != nil {
		return fmt.Errorf("write run %s: %w", r.ID, err)
	}
	return nil
}

func (s *SQLite) insertEvents(ctx context.Context, tx *sql.Tx, events []Event) error {
	ends := map[string]*chainEnd{}
	for _, e := range events {
		end := ends[e.RunID]
		if end == nil {
			found, err := scanEnd(tx.StmtContext(ctx, s.stmts.end).QueryRowContext(ctx, e.RunID))
			if errors.Is(err, sql.ErrNoRows) {
				return apierr.New(apierr.InvalidArgument, "an event of run %q, which has no row", e.RunID)
			}
			if err != nil {
				return fmt.Errorf("find the last event of run %s: %w", e.RunID, err)
			}
			end = &found
			ends[e.RunID] = end
		}
		if e.Seq != end.seq+1 {
			return apierr.New(apierr.Conflict, "event %d of run %s does not follow event %d", e.Seq, e.RunID, end.seq)
		}
		if err := s.insertEvent(ctx, tx, end, e); err != nil {
			return err
		}
	}
	for id, end := range ends {
		if err := s.setEnd(ctx, tx, id, *end); err != nil {
			return err
		}
	}
	return nil
}

// insertEvent adds an event to the chain that ends at end, and moves that.
func (s *SQLite) insertEvent(ctx context.Context, tx *sql.Tx, end *chainEnd, e Event) error {
	payload := string(e.Payload)
	if e.Payload == nil {
		payload = "null"
	}
	at := formatTime(e.Time)
	*end = chainEnd{e.Seq, link(end.hash, e.RunID, e.Seq, at, e.Kind, payload)}
	if _, err := tx.StmtContext(ctx, s.stmts.putEvent).ExecContext(ctx, e.RunID, e.Seq, at, e.Kind, payload, end.hash); err != nil {
		return fmt.Errorf("write event %d of run %s: %w", e.Seq, e.RunID, err)
	}
	return nil
}

func (s *SQLite) setEnd(ctx context.Context, tx *sql.Tx, runID string, end chainEnd) error {
	if _, err := tx.StmtContext(ctx, s.stmts.setEnd).ExecContext(ctx, end.seq, end.hash, runID); err != nil {
		return fmt.Errorf("write the head of run %s: %w", runID, err)
	}
	return nil
}

func (s *SQLite) insertMeta(ctx context.Context, tx *sql.Tx, values map[string]json.RawMessage) error {
	for k, v := range values {
		var err error
		if v == nil {
			_, err = tx.StmtContext(ctx, s.stmts.delMeta).ExecContext(ctx, k)
		} else {
			_, err = tx.StmtContext(ctx, s.stmts.setMeta).ExecContext(ctx, k, string(v))
		}
		if err != nil {
			return fmt.Errorf("write the value of %s: %w", k, err)
		}
	}
	return nil
}

func formatTime(t time.Time) string { return t.UTC().Format(timeFormat) }

func nullTime(t time.Time) sql.NullString {
	return sql.NullString{String: formatTime(t), Valid: !t.IsZero()}
}

func nullString(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }
