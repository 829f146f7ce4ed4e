package run

import "time"

var limitStories = map[string]func(*tape){
	"tokens-exhausted": func(tp *tape) {
		tp.ask(KindBatch, `{"items":["a","b","c","d"],"model":"small","prompt":"{{item}}"}`)
		a, b, c := tp.place(0, 0, "n1"), tp.place(0, 1, "n1"), tp.place(0, 2, "n1")
		tp.succeed(a, `1`)
		tp.succeed(b, `2`) // 30 tokens: nothing new starts
		_, _ = tp.try(Place{AttemptID: AttemptID{Pos: 0, Item: 3, Phase: Work, Number: 1}, Node: "n1"})
		tp.want(Running)
		tp.succeed(c, `3`)
		tp.want(Exhausted)
	},
	"tokens-exhausted-with-a-child": func(tp *tape) {
		tp.ask(KindSpawn, `{"input":{},"workflow":"w"}`)
		tp.do(Spawned{Pos: 0, Run: "c1"})
		tp.ask(KindBatch, `{"items":["a","b","c"],"model":"small","prompt":"{{item}}"}`)
		a := tp.place(1, 0, "n1")
		tp.do(Begin{tp.place(1, 1, "n1")})
		tp.succeed(a, `1`)
		tp.succeed(AttemptID{Pos: 1, Item: 1, Phase: Work, Number: 1}, `2`)
		tp.ask(KindApprove, `{"title":"Go on?"}`) // nobody will be asked
		tp.want(Waiting)                          // for the child
		tp.do(ChildEnded{Pos: 0, End: ChildEnd{Run: "c1", Status: Completed}, Report: Content{Value: []byte(`{}`)}})
		tp.want(Exhausted)
	},
	"calls-exhausted": func(tp *tape) {
		tp.ask(KindGenerate, `{"model":"small","prompt":"x"}`)
		tp.succeed(tp.place(0, 0, "n1"), `1`)
		tp.ask(KindGenerate, `{"model":"small","prompt":"x"}`)
		tp.fail(tp.place(1, 0, "n1"), "empty_turn", Changed) // two calls were enough, had it been given an answer
		tp.want(Exhausted)
	},
	"time-out-with-a-child": func(tp *tape) {
		tp.ask(KindSpawn, `{"input":{},"workflow":"w"}`)
		tp.do(Spawned{Pos: 0, Run: "c1"})
		tp.ask(KindGenerate, `{"model":"small","prompt":"x"}`)
		tp.ask(KindSpawn, `{"input":{},"workflow":"w"}`)
		tp.now = tp.now.Add(time.Minute)
		tp.do(Expire{})
		_, _ = tp.try(Spawned{Pos: 2, Run: "c2"}) // refused: nothing new
		tp.want(Waiting)                          // for the child: it is in flight
		tp.do(ChildEnded{Pos: 0, End: ChildEnd{Run: "c1", Status: Completed}, Report: Content{Value: []byte(`{}`)}})
		tp.want(TimedOut)
	},
	"result-too-large": func(tp *tape) {
		tp.ask(KindGenerate, `{"model":"small","prompt":"x","retry":{"attempts":2}}`)
		tp.succeed(tp.place(0, 0, "n1"), `"a result of more than twenty bytes"`)
		tp.succeed(tp.place(0, 0, "n1"), `"another result of more than twenty bytes"`)
		tp.returns()
		tp.want(Incomplete)
	},
}
