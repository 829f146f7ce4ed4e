package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// The keys under which a run's events name the bodies that grow fastest. A ledger's own words for them would be others than those
// of the events, so it has none.
const (
	KeyPrompt   = "prompt"     // a prompt as it was sent
	KeyReply    = "raw"        // a reply as it was received
	KeyThinking = "thinking"   // what a model thought before it
	KeyResult   = "result.ref" // a result that is too large for its event, such as a text
)

// neverPruned are the keys of what a replay cannot do without.
var neverPruned = []string{"script", "source_map"}

// PrunePolicy says what may go. Bodies of runs that have not ended stay, and so do those that a run which is kept, a schedule or a
// shared value names, itself or by way of another body.
type PrunePolicy struct {
	Before time.Time // runs that ended, and bodies that were stored, earlier than this
	Keys   []string  // whose bodies go: keys of References, or their last parts
	Keep   []string  // IDs of runs that lose nothing
	Unused bool      // also bodies that nothing names
	DryRun bool      // only count
}

// PruneReport says what went, or would go.
type PruneReport struct {
	Runs   int              // that lose something
	ByKey  map[string]Count // bodies of those runs, by the policy's keys
	Unused Count            // bodies that nothing names
	Shared Count            // bodies that stay because something that is kept names them too
	Total  Count            // what goes

	// Bytes of the database, with its log, and of the files beside it, before and after. Not measured in a dry run.
	DiskBefore, DiskAfter int64
}

// Count is a number of bodies and their bytes.
type Count struct{ Bodies, Bytes int64 }

func (c *Count) add(bytes int64) { c.Bodies++; c.Bytes += bytes }

// Pruning is what was dropped of a run at one time.
type Pruning struct {
	Key    string // under which its events name the bodies; see Reference
	Time   time.Time
	Bodies int64
	Bytes  int64
}

// pruneBatch is how many bodies go in one transaction, so that appends need not wait for long.
const pruneBatch = 256

// Prune implements Store.
func (s *SQLite) Prune(ctx context.Context, p PrunePolicy) (PruneReport, error) {
	for _, k := range p.Keys {
		if k == "" || slices.Contains(neverPruned, k) {
			return PruneReport{}, apierr.New(apierr.InvalidArgument, "bodies named %q are not pruned: without them a run cannot be replayed", k)
		}
	}
	if !s.copying.TryLock() { // an export waits for whoever reads it, for ever maybe
		return PruneReport{}, apierr.New(apierr.Conflict, "a backup, an export, an import, a check or another pruning is under way").WithNext("try again when it is done")
	}
	defer s.copying.Unlock()
	m, err := s.mark(ctx, p)
	if err != nil {
		return PruneReport{}, err
	}
	rep := m.report()
	if p.DryRun {
		return rep, nil
	}
	if rep.DiskBefore, err = s.diskBytes(ctx); err != nil {
		return rep, err
	}
	now := time.Now().UTC()
	for batch := range slices.Chunk(m.going(), pruneBatch) {
		if err := ctx.Err(); err != nil {
			return rep, apierr.Wrap(err, apierr.Cancelled, "prune the ledger")
		}
		if err := s.drop(ctx, m, batch, now); err != nil {
			return rep, err
		}
	}
	if err := s.sweep(ctx); err != nil {
		return rep, err
	}
	if err := s.freePages(ctx); err != nil {
		return rep, err
	}
	counted := m.report() // without what an append has come to name meanwhile
	counted.DiskBefore = rep.DiskBefore
	counted.DiskAfter, err = s.diskBytes(ctx)
	return counted, err
}

// drop forgets the bodies of a batch. Rows go first: a crash in between leaves a file that no row names, which sweep finds.
func (s *SQLite) drop(ctx context.Context, m *marks, batch []digest, now time.Time) error {
	s.bodies.Lock() // nobody appends, or is between finding a file there and naming it
	defer s.bodies.Unlock()
	if err := s.catchUp(ctx, m); err != nil {
		return err
	}
	var files []string
	err := s.writing(ctx, func(ctx context.Context, tx *sql.Tx) error {
		files = nil
		lost := map[owner]Count{}
		for _, d := range batch {
			if m.bodies[d].live {
				continue
			}
			dropped, file, err := dropBody(ctx, tx, d.String(), m.policy.Before, now)
			if err != nil {
				return err
			}
			if !dropped {
				m.keep(d)
				continue
			}
			if file {
				files = append(files, s.file(d.String()))
			}
			for _, o := range m.bodies[d].owners {
				c := lost[m.owners[o]]
				c.add(m.bodies[d].size)
				lost[m.owners[o]] = c
			}
		}
		return notePruning(ctx, tx, lost, now)
	})
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := ignoreMissing(s.files.remove(f)); err != nil {
			return s.explain(err, "remove a pruned body")
		}
	}
	return nil
}

// dropBody says whether the body was dropped, and whether it was a file. One that was stored again meanwhile stays.
func dropBody(ctx context.Context, tx *sql.Tx, sha string, before, now time.Time) (dropped, file bool, err error) {
	var young bool
	err = tx.QueryRowContext(ctx, `SELECT body IS NULL, coalesce(stored >= ?, 0) FROM artifact WHERE sha256 = ?`, formatTime(before), sha).Scan(&file, &young)
	if err == nil && young {
		return false, false, nil
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, `UPDATE artifact SET body = NULL, pruned = ? WHERE sha256 = ?`, formatTime(now), sha)
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, `DELETE FROM accepted WHERE body = ?`, sha)
	}
	if err != nil {
		return false, false, fmt.Errorf("prune artifact %s: %w", sha, err)
	}
	return true, file, nil
}

func notePruning(ctx context.Context, tx *sql.Tx, lost map[owner]Count, now time.Time) error {
	for o, c := range lost {
		_, err := tx.ExecContext(ctx, `INSERT INTO pruned (run_id, key, time, bodies, bytes) VALUES (?, ?, ?, ?, ?) ON CONFLICT (run_id, key, time)
			DO UPDATE SET bodies = bodies + excluded.bodies, bytes = bytes + excluded.bytes`, o.run, o.key, formatTime(now), c.Bodies, c.Bytes)
		if err != nil {
			return fmt.Errorf("note what was pruned of run %s: %w", o.run, err)
		}
	}
	return nil
}

// Pruned implements Store.
func (s *SQLite) Pruned(ctx context.Context, runID string) ([]Pruning, error) {
	rows, err := s.readers.QueryContext(ctx, `SELECT key, time, bodies, bytes FROM pruned WHERE run_id = ? ORDER BY time, key`, runID)
	return collect(s, rows, err, "read what was pruned of run "+runID, func(rows *sql.Rows) (p Pruning, err error) {
		var at string
		if err = rows.Scan(&p.Key, &at, &p.Bodies, &p.Bytes); err == nil {
			p.Time, err = s.parseTime(at)
		}
		return p, err
	})
}

// sweep removes files that no row names: a crash left them before their row was there, or after it was pruned.
func (s *SQLite) sweep(ctx context.Context) error {
	paths, err := s.files.list(s.artifacts())
	if err != nil {
		return s.explain(err, "list the files of artifacts")
	}
	unnamed := slices.Collect(func(yield func(string) bool) {
		for _, path := range paths {
			var named bool
			if named, err = s.named(ctx, path); err != nil || !named && !yield(path) {
				return
			}
		}
	})
	if err != nil || len(unnamed) == 0 {
		return err
	}
	s.bodies.Lock()
	defer s.bodies.Unlock()
	for _, path := range unnamed {
		named, err := s.named(ctx, path) // by now
		if err == nil && !named {
			err = s.explain(ignoreMissing(s.files.remove(path)), "remove a file that no artifact names")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// named says whether a row names the file at path, or whether it is none of ours, such as an upload under way.
func (s *SQLite) named(ctx context.Context, path string) (named bool, err error) {
	sha := strings.ReplaceAll(strings.TrimPrefix(path, s.artifacts()), string(filepath.Separator), "")
	if !isDigest(sha) {
		return true, nil
	}
	err = s.readers.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM artifact WHERE sha256 = ? AND body IS NULL AND pruned IS NULL)`, sha).Scan(&named)
	return named, s.explain(err, "look for artifact "+sha)
}
