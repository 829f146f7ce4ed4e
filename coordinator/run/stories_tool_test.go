package run

import "encoding/json"

// use places the next attempt of a tool.
func (tp *tape) use(pos int, external bool) AttemptID {
	tp.t.Helper()
	id := tp.s.Requests[pos].next(0)
	tp.do(Place{AttemptID: id, Node: "coordinator", External: external})
	return id
}

var toolStories = map[string]func(*tape){
	"tool": func(tp *tape) {
		tp.ask(KindTool, `{"input":{"path":"a"},"name":"file.read","retry":{"attempts":2}}`)
		tp.fail(tp.use(0, false), "tool_failed", Again)
		tp.do(Begin{tp.use(0, false)})
		tp.succeed(AttemptID{Pos: 0, Phase: Work, Number: 2}, `{"text":"x"}`)
		tp.returns()
		tp.want(Completed)
	},
	"write-did-not-happen": func(tp *tape) {
		tp.ask(KindTool, `{"input":{},"name":"mail.send"}`)
		tp.fail(tp.use(0, true), KindUnknown, Never) // the coordinator died while it was sent
		tp.want(Waiting)
		_, _ = tp.try(Place{AttemptID: AttemptID{Pos: 0, Phase: Work, Number: 2}, External: true}) // refused: not before it is known
		tp.do(Resolve{Pos: 0, By: "ada", Comment: "it is not in the outbox"})
		tp.want(Running)
		tp.succeed(tp.use(0, true), `{"id":7}`)
		tp.returns()
		tp.want(Completed)
	},
	"write-happened": func(tp *tape) {
		tp.ask(KindTool, `{"input":{},"name":"mail.send"}`)
		id := tp.use(0, true)
		tp.do(Begin{id})
		tp.fail(id, KindNodeLost, OtherNode)
		tp.do(Resolve{Pos: 0, Happened: true, Result: Content{Value: json.RawMessage(`{"id":7}`)}, By: "mail.send"})
		_, _ = tp.try(Resolve{Pos: 0, By: "ada"}) // refused: it is resolved
		tp.returns()
		tp.want(Completed)
	},
	"write-of-the-base-in-doubt": func(tp *tape) {
		tp.ask(KindTool, `{"input":{},"name":"mail.send"}`)
		tp.do(Doubt{Pos: 0, From: From{Run: "aaaa"}})
		tp.want(Waiting)
		_, _ = tp.try(Place{AttemptID: AttemptID{Pos: 0, Phase: Work, Number: 1}, External: true}) // refused
		tp.do(Resolve{Pos: 0, Happened: true, By: "ada"})
		tp.returns()
		tp.want(Completed)
	},
	"allowed": func(tp *tape) {
		tp.ask(KindTool, `{"input":{},"name":"mail.send","retry":{"attempts":2}}`)
		tp.do(Ask{Pos: 0, Question: Question{Title: "may mail.send run?", Show: json.RawMessage(`{}`)}})
		tp.want(Waiting)
		_, _ = tp.try(Place{AttemptID: AttemptID{Pos: 0, Phase: Work, Number: 1}, External: true}) // refused: nobody has allowed it
		_, _ = tp.try(Resolve{Pos: 0, By: "ada"})                                                  // refused: nothing is unknown
		tp.do(Permit{Pos: 0, Outcome: Approved, By: "ada", Comment: "go on"})
		tp.want(Running)
		tp.fail(tp.use(0, true), "http_error", Again)
		_, _ = tp.try(Ask{Pos: 0, Question: Question{Title: "again?"}}) // refused: the yes is for the step
		tp.succeed(tp.use(0, true), `{"id":7}`)
		tp.returns()
		tp.want(Completed)
	},
	"not-allowed": func(tp *tape) {
		tp.ask(KindTool, `{"input":{},"name":"mail.send"}`)
		tp.do(Ask{Pos: 0, Question: Question{Title: "may mail.send run?"}})
		_, _ = tp.try(Permit{Pos: 0, Outcome: "perhaps", By: "ada"}) // refused: it is neither
		tp.do(Permit{Pos: 0, Outcome: Rejected, By: "ada", Comment: "not today"})
		_, _ = tp.try(Permit{Pos: 0, Outcome: Approved, By: "bob"}) // refused: it is answered
		tp.returns()
		tp.want(Incomplete)
	},
	"cancelled-while-asked": func(tp *tape) {
		tp.ask(KindTool, `{"input":{},"name":"mail.send"}`)
		tp.do(Ask{Pos: 0, Question: Question{Title: "may mail.send run?"}})
		tp.do(Cancel{Reason: "enough"})
		tp.want(Cancelled) // and so is the step: nothing was done
	},
	"written-and-too-large": func(tp *tape) {
		tp.ask(KindTool, `{"input":{},"name":"mail.send"}`)
		tp.succeed(tp.use(0, true), `"a long receipt of more than twenty bytes"`)
		tp.returns()
		tp.want(Incomplete)
	},
	"cancelled-in-a-write": func(tp *tape) {
		tp.ask(KindTool, `{"input":{},"name":"mail.send"}`)
		tp.use(0, true)
		tp.do(Cancel{Reason: "stop"})
		tp.want(Cancelled) // and the step is unknown
	},
	"checked-sent-back-judged": func(tp *tape) {
		tp.ask(KindGenerate, `{"check":true,"evaluate":{"criteria":["good"],"model":"judge"},"model":"small","prompt":"x","schema":{}}`)
		tp.succeed(tp.place(0, 0, "n1"), `"long"`)
		_, _ = tp.try(Place{AttemptID: AttemptID{Pos: 0, Phase: Work, Number: 2}}) // refused: it is being checked
		tp.check(0, 0, false, "too long")
		tp.succeed(tp.place(0, 0, "n1"), `"short"`)
		tp.check(0, 0, true)
		tp.succeed(tp.place(0, 0, "n2"), met("good"))
		tp.check(0, 0, true) // not wanted any more
		tp.returns()
		tp.want(Completed)
	},
	"check-failed": func(tp *tape) {
		tp.ask(KindBatch, `{"check":true,"items":["a","b"],"model":"small","prompt":"{{item}}","retry":{"attempts":1},"schema":{}}`)
		tp.succeed(tp.place(0, 0, "n1"), `1`)
		tp.succeed(tp.place(0, 1, "n1"), `2`)
		tp.check(0, 1, true)
		tp.check(0, 0, false)
		tp.returns()
		tp.want(Incomplete)
	},
	"reused": func(tp *tape) {
		from := From{Run: "aaaa"}
		tp.ask(KindBatch, `{"check":true,"evaluate":{"criteria":["c"],"model":"j"},"items":["a","b"],"model":"small","prompt":"{{item}}"}`)
		tp.do(Reuse{Pos: 0, Item: 0, From: from, Result: Content{Ref: "ff", Bytes: 3, Text: true}, Node: "n1", Report: Report{Model: "small", OutputTokens: 5}})
		tp.check(0, 0, true) // and no judge: the result was accepted
		tp.do(Reuse{Pos: 0, Item: 1, From: from, Result: Content{Value: json.RawMessage(`1`)}})
		tp.check(0, 1, false, "the check is stricter now")
		id := tp.place(0, 1, "n1")
		_, _ = tp.try(Reuse{Pos: 0, Item: 1, From: from, Result: Content{Value: json.RawMessage(`1`)}}) // refused: it is under way
		tp.succeed(id, `2`)
		tp.check(0, 1, true)
		tp.succeed(tp.place(0, 1, "n1"), met("c"))
		tp.ask(KindApprove, `{"title":"Go on?"}`)
		tp.do(Reuse{Pos: 1, From: From{Run: "aaaa", Pos: 1}, Result: Content{Value: json.RawMessage(`{"by":"ada","comment":"","outcome":"approved","timed_out":false}`)}})
		tp.returns()
		tp.want(Completed)
	},
}

func (tp *tape) check(pos, item int, passed bool, reasons ...string) {
	tp.t.Helper()
	tp.do(Yield{Checks: []CheckAnswer{{pos, item, Checked{passed, reasons}}}})
}
