package ledger

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// later is the library as of a release whose second migration is sql.
func later(t *testing.T, sql string) engine {
	t.Helper()
	first, err := fs.ReadFile(migrations, "migrations/0001_init.sql")
	if err != nil {
		t.Fatal(err)
	}
	eng := modernc
	eng.migrations = fstest.MapFS{"migrations/0001_init.sql": {Data: first}, "migrations/0002_next.sql": {Data: []byte(sql)}}
	return eng
}

// oldLedger is one of schema 1 with one event.
func oldLedger(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := opened(t, dir, later(t, ""), 1)
	c := Commit{
		Runs:   []RunRow{{ID: "r1", Workflow: "map", State: "running", Created: time.Unix(0, 0)}},
		Events: []Event{{RunID: "r1", Seq: 1, Kind: "run.created", Payload: json.RawMessage("{}")}},
	}
	if err := s.Append(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// opened opens dir with only the first n migrations of eng.
func opened(t *testing.T, dir string, eng engine, n int) *SQLite {
	t.Helper()
	if n == 1 {
		all := eng.migrations.(fstest.MapFS)
		eng.migrations = fstest.MapFS{"migrations/0001_init.sql": all["migrations/0001_init.sql"]}
	}
	s, err := open(t.Context(), Options{Dir: dir}, eng)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func wantOneEvent(t *testing.T, s *SQLite) {
	t.Helper()
	if es, err := s.Events(t.Context(), "r1", 0, 0); err != nil || len(es) != 1 {
		t.Fatalf("%d events, %v", len(es), err)
	}
}

func TestMigrationKeepsACopy(t *testing.T) {
	dir := oldLedger(t)
	next := later(t, "ALTER TABLE run ADD COLUMN note TEXT NOT NULL DEFAULT 'new'")
	s := opened(t, dir, next, 2)
	wantOneEvent(t, s)
	var note string
	if err := s.readers.QueryRow("SELECT note FROM run").Scan(&note); err != nil || note != "new" {
		t.Fatalf("the migration did not run: %q, %v", note, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	old := next
	old.migrations = fstest.MapFS{"migrations/0001_init.sql": next.migrations.(fstest.MapFS)["migrations/0001_init.sql"]}
	if _, err := open(t.Context(), Options{Dir: dir}, old); apierr.CodeOf(err) != apierr.LedgerTooNew {
		t.Fatalf("the old release opened it: %v", err)
	}
	// Going back, as the README says.
	st, err := os.Stat(filepath.Join(dir, "ledger.db.schema-1"))
	if err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Fatalf("the copy: %v, %v", st, err)
	}
	if err := os.Rename(filepath.Join(dir, "ledger.db.schema-1"), filepath.Join(dir, "ledger.db")); err != nil {
		t.Fatal(err)
	}
	wantOneEvent(t, opened(t, dir, next, 1))
}

func TestAFailedMigrationChangesNothing(t *testing.T) {
	dir := oldLedger(t)
	bad := later(t, "ALTER TABLE run ADD COLUMN note TEXT; INSERT INTO nowhere VALUES (1)")
	for range 2 { // and again, over the copy of the first try
		_, err := open(t.Context(), Options{Dir: dir}, bad)
		if err == nil || !strings.Contains(err.Error(), "schema 2") {
			t.Fatalf("migration: %v", err)
		}
	}
	wantOneEvent(t, opened(t, dir, bad, 1))
}
