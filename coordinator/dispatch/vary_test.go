package dispatch

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// What differs in a later try, as the worker is told.
func TestVariationsReachTheWorker(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		send := func(kind engine.CallKind, v run.Variation) proto.Message {
			a := attempt("k", kind, `{"criteria":["c"],"goal":"g","prompt":"p","think":true}`, `"s"`)
			a.Digest, a.Variation, a.Key = "probed", v, "k"+string(rune('a'+len(r.m.requests())))
			r.one(a)
			return r.m.requests()[len(r.m.requests())-1]
		}
		g := send(engine.CallGenerate, run.Variation{}).(*workerv1.GenerateRequest)
		if s := g.GetSampling(); s.GetRoom() || s.GetThink() != "true" || g.GetModel().GetMode() == nil {
			t.Errorf("an ordinary call: %v", g)
		}
		g = send(engine.CallGenerate, run.Variation{Room: true, Probe: true}).(*workerv1.GenerateRequest)
		if s := g.GetSampling(); !s.GetRoom() || s.GetThink() != "false" || g.GetModel().GetMode() != nil {
			t.Errorf("with more room, and a mode in doubt: %v", g)
		}
		p := send(engine.CallPlan, run.Variation{Rejected: json.RawMessage(`{"a_note":"n"}`)}).(*workerv1.PlanRequest)
		if string(p.GetRejectedJson()) != `{"a_note":"n"}` || !slices.Equal(p.GetFeedback(), []string{"too long"}) {
			t.Errorf("a repair: %v", p)
		}
		if e := send(engine.CallEvaluate, run.Variation{Reversed: true}).(*workerv1.EvaluateRequest); !e.GetReversed() {
			t.Errorf("a second judge: %v", e)
		}
	})
}

// A plan that does not hold comes back with what a repair needs.
func TestARejectedPlanIsHandedIn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		value := `{"rejected":{"a_note":"n"},"reasons":["cycle: s1 waits for itself"]}`
		r.m.answer = func(context.Context, proto.Message, func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error) {
			return &workerv1.Outcome{ValueJson: []byte(value), Failure: &workerv1.Failure{Kind: "plan_invalid", Advice: workerv1.Advice_ADVICE_CHANGED}}, nil
		}
		got := r.one(attempt("k", engine.CallPlan, `{"goal":"g"}`, ""))
		if got.Failure == nil || got.Failure.Kind != "plan_invalid" || string(got.Value) != value || got.Kind != engine.CallPlan {
			t.Errorf("%+v", got)
		}
	})
}

// A call is given the texts of its own kind that the run has pinned: once by value, then by hash, and by value to who lacks them.
func TestPinnedPromptsTravelOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		pinned := map[string]string{}
		for _, name := range []string{"plan_role", "check_role", "check_think", "generate_feedback"} {
			r.put("prompt "+name, "the text of "+name)
			pinned[name] = ledger.Digest([]byte("the text of " + name))
		}
		send := func(kind engine.CallKind, key string) []*workerv1.Body {
			a := attempt(key, kind, `{"criteria":["c"],"goal":"g","inputs":["x"],"prompt":"p"}`, `"s"`)
			a.Prompts = pinned
			if got := r.one(a); got.Failure != nil {
				t.Fatalf("%s: %+v", key, got.Failure)
			}
			last := r.m.requests()[len(r.m.requests())-1]
			return last.(interface{ GetCall() *workerv1.Call }).GetCall().GetPrompts()
		}
		body := func(name string, text bool) *workerv1.Body {
			b := &workerv1.Body{Name: name, Sha256: pinned[name]}
			if text {
				b.Text = proto.String("the text of " + name)
			}
			return b
		}
		for _, c := range []struct {
			kind engine.CallKind
			want []*workerv1.Body
		}{
			{engine.CallEvaluate, []*workerv1.Body{body("check_role", true), body("check_think", true)}},
			{engine.CallEvaluate, []*workerv1.Body{body("check_role", false), body("check_think", false)}},
			{engine.CallPlan, []*workerv1.Body{body("generate_feedback", true), body("plan_role", true)}},
			{engine.CallGenerate, []*workerv1.Body{body("generate_feedback", false)}},
			{engine.CallEmbed, nil},
		} {
			if diff := cmp.Diff(c.want, send(c.kind, strings.Repeat("k", len(r.m.requests())+1)), protocmp.Transform()); diff != "" {
				t.Errorf("%s: %s", c.kind, diff)
			}
		}
		lacks := true
		r.m.answer = func(_ context.Context, p proto.Message, _ func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error) {
			if lacks {
				lacks = false
				return nil, apierr.ToStatus(apierr.New(apierr.MissingArtifact, "not here"))
			}
			return &workerv1.Outcome{Text: "t"}, nil
		}
		if got := send(engine.CallEvaluate, "after a restart"); len(got) != 2 || got[0].GetText() == "" {
			t.Errorf("who lacks them gets %v", got)
		}
	})
}
