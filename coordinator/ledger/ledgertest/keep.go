package ledgertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// names is an event's payload that names bodies under keys.
func names(pairs ...string) json.RawMessage {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		parts = append(parts, fmt.Sprintf("%q:%q", pairs[i], pairs[i+1]))
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

// naming adds to c an event of run id that names bodies, which c stores.
func naming(c *ledger.Commit, id, state string, seq int64, payload json.RawMessage, bodies ...[]byte) {
	next := Story(id, state, seq, seq)
	if state == "completed" {
		next.Runs[0].Ended = At.Add(time.Minute)
	}
	next.Events[0].Payload = payload
	c.Events, c.Runs = append(c.Events, next.Events...), append(c.Runs, next.Runs...)
	for _, b := range bodies {
		c.Bodies = append(c.Bodies, ledger.Body{Data: b})
	}
}

// pruned is a policy that lets everything go that may, however new.
func pruned(keys ...string) ledger.PrunePolicy {
	return ledger.PrunePolicy{Before: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), Keys: keys}
}

func prune(t *testing.T, s ledger.Store, p ledger.PrunePolicy) ledger.PruneReport {
	t.Helper()
	rep, err := s.Prune(t.Context(), p)
	if err != nil {
		t.Fatalf("prune: %v", err)
	}
	return rep
}

func testPrune(t *testing.T, s ledger.Store) {
	script, prompt, small, large := pattern(1, 300), pattern(2, 400), pattern(3, 500), pattern(4, 3*ledger.InlineLimit)
	sha := ledger.Digest
	var c ledger.Commit
	naming(&c, "r1", "completed", 1, names("script", sha(script), "prompt", sha(prompt), "raw", sha(small)), script, prompt, small)
	naming(&c, "r1", "completed", 2, json.RawMessage(`{"result":{"ref":"`+sha(large)+`"},"input":[{"ref":"`+sha(script)+`"}]}`), large)
	reuse := ledger.Accepted{Request: "q", RunID: "r1", Time: At, Result: json.RawMessage("{}"), Body: sha(large)}
	c.Accepted = []ledger.Accepted{reuse, {Request: "v", RunID: "r1", Time: At, Result: json.RawMessage("1")}}
	appendOK(t, s, c)

	policy := pruned(ledger.KeyReply, ledger.KeyResult)
	policy.DryRun = true
	dry := prune(t, s, policy)
	wantSame(t, dry, ledger.PruneReport{
		Runs: 1, Total: ledger.Count{Bodies: 2, Bytes: int64(len(small) + len(large))},
		ByKey: map[string]ledger.Count{"raw": {Bodies: 1, Bytes: int64(len(small))}, "result.ref": {Bodies: 1, Bytes: int64(len(large))}},
	})
	wantSame(t, read(t, s, sha(large)), large)
	policy.DryRun = false
	rep := prune(t, s, policy)
	rep.DiskBefore, rep.DiskAfter = 0, 0 // the engine's own
	wantSame(t, rep, dry)

	for _, gone := range [][]byte{small, large} {
		_, a, err := s.OpenArtifact(t.Context(), sha(gone))
		wantCode(t, err, apierr.NotFound)
		if !strings.Contains(err.Error(), "pruned on "+time.Now().UTC().Format(time.DateOnly)) || time.Since(a.Pruned) > time.Hour || a.Size != int64(len(gone)) {
			t.Errorf("open what was pruned: %+v, %v", a, err)
		}
		_, err = s.ReadArtifactAt(t.Context(), sha(gone), 0, 1)
		wantCode(t, err, apierr.NotFound)
		if has, err := s.HasArtifact(t.Context(), sha(gone)); has || err != nil {
			t.Errorf("has what was pruned: %v, %v", has, err)
		}
		if st, err := s.StatArtifact(t.Context(), sha(gone)); err != nil || st != a {
			t.Errorf("what is known of it: %+v, %v", st, err)
		}
	}
	wantSame(t, read(t, s, sha(script)), script)
	wantSame(t, read(t, s, sha(prompt)), prompt)
	wantSame(t, len(accepted(t, s, "q", 0)), 0)
	wantSame(t, len(accepted(t, s, "v", 0)), 1)
	wantSame(t, len(events(t, s, "r1")), 2)
	wantPruned(t, s, "r1", map[string]int64{"raw": 1, "result.ref": 1})
	wantSound(t, s, ledger.Report{Runs: 1, Events: 2, Artifacts: 2, ArtifactBytes: int64(len(script) + len(prompt)), Pruned: 2})

	wantSame(t, prune(t, s, policy).Total, ledger.Count{}) // there is nothing twice
	if _, err := s.PutArtifact(t.Context(), "", bytes.NewReader(large)); err != nil {
		t.Fatal(err)
	}
	wantSame(t, read(t, s, sha(large)), large) // stored again, it is there again
	_, err := s.Prune(t.Context(), pruned("script"))
	wantCode(t, err, apierr.InvalidArgument)
}

func wantPruned(t *testing.T, s ledger.Store, id string, want map[string]int64) {
	t.Helper()
	ps, err := s.Pruned(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, p := range ps {
		got[p.Key] += p.Bodies
		if p.Bytes == 0 || time.Since(p.Time) > time.Hour {
			t.Errorf("%+v", p)
		}
	}
	wantSame(t, got, want)
}

func wantSound(t *testing.T, s ledger.Store, want ledger.Report) {
	t.Helper()
	rep, err := s.Verify(t.Context())
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	wantSame(t, rep, want)
}

// Every body here is named as a reply by the run that is pruned, and by something else that keeps it.
func testPruneKeeps(t *testing.T, s ledger.Store) {
	sha := ledger.Digest
	var c ledger.Commit
	var bodies [][]byte
	body := func() string {
		b := pattern(10+len(bodies), 200)
		bodies = append(bodies, b)
		return sha(b)
	}
	old := []string{}
	for range 9 {
		old = append(old, "raw", body())
	}
	naming(&c, "old", "completed", 1, names(old...), bodies...)
	at := func(i int) string { return old[2*i+1] }
	naming(&c, "old", "completed", 2, json.RawMessage(`{"output":"the reply `+at(0)+` as a text"}`)) // the same run, in another way
	naming(&c, "live", "running", 1, json.RawMessage(`{"request":{"items":[{"ref":"`+at(1)+`"}]}}`)) // a run under way
	naming(&c, "kept", "completed", 1, names("raw", at(2)))                                          // a run to keep
	list := []byte(`{"ref":"` + at(3) + `"}` + "\n" + `{"ref":"` + at(4) + `"}`)                     // by way of a list
	naming(&c, "live", "running", 2, names("lines", sha(list)), list)
	outer := []byte("see " + sha(append(list, '!')))
	naming(&c, "live", "running", 3, names("lines", sha(outer)), outer, append(list, '!')) // and of a list of lists
	c.Meta = map[string]json.RawMessage{"workflow/mine": json.RawMessage(`"` + at(5) + `"`)}
	c.Schedules = []ledger.Schedule{{Name: "n", Updated: At, Value: json.RawMessage(`{"script":"` + at(6) + `"}`)}}
	naming(&c, "live", "running", 4, json.RawMessage(`{}`))
	c.Runs[len(c.Runs)-1].Summary = json.RawMessage(`{"output":"` + at(7) + `"}`)
	appendOK(t, s, c)
	policy := pruned("raw")
	policy.Keep = []string{"kept"}
	rep := prune(t, s, policy)
	wantSame(t, rep.Total, ledger.Count{Bodies: 1, Bytes: 200})
	wantSame(t, rep.Shared, ledger.Count{Bodies: 8, Bytes: 1600})
	for i := range 8 {
		if has, err := s.HasArtifact(t.Context(), at(i)); err != nil || !has {
			t.Errorf("body %d is gone: %v", i, err)
		}
	}
	if has, _ := s.HasArtifact(t.Context(), at(8)); has {
		t.Error("the one body that nothing else names was kept")
	}
}

func testPruneByAge(t *testing.T, s ledger.Store) {
	var c ledger.Commit
	now := time.Now()
	for i, ended := range []time.Time{now.Add(-48 * time.Hour), now.Add(-time.Hour)} {
		b := pattern(20+i, 100)
		naming(&c, fmt.Sprint("r", i), "completed", 1, names("raw", ledger.Digest(b)), b)
		c.Runs[i].Ended = ended
	}
	unused := pattern(30, 70)
	c.Bodies = append(c.Bodies, ledger.Body{Data: unused})
	appendOK(t, s, c)
	// Everything here was stored just now, whatever its run says: it may be for a run that is about to be submitted.
	wantSame(t, prune(t, s, ledger.PrunePolicy{Before: now.Add(-24 * time.Hour), Keys: []string{"raw"}, Unused: true}).Total, ledger.Count{})
	policy := pruned("raw")
	policy.Keep = []string{"r1"}
	wantSame(t, prune(t, s, policy).Total, ledger.Count{Bodies: 1, Bytes: 100})
	wantPruned(t, s, "r0", map[string]int64{"raw": 1})
	wantPruned(t, s, "r1", map[string]int64{})
	policy.Unused = true
	rep := prune(t, s, policy)
	wantSame(t, rep.Total, ledger.Count{Bodies: 1, Bytes: 70})
	wantSame(t, rep.Unused, rep.Total)
}
