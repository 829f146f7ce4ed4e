package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Events implements Store.
func (s *SQLite) Events(ctx context.Context, runID string, afterSeq int64, limit int) ([]Event, error) {
	rows, err := s.stmts.events.QueryContext(ctx, runID, afterSeq, sqlLimit(limit))
	return collect(s, rows, err, "read the events of run "+runID, s.scanEvent(runID))
}

// EventsAt implements Store.
func (s *SQLite) EventsAt(ctx context.Context, runID string, seqs []int64) ([]Event, error) {
	list, err := json.Marshal(seqs)
	if err != nil {
		return nil, fmt.Errorf("list the events to read: %w", err) // numbers always marshal
	}
	// CROSS makes SQLite keep the order: one look into the index for each number.
	rows, err := s.readers.QueryContext(ctx, `SELECT e.seq, e.time, e.kind, e.payload FROM json_each(?) j
		CROSS JOIN event e ON e.run_id = ? AND e.seq = j.value ORDER BY j.key`, string(list), runID)
	events, err := collect(s, rows, err, "read events of run "+runID, s.scanEvent(runID))
	if err != nil {
		return nil, err
	}
	for i, seq := range seqs {
		if i >= len(events) || events[i].Seq != seq {
			return nil, apierr.New(apierr.NotFound, "run %s has no event %d", runID, seq)
		}
	}
	return events, nil
}

func (s *SQLite) scanEvent(runID string) func(*sql.Rows) (Event, error) {
	return func(rows *sql.Rows) (Event, error) {
		e := Event{RunID: runID}
		var at string
		var payload []byte
		if err := rows.Scan(&e.Seq, &at, &e.Kind, &payload); err != nil {
			return e, err
		}
		e.Payload = payload
		var err error
		e.Time, err = s.parseTime(at)
		return e, err
	}
}

// Runs implements Store.
func (s *SQLite) Runs(ctx context.Context, f RunFilter) ([]RunRow, error) {
	var where []string
	var args []any
	if len(f.States) > 0 {
		where = append(where, "state IN (?"+strings.Repeat(", ?", len(f.States)-1)+")")
		for _, st := range f.States {
			args = append(args, st)
		}
	}
	if f.Key != "" {
		where, args = append(where, "key = ?"), append(args, f.Key)
	}
	if f.Prefix != "" {
		where, args = append(where, "id >= ? AND id < ?"), append(args, f.Prefix, f.Prefix+lastRune)
	}
	query := "SELECT " + runColumns + " FROM run"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	rows, err := s.readers.QueryContext(ctx, query+" ORDER BY created DESC, id DESC LIMIT ?", append(args, sqlLimit(f.Limit))...)
	return collect(s, rows, err, "list runs", func(rows *sql.Rows) (RunRow, error) { return s.scanRun(rows) })
}

const runColumns = "id, workflow, state, created, started, ended, key, summary"

// scanRun reads runColumns, and what stands after them into more.
func (s *SQLite) scanRun(rows *sql.Rows, more ...any) (RunRow, error) {
	var r RunRow
	var created string
	var started, ended, key, summary sql.NullString
	err := rows.Scan(append([]any{&r.ID, &r.Workflow, &r.State, &created, &started, &ended, &key, &summary}, more...)...)
	if err != nil {
		return r, err
	}
	r.Key = key.String
	if summary.Valid {
		r.Summary = json.RawMessage(summary.String)
	}
	for _, t := range []struct {
		to   *time.Time
		text sql.NullString
	}{{&r.Created, sql.NullString{String: created, Valid: true}}, {&r.Started, started}, {&r.Ended, ended}} {
		if t.text.Valid {
			if *t.to, err = s.parseTime(t.text.String); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// Meta implements Store.
func (s *SQLite) Meta(ctx context.Context, prefix string) (map[string]json.RawMessage, error) {
	type pair struct {
		key   string
		value []byte
	}
	rows, err := s.readers.QueryContext(ctx, "SELECT key, value FROM meta WHERE key >= ? AND key < ?", prefix, prefix+lastRune)
	pairs, err := collect(s, rows, err, "read shared values", func(rows *sql.Rows) (p pair, err error) {
		return p, rows.Scan(&p.key, &p.value)
	})
	if err != nil {
		return nil, err
	}
	values := make(map[string]json.RawMessage, len(pairs))
	for _, p := range pairs {
		values[p.key] = p.value
	}
	return values, nil
}

// lastRune sorts after everything that can follow a prefix.
const lastRune = "\U0010FFFF"

// sqlLimit maps "no limit" to SQLite's way to say it.
func sqlLimit(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}

func (s *SQLite) parseTime(text string) (time.Time, error) {
	t, err := time.Parse(timeFormat, text)
	if err != nil {
		return t, corrupt(s.dir, err, "the ledger holds %q where a time should be", text)
	}
	return t.UTC(), nil
}

// collect reads all rows and closes them.
func collect[T any](s *SQLite, rows *sql.Rows, err error, doing string, scan func(*sql.Rows) (T, error)) ([]T, error) {
	if err != nil {
		return nil, s.explain(err, doing)
	}
	defer rows.Close() //nolint:errcheck // rows.Err below has what matters
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, s.explain(fmt.Errorf("read a row: %w", err), doing)
		}
		out = append(out, v)
	}
	return out, s.explain(rows.Err(), doing)
}
