package system

import (
	"maps"
	"slices"
	"strings"
	"testing"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// failureOf says as what a fault must turn up in the books.
var failureOf = map[ollamatest.FaultKind]string{ollamatest.EmptyTurn: "empty_turn", ollamatest.TextForValue: "text_instead_of_structure",
	ollamatest.StreamBroken: "stream_broken", ollamatest.HTTP500: "server_error"}

// faulty is a machine on which four calls of ten go wrong.
func faulty(seed uint64) ollamatest.Config {
	return ollamatest.Config{DecodeRate: 2000, Slots: 4, Seed: seed, Faults: []ollamatest.Fault{
		{Kind: ollamatest.EmptyTurn, Probability: 0.2}, {Kind: ollamatest.TextForValue, Probability: 0.1},
		{Kind: ollamatest.StreamBroken, Probability: 0.05}, {Kind: ollamatest.HTTP500, Probability: 0.05},
	}}
}

func structured(n, attempts int) map[string]any {
	return map[string]any{"model": model, "prompt": prompt, "items": reports(n), "retry": map[string]any{"attempts": attempts},
		"schema": map[string]any{"type": "object", "properties": map[string]any{"summary": map[string]any{"type": "string"}},
			"required": []string{"summary"}, "additionalProperties": false}}
}

// injected adds up what the stand-ins did wrong, by what it must be called in the books.
func (h *house) injected() map[string]int {
	out := map[string]int{}
	for _, s := range h.seats {
		for kind, n := range s.stand.Counts().Faults {
			out[failureOf[kind]] += n
		}
	}
	return out
}

func TestFaultsWithRetriesThatSuffice(t *testing.T) {
	t.Parallel()
	const n = 200
	h := start(t, faulty(1), faulty(2))
	// With twenty tries one batch in 400,000 still lacks an item.
	id := h.submit("map", structured(n, 20), model)
	r := h.end(id, "completed")
	if c := r.GetItems(); c.GetSucceeded() != n || c.GetFailed() != 0 || len(r.GetFailures()) != 0 {
		t.Errorf("counts are %v, failures %v", c, r.GetFailures())
	}
	for i, item := range h.items(id) {
		if !strings.Contains(string(item.GetValueJson()), report(i)) || !strings.HasPrefix(string(item.GetValueJson()), `{"summary":`) {
			t.Errorf("item %d is %v", i, item)
		}
	}
	injected := h.injected()
	_, failures := h.trace(id)
	if !maps.Equal(failures, injected) {
		t.Errorf("the ledger has the failures %v, the stand-ins did %v", failures, injected)
	}
	for kind, few := range map[string]int{"empty_turn": 30, "text_instead_of_structure": 10, "stream_broken": 3, "server_error": 3} {
		if injected[kind] < few {
			t.Errorf("only %d times %s: the test proves nothing", injected[kind], kind)
		}
	}
	total := 0
	for _, n := range injected {
		total += n
	}
	if r.GetItems().GetRetried() != int64(total) || r.GetCalls() != int64(total+n) {
		t.Errorf("%d retried of %d calls, want %d of %d", r.GetItems().GetRetried(), r.GetCalls(), total, total+n)
	}
}

func TestFaultsWithoutRetriesAreListed(t *testing.T) {
	t.Parallel()
	const n = 200
	h := start(t, faulty(3), faulty(4))
	id := h.submit("map", structured(n, 1), model)
	r := h.end(id, "incomplete")

	want := map[string][]string{} // keys of the items by kind of failure
	for _, c := range h.calls() {
		if c.Fault != "" {
			want[failureOf[c.Fault]] = append(want[failureOf[c.Fault]], strings.TrimLeft(strings.TrimPrefix(reportName.FindString(c.Prompt), "Report "), "0"))
		}
	}
	got, failed := map[string][]string{}, int64(0)
	for _, g := range r.GetFailures() {
		got[g.GetKind()] = slices.Sorted(slices.Values(g.GetItems()))
		failed += g.GetCount()
		if !g.GetRetryHelps() || g.GetMessage() == "" {
			t.Errorf("of %s it says: %q, retry helps %v", g.GetKind(), g.GetMessage(), g.GetRetryHelps())
		}
	}
	for kind, keys := range want {
		for i, k := range keys {
			if k == "" {
				keys[i] = "0"
			}
		}
		slices.Sort(keys)
		if !slices.Equal(got[kind], keys) {
			t.Errorf("%s: the failure list is %v, want %v", kind, got[kind], keys)
		}
	}
	if len(got) != len(want) || failed != r.GetItems().GetFailed() || failed+r.GetItems().GetSucceeded() != n {
		t.Errorf("%d failures of kinds %v, counts %v", failed, slices.Collect(maps.Keys(got)), r.GetItems())
	}
	for i, item := range h.items(id) {
		ok := item.GetState() == "succeeded"
		if ok == (item.GetFailureKind() != "") || ok != (len(item.GetValueJson()) > 0) {
			t.Errorf("item %d is %v", i, item)
		}
	}
}

func TestSentBackWithFeedbackWithinTheBound(t *testing.T) {
	t.Parallel()
	cfg := brisk()
	cfg.Faults = []ollamatest.Fault{{Kind: ollamatest.Rejected, Probability: 1, Contains: "Report 001"}}
	h := start(t, cfg)
	id := h.submit("map", map[string]any{"model": model, "prompt": prompt, "items": reports(4), "retry": map[string]any{"attempts": 3},
		"evaluate": map[string]any{"criteria": []string{"The summary names the report"}, "model": model}}, model)
	r := h.end(id, "incomplete")
	if len(r.GetFailures()) != 1 || r.GetFailures()[0].GetKind() != "sent_back" || !slices.Equal(r.GetFailures()[0].GetItems(), []string{"1"}) {
		t.Errorf("failures are %v", r.GetFailures())
	}
	if r.GetItems().GetSucceeded() != 3 {
		t.Errorf("counts are %v", r.GetItems())
	}
	var work, judged []ollamatest.Call
	for _, c := range h.calls() {
		switch {
		case reportName.FindString(c.Prompt) != "Report 001":
		case strings.Contains(c.Prompt, "## Subject"): // a judge thinks freely first, and fills in then
			if c.Format != "" && c.Format != "null" {
				judged = append(judged, c)
			}
		default:
			work = append(work, c)
		}
	}
	if len(work) != 3 || len(judged) != 3 {
		t.Fatalf("the item was made %d times and judged %d times, want three times each", len(work), len(judged))
	}
	const opening = "An earlier answer was sent back after a check."
	if strings.Contains(work[0].Prompt, opening) || !strings.Contains(work[1].Prompt, opening) || !strings.Contains(work[2].Prompt, opening) {
		t.Errorf("the prompts are\n%s\n%s\n%s", work[0].Prompt, work[1].Prompt, work[2].Prompt)
	}
}

func TestSentBackOnceIsMadeGood(t *testing.T) {
	t.Parallel()
	cfg := brisk()
	cfg.Faults = []ollamatest.Fault{{Kind: ollamatest.Rejected, Probability: 1, Limit: 1}}
	h := start(t, cfg)
	id := h.submit("map", map[string]any{"model": model, "prompt": prompt, "items": reports(3),
		"evaluate": map[string]any{"criteria": []string{"The summary names the report"}, "model": model}}, model)
	if r := h.end(id, "completed"); r.GetItems().GetRetried() != 1 {
		t.Errorf("counts are %v", r.GetItems())
	}
}

func TestDocumentLongerThanTheContextIsTriedOnce(t *testing.T) {
	t.Parallel()
	h := start(t, brisk())
	long := strings.Repeat(report(1)+"\n", 1000) // some 19,000 tokens, where 8,192 are the most
	id := h.submit("map", map[string]any{"model": model, "prompt": prompt, "items": []string{report(0), long}}, model)
	r := h.end(id, "incomplete")
	if len(r.GetFailures()) != 1 {
		t.Fatalf("failures are %v", r.GetFailures())
	}
	f := r.GetFailures()[0]
	if f.GetKind() != "input_too_long" || !slices.Equal(f.GetItems(), []string{"1"}) || f.GetRetryHelps() || len(f.GetNext()) == 0 {
		t.Errorf("the failure is %v", f)
	}
	if items := h.items(id); items[0].GetState() != "succeeded" || items[1].GetAttempts() != 1 {
		t.Errorf("items are %v", items)
	}
}

func TestCancelLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	slow := ollamatest.Config{DecodeRate: 2, Slots: 2} // an answer takes some ten seconds
	h := start(t, slow, slow)
	id := h.submit("map", map[string]any{"model": model, "prompt": prompt, "items": reports(50)}, model)
	h.eventually("four calls run", func() bool { return len(h.running()) == 4 })
	r, err := h.client.CancelRun(t.Context(), &coordinatorv1.CancelRunRequest{RunId: id, Reason: "not needed"})
	if err != nil {
		t.Fatal(err)
	}
	if r.GetRun().GetState() != "cancelled" {
		t.Errorf("the run is %s", r.GetRun().GetState())
	}
	h.eventually("nothing runs", func() bool { return len(h.running()) == 0 })
	for _, c := range h.calls() {
		if c.Status != 499 {
			t.Errorf("a call ended with status %d", c.Status)
		}
	}
	if n := len(h.calls()); n != 4 {
		t.Errorf("%d calls were made, want the four that were cancelled", n)
	}
	v := h.end(id, "cancelled")
	if c := v.GetItems(); c.GetCancelled() != 50 || c.GetRunning() != 0 {
		t.Errorf("counts are %v", c)
	}
	h.eventually("no node is busy", func() bool { return h.node("node-1").GetBusy() == 0 && h.node("node-2").GetBusy() == 0 })
}

// running are the calls that have not ended.
func (h *house) running() []ollamatest.Call {
	return slices.DeleteFunc(h.calls(), func(c ollamatest.Call) bool { return !c.Ended.IsZero() })
}
