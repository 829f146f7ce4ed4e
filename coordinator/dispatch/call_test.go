package dispatch

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// Requests are canonical JSON of docs/requests.md.
func TestRequestsBecomeCalls(t *testing.T) {
	half := 0.5
	call := &workerv1.Call{RunId: "r", StepId: "3", Item: 2, Attempt: 1, Key: "k"}
	model := &workerv1.ModelSpec{Name: "qwen3:8b", Digest: "d1", Context: 4096}
	for name, c := range map[string]struct {
		kind          engine.CallKind
		request, body string
		want          proto.Message
	}{
		"generate": {engine.CallGenerate, `{"context":["the rules",{"n":1}],"max_tokens":50,"model":"small","options":{"top_k":5},"prompt":"Look at {{item}}","schema":{"type":"object"},"system":"Be brief.","temperature":0.5,"think":false}`, `"the item"`,
			&workerv1.GenerateRequest{Call: call, Model: model, System: "Be brief.", Prompt: "Look at {{item}}", Context: []*workerv1.Body{value("", "the rules"), value("", `{"n":1}`)},
				Item: value("", "the item"), SchemaJson: []byte(`{"type":"object"}`), Feedback: []string{"too long"},
				Sampling: &workerv1.Sampling{MaxTokens: 50, Temperature: &half, Seed: 9, Think: "false", OptionsJson: []byte(`{"top_k":5}`)}}},
		"a batch's item that is a value, judged later": {engine.CallGenerate, `{"evaluate":{"criteria":["it is short"],"model":"judge"},"model":"small","prompt":"p","think":"high"}`, `["a",{"b":null}]`,
			&workerv1.GenerateRequest{Call: call, Model: model, Prompt: "p", Item: value("", `["a",{"b":null}]`), Feedback: []string{"too long"}, Sampling: &workerv1.Sampling{Seed: 9, Think: "high"}}},
		"an item that is null is a value": {engine.CallGenerate, `{"model":"small","prompt":"p"}`, `null`,
			&workerv1.GenerateRequest{Call: call, Model: model, Prompt: "p", Item: value("", "null"), Feedback: []string{"too long"}, Sampling: &workerv1.Sampling{Seed: 9}}},
		"generate without item": {engine.CallGenerate, `{"model":"small","prompt":"p"}`, "",
			&workerv1.GenerateRequest{Call: call, Model: model, Prompt: "p", Feedback: []string{"too long"}, Sampling: &workerv1.Sampling{Seed: 9}}},
		"plan": {engine.CallPlan, `{"context":["c"],"goal":"Write notes","max_steps":5,"model":["planner","large"],"system":"s"}`, "",
			&workerv1.PlanRequest{Call: call, Model: model, Goal: "Write notes", Parts: []string{"Write notes"}, MaxSteps: 5, System: "s", Context: []*workerv1.Body{value("", "c")},
				Feedback: []string{"too long"}, Sampling: &workerv1.Sampling{Seed: 9}}},
		"plan with all there is": {engine.CallPlan, `{"facts":["f"],"goal":"g","inputs":["notes.md"],"leads":["l"],"lists":[{"about":"files","count":3,"name":"files"}],"model":"m","parts":["a","b"],"workers":[{"about":"writes","name":"write"},{"about":"sends","asks":true,"irreversible":true,"name":"mail"}]}`, "",
			&workerv1.PlanRequest{Call: call, Model: model, Goal: "g", Parts: []string{"a", "b"}, Inputs: []string{"notes.md"}, Facts: []string{"f"}, Leads: []string{"l"},
				Lists:    []*workerv1.PlanList{{Name: "files", Count: 3, About: "files"}},
				Workers:  []*workerv1.PlanWorker{{Name: "write", About: "writes"}, {Name: "mail", About: "sends", Irreversible: true, Asks: true}},
				Feedback: []string{"too long"}, Sampling: &workerv1.Sampling{Seed: 9}}},
		"evaluate": {engine.CallEvaluate, `{"code":[{"name":"tests","passed":true}],"criteria":["it is short",{"absence":true,"must":false,"text":"no names"}],"goal":"g","model":"judge","sources":["src"],"subject":"sub"}`, `"sub"`,
			&workerv1.EvaluateRequest{Call: call, Model: model, Questions: []*workerv1.Criterion{{Text: "it is short"}, {Text: "no names", Absence: true}}, Goal: "g", Subject: value("", "sub"), Sources: []*workerv1.Body{value("", "src")},
				Sampling: &workerv1.Sampling{Seed: 9}}},
		"embed": {engine.CallEmbed, `{"inputs":["one","two"],"model":"e"}`, "",
			&workerv1.EmbedRequest{Call: call, Model: model, Inputs: []*workerv1.Body{value("", "one"), value("", "two")}}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				if got := r.one(attempt("k", c.kind, c.request, c.body)); got.Failure != nil || got.Key != "k" {
					t.Fatalf("%+v", got)
				}
				if diff := cmp.Diff(c.want, r.m.requests()[0], protocmp.Transform()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestOutcomeIsHandedInWhole(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.m.answer = func(_ context.Context, _ proto.Message, send func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error) {
			p := &workerv1.Progress{Tokens: 7, TokensPerSecond: 3.5, Phase: "writing"}
			if err := send(&workerv1.GenerateResponse{Event: &workerv1.GenerateResponse_Progress{Progress: p}}); err != nil {
				return nil, err
			}
			return &workerv1.Outcome{Failure: &workerv1.Failure{Kind: "truncated", Message: "cut", Advice: workerv1.Advice_ADVICE_CHANGED, Next: []string{"more"}},
				Text: "half", Prompt: "p", Raw: "raw", Thinking: "hm", Report: &workerv1.Report{Model: "m", Digest: "d", OllamaVersion: "0.17.4", OutputTokens: 5, Simulated: true, Repaired: true,
					LoadNanos: 1, PromptNanos: 2, OutputNanos: 3, TotalNanos: 6, OptionsJson: []byte(`{"seed":9}`)}}, nil
		}
		want := engine.Result{Key: "k", Kind: engine.CallGenerate, Failure: &engine.Failure{Kind: "truncated", Message: "cut", Advice: engine.Changed, Next: []string{"more"}}, Text: "half", Prompt: "p", Raw: "raw", Thinking: "hm",
			Report: engine.Report{Model: "m", Digest: "d", Ollama: "0.17.4", OutputTokens: 5, Simulated: true, Repaired: true, LoadNanos: 1, PromptNanos: 2, OutputNanos: 3, TotalNanos: 6, Options: []byte(`{"seed":9}`)}}
		if diff := cmp.Diff(want, r.one(attempt("k", engine.CallGenerate, `{"prompt":"p"}`, ""))); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]engine.Progress{{Key: "k", Tokens: 7, TokensPerSecond: 3.5, Phase: "writing"}}, r.progress); diff != "" {
			t.Error(diff)
		}
	})
}

// Numbers and texts of a worker go into the books and into sums, so they are bounded.
func TestAnOutcomeThatMakesNoSenseIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		long := strings.Repeat("ü", 1<<16)
		r.m.answer = func(_ context.Context, _ proto.Message, send func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error) {
			p := &workerv1.Progress{Tokens: -7, TokensPerSecond: math.NaN(), Phase: long}
			if err := send(&workerv1.GenerateResponse{Event: &workerv1.GenerateResponse_Progress{Progress: p}}); err != nil {
				return nil, err
			}
			return &workerv1.Outcome{Failure: &workerv1.Failure{Kind: long, Message: long, Next: slices.Repeat([]string{long}, 9)},
				Report: &workerv1.Report{PromptTokens: math.MaxInt64, OutputTokens: -1, LoadNanos: math.MinInt64, TotalNanos: math.MaxInt64}}, nil
		}
		got := r.one(attempt("k", engine.CallGenerate, `{"prompt":"p"}`, ""))
		if f := got.Failure; len(f.Kind) > 1100 || len(f.Message) > 8200 || len(f.Next) != 8 || len(f.Next[7]) > 8200 {
			t.Errorf("a failure with texts of %d, %d, %d × %d bytes", len(f.Kind), len(f.Message), len(f.Next), len(f.Next[7]))
		}
		month := int64(30 * 24 * time.Hour)
		if d := cmp.Diff(engine.Report{PromptTokens: 1 << 32, TotalNanos: month}, got.Report); d != "" {
			t.Error(d)
		}
		if p := r.progress[0]; p.Tokens != 0 || p.TokensPerSecond != 0 || len(p.Phase) > 1100 {
			t.Errorf("%d tokens, %g a second", p.Tokens, p.TokensPerSecond)
		}
	})
}

func TestRefsAreOpened(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		large := strings.Repeat("The pump ran. ", 10_000) // a file beside the ledger, not a row in it
		request := `{"context":[` + r.put("rules.md", "be brief") + `],"prompt":"{{item}}"}`
		r.one(attempt("k", engine.CallGenerate, request, r.put("log.txt", large)))
		g := r.m.requests()[0].(*workerv1.GenerateRequest)
		if g.GetContext()[0].GetText() != "be brief" || g.GetContext()[0].GetName() != "rules.md" || g.GetItem().GetText() != large || g.GetItem().GetName() != "log.txt" {
			t.Errorf("%.200v", g)
		}
	})
}

func TestBodiesThatNoCallCanCarry(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		missing := strings.Repeat("0", 64)
		half := strings.Repeat("x", BodyLimit/2+1)
		for name, c := range map[string]struct{ context, body, says string }{
			"too large":          {"", r.put("big.txt", strings.Repeat("y", BodyLimit+1)), "big.txt has"},
			"too large together": {r.put("one.txt", half), r.put("two.txt", half+"!"), "the call in all has"},
			"binary":             {"", r.put("photo.tif", "II*\x00\xff"), "photo.tif is neither text"},
			"gone":               {"", `{"ref":"` + missing + `","name":"gone.txt"}`, "gone.txt"},
			"gone without name":  {"", `{"ref":"` + missing + `"}`, "artifact 000000000000"},
		} {
			got := r.one(attempt(name, engine.CallGenerate, `{"context":[`+c.context+`],"prompt":"{{item}}"}`, c.body))
			if f := got.Failure; f == nil || f.Kind != "cannot_send" || f.Advice != engine.Never || !strings.Contains(f.Message, c.says) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if n := len(r.m.requests()); n != 0 {
			t.Errorf("the worker was asked %d times", n)
		}
		if f := r.one(attempt("junk", engine.CallGenerate, `{`, "")).Failure; f == nil || f.Kind != "cannot_send" || f.Advice != engine.Never {
			t.Errorf("%+v", f)
		}
	})
}
