package ledgertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

var ended = []string{"completed", "failed"}

// story writes a run that has everything that an export keeps, and returns its bodies.
func story(t *testing.T, s ledger.Store) (bodies [][]byte) {
	t.Helper()
	item, large, reply := pattern(1, 300), pattern(2, 3*ledger.InlineLimit), pattern(3, 200)
	list := []byte(`{"ref":"` + ledger.Digest(item) + `"}`)
	var c ledger.Commit
	naming(&c, "r1", "completed", 1, json.RawMessage(`{"items":"`+ledger.Digest(list)+`","z":1,"a":"\u0000 <ü> 🦉 '\"","n":1e400}`), list, item, large, reply)
	naming(&c, "r1", "completed", 2, json.RawMessage(`{"result": {"ref":"`+ledger.Digest(large)+`"}, "raw":"`+ledger.Digest(reply)+`"}`))
	c.Runs[1].Key, c.Runs[1].Summary, c.Runs[1].Started = "nightly", json.RawMessage(`{"coverage":1,"a":"<ü>"}`), At.Add(time.Second)
	c.Bodies[1].Name = "letter one.txt"
	c.Decisions = []ledger.Decision{{RunID: "r1", Step: 1, Item: 2, Time: At, Action: "start", Node: "den", Why: json.RawMessage(`{"a":"<"}`)}}
	appendOK(t, s, c)
	appendOK(t, s, Story("other", "running", 1, 5))
	prune(t, s, pruned("raw"))
	return [][]byte{list, item, large}
}

func export(t *testing.T, s ledger.Store, id string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Export(t.Context(), id, &b); err != nil {
		t.Fatalf("export: %v", err)
	}
	return b.Bytes()
}

func testExport(t *testing.T, open OpenFunc) {
	from, to := open(t, t.TempDir()), open(t, t.TempDir())
	defer closeStore(t, from)
	defer closeStore(t, to)
	bodies := story(t, from)
	file := export(t, from, "r1")
	appendOK(t, to, Story("r0", "running", 1, 2)) // the run comes into a ledger that has others

	in, err := to.Import(t.Context(), iotest.HalfReader(bytes.NewReader(file)), ended)
	if err != nil {
		t.Fatalf("import: %v", err)
	}
	row := runs(t, from, ledger.RunFilter{Prefix: "r1"})
	wantSame(t, in, ledger.Imported{Run: row[0], Bodies: 4, Bytes: int64(len(bodies[0]) + len(bodies[1]) + len(bodies[2])), Pruned: 1})
	wantSame(t, runs(t, to, ledger.RunFilter{Prefix: "r1"}), row)
	wantSame(t, events(t, to, "r1"), events(t, from, "r1"))
	wantSame(t, head(t, to, "r1"), head(t, from, "r1"))
	was, err := from.Decisions(t.Context(), "r1", -1)
	if err != nil {
		t.Fatal(err)
	}
	is, err := to.Decisions(t.Context(), "r1", -1)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, is, was)
	for _, b := range bodies {
		wantSame(t, read(t, to, ledger.Digest(b)), b)
		a, err := from.StatArtifact(t.Context(), ledger.Digest(b))
		if err != nil {
			t.Fatal(err)
		}
		b, err := to.StatArtifact(t.Context(), ledger.Digest(b))
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, b, a)
	}
	_, _, err = to.OpenArtifact(t.Context(), ledger.Digest(pattern(3, 200)))
	if err == nil || !strings.Contains(err.Error(), "pruned on") {
		t.Errorf("what had been pruned before the export: %v", err)
	}
	wantSound(t, to, ledger.Report{Runs: 2, Events: 4, Artifacts: 3, ArtifactBytes: in.Bytes, Pruned: 1})

	in.Known = true
	again, err := to.Import(t.Context(), bytes.NewReader(file), ended)
	if err != nil {
		t.Fatalf("again: %v", err)
	}
	wantSame(t, again, in)
	wantSame(t, len(events(t, to, "r1")), 2)
	wantSame(t, prune(t, to, pruned(ledger.KeyResult)).Total, ledger.Count{Bodies: 1, Bytes: int64(len(bodies[2]))})
	if _, err := to.Import(t.Context(), bytes.NewReader(file), ended); err != nil {
		t.Fatal(err)
	}
	wantSame(t, read(t, to, ledger.Digest(bodies[2])), bodies[2]) // what was pruned here comes back

	var back bytes.Buffer // and what was imported is exported as it was
	if err := to.Export(t.Context(), "r1", &back); err != nil {
		t.Fatal(err)
	}
	third := open(t, t.TempDir())
	defer closeStore(t, third)
	if _, err := third.Import(t.Context(), &back, ended); err != nil {
		t.Fatal(err)
	}
	wantSame(t, head(t, third, "r1"), head(t, from, "r1"))
}

func testExportRefused(t *testing.T, s ledger.Store) {
	wantCode(t, s.Export(t.Context(), "r1", &bytes.Buffer{}), apierr.NotFound)
	story(t, s)
	full := errors.New("the stick is full")
	if err := s.Export(t.Context(), "r1", failing{full}); !errors.Is(err, full) || apierr.CodeOf(err) == apierr.Unavailable {
		t.Errorf("a writer that fails: %v", err)
	}
	wantCode(t, s.Export(cancelled(), "r1", &bytes.Buffer{}), apierr.Internal)
	running := export(t, s, "other") // to look at
	_, err := s.Import(t.Context(), bytes.NewReader(running), ended)
	wantCode(t, err, apierr.InvalidArgument)
	if !strings.Contains(err.Error(), "had not ended") {
		t.Errorf("a run that had not ended: %v", err)
	}
}

// While an export waits for its reader nothing is pruned from under it, and nobody waits for that.
func testPruneDuringExport(t *testing.T, s ledger.Store) {
	story(t, s)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- errors.Join(s.Export(t.Context(), "r1", w), w.Close()) }()
	first := make([]byte, 1)
	if _, err := io.ReadFull(r, first); err != nil {
		t.Fatal(err)
	}
	_, err := s.Prune(t.Context(), pruned(ledger.KeyResult))
	wantCode(t, err, apierr.Conflict)
	appendOK(t, s, Story("other", "running", 6, 6))
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantSame(t, prune(t, s, pruned(ledger.KeyResult)).Total.Bodies, int64(1))
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func testImportClashes(t *testing.T, open OpenFunc) {
	from, to := open(t, t.TempDir()), open(t, t.TempDir())
	defer closeStore(t, from)
	defer closeStore(t, to)
	story(t, from)
	file := export(t, from, "r1")
	mine := Story("mine", "running", 1, 1)
	mine.Runs[0].Key = "nightly"
	appendOK(t, to, mine)
	in, err := to.Import(t.Context(), bytes.NewReader(file), ended)
	if err != nil || in.KeyOwner != "mine" || in.Run.Key != "" {
		t.Fatalf("a key that is taken: %+v, %v", in, err)
	}
	wantSame(t, runs(t, to, ledger.RunFilter{Key: "nightly"}), mine.Runs)

	third := open(t, t.TempDir())
	defer closeStore(t, third)
	appendOK(t, third, Story("r1", "completed", 1, 2))
	_, err = third.Import(t.Context(), bytes.NewReader(file), ended)
	wantCode(t, err, apierr.Conflict)
	wantSound(t, third, ledger.Report{Runs: 1, Events: 2})
}
