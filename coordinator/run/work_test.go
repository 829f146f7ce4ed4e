package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// running is a run whose script has asked for these requests, by kind.
func running(t *testing.T, requests ...[2]string) *State {
	t.Helper()
	s := &State{}
	for _, cmd := range []Command{Create{Created{ID: "r", Script: "s"}}, Start{}} {
		if _, err := Execute(s, cmd, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	var y Yield
	for i, r := range requests {
		y.Requests = append(y.Requests, Request{Pos: i, Kind: r[0], Body: json.RawMessage(r[1])})
	}
	if _, err := Execute(s, y, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	return s
}

func first(t *testing.T, s *State) Ticket {
	t.Helper()
	tickets, _ := s.Ready(time.Unix(1, 0), 1)
	if len(tickets) == 0 {
		t.Fatalf("nothing is ready: %+v", s.Requests[0].Failure)
	}
	return tickets[0]
}

const sha = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func TestEffortIsKnownWithoutOpeningABody(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for name, c := range map[string]struct {
		kind, body string
		want       Effort
	}{
		"a reference by its size": {KindGenerate, `{"item":{"bytes":40000,"name":"a","ref":"` + sha + `"},"model":"m","prompt":"` + long + `{{item}}"}`, Effort{10502, 0, 500}},
		"a text by its length":    {KindGenerate, `{"model":"m","prompt":"` + long + `"}`, Effort{500, 0, 0}},
		"the context is shared":   {KindGenerate, `{"context":[{"bytes":8000,"name":"a","ref":"` + sha + `"}],"max_tokens":300,"model":"m","prompt":"` + long + `"}`, Effort{2500, 300, 2000}},
		"too little is shared":    {KindGenerate, `{"context":["short"],"model":"m","prompt":"` + long + `"}`, Effort{501, 0, 0}},
		"a question a criterion":  {KindEvaluate, `{"criteria":["a","b","c"],"model":"m","subject":"` + long + `"}`, Effort{1500, 0, 0}},
		"texts to embed":          {KindEmbed, `{"inputs":["` + long + `","` + long + `"],"model":"m"}`, Effort{1000, 0, 0}},
		"an image is no text":     {KindGenerate, `{"item":{"bytes":4000000,"name":"a/b.JPG","ref":"` + sha + `"},"model":"m","prompt":"{{item}}"}`, Effort{1002, 0, 0}},
		"images count for each":   {KindGenerate, `{"images":[{"bytes":4000000,"name":"x","ref":"` + sha + `"},{"ref":"` + sha + `"}],"model":"m","prompt":"see {{"}`, Effort{2001, 0, 0}},
		"a text named like one":   {KindGenerate, `{"item":"\",\"ref\":\".png","model":"m","prompt":"{{item}}"}`, Effort{6, 0, 0}},
		"a value that is no ref":  {KindGenerate, `{"item":{"bytes":1,"name":"x"},"model":"m","prompt":"{{item}}"}`, Effort{7, 0, 0}},
	} {
		if got := first(t, running(t, [2]string{c.kind, c.body})).Effort; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// What a step's first calls took says more than any rule of thumb.
func TestEffortFollowsTheStepsOwnCalls(t *testing.T) {
	item := strings.Repeat("y", 4000)
	s := running(t, [2]string{KindBatch, `{"items":["` + item + `","` + item + `"],"max_tokens":4000,"model":"m","prompt":"{{item}}"}`})
	before := first(t, s)
	if before.Prompt != 1002 || before.Output != 4000 {
		t.Errorf("before: %+v", before.Effort)
	}
	if _, err := Execute(s, Place{AttemptID: before.AttemptID, Node: "n", Model: "m:latest", Context: 8192}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	f := Finish{AttemptID: before.AttemptID, Evidence: Evidence{Report: Report{PromptTokens: 2004, OutputTokens: 120}}, Result: Content{Value: json.RawMessage("1")}}
	if _, err := Execute(s, f, time.Unix(2, 0)); err != nil {
		t.Fatal(err)
	}
	if after := first(t, s); after.Prompt != 2004 || after.Output != 120 {
		t.Errorf("after: %+v", after.Effort)
	}
	if s.Contexts["m"] != 8192 {
		t.Errorf("contexts %v", s.Contexts)
	}
}

func TestCallsWithTheSameContextHaveTheSameAffinity(t *testing.T) {
	context := `"context":["` + strings.Repeat("c", 500) + `"]`
	call := func(context, prompt string) string {
		return first(t, running(t, [2]string{KindGenerate, fmt.Sprintf(`{%s,"model":"m","prompt":"%s"}`, context, prompt)})).Affinity
	}
	a := call(context, "one")
	if a == "" || a != call(context, "two") {
		t.Error("two prompts about the same context are not together")
	}
	if a == call(`"context":["`+strings.Repeat("d", 500)+`"]`, "one") || call(`"context":["few"]`, "one") != "" {
		t.Error("calls that share nothing are together")
	}
	batch := func(prompt string) string {
		return first(t, running(t, [2]string{KindBatch, fmt.Sprintf(`{"items":["a"],"model":"m","prompt":"%s {{item}}"}`, prompt)})).Affinity
	}
	if long := strings.Repeat("do ", 200); batch(long) == "" || batch(long) == batch(long+"it") || batch("do") != "" {
		t.Error("items that share a long instruction")
	}
}

func TestUses(t *testing.T) {
	s := running(t, [2]string{KindGenerate, `{"model":"m","prompt":"x","uses":["http:example.org","browser","browser"]}`})
	if got := first(t, s); fmt.Sprint(got.Uses) != "[browser http:example.org]" {
		t.Errorf("%q", got.Uses)
	}
	if shared := string(s.Requests[0].Shared); strings.Contains(shared, "uses") {
		t.Errorf("the worker is told: %s", shared)
	}
	many := `["` + strings.Join(strings.Split(strings.Repeat("a", 17), ""), `","`) + `"]`
	for wrong, says := range map[string]string{`"browser"`: "an array", `[""]`: "uses[0] must be the name of a resource", `[" a"]`: "the name", `[1]`: "the name", many: "at most 16"} {
		s := running(t, [2]string{KindGenerate, `{"model":"m","prompt":"x","uses":` + wrong + `}`})
		if f := s.Requests[0].Failure; f == nil || f.Kind != KindBadRequest || !strings.Contains(f.Message, says) {
			t.Errorf("%s: %+v", wrong, f)
		}
	}
}
