package answers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/answers"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// sketch draws a tree with one line for each part.
func sketch(b *answers.Branch, depth int) string {
	text := strings.Repeat("  ", depth) + b.Kind + " " + b.Name
	if b.State != "" {
		text += " " + b.State
	}
	text += "\n"
	for _, c := range b.Children {
		text += sketch(c, depth+1)
	}
	return text
}

func (tp *tape) tree(others map[string]*tape) *answers.Branch {
	tp.t.Helper()
	root, err := answers.Tree("k3f9", func(id string) answers.Events {
		switch {
		case id == "k3f9":
			return tp.recorded()
		case others[id] != nil:
			return others[id].recorded()
		}
		return func(yield func(run.Event, error) bool) {
			yield(run.Event{}, fmt.Errorf("%w: %s", answers.ErrNoRun, id))
		}
	}, nodes)
	if err != nil {
		tp.t.Fatal(err)
	}
	return root
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestATreeHasBranchesItemsAndAttempts(t *testing.T) {
	tp := begin(t, `{}`)
	tp.ask("generate", `{"model":"m","prompt":"first"}`)
	tp.value(0, 0, `1`)
	tp.ask("generate", `{"label":"left","model":"m","prompt":"a"}`, "generate", `{"label":"right","model":"m","prompt":"b"}`)
	tp.value(1, 0, `1`)
	tp.ask("generate", `{"model":"m","prompt":"a2"}`) // goes on in the left branch
	tp.value(3, 0, `1`)
	tp.fail(2, 0, "schema_violation", run.Changed, prompt, reply)
	tp.value(2, 0, `1`)
	tp.ask("batch", `{"items":["x","y"],"model":"m","prompt":"c"}`) // after both
	tp.value(4, 0, `1`)
	tp.value(4, 1, `1`)
	tp.returns()
	same(t, sketch(tp.tree(nil), 0), `run k3f9 completed
  step 0 generate succeeded
    attempt work 1 succeeded
  parallel 2 side by side
    branch left
      step 1 generate succeeded
        attempt work 1 succeeded
      step 3 generate succeeded
        attempt work 1 succeeded
    step 2 generate succeeded
      attempt work 1 failed
      attempt work 2 succeeded
  step 4 batch succeeded
    item 0 succeeded
      attempt work 1 succeeded
    item 1 succeeded
      attempt work 1 succeeded
`)
}

func TestATreeHasPhasesWithTheirRounds(t *testing.T) {
	tp := begin(t, `{}`)
	tp.ask("phase", `{"phases":["draft","check"],"pipeline":"p"}`)
	tp.ask("generate", `{"model":"m","prompt":"draft"}`)
	tp.value(1, 0, `1`)
	tp.ask("phase", `{"done":{"outcome":"passed","phase":"draft"},"pipeline":"p"}`)
	tp.ask("generate", `{"model":"m","prompt":"check"}`)
	tp.value(3, 0, `1`)
	tp.ask("phase", `{"done":{"outcome":"sent_back","phase":"check","reason":"too long","target":"draft"},"pipeline":"p"}`)
	tp.ask("generate", `{"model":"m","prompt":"draft again"}`)
	got := sketch(tp.tree(nil), 0)
	for _, want := range []string{"  phase p: draft\n    step 1", "  phase p: check\n    step 3", "  phase p: draft\n    step 5"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	if again := tp.tree(nil).Children[2]; again.Text != "round 2" {
		t.Errorf("the second draft is %+v", again)
	}
}

func TestATreeHasChildrenAsFarAsTheyAreHere(t *testing.T) {
	child := begin(t, `{}`)
	child.ask("generate", `{"model":"m","prompt":"deep"}`)
	child.value(0, 0, `1`)
	child.returns()
	tp := begin(t, `{}`)
	tp.ask("spawn", `{"workflow":"w"}`, "spawn", `{"workflow":"w"}`)
	tp.do(run.Spawned{Pos: 0, Run: "c1"})
	tp.do(run.Spawned{Pos: 1, Run: "gone"})
	root := tp.tree(map[string]*tape{"c1": child})
	same(t, sketch(root, 0), `run k3f9 waiting
  parallel 2 side by side
    step 0 spawn ready
      run c1 completed
        step 0 generate succeeded
          attempt work 1 succeeded
    step 1 spawn ready
      run gone
`)
}

func TestATreeSumsUpALargeBatch(t *testing.T) {
	tp := begin(t, `{}`)
	items := strings.TrimSuffix(strings.Repeat(`"x",`, 500), ",")
	tp.ask("batch", `{"items":[`+items+`],"model":"m","prompt":"c","retry":{"attempts":1}}`)
	for i := range 500 {
		if i >= 400 {
			tp.fail(0, i, "schema_violation", run.Changed, prompt, reply)
		} else {
			tp.value(0, i, `1`)
		}
	}
	tp.returns()
	batch := tp.tree(nil).Children[0]
	if batch.Text != "500 items: 400 succeeded, 100 failed" || len(batch.Children) != 7 {
		t.Fatalf("%q with %d parts", batch.Text, len(batch.Children))
	}
	if b := batch.Children[3]; b.Name != "400" || b.State != "failed" || len(b.Children) != 1 {
		t.Errorf("the first that failed is %+v", b)
	}
	if b := batch.Children[6]; b.Name != "494 more items" {
		t.Errorf("the rest is %+v", b)
	}
}

func TestATimelineHasLanesLoadsAndWaits(t *testing.T) {
	tp := begin(t, `{}`)
	tp.ask("generate", `{"evaluate":{"criteria":["true"],"model":"judge:8b"},"model":"m","prompt":"a"}`)
	tp.fail(0, 0, "schema_violation", run.Changed, prompt, reply)
	tp.value(0, 0, `1`)
	tp.judge(0, 0, passed)
	tp.ask("approve", `{"title":"Go on?"}`)
	tp.do(run.Settle{Pos: 1, Outcome: run.Approved, By: "ada"})
	tp.ask("sleep", `{"seconds":60}`) // goes on
	line, err := answers.Lay(tp.recorded(), nodes)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range line.Lanes {
		text := l.Name + ":"
		for _, s := range l.Spans {
			text += fmt.Sprintf(" %s %s", s.What, s.End.Sub(s.Begin))
		}
		got = append(got, fmt.Sprintf("%s, busy %s", text, l.Busy))
	}
	same(t, strings.Join(got, "\n"), `attic: failed 1s load 500ms work 500ms load 500ms judge 500ms, busy 3s
for a person: wait 1s, busy 1s
for a place: wait 1h0m1s wait 1h0m1s wait 1h0m1s, busy 3h0m3s
for a time: wait 0s, busy 0s`)
	if !line.Begin.Equal(birth.Add(time.Second)) || !line.End.Equal(tp.now) {
		t.Errorf("it is from %s to %s", line.Begin, line.End)
	}
	if _, err := json.Marshal(line); err != nil {
		t.Error(err)
	}
}

func TestATimelineTellsApartWhatACallWaitedFor(t *testing.T) {
	tp := begin(t, `{}`)
	tp.ask("generate", `{"model":"m","prompt":"a"}`)
	asked := tp.now
	tp.value(0, 0, `1`) // placed an hour and a second later
	tp.returns()
	line, err := answers.Lay(tp.recorded(), nodes, answers.Waited{Step: 0, At: asked.Add(-time.Second), For: "slot"},
		answers.Waited{Step: 0, At: asked.Add(10 * time.Minute), For: "load"}, answers.Waited{Step: 0, At: asked.Add(2 * time.Hour), For: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range line.Lanes {
		if l.Wait {
			got = append(got, fmt.Sprintf("%s: %s %s", l.Name, l.Spans[0].What, l.Busy))
		}
	}
	same(t, strings.Join(got, "\n"), "for a load: load 50m1s\nfor a slot: wait 10m0s")
}

func TestBranchesGoOnWhenTheyAreGivenTheirResultsTogether(t *testing.T) {
	tp := begin(t, `{}`)
	left, right := strings.Repeat("1", 64), strings.Repeat("2", 64)
	tp.ask("generate", `{"label":"left","model":"m","prompt":"a"}`, "generate", `{"label":"right","model":"m","prompt":"b"}`)
	tp.text(0, 0, left)
	tp.text(1, 0, right)
	tp.ask("generate", `{"item":{"bytes":9,"name":"right","ref":"`+right+`"},"model":"m","prompt":"again"}`,
		"generate", `{"item":{"bytes":9,"name":"left","ref":"`+left+`"},"model":"m","prompt":"again"}`)
	tp.text(2, 0, right)
	tp.text(3, 0, left)
	tp.returns()
	same(t, sketch(tp.tree(nil), 0), `run k3f9 completed
  parallel 2 side by side
    branch left
      step 0 generate succeeded
        attempt work 1 succeeded
      step 3 generate succeeded
        attempt work 1 succeeded
    branch right
      step 1 generate succeeded
        attempt work 1 succeeded
      step 2 generate succeeded
        attempt work 1 succeeded
`)
}
