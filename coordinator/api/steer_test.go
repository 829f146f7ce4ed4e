package api_test

import (
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func withBudgets(o *coordinator.Options) {
	o.Default = run.Limits{Calls: 100, Tokens: 1000}
	o.Budgets = map[string]run.Limits{"flow.ts": {Calls: 5, SpawnDepth: -1}}
}

const asks = `import { all, approve, question } from "loopkeeper";
export default async function flow() {
  return all({ a: approve({ title: "a?" }), q: question({ text: "q?", choices: ["x", "y"] }) });
}`

// An answer is for what was asked, and says so when it is not; nothing is answered twice.
func TestAnswersFitWhatIsAsked(t *testing.T) {
	r := newRig(t)
	out, err := r.script(asks, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	id := out.GetRunId()
	steer := r.steer
	r.eventually("both wait", func() bool {
		w, err := steer.ListWaits(t.Context(), &coordinatorv1.ListWaitsRequest{RunId: id})
		return err == nil && len(w.GetWaits()) == 2
	})
	answer := func(q *coordinatorv1.AnswerWaitRequest) *apierr.Error {
		q.RunId = id
		_, err := steer.AnswerWait(t.Context(), q)
		return apierr.As(apierr.FromStatus(err))
	}
	refused(t, answer(&coordinatorv1.AnswerWaitRequest{Outcome: "approved"}), apierr.InvalidArgument, "several steps")
	refused(t, answer(&coordinatorv1.AnswerWaitRequest{Step: "0", Outcome: "maybe"}), apierr.InvalidArgument, "a yes or a no")
	refused(t, answer(&coordinatorv1.AnswerWaitRequest{Step: "0", AnswerJson: []byte(`"x"`)}), apierr.InvalidArgument, "a yes or a no")
	refused(t, answer(&coordinatorv1.AnswerWaitRequest{Step: "1", Outcome: "approved"}), apierr.InvalidArgument, "asks a question")
	refused(t, answer(&coordinatorv1.AnswerWaitRequest{Step: "1", AnswerJson: []byte(`x`)}), apierr.InvalidArgument, "not JSON")
	refused(t, answer(&coordinatorv1.AnswerWaitRequest{Step: "1", AnswerJson: []byte(`"z"`)}), apierr.InvalidArgument, "must be one of")
	refused(t, answer(&coordinatorv1.AnswerWaitRequest{Step: "9", Outcome: "approved"}), apierr.NotFound, "no step 9")
	refused(t, answer(&coordinatorv1.AnswerWaitRequest{Step: "-1", Outcome: "approved"}), apierr.InvalidArgument, "not a number")
	if err := answer(&coordinatorv1.AnswerWaitRequest{Step: "0", Outcome: "rejected", By: "Ann"}); err != nil {
		t.Fatal(err)
	}
	refused(t, answer(&coordinatorv1.AnswerWaitRequest{Step: "0", Outcome: "approved"}), apierr.Conflict, "waits for nobody")
	if err := answer(&coordinatorv1.AnswerWaitRequest{AnswerJson: []byte(`"x"`)}); err != nil { // the only one that is left
		t.Fatal(err)
	}
	if end := r.end(id); end.GetState() != "completed" {
		t.Errorf("the run is %s: %s", end.GetState(), end.GetError())
	}
	refused(t, answer(&coordinatorv1.AnswerWaitRequest{Outcome: "approved"}), apierr.Conflict, "nothing in run")
}

// What a fork is given in place of the base's files must be covered, and what it is not given any more must not.
func TestAForkMustCoverItsOwnFiles(t *testing.T) {
	r := newRig(t)
	a, _ := r.put("a.md", "A")
	b, _ := r.put("b.md", "B")
	ref := func(x *coordinatorv1.Ref) string {
		return `{"bytes":1,"name":"` + x.GetName() + `","ref":"` + x.GetSha256() + `"}`
	}
	out, err := r.script(`import { t } from "loopkeeper";
export const params = t.object({ files: t.files() });
export default async function flow() { return 1; }`, `{"files":[`+ref(a)+`]}`)
	if err != nil {
		t.Fatal(err)
	}
	r.end(out.GetRunId())
	forked, failed := r.steer.ForkRun(t.Context(), &coordinatorv1.ForkRunRequest{RunId: out.GetRunId(), SetJson: []byte(`{"files":[` + ref(b) + `]}`)})
	if failed != nil {
		t.Fatal(failed)
	}
	end := r.end(forked.GetRunId())
	if got := end.GetAcceptance().GetUncoveredKeys(); end.GetState() != "incomplete" || len(got) != 1 || got[0] != "b.md" {
		t.Errorf("the fork is %s, not covered are %q", end.GetState(), got)
	}
}

// What can be known of a fork is said before there is one.
func TestForksThatMakeNoSense(t *testing.T) {
	r := newRig(t)
	out, _ := r.script(`import { t, uuid, question } from "loopkeeper";
export const params = t.object({ word: t.optional(t.string()) });
export default async function flow() { await question({ text: "q?" }); return uuid(); }`, `{}`)
	id := out.GetRunId()
	fork := func(q *coordinatorv1.ForkRunRequest) *apierr.Error {
		q.RunId = id
		_, err := r.steer.ForkRun(t.Context(), q)
		return apierr.As(apierr.FromStatus(err))
	}
	refused(t, fork(&coordinatorv1.ForkRunRequest{DryRun: true}), apierr.Conflict, "has not ended")
	refused(t, fork(&coordinatorv1.ForkRunRequest{}), apierr.Conflict, "has not ended")
	r.eventually("it waits", func() bool {
		w, err := r.steer.ListWaits(t.Context(), &coordinatorv1.ListWaitsRequest{RunId: id})
		return err == nil && len(w.GetWaits()) == 1
	})
	if _, err := r.steer.AnswerWait(t.Context(), &coordinatorv1.AnswerWaitRequest{RunId: id, AnswerJson: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	r.end(id)
	refused(t, fork(&coordinatorv1.ForkRunRequest{Failed: true}), apierr.InvalidArgument, "nothing of run")
	refused(t, fork(&coordinatorv1.ForkRunRequest{Failed: true, DryRun: true}), apierr.InvalidArgument, "nothing of run")
	refused(t, fork(&coordinatorv1.ForkRunRequest{From: "0"}), apierr.InvalidArgument, "takes nothing over")
	refused(t, fork(&coordinatorv1.ForkRunRequest{From: "x"}), apierr.InvalidArgument, "not a number")
	refused(t, fork(&coordinatorv1.ForkRunRequest{From: "7"}), apierr.NotFound, "no step 7")
	refused(t, fork(&coordinatorv1.ForkRunRequest{SetJson: []byte(`[1]`)}), apierr.InvalidArgument, "no JSON object")
	refused(t, fork(&coordinatorv1.ForkRunRequest{SetJson: []byte(`{"word":7}`)}), apierr.InvalidArgument, "/word")
	if err := fork(&coordinatorv1.ForkRunRequest{SetJson: []byte(`{"word":"x"}`), DryRun: true}); err != nil {
		t.Error(err)
	}
	if err := fork(&coordinatorv1.ForkRunRequest{Key: "again"}); err != nil {
		t.Error(err)
	}
}
