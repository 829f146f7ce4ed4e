package ledger

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"
	"github.com/ncruces/go-sqlite3/vfs"
)

// crashCommits is how many commits the workload makes. The log is written back every few pages, so that crashes fall
// into that too.
const crashCommits = 6

// onDisk is our SQL on a library whose disk can lose power.
func onDisk(t *testing.T, d *disk) engine {
	t.Helper()
	name := t.Name()
	vfs.Register(name, d)
	t.Cleanup(func() { vfs.Unregister(name) })
	return engine{
		driver: "sqlite3", oneConn: true, migrations: migrations, files: osDrive{},
		params: "vfs=" + name + "&_pragma=locking_mode(EXCLUSIVE)&_pragma=wal_autocheckpoint(6)&",
	}
}

// crashCommit is the nth commit of the workload: several events of two runs, a row, a value, a body.
func crashCommit(n int) Commit {
	row := func(id string) RunRow {
		return RunRow{ID: id, Workflow: "map", State: fmt.Sprintf("after %d", n), Created: time.Unix(0, 0).UTC()}
	}
	c := Commit{
		Runs:   []RunRow{row("a"), row("b")},
		Bodies: []Body{{Data: crashBody(n)}},
		Meta:   map[string]json.RawMessage{"last": json.RawMessage(fmt.Sprint(n))},
	}
	for i := range 3 {
		for _, id := range []string{"a", "b"} {
			c.Events = append(c.Events, Event{RunID: id, Seq: int64(3*(n-1) + i + 1), Kind: "k", Payload: json.RawMessage(fmt.Sprintf(`{"n":%d,"pad":"%0300d"}`, n, i))})
		}
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

// workload opens the ledger and commits until the power fails; it returns how many commits were acknowledged.
func workload(t *testing.T, dir string, eng engine) (acked int) {
	t.Helper()
	s, err := open(t.Context(), Options{Dir: dir}, eng)
	if err != nil {
		return 0
	}
	defer s.Close() //nolint:errcheck // the power has failed
	for n := 1; n <= crashCommits; n++ {
		if s.Append(t.Context(), crashCommit(n)) != nil {
			return acked
		}
		acked = n
	}
	return acked
}

// survived reopens the ledger and returns how many commits it holds, or an error when it holds a part of one.
func survived(t *testing.T, dir string, eng engine) (n int, err error) {
	t.Helper()
	s, err := open(t.Context(), Options{Dir: dir}, eng)
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}
	defer s.Close() //nolint:errcheck // nothing was written
	rep, err := s.Verify(t.Context())
	if err != nil || len(rep.Problems) > 0 {
		return 0, fmt.Errorf("verify: %v, %w", rep.Problems, err)
	}
	n = int(rep.Artifacts)
	if rep.Events != int64(6*n) {
		return n, fmt.Errorf("%d events beside %d bodies", rep.Events, n)
	}
	for i := 1; i <= n; i++ {
		r, _, err := s.OpenArtifact(t.Context(), Digest(crashBody(i)))
		if err != nil {
			return n, err
		}
		if b, err := io.ReadAll(r); err != nil || string(b) != string(crashBody(i)) {
			return n, fmt.Errorf("body %d: %w", i, err)
		}
	}
	rows, err := s.Runs(t.Context(), RunFilter{})
	if err != nil || n > 0 && (len(rows) != 2 || rows[0].State != fmt.Sprintf("after %d", n) || rows[1].State != rows[0].State) {
		return n, fmt.Errorf("rows %+v after %d commits: %w", rows, n, err)
	}
	values, err := s.Meta(t.Context(), "")
	if err != nil || n > 0 && string(values["last"]) != fmt.Sprint(n) {
		return n, fmt.Errorf("values %v after %d commits: %w", values, n, err)
	}
	return n, nil
}

// crashes runs the workload with a crash at every step-th operation, and counts those after which something that was
// acknowledged is missing or damaged.
func crashes(t *testing.T, step int, lies bool) (points, lost int) {
	t.Helper()
	dir := t.TempDir()
	whole := newDisk(0)
	if got := workload(t, dir, onDisk(t, whole)); got != crashCommits {
		t.Fatalf("undisturbed: %d commits", got)
	}
	for at := 1; at <= whole.ops; at += step {
		points++
		if err := os.RemoveAll(filepath.Join(dir, artifactDir)); err != nil { // of the disk before
			t.Fatal(err)
		}
		d := newDisk(uint64(at))
		d.crashAt, d.lies = at, lies
		acked := workload(t, dir, onDisk(t, d))
		d = d.reboot()
		if at%2 == 0 { // and again while it recovers
			d.crashAt = 1 + d.rng.IntN(6)
			_, _ = survived(t, dir, onDisk(t, d))
			d = d.reboot()
		}
		kept, err := survived(t, dir, onDisk(t, d))
		if err == nil && kept >= acked && kept <= acked+1 {
			continue
		}
		if lost++; !lies {
			t.Errorf("crash at operation %d of %d: %d commits acknowledged, %d kept: %v", at, whole.ops, acked, kept, err)
		}
	}
	return points, lost
}

var crashStep = flag.Int("crash.step", 5, "crash at every so-manieth disk operation")

func TestNoAcknowledgedCommitIsLostInACrash(t *testing.T) {
	t.Parallel() // most of the time is the real disk's
	points, _ := crashes(t, *crashStep, false)
	t.Logf("%d crash points", points)
	if points**crashStep < 150 {
		t.Error("the workload hardly reaches the disk")
	}
}

// The same test must find what a disk loses that only claims to sync: otherwise it could not fail.
func TestTheCrashTestFindsLosses(t *testing.T) {
	t.Parallel() // most of the time is the real disk's
	if points, lost := crashes(t, 23, true); lost < points/3 {
		t.Errorf("a disk that never syncs lost something in only %d of %d crashes", lost, points)
	}
}
