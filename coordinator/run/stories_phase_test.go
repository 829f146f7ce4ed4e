package run

const design = `"pipeline":"dev","phases":["clarify","design","build"]`

var phaseStories = map[string]func(*tape){
	"pipeline": func(tp *tape) {
		tp.ask(KindPhase, `{`+design+`,"max_rollbacks":1}`)
		tp.ask(KindPhase, `{"done":{"outcome":"passed","phase":"clarify"},"pipeline":"dev"}`)
		tp.ask(KindPhase, `{"done":{"outcome":"needs_human","phase":"design","reason":"which colour?"},"pipeline":"dev"}`)
		tp.ask(KindPhase, `{"done":{"outcome":"passed","phase":"design"},"pipeline":"dev"}`)
		tp.ask(KindGenerate, `{"model":"small","prompt":"x"}`)
		tp.fail(tp.place(4, 0, "n1"), "input_too_long", Never) // a failure that the rollback makes void
		tp.ask(KindPhase, `{"done":{"outcome":"sent_back","phase":"build","reason":"there is a gap","target":"clarify"},"pipeline":"dev"}`)
		tp.ask(KindPhase, `{"done":{"outcome":"passed","phase":"clarify"},"pipeline":"dev"}`)
		tp.ask(KindPhase, `{"done":{"outcome":"passed","phase":"design"},"pipeline":"dev"}`)
		tp.ask(KindPhase, `{"done":{"outcome":"passed","phase":"build"},"pipeline":"dev"}`)
		tp.ask(KindPhase, `{"pipeline":"dev"}`)
		tp.returns()
		tp.want(Completed)
	},
	"pipeline-refusals": func(tp *tape) {
		tp.ask(KindPhase, `{"pipeline":"dev"}`)                                                                                 // it has not begun
		tp.ask(KindPhase, `{`+design+`,"max_rollbacks":0}`)                                                                     // begins
		tp.ask(KindPhase, `{"phases":["x"],"pipeline":"other"}`)                                                                // one at a time
		tp.ask(KindPhase, `{"done":{"outcome":"passed","phase":"build"},"pipeline":"dev"}`)                                     // not in progress
		tp.ask(KindPhase, `{"done":{"outcome":"sent_back","phase":"clarify","reason":"r","target":"build"},"pipeline":"dev"}`)  // not earlier
		tp.ask(KindPhase, `{"done":{"outcome":"sent_back","phase":"clarify","target":"build"},"pipeline":"dev"}`)               // no reason
		tp.ask(KindPhase, `{"done":{"outcome":"passed","phase":"clarify"},"pipeline":"dev"}`)                                   // passes
		tp.ask(KindPhase, `{"done":{"outcome":"sent_back","phase":"design","reason":"r","target":"clarify"},"pipeline":"dev"}`) // too often
		tp.ask(KindPhase, `{"phases":["clarify"],"pipeline":"dev"}`)                                                            // other phases
		tp.returns()
		tp.want(Incomplete)
	},
	"rolled-back-by-a-person": func(tp *tape) {
		tp.ask(KindPhase, `{`+design+`}`)
		tp.ask(KindPhase, `{"done":{"outcome":"passed","phase":"clarify"},"pipeline":"dev"}`)
		tp.ask(KindBatch, `{"items":["a","b"],"model":"small","prompt":"{{item}}"}`)
		id := tp.place(2, 0, "n1")
		tp.ask(KindQuestion, `{"text":"Which?"}`)
		_, _ = tp.try(Rollback{Pipeline: "dev", Phase: "build", Reason: "no", By: "ada"}) // refused: not earlier
		tp.do(Rollback{Pipeline: "dev", Phase: "clarify", Reason: "we forgot the users", By: "ada"})
		_, _ = tp.try(Finish{AttemptID: id}) // refused: nobody waits for it
		tp.ask(KindGenerate, `{"model":"small","prompt":"the old phase does not know yet"}`)
		tp.ask(KindPhase, `{"done":{"outcome":"passed","phase":"design"},"pipeline":"dev"}`) // its done is ignored
		for _, phase := range []string{"clarify", "design", "build"} {
			tp.ask(KindPhase, `{"done":{"outcome":"passed","phase":"`+phase+`"},"pipeline":"dev"}`)
		}
		tp.returns()
		tp.want(Completed)
	},
}
