package ledgertest

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func testRuns(t *testing.T, s ledger.Store) {
	for i, r := range []ledger.RunRow{
		{ID: "ab1", State: "running"}, {ID: "ab2", State: "completed", Key: "k"}, {ID: "aB3", State: "queued"}, {ID: "ac_", State: "running"},
	} {
		r.Workflow, r.Created = "map", At.Add(time.Duration(i)*time.Second)
		appendOK(t, s, ledger.Commit{Runs: []ledger.RunRow{r}})
	}
	for name, c := range map[string]struct {
		filter ledger.RunFilter
		want   []string
	}{
		"all, newest first":  {ledger.RunFilter{}, []string{"ac_", "aB3", "ab2", "ab1"}},
		"the newest two":     {ledger.RunFilter{Limit: 2}, []string{"ac_", "aB3"}},
		"by state":           {ledger.RunFilter{States: []string{"running", "queued"}}, []string{"ac_", "aB3", "ab1"}},
		"state and limit":    {ledger.RunFilter{States: []string{"running"}, Limit: 1}, []string{"ac_"}},
		"by prefix and case": {ledger.RunFilter{Prefix: "ab"}, []string{"ab2", "ab1"}},
		"a whole ID":         {ledger.RunFilter{Prefix: "ab1"}, []string{"ab1"}},
		"no wildcards":       {ledger.RunFilter{Prefix: "a_"}, nil},
		"by key":             {ledger.RunFilter{Key: "k"}, []string{"ab2"}},
		"no such key":        {ledger.RunFilter{Key: "K"}, nil},
	} {
		var got []string
		for _, r := range runs(t, s, c.filter) {
			got = append(got, r.ID)
		}
		t.Run(name, func(t *testing.T) { wantSame(t, got, c.want) })
	}
	replaced := ledger.RunRow{ID: "ab1", Workflow: "map", State: "failed", Created: At, Ended: At.Add(time.Hour)}
	appendOK(t, s, ledger.Commit{Runs: []ledger.RunRow{replaced}})
	wantSame(t, runs(t, s, ledger.RunFilter{Prefix: "ab1"}), []ledger.RunRow{replaced})
}

func testKey(t *testing.T, s ledger.Store) {
	first := ledger.RunRow{ID: "r1", Workflow: "map", State: "queued", Created: At, Key: "nightly"}
	appendOK(t, s, ledger.Commit{Runs: []ledger.RunRow{first}})
	second := Story("r2", "queued", 1, 1)
	second.Runs[0].Key = "nightly"
	wantCode(t, s.Append(t.Context(), second), apierr.Conflict)
	wantSame(t, runs(t, s, ledger.RunFilter{}), []ledger.RunRow{first})
	first.State = "running"
	appendOK(t, s, ledger.Commit{Runs: []ledger.RunRow{first}})
	appendOK(t, s, Story("r3", "queued", 1, 1))
	appendOK(t, s, Story("r4", "queued", 1, 1)) // no key twice is no clash
}

func testMeta(t *testing.T, s ledger.Store) {
	set := func(kv map[string]json.RawMessage) { appendOK(t, s, ledger.Commit{Meta: kv}) }
	set(map[string]json.RawMessage{
		"node/attic": json.RawMessage(`{"seen": 1}`), "node/cellar": json.RawMessage("null"), "nodes": json.RawMessage("2"), "fleet": json.RawMessage(`"f"`),
	})
	set(map[string]json.RawMessage{"node/attic": json.RawMessage(`{"seen": 2}`), "fleet": nil, "never": nil})
	got, err := s.Meta(t.Context(), "node/")
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, got, map[string]json.RawMessage{"node/attic": json.RawMessage(`{"seen": 2}`), "node/cellar": json.RawMessage("null")})
	got, err = s.Meta(t.Context(), "")
	if err != nil || len(got) != 3 || got["fleet"] != nil {
		t.Fatalf("all values: %v, %v", got, err)
	}
}

func testVerify(t *testing.T, s ledger.Store) {
	c := Story("r1", "running", 1, 7)
	c.Bodies = []ledger.Body{{Data: pattern(1, 100)}, {Data: pattern(2, 2*ledger.InlineLimit)}}
	appendOK(t, s, c)
	appendOK(t, s, Story("r2", "running", 1, 2))
	rep, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, rep, ledger.Report{Runs: 2, Events: 9, Artifacts: 2, ArtifactBytes: 100 + 2*ledger.InlineLimit})
}

func testBackup(t *testing.T, open OpenFunc) {
	s := open(t, t.TempDir())
	defer closeStore(t, s)
	c := Story("r1", "running", 1, 1)
	c.Bodies = []ledger.Body{{Name: "small", Data: pattern(1, 10)}, {Name: "large", Data: pattern(2, 2*ledger.InlineLimit)}}
	appendOK(t, s, c)
	stop, stopped := make(chan struct{}), make(chan int64)
	go func() { // appends go on meanwhile, each event after the body that it names
		seq := int64(1)
		defer func() { stopped <- seq }()
		for {
			select {
			case <-stop:
				return
			default:
				if err := appendNaming(t, s, seq+1); err != nil {
					t.Errorf("append during a backup: %v", err)
					return
				}
				seq++
			}
		}
	}()
	to := filepath.Join(t.TempDir(), "copy")
	err := s.Backup(t.Context(), to)
	close(stop)
	last := <-stopped
	if err != nil {
		t.Fatalf("backup: %v", err)
	}
	wantCode(t, s.Backup(t.Context(), to), apierr.Conflict)
	appendOK(t, s, Story("r1", "completed", last+1, last+1))

	b := open(t, to)
	defer closeStore(t, b)
	got := events(t, b, "r1")
	if n := int64(len(got)); n < 1 || n > last {
		t.Fatalf("the copy has %d events, the original had 1 to %d meanwhile", n, last)
	}
	wantSame(t, got, events(t, s, "r1")[:len(got)])
	for _, body := range c.Bodies {
		wantSame(t, read(t, b, ledger.Digest(body.Data)), body.Data)
	}
	for _, e := range got[1:] { // what the copy names, it has
		wantSame(t, ledger.Digest(read(t, b, named(t, e))), named(t, e))
	}
	rep, err := b.Verify(t.Context())
	if err != nil || len(rep.Problems) > 0 || rep.Artifacts < int64(len(got))+1 {
		t.Fatalf("verify the copy: %+v, %v", rep, err)
	}
	appendOK(t, b, Story("r1", "completed", int64(len(got))+1, int64(len(got))+1)) // the chain goes on
}

// appendNaming stores a body, large every second time, and appends an event that names it.
func appendNaming(t *testing.T, s ledger.Store, seq int64) error {
	a, err := s.PutArtifact(t.Context(), "", bytes.NewReader(pattern(int(1000+seq), 100+int(seq%2)*ledger.InlineLimit)))
	if err != nil {
		return err
	}
	c := Story("r1", "running", seq, seq)
	c.Events[0].Payload = names("raw", a.SHA256)
	return s.Append(t.Context(), c)
}

func named(t *testing.T, e ledger.Event) string {
	t.Helper()
	refs := ledger.References(e.Payload)
	if len(refs) != 1 {
		t.Fatalf("event %d names %d bodies", e.Seq, len(refs))
	}
	return refs[0].SHA256
}
