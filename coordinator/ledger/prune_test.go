package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// longAgo lets everything of runs that have ended go.
var longAgo = PrunePolicy{Before: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), Keys: []string{KeyReply}}

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ran is the commit of a run that has ended and whose only event names the bodies as replies.
func ran(t *testing.T, id string, bodies ...[]byte) Commit {
	t.Helper()
	c := Commit{Runs: []RunRow{{ID: id, State: "completed", Created: time.Unix(0, 0), Ended: time.Unix(1, 0)}}}
	var replies struct {
		Raw []string `json:"raw"`
	}
	for _, b := range bodies {
		c.Bodies = append(c.Bodies, Body{Data: b})
		replies.Raw = append(replies.Raw, Digest(b))
	}
	payload, err := json.Marshal(replies)
	noErr(t, err)
	c.Events = []Event{{RunID: id, Seq: 1, Kind: "k", Payload: payload}}
	return c
}

func TestPruningKeepsWhatWasNamedMeanwhile(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir(), modernc)
	direct, listed, free := []byte("direct"), bytes.Repeat([]byte("l"), 2*InlineLimit), []byte("free")
	noErr(t, s.Append(t.Context(), ran(t, "old", direct, listed, free)))
	m, err := s.mark(t.Context(), longAgo)
	noErr(t, err)
	if n := len(m.going()); n != 3 {
		t.Fatalf("%d bodies are to go", n)
	}
	list := []byte(Digest(listed))
	c := ran(t, "new", direct, list) // as a run that takes over results
	c.Bodies = c.Bodies[1:]
	noErr(t, s.Append(t.Context(), c))
	noErr(t, s.drop(t.Context(), m, m.going(), time.Now()))
	for _, b := range [][]byte{direct, list, listed} {
		if has, err := s.HasArtifact(t.Context(), Digest(b)); err != nil || !has {
			t.Errorf("%.10q is gone: %v", b, err)
		}
	}
	if has, _ := s.HasArtifact(t.Context(), Digest(free)); has {
		t.Error("what nobody names was kept")
	}
}

func TestPruningKeepsWhatWasStoredMeanwhile(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir(), modernc)
	again, free := bytes.Repeat([]byte("l"), 2*InlineLimit), []byte("free")
	noErr(t, s.Append(t.Context(), ran(t, "old", again, free)))
	if _, err := s.writer.Exec("UPDATE artifact SET stored = '2001-01-01T00:00:00.000000000Z'"); err != nil {
		t.Fatal(err)
	}
	m, err := s.mark(t.Context(), PrunePolicy{Before: time.Now().Add(-time.Hour), Keys: []string{KeyReply}})
	noErr(t, err)
	if _, err := s.PutArtifact(t.Context(), "", bytes.NewReader(again)); err != nil { // for a run that is about to be submitted
		t.Fatal(err)
	}
	noErr(t, s.drop(t.Context(), m, m.going(), time.Now()))
	if rep := m.report(); rep.Total.Bodies != 1 || rep.Shared.Bodies != 1 {
		t.Errorf("%+v", rep)
	}
	noErr(t, hasBody(t, s, again))
	if has, _ := s.HasArtifact(t.Context(), Digest(free)); has {
		t.Error("what nobody stored again was kept")
	}
}

// The same large bodies are stored and pruned over and over: no row ever names a file that is not there, and no run that goes on
// loses one.
func TestPruningWhileOthersStore(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir(), modernc)
	noErr(t, s.Append(t.Context(), Commit{Runs: []RunRow{{ID: "live", State: "running", Created: time.Unix(0, 0)}}}))
	const bodies, rounds = 3, 30
	body := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, InlineLimit+1+i) }
	policy := longAgo
	policy.Unused = true
	var workers sync.WaitGroup
	workers.Go(func() { // as uploads do
		for n := range rounds * bodies {
			if _, err := s.PutArtifact(t.Context(), "", bytes.NewReader(body(n%bodies))); err != nil {
				t.Errorf("store: %v", err)
			}
		}
	})
	workers.Go(func() { // as results do
		for n := range int64(rounds) {
			b := append(body(7), fmt.Sprint(n)...)
			c := Commit{Events: []Event{{RunID: "live", Seq: n + 1, Kind: "k", Payload: json.RawMessage(`{"raw":"` + Digest(b) + `"}`)}}, Bodies: []Body{{Data: b}}}
			if err := s.Append(t.Context(), c); err != nil {
				t.Errorf("append: %v", err)
			}
		}
	})
	stop := make(chan struct{})
	var pruner sync.WaitGroup
	dropped := int64(0)
	pruner.Go(func() {
		for {
			rep, err := s.Prune(t.Context(), policy)
			if err != nil {
				t.Errorf("prune: %v", err)
				return
			}
			dropped += rep.Total.Bodies
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	workers.Wait()
	close(stop)
	pruner.Wait()
	rep, err := s.Verify(t.Context())
	if err != nil || len(rep.Problems) > 0 || rep.Artifacts < rounds {
		t.Errorf("%+v, %v", rep, err)
	}
	if dropped < bodies {
		t.Errorf("only %d bodies were ever pruned: the two did not meet", dropped)
	}
}

// fill makes a ledger of some 8 MB in the database and 4 MB in files.
func fill(t *testing.T, s *SQLite) {
	t.Helper()
	var inDB, inFiles [][]byte
	for i := range 256 {
		inDB = append(inDB, bytes.Repeat(fmt.Appendf(nil, "%8d", i), 4<<10))
	}
	for i := range 32 {
		inFiles = append(inFiles, bytes.Repeat(fmt.Appendf(nil, "%8d", i), 16<<10))
	}
	noErr(t, s.Append(t.Context(), ran(t, "a", inDB...)))
	noErr(t, s.Append(t.Context(), ran(t, "b", inFiles...)))
}

func wantSmaller(t *testing.T, s *SQLite) {
	t.Helper()
	before, err := s.diskBytes(t.Context())
	noErr(t, err)
	rep, err := s.Prune(t.Context(), longAgo)
	noErr(t, err)
	st, err := os.Stat(s.path())
	noErr(t, err)
	t.Logf("%d bodies of %d bytes: %d bytes on the disk before, %d after, the database has %d", rep.Total.Bodies, rep.Total.Bytes, rep.DiskBefore, rep.DiskAfter, st.Size())
	if rep.DiskBefore != before || rep.DiskBefore-rep.DiskAfter < rep.Total.Bytes || rep.DiskAfter > 512<<10 || st.Size() > 512<<10 {
		t.Error("the space did not come back")
	}
	if left, _ := filepath.Glob(filepath.Join(s.artifacts(), "??", "*")); len(left) > 0 {
		t.Errorf("%d files are left", len(left))
	}
	if v, err := s.Verify(t.Context()); err != nil || len(v.Problems) > 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestPruningGivesSpaceBack(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir(), modernc)
	fill(t, s)
	wantSmaller(t, s)
}

// A ledger of before cannot give back pages until it was rewritten once.
func TestPruningAnOldLedgerGivesSpaceBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unzip(t, filepath.Join("testdata", "schema-2.db.gz"), filepath.Join(dir, "ledger.db"))
	s := opened(t, dir, modernc)
	if _, err := s.writer.Exec("DELETE FROM artifact WHERE body IS NULL"); err != nil { // its file is not in testdata
		t.Fatal(err)
	}
	fill(t, s)
	wantSmaller(t, s)
	fill2 := ran(t, "c", bytes.Repeat([]byte("again"), 10<<10))
	noErr(t, s.Append(t.Context(), fill2))
	if rep, err := s.Prune(t.Context(), longAgo); err != nil || rep.Total.Bodies != 1 || rep.DiskAfter >= rep.DiskBefore {
		t.Errorf("%+v, %v", rep, err)
	}
}

// What a crash left without a row is removed, and nothing else is.
func TestPruningSweepsStrayFiles(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir(), modernc)
	large := bytes.Repeat([]byte("x"), 2*InlineLimit)
	a, err := s.PutArtifact(t.Context(), "", bytes.NewReader(large))
	noErr(t, err)
	stray, other := s.file(Digest([]byte("stray"))), filepath.Join(s.artifacts(), "notes.txt")
	noErr(t, os.MkdirAll(filepath.Dir(stray), 0o700))
	noErr(t, os.WriteFile(stray, []byte("stray"), 0o600))
	noErr(t, os.WriteFile(other, []byte("somebody's"), 0o600))
	if _, err := s.Prune(t.Context(), PrunePolicy{}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{s.file(a.SHA256): true, other: true, stray: false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestReferences(t *testing.T) {
	a, b, c := Digest([]byte("a")), Digest([]byte("b")), Digest([]byte("c"))
	for payload, want := range map[string][]Reference{
		`null`: nil, `"` + a + `"`: {{"", a}}, `{"raw":"` + a + `"}`: {{"raw", a}},
		`{"result":{"ref":"` + a + `","text":true},"raw":"` + b + `"}`:                                {{"result.ref", a}, {"raw", b}},
		`{"body":{"items":[{"ref":"` + a + `"},{"x":1},{"ref":"` + b + `"}],"prompt":"p ` + c + `"}}`: {{"items.ref", a}, {"items.ref", b}},
		`{"a":{"b":{"list":[["` + a + `"],{}, "` + b + `"]}},"` + c + `":"x","raw":"` + c + `"}`:      {{"b.list", a}, {"b.list", b}, {"raw", c}},
		`{"upper":"` + string(bytes.ToUpper([]byte(a))) + `","long":"` + a + `0"}`:                    nil,
	} {
		got := References(json.RawMessage(payload))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s\ngot  %v\nwant %v", payload, got, want)
		}
	}
}

// Digests are found wherever a buffer ends.
func TestScanAcrossWrites(t *testing.T) {
	a := Digest([]byte("a"))
	text := "x" + a + "\n" + a + "0 " + a[1:] + `{"` + a + `"}` + a
	for size := 1; size < len(text); size += 7 {
		found := 0
		s := digestScanner{tell: func(d digest) {
			if d.String() == a {
				found++
			}
		}}
		for part := range slices.Chunk([]byte(text), size) {
			_, err := s.Write(part)
			noErr(t, err)
		}
		s.end()
		if found != 3 {
			t.Fatalf("in parts of %d bytes: %d", size, found)
		}
	}
}

// watched calls back when a body's file is opened.
type watched struct {
	osDrive
	opened func()
}

func (w *watched) open(path string) (bodyFile, error) {
	f, err := w.osDrive.open(path)
	if do := w.opened; do != nil && err == nil {
		w.opened = nil
		do()
	}
	return f, err
}

// A body is stored again, its file is found there, and at this very moment it is pruned.
func TestPruningWhatIsJustBeingStored(t *testing.T) {
	t.Parallel()
	eng, drive := modernc, &watched{}
	eng.files = drive
	s := opened(t, t.TempDir(), eng)
	large := bytes.Repeat([]byte("l"), 2*InlineLimit)
	noErr(t, s.Append(t.Context(), ran(t, "old", large)))
	pruned := make(chan error, 1)
	drive.opened = func() {
		go func() {
			_, err := s.Prune(t.Context(), longAgo)
			pruned <- err
		}()
		for len(pruned) == 0 && s.bodies.TryRLock() { // until it is through, or waits for us
			s.bodies.RUnlock()
			runtime.Gosched()
		}
	}
	_, err := s.PutArtifact(t.Context(), "", bytes.NewReader(large))
	noErr(t, err)
	noErr(t, <-pruned)
	if rep, err := s.Verify(t.Context()); err != nil || len(rep.Problems) > 0 {
		t.Errorf("%+v, %v", rep, err)
	}
}
