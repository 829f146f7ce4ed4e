package ledgertest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func testRoundTrip(t *testing.T, s ledger.Store) {
	east := time.FixedZone("east", 9*3600)
	c := ledger.Commit{
		Runs: []ledger.RunRow{{
			ID: "r1", Workflow: "plan", State: "completed", Created: At, Started: At.Add(1), Ended: At.Add(2).In(east),
			Key: "nightly", Summary: json.RawMessage(`{"coverage": 1, "b": 2, "a": "ü"}`),
		}},
		Events: []ledger.Event{
			{RunID: "r1", Seq: 1, Time: At.In(east), Kind: "run.created", Payload: json.RawMessage(`{"z":1,"a":"\u0000 ü 🦉 '\"","n":1e400}`)},
			{RunID: "r1", Seq: 2, Time: At, Kind: "run.started"},
		},
	}
	appendOK(t, s, c)
	want := c.Events
	want[0].Time = At
	want[1].Payload = json.RawMessage("null")
	wantSame(t, events(t, s, "r1"), want)
	row := c.Runs[0]
	row.Ended = row.Ended.UTC()
	wantSame(t, runs(t, s, ledger.RunFilter{}), []ledger.RunRow{row})
	if got := events(t, s, "r1")[0].Time.Location(); got != time.UTC {
		t.Errorf("times come back in %v", got)
	}
	wantSame(t, len(events(t, s, "nobody")), 0)
}

func testPaging(t *testing.T, s ledger.Store) {
	const n = 2500
	appendOK(t, s, Story("r1", "running", 1, n))
	page, err := s.Events(t.Context(), "r1", 10, 3)
	if err != nil || len(page) != 3 || page[0].Seq != 11 || page[2].Seq != 13 {
		t.Fatalf("page after 10: %v, %v", page, err)
	}
	next := int64(6)
	for e, err := range ledger.All(t.Context(), s, "r1", 5) {
		if err != nil || e.Seq != next {
			t.Fatalf("got event %d, want %d: %v", e.Seq, next, err)
		}
		next++
	}
	wantSame(t, next, int64(n+1))
	for e, err := range ledger.All(t.Context(), s, "r1", 0) {
		if err != nil || e.Seq > 2 {
			t.Fatalf("went on to event %d after a break: %v", e.Seq, err)
		}
		if e.Seq == 2 {
			break
		}
	}
	var last error
	for _, err := range ledger.All(cancelled(), s, "r1", 0) {
		last = err
	}
	if last == nil {
		t.Fatal("a cancelled reader was not told")
	}
}

func testWrongSeq(t *testing.T, s ledger.Store) {
	appendOK(t, s, Story("r1", "running", 1, 3))
	appendOK(t, s, Story("r2", "running", 1, 1))
	for name, bad := range map[string]ledger.Commit{
		"a gap":          Story("r1", "failed", 5, 5),
		"again":          Story("r1", "failed", 3, 4),
		"from zero":      Story("r3", "failed", 0, 1),
		"twice in one":   {Events: append(Story("r1", "", 4, 4).Events, Story("r1", "", 4, 4).Events...)},
		"the second run": {Events: append(Story("r1", "", 4, 4).Events, Story("r2", "", 3, 3).Events...)},
	} {
		body := ledger.Body{Name: name, Data: []byte(name)}
		bad.Bodies, bad.Meta = []ledger.Body{body}, map[string]json.RawMessage{"k": json.RawMessage("1")}
		wantCode(t, s.Append(t.Context(), bad), apierr.Conflict)
		wantSame(t, len(events(t, s, "r1"))+len(events(t, s, "r2"))+len(events(t, s, "r3")), 4)
		for _, r := range runs(t, s, ledger.RunFilter{}) {
			wantSame(t, r.State, "running")
		}
		has, err := s.HasArtifact(t.Context(), ledger.Digest(body.Data))
		if err != nil || has {
			t.Fatalf("%s: its artifact was kept (%v)", name, err)
		}
		values, err := s.Meta(t.Context(), "")
		if err != nil || len(values) != 0 {
			t.Fatalf("%s: its values were kept: %v, %v", name, values, err)
		}
	}
	interleaved := ledger.Commit{Events: []ledger.Event{
		Story("r1", "", 4, 4).Events[0], Story("r2", "", 2, 2).Events[0], Story("r1", "", 5, 5).Events[0],
	}}
	appendOK(t, s, interleaved)
	wantSame(t, len(events(t, s, "r1")), 5)
}

func testNotJSON(t *testing.T, s ledger.Store) {
	for name, spoil := range map[string]func(*ledger.Commit){
		"payload":       func(c *ledger.Commit) { c.Events[1].Payload = json.RawMessage(`{"a":`) },
		"empty payload": func(c *ledger.Commit) { c.Events[1].Payload = json.RawMessage{} },
		"summary":       func(c *ledger.Commit) { c.Runs[0].Summary = json.RawMessage("done") },
		"value":         func(c *ledger.Commit) { c.Meta = map[string]json.RawMessage{"k": json.RawMessage("'")} },
	} {
		c := Story("r1", "running", 1, 2)
		spoil(&c)
		if err := s.Append(t.Context(), c); apierr.CodeOf(err) != apierr.InvalidArgument {
			t.Fatalf("%s: %v", name, err)
		}
		wantSame(t, len(runs(t, s, ledger.RunFilter{})), 0)
	}
}

func testNoRow(t *testing.T, s ledger.Store) {
	wantCode(t, s.Append(t.Context(), ledger.Commit{Events: Story("r1", "", 1, 1).Events}), apierr.InvalidArgument)
	wantCode(t, s.Append(t.Context(), Story("", "queued", 1, 1)), apierr.InvalidArgument)
	appendOK(t, s, ledger.Commit{Runs: Story("r1", "queued", 1, 0).Runs})
	appendOK(t, s, ledger.Commit{Events: Story("r1", "", 1, 1).Events})
	appendOK(t, s, ledger.Commit{})
	wantSame(t, len(events(t, s, "r1")), 1)
}

func testCancelled(t *testing.T, s ledger.Store) {
	wantCode(t, s.Append(cancelled(), Story("r1", "running", 1, 1)), apierr.Cancelled)
	wantSame(t, len(events(t, s, "r1")), 0)
}

func testClosed(t *testing.T, s ledger.Store) {
	appendOK(t, s, Story("r1", "running", 1, 1))
	closeStore(t, s)
	wantCode(t, s.Append(t.Context(), Story("r1", "running", 2, 2)), apierr.Unavailable)
	if _, err := s.Events(t.Context(), "r1", 0, 0); err == nil {
		t.Fatal("a closed store answers")
	}
}

func testConcurrent(t *testing.T, s ledger.Store) {
	const writers, each = 6, 12
	var wg sync.WaitGroup
	for w := range writers {
		id := fmt.Sprintf("r%d", w)
		acked := make(chan int, 1)
		wg.Go(func() {
			defer close(acked)
			for seq := int64(1); seq <= each; seq++ {
				if err := s.Append(t.Context(), Story(id, "running", seq, seq)); err != nil {
					t.Errorf("append to %s: %v", id, err)
					return
				}
				acked <- int(seq)
			}
		})
		wg.Go(func() {
			for n := range acked {
				es, err := s.Events(t.Context(), id, 0, 0)
				if err != nil || len(es) < n {
					t.Errorf("%d events of %s, %d were acknowledged: %v", len(es), id, n, err)
				}
			}
		})
	}
	wg.Wait()
	for w := range writers {
		es := events(t, s, fmt.Sprintf("r%d", w))
		wantSame(t, len(es), each)
		for i, e := range es {
			wantSame(t, e.Seq, int64(i+1))
		}
	}
}

func testReopen(t *testing.T, open OpenFunc) {
	place := t.TempDir()
	s := open(t, place)
	c := Story("r1", "running", 1, 5)
	c.Bodies = []ledger.Body{{Name: "small", Data: pattern(1, 10)}, {Name: "large", Data: pattern(2, 3*ledger.InlineLimit)}}
	c.Meta = map[string]json.RawMessage{"fleet": json.RawMessage(`"f1"`)}
	appendOK(t, s, c)
	closeStore(t, s)
	s = open(t, place)
	defer closeStore(t, s)
	wantSame(t, events(t, s, "r1"), c.Events)
	wantSame(t, runs(t, s, ledger.RunFilter{}), c.Runs)
	for _, b := range c.Bodies {
		wantSame(t, read(t, s, ledger.Digest(b.Data)), b.Data)
	}
	values, err := s.Meta(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, values, c.Meta)
	appendOK(t, s, Story("r1", "completed", 6, 6))
}
