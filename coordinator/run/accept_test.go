package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// What a key is worth follows from what became of the steps that it is said to be covered by, and never from the saying alone.
func TestWhatCoversAKey(t *testing.T) {
	one := func(tp *tape) {
		tp.ask(KindGenerate, `{"model":"m","prompt":"p","retry":{"attempts":1}}`)
	}
	for _, tt := range []struct {
		name string
		play func(*tape)
		want string // covered, handled, failed, uncovered
	}{
		{"nothing was done", func(*tape) {}, "0 0 0 1"},
		{"an item of another name", func(tp *tape) {
			tp.ask(KindGenerate, `{"item":{"bytes":1,"name":"b","ref":"bb"},"model":"m","prompt":"{{item}}"}`)
			tp.succeed(tp.place(0, 0, "n"), `1`)
		}, "0 0 0 1"},
		{"its own item", func(tp *tape) {
			tp.ask(KindGenerate, `{"item":{"bytes":1,"name":"a","ref":"bb"},"model":"m","prompt":"{{item}}"}`)
			tp.succeed(tp.place(0, 0, "n"), `1`)
		}, "1 0 0 0"},
		{"an index is no name", func(tp *tape) {
			tp.ask(KindExpect, `{"keys":["0"]}`)
			one(tp)
			tp.succeed(tp.place(1, 0, "n"), `1`)
		}, "0 0 0 2"},
		{"a key that was given", func(tp *tape) {
			tp.ask(KindBatch, `{"items":["x"],"keys":["a"],"model":"m","prompt":"p"}`)
			tp.succeed(tp.place(0, 0, "n"), `1`)
		}, "1 0 0 0"},
		{"failed, and done again", func(tp *tape) {
			tp.ask(KindBatch, `{"items":["x"],"keys":["a"],"model":"m","prompt":"p","retry":{"attempts":1}}`)
			tp.fail(tp.place(0, 0, "n"), "empty_turn", Changed)
			tp.ask(KindBatch, `{"items":["x"],"keys":["a"],"model":"m","prompt":"p"}`)
			tp.succeed(tp.place(1, 0, "n"), `1`)
		}, "1 0 0 0"},
		{"a chunk that succeeded", func(tp *tape) {
			one(tp)
			tp.succeed(tp.place(0, 0, "n"), `1`)
			tp.ask(KindCover, `{"keys":["a","never expected"],"step":0}`)
		}, "1 0 0 0"},
		{"a chunk that failed", func(tp *tape) {
			one(tp)
			tp.fail(tp.place(0, 0, "n"), "empty_turn", Changed)
			tp.ask(KindCover, `{"keys":["a"],"step":0}`)
		}, "0 0 1 0"},
		{"an item of a batch of chunks", func(tp *tape) {
			tp.ask(KindBatch, `{"items":["x","y"],"model":"m","prompt":"p","retry":{"attempts":1}}`)
			tp.succeed(tp.place(0, 0, "n"), `1`)
			tp.fail(tp.place(0, 1, "n"), "empty_turn", Changed)
			tp.ask(KindExpect, `{"keys":["b"]}`)
			tp.ask(KindCover, `{"item":0,"keys":["a"],"step":0}`)
			tp.ask(KindCover, `{"item":1,"keys":["b"],"step":0}`)
		}, "1 0 1 0"},
		{"a step that there is not", func(tp *tape) { tp.ask(KindCover, `{"keys":["a"],"step":7}`) }, "0 0 0 1"},
		{"a note", func(tp *tape) { tp.ask(KindCover, `{"keys":["a"],"step":0}`) }, "0 0 0 1"},
		{"a child that completed", func(tp *tape) {
			child(tp, Completed)
			tp.ask(KindCover, `{"keys":["a"],"step":0}`)
		}, "1 0 0 0"},
		{"a child that did not", func(tp *tape) {
			child(tp, Incomplete)
			tp.ask(KindCover, `{"keys":["a"],"step":0}`)
		}, "0 0 1 0"},
		{"a child that was waived", func(tp *tape) {
			child(tp, Incomplete)
			tp.ask(KindWaive, `{"reason":"r","step":0}`)
			tp.ask(KindCover, `{"keys":["a"],"step":0}`)
		}, "0 1 0 0"},
		{"waived by its key", func(tp *tape) {
			tp.ask(KindBatch, `{"items":["x","y"],"keys":["a","b"],"model":"m","prompt":"p","retry":{"attempts":1}}`)
			tp.fail(tp.place(0, 0, "n"), "empty_turn", Changed)
			tp.succeed(tp.place(0, 1, "n"), `1`)
			tp.ask(KindWaive, `{"key":"a","reason":"r","step":0}`)
		}, "0 1 0 0"},
		{"waived when nothing failed", func(tp *tape) {
			tp.ask(KindBatch, `{"items":["y"],"keys":["b"],"model":"m","prompt":"p"}`)
			tp.succeed(tp.place(0, 0, "n"), `1`)
			tp.ask(KindWaive, `{"item":0,"reason":"r","step":0}`)
		}, "0 0 0 1"},
		{"a fallback that failed", func(tp *tape) {
			tp.ask(KindBatch, `{"items":["x"],"keys":["a"],"model":"m","prompt":"p","retry":{"attempts":1}}`)
			tp.fail(tp.place(0, 0, "n"), "empty_turn", Changed)
			one(tp)
			tp.fail(tp.place(1, 0, "n"), "empty_turn", Changed)
			tp.ask(KindFallback, `{"by":1,"item":0,"step":0}`)
		}, "0 0 1 0"},
		{"a fallback on itself", func(tp *tape) {
			tp.ask(KindBatch, `{"items":["x"],"keys":["a"],"model":"m","prompt":"p","retry":{"attempts":1}}`)
			tp.fail(tp.place(0, 0, "n"), "empty_turn", Changed)
			tp.ask(KindFallback, `{"by":0,"item":0,"step":0}`)
		}, "0 0 1 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tp := newTapeOf(t, Created{Submitted: []Submitted{{Key: "a"}}})
			tt.play(tp)
			a := tp.s.Acceptance()
			if got := fmt.Sprint(a.Covered, a.Handled, a.Failed, a.Uncovered); got != tt.want {
				t.Errorf("covered, handled, failed, uncovered are %s, want %s", got, tt.want)
			}
			tp.returns()
			if open := a.Failed+a.Uncovered > 0; open && tp.s.Status != Incomplete {
				t.Errorf("the run is %s", tp.s.Status)
			}
		})
	}
}

func child(tp *tape, end Status) {
	tp.ask(KindSpawn, `{"input":{},"workflow":"w"}`)
	tp.do(Spawned{Pos: 0, Run: "c"})
	tp.do(ChildEnded{Pos: 0, End: ChildEnd{Run: "c", Status: end}, Report: Content{Value: json.RawMessage(`{}`)}})
}

// The lists of a large run are bounded, and say how much there is beyond them.
func TestWhatIsListedIsBounded(t *testing.T) {
	var submitted []Submitted
	for i := range 100 {
		submitted = append(submitted, Submitted{Key: fmt.Sprint("file ", i)})
	}
	tp := newTapeOf(t, Created{Submitted: submitted})
	items, _ := json.Marshal(make([]int, 50))
	tp.ask(KindBatch, `{"items":`+string(items)+`,"model":"m","prompt":"p","retry":{"attempts":1}}`)
	for i := range 50 {
		tp.fail(tp.place(0, i, "n"), "empty_turn", Changed)
	}
	tp.returns()
	a := tp.s.End.Acceptance
	if a.Uncovered != 100 || len(a.UncoveredKeys) != maxListed || a.SwallowedAll != 50 || len(a.Swallowed) != maxListed || a.Swallowed[0].Attempts != 1 {
		t.Errorf("%d uncovered, %d listed; %d swallowed, %d listed", a.Uncovered, len(a.UncoveredKeys), a.SwallowedAll, len(a.Swallowed))
	}
}

// A failure that `each` collected is listed as collected, and not as swallowed.
func TestACollectedFailureIsNotSwallowed(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindGenerate, `{"model":"m","prompt":"p","retry":{"attempts":1}}`)
	tp.fail(tp.place(0, 0, "n"), "empty_turn", Changed)
	tp.ask(KindCollected, `{"failures":[{"key":"a","kind":"empty_turn","message":"m","step":0}],"label":"each"}`)
	tp.returns()
	tp.want(Incomplete)
	if a := tp.s.End.Acceptance; a != nil {
		t.Errorf("%+v", a)
	}
}

func TestChildrenThatAnEndMustReach(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindSpawn, `{"input":{},"workflow":"w"}`)
	tp.ask(KindSpawn, `{"detached":true,"input":{},"workflow":"w"}`)
	tp.ask(KindSpawn, `{"input":{},"workflow":"w"}`)
	var todo []int
	for st := range tp.s.Spawns {
		todo = append(todo, st.Pos)
	}
	if !slices.Equal(todo, []int{0, 1, 2}) {
		t.Fatalf("to be started are %v", todo)
	}
	for i, run := range []string{"c0", "c1"} {
		tp.do(Spawned{Pos: i, Run: run})
	}
	tp.do(Suspend{By: "ada"})
	for st := range tp.s.Spawns {
		t.Errorf("a suspended run starts step %d", st.Pos)
	}
	tp.do(Cancel{})
	var reach []string
	for st := range tp.s.Children {
		if !st.Detached {
			reach = append(reach, st.Child.Run)
		}
	}
	if !slices.Equal(reach, []string{"c0"}) {
		t.Errorf("the cancel must reach %v", reach)
	}
}

func TestACallSaysWhereItsLineIs(t *testing.T) {
	tp := newTape(t)
	tp.do(Yield{Requests: []Request{{Kind: KindBatch, Lines: &Lines{Count: 3, Index: "ee"},
		Body: json.RawMessage(`{"evaluate":{"criteria":["c"],"model":"j"},"items":{"lines":{"bytes":40,"name":"d","ref":"dd"}},"model":"m","prompt":"{{item}}"}`)}}})
	want := Line{Ref: "dd", Name: "d", Index: "ee", At: 2}
	id := tp.place(0, 2, "n")
	work, err := tp.s.Call(id)
	if err != nil || work.Kind != KindGenerate || work.Body != nil || work.Line == nil || *work.Line != want {
		t.Errorf("the work is %+v, %v", work, err)
	}
	tp.succeed(id, `"made"`)
	judge, err := tp.s.Call(tp.place(0, 2, "n"))
	if err != nil || judge.Kind != KindEvaluate || string(judge.Body) != `"made"` || judge.Line == nil || *judge.Line != want {
		t.Errorf("the judge is asked %+v, %v", judge, err)
	}
	tp.ask(KindTool, `{"input":{"x":1},"name":"file.read","uses":["disk"]}`)
	tickets, _ := tp.s.ReadyTools(tp.now, 5)
	if len(tickets) != 1 || tickets[0].Tool != "file.read" || tickets[0].Model != "" || !slices.Equal(tickets[0].Uses, []string{"disk"}) {
		t.Fatalf("tools that could run: %+v", tickets)
	}
	use := tp.use(1, true)
	call, err := tp.s.Call(use)
	if err != nil || call.Kind != KindTool || string(call.Request) != `{"input":{"x":1},"name":"file.read","uses":["disk"]}` {
		t.Errorf("the tool is called with %+v, %v", call, err)
	}
	if got := tp.s.WriteKey(use.Pos, use.Item); got != "k3f9/1/0" {
		t.Errorf("its key is %s", got)
	}
	if more, _ := tp.s.Ready(tp.now, 5); len(more) == 0 || more[0].Tool != "" {
		t.Errorf("the machines are offered %+v", more)
	}
}
