package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// How many decisions of one step, and how many incidents in all, are kept: enough to tell a story, and no more than a batch of
// any size can fill.
const (
	DecisionsKept = 64
	IncidentsKept = 2000
)

// Learned is one value that belongs to a node, or to something on it. A later one replaces it.
type Learned struct {
	Kind    string
	Node    string
	Subject string // such as a model's digest; "" is the node itself
	Time    time.Time
	Value   json.RawMessage // nil removes it
}

// Decision is why a step's call was placed or waits, as it was decided.
type Decision struct {
	RunID  string
	Step   int
	Item   int
	Time   time.Time
	Action string
	Node   string // "" where none was chosen
	Why    json.RawMessage
}

// Incident is something that happened to a node and that no run's events tell.
type Incident struct {
	Time  time.Time
	Node  string
	Kind  string
	Model string // "" where it is about none
	Text  string // for people
}

func (c Commit) checkPlacement() error {
	for _, l := range c.Learned {
		if l.Value != nil && !json.Valid(l.Value) {
			return apierr.New(apierr.InvalidArgument, "what was learned of %s (%s, %s) is no valid JSON", l.Node, l.Kind, l.Subject)
		}
	}
	for _, d := range c.Decisions {
		if !json.Valid(d.Why) {
			return apierr.New(apierr.InvalidArgument, "the reason of a decision on run %s is no valid JSON", d.RunID)
		}
	}
	return nil
}

// insertPlacement writes what stands beside the events. Most are few and need no prepared statements.
func (s *SQLite) insertPlacement(ctx context.Context, tx *sql.Tx, c Commit) error {
	if err := insertLearned(ctx, tx, c.Learned); err != nil {
		return err
	}
	if err := s.insertDecisions(ctx, tx, c.Decisions); err != nil {
		return err
	}
	for _, i := range c.Incidents {
		_, err := tx.ExecContext(ctx, `INSERT INTO incident (time, node, kind, model, text) VALUES (?, ?, ?, ?, ?)`,
			formatTime(i.Time), i.Node, i.Kind, i.Model, i.Text)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM incident WHERE pos <= (SELECT max(pos) FROM incident) - ?`, IncidentsKept)
		}
		if err != nil {
			return fmt.Errorf("write an incident of node %s: %w", i.Node, err)
		}
	}
	return nil
}

// insertDecisions adds decisions and lets go of the oldest of each step that got some.
func (s *SQLite) insertDecisions(ctx context.Context, tx *sql.Tx, decisions []Decision) error {
	values := make([]any, 0, len(decisions)*s.stmts.putDecisions.columns)
	for _, d := range decisions {
		values = append(values, d.RunID, d.Step, d.Item, formatTime(d.Time), d.Action, d.Node, string(d.Why))
	}
	if err := s.stmts.putDecisions.grow(ctx, tx, values, DecisionsKept); err != nil {
		return fmt.Errorf("write decisions: %w", err)
	}
	return nil
}

func insertLearned(ctx context.Context, tx *sql.Tx, values []Learned) error {
	for _, l := range values {
		var err error
		if l.Value == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM learned WHERE kind = ? AND node = ? AND subject = ?`, l.Kind, l.Node, l.Subject)
		} else {
			_, err = tx.ExecContext(ctx, `INSERT INTO learned (kind, node, subject, time, value) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (kind, node, subject) DO UPDATE SET time = excluded.time, value = excluded.value`,
				l.Kind, l.Node, l.Subject, formatTime(l.Time), string(l.Value))
		}
		if err != nil {
			return fmt.Errorf("write what was learned of node %s: %w", l.Node, err)
		}
	}
	return nil
}

// Learned implements Store.
func (s *SQLite) Learned(ctx context.Context) ([]Learned, error) {
	rows, err := s.readers.QueryContext(ctx, `SELECT kind, node, subject, time, value FROM learned ORDER BY kind, node, subject`)
	return collect(s, rows, err, "read what was learned", func(rows *sql.Rows) (l Learned, err error) {
		var at string
		var value []byte
		if err = rows.Scan(&l.Kind, &l.Node, &l.Subject, &at, &value); err == nil {
			l.Value = value
			l.Time, err = s.parseTime(at)
		}
		return l, err
	})
}

// Decisions implements Store.
func (s *SQLite) Decisions(ctx context.Context, runID string, step int) ([]Decision, error) {
	rows, err := s.readers.QueryContext(ctx, `SELECT step, item, time, action, node, why FROM decision
		WHERE run_id = ?1 AND (?2 < 0 OR step = ?2) ORDER BY pos`, runID, step)
	return collect(s, rows, err, "read the decisions on run "+runID, func(rows *sql.Rows) (Decision, error) {
		d := Decision{RunID: runID}
		var at string
		var why []byte
		err := rows.Scan(&d.Step, &d.Item, &at, &d.Action, &d.Node, &why)
		if err == nil {
			d.Why = why
			d.Time, err = s.parseTime(at)
		}
		return d, err
	})
}

// Incidents implements Store.
func (s *SQLite) Incidents(ctx context.Context, node string, limit int) ([]Incident, error) {
	rows, err := s.readers.QueryContext(ctx, `SELECT time, node, kind, model, text FROM incident
		WHERE ?1 = '' OR node = ?1 ORDER BY pos DESC LIMIT ?2`, node, sqlLimit(limit))
	return collect(s, rows, err, "read the incidents", func(rows *sql.Rows) (i Incident, err error) {
		var at string
		if err = rows.Scan(&at, &i.Node, &i.Kind, &i.Model, &i.Text); err == nil {
			i.Time, err = s.parseTime(at)
		}
		return i, err
	})
}
