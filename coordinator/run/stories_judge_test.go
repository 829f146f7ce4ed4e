package run

// benchRoles are three judges of three families; the name of the second does not tell its own.
var benchRoles = map[string][]RoleModel{
	"judge":  {{Model: "qwen3:8b"}, {Model: "house-tune:1", Family: "llama"}, {Model: "gemma3:12b"}},
	"writer": {{Model: "qwen3:14b"}, {Model: "mistral-small:24b"}},
}

// measured says of the first that it waves too much through, as long as it is that model with the worker's own texts.
var measured = []Calibrated{{Model: "qwen3:8b", Digest: "d of qwen3:8b", N: 30, TPR: 0.9, TNR: 0.5}, {Model: "gemma3:12b", Digest: "d of gemma3:12b", N: 30, TPR: 0.9, TNR: 0.9},
	{Model: "house-tune:1", Digest: "another", N: 30, TPR: 0.1, TNR: 0.1}, {Model: "house-tune:1", Digest: "d of house-tune:1", Prompts: "other", N: 30}}

var judgeStories = map[string]func(*tape){
	"passed-by-two": func(tp *tape) { // the first is advisory, so a third is asked
		tp.ask(KindEvaluate, `{"criteria":["short"],"model":"judge","subject":"a text"}`)
		tp.succeed(tp.place(0, 0, "n1"), met("short"))
		tp.succeed(tp.place(0, 0, "n2"), met("short"))
		tp.succeed(tp.place(0, 0, "n2"), met("short"))
		tp.returns()
		tp.want(Completed)
	},
	"third-judge": func(tp *tape) {
		tp.ask(KindEvaluate, `{"author":"qwen3:14b","criteria":["short"],"model":["judge","phi4"],"subject":"a text"}`) // its relative is passed over
		tp.succeed(tp.place(0, 0, "n1"), met("short"))
		tp.succeed(tp.place(0, 0, "n2"), missing("short"))
		tp.succeed(tp.place(0, 0, "n1"), missing("short"))
		tp.returns()
		tp.want(Completed)
	},
	"judged-in-a-batch": func(tp *tape) { // by two who are no relatives of the writer, and one of them gives nothing
		tp.ask(KindBatch, `{"evaluate":{"criteria":["short"],"model":"judge"},"items":["a","b"],"model":"writer","prompt":"{{item}}","retry":{"attempts":2}}`)
		tp.succeed(tp.place(0, 0, "n1"), `"A"`)
		tp.succeed(tp.place(0, 1, "n1"), `"B"`)
		tp.fail(tp.place(0, 0, "n2"), "text_instead_of_structure", Changed)
		tp.fail(tp.place(0, 0, "n2"), "text_instead_of_structure", Changed) // for good: gemma sits in its place, and one is too few
		tp.succeed(tp.place(0, 1, "n2"), met("short"))
		tp.succeed(tp.place(0, 0, "n2"), met("short"))
		tp.succeed(tp.place(0, 1, "n1"), notMet("short"))
		tp.succeed(tp.place(0, 1, "n1"), `"B2"`)
		tp.succeed(tp.place(0, 1, "n2"), met("short"))
		tp.succeed(tp.place(0, 1, "n1"), met("short"))
		tp.returns()
		tp.want(Incomplete)
	},
	"code-decides-alone": func(tp *tape) {
		tp.ask(KindEvaluate, `{"code":[{"detail":"exit code 1","name":"tests","passed":false}],"criteria":["short"],"model":"judge","subject":"a text"}`)
		tp.returns()
		tp.want(Completed)
	},
	"only-judge-cannot-tell": func(tp *tape) {
		tp.ask(KindGenerate, `{"evaluate":{"criteria":[{"must":true,"text":"short"}],"model":"qwen3:8b"},"model":"qwen3:14b","prompt":"write"}`)
		tp.succeed(tp.place(0, 0, "n1"), `"A"`)
		tp.succeed(tp.place(0, 0, "n1"), unsure("short"))
		tp.fail(tp.place(0, 0, "n1"), KindNodeLost, OtherNode)
		tp.succeed(tp.place(0, 0, "n1"), unsure("short"))
		tp.returns()
		tp.want(Incomplete)
	},
}

var ladderStories = map[string]func(*tape){
	"plan-repaired": func(tp *tape) {
		tp.ask(KindPlan, `{"goal":"write notes","model":"planner"}`)
		tp.refuse(tp.place(0, 0, "n1"), "e1", "cycle: s1 waits for itself", "numbers: there is no step 2")
		tp.fail(tp.place(0, 0, "n1"), KindNodeLost, OtherNode) // the repair is asked for again, as it was
		tp.refuse(tp.place(0, 0, "n2"), "e2", "cycle: s1 waits for itself")
		tp.succeed(tp.place(0, 0, "n2"), `{"note":"","order":["s1"],"outcome":"plan","questions":[],"steps":[]}`)
		tp.returns()
		tp.want(Completed)
	},
	"plan-for-a-person": func(tp *tape) {
		tp.ask(KindPlan, `{"goal":"write notes","model":["planner","other"]}`)
		for i, raw := range []string{"e1", "e2", "e3", "e4", "e5"} {
			rules := []string{"cycle: a", "numbers: b", "two_writers: c", "outcome: d", "fan_out: e"}
			tp.refuse(tp.place(0, 0, "n1"), raw, rules[i])
		}
		tp.returns()
		tp.want(Incomplete)
	},
	"room-then-another-model": func(tp *tape) {
		tp.ask(KindGenerate, `{"model":["small","large"],"prompt":"write"}`)
		tp.fail(tp.place(0, 0, "n1"), "truncated", Changed)
		tp.fail(tp.place(0, 0, "n1"), "truncated", Changed)
		tp.succeed(tp.place(0, 0, "n1"), `"a text"`)
		tp.returns()
		tp.want(Completed)
	},
	"next-model-on-no-machine": func(tp *tape) {
		tp.ask(KindGenerate, `{"evaluate":{"criteria":["short"],"model":"judge"},"model":"writer","prompt":"write"}`)
		tp.do(Reject{Pos: 0, Item: 0, Failure: Failure{Kind: KindModelMissing, Message: "nobody has it", Advice: Never}})
		tp.succeed(tp.place(0, 0, "n1"), `"A"`)
		tp.do(Reject{Pos: 0, Item: 0, Failure: Failure{Kind: KindCannotFit, Message: "needs 80 GB", Advice: Never}})
		tp.succeed(tp.place(0, 0, "n1"), notMet("short"))
		tp.succeed(tp.place(0, 0, "n1"), `"B"`)
		tp.succeed(tp.place(0, 0, "n1"), met("short"))
		tp.succeed(tp.place(0, 0, "n2"), met("short"))
		tp.returns()
		tp.want(Completed)
	},
}
