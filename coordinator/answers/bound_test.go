package answers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/answers"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// An answer about something that rests on very many things names a bounded number of them, and says how many it leaves out.
func TestWhyNamesABoundedNumberOfThings(t *testing.T) {
	tp := begin(t, `{}`)
	var sources []string
	for i := range 150 {
		tp.ask(run.KindSleep, `{"seconds":1}`)
		tp.now = tp.now.Add(time.Minute)
		tp.do(run.Fire{})
		sources = append(sources, fmt.Sprint(i))
	}
	tp.ask(run.KindOutput, `{"name":"result","sources":[`+strings.Join(sources, ",")+`],"value":1}`)
	tp.do(run.Yield{End: &run.ScriptEnd{}})
	got, err := answers.Why(func(yield func(run.Event, error) bool) {
		for _, e := range tp.events {
			if !yield(e, nil) {
				return
			}
		}
	}, "result", nil)
	if err != nil {
		t.Fatal(err)
	}
	if b := got.Bases[0]; len(b.From) != 100 || len(b.Inputs) != 100 {
		t.Errorf("it names %d and %d", len(b.From), len(b.Inputs))
	}
	if !slices.ContainsFunc(got.Notes, func(n string) bool { return strings.Contains(n, "result rests on 50 more things") }) {
		t.Errorf("the notes are %q", got.Notes)
	}
}
