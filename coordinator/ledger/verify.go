package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"io"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// checks yield a row (subject, detail) per problem. The first two are SQLite's own.
var checks = []string{
	`SELECT 'database', integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'`,
	`SELECT 'database', 'row ' || rowid || ' of ' || "table" || ' refers to a missing ' || parent FROM pragma_foreign_key_check`,
	`SELECT 'database', 'events were removed: there are ' || count(*) || ', numbered up to ' || max(pos) FROM event HAVING max(pos) <> count(*)`,
	`SELECT 'run ' || run_id, 'event ' || seq || ' carries no valid JSON' FROM event WHERE NOT json_valid(payload)`,
	`SELECT 'run ' || id, 'its summary is no valid JSON' FROM run WHERE NOT json_valid(summary)`,
	`SELECT 'value ' || key, 'is no valid JSON' FROM meta WHERE NOT json_valid(value)`,
	`SELECT 'schedule ' || name, 'is no valid JSON' FROM schedule WHERE NOT json_valid(value)`,
	`SELECT 'run ' || run_id, 'an accepted result of step ' || step || ' is no valid JSON' FROM accepted WHERE NOT json_valid(result)`,
	`SELECT 'run ' || a.run_id, 'an accepted result of step ' || a.step || ' has no body ' || a.body FROM accepted a
		LEFT JOIN artifact b ON b.sha256 = a.body WHERE a.body IS NOT NULL AND (b.sha256 IS NULL OR b.pruned IS NOT NULL)`,
	`SELECT 'node ' || node, 'what was learned as ' || kind || ' of ' || subject || ' is no valid JSON' FROM learned WHERE NOT json_valid(value)`,
	`SELECT 'run ' || run_id, 'a decision on step ' || step || ' carries no valid JSON' FROM decision WHERE NOT json_valid(why)`,
}

// Verify implements Store.
func (s *SQLite) Verify(ctx context.Context) (Report, error) {
	s.copying.RLock() // lest a body is pruned between its name and its turn
	defer s.copying.RUnlock()
	var rep Report
	for _, query := range checks {
		rows, err := s.readers.QueryContext(ctx, query)
		found, err := collect(s, rows, err, "verify the ledger", func(rows *sql.Rows) (p Problem, err error) {
			return p, rows.Scan(&p.Subject, &p.Detail)
		})
		rep.Problems = append(rep.Problems, found...)
		if err := rep.note("database", err); err != nil {
			return rep, err
		}
	}
	if err := s.verifyChains(ctx, &rep); err != nil {
		return rep, err
	}
	err := s.readers.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM event),
		(SELECT count(*) FROM artifact WHERE pruned IS NOT NULL)`).Scan(&rep.Runs, &rep.Events, &rep.Pruned)
	if err := rep.note("database", s.explain(err, "count the ledger's rows")); err != nil {
		return rep, err
	}
	return rep, s.verifyArtifacts(ctx, &rep)
}

// note turns an error that says "corrupt" into a problem, because the rest is worth looking at, and returns any other.
func (r *Report) note(subject string, err error) error {
	if apierr.CodeOf(err) != apierr.LedgerCorrupt {
		return err
	}
	p := Problem{Subject: subject, Detail: err.Error()}
	for _, q := range r.Problems {
		if q == p {
			return nil
		}
	}
	r.Problems = append(r.Problems, p)
	return nil
}

func (s *SQLite) verifyArtifacts(ctx context.Context, rep *Report) error {
	for after, done := "", false; !done; {
		shas, err := s.artifactsAfter(ctx, s.readers, after)
		if err != nil {
			return rep.note("database", err)
		}
		for _, sha := range shas {
			n, err := s.readThrough(ctx, sha)
			if err := rep.note("artifact "+sha, err); err != nil {
				return err
			}
			rep.Artifacts++
			rep.ArtifactBytes += n
			after = sha
		}
		done = len(shas) < eventPage
	}
	return nil
}

func (s *SQLite) artifactsAfter(ctx context.Context, db *sql.DB, after string) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT sha256 FROM artifact WHERE sha256 > ? AND pruned IS NULL ORDER BY sha256 LIMIT ?", after, eventPage)
	return collect(s, rows, err, "list artifacts", func(rows *sql.Rows) (sha string, err error) {
		return sha, rows.Scan(&sha)
	})
}

func (s *SQLite) readThrough(ctx context.Context, sha string) (int64, error) {
	r, a, err := s.OpenArtifact(ctx, sha)
	if err != nil {
		return 0, err
	}
	defer r.Close() //nolint:errcheck // only read
	n, err := io.Copy(io.Discard, r)
	if err != nil {
		return n, s.explain(err, "read artifact "+sha)
	}
	if n != a.Size {
		return n, corrupt(s.dir, nil, "%s", fmt.Sprintf("artifact %s has %d bytes, its row says %d", sha, n, a.Size))
	}
	return n, nil
}
