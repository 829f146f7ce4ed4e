package api_test

import (
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// A fork's limits are read as those of a run, refused before there is one, and say who set each.
func TestAForkHasItsOwnLimits(t *testing.T) {
	r := newRigWith(t, withBudgets)
	out, err := r.script(`export default async function flow() { return 1; }`, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	r.end(out.GetRunId())
	fork := func(q *coordinatorv1.ForkRunRequest) (*coordinatorv1.ForkRunResponse, *apierr.Error) {
		q.RunId = out.GetRunId()
		out, err := r.steer.ForkRun(t.Context(), q)
		return out, apierr.As(apierr.FromStatus(err))
	}
	for limit, says := range map[string]string{"colour": `there is no limit "colour"`, "calls": "makes no sense"} {
		_, err := fork(&coordinatorv1.ForkRunRequest{Limits: map[string]int64{limit: -1}, DryRun: true})
		refused(t, err, apierr.InvalidArgument, says)
	}
	_, err = fork(&coordinatorv1.ForkRunRequest{Limits: map[string]int64{"active_seconds": 9}, TimeLimitSeconds: 9})
	refused(t, err, apierr.InvalidArgument, "limited twice")
	_, err = fork(&coordinatorv1.ForkRunRequest{TimeLimitSeconds: -9})
	refused(t, err, apierr.InvalidArgument, "makes no sense")
	forked, err := fork(&coordinatorv1.ForkRunRequest{Limits: map[string]int64{"tokens": 0, "calls": 77}, TimeLimitSeconds: 60, Key: "more"})
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]*coordinatorv1.Limit{}
	for _, l := range r.end(forked.GetRunId()).GetLimits() {
		limits[l.GetName()] = l
	}
	if got := limits["calls"]; got.GetLimit() != 77 || got.GetSetBy() != "run" {
		t.Errorf("calls: %v", got)
	}
	if got := limits["active_seconds"]; got.GetLimit() != 60 || got.GetSetBy() != "run" {
		t.Errorf("active_seconds: %v", got)
	}
	if got := limits["tokens"]; got != nil {
		t.Errorf("tokens: %v", got)
	}
	again, err := fork(&coordinatorv1.ForkRunRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range r.end(again.GetRunId()).GetLimits() {
		if l.GetSetBy() != "base" {
			t.Errorf("a fork that asks for none: %v", l)
		}
	}
}

// A user's workflow that has the name of a built-in one is not taken for it.
func TestABuiltInWorkflowIsKnownByItsOrigin(t *testing.T) {
	r := newRig(t)
	own := bundle(t, `export default async function flow() { return 1; }`)
	own.Name = "map"
	out, err := r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_Bundle{Bundle: own}})
	if err != nil {
		t.Fatal(err)
	}
	if end := r.end(out.GetRunId()); end.GetWorkflow() != "map" || end.GetBuiltIn() {
		t.Errorf("a user's %s is built in: %v", end.GetWorkflow(), end.GetBuiltIn())
	}
	calls, err := r.script(`import { spawn } from "loopkeeper";
export default async function flow() { return (await spawn({ workflow: "partition", input: { workflow: "none", items: ["a"], slices: 1 } }).catch(() => 0)); }`, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range r.end(calls.GetRunId()).GetChildren() {
		if c := r.end(child); !c.GetBuiltIn() {
			t.Errorf("the child %s is not built in", c.GetWorkflow())
		}
	}
	list, lerr := r.client.ListRuns(t.Context(), &coordinatorv1.ListRunsRequest{})
	if lerr != nil {
		t.Fatal(lerr)
	}
	built := 0
	for _, v := range list.GetRuns() {
		if v.GetBuiltIn() {
			built++
		}
	}
	if built != 1 {
		t.Errorf("the list says that %d are built in", built)
	}
}
