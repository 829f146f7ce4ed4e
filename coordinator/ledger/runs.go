package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// knownRow is a run's row without its summary, as it was written last.
type knownRow struct {
	there bool
	what  rowColumns
	end   chainEnd
}

// rowColumns are those that seldom change, as the database has them; "" is null.
type rowColumns struct{ workflow, state, created, started, ended, key string }

func columnsOf(r RunRow) rowColumns {
	c := rowColumns{workflow: r.Workflow, state: r.State, created: formatTime(r.Created), key: r.Key}
	if !r.Started.IsZero() {
		c.started = formatTime(r.Started)
	}
	if !r.Ended.IsZero() {
		c.ended = formatTime(r.Ended)
	}
	return c
}

// mostKnown bounds how many rows are remembered: those of runs that go on.
const mostKnown = 1024

// rowOf is what is known of a run's row, or what the database has.
func (s *SQLite) rowOf(ctx context.Context, tx *sql.Tx, id string) (knownRow, error) {
	if k, ok := s.known[id]; ok {
		return k, nil
	}
	k := knownRow{there: true}
	err := tx.StmtContext(ctx, s.stmts.row).QueryRowContext(ctx, id).Scan(&k.what.workflow, &k.what.state, &k.what.created, &k.what.started,
		&k.what.ended, &k.what.key, &k.end.seq, &k.end.hash)
	if errors.Is(err, sql.ErrNoRows) {
		return knownRow{}, nil
	}
	if err != nil {
		return k, fmt.Errorf("read the row of run %s: %w", id, err)
	}
	if len(s.known) >= mostKnown {
		clear(s.known)
	}
	s.known[id] = k
	return k, nil
}

// insertRuns writes events and the rows of their runs, a row once: with what lists show and with the end of the chain.
func (s *SQLite) insertRuns(ctx context.Context, tx *sql.Tx, rows []RunRow, events []Event) error {
	ends, values, err := s.chain(ctx, tx, rows, events)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := s.insertRun(ctx, tx, r, ends[r.ID]); err != nil {
			return err
		}
	}
	for id, end := range ends {
		if s.known[id].end.seq == end.seq { // written with the row
			continue
		}
		if err := s.setEnd(ctx, tx, id, end); err != nil {
			return err
		}
	}
	if err := s.stmts.putEvents.insert(ctx, tx, values); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

// chain adds events to the chains of their runs: it returns the new ends, and the values of the events' rows.
func (s *SQLite) chain(ctx context.Context, tx *sql.Tx, rows []RunRow, events []Event) (ends map[string]chainEnd, values []any, err error) {
	ends = map[string]chainEnd{}
	begin := func(id string, must bool) error {
		if _, ok := ends[id]; ok {
			return nil
		}
		row, err := s.rowOf(ctx, tx, id)
		if err == nil && must && !row.there {
			err = apierr.New(apierr.InvalidArgument, "an event of run %q, which has no row", id)
		}
		ends[id] = row.end
		return err
	}
	for _, r := range rows {
		if err := begin(r.ID, false); err != nil {
			return nil, nil, err
		}
	}
	values = make([]any, 0, len(events)*s.stmts.putEvents.columns)
	for _, e := range events {
		if err := begin(e.RunID, true); err != nil {
			return nil, nil, err
		}
		end := ends[e.RunID]
		if e.Seq != end.seq+1 {
			return nil, nil, apierr.New(apierr.Conflict, "event %d of run %s does not follow event %d", e.Seq, e.RunID, end.seq)
		}
		ends[e.RunID], values = appendEvent(values, end, e)
	}
	return ends, values, nil
}

// appendEvent adds an event to the chain that ends at end, and its row to values.
func appendEvent(values []any, end chainEnd, e Event) (chainEnd, []any) {
	payload := string(e.Payload)
	if e.Payload == nil {
		payload = "null"
	}
	at := formatTime(e.Time)
	end = chainEnd{e.Seq, link(end.hash, e.RunID, e.Seq, at, e.Kind, payload)}
	return end, append(values, e.RunID, e.Seq, at, e.Kind, payload, end.hash)
}

// insertRun writes a run's row. Most often little of it has changed: then what the lists are found by is left alone.
func (s *SQLite) insertRun(ctx context.Context, tx *sql.Tx, r RunRow, end chainEnd) error {
	was, err := s.rowOf(ctx, tx, r.ID)
	if err != nil {
		return err
	}
	what := columnsOf(r)
	summary := nullString(string(r.Summary))
	if was.there && was.what == what {
		_, err = tx.StmtContext(ctx, s.stmts.growRun).ExecContext(ctx, summary, end.seq, nullBlob(end.hash), r.ID)
	} else {
		if err := s.keyIsFree(ctx, tx, r); err != nil {
			return err
		}
		_, err = tx.StmtContext(ctx, s.stmts.putRun).ExecContext(ctx, r.ID, what.workflow, what.state, what.created,
			nullString(what.started), nullString(what.ended), nullString(what.key), summary, end.seq, nullBlob(end.hash))
	}
	if err != nil {
		return fmt.Errorf("write run %s: %w", r.ID, err)
	}
	s.known[r.ID] = knownRow{true, what, end}
	return nil
}

func (s *SQLite) keyIsFree(ctx context.Context, tx *sql.Tx, r RunRow) error {
	if r.Key == "" {
		return nil
	}
	var owner string
	err := tx.StmtContext(ctx, s.stmts.keyOwner).QueryRowContext(ctx, r.Key, r.ID).Scan(&owner)
	if err == nil {
		return apierr.New(apierr.Conflict, "run %s has the key %q already", owner, r.Key).WithNext("loopkeeper show " + owner)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("look up the key of run %s: %w", r.ID, err)
	}
	return nil
}

// setEnd writes the end of a run's chain.
func (s *SQLite) setEnd(ctx context.Context, tx *sql.Tx, id string, end chainEnd) error {
	if _, err := tx.StmtContext(ctx, s.stmts.setEnd).ExecContext(ctx, end.seq, nullBlob(end.hash), id); err != nil {
		return fmt.Errorf("write the head of run %s: %w", id, err)
	}
	if row, ok := s.known[id]; ok {
		row.end = end
		s.known[id] = row
	}
	return nil
}
