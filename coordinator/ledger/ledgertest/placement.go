package ledgertest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func testLearned(t *testing.T, s ledger.Store) {
	speed := ledger.Learned{Kind: "speed", Node: "den", Subject: "d1", Time: At, Value: json.RawMessage(`{"decode":31.5}`)}
	held := ledger.Learned{Kind: "held", Node: "den", Subject: "d1", Time: At, Value: json.RawMessage(`{}`)}
	appendOK(t, s, ledger.Commit{Learned: []ledger.Learned{speed, held}})
	speed.Time, speed.Value = At.Add(time.Second), json.RawMessage(`{"decode":32}`)
	held.Value = nil
	appendOK(t, s, ledger.Commit{Learned: []ledger.Learned{speed, held}})
	got, err := s.Learned(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, got, []ledger.Learned{speed})
	bad := ledger.Commit{Learned: []ledger.Learned{{Kind: "speed", Node: "den", Value: json.RawMessage(`{`)}}}
	if err := s.Append(t.Context(), bad); apierr.CodeOf(err) != apierr.InvalidArgument {
		t.Errorf("what is no JSON: %v", err)
	}
}

func testDecisions(t *testing.T, s ledger.Store) {
	c := Story("r1", "running", 1, 1)
	decision := func(step, n int) ledger.Decision {
		return ledger.Decision{RunID: "r1", Step: step, Item: n, Time: At.Add(time.Duration(n)), Action: "start", Node: "den", Why: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
	}
	const extra = 10
	var want []ledger.Decision
	for n := range ledger.DecisionsKept + extra {
		c.Decisions = append(c.Decisions, decision(1, n))
		if n >= extra {
			want = append(want, decision(1, n))
		}
	}
	c.Decisions = append(c.Decisions, decision(2, 0))
	appendOK(t, s, c)
	got, err := s.Decisions(t.Context(), "r1", 1)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, got, want)
	if all, err := s.Decisions(t.Context(), "r1", -1); err != nil || len(all) != len(want)+1 {
		t.Errorf("%d of the whole run, %v", len(all), err)
	}
	if err := s.Append(t.Context(), ledger.Commit{Decisions: []ledger.Decision{{RunID: "nobody", Why: json.RawMessage(`{}`)}}}); err == nil {
		t.Error("a decision on a run that is not there was taken")
	}
}

func testIncidents(t *testing.T, s ledger.Store) {
	one := ledger.Incident{Time: At, Node: "den", Kind: "vanished", Model: "qwen3:8b", Text: "it is gone"}
	two := ledger.Incident{Time: At.Add(1), Node: "attic", Kind: "vanished", Text: "all are gone"}
	appendOK(t, s, ledger.Commit{Incidents: []ledger.Incident{one, two}})
	for node, want := range map[string][]ledger.Incident{"": {two, one}, "den": {one}, "cellar": nil} {
		got, err := s.Incidents(t.Context(), node, 5)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, got, want)
	}
}
