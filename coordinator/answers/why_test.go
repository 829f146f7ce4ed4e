package answers_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/answers"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// What a judge says of its only criterion, with a line and without one, as it may where the criterion is about an absence.
const (
	passed = `{"answers":[{"criterion":"true","said":"met","counted":"met","reason":"it reads well","quotes":[{"quote":"A pump moves water.","in":"docs/a.md","line":1},{"quote":"It moves water.","in":"subject","line":1}]}]}`
	bare   = `{"answers":[{"criterion":"true","said":"met","counted":"met","reason":"trust me","unquoted":true}]}`
)

// twoSteps reviews two files with a judge, then makes a text of what came out.
func twoSteps(t *testing.T) *tape {
	tp := begin(t, `{"files":[{"bytes":9,"name":"docs/a.md","ref":"`+docA+`"},{"bytes":9,"name":"docs/b.md","ref":"`+docB+`"}],"goal":"Find what is wrong in the manuals"}`)
	tp.ask("batch", `{"evaluate":{"criteria":["true"],"model":"judge:8b"},"items":[{"bytes":9,"name":"docs/a.md","ref":"`+docA+`"},{"bytes":9,"name":"docs/b.md","ref":"`+docB+`"}],"model":"qwen3:8b","prompt":"Review {{item}}"}`)
	textA, textB := strings.Repeat("1", 64), strings.Repeat("2", 64)
	tp.fail(0, 0, "schema_violation", run.Changed, prompt, reply)
	tp.text(0, 0, textA)
	tp.judge(0, 0, passed)
	tp.text(0, 1, textB)
	tp.judge(0, 1, passed)
	tp.ask("generate", `{"context":[{"bytes":9,"name":"step 0","ref":"`+textA+`"}],"model":"qwen3:8b","prompt":"Find what is wrong in the manuals, in one sentence"}`)
	tp.value(1, 0, `"the pump lacks a unit of measure"`)
	tp.ask("output", `{"name":"result","sources":[1],"value":"the pump lacks a unit of measure"}`)
	tp.returns()
	return tp
}

func TestWhyGoesBackFromAnOutputToWhatWasHandedIn(t *testing.T) {
	r := twoSteps(t).why("")
	if r.Bases[0].Subject != "result" || r.Bases[0].Kind != "output" {
		t.Fatalf("it begins with %+v", r.Bases[0])
	}
	second := basis(t, r, "1")
	has(t, "step 1", second.From, "0/0")
	has(t, "step 1", second.Inputs, "lead, a model's words: step 0/0")
	has(t, "step 1", second.Inputs, "handed in: goal (a text of it is in the request)")
	first := basis(t, r, "0/0")
	if first.Key != "docs/a.md" || first.Node != "attic" || first.Digest != "500a" || first.Verdict != "passed" {
		t.Errorf("the item is %+v", first)
	}
	has(t, "the item", first.Tries, "try 1 of qwen3:8b on attic failed: schema_violation")
	has(t, "the item", first.Tries, "try 2 of qwen3:8b on attic succeeded")
	has(t, "the item", first.Tries, "judge, try 1 of judge:8b on attic succeeded")
	if b := basis(t, r, "docs/a.md"); b.Kind != "input" || len(b.Bodies) != 1 || b.Bodies[0].SHA256 != docA {
		t.Errorf("what was handed in is %+v", b)
	}
	for _, b := range r.Bases {
		if b.Subject == "docs/b.md" || b.Subject == "0/1" {
			t.Errorf("the other file has no part in it, and there is %q", b.Subject)
		}
	}
}

func TestWhyKeepsFactsAndOpinionsApart(t *testing.T) {
	b := basis(t, twoSteps(t).why("docs/a.md"), "0/0")
	has(t, "the facts", b.Facts, `"A pump moves water." in docs/a.md, line 1`)
	has(t, "the opinions", b.Opinions, "it reads well")
	lacks(t, "the facts", b.Facts, "it reads well")
	lacks(t, "the opinions", b.Opinions, "A pump moves water.")
}

func TestWhyTakesEveryWayToNameASubject(t *testing.T) {
	tp := twoSteps(t)
	for subject, want := range map[string]string{"result": "result", "1": "1", "step 1": "1", "0/1": "0/1", "0/docs/b.md": "0/1", "docs/b.md": "0/1", "0": "0"} {
		if got := tp.why(subject).Bases[0].Subject; got != want {
			t.Errorf("%q is %q, want %q", subject, got, want)
		}
	}
	has(t, "the batch", basis(t, tp.why("0"), "0").Tries, "2 items: 2 succeeded, 0 failed")
	for _, subject := range []string{"nothing.md", "7", "0/9", "-1", "1/x"} {
		_, err := answers.Why(tp.recorded(), subject, nodes)
		unknown := (*answers.Unknown)(nil)
		if !errors.As(err, &unknown) || !strings.Contains(strings.Join(unknown.Names, " "), "docs/a.md") {
			t.Errorf("%q: %v", subject, err)
		}
	}
}

func TestWhySeesAValueThatWentIntoARequest(t *testing.T) {
	tp := begin(t, `{}`)
	tp.ask("generate", `{"model":"qwen3:8b","prompt":"Name it","schema":{"type":"object"}}`)
	tp.value(0, 0, `{"title":"The pump that ran dry"}`)
	tp.ask("generate", `{"item":{"title":"The pump that ran dry"},"model":"qwen3:8b","prompt":"Write {{item}}"}`)
	tp.value(1, 0, `"x"`)
	tp.ask("generate", `{"model":"qwen3:8b","prompt":"Write a poem on The pump that ran dry, please"}`)
	tp.value(2, 0, `"y"`)
	tp.ask("generate", `{"model":"qwen3:8b","prompt":"Say good night"}`)
	has(t, "the same value", basis(t, tp.why("1"), "1").Inputs, "step 0")
	has(t, "a quote", basis(t, tp.why("2"), "2").Inputs, "step 0 (a text of it is in the request)")
	has(t, "nothing that tells", basis(t, tp.why("3"), "3").Inputs, "step 2 (inferred: the script asked right after it was given this)")
}

func TestWhyFindsWhoWroteAFileAndWhoApproved(t *testing.T) {
	tp := begin(t, `{}`)
	tp.ask("tool", `{"input":{"body":"one","path":"out/137.txt","workspace":"w"},"name":"file.write"}`)
	tp.finish(tp.place(0, 0, run.Work, true), run.Content{Value: json.RawMessage(`{"path":"out/137.txt","sha256":"` + docA + `"}`)})
	tp.ask("approve", `{"show":[{"path":"out/137.txt","sha256":"`+docA+`"}],"title":"Keep it?"}`)
	tp.do(run.Settle{Pos: 1, Outcome: run.Approved, By: "ada", Comment: "looks right"})
	r := tp.why("out/137.txt")
	has(t, "the file", basis(t, r, "0").Facts, "step 1 (approve) looked at it")
	b := basis(t, r, "1")
	has(t, "the approval", b.Opinions, "approved by ada: looks right")
	if b.Verdict != run.Approved || len(b.Facts) > 0 {
		t.Errorf("the approval is %+v", b)
	}
	if got := tp.why("137.txt").Bases[0].Subject; got != "0" {
		t.Errorf("by its name alone it is %q", got)
	}
}

func TestWhyTellsWhatWasTakenOver(t *testing.T) {
	tp := begin(t, `{}`)
	tp.ask("generate", `{"model":"qwen3:8b","prompt":"Say it","reuse":true}`)
	tp.do(run.Reuse{Pos: 0, From: run.From{Run: "0ld1", Pos: 4, Item: 2}, Result: run.Content{Value: json.RawMessage(`"x"`)}, Node: "n1"})
	r := tp.why("0")
	has(t, "the step", basis(t, r, "0").Tries, "taken over from 4/2 of run 0ld1, at no cost")
	has(t, "the notes", r.Notes, "loopkeeper why 0ld1 4")
}

func TestAQuestionGoesToWhoJudged(t *testing.T) {
	q, err := twoSteps(t).why("docs/a.md").Ask("Why is it true?", map[string]int64{prompt: 7, reply: 3})
	if err != nil {
		t.Fatal(err)
	}
	if q.Model != "judge:8b" || !strings.Contains(q.Who, "which judged") {
		t.Errorf("it asks %+v", q)
	}
	var in struct {
		Model, Prompt string
		Context       []struct {
			Ref   string
			Bytes int64
		}
	}
	if err := json.Unmarshal(q.Input, &in); err != nil {
		t.Fatal(err)
	}
	if in.Model != "judge:8b" || !strings.HasSuffix(in.Prompt, "Why is it true?") || len(in.Context) != 2 || in.Context[0].Ref != prompt || in.Context[0].Bytes != 7 || in.Context[1].Ref != reply {
		t.Errorf("the request is %s", q.Input)
	}
	// Of what nobody judged, the step that made it is asked; of what no model had a part in, nobody.
	if q, err := twoSteps(t).why("1").Ask("Why?", nil); err != nil || q.Model != "judge:8b" && q.Model != "qwen3:8b" {
		t.Errorf("%+v, %v", q, err)
	}
	tp := begin(t, `{}`)
	tp.ask("sleep", `{"seconds":5}`)
	if _, err := tp.why("0").Ask("Why?", nil); err == nil {
		t.Error("a pause was asked")
	}
}

func TestAnErrorOfReadingEndsAnAnswer(t *testing.T) {
	broken := answers.Events(func(yield func(run.Event, error) bool) { yield(run.Event{}, errRead) })
	if _, err := answers.Why(broken, "", nil); !errors.Is(err, errRead) {
		t.Errorf("why: %v", err)
	}
	if _, err := answers.Tree("k3f9", func(string) answers.Events { return broken }, nil); !errors.Is(err, errRead) {
		t.Errorf("tree: %v", err)
	}
	if _, err := answers.Lay(broken, nil); !errors.Is(err, errRead) {
		t.Errorf("timeline: %v", err)
	}
}

// Models say the same more than once: the name of a text in the request tells whose it is.
func TestWhyTellsApartTextsThatAreAlike(t *testing.T) {
	tp := begin(t, `{}`)
	yes := strings.Repeat("9", 64)
	tp.ask("generate", `{"label":"left","model":"m","prompt":"a"}`, "generate", `{"label":"right","model":"m","prompt":"b"}`)
	tp.text(0, 0, yes)
	tp.text(1, 0, yes)
	tp.ask("generate", `{"item":{"bytes":9,"name":"left","ref":"`+yes+`"},"model":"m","prompt":"c"}`, "generate", `{"item":{"bytes":9,"name":"other","ref":"`+yes+`"},"model":"m","prompt":"c"}`)
	if from := basis(t, tp.why("2"), "2").From; len(from) != 1 || from[0] != "0" {
		t.Errorf("what is named left comes from %q", from)
	}
	if from := basis(t, tp.why("3"), "3").From; len(from) != 1 || from[0] != "1" {
		t.Errorf("what has no name that tells comes from %q, want the latest", from)
	}
}
