package serve

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/proto/prompts"
	"github.com/loopkeeper/loopkeeper/worker/calls"
	"github.com/loopkeeper/loopkeeper/worker/calls/modes"
	"github.com/loopkeeper/loopkeeper/worker/calls/plan"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

func TestGenerateTellsProgressAndThenTheText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{DecodeRate: 10, LoadLatency: time.Second})
		out, told, err := r.generate(t.Context(), request("k"))
		if err != nil {
			t.Fatal(err)
		}
		if out.GetFailure() != nil || out.GetText() == "" || out.GetValueJson() != nil || out.GetRaw() == "" || !strings.Contains(out.GetPrompt(), "twelve hours") {
			t.Errorf("outcome %v", out)
		}
		if len(told) < 2 || told[0].GetPhase() != "prompt" || !slices.IsSortedFunc(told, func(a, b *workerv1.Progress) int { return int(a.GetTokens() - b.GetTokens()) }) {
			t.Errorf("progress %v", told)
		}
		if last := told[len(told)-1]; last.GetPhase() != "writing" || last.GetTokensPerSecond() < 9 || last.GetTokensPerSecond() > 11 {
			t.Errorf("at ten tokens a second it says %v", last)
		}
		rep := out.GetReport()
		if rep.GetModel() != "qwen3:8b" || rep.GetDigest() == "" || rep.GetOllamaVersion() != ollamatest.DefaultVersion || !rep.GetSimulated() ||
			rep.GetOutputTokens() == 0 || rep.GetOutputNanos() == 0 || rep.GetDoneReason() != "stop" || !json.Valid(rep.GetOptionsJson()) {
			t.Errorf("report %v", rep)
		}
		if c := r.ollama.Calls()[0]; c.Options["num_ctx"] != 4096.0 || c.Options["num_predict"] != 200.0 || c.Options["seed"] != 7.0 {
			t.Errorf("sent %v", c.Options)
		}
	})
}

func TestGenerateValueIsValidAgainstItsSchema(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	g := request("k")
	g.SchemaJson = []byte(`{"type":"object","properties":{"summary":{"type":"string"}},"required":["summary"]}`)
	out := r.mustGenerate(t, g)
	var v struct{ Summary *string }
	if err := json.Unmarshal(out.GetValueJson(), &v); err != nil || v.Summary == nil || out.GetText() != "" || out.GetFailure() != nil {
		t.Errorf("%v %v", err, out)
	}
}

func TestOptions(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	g := request("k")
	g.Model.Context, g.Sampling.MaxTokens = 0, 0
	g.Sampling.OptionsJson = []byte(`{"num_ctx":2048,"num_predict":50,"seed":3,"temperature":0.5,"top_p":0.9,"top_k":20}`)
	r.mustGenerate(t, g)
	want := map[string]any{"num_ctx": 2048.0, "num_predict": 50.0, "seed": 3.0, "temperature": 0.5, "top_p": 0.9, "top_k": 20.0}
	for k, v := range want {
		if got := r.ollama.Calls()[0].Options[k]; got != v {
			t.Errorf("%s is %v, want %v", k, got, v)
		}
	}
	half := 0.25
	g = request("fields win")
	g.Sampling.Temperature, g.Sampling.OptionsJson = &half, []byte(`{"num_ctx":2048,"num_predict":50,"temperature":0.5}`)
	r.mustGenerate(t, g)
	if o := r.ollama.Calls()[1].Options; o["num_ctx"] != 4096.0 || o["num_predict"] != 200.0 || o["temperature"] != 0.25 {
		t.Errorf("sent %v", o)
	}
	for _, bad := range []string{`{"mirostat":2}`, `{"top_k":"many"}`, `[]`} {
		g := request("bad")
		g.Sampling.OptionsJson = []byte(bad)
		_, _, err := r.generate(t.Context(), g)
		e := apierr.As(apierr.FromStatus(err))
		if e.Code != apierr.InvalidArgument || !strings.HasPrefix(e.Message, "options: ") || len(e.Next) != 1 {
			t.Errorf("%s: %+v", bad, e)
		}
		if strings.Contains(bad, "mirostat") && !strings.Contains(e.Message, "mirostat") {
			t.Errorf("it does not name the key: %s", e.Message)
		}
	}
	for said, is := range map[string]string{"": "", "true": "on", "false": "off", "high": "high"} {
		if got, err := think(said); err != nil || string(got) != is {
			t.Errorf("think %q is %q, %v", said, got, err)
		}
	}
	if _, err := think("hard"); apierr.CodeOf(err) != apierr.InvalidArgument {
		t.Errorf("think hard: %v", err)
	}
}

func TestCallsThatSayTooLittleAreRefused(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	noKey, noModel := request(""), request("k")
	noModel.Model = nil
	for _, g := range []*workerv1.GenerateRequest{noKey, noModel, {}} {
		if _, _, err := r.generate(t.Context(), g); apierr.CodeOf(apierr.FromStatus(err)) != apierr.InvalidArgument {
			t.Errorf("%v: %v", g, err)
		}
	}
	e := &workerv1.EvaluateRequest{Call: noModel.Call, Model: noKey.Model, Questions: []*workerv1.Criterion{{Text: "it is short"}}}
	if _, err := r.client.Evaluate(t.Context(), e); apierr.CodeOf(apierr.FromStatus(err)) != apierr.InvalidArgument {
		t.Errorf("no subject: %v", err)
	}
}

// asked are the calls without those that probe how to call.
func asked(r *rig) []ollamatest.Call {
	return slices.DeleteFunc(r.ollama.Calls(), func(c ollamatest.Call) bool { return c.Prompt == modes.Prompt })
}

func TestPlan(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	g := request("p")
	p, err := r.client.Plan(t.Context(), &workerv1.PlanRequest{Call: g.Call, Model: g.Model, Goal: "Write release notes for version 12 from commits.txt",
		Context: []*workerv1.Body{body("fix: the seal")}, MaxSteps: 5, Inputs: []string{"commits.txt"}, Parts: []string{"Read commits.txt", "Write release notes for version 12"}})
	if err != nil {
		t.Fatal(err)
	}
	var v plan.Plan
	d := json.NewDecoder(bytes.NewReader(p.GetOutcome().GetValueJson()))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %v", err, p.GetOutcome())
	}
	if v.Outcome != plan.Planned || len(v.Steps) == 0 || len(v.Order) != len(v.Steps) {
		t.Fatalf("%v", p)
	}
	if n := len(asked(r)); n != 2 {
		t.Errorf("%d calls for a plan", n)
	}
}

// A plan that does not hold comes with what a repair is asked for with.
func TestPlanThatDoesNotHoldCanBeRepaired(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	raw := `{"a_note":"x"}`
	p := r.server.planResponse(calls.PlanResult{Outcome: calls.Outcome{Kind: calls.PlanInvalid, Text: raw, Message: "the plan does not hold: cycle: x", Reasons: []string{"cycle: x", "numbers: y"}}})
	if p.GetOutcome().GetFailure().GetKind() != "plan_invalid" || string(p.GetOutcome().GetValueJson()) != `{"rejected":`+raw+`,"reasons":["cycle: x","numbers: y"]}` {
		t.Errorf("%v", p)
	}
}

func TestEvaluate(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	g := request("e")
	source := body("The log says: seal worn at 02:14.")
	source.Name = "log.txt"
	e, err := r.client.Evaluate(t.Context(), &workerv1.EvaluateRequest{Call: g.Call, Model: g.Model, Goal: "Summarise the log",
		Questions: []*workerv1.Criterion{{Text: "it names the seal"}, {Text: "no word is wrong", Absence: true}},
		Subject:   body("A worn seal stopped the pump."), Sources: []*workerv1.Body{source}})
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Answers []struct {
			Criterion, Counted string
			Quotes             []struct{ Quote, In string }
		}
		Flags []string
		Empty *bool
		Lines int
	}
	if err := json.Unmarshal(e.GetOutcome().GetValueJson(), &v); err != nil {
		t.Fatalf("%v in %v", err, e.GetOutcome())
	}
	if len(v.Answers) != 2 || v.Answers[1].Criterion != "no word is wrong" || v.Answers[0].Counted != "met" || v.Answers[0].Quotes[0].In != "subject" ||
		v.Lines != 1 || v.Flags == nil || v.Empty == nil {
		t.Errorf("%v", e)
	}
	for _, c := range asked(r) {
		if !strings.Contains(c.Prompt, "Summarise the log") || !strings.Contains(c.Prompt, "## Source log.txt") || !strings.Contains(c.Prompt, "seal worn at 02:14") {
			t.Errorf("the judge does not see goal and source: %s", c.Prompt)
		}
	}
}

func TestAnEmptySubjectAsksNoModel(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	g := request("e")
	e, err := r.client.Evaluate(t.Context(), &workerv1.EvaluateRequest{Call: g.Call, Model: g.Model, Questions: []*workerv1.Criterion{{Text: "it is good"}}, Subject: body("Solution:")})
	if err != nil || e.GetOutcome().GetFailure() != nil || string(e.GetOutcome().GetValueJson()) != `{"answers":[],"flags":[],"empty":true,"lines":0}` || r.ollama.Counts().Succeeded != 0 {
		t.Errorf("%v %v", err, e)
	}
}

// The texts that a run pins come by hash, are used, and are checked.
func TestPinnedPrompts(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	ask := func(key string, b *workerv1.Body) error {
		g := request(key)
		g.Call.Prompts = []*workerv1.Body{b}
		_, err := r.client.Evaluate(t.Context(), &workerv1.EvaluateRequest{Call: g.Call, Model: g.Model, Questions: []*workerv1.Criterion{{Text: "it names the seal"}}, Subject: body("A worn seal.")})
		return apierr.FromStatus(err)
	}
	role := body("You are strict.")
	role.Name = prompts.CheckRole
	byHash := proto.Clone(role).(*workerv1.Body)
	byHash.Text = nil
	if e := apierr.As(ask("1", byHash)); e.Code != apierr.MissingArtifact || !slices.Equal(e.Details, []string{role.GetSha256()}) {
		t.Errorf("%v", e)
	}
	if err := ask("2", role); err != nil {
		t.Fatal(err)
	}
	if err := ask("2", byHash); err != nil { // the same call, by hash: the kept result
		t.Errorf("%v", err)
	}
	if err := ask("3", byHash); err != nil {
		t.Errorf("%v", err)
	}
	for i, c := range asked(r) {
		if !strings.HasPrefix(c.Prompt, "You are strict.\n\n") || i > 3 {
			t.Errorf("call %d: %s", i, c.Prompt)
		}
	}
	bad := body("No answers are named.")
	bad.Name = prompts.CheckThink
	if e := apierr.As(ask("4", bad)); e.Code != apierr.InvalidArgument || !strings.Contains(e.Message, "check_think.txt") {
		t.Errorf("%v", e)
	}
}

func TestEmbed(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	e, err := r.client.Embed(t.Context(), &workerv1.EmbedRequest{Call: &workerv1.Call{Key: "v"}, Model: &workerv1.ModelSpec{Name: "nomic-embed-text", Context: 2048},
		Inputs: []*workerv1.Body{body("one"), body("two")}})
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ Vectors [][]float64 }
	if err := json.Unmarshal(e.GetOutcome().GetValueJson(), &v); err != nil || len(v.Vectors) != 2 || len(v.Vectors[0]) == 0 || slices.Equal(v.Vectors[0], v.Vectors[1]) {
		t.Errorf("%v %v", err, e.GetOutcome().GetFailure())
	}
	if e.GetOutcome().GetReport().GetModel() != "nomic-embed-text" {
		t.Errorf("report %v", e.GetOutcome().GetReport())
	}
}

func TestFailuresComeWithAdviceAndNext(t *testing.T) {
	long := strings.Repeat("The pump ran for twelve hours. ", 4000)
	schema := []byte(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`)
	for _, c := range []struct {
		kind   string
		advice workerv1.Advice
		next   string // part of the first
		fault  ollamatest.FaultKind
		change func(*workerv1.GenerateRequest)
	}{
		{"empty_turn", workerv1.Advice_ADVICE_CHANGED, "", ollamatest.EmptyTurn, nil},
		{"truncated", workerv1.Advice_ADVICE_CHANGED, "max_tokens", ollamatest.Truncated, nil},
		{"stream_broken", workerv1.Advice_ADVICE_CHANGED, "", ollamatest.StreamBroken, nil},
		{"server_error", workerv1.Advice_ADVICE_OTHER_NODE, "", ollamatest.HTTP500, nil},
		{"busy", workerv1.Advice_ADVICE_OTHER_NODE, "", ollamatest.HTTP503, nil},
		{"out_of_memory", workerv1.Advice_ADVICE_OTHER_NODE, "explain qwen3:8b", ollamatest.OutOfMemory, nil}, // the runner died while it loaded
		{"out_of_memory", workerv1.Advice_ADVICE_OTHER_NODE, "explain qwen3:8b", "", func(g *workerv1.GenerateRequest) { g.Model.Context = 40960 }},
		{"text_instead_of_structure", workerv1.Advice_ADVICE_CHANGED, "schema", ollamatest.TextForValue, func(g *workerv1.GenerateRequest) { g.SchemaJson = schema }},
		{"schema_violation", workerv1.Advice_ADVICE_CHANGED, "schema", ollamatest.SchemaViolation, func(g *workerv1.GenerateRequest) { g.SchemaJson = schema }},
		{"model_missing", workerv1.Advice_ADVICE_OTHER_NODE, "ollama pull nope:1b", "", func(g *workerv1.GenerateRequest) { g.Model.Name = "nope:1b" }},
		{"model_missing", workerv1.Advice_ADVICE_OTHER_NODE, "ollama pull", "", func(g *workerv1.GenerateRequest) { g.Model.Digest = strings.Repeat("0", 64) }},
		{"input_too_long", workerv1.Advice_ADVICE_NEVER, "split", "", func(g *workerv1.GenerateRequest) { g.Item = body(long) }},
		{"bad_request", workerv1.Advice_ADVICE_NEVER, "", "", func(g *workerv1.GenerateRequest) { g.Prompt = "{{other}}" }},
		{"bad_schema", workerv1.Advice_ADVICE_NEVER, "schema", "", func(g *workerv1.GenerateRequest) { g.SchemaJson = []byte(`{"type":"nonsense"}`) }},
	} {
		t.Run(c.kind, func(t *testing.T) {
			r := newRig(t, ollamatest.Config{Memory: 6 << 30, HostMemory: 1 << 30}) // enough at the context of request
			if c.fault != "" {
				r.ollama.SetFaults(ollamatest.Fault{Kind: c.fault, Probability: 1})
			}
			g := request("k")
			if c.change != nil {
				c.change(g)
			}
			f := r.mustGenerate(t, g).GetFailure()
			if f.GetKind() != c.kind || f.GetAdvice() != c.advice || f.GetMessage() == "" {
				t.Fatalf("%v", f)
			}
			if c.next == "" && len(f.GetNext()) > 0 || c.next != "" && (len(f.GetNext()) == 0 || !strings.Contains(f.GetNext()[0], c.next)) {
				t.Errorf("next is %q", f.GetNext())
			}
		})
	}
}

func TestFailureNamesEveryReason(t *testing.T) {
	got := message(calls.Outcome{Message: "the plan does not hold: a cycle", Reasons: []string{"a cycle", "no goal"}})
	if got != "the plan does not hold: a cycle; no goal" {
		t.Error(got)
	}
}

func TestDeadlineEndsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{DecodeRate: 1})
		start := time.Now()
		g := request("k")
		g.Call.DeadlineSeconds = 5
		f := r.mustGenerate(t, g).GetFailure()
		if f.GetKind() != "deadline" || f.GetAdvice() != workerv1.Advice_ADVICE_AGAIN || time.Since(start) != 5*time.Second {
			t.Errorf("after %s: %v", time.Since(start), f)
		}
		g = request("never")
		g.Call.DeadlineSeconds = 1 << 60
		if f := r.mustGenerate(t, g).GetFailure(); f != nil {
			t.Errorf("a deadline beyond all times: %v", f)
		}
	})
}
