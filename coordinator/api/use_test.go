package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// use asks for a machine to be used otherwise.
func (r *rig) use(node, use string, seconds int64) (*coordinatorv1.UseNodeResponse, *apierr.Error) {
	r.t.Helper()
	out, err := r.client.UseNode(r.t.Context(), &coordinatorv1.UseNodeRequest{Node: node, Use: use, Seconds: seconds})
	return out, apierr.As(apierr.FromStatus(err))
}

func (r *rig) nodes() *coordinatorv1.ListNodesResponse {
	r.t.Helper()
	out, err := r.client.ListNodes(r.t.Context(), &coordinatorv1.ListNodesRequest{})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func TestAMachineIsDrainedPausedAndResumed(t *testing.T) {
	m := newMachine("attic")
	m.gate = make(chan struct{})
	r := newRig(t, m)
	id := r.mapOf("x")
	r.eventually("a call runs", func() bool { return r.nodes().GetNodes()[0].GetBusy() == 1 })
	out, err := r.use("the attic", "drain", 0)
	if err != nil || out.GetCalls() != 1 || out.GetNode().GetState() != "draining" || out.GetNode().GetWhy() == "" || out.GetNode().GetUntil() != nil {
		t.Errorf("drained: %v, %v", out, err)
	}
	close(m.gate)
	if v := r.end(id); v.GetState() != "completed" {
		t.Errorf("what ran there is %s", v.GetState())
	}
	out, err = r.use("attic", "pause", 3600)
	if left := time.Until(out.GetNode().GetUntil().AsTime()); err != nil || out.GetNode().GetState() != "paused" || left < 59*time.Minute || left > time.Hour {
		t.Errorf("paused: %v, %v", out, err)
	}
	if i := out.GetNode().GetIncidents(); len(i) != 2 || !strings.Contains(i[0].GetText(), "paused") {
		t.Errorf("incidents %v", i)
	}
	if out, err = r.use("attic", "resume", 0); err != nil || out.GetNode().GetState() != "up" {
		t.Errorf("resumed: %v, %v", out, err)
	}
}

func TestWhatAMachineCannotBeUsedFor(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	_, err := r.use("cellar", "drain", 0)
	refused(t, err, apierr.NotFound, "no machine is named cellar")
	_, err = r.use("attic", "sell", 0)
	refused(t, err, apierr.InvalidArgument, `not "sell"`)
	_, err = r.use("attic", "drain", 60)
	refused(t, err, apierr.InvalidArgument, "only a pause ends by itself")
	_, err = r.use("attic", "pause", -1)
	refused(t, err, apierr.InvalidArgument, "-1 seconds")
	if s := r.nodes().GetNodes()[0].GetState(); s != "up" {
		t.Errorf("the machine is %s", s)
	}
}

func TestPriorityIsPinned(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	ask := func(priority string, weight float64) (*coordinatorv1.SubmitResponse, *apierr.Error) {
		return r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: "map"}, InputJson: []byte(oneItem), Priority: priority, Weight: weight})
	}
	out, err := ask("batch", 3)
	if err != nil {
		t.Fatal(err)
	}
	if v := r.end(out.GetRunId()); v.GetPriority() != "batch" || v.GetWeight() != 3 {
		t.Errorf("the run has %s, %g", v.GetPriority(), v.GetWeight())
	}
	if out, err = ask("", 0); err != nil {
		t.Fatal(err)
	}
	if v := r.end(out.GetRunId()); v.GetPriority() != "normal" {
		t.Errorf("without one it has %s", v.GetPriority())
	}
	_, err = ask("urgent", 0)
	refused(t, err, apierr.InvalidArgument, `no priority "urgent"`)
	_, err = ask("", -1)
	refused(t, err, apierr.InvalidArgument, "weight")
}
