package api_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// pull has machines download a model: the last word of each, by name, and how it ended.
func (r *rig) pull(q *coordinatorv1.PullModelRequest) (map[string]*coordinatorv1.PullModelResponse, *apierr.Error) {
	r.t.Helper()
	stream, err := r.client.PullModel(r.t.Context(), q)
	last := map[string]*coordinatorv1.PullModelResponse{}
	for err == nil {
		var m *coordinatorv1.PullModelResponse
		if m, err = stream.Recv(); err == nil {
			last[m.GetNode()] = m
		}
	}
	if errors.Is(err, io.EOF) {
		return last, nil
	}
	return last, apierr.As(apierr.FromStatus(err))
}

func TestPullTellsHowEachMachineFared(t *testing.T) {
	r := newRig(t, newMachine("attic"), newMachine("cellar"))
	last, err := r.pull(&coordinatorv1.PullModelRequest{Model: "new:1b", Everywhere: true})
	if err != nil || len(last) != 2 || !last["the attic"].GetDone() || !last["the cellar"].GetDone() {
		t.Errorf("everywhere: %v, %v", last, err)
	}
	for _, n := range r.nodes().GetNodes() { // what is done is reported
		if len(n.GetReport().GetModels()) != 3 || len(n.GetPulls()) != 0 {
			t.Errorf("%s has %v", n.GetName(), n.GetReport().GetModels())
		}
	}
	last, err = r.pull(&coordinatorv1.PullModelRequest{Model: "broken:1b", Nodes: []string{"attic", "the attic"}})
	if m := last["the attic"]; err != nil || len(last) != 1 || m.GetDone() || !strings.Contains(m.GetError(), "no such model") || len(m.GetNext()) != 1 {
		t.Errorf("of a model that is none: %v, %v", last, err)
	}
	for _, c := range []struct {
		q    *coordinatorv1.PullModelRequest
		code apierr.Code
		says string
	}{
		{&coordinatorv1.PullModelRequest{Model: "new:1b"}, apierr.InvalidArgument, "no machine is named"},
		{&coordinatorv1.PullModelRequest{Nodes: []string{"attic"}}, apierr.InvalidArgument, "no name of a model"},
		{&coordinatorv1.PullModelRequest{Model: "new:1b", Nodes: []string{"attic"}, Everywhere: true}, apierr.InvalidArgument, "everywhere"},
		{&coordinatorv1.PullModelRequest{Model: "new:1b", Nodes: []string{"shed"}}, apierr.NotFound, "shed"},
	} {
		_, err := r.pull(c.q)
		refused(t, err, c.code, c.says)
	}
}

func TestADownloadIsSeenWhileItIsMade(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	stream, err := r.client.PullModel(t.Context(), &coordinatorv1.PullModelRequest{Model: "slow:1b", Nodes: []string{"attic"}})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := stream.Recv(); err != nil || m.GetPull().GetCompletedBytes() != 50 || m.GetPull().GetTotalBytes() != 100 {
		t.Fatalf("told %v, %v", m, err)
	}
	if p := r.nodes().GetNodes()[0].GetPulls(); len(p) != 1 || p[0].GetModel() != "slow:1b" || p[0].GetTotalBytes() != 100 {
		t.Errorf("under way: %v", p)
	}
	r.c.Stop() // a coordinator that stops ends it
	r.c = nil
	if _, err := stream.Recv(); err == nil {
		t.Error("the stream goes on")
	}
}
