package run

import (
	"encoding/json"
	"time"
)

var waitStories = map[string]func(*tape){
	"approved": func(tp *tape) {
		tp.ask(KindApprove, `{"title":"Send the letters?","will":"forty letters go out"}`)
		tp.want(Waiting)
		_, _ = tp.try(Settle{Pos: 0, Outcome: "maybe", By: "ada"}) // refused
		tp.do(Settle{Pos: 0, Outcome: Approved, By: "ada", Comment: "but not to Bob"})
		tp.want(Running)
		_, _ = tp.try(Settle{Pos: 0, Outcome: Rejected, By: "bob"}) // refused: it has been decided
		tp.returns()
		tp.want(Completed)
	},
	"approval-times-out": func(tp *tape) {
		tp.ask(KindApprove, `{"on_timeout":"rejected","timeout_seconds":3600,"title":"Delete them?"}`)
		_, _ = tp.try(Fire{}) // refused: it is too early
		tp.now = tp.now.Add(time.Hour)
		tp.do(Fire{})
		tp.want(Running)
		tp.ask(KindApprove, `{"timeout_seconds":10,"title":"and then?"}`) // fails: no outcome was chosen
		tp.returns()
		tp.want(Incomplete)
	},
	"question": func(tp *tape) {
		tp.ask(KindQuestion, `{"choices":["red","blue"],"text":"Which?"}`)
		_, _ = tp.try(Settle{Pos: 0, Answer: json.RawMessage(`"green"`), By: "ada"}) // refused
		tp.do(Settle{Pos: 0, Answer: json.RawMessage(`"blue"`), By: "ada"})
		tp.ask(KindQuestion, `{"on_timeout":{"n":1},"text":"How many?","timeout_seconds":60}`)
		tp.now = tp.now.Add(time.Minute)
		tp.do(Fire{})
		tp.ask(KindQuestion, `{"choices":["x"],"on_timeout":"y","text":"Which?","timeout_seconds":1}`) // fails
		tp.returns()
		tp.want(Incomplete)
	},
	"sleep": func(tp *tape) {
		tp.ask(KindSleep, `{"seconds":90}`)
		tp.ask(KindSleep, `{"until":"2026-03-01T13:02:00+01:00"}`) // two minutes after noon in UTC
		tp.want(Waiting)
		tp.now = birth.Add(118 * time.Second)
		tp.do(Fire{})
		tp.now = birth.Add(2 * time.Minute)
		tp.do(Fire{})
		tp.returns()
		tp.want(Completed)
	},
	"suspended-and-resumed": func(tp *tape) {
		tp.ask(KindBatch, `{"items":["a","b"],"model":"small","prompt":"{{item}}"}`)
		id := tp.place(0, 0, "n1")
		tp.do(Suspend{By: "ada", Reason: "the fan is loud"})
		_, _ = tp.try(Suspend{By: "bob"})                                                               // refused: it is
		_, _ = tp.try(Place{AttemptID: AttemptID{Pos: 0, Item: 1, Phase: Work, Number: 1}, Node: "n1"}) // refused: nothing new
		tp.succeed(id, `1`)
		tp.want(Suspended)
		tp.do(Resume{By: "ada"})
		tp.want(Running)
		last := tp.place(0, 1, "n1")
		tp.do(Suspend{By: "ada"})
		tp.succeed(last, `2`)
		tp.returns()
		tp.want(Suspended) // its end waits
		tp.do(Resume{By: "ada"})
		tp.want(Completed)
	},
	"suspended-while-waiting": func(tp *tape) {
		tp.ask(KindApprove, `{"title":"Go on?"}`)
		tp.do(Suspend{By: "ada"})
		tp.do(Resume{By: "ada"})
		tp.want(Waiting)
		tp.do(Suspend{By: "ada"})
		tp.do(Settle{Pos: 0, Outcome: Approved, By: "ada"}) // an answer is taken all the same
		tp.want(Suspended)
		tp.do(Cancel{Reason: "enough"})
		tp.want(Cancelled)
	},
	"child": func(tp *tape) {
		tp.ask(KindSpawn, `{"input":{"n":1},"workflow":"map"}`)
		tp.want(Waiting)
		tp.do(Spawned{Pos: 0, Run: "cccc"})
		_, _ = tp.try(Spawned{Pos: 0, Run: "dddd"}) // refused: it has one
		tp.do(ChildEnded{Pos: 0, End: ChildEnd{Run: "cccc", Status: Completed}, Report: Content{Value: json.RawMessage(`{"run":"cccc","state":"completed"}`)}})
		tp.ask(KindSpawn, `{"detached":true,"input":{},"workflow":"map"}`)
		tp.do(Spawned{Pos: 1, Run: "eeee"})
		tp.returns()
		tp.want(Completed)
	},
	"child-incomplete": func(tp *tape) {
		tp.ask(KindSpawn, `{"input":{},"workflow":"map"}`)
		tp.do(Spawned{Pos: 0, Run: "cccc"})
		tp.returns()
		tp.want(Waiting) // a parent is not done before its children are
		tp.do(ChildEnded{Pos: 0, End: ChildEnd{Run: "cccc", Status: Incomplete}, Report: Content{Value: json.RawMessage(`{"run":"cccc","state":"incomplete"}`)}})
		tp.want(Incomplete)
	},
	"child-unknown": func(tp *tape) {
		tp.ask(KindSpawn, `{"input":{},"workflow":"nope"}`)
		tp.do(ChildEnded{Pos: 0, Failure: &Failure{Kind: KindBadRequest, Message: `there is no workflow "nope"`, Advice: Never}})
		tp.want(Running)
		tp.do(Yield{End: &ScriptEnd{Error: &Error{Kind: "threw", Message: `there is no workflow "nope"`}}})
		tp.want(Failed)
	},
	"spawn-too-deep": func(tp *tape) {
		tp.ask(KindSpawn, `{"input":{},"workflow":"map"}`)
		tp.returns()
		tp.want(Incomplete)
	},
	"replay-diverges-while-waiting": func(tp *tape) {
		tp.ask(KindApprove, `{"title":"Go on?"}`)
		tp.do(Diverge{Divergence{Pos: 0, Expected: "approve {}", Got: "sleep {}"}})
		tp.want(Diverged)
	},
	"script-dies-while-waiting": func(tp *tape) {
		tp.ask(KindApprove, `{"title":"Go on?"}`)
		tp.do(Yield{End: &ScriptEnd{Error: &Error{Kind: "crashed"}}})
		tp.want(Failed)
	},
	"time-out-while-waiting": func(tp *tape) {
		tp.ask(KindGenerate, `{"model":"small","prompt":"x"}`)
		id := tp.place(0, 0, "n1")
		tp.ask(KindApprove, `{"title":"Go on?"}`)
		tp.do(Expire{})
		tp.succeed(id, `1`) // what is left waits for a person, who will not be asked any more
		tp.want(TimedOut)
	},
	"suspended-in-the-queue": func(tp *tape) {
		tp.do(Suspend{By: "ada"})
		_, _ = tp.try(Start{}) // refused
		tp.do(Resume{By: "ada"})
		tp.want(Queued)
		tp.do(Start{})
		tp.returns()
		tp.want(Completed)
	},
	"cancelled-in-the-queue": func(tp *tape) {
		tp.do(Cancel{Reason: "not now"})
		tp.want(Cancelled)
	},
	"cancelled-while-waiting": func(tp *tape) {
		tp.ask(KindApprove, `{"title":"Go on?"}`)
		tp.do(Cancel{})
		tp.want(Cancelled)
	},
	"replay-diverges-while-suspended": func(tp *tape) {
		tp.ask(KindApprove, `{"title":"Go on?"}`)
		tp.do(Suspend{By: "ada"})
		tp.do(Diverge{Divergence{Pos: 0, Expected: "approve {}", Got: "sleep {}"}})
		tp.want(Diverged)
	},
	"read-that-nobody-awaits": func(tp *tape) {
		tp.ask(KindRead, `{"ref":"dd"}`)
		tp.returns()
		tp.want(Completed)
	},
}
