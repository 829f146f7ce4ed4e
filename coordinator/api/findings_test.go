package api_test

import (
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator"
	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

func TestFindingsBetweenMachinesAndSettings(t *testing.T) {
	other := newMachine("cellar")
	other.report.Models[0].Digest = "zz"
	r := newRigWith(t, func(o *coordinator.Options) {
		o.Limits = scheduler.Limits{Pins: map[string][]string{"huge:70b": {"attic"}, "absent:1b": {"the attic"}, "small:1b": {"shed"}}}
		o.Nodes = map[string]engine.NodeLimits{"attic": {Reserve: 1 << 30, MaxCalls: 1}, "barn": {MaxCalls: 1}}
		o.Resources = map[string]engine.Resource{"model:small:1b": {Cap: 1}}
	}, newMachine("attic"), other)
	l := r.nodes()
	found := map[string]string{}
	for _, f := range l.GetFindings() {
		if len(f.GetNext()) == 0 {
			t.Errorf("%s says nothing to do", f.GetCode())
		}
		if f.GetCode() == "digest_conflict" && !strings.Contains(strings.Join(f.GetNext(), "\n"), "if it was made with `ollama create`, no pull helps: copy its manifest and blobs") {
			t.Errorf("of a model that is in no registry: %q", f.GetNext())
		}
		found[f.GetCode()] += f.GetModel() + " " + f.GetNode() + ";"
	}
	for code, want := range map[string]string{"digest_conflict": "small:1b ;", "pin_too_large": "huge:70b attic;", "pin_missing": "absent:1b the attic;",
		"pin_unknown": "small:1b shed;", "node_unknown": " barn;"} {
		if found[code] != want {
			t.Errorf("%s is about %q, want %q", code, found[code], want)
		}
	}
	attic := l.GetNodes()[0]
	if p := attic.GetPools(); attic.GetMaxCalls() != 1 || len(p) != 1 || p[0].GetReserveBytes() != 1<<30 || p[0].GetAvailableBytes() != 7<<30 {
		t.Errorf("the attic's limits are %d, %v", attic.GetMaxCalls(), p)
	}
	if u := l.GetResources(); len(u) != 1 || u[0].GetCap() != 1 || u[0].GetInUse() != 0 {
		t.Errorf("resources %v", u)
	}
	if e, err := r.client.Explain(t.Context(), &coordinatorv1.ExplainRequest{Subject: &coordinatorv1.ExplainRequest_Model{Model: "small:1b"}}); err != nil || len(e.GetFindings()) != 2 {
		t.Errorf("explained with %v, %v", e.GetFindings(), err)
	}
}

// Of a pool of which all is kept free no model gets anything, which is no fault of the models.
func TestAReserveThatLeavesNothingIsSaid(t *testing.T) {
	for reserve, want := range map[uint64]string{4 << 30: "", 8 << 30: "the attic keeps 8.0 GiB free in gpu, which has 8.0: no model is put there",
		20 << 30: "the attic keeps 20.0 GiB free in gpu, which has 8.0: no model is put there"} {
		r := newRigWith(t, func(o *coordinator.Options) { o.Nodes = map[string]engine.NodeLimits{"attic": {Reserve: reserve}} }, newMachine("attic"))
		got := ""
		for _, f := range r.nodes().GetFindings() {
			if f.GetCode() == "reserve_too_large" {
				got += f.GetText()
			}
		}
		if got != want {
			t.Errorf("a reserve of %d: %q", reserve, got)
		}
	}
}
