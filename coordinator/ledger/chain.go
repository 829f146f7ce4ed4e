package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Head is the end of a run's chain of events: written down elsewhere, it later proves that none of them has changed since.
type Head struct {
	Seq  int64  // of the last event, 0 when there is none
	Hash string // lower-case hex SHA-256, "" when there is none
}

// chainEnd is a Head as the database has it.
type chainEnd struct {
	seq  int64
	hash []byte
}

func (c chainEnd) head() Head { return Head{Seq: c.seq, Hash: hex.EncodeToString(c.hash)} }

// link is an event's hash: SHA-256 over the hash of the event before it in its run in hex, "" for the first, and run, seq, time
// and kind, a line each, and the payload as it is stored. Only the payload may hold a line break, and it comes last, so that no two
// events have the same text.
func link(before []byte, runID string, seq int64, at, kind, payload string) []byte {
	text := make([]byte, 0, 192+len(payload))
	text = hex.AppendEncode(text, before)
	text = append(append(text, '\n'), runID...)
	text = strconv.AppendInt(append(text, '\n'), seq, 10)
	text = append(append(text, '\n'), at...)
	text = append(append(text, '\n'), kind...)
	text = append(append(text, '\n'), payload...)
	sum := sha256.Sum256(text)
	return sum[:]
}

// oneLine says whether text may be a line of what link hashes.
func oneLine(text string) bool { return !strings.ContainsAny(text, "\r\n") }

// Head implements Store.
func (s *SQLite) Head(ctx context.Context, runID string) (Head, error) {
	end, err := scanEnd(s.readers.QueryRowContext(ctx, "SELECT events, head FROM run WHERE id = ?", runID))
	if errors.Is(err, sql.ErrNoRows) {
		return Head{}, noRun(runID)
	}
	return end.head(), s.explain(err, "read the head of run "+runID)
}

func noRun(id string) error {
	return apierr.New(apierr.NotFound, "there is no run %s", id).WithNext("loopkeeper runs")
}

func scanEnd(row *sql.Row) (end chainEnd, err error) { return end, row.Scan(&end.seq, &end.hash) }

// chainOldEvents gives the events of a ledger that had none their hashes.
func chainOldEvents(ctx context.Context, tx *sql.Tx) error {
	ids, err := column(ctx, tx, "SELECT id FROM run ORDER BY id")
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := chainOldRun(ctx, tx, id); err != nil {
			return fmt.Errorf("chain the events of run %s: %w", id, err)
		}
	}
	return nil
}

func column(ctx context.Context, tx *sql.Tx, query string) ([]string, error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err below has what matters
	var out []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

func chainOldRun(ctx context.Context, tx *sql.Tx, id string) error {
	var end chainEnd
	for {
		page, err := oldEvents(ctx, tx, id, end.seq)
		if err != nil {
			return err
		}
		for _, e := range page {
			end = chainEnd{e.seq, link(end.hash, id, e.seq, e.at, e.kind, e.payload)}
			if _, err := tx.ExecContext(ctx, "UPDATE event SET hash = ? WHERE pos = ?", end.hash, e.pos); err != nil {
				return err
			}
		}
		if len(page) < eventPage {
			break
		}
	}
	_, err := tx.ExecContext(ctx, "UPDATE run SET events = ?, head = ? WHERE id = ?", end.seq, end.hash, id)
	return err
}

// rawEvent is an event as the database has it.
type rawEvent struct {
	pos, seq          int64
	at, kind, payload string
	hash              []byte
}

func oldEvents(ctx context.Context, tx *sql.Tx, id string, after int64) ([]rawEvent, error) {
	rows, err := tx.QueryContext(ctx, "SELECT pos, seq, time, kind, payload FROM event WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?", id, after, eventPage)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err below has what matters
	var page []rawEvent
	for rows.Next() {
		var e rawEvent
		if err := rows.Scan(&e.pos, &e.seq, &e.at, &e.kind, &e.payload); err != nil {
			return nil, err
		}
		page = append(page, e)
	}
	return page, rows.Err()
}

// verifyChains walks every run's events and reports the first that does not fit, a problem a run.
func (s *SQLite) verifyChains(ctx context.Context, rep *Report) error {
	for after, done := "", false; !done; {
		rows, err := s.readers.QueryContext(ctx, "SELECT id FROM run WHERE id > ? ORDER BY id LIMIT ?", after, eventPage)
		ids, err := collect(s, rows, err, "list runs", func(rows *sql.Rows) (id string, err error) { return id, rows.Scan(&id) })
		if err != nil {
			return rep.note("database", err)
		}
		for _, id := range ids {
			detail, err := s.brokenLink(ctx, id)
			if err := rep.note("run "+id, err); err != nil {
				return err
			}
			if detail != "" {
				rep.Problems = append(rep.Problems, Problem{Subject: "run " + id, Detail: detail})
			}
			after = id
		}
		done = len(ids) < eventPage
	}
	return nil
}

// brokenLink says where the chain of run id breaks first, or "". One statement reads the row and the events, so both are of one
// moment while others append.
func (s *SQLite) brokenLink(ctx context.Context, id string) (string, error) {
	rows, err := s.readers.QueryContext(ctx, `SELECT r.events, r.head, coalesce(e.seq, 0), coalesce(e.time, ''), coalesce(e.kind, ''),
		coalesce(e.payload, ''), e.hash FROM run r LEFT JOIN event e ON e.run_id = r.id WHERE r.id = ? ORDER BY e.seq`, id)
	if err != nil {
		return "", s.explain(err, "verify run "+id)
	}
	defer rows.Close() //nolint:errcheck // rows.Err below has what matters
	var want, end chainEnd
	for rows.Next() {
		var e rawEvent
		if err := rows.Scan(&want.seq, &want.hash, &e.seq, &e.at, &e.kind, &e.payload, &e.hash); err != nil {
			return "", s.explain(err, "verify run "+id)
		}
		if e.seq == 0 { // of a run without events
			break
		}
		if e.seq != end.seq+1 {
			return fmt.Sprintf("event %d is missing: event %d follows event %d", end.seq+1, e.seq, end.seq), nil
		}
		end = chainEnd{e.seq, link(end.hash, id, e.seq, e.at, e.kind, e.payload)}
		if !bytes.Equal(end.hash, e.hash) {
			return fmt.Sprintf("event %d is not what was written, or does not belong there: its hash does not fit it and event %d", e.seq, e.seq-1), nil
		}
	}
	switch {
	case rows.Err() != nil:
		return "", s.explain(rows.Err(), "verify run "+id)
	case end.seq < want.seq:
		return fmt.Sprintf("event %d is missing: the row of the run counts %d events, there are %d", end.seq+1, want.seq, end.seq), nil
	case end.seq > want.seq:
		return fmt.Sprintf("event %d was added: the row of the run counts %d events, there are %d", want.seq+1, want.seq, end.seq), nil
	case !bytes.Equal(end.hash, want.hash):
		return fmt.Sprintf("event %d is not the last that was written: its hash is not the one in the row of the run", end.seq), nil
	}
	return "", nil
}
