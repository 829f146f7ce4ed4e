package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger/crashdisk"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// crashCommits is how many commits the workload makes, between which it prunes and imports. The log is written back every few
// pages, so that crashes fall into that too.
const (
	crashCommits = 6
	pruneAfter   = 3
	importAfter  = 4
)

// onDisk is our SQL on a library whose disk can lose power, and the files of bodies on the same disk.
func onDisk(t *testing.T, d *crashdisk.Disk) engine {
	t.Helper()
	name := t.Name()
	vfs.Register(name, d)
	t.Cleanup(func() { vfs.Unregister(name) })
	return engine{
		driver: "sqlite3", oneConn: true, migrations: migrations, files: crashDrive{crashdisk.Drive{Disk: d}},
		params: "vfs=" + name + "&_pragma=locking_mode(EXCLUSIVE)&_pragma=wal_autocheckpoint(6)&",
	}
}

// crashDrive is that of the disk, whose files are ours.
type crashDrive struct{ crashdisk.Drive }

func (d crashDrive) create(dir string) (bodyFile, error) { return d.Create(dir) }
func (d crashDrive) open(path string) (bodyFile, error)  { return d.Open(path) }
func (d crashDrive) size(path string) (int64, error)     { return d.Size(path) }
func (d crashDrive) rename(from, to string) error        { return d.Rename(from, to) }
func (d crashDrive) remove(path string) error            { return d.Remove(path) }
func (d crashDrive) mkdir(path string) error             { return d.Mkdir(path) }
func (d crashDrive) syncDir(path string) error           { return d.SyncDir(path) }
func (d crashDrive) list(dir string) ([]string, error)   { return d.List(dir) }
func (d crashDrive) clear(dir string) error              { return d.Clear(dir) }

// crashCommit is the nth commit of the workload: several events of two runs, rows, a value, a small body and a large one, an accepted
// result, a schedule. The first also has a run that has ended.
func crashCommit(n int) Commit {
	row := func(id string) RunRow {
		return RunRow{ID: id, Workflow: "map", State: fmt.Sprintf("after %d", n), Created: time.Unix(0, 0).UTC()}
	}
	count := json.RawMessage(fmt.Sprint(n))
	c := Commit{
		Runs:      []RunRow{row("a"), row("b")},
		Bodies:    []Body{{Data: crashBody(n)}, {Data: largeBody(n)}},
		Meta:      map[string]json.RawMessage{"last": count},
		Accepted:  []Accepted{{Request: "q", RunID: "a", Step: n, Result: count}},
		Schedules: []Schedule{{Name: "s", Value: count}},
	}
	for i := range 3 {
		for _, id := range []string{"a", "b"} {
			payload := fmt.Sprintf(`{"n":%d,"pad":"%0300d","raw":"%s","result":{"ref":"%s"}}`, n, i, Digest(crashBody(n)), Digest(largeBody(n)))
			c.Events = append(c.Events, Event{RunID: id, Seq: int64(3*(n-1) + i + 1), Kind: "k", Payload: json.RawMessage(payload)})
		}
	}
	if n == 1 {
		old := row("old")
		old.Ended = time.Unix(1, 0)
		c.Runs = append(c.Runs, old)
		c.Bodies = append(c.Bodies, Body{Data: []byte("old")}, Body{Data: largeBody(0)})
		c.Events = append(c.Events, Event{RunID: "old", Seq: 1, Kind: "k", Payload: json.RawMessage(`{"raw":["` + Digest([]byte("old")) + `","` + Digest(largeBody(0)) + `"]}`)})
		c.Accepted = append(c.Accepted, Accepted{Request: "old", RunID: "old", Result: count, Body: Digest(largeBody(0))})
	}
	return c
}

func crashBody(n int) []byte {
	b := make([]byte, 700*n)
	for i := range b {
		b[i] = byte(n + i)
	}
	return b
}

func largeBody(n int) []byte { return bytes.Repeat([]byte{byte(n)}, InlineLimit+n+1) }

// foreign is an export of a run with a large body.
var foreign = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a test's
	ctx := context.Background()
	s, err := Open(ctx, Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // a test's
	c := Commit{Runs: []RunRow{{ID: "foreign", State: "completed", Created: time.Unix(0, 0), Ended: time.Unix(1, 0)}}, Bodies: []Body{{Data: largeBody(99)}}}
	for seq := int64(1); seq <= 3; seq++ {
		c.Events = append(c.Events, Event{RunID: "foreign", Seq: seq, Kind: "k", Payload: json.RawMessage(`{"raw":"` + Digest(largeBody(99)) + `"}`)})
	}
	var b bytes.Buffer
	err = errors.Join(s.Append(ctx, c), s.Export(ctx, "foreign", &b))
	return b.Bytes(), err
})

// reached is how far a workload came: what was acknowledged, or what is there.
type reached struct {
	commits          int
	pruned, imported bool
}

// workload opens the ledger and writes until the power fails; it returns what was acknowledged.
func workload(t *testing.T, dir string, eng engine) (acked reached) {
	t.Helper()
	s, err := open(t.Context(), Options{Dir: dir}, eng)
	if err != nil {
		return acked
	}
	defer s.Close() //nolint:errcheck // the power has failed
	for n := 1; n <= crashCommits; n++ {
		if s.Append(t.Context(), crashCommit(n)) != nil {
			return acked
		}
		acked.commits = n
		switch n {
		case pruneAfter:
			if _, err := s.Prune(t.Context(), crashPolicy()); err != nil {
				return acked
			}
			acked.pruned = true
		case importAfter:
			file, err := foreign()
			if err != nil {
				t.Error(err)
			}
			if _, err := s.Import(t.Context(), bytes.NewReader(file), []string{"completed"}); err != nil {
				return acked
			}
			acked.imported = true
		}
	}
	return acked
}

func crashPolicy() PrunePolicy {
	return PrunePolicy{Before: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), Keys: []string{"raw"}, Keep: []string{"foreign"}}
}

// survived reopens the ledger and returns what it holds, or an error when it holds a part of something, or what is wrong.
func survived(t *testing.T, dir string, eng engine) (got reached, err error) {
	t.Helper()
	s, err := open(t.Context(), Options{Dir: dir}, eng)
	if err != nil {
		return got, fmt.Errorf("open: %w", err)
	}
	defer s.Close() //nolint:errcheck // nothing was written
	rep, err := s.Verify(t.Context())
	if err != nil || len(rep.Problems) > 0 {
		return got, fmt.Errorf("verify: %v, %w", rep.Problems, err)
	}
	if err := committed(t, s, &got); err != nil || got.commits == 0 {
		return got, err
	}
	if got.pruned, err = wasPruned(t, s); err != nil {
		return got, err
	}
	if got.imported, err = wasImported(t, s); err != nil {
		return got, err
	}
	return got, sweeps(t, s)
}

// committed finds how many commits are there, and that all of each is.
func committed(t *testing.T, s *SQLite, got *reached) error {
	values, err := s.Meta(t.Context(), "last")
	if err != nil || len(values) == 0 {
		return err
	}
	if err := json.Unmarshal(values["last"], &got.commits); err != nil {
		return err
	}
	n := got.commits
	for i := 1; i <= n; i++ {
		for _, body := range [][]byte{crashBody(i), largeBody(i)} {
			if err := hasBody(t, s, body); err != nil {
				return fmt.Errorf("body of commit %d: %w", i, err)
			}
		}
	}
	for _, id := range []string{"a", "b"} {
		es, err := s.Events(t.Context(), id, 0, 0)
		if err != nil || len(es) != 3*n {
			return fmt.Errorf("%d events of %s after %d commits: %w", len(es), id, n, err)
		}
		rows, err := s.Runs(t.Context(), RunFilter{Prefix: id})
		if err != nil || len(rows) != 1 || rows[0].State != fmt.Sprintf("after %d", n) {
			return fmt.Errorf("rows %+v after %d commits: %w", rows, n, err)
		}
	}
	accepted, err := s.Accepted(t.Context(), "q", 0)
	if err != nil || len(accepted) != min(n, AcceptedKept) || accepted[0].Step != n {
		return fmt.Errorf("accepted results %+v after %d commits: %w", accepted, n, err)
	}
	schedules, err := s.Schedules(t.Context())
	if err != nil || len(schedules) != 1 || string(schedules[0].Value) != fmt.Sprint(n) {
		return fmt.Errorf("schedules %+v after %d commits: %w", schedules, n, err)
	}
	return nil
}

func hasBody(t *testing.T, s *SQLite, want []byte) error {
	r, _, err := s.OpenArtifact(t.Context(), Digest(want))
	if err != nil {
		return err
	}
	b, err := io.ReadAll(r)
	if err == nil && !bytes.Equal(b, want) {
		err = errors.New("it is another one")
	}
	return err
}

// wasPruned wants the bodies of the old run pruned together, which one transaction does, with all that belongs to it.
func wasPruned(t *testing.T, s *SQLite) (bool, error) {
	gone := 0
	for _, body := range [][]byte{[]byte("old"), largeBody(0)} {
		err := hasBody(t, s, body)
		if apierr.CodeOf(err) == apierr.NotFound && strings.Contains(err.Error(), "pruned") {
			gone++
		} else if err != nil {
			return false, err
		}
	}
	notes, err := s.Pruned(t.Context(), "old")
	if err != nil {
		return false, err
	}
	accepted, err := s.Accepted(t.Context(), "old", 0)
	if err != nil {
		return false, err
	}
	if gone == 1 || len(notes) != gone/2 || len(accepted) != 1-gone/2 {
		return false, fmt.Errorf("%d bodies are pruned, notes %+v, %d accepted", gone, notes, len(accepted))
	}
	return gone == 2, nil
}

func wasImported(t *testing.T, s *SQLite) (bool, error) {
	es, err := s.Events(t.Context(), "foreign", 0, 0)
	if err != nil || len(es) == 0 {
		return false, err
	}
	if len(es) != 3 {
		return false, fmt.Errorf("%d events of the imported run", len(es))
	}
	return true, hasBody(t, s, largeBody(99))
}

// sweeps wants the files to be those that rows name, after pruning has swept, and nothing else to be lost by that.
func sweeps(t *testing.T, s *SQLite) error {
	if _, err := s.Prune(t.Context(), PrunePolicy{}); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	rep, err := s.Verify(t.Context())
	if err != nil || len(rep.Problems) > 0 {
		return fmt.Errorf("verify after the sweep: %v, %w", rep.Problems, err)
	}
	files, err := s.files.list(s.artifacts())
	if err != nil {
		return err
	}
	var named int
	if err := s.readers.QueryRow("SELECT count(*) FROM artifact WHERE body IS NULL AND pruned IS NULL").Scan(&named); err != nil || named != len(files) {
		return fmt.Errorf("%d files, rows name %d: %w", len(files), named, err)
	}
	return nil
}

// crashes runs the workload with a crash at every step-th operation, and counts those after which something that was
// acknowledged is missing or damaged.
func crashes(t *testing.T, step int, lies bool) (points, lost int) {
	t.Helper()
	dir := t.TempDir()
	whole := crashdisk.New(0)
	if got := workload(t, dir, onDisk(t, whole)); got != (reached{crashCommits, true, true}) {
		t.Fatalf("undisturbed: %+v", got)
	}
	for at := 1; at <= whole.Ops(); at += step {
		points++
		if err := os.RemoveAll(filepath.Join(dir, artifactDir)); err != nil { // of the disk before
			t.Fatal(err)
		}
		d := crashdisk.New(uint64(at))
		d.CrashAt, d.Lies = at, lies
		acked := workload(t, dir, onDisk(t, d))
		d = d.Reboot()
		if at%2 == 0 { // and again while it recovers
			d.CrashAt = 1 + d.Rand.IntN(6)
			_, _ = survived(t, dir, onDisk(t, d))
			d = d.Reboot()
		}
		kept, err := survived(t, dir, onDisk(t, d))
		if err == nil && kept.commits >= acked.commits && kept.commits <= acked.commits+1 &&
			(kept.pruned || !acked.pruned) && (kept.imported || !acked.imported) {
			continue
		}
		if lost++; !lies {
			t.Errorf("crash at operation %d of %d: %+v was acknowledged, %+v kept: %v", at, whole.Ops(), acked, kept, err)
		}
	}
	return points, lost
}

var crashStep = flag.Int("crash.step", 11, "crash at every so-manieth disk operation")

func TestNoAcknowledgedCommitIsLostInACrash(t *testing.T) {
	t.Parallel() // most of the time is the real disk's
	points, _ := crashes(t, *crashStep, false)
	t.Logf("%d crash points", points)
	if points**crashStep < 400 {
		t.Error("the workload hardly reaches the disk")
	}
}

// The same test must find what a disk loses that only claims to sync: otherwise it could not fail.
func TestTheCrashTestFindsLosses(t *testing.T) {
	t.Parallel() // most of the time is the real disk's
	if points, lost := crashes(t, 41, true); lost < points/3 {
		t.Errorf("a disk that never syncs lost something in only %d of %d crashes", lost, points)
	}
}
