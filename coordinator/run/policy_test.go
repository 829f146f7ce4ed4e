package run

import (
	"testing"
	"time"
)

func TestAfterFailure(t *testing.T) {
	request := `{"model":"m","prompt":"p","retry":{"attempts":3}}`
	tests := []struct {
		name    string
		kind    string
		advice  Advice
		before  func(*tape) // earlier failures of the item
		then    Then
		counted bool
		avoid   string
		min     time.Duration // bounds of the backoff
		max     time.Duration
	}{
		{name: "a model's own failure is tried again soon", kind: "empty_turn", advice: Changed, then: ThenRetry, counted: true, min: 250 * time.Millisecond, max: 500 * time.Millisecond},
		{name: "the second waits longer and goes elsewhere", kind: "empty_turn", advice: Changed, before: failOnce("n1", "empty_turn"), then: ThenRetry, counted: true, avoid: "n1", min: 500 * time.Millisecond, max: time.Second},
		{name: "the third is the last", kind: "empty_turn", advice: Changed, before: func(tp *tape) { failOnce("n1", "empty_turn")(tp); failOnce("n2", "empty_turn")(tp) }, then: ThenFailed, counted: true},
		{name: "what cannot succeed is not tried again", kind: "input_too_long", advice: Never, then: ThenFailed, counted: true},
		{name: "out of memory goes elsewhere", kind: "out_of_memory", advice: OtherNode, then: ThenRetry, counted: true, avoid: "n1", min: 250 * time.Millisecond, max: 500 * time.Millisecond},
		{name: "a lost node costs no attempt and no time", kind: KindNodeLost, advice: OtherNode, before: func(tp *tape) { failOnce("n1", "empty_turn")(tp); failOnce("n2", "empty_turn")(tp) }, then: ThenRetry, avoid: "n1"},
		{name: "a pause costs nothing, and the node is as good as before", kind: KindNodePaused, advice: OtherNode, before: failOnce("n2", "empty_turn"), then: ThenRetry},
		{name: "an unreachable Ollama costs no attempt", kind: KindUnreachable, advice: OtherNode, then: ThenRetry, avoid: "n1", min: 500 * time.Millisecond, max: time.Second},
		{name: "what cannot be sent at all fails", kind: KindCannotSend, advice: Never, then: ThenFailed, counted: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tp := newTape(t)
			tp.ask(KindGenerate, request)
			if tt.before != nil {
				tt.before(tp)
			}
			id := tp.place(0, 0, "n1")
			events := tp.do(Finish{AttemptID: id, Failure: &Failure{Kind: tt.kind, Advice: tt.advice}})
			got := events[0].Data.(*AttemptFailed)
			if got.Then != tt.then || got.Counted != tt.counted || got.Avoid != tt.avoid {
				t.Errorf("then %s, counted %v, avoid %q; want %s, %v, %q", got.Then, got.Counted, got.Avoid, tt.then, tt.counted, tt.avoid)
			}
			if got.RetryAt != nil {
				if wait := got.RetryAt.Sub(tp.now); wait < tt.min || wait > tt.max {
					t.Errorf("the backoff is %s, want %s to %s", wait, tt.min, tt.max)
				}
			}
		})
	}
}

func failOnce(node, kind string) func(*tape) {
	return func(tp *tape) { tp.fail(tp.place(0, 0, node), kind, Changed) }
}

func TestBackoffIsBoundedAndSpread(t *testing.T) {
	for n := 1; n < 100; n++ {
		for hash := range uint64(50) {
			if d := backoff(longBase, longMax, n, hash*0x9e3779b97f4a7c15); d < longBase/2 || d > longMax {
				t.Fatalf("backoff %d is %s", n, d)
			}
		}
	}
	// A hundred items that fail together must not come back together: the spread covers most of the window.
	s := &State{}
	var low, high time.Duration = time.Hour, 0
	for item := range 100 {
		d := backoff(shortBase, shortMax, 1, s.hash(AttemptID{Item: item, Phase: Work, Number: 1}))
		low, high = min(low, d), max(high, d)
	}
	if high-low < 200*time.Millisecond {
		t.Errorf("a hundred backoffs lie between %s and %s", low, high)
	}
}

func TestAnItemThatLosesEveryNodeEnds(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindGenerate, `{"model":"m","prompt":"p"}`)
	for i := 0; i <= maxLosses; i++ {
		tp.fail(tp.place(0, 0, "n1"), KindNodeLost, OtherNode)
	}
	if got := tp.s.Requests[0].Status; got != StepFailed {
		t.Errorf("after %d lost nodes the step is %s", maxLosses+1, got)
	}
}

func TestEveryAttemptHasAnotherSeed(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindBatch, `{"items":[1,2],"model":"m","prompt":"p"}`)
	seen := map[int64]AttemptID{}
	for range 2 {
		for item := range 2 {
			id := tp.place(0, item, "n1")
			seed := tp.s.Requests[0].Items[item].Flight.Seed
			if other, dup := seen[seed]; dup || seed < 0 || seed > 1<<31-1 {
				t.Errorf("%v has the seed %d, as has %v", id, seed, other)
			}
			seen[seed] = id
			tp.fail(id, "empty_turn", Changed)
		}
	}
}

func TestFeedbackReachesTheNextAttempt(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindGenerate, `{"evaluate":{"criteria":["c"],"model":"j"},"feedback":["from the script"],"item":"the text","model":"m","prompt":"Shorten {{item}}"}`)
	tp.succeed(tp.place(0, 0, "n1"), `"a result"`)
	judge, err := tp.s.Call(tp.place(0, 0, "n2"))
	if err != nil || judge.Kind != KindEvaluate || string(judge.Body) != `"a result"` {
		t.Fatalf("the judge is asked %+v, %v", judge, err)
	}
	want := `{"criteria":["c"],"goal":"Shorten (the item)","sources":["the text"]}`
	if string(judge.Request) != want {
		t.Errorf("the judge's request is\n%s, want\n%s", judge.Request, want)
	}
	tp.succeed(AttemptID{Pos: 0, Phase: Judge, Number: 1}, notMet("c"))
	again, err := tp.s.Call(tp.place(0, 0, "n1"))
	if err != nil || len(again.Feedback) != 2 || again.Feedback[1] != `not met: c (subject, line 1: "the words")` || string(again.Body) != `"the text"` {
		t.Errorf("the next attempt is %+v, %v", again, err)
	}
}

// What a node has done is what was accepted of it: a result that the judge sent back for the last time is a failure.
func TestANodesItemsAreThoseThatSucceeded(t *testing.T) {
	tp := newTape(t)
	tp.ask(KindBatch, `{"model":"m","prompt":"{{item}}","items":["a","b"],"retry":{"attempts":1},"evaluate":{"criteria":["good"],"model":"j"}}`)
	for item, judgement := range []string{met("good"), notMet("good")} {
		tp.succeed(tp.place(0, item, "n1"), `"made"`)
		tp.succeed(tp.place(0, item, "n2"), judgement)
	}
	if n := tp.s.Shares["n1"].Items; n != 1 {
		t.Errorf("n1 has %d items, want the one that passed", n)
	}
	if n := tp.s.Shares["n2"].Items; n != 0 {
		t.Errorf("the judge's node has %d items of its own", n)
	}
}
