package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// AcceptedKept is how many accepted results of one request are kept.
const AcceptedKept = 4

// Accepted is a result that was accepted, for runs that ask to reuse what the same request gave before.
type Accepted struct {
	Request string // hash of the canonical request with all that the result depends on; the caller's choice
	Model   string // the model's digest, "" where none took part
	RunID   string // has a row
	Step    int    // position in the run
	Item    int
	Time    time.Time
	Result  json.RawMessage // as the event says it
	Body    string          // SHA-256 of the artifact that Result names, "" for a value: it is forgotten with that
}

// Schedule is what starts runs by itself.
type Schedule struct {
	Name    string
	Updated time.Time
	Value   json.RawMessage // what the user said and what became of it, the scheduler's own; nil removes the schedule
}

// checkReuse finds what would make the ledger unreadable.
func (c Commit) checkReuse() error {
	for _, a := range c.Accepted {
		if a.Request == "" || !json.Valid(a.Result) || a.Body != "" && !isDigest(a.Body) {
			return apierr.New(apierr.InvalidArgument, "an accepted result of run %s (step %d, item %d) lacks its request, is no valid JSON or names no artifact",
				a.RunID, a.Step, a.Item)
		}
	}
	for _, s := range c.Schedules {
		if s.Name == "" || s.Value != nil && !json.Valid(s.Value) {
			return apierr.New(apierr.InvalidArgument, "the schedule %q lacks a name or is no valid JSON", s.Name)
		}
	}
	return nil
}

func (s *SQLite) insertAccepted(ctx context.Context, tx *sql.Tx, accepted []Accepted) error {
	values := make([]any, 0, len(accepted)*s.stmts.putAccepted.columns)
	for _, a := range accepted {
		values = append(values, a.Request, a.Model, a.RunID, a.Step, a.Item, formatTime(a.Time), string(a.Result), nullString(a.Body))
	}
	err := s.stmts.putAccepted.grow(ctx, tx, values, AcceptedKept)
	if err != nil {
		return fmt.Errorf("write accepted results: %w", err)
	}
	return nil
}

// insertSchedules writes schedules; they are few and need no prepared statements.
func insertSchedules(ctx context.Context, tx *sql.Tx, schedules []Schedule) error {
	for _, s := range schedules {
		var err error
		if s.Value == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM schedule WHERE name = ?`, s.Name)
		} else {
			_, err = tx.ExecContext(ctx, `INSERT INTO schedule (name, updated, value) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE
				SET updated = excluded.updated, value = excluded.value`, s.Name, formatTime(s.Updated), string(s.Value))
		}
		if err != nil {
			return fmt.Errorf("write the schedule %s: %w", s.Name, err)
		}
	}
	return nil
}

// Accepted implements Store.
func (s *SQLite) Accepted(ctx context.Context, request string, limit int) ([]Accepted, error) {
	rows, err := s.stmts.accepted.QueryContext(ctx, request, sqlLimit(limit))
	return collect(s, rows, err, "look up accepted results", func(rows *sql.Rows) (Accepted, error) {
		a := Accepted{Request: request}
		var at string
		var result []byte
		err := rows.Scan(&a.Model, &a.RunID, &a.Step, &a.Item, &at, &result, &a.Body)
		if err == nil {
			a.Result = result
			a.Time, err = s.parseTime(at)
		}
		return a, err
	})
}

// Schedules implements Store.
func (s *SQLite) Schedules(ctx context.Context) ([]Schedule, error) {
	rows, err := s.readers.QueryContext(ctx, `SELECT name, updated, value FROM schedule ORDER BY name`)
	return collect(s, rows, err, "list the schedules", func(rows *sql.Rows) (c Schedule, err error) {
		var at string
		var value []byte
		if err = rows.Scan(&c.Name, &at, &value); err == nil {
			c.Value = value
			c.Updated, err = s.parseTime(at)
		}
		return c, err
	})
}
