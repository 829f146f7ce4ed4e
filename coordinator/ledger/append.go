package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// timeFormat is RFC 3339 with a fixed width, so that text order is time order.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

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
		if err := s.insertRuns(ctx, tx, c.Runs, c.Events); err != nil {
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
		return s.insertPlacement(ctx, tx, c)
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

// nullBlob is b, or null for none: to a driver an empty blob may be none.
func nullBlob(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

func nullString(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }
