package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// statements are the prepared ones of the hot path.
type statements struct {
	putRun, growRun, keyOwner, row, setEnd, putArtifact, setMeta, delMeta *sql.Stmt // writer
	events, artifact, accepted                                            *sql.Stmt // readers

	putEvents, putAccepted, putDecisions rowsStmt
}

func (st *statements) prepare(ctx context.Context, writer, readers *sql.DB) error {
	for _, p := range []struct {
		to  **sql.Stmt
		db  *sql.DB
		sql string
	}{
		{&st.putRun, writer, `INSERT INTO run (id, workflow, state, created, started, ended, key, summary, events, head) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET workflow = excluded.workflow, state = excluded.state, created = excluded.created, started = excluded.started,
			ended = excluded.ended, key = excluded.key, summary = excluded.summary, events = excluded.events, head = excluded.head`},
		{&st.growRun, writer, `UPDATE run SET summary = ?, events = ?, head = ? WHERE id = ?`},
		{&st.keyOwner, writer, `SELECT id FROM run WHERE key = ? AND id <> ?`},
		{&st.row, writer, `SELECT workflow, state, created, coalesce(started, ''), coalesce(ended, ''), coalesce(key, ''), events, head FROM run WHERE id = ?`},
		{&st.setEnd, writer, `UPDATE run SET events = ?, head = ? WHERE id = ?`},
		{&st.putArtifact, writer, `INSERT INTO artifact (sha256, size, name, body, stored) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (sha256) DO UPDATE SET size = excluded.size, body = excluded.body, stored = excluded.stored, pruned = NULL
			WHERE body IS NOT excluded.body OR pruned IS NOT NULL OR stored IS NULL OR stored < ?6`},
		{&st.setMeta, writer, `INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`},
		{&st.delMeta, writer, `DELETE FROM meta WHERE key = ?`},
		{&st.events, readers, `SELECT seq, time, kind, payload FROM event WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?`},
		{&st.artifact, readers, `SELECT size, name, body, pruned FROM artifact WHERE sha256 = ?`},
		{&st.accepted, readers, `SELECT model, run_id, step, item, time, result, coalesce(body, '') FROM accepted WHERE request = ? ORDER BY pos DESC LIMIT ?`},
	} {
		stmt, err := p.db.PrepareContext(ctx, p.sql)
		if err != nil {
			return err
		}
		*p.to = stmt // closed with its database
	}
	return errors.Join(st.putEvents.prepare(ctx, writer, "event", "run_id, seq, time, kind, payload, hash", ""),
		st.putAccepted.prepare(ctx, writer, "accepted", "request, model, run_id, step, item, time, result, body", "request"),
		st.putDecisions.prepare(ctx, writer, "decision", "run_id, step, item, time, action, node, why", "run_id, step"))
}

// rowsStmt inserts any number of rows into a table with few statements: what a statement costs besides is as much as a row.
type rowsStmt struct {
	columns    int
	put        [len(rowsAtOnce)]*sql.Stmt
	last, drop *sql.Stmt
}

// rowsAtOnce is how many rows one statement inserts, the largest first.
var rowsAtOnce = [...]int{16, 4, 1}

// prepare takes the columns of which values are inserted, and those of which equal values are kept the newest few alone, "" to keep
// everything. The newest is the one with the largest pos.
func (r *rowsStmt) prepare(ctx context.Context, db *sql.DB, table, columns, newestOf string) (err error) {
	r.columns = strings.Count(columns, ",") + 1
	row := "(?" + strings.Repeat(", ?", r.columns-1) + ")"
	for i, n := range rowsAtOnce {
		r.put[i], err = db.PrepareContext(ctx, "INSERT INTO "+table+" ("+columns+") VALUES "+row+strings.Repeat(", "+row, n-1))
		if err != nil {
			return err
		}
	}
	if newestOf == "" {
		return nil
	}
	if r.last, err = db.PrepareContext(ctx, "SELECT coalesce(max(pos), 0) FROM "+table); err != nil {
		return err
	}
	r.drop, err = db.PrepareContext(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE pos IN (SELECT old.pos FROM (SELECT DISTINCT %[2]s FROM %[1]s NOT INDEXED WHERE pos > ?1) AS grown
		JOIN %[1]s AS old USING (%[2]s) WHERE old.pos <= (SELECT pos FROM %[1]s WHERE (%[2]s) = (%[3]s) ORDER BY pos DESC LIMIT 1 OFFSET ?2))`,
		table, newestOf, "grown."+strings.ReplaceAll(newestOf, ", ", ", grown.")))
	return err
}

// insert takes the values of the rows, one after the other.
func (r *rowsStmt) insert(ctx context.Context, tx *sql.Tx, values []any) error {
	for i, n := range rowsAtOnce {
		for n *= r.columns; len(values) >= n; values = values[n:] {
			if _, err := tx.StmtContext(ctx, r.put[i]).ExecContext(ctx, values[:n]...); err != nil {
				return err
			}
		}
	}
	return nil
}

// grow inserts rows and lets go of the oldest, of what got some.
func (r *rowsStmt) grow(ctx context.Context, tx *sql.Tx, values []any, kept int) error {
	if len(values) == 0 {
		return nil
	}
	var last int64
	if err := tx.StmtContext(ctx, r.last).QueryRowContext(ctx).Scan(&last); err != nil {
		return err
	}
	if err := r.insert(ctx, tx, values); err != nil {
		return err
	}
	_, err := tx.StmtContext(ctx, r.drop).ExecContext(ctx, last, kept)
	return err
}
