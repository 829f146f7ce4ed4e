package ledger

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// later is the library as of a release with one more migration.
func later(t *testing.T, sql string) engine {
	t.Helper()
	eng := modernc
	next := fstest.MapFS{}
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(migrations, name)
		if err != nil {
			t.Fatal(err)
		}
		next[name] = &fstest.MapFile{Data: data}
	}
	next[fmt.Sprintf("migrations/%04d_next.sql", len(names)+1)] = &fstest.MapFile{Data: []byte(sql)}
	eng.migrations = next
	return eng
}

// oldLedger is one of this release with one event.
func oldLedger(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := opened(t, dir, modernc)
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

func opened(t *testing.T, dir string, eng engine) *SQLite {
	t.Helper()
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
	s := opened(t, dir, next)
	wantOneEvent(t, s)
	var note string
	if err := s.readers.QueryRow("SELECT note FROM run").Scan(&note); err != nil || note != "new" {
		t.Fatalf("the migration did not run: %q, %v", note, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), Options{Dir: dir}, modernc); apierr.CodeOf(err) != apierr.LedgerTooNew {
		t.Fatalf("the old release opened it: %v", err)
	}
	// Going back, as the README says.
	copied := filepath.Join(dir, fmt.Sprintf("ledger.db.schema-%d", schemas(t)))
	st, err := os.Stat(copied)
	if err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Fatalf("the copy: %v, %v", st, err)
	}
	if err := os.Rename(copied, filepath.Join(dir, "ledger.db")); err != nil {
		t.Fatal(err)
	}
	wantOneEvent(t, opened(t, dir, modernc))
}

// schemas is how many migrations this release has.
func schemas(t *testing.T) int {
	t.Helper()
	scripts, err := loadMigrations(migrations)
	if err != nil {
		t.Fatal(err)
	}
	return len(scripts)
}

func TestAFailedMigrationChangesNothing(t *testing.T) {
	dir := oldLedger(t)
	bad := later(t, "ALTER TABLE run ADD COLUMN note TEXT; INSERT INTO nowhere VALUES (1)")
	for range 2 { // and again, over the copy of the first try
		_, err := open(t.Context(), Options{Dir: dir}, bad)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint("schema ", schemas(t)+1)) {
			t.Fatalf("migration: %v", err)
		}
	}
	wantOneEvent(t, opened(t, dir, modernc))
}

// testdata/schema-2.db.gz was written by the last release without a chain: run r1 with 40 events, r2 with 5 in two commits, r3 with
// none, and an inline body.
func TestAnOldLedgerGetsItsChain(t *testing.T) {
	dir := t.TempDir()
	unzip(t, filepath.Join("testdata", "schema-2.db.gz"), filepath.Join(dir, "ledger.db"))
	s := opened(t, dir, modernc)
	for id, events := range map[string]int64{"r1": 40, "r2": 5, "r3": 0} {
		head, err := s.Head(t.Context(), id)
		if err != nil || head.Seq != events || (head.Hash == "") != (events == 0) {
			t.Errorf("run %s ends with %+v, %v", id, head, err)
		}
	}
	// What sha256sum says of the texts of r2's events, each over the hash of the one before.
	want := ""
	for e, err := range All(t.Context(), s, "r2", 0) {
		if err != nil {
			t.Fatal(err)
		}
		want = Digest([]byte(want + "\nr2\n" + fmt.Sprint(e.Seq) + "\n" + e.Time.Format("2006-01-02T15:04:05.000000000Z") + "\n" + e.Kind + "\n" + string(e.Payload)))
	}
	if head, err := s.Head(t.Context(), "r2"); err != nil || head.Hash != want {
		t.Errorf("the chain of r2 ends with %s, want %s, %v", head.Hash, want, err)
	}
	next := Commit{Events: []Event{{RunID: "r2", Seq: 6, Kind: "run.ended"}}}
	if err := s.Append(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	var missing Report // the large body's file is not in testdata
	rep, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range rep.Problems {
		if !strings.HasPrefix(p.Subject, "artifact ") {
			missing.Problems = append(missing.Problems, p)
		}
	}
	if len(missing.Problems) > 0 || rep.Events != 46 || rep.Runs != 3 {
		t.Errorf("%+v", rep)
	}
	if _, err := s.writer.Exec("UPDATE event SET kind = 'x'"); err == nil || !strings.Contains(err.Error(), "never changed") {
		t.Errorf("after the migration an event can be changed: %v", err)
	}
}

func unzip(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
