package engine

import (
	"testing"
	"testing/synctest"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// No API of Ollama tells how it stores the KV cache and what it leaves free on a device, so a person says it, and the need follows.
func TestWhatOllamaIsSetToCountsInTheNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(2)
		for _, n := range f.nodes {
			n.Pools[0].Kind, n.Pools[0].ID = scheduler.PoolDevice, "gpu"
			n.Devices = []scheduler.Device{{Name: "card", Pool: "gpu", Usable: true}}
		}
		r := newRig(t, f, Options{Nodes: map[string]NodeLimits{"box-2": {KVType: "q8_0", GPUOverhead: gib}}})
		snap, err := r.e.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fits := scheduler.Fit(snap, scheduler.FitQuestion{Model: "small:8b", Context: 8192}, scheduler.Limits{}).Nodes
		plain, set := fits[0].Need, fits[1].Need
		if set.KV*64 != plain.KV*34 { // 34 bytes for 32 elements, where f16 takes 64
			t.Errorf("the cache takes %d in f16 and %d in q8_0", plain.KV, set.KV)
		}
		if set.Constant != plain.Constant+gib {
			t.Errorf("the constant is %d without and %d with a GiB left free", plain.Constant, set.Constant)
		}
	})
}
