package api_test

import (
	"strings"
	"testing"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func TestInfo(t *testing.T) {
	m := newMachine("attic")
	m.gate = make(chan struct{})
	r := newRig(t, m)
	r.mapOf("x")
	i, err := r.client.Info(t.Context(), &coordinatorv1.InfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if i.GetVersion() != "0.1.0" || i.GetFleet() != "home" || i.GetName() != "here" || i.GetDataDir() != "/data" || i.GetDiscovery() != "off" ||
		!i.GetSimulated() || i.GetNodesUp() != 1 || i.GetRunsActive() != 1 {
		t.Errorf("info is %v", i)
	}
	bare, err := newRig(t).client.Info(t.Context(), &coordinatorv1.InfoRequest{})
	if err != nil || bare.GetSimulated() || bare.GetNodesUp() != 0 {
		t.Errorf("without nodes info is %v, %v", bare, err)
	}
}

func TestListNodes(t *testing.T) {
	m := newMachine("attic")
	m.gate = make(chan struct{})
	r := newRig(t, m, newMachine("cellar"))
	r.mapOf("x")
	r.eventually("a call runs", func() bool {
		l, err := r.client.ListNodes(t.Context(), &coordinatorv1.ListNodesRequest{})
		return err == nil && len(l.GetNodes()) == 2 && l.GetNodes()[0].GetBusy()+l.GetNodes()[1].GetBusy() >= 1 || strings.Contains(l.String(), "completed")
	})
	l, err := r.client.ListNodes(t.Context(), &coordinatorv1.ListNodesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	a := l.GetNodes()[0]
	if a.GetId() != "attic" || a.GetName() != "the attic" || a.GetState() != "up" || a.GetAddress() != "attic" || a.GetFoundBy() != "static" ||
		a.GetVersion() != "0.1.0" || !a.GetSimulated() || a.GetLastSeen() == nil || len(a.GetReport().GetModels()) != 2 || a.GetProblem() != "" {
		t.Errorf("the node is %v", a)
	}
	if c := a.GetClaims(); len(c) != 1 || c[0].GetModel() != "small:1b" || c[0].GetBytes() == 0 || c[0].GetContext() != 4096 {
		t.Errorf("the claims are %v", c)
	}
}
