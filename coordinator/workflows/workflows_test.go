package workflows_test

import (
	"context"
	"encoding/json"
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
	if got := workflows.List(); !slices.Equal(got, []string{"ask", "calibrate", "map", "map-reduce", "partition", "pipeline", "plan", "start", "until"}) {
		t.Errorf("list = %q", got)
	}
	const file = `{"ref":"ab","name":"a","bytes":1}`
	inputs := map[string][2][]string{ // accepted, refused
		"ask":       {{`{"request":"r","model":"m","workflows":[{"name":"map","about":"a","params":{"type":"object"}}]}`}, {`{"request":"r","model":"m","workflows":[]}`, `{"request":"","model":"m","workflows":[{"name":"n","about":"a"}]}`}},
		"calibrate": {{`{"judges":["j"],"subjects":[{"subject":"s","criterion":"c","expected":"met"},{"subject":"s","criterion":"c","expected":"not_met"}]}`}, {`{"judges":[],"subjects":[]}`}},
		"map": {
			{`{"model":"m","prompt":"p","items":["x",` + file + `]}`, `{"model":"m","prompt":"p","files":[` + file + `]}`, `{"model":"m","prompt":"p","lines":{"lines":` + file + `}}`},
			{`{"model":"m","prompt":"p","items":[]}`, `{"model":"m"}`, `{"model":"m","prompt":"p"}`, `{"model":"m","prompt":"p","items":[1],"shema":{}}`, `{"model":"m","prompt":"p","items":[1],"files":[` + file + `]}`},
		},
		"map-reduce": {{`{"model":"m","prompt":"p","items":["x"],"answer":{"type":"boolean"},"reduce":{"prompt":"r"}}`}, {`{"model":"m","prompt":"p"}`, `{"model":"m","prompt":"p","items":[1],"chunk":0}`}},
		"partition":  {{`{"workflow":"map","slices":3,"items":["a"],"input":{"model":"m"}}`}, {`{"workflow":"map","items":["a"]}`, `{"workflow":"map","slices":0,"items":["a"]}`, `{"workflow":"map","slices":1}`}},
		"pipeline":   {{`{"request":"r","knowledge":[` + file + `],"model":"m"}`}, {`{"request":"r","knowledge":[],"model":"m"}`, `{"knowledge":[` + file + `],"model":"m"}`}},
		"plan": {{planInput, `{"goal":"g","planner":"p","model":"m","inputs":[` + file + `],"workers":{"post":{"about":"sends","tool":"mail","irreversible":true,"schema":{}}},"lists":{"a":[1],"b":{"lines":` + file + `}},"people":false}`},
			{`{"goal":"","planner":"p","model":"m"}`, `{"goal":"g","planner":"p"}`, `{"goal":"g","planner":"p","model":"m","workers":{"post":{"tool":"mail"}}}`, `{"goal":"g","planner":"p","model":"m","parts":[]}`}},
		"start": {{`{"workflow":"map","inputs":[{"a":1}]}`}, {`{"workflow":"map","inputs":[]}`, `{"workflow":"map","inputs":["x"]}`, `{"workflow":"map","inputs":[{}],"names":[""]}`}},
		"until": {{`{"model":"m","task":"t","max_words":3,"start":` + file + `}`}, {`{"model":"m"}`, `{"model":"m","task":"t","rounds":0}`}},
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
