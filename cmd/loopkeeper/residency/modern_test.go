package residency

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// judged is the input of a batch that one model writes and another judges.
func judged() map[string]any {
	return map[string]any{"evaluate": map[string]any{"model": judge, "criteria": "It says how the harbour was."}}
}

// From 0.30 on Ollama evicts when its own prediction of a model is more than 80 % of what is free, and loads a model again for a call
// with another shift. One batch, written by one model and judged by another, over a card with room for both by their sizes and not by
// that rule: each is loaded once, and Ollama is given no reason to evict.
func TestOllamaEvictsAModelThatWouldHaveFitted(t *testing.T) {
	for version, both := range map[string]bool{"0.17.4": true, "0.30.5": false} {
		t.Run(version, func(t *testing.T) {
			c := card(22)
			c.Version, c.Models = version, []ollamatest.Model{fourteen(writer), fourteen(judge)}
			live(t, func(t *testing.T, h *house) {
				r := h.end(h.submit(writer, judged(), reports(40)...))
				if n := h.loads(); n != 2 || r.GetItems().GetSucceeded() != 40 {
					t.Errorf("%d loads, %v", n, r.GetItems())
				}
				want := []string{judge}
				if both {
					want = []string{judge, writer}
				}
				if got := h.stands[0].Loaded(); !slices.Equal(got, want) {
					t.Errorf("in memory: %v, want %v", got, want)
				}
				if got := h.incidents(); len(got) > 0 {
					t.Errorf("%q", got)
				}
				url, web := h.stands[0].StartPipe(t) // what another client does: it loads without making room
				load := &api.GenerateRequest{Model: writer, Options: map[string]any{"num_ctx": 8192}}
				if err := ollamatest.Client(url, web).Generate(t.Context(), load, func(api.GenerateResponse) error { return nil }); err != nil {
					t.Fatal(err)
				}
				if got := h.stands[0].Loaded(); slices.Contains(got, judge) != both {
					t.Errorf("beside another client: %v", got)
				}
			}, c)
		})
	}
}

// From 0.30 on a model that runs out of memory takes every other one with it. It is told, the one that is still wanted is loaded again,
// and the batch ends.
func TestOneModelRunsOutOfMemoryAndAllAreGone(t *testing.T) {
	c := card(24, ollamatest.Fault{Kind: ollamatest.OutOfMemory, Probability: 1, Limit: 1, Model: judge})
	c.Version = "0.30.5"
	live(t, func(t *testing.T, h *house) {
		h.end(h.submit(writer, nil, report(0)))
		r := h.end(h.submit(writer, judged(), reports(20)...))
		if n := h.loads(); n != 3 || r.GetItems().GetSucceeded() != 20 {
			t.Errorf("%d loads, %v", n, r.GetItems())
		}
		time.Sleep(2 * time.Minute) // a reason is looked for
		if got := h.incidents(); len(got) == 0 || !strings.HasPrefix(got[0], "vanished: "+writer) || !strings.Contains(got[0], judge+" failed (") {
			t.Errorf("%q", got)
		}
	}, c)
}
