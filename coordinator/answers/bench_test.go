package answers_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/answers"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// long is a run of n steps, one after the other, each with its own prompt and a small value.
func long(b *testing.B, n int) (answers.Events, *run.State) {
	b.Helper()
	s, now := &run.State{}, birth
	var events []run.Event
	do := func(c run.Command) {
		out, err := run.Execute(s, c, now)
		if err != nil {
			b.Fatal(err)
		}
		events = append(events, out...)
	}
	do(run.Create{Created: run.Created{ID: "k3f9", Workflow: "flow", Script: script, Input: json.RawMessage(`{}`), Clock: now}})
	do(run.Start{})
	for i := range n {
		do(run.Yield{Requests: []run.Request{{Pos: i, Kind: run.KindGenerate, Body: json.RawMessage(fmt.Sprintf(`{"model":"m","prompt":"Go on with number %d of them"}`, i))}}})
		id := run.AttemptID{Pos: i, Phase: run.Work, Number: 1}
		do(run.Place{AttemptID: id, Node: "n1", Model: "m", Context: 4096})
		do(run.Finish{AttemptID: id, Result: run.Content{Value: json.RawMessage(fmt.Sprintf(`{"said":"this is what came of number %d"}`, i))}})
	}
	do(run.Yield{End: &run.ScriptEnd{}})
	return func(yield func(run.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}, s
}

// What a long run's answers cost: each grows as the run does.
func BenchmarkAnswers(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		events, _ := long(b, n)
		for name, ask := range map[string]func() error{
			"audit": func() error { r, err := answers.Fold(events); r.Audit(answers.Around{}); return err },
			"why":   func() error { _, err := answers.Why(events, fmt.Sprint(n-1), nil); return err },
			"tree": func() error {
				_, err := answers.Tree("k3f9", func(string) answers.Events { return events }, nil)
				return err
			},
			"lanes": func() error { _, err := answers.Lay(events, nil); return err },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					if err := ask(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
