package serve

import (
	"testing"
	"testing/synctest"
	"time"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// ollama#17251: the list of loaded models shows a fraction of the memory that is gone. What a load says it took is measured.
func TestPSSays12GBAndTheCardLost90(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{LoadLatency: 3 * time.Second, Faults: []ollamatest.Fault{{Kind: ollamatest.PSMisreport, Probability: 1}}})
		before := r.ollama.Info().FreeBytes
		l, err := r.client.Load(t.Context(), &workerv1.LoadRequest{Model: &workerv1.ModelSpec{Name: "qwen3:8b", Context: 8192}})
		if err != nil {
			t.Fatal(err)
		}
		taken := uint64(before - r.ollama.Info().FreeBytes)
		if l.GetObservedBytes() != taken || l.GetLoaded().GetSizeBytes() > taken/5 {
			t.Errorf("observed %d of %d, the list says %d", l.GetObservedBytes(), taken, l.GetLoaded().GetSizeBytes())
		}
		again, err := r.client.Load(t.Context(), &workerv1.LoadRequest{Model: &workerv1.ModelSpec{Name: "qwen3:8b", Context: 8192}})
		if err != nil || again.ObservedBytes != nil {
			t.Errorf("what was loaded already took nothing that could be measured: %v %v", again, err)
		}
	})
}

func TestALoadIsMeasuredOnlyWhenNothingElseMoved(t *testing.T) {
	free := func(n uint64, others ...string) sight { return sight{free: n, known: true, others: others} }
	there := func(s sight) sight { s.there = true; return s }
	for name, c := range map[string]struct {
		before, after sight
		want          uint64
		known         bool
	}{
		"a load":                     {free(100, "a"), there(free(40, "a")), 60, true},
		"another model went":         {free(100, "a"), there(free(60)), 0, false},
		"another one took its place": {free(100, "a"), there(free(60, "b")), 0, false},
		"it was there":               {there(free(100)), there(free(40)), 0, false},
		"it is not there":            {free(100), free(40), 0, false},
		"memory came back":           {free(100), there(free(120)), 0, false},
		"unknown before":             {sight{}, there(free(40)), 0, false},
		"unknown after":              {free(100), there(sight{}), 0, false},
	} {
		if got, known := taken(c.before, c.after); got != c.want || known != c.known {
			t.Errorf("%s: %d %v", name, got, known)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{CPUOnly: true})
		l, err := r.client.Load(t.Context(), &workerv1.LoadRequest{Model: &workerv1.ModelSpec{Name: "qwen3:8b", Context: 8192}})
		if err != nil || l.ObservedBytes != nil {
			t.Errorf("without an accelerator nothing can be measured: %v %v", l, err)
		}
	})
}

func TestARenewalNeverLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{})
		spec := &workerv1.ModelSpec{Name: "qwen3:8b", Context: 8192}
		if k, err := r.client.Renew(t.Context(), &workerv1.RenewRequest{Model: spec}); err != nil || k.GetLoaded() || r.ollama.Loads() != 0 {
			t.Errorf("%v %v, %d loads", k, err, r.ollama.Loads())
		}
		if _, err := r.client.Load(t.Context(), &workerv1.LoadRequest{Model: spec}); err != nil {
			t.Fatal(err)
		}
		if k, err := r.client.Renew(t.Context(), &workerv1.RenewRequest{Model: spec}); err != nil || !k.GetLoaded() || r.ollama.Loads() != 1 {
			t.Errorf("%v %v, %d loads", k, err, r.ollama.Loads())
		}
	})
}
