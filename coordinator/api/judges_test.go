package api_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loopkeeper/loopkeeper/coordinator"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/proto/prompts"
)

// A role is admitted while one of its models can be used; what cannot is said, and nobody is left without a reason.
func TestRolesAreAdmittedShownAndLookedAfter(t *testing.T) {
	roles := map[string][]run.RoleModel{"judge": {{Model: "small:1b"}, {Model: "gone:7b"}}, "planner": {{Model: "gone:70b"}}}
	r := newRigWith(t, func(o *coordinator.Options) {
		o.Roles, o.Prompts = roles, prompts.Set{prompts.CheckRole: "You look closely."}
	}, newMachine("a"))
	dry := func(model string) (*coordinatorv1.SubmitResponse, *apierr.Error) {
		return r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: "map"}, InputJson: []byte(`{"model":"` + model + `","prompt":"p","items":["x"]}`),
			Models: []string{model}, DryRun: true})
	}
	if out, err := dry("judge"); err != nil || !slices.ContainsFunc(out.GetNotes(), func(n string) bool { return strings.Contains(n, "goes on without gone:7b") }) {
		t.Errorf("the role judge: %v, notes %q", err, out.GetNotes())
	}
	if _, err := dry("planner"); err == nil || err.Code != apierr.NotFound || !strings.Contains(err.Message, "no model of the role planner can be used") || len(err.Next) == 0 {
		t.Errorf("the role planner: %v", err)
	}
	if _, err := dry("judges"); err == nil || !strings.HasSuffix(err.Message, "; roles are judge, planner") {
		t.Errorf("a role that is mistyped: %v", err)
	}
	nodes, err := r.client.ListNodes(t.Context(), &coordinatorv1.ListNodesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range nodes.GetFindings() {
		found = append(found, f.GetCode())
	}
	if want := []string{"role_without_model", "judges_one_family", "judges_uncalibrated"}; !slices.Equal(found, want) || len(nodes.GetRoles()) != 2 {
		t.Errorf("findings %q, want %q; roles %v", found, want, nodes.GetRoles())
	}

	out, failure := r.script(`export default async function flow() { return 1; }`, `{}`)
	if failure != nil {
		t.Fatal(failure)
	}
	view := r.end(out.GetRunId())
	if len(view.GetRoles()) != 2 || view.GetRoles()[0].GetModels()[1] != "gone:7b" || len(view.GetPrompts()) != 1 || view.GetPrompts()[0].GetName() != prompts.CheckRole {
		t.Errorf("the run shows %v and %v", view.GetRoles(), view.GetPrompts())
	}
	for _, id := range []string{"", out.GetRunId()} {
		list, err := r.judges.ListPrompts(t.Context(), &coordinatorv1.ListPromptsRequest{RunId: id})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.GetPrompts() {
			if p.GetChanged() != (p.GetName() == prompts.CheckRole) || p.GetChanged() && p.GetText() != "You look closely." {
				t.Errorf("%q: %s is %q, changed %t", id, p.GetName(), p.GetText(), p.GetChanged())
			}
		}
		if len(list.GetPrompts()) != len(prompts.Names()) {
			t.Errorf("%q: %d prompts", id, len(list.GetPrompts()))
		}
	}
	if _, err := r.judges.KeepCalibration(t.Context(), &coordinatorv1.KeepCalibrationRequest{RunId: out.GetRunId()}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a run that measured nobody: %v", err)
	}
	if list, err := r.judges.ListJudges(t.Context(), &coordinatorv1.ListJudgesRequest{}); err != nil || len(list.GetJudges()) != 0 || len(list.GetUncalibrated()) != 2 {
		t.Errorf("%v %v", list, err)
	}
}
