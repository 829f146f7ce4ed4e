package run

import (
	"encoding/json"
	"strings"
	"testing"
)

// What every item would fail on is refused once, when the step is asked for.
func TestPromptsThatNoWorkerCouldFill(t *testing.T) {
	for _, tc := range []struct{ kind, body, want string }{
		{KindBatch, `{"model":"m","prompt":"Sum {{item}}, {{ item }}","items":["a"]}`, ""},
		{KindBatch, `{"model":"m","prompt":"no place for it","items":["a"]}`, ""},
		{KindGenerate, `{"model":"m","prompt":"{ {item} } and {{item}}","item":"{{name}}"}`, ""},
		{KindBatch, `{"model":"m","prompt":"Sum {{file}}","items":["a"]}`, "unknown placeholder {{file}}"},
		{KindBatch, `{"model":"m","prompt":" \n","items":["a"]}`, "the prompt is empty"},
		{KindGenerate, `{"model":"m","prompt":"Sum {{item}}"}`, "there is no item"},
		{KindPlan, `{"model":"m","goal":"{{anything}}"}`, ""},
	} {
		_, err := parseSpec(tc.kind, json.RawMessage(tc.body), nil)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s %s: got %v, want %q", tc.kind, tc.body, err, tc.want)
		}
	}
}

// An output without a value, as an older library let through, is null in every view.
func TestAnOutputWithoutAValueIsNull(t *testing.T) {
	s := &State{names: map[string]string{}}
	if err := s.noted(&OutputNoted{Pos: 0, Body: json.RawMessage(`{"name":"x","sources":[]}`)}, birth); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(s.Outputs); err != nil || !strings.Contains(string(got), `"value":null`) {
		t.Errorf("%s, %v", got, err)
	}
}

// What makes no sense is refused by the name of its field, when the step is asked for; nothing is ignored and no text of a
// decoder reaches the user.
func TestFieldsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct{ kind, more, want string }{
		{KindGenerate, `"retry":{"attempts":0}`, "generate.retry.attempts must be a whole number from 1 to 1000, and is 0"},
		{KindGenerate, `"retry":{"attempts":-1}`, "generate.retry.attempts must be"},
		{KindBatch, `"retry":{"attempts":1e9}`, "batch.retry.attempts must be"},
		{KindBatch, `"retry":{"attempts":1.5}`, "batch.retry.attempts must be"},
		{KindGenerate, `"retry":{"tries":2}`, `generate.retry has no field "tries"; it has attempts`},
		{KindGenerate, `"max_tokens":0`, "generate.max_tokens must be a whole number from 1 to 10000000, and is 0"},
		{KindGenerate, `"max_tokens":1000000000000`, "generate.max_tokens must be"},
		{KindGenerate, `"temperature":-0.1`, "generate.temperature must be a number that is not negative, and is -0.1"},
		{KindGenerate, `"options":{"num_ctx":"8k"}`, `generate.options.num_ctx must be a whole number from 1 to 10000000, and is "8k"`},
		{KindGenerate, `"shema":{}`, `generate has no field "shema"; it has check, context, evaluate, feedback, images, item, label, max_tokens, model, options, prompt, retry, reuse, schema,`},
		{KindGenerate, `"label":7`, "generate.label must be a text, and is 7"},
		{KindBatch, `"keys":["a",1]`, "batch.keys[1] must be a text, and is 1"},
		{KindBatch, `"items":"a"`, `batch.items must be an array or {lines: ref}, and is "a"`},
		{KindGenerate, `"evaluate":{"criteria":["x"],"modell":"m"}`, `generate.evaluate has no field "modell"; it has criteria, model`},
		{KindPlan, `"max_steps":0`, "plan.max_steps must be"},
		{KindPlan, `"models":["a"]`, `plan has no field "models"`},
		{KindPlan, `"workers":[{"name":"w","can":"x"}]`, `plan.workers[0] has no field "can"; it has about, asks, irreversible, name`},
		{KindEvaluate, `"criteria":[{"text":"c","must":"yes"}]`, "evaluate.criteria[0].must must be true or false"},
		{KindEvaluate, `"criteria":[7]`, "evaluate.criteria[0] must be a text, and is 7"},
		{KindEvaluate, `"criteria":[]`, "evaluate.criteria: no criterion is given"},
		{KindEvaluate, `"subject":"s"`, "evaluate: no criterion is given"},
		{KindEvaluate, `"criteria":["c",{"must":false}]`, "evaluate.criteria[1] has no text"},
		{KindEvaluate, `"code":[{"name":"","passed":true}],"criteria":["c"," "]`, "evaluate.code[0].name is empty"},
		{KindGenerate, `"model":[]`, "generate.model must name 1 to 16 models, and has 0"},
		{KindGenerate, `"model":["a",1]`, "generate.model[1] must be a text, and is 1"},
		{KindGenerate, `"model":["a",""]`, "generate: no model is named"},
		{KindEvaluate, `"context":[]`, `evaluate has no field "context"`},
		{KindGenerate, `"images":"a"`, "generate.images must be an array"},
		{KindGenerate, `"images":["a.png"]`, `generate.images[0] must be an object, and is "a.png"`},
		{KindBatch, `"images":[{"name":"a.png"}]`, "batch.images[0] must be a reference to an image, and is"},
		{KindGenerate, `"images":[` + strings.Repeat(`{"ref":"x"},`, 16) + `{"ref":"x"}]`, "generate.images has 17 images, a call carries at most 16"},
		{KindGenerate, `"images":[{"bytes":10000000,"ref":"x"},{"bytes":6777217,"ref":"y"}]`, "generate.images has 16777217 bytes in all, a call carries at most 16777216"},
		{KindPlan, `"images":[]`, `plan has no field "images"`},
		{KindGenerate, `"images":[{"bytes":10000000,"name":"a.png","ref":"x"},{"bytes":6777216,"ref":"y"}]`, ""},
		{KindEmbed, `"inputs":["a"],"label":"x"`, ""},
		{KindGenerate, `"retry":{"attempts":12},"max_tokens":50,"temperature":0,"think":"high","options":{"num_ctx":8192,"top_k":5},"item":{"anything":1},"system":null`, ""},
	} {
		body := `{"model":"m","prompt":"p","items":["a"],` + c.more + `}`
		switch c.kind {
		case KindGenerate:
			body = `{"model":"m","prompt":"p",` + c.more + `}`
		case KindPlan, KindEvaluate, KindEmbed:
			body = `{"model":"m",` + c.more + `}`
		}
		s := &State{}
		p := Request{Kind: c.kind, Body: json.RawMessage(body)}.payload().(*Requested)
		if err := s.requested(p, birth); err != nil {
			t.Fatal(err)
		}
		got := ""
		if f := s.Requests[0].Failure; f != nil {
			got = f.Message
		}
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", body, got, c.want)
		}
	}
}

// Criteria of which none must hold would pass everything.
func TestSomethingMustHold(t *testing.T) {
	for body, refused := range map[string]bool{
		`{"criteria":[{"must":false,"text":"short"}],"model":"j","subject":"s"}`:         true,
		`{"criteria":[{"must":false,"text":"short"},"dated"],"model":"j","subject":"s"}`: false,
		`{"criteria":[{"absence":true,"text":"no names"}],"model":"j","subject":"s"}`:    false,
		`{"criteria":[{"must":false,"text":"a"},{"must":false,"text":"b"}],"model":"j"}`: true,
	} {
		tp := newTape(t)
		pos := tp.ask(KindEvaluate, body)
		if got := tp.s.Requests[pos].Status == StepFailed; got != refused {
			t.Errorf("%s: refused is %v", body, got)
		}
	}
}
