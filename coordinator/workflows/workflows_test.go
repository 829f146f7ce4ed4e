package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world answers the requests of a workflow, the oldest first, as a coordinator with workers would.
type world struct {
	t      *testing.T
	answer func(kind string, body map[string]any) (value string, failure *script.CallError)
	asked  []string         // "kind label", in order of requests
	waves  [][]string       // the labels of what was asked for at one time
	notes  map[string][]any // bodies of notes by kind
}

func (w *world) run(name, input string) *script.End {
	w.t.Helper()
	program, ok := workflows.Lookup(name)
	if !ok {
		w.t.Fatalf("there is no workflow %s", name)
	}
	w.notes = map[string][]any{}
	s, y, err := script.NewHost(script.Limits{}).Start(context.Background(), script.Start{Program: program, Input: json.RawMessage(input)})
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	var queue []script.Request
	for clock := time.Unix(0, 0); ; clock = clock.Add(time.Second) {
		queue = append(queue, w.take(y.Requests)...)
		if y.End != nil {
			return y.End
		}
		d := script.Delivery{Pos: queue[0].Pos, Time: clock}
		value, failure := w.answer(queue[0].Kind, decode(w.t, queue[0].Body))
		if d.Err = failure; failure == nil {
			d.Value = json.RawMessage(value)
		}
		queue = queue[1:]
		if y, err = s.Deliver(context.Background(), d); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) take(requests []script.Request) (waiting []script.Request) {
	var wave []string
	for _, r := range requests {
		body := decode(w.t, r.Body)
		if r.Note {
			w.notes[r.Kind] = append(w.notes[r.Kind], body)
			continue
		}
		label, _ := body["label"].(string)
		waiting = append(waiting, r)
		if r.Kind != "read" {
			w.asked = append(w.asked, strings.TrimSpace(r.Kind+" "+label))
			wave = append(wave, label)
		}
	}
	if len(wave) > 0 {
		w.waves = append(w.waves, wave)
	}
	return waiting
}

func decode(t *testing.T, body []byte) map[string]any {
	var value map[string]any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func (w *world) output(name string) any {
	for _, note := range w.notes["output"] {
		if body := note.(map[string]any); body["name"] == name {
			return body["value"]
		}
	}
	w.t.Fatalf("there is no output %s", name)
	return nil
}

func show(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

const planInput = `{"goal":"Write release notes","planner":"big","model":"small","attempts":2,"context":[{"bytes":9,"name":"commits.txt","ref":"c0"}]}`

// planned is a coordinator for plan.ts: a graph, texts that name their step, and verdicts by label.
func planned(t *testing.T, steps string, verdicts map[string][]string) *world {
	w := &world{t: t}
	made := 0
	w.answer = func(kind string, body map[string]any) (string, *script.CallError) {
		label, _ := body["label"].(string)
		switch kind {
		case "plan":
			return steps, nil
		case "read":
			return `"a result"`, nil
		case "generate":
			made++
			return fmt.Sprintf(`{"ref":"%s-%d","bytes":1,"name":"%s","facts":{"node":"n","model":"small","prompt_tokens":1,"output_tokens":1,"seconds":1,"simulated":true}}`, label, made, label), nil
		case "evaluate":
			verdict := "passed"
			if queue := verdicts[label]; len(queue) > 0 {
				verdict, verdicts[label] = queue[0], queue[1:]
			}
			if verdict == "fails" {
				return "", &script.CallError{Kind: "deadline", Message: "the judge was too slow"}
			}
			return fmt.Sprintf(`{"verdict":%q,"reasons":["because of %s"],"facts":[],"opinions":[]}`, verdict, verdict), nil
		}
		t.Fatalf("unexpected %s", kind)
		return "", nil
	}
	return w
}

func step(id string, external bool, writes string, needs ...string) string {
	return fmt.Sprintf(`{"id":%q,"goal":"do %s","depends_on":%s,"model":"","writes":[%s],"external":%v}`, id, id, show(append([]string{}, needs...)), writes, external)
}

func graph(order string, steps ...string) string {
	return fmt.Sprintf(`{"steps":[%s],"order":%s}`, strings.Join(steps, ","), show(strings.Split(order, "")))
}

func TestPlanRunsTheGraphInParallel(t *testing.T) {
	w := planned(t, graph("abcd", step("d", false, "", "b", "c"), step("a", false, ""), step("b", false, "", "a"), step("c", false, "", "a")), nil)
	end := w.run("plan", planInput)
	if end.Failure != nil {
		t.Fatal(end.Failure, end.Failure.Stack)
	}
	if got, want := show(w.waves), `[["plan"],["a"],["judge a"],["b","c"],["judge b"],["judge c"],["d"],["judge d"],["judge the whole"]]`; got != want {
		t.Errorf("waves %s, want %s", got, want)
	}
	if got := string(end.Value); got != `{"bytes":1,"name":"d","ref":"d-4"}` {
		t.Errorf("result = %s", got)
	}
	if got := show(w.output("evaluation")); !strings.Contains(got, `"verdict":"passed"`) {
		t.Errorf("evaluation = %s", got)
	}
	if len(w.notes["collected"]) != 0 {
		t.Errorf("collected %s", show(w.notes["collected"]))
	}
}

func TestPlanGivesAStepWhatItDependsOn(t *testing.T) {
	w := planned(t, graph("ab", step("a", false, ""), step("b", false, "", "a")), nil)
	answer := w.answer
	var contexts []string
	w.answer = func(kind string, body map[string]any) (string, *script.CallError) {
		if kind == "generate" {
			contexts = append(contexts, show(body["context"]))
		}
		return answer(kind, body)
	}
	w.run("plan", planInput)
	want := []string{`[{"bytes":9,"name":"commits.txt","ref":"c0"}]`, `[{"bytes":9,"name":"commits.txt","ref":"c0"},{"bytes":1,"name":"a","ref":"a-1"}]`}
	if !slices.Equal(contexts, want) {
		t.Errorf("contexts %q, want %q", contexts, want)
	}
}

func TestPlanSerialisesWhatMustNotRunTogether(t *testing.T) {
	w := planned(t, graph("abcde", step("a", false, `"x"`), step("b", false, `"x","y"`), step("c", true, ""), step("d", true, ""), step("e", false, `"z"`)), nil)
	w.run("plan", planInput)
	if got, want := show(w.waves[1]), `["a","c","e"]`; got != want {
		t.Errorf("the first wave is %s, want %s", got, want)
	}
	text := show(w.notes["log"])
	for _, want := range []string{"step b waits for a: both write x", "step d waits for c: both act on something outside"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %q: %s", want, text)
		}
	}
}

// TestTwoStepsRunTogetherOnlyIfAllHolds: each of the five conditions, broken alone, has the second wait and says why.
func TestTwoStepsRunTogetherOnlyIfAllHolds(t *testing.T) {
	about := func(id, goal, writes string, external bool, needs ...string) string {
		return fmt.Sprintf(`{"id":%q,"goal":%q,"depends_on":%s,"model":"","writes":%s,"external":%v}`, id, goal, show(append([]string{}, needs...)), writes, external)
	}
	cases := map[string]struct{ first, second, why string }{
		"all hold":                        {about("a", "write docs/a.md", `["docs/a.md"]`, true), about("b", "write docs/b.md", `["docs/b.md"]`, false), ""},
		"names that only begin alike":     {about("a", "write src", `["src"]`, false), about("b", "write src2/b", `["src2/b"]`, false), ""},
		"a word that contains a name":     {about("a", "x", `["log"]`, false), about("b", "make a catalog.", `[]`, false), ""},
		"an input is not determined":      {about("a", "x", `["list.txt"]`, false), about("b", "sort list.txt.", `[]`, false), "its goal names list.txt, which a writes"},
		"an input lies in what it writes": {about("a", "x", `["data"]`, false), about("b", "sort data/list.txt", `[]`, false), "its goal names data, which a writes"},
		"it changes what another reads":   {about("a", "sort list.txt", `[]`, false), about("b", "x", `["list.txt"]`, false), "it writes list.txt, which the goal of a names"},
		"one depends on the other":        {about("a", "x", `[]`, false), about("b", "y", `[]`, false, "a"), "-"},
		"a shared write":                  {about("a", "x", `["f","g"]`, false), about("b", "y", `["g"]`, false), "both write g"},
		"no places of their own":          {about("a", "x", `["docs"]`, false), about("b", "y", `["docs/b.md"]`, false), "docs/b.md and docs are not places of their own"},
		"failures are not independent":    {about("a", "x", `[]`, true), about("b", "y", `[]`, true), "both act on something outside, and what one did would stay when the other fails"},
	}
	for name, c := range cases {
		w := planned(t, graph("ab", c.first, c.second), nil)
		w.run("plan", planInput)
		want := `["a","b"]`
		if c.why != "" {
			want = `["a"]`
		}
		if got := show(w.waves[1]); got != want {
			t.Errorf("%s: the first wave is %s, want %s", name, got, want)
		}
		if text := show(w.notes["log"]); c.why != "" && c.why != "-" && !strings.Contains(text, "step b waits for a: "+c.why) || (c.why == "" || c.why == "-") && strings.Contains(text, "waits") {
			t.Errorf("%s: the log says %s", name, text)
		}
	}
}

func TestPlanSendsBackWithReasonsWithinTheBound(t *testing.T) {
	w := planned(t, graph("a", step("a", false, "")), map[string][]string{"judge a": {"sent_back"}})
	answer := w.answer
	var feedback []string
	w.answer = func(kind string, body map[string]any) (string, *script.CallError) {
		if kind == "generate" {
			feedback = append(feedback, show(body["feedback"]))
		}
		return answer(kind, body)
	}
	end := w.run("plan", planInput)
	if want := []string{"null", `["because of sent_back"]`}; !slices.Equal(feedback, want) {
		t.Errorf("feedback %q, want %q", feedback, want)
	}
	if string(end.Value) != `{"bytes":1,"name":"a","ref":"a-2"}` || len(w.notes["collected"]) != 0 {
		t.Errorf("result %s, collected %s", end.Value, show(w.notes["collected"]))
	}
}

func TestPlanCollectsFailuresAndSkipsWhatNeedsThem(t *testing.T) {
	w := planned(t, graph("abcd", step("a", false, ""), step("b", false, "", "a"), step("c", false, "", "b"), step("d", false, "")),
		map[string][]string{"judge a": {"sent_back", "sent_back"}, "judge the whole": {"sent_back"}})
	end := w.run("plan", planInput)
	if end.Failure != nil || string(end.Value) != `{"bytes":1,"name":"d","ref":"d-2"}` {
		t.Fatalf("end = %+v", end)
	}
	var states []string
	for _, s := range w.output("steps").([]any) {
		s := s.(map[string]any)
		states = append(states, fmt.Sprintf("%s %s %s", s["id"], s["status"], s["verdict"]))
	}
	if want := []string{"a failed sent_back", "b skipped skipped", "c skipped skipped", "d succeeded passed"}; !slices.Equal(states, want) {
		t.Errorf("steps %q, want %q", states, want)
	}
	got := show(w.notes["collected"])
	for _, want := range []string{
		`{"key":"a","kind":"sent_back","message":"because of sent_back"}`,
		`{"key":"b","kind":"skipped","message":"skipped, because it needs step a: because of sent_back"}`,
		`{"key":"c","kind":"skipped","message":"skipped, because it needs step b: `,
		`{"key":"whole","kind":"sent_back","message":"because of sent_back"}`,
		`"kind":"no_progress"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("collected %s\nlacks %s", got, want)
		}
	}
}

func TestPlanPutsSeveralEndsTogether(t *testing.T) {
	w := planned(t, graph("ab", step("a", false, ""), step("b", false, "")), nil)
	end := w.run("plan", planInput)
	if string(end.Value) != `{"bytes":1,"name":"assemble","ref":"assemble-3"}` {
		t.Errorf("result = %s", end.Value)
	}
}

func TestPlanWithoutASuccessfulStepHasNoResult(t *testing.T) {
	w := planned(t, graph("a", step("a", false, "")), map[string][]string{"judge a": {"needs_human"}})
	if end := w.run("plan", planInput); end.Failure != nil || string(end.Value) != "null" {
		t.Errorf("end = %+v", end)
	}
	if got := show(w.notes["collected"]); !strings.Contains(got, "needs_human") {
		t.Errorf("collected %s", got)
	}
}

func TestPlanKeepsItsResultWhenTheLastJudgeFails(t *testing.T) {
	w := planned(t, graph("a", step("a", false, "")), map[string][]string{"judge the whole": {"fails"}})
	if end := w.run("plan", planInput); end.Failure != nil || string(end.Value) != `{"bytes":1,"name":"a","ref":"a-1"}` {
		t.Errorf("end = %+v", end)
	}
	if got := show(w.notes["collected"]); !strings.Contains(got, `"kind":"deadline"`) {
		t.Errorf("collected %s", got)
	}
}

func TestMapIsOneBatch(t *testing.T) {
	w := &world{t: t}
	const delivered = `{"coverage":1,"failed":0,"items":[{"index":0,"key":"0","status":"succeeded","value":1}],"succeeded":1,"total":1}`
	var request string
	w.answer = func(kind string, body map[string]any) (string, *script.CallError) {
		request = kind + show(body)
		return delivered, nil
	}
	end := w.run("map", `{"model":"m","prompt":"Count {{item}}","items":["x"],"schema":{"type":"integer"},"evaluate":{"criteria":"right","model":"j"},"retry":{"attempts":2}}`)
	if want := `batch{"evaluate":{"criteria":["right"],"model":"j"},"items":["x"],"model":"m","prompt":"Count {{item}}","retry":{"attempts":2},"schema":{"type":"integer"}}`; request != want {
		t.Errorf("asked %s, want %s", request, want)
	}
	if string(end.Value) != delivered || show(w.output("result")) != delivered {
		t.Errorf("result = %s", end.Value)
	}
}

func TestEveryWorkflowSaysWhatItTakes(t *testing.T) {
	if got := workflows.List(); !slices.Equal(got, []string{"ask", "map", "map-reduce", "partition", "pipeline", "plan", "start", "until"}) {
		t.Errorf("list = %q", got)
	}
	const file = `{"ref":"ab","name":"a","bytes":1}`
	inputs := map[string][2][]string{ // accepted, refused
		"ask": {{`{"request":"r","model":"m","workflows":[{"name":"map","about":"a","params":{"type":"object"}}]}`}, {`{"request":"r","model":"m","workflows":[]}`, `{"request":"","model":"m","workflows":[{"name":"n","about":"a"}]}`}},
		"map": {
			{`{"model":"m","prompt":"p","items":["x",` + file + `]}`, `{"model":"m","prompt":"p","files":[` + file + `]}`, `{"model":"m","prompt":"p","lines":{"lines":` + file + `}}`},
			{`{"model":"m","prompt":"p","items":[]}`, `{"model":"m"}`, `{"model":"m","prompt":"p"}`, `{"model":"m","prompt":"p","items":[1],"shema":{}}`, `{"model":"m","prompt":"p","items":[1],"files":[` + file + `]}`},
		},
		"map-reduce": {{`{"model":"m","prompt":"p","items":["x"],"answer":{"type":"boolean"},"reduce":{"prompt":"r"}}`}, {`{"model":"m","prompt":"p"}`, `{"model":"m","prompt":"p","items":[1],"chunk":0}`}},
		"partition":  {{`{"workflow":"map","slices":3,"items":["a"],"input":{"model":"m"}}`}, {`{"workflow":"map","items":["a"]}`, `{"workflow":"map","slices":0,"items":["a"]}`, `{"workflow":"map","slices":1}`}},
		"pipeline":   {{`{"request":"r","knowledge":[` + file + `],"model":"m"}`}, {`{"request":"r","knowledge":[],"model":"m"}`, `{"knowledge":[` + file + `],"model":"m"}`}},
		"plan":       {{planInput}, {`{"goal":"","planner":"p","model":"m"}`, `{"goal":"g","planner":"p"}`}},
		"start":      {{`{"workflow":"map","inputs":[{"a":1}]}`}, {`{"workflow":"map","inputs":[]}`, `{"workflow":"map","inputs":["x"]}`, `{"workflow":"map","inputs":[{}],"names":[""]}`}},
		"until":      {{`{"model":"m","task":"t","max_words":3,"start":` + file + `}`}, {`{"model":"m"}`, `{"model":"m","task":"t","rounds":0}`}},
	}
	for _, name := range workflows.List() {
		about := described(t, name)
		if about.Description == "" {
			t.Errorf("%s has no description", name)
		}
		schema := compiled(t, about.ParamsSchema)
		for _, input := range inputs[name][0] {
			if err := schema.Validate(value(t, input)); err != nil {
				t.Errorf("%s refuses %s: %v", name, input, err)
			}
		}
		for _, input := range inputs[name][1] {
			if schema.Validate(value(t, input)) == nil {
				t.Errorf("%s accepts %s", name, input)
			}
		}
	}
}

func described(t *testing.T, name string) script.Interface {
	t.Helper()
	program, _ := workflows.Lookup(name)
	about, err := script.NewHost(script.Limits{}).Describe(context.Background(), program)
	if err != nil {
		t.Fatal(err)
	}
	return about
}

func compiled(t *testing.T, text json.RawMessage) *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	if err := c.AddResource("params.json", value(t, string(text))); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("params.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func value(t *testing.T, text string) any {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
