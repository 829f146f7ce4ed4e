package ledger_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger/ledgertest"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func open(t *testing.T, dir string) ledger.Store {
	t.Helper()
	s, err := ledger.Open(t.Context(), ledger.Options{Dir: dir})
	if err != nil {
		t.Fatalf("open %s: %v", dir, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, open)
}

// written makes a closed ledger with a run, a small body and a large one, and returns their digests.
func written(t *testing.T) (dir, small, large string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir)
	c := ledgertest.Story("r1", "running", 1, 50)
	c.Bodies = []ledger.Body{{Data: bytes.Repeat([]byte("s"), 100)}, {Data: bytes.Repeat([]byte("l"), 2*ledger.InlineLimit)}}
	must(t, s.Append(t.Context(), c))
	must(t, s.Close())
	return dir, ledger.Digest(c.Bodies[0].Data), ledger.Digest(c.Bodies[1].Data)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused opens dir, wants the code, advice and the file's path, and that the file was left alone.
func refused(t *testing.T, dir string, want apierr.Code) {
	t.Helper()
	path := filepath.Join(dir, "ledger.db")
	before, err := os.ReadFile(path)
	must(t, err)
	s, err := ledger.Open(t.Context(), ledger.Options{Dir: dir})
	if err == nil {
		must(t, s.Close())
		t.Fatal("it opened")
	}
	e := apierr.As(err)
	if e.Code != want || len(e.Next) == 0 || !strings.Contains(e.Message, path) {
		t.Fatalf("want %s, advice and %s, got %+v", want, path, e)
	}
	after, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Fatal("the refused file was changed")
	}
}

func TestForeignAndDamagedFilesAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string, db []byte) []byte{
		"a text":  func(*testing.T, string, []byte) []byte { return []byte("meeting notes\n") },
		"emptied": func(*testing.T, string, []byte) []byte { return nil },
		"emptied beside its log": func(t *testing.T, path string, _ []byte) []byte {
			must(t, os.WriteFile(path+"-wal", make([]byte, 4128), 0o600))
			return nil
		},
		"zeros":         func(_ *testing.T, _ string, db []byte) []byte { return make([]byte, len(db)) },
		"cut short":     func(_ *testing.T, _ string, db []byte) []byte { return db[:len(db)-4096] },
		"cut to a page": func(_ *testing.T, _ string, db []byte) []byte { return db[:4096] },
		"header only":   func(_ *testing.T, _ string, db []byte) []byte { return db[:50] },
		"no schema": func(_ *testing.T, _ string, db []byte) []byte {
			return append(db[:100:100], make([]byte, len(db)-100)...)
		},
		"another program's": func(t *testing.T, path string, _ []byte) []byte {
			must(t, os.Remove(path))
			execSQL(t, path, "CREATE TABLE bookmarks (url TEXT)")
			db, err := os.ReadFile(path)
			must(t, err)
			return db
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _, _ := written(t)
			path := filepath.Join(dir, "ledger.db")
			db, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path, spoil(t, path, db), 0o600))
			refused(t, dir, apierr.LedgerCorrupt)
		})
	}
}

func TestANewerLedgerIsRefused(t *testing.T) {
	dir, _, _ := written(t)
	execSQL(t, filepath.Join(dir, "ledger.db"), "PRAGMA user_version = 999")
	refused(t, dir, apierr.LedgerTooNew)
}

func TestDamagedPagesAreReportedNotReturned(t *testing.T) {
	dir, _, _ := written(t)
	path := filepath.Join(dir, "ledger.db")
	db, err := os.ReadFile(path)
	must(t, err)
	at := bytes.Index(db, []byte(`{"run":"r1","seq":40}`)) / 4096 * 4096
	copy(db[at:], bytes.Repeat([]byte{0xFF}, 64)) // the head of a page of events
	must(t, os.WriteFile(path, db, 0o600))
	s := open(t, dir)
	_, err = s.Events(t.Context(), "r1", 0, 0)
	if e := apierr.As(err); e == nil || e.Code != apierr.LedgerCorrupt || len(e.Next) == 0 {
		t.Fatalf("read: %v", err)
	}
	rep, err := s.Verify(t.Context())
	if err != nil || len(rep.Problems) == 0 {
		t.Fatalf("verify: %+v, %v", rep, err)
	}
}

// The commands of the error message, pasted.
func TestTheAdviceForADamagedLedgerWorks(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sqlite3"); err != nil || runtime.GOOS == "windows" {
		t.Skip("needs a shell and the sqlite3 shell: the commands in the error message were not tried")
	}
	for _, withBackup := range []bool{true, false} {
		if !withBackup && !shellRecovers(t) {
			t.Log("this sqlite3 shell cannot .recover: that command was not tried")
			continue
		}
		dir, _, large := written(t)
		backup := filepath.Join(t.TempDir(), "copy")
		s := open(t, dir)
		must(t, s.Backup(t.Context(), backup))
		must(t, s.Close())
		path := filepath.Join(dir, "ledger.db")
		db, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, db[:len(db)-4096], 0o600))
		_, err = ledger.Open(t.Context(), ledger.Options{Dir: dir})
		next := apierr.As(err).Next
		command := func(i int) string { _, c, _ := strings.Cut(next[i], ": "); return c }
		script := command(0) + " && " + command(2)
		if withBackup {
			script = command(0) + " && " + strings.ReplaceAll(command(1), "BACKUP", backup)
		}
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%s\n%v %s", script, err, out)
		}
		s = open(t, dir)
		es, err := s.Events(t.Context(), "r1", 0, 0)
		if err != nil || len(es) == 0 || withBackup && len(es) != 50 {
			t.Fatalf("%s\nthen %d events, %v", script, len(es), err)
		}
		if has, err := s.HasArtifact(t.Context(), large); err != nil || !has {
			t.Fatalf("%s\nthen the large artifact is there: %v, %v", script, has, err)
		}
		must(t, s.Close())
	}
}

// shellRecovers says whether the sqlite3 shell was built with .recover, which Debian 12's was not: it fails on any database.
func shellRecovers(t *testing.T) bool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plain.db")
	execSQL(t, path, "CREATE TABLE plain (x TEXT)")
	out, err := exec.Command("sqlite3", path, ".recover").CombinedOutput()
	return err == nil && strings.Contains(string(out), "CREATE TABLE") && !strings.Contains(string(out), "error")
}

func TestVerifyNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir, small, large := written(t)
	path := filepath.Join(dir, "ledger.db")
	execSQL(t, path, `DROP TRIGGER event_is_never_removed; DELETE FROM event WHERE seq = 7;
		DROP TRIGGER event_is_never_changed; UPDATE event SET payload = '{' WHERE seq = 9;
		UPDATE artifact SET body = zeroblob(size) WHERE sha256 = '`+small+`'`)
	must(t, os.WriteFile(filepath.Join(dir, "artifacts", large[:2], large[2:]), []byte("short"), 0o600))
	s := open(t, dir)
	rep, err := s.Verify(t.Context())
	must(t, err)
	text := ""
	for _, p := range rep.Problems {
		text += p.Subject + ": " + p.Detail + "\n"
	}
	for _, want := range []string{"database: events were removed: there are 49, numbered up to 50", "run r1: event 7 is missing", "run r1: event 9 carries no valid JSON", "artifact " + small, "artifact " + large} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if len(rep.Problems) != 5 {
		t.Errorf("%d problems, want 5:\n%s", len(rep.Problems), text)
	}
}

func TestDamagedArtifacts(t *testing.T) {
	t.Parallel()
	dir, _, large := written(t)
	file := filepath.Join(dir, "artifacts", large[:2], large[2:])
	original, err := os.ReadFile(file)
	must(t, err)
	for name, spoil := range map[string]func() error{
		"one bit": func() error { return os.WriteFile(file, append([]byte("m"), original[1:]...), 0o600) },
		"short":   func() error { return os.WriteFile(file, original[1:], 0o600) },
		"long":    func() error { return os.WriteFile(file, append([]byte("l"), original...), 0o600) },
		"gone":    func() error { return os.Remove(file) },
	} {
		t.Run(name, func(t *testing.T) {
			must(t, spoil())
			s := open(t, dir)
			r, _, err := s.OpenArtifact(t.Context(), large)
			if err == nil {
				_, err = io.ReadAll(r)
				must(t, r.Close())
			}
			if e := apierr.As(err); e == nil || e.Code != apierr.LedgerCorrupt || len(e.Next) == 0 {
				t.Fatalf("read: %v", err)
			}
			if err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy")); apierr.CodeOf(err) != apierr.LedgerCorrupt {
				t.Fatalf("backup: %v", err)
			}
			if _, err := s.PutArtifact(t.Context(), "", bytes.NewReader(original)); err != nil {
				t.Fatalf("store it again: %v", err)
			}
			rep, err := s.Verify(t.Context())
			if err != nil || len(rep.Problems) != 0 {
				t.Fatalf("storing it again did not repair it: %+v, %v", rep, err)
			}
			must(t, s.Close())
		})
	}
}

func TestOneCoordinatorAtATime(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := ledger.Open(t.Context(), ledger.Options{Dir: dir})
	e := apierr.As(err)
	if e == nil || e.Code != apierr.Conflict || len(e.Next) == 0 || !strings.Contains(e.Message, "pid "+strconv.Itoa(os.Getpid())) {
		t.Fatalf("second open: %+v", e)
	}
	must(t, s.Append(t.Context(), ledgertest.Story("r1", "running", 1, 1)))
	must(t, s.Close())
	must(t, s.Close()) // twice is no harm
	must(t, open(t, dir).Append(t.Context(), ledgertest.Story("r1", "running", 2, 2)))
}

func TestOwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows folders inherit the profile's access list; modes mean nothing there")
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "new", "ledger")
	s := open(t, dir)
	_, err := s.PutArtifact(t.Context(), "", bytes.NewReader(make([]byte, 2*ledger.InlineLimit)))
	must(t, err)
	must(t, s.Backup(t.Context(), filepath.Join(parent, "copy")))
	seen := map[string]bool{}
	must(t, filepath.WalkDir(parent, func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		info, err := d.Info()
		must(t, err)
		if path != parent && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		seen[d.Name()] = true
		return nil
	}))
	for _, name := range []string{"ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.lock", "ledger.pid", "copy"} {
		if !seen[name] {
			t.Errorf("no %s to look at", name)
		}
	}
}

func TestAnyFolderName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "100%41", "q?mode=memory", "h#1", "ü'\"&"} {
		if runtime.GOOS == "windows" && strings.ContainsAny(name, `?"`) {
			continue
		}
		dir := filepath.Join(t.TempDir(), name)
		s := open(t, dir)
		must(t, s.Append(t.Context(), ledgertest.Story("r1", "running", 1, 1)))
		must(t, s.Backup(t.Context(), dir+" copy"))
		must(t, s.Close())
		for _, d := range []string{dir, dir + " copy"} {
			if st, err := os.Stat(filepath.Join(d, "ledger.db")); err != nil || st.Size() == 0 {
				t.Errorf("%s: %v", d, err)
			}
		}
	}
}

func TestAFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	_, err := ledger.Open(t.Context(), ledger.Options{Dir: filepath.Join(file, "ledger")})
	if e := apierr.As(err); e == nil || e.Code != apierr.Unavailable || len(e.Next) == 0 {
		t.Fatalf("%+v", e)
	}
}

func TestHalfWrittenArtifactsAreCleared(t *testing.T) {
	dir, _, _ := written(t)
	left := filepath.Join(dir, "artifacts", "incoming", "123")
	must(t, os.WriteFile(left, []byte("half"), 0o600))
	open(t, dir)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("still there: %v", err)
	}
}

func TestUnderFakeTime(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := ledger.Open(t.Context(), ledger.Options{Dir: dir})
		must(t, err)
		for seq := int64(1); seq <= 24; seq++ {
			time.Sleep(time.Hour) // fake
			must(t, s.Append(t.Context(), ledgertest.Story("r1", "running", seq, seq)))
		}
		es, err := s.Events(t.Context(), "r1", 0, 0)
		if err != nil || len(es) != 24 {
			t.Fatalf("%d events, %v", len(es), err)
		}
		must(t, s.Close())
	})
}

func TestReadableInTheShell(t *testing.T) {
	shell, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("the sqlite3 shell is not installed: the README's commands were not tried")
	}
	dir, _, _ := written(t)
	out, err := exec.Command(shell, filepath.Join(dir, "ledger.db"),
		"SELECT run, workflow, seq, at_s, time, kind, payload ->> 'seq' FROM trace LIMIT 2").CombinedOutput()
	must(t, err)
	want := "r1|map|1|0.0|2026-11-29T23:59:59.123456790Z|step.succeeded|1\nr1|map|2|0.0|2026-11-29T23:59:59.123456791Z|step.succeeded|2\n"
	if string(out) != want {
		t.Fatalf("got\n%swant\n%s", out, want)
	}
	for _, change := range []string{"UPDATE event SET kind = 'x'", "DELETE FROM event"} {
		if out, err := exec.Command(shell, filepath.Join(dir, "ledger.db"), change).CombinedOutput(); err == nil || !strings.Contains(string(out), "never") {
			t.Errorf("%s: %v %s", change, err, out)
		}
	}
}
