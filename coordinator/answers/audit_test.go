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

// audit asks everything, with all bodies there and a chain that fits, but for what around says.
func (tp *tape) audit(around answers.Around) map[string]answers.Check {
	tp.t.Helper()
	r, err := answers.Fold(tp.recorded())
	if err != nil {
		tp.t.Fatal(err)
	}
	out := map[string]answers.Check{}
	for _, c := range r.Audit(around) {
		if c.Question == "" || c.Answer == "" {
			tp.t.Errorf("%s says nothing: %+v", c.Code, c)
		}
		out[c.Code] = c
	}
	return out
}

// only checks that exactly one question has findings, and that they say what they must.
func (tp *tape) only(code, says string) {
	tp.t.Helper()
	tp.onlyWith(answers.Around{}, code, says)
}

func (tp *tape) onlyWith(around answers.Around, code, says string) {
	tp.t.Helper()
	for _, c := range tp.audit(around) {
		switch {
		case c.Code != code && !c.Passed():
			tp.t.Errorf("%s: %q", c.Code, c.Findings)
		case c.Code == code:
			has(tp.t, code, c.Findings, says)
		}
	}
}

func TestAnAuditOfACleanRunFindsNothing(t *testing.T) {
	tp := twoSteps(t)
	checks := tp.audit(answers.Around{Head: answers.ChainEnd{Seq: 9, Hash: "ab"}, Computed: answers.ChainEnd{Seq: 9, Hash: "ab"}})
	if len(checks) != 7 {
		t.Errorf("%d questions", len(checks))
	}
	for _, c := range checks {
		if !c.Passed() {
			t.Errorf("%s: %q", c.Code, c.Findings)
		}
	}
	has(t, "the round trips", []string{checks[answers.RoundTrips].Answer}, "1 batch of 2 items cost 1 request; beside them 1 single call, in 3 turns of the script")
	has(t, "the failures", []string{checks[answers.Replayable].Answer}, "1 attempt failed; of 1 a model had been asked")
}

// oneByOne asks for the same about several things, one after the other.
func oneByOne(t *testing.T, body func(i int) string) *tape {
	tp := begin(t, `{}`)
	for i := range 4 {
		pos := tp.ask("generate", body(i))
		tp.value(pos, 0, fmt.Sprintf(`"what came of number %d in the end"`, i))
	}
	tp.ask("output", `{"name":"result","sources":[0,1,2,3],"value":1}`)
	tp.returns()
	return tp
}

func TestAnAuditFindsWhatOneBatchWouldHaveSaved(t *testing.T) {
	oneByOne(t, func(i int) string {
		return fmt.Sprintf(`{"item":"document number %d","model":"qwen3:8b","prompt":"Summarise {{item}}"}`, i)
	}).only(answers.RoundTrips, "steps 0, 1, 2, 3 ask qwen3:8b for the same (generate) 4 times, one after the other: one batch of 4")
	oneByOne(t, func(i int) string {
		return fmt.Sprintf(`{"model":"qwen3:8b","prompt":"Summarise this in one sentence: number %d"}`, i)
	}).only(answers.RoundTrips, "one batch of 4")
}

func TestAnAuditLeavesOutWhatIsNoBatch(t *testing.T) {
	// Each rests on the one before it.
	oneByOne(t, func(i int) string {
		if i == 0 {
			return `{"item":"the first draft of it","model":"qwen3:8b","prompt":"Improve {{item}}"}`
		}
		return fmt.Sprintf(`{"item":"what came of number %d in the end","model":"qwen3:8b","prompt":"Improve {{item}}"}`, i-1)
	}).only(answers.RoundTrips, "")
	// Each does something else.
	oneByOne(t, func(i int) string {
		return fmt.Sprintf(`{"model":"qwen3:8b","prompt":%q}`, []string{"Name a colour", "Count the sheep in the meadow", "Say it in French", "Is it raining?"}[i])
	}).only(answers.RoundTrips, "")
	// Side by side they cost one turn.
	tp := begin(t, `{}`)
	var all []string
	for i := range 4 {
		all = append(all, "generate", fmt.Sprintf(`{"item":"document number %d","model":"qwen3:8b","prompt":"Summarise {{item}}"}`, i))
	}
	tp.ask(all...)
	for i := range 4 {
		tp.value(i, 0, `1`)
	}
	tp.returns()
	if c := tp.audit(answers.Around{})[answers.RoundTrips]; !c.Passed() {
		t.Errorf("%q", c.Findings)
	}
}

func write(path string) string {
	return fmt.Sprintf(`{"input":{"body":"x","path":%q,"workspace":"w"},"name":"file.write"}`, path)
}

func TestAnAuditFindsBranchesThatShareWrites(t *testing.T) {
	side := func(a, b string) *tape {
		tp := begin(t, `{}`)
		tp.ask("tool", write(a), "tool", write(b))
		for i := range 2 {
			tp.finish(tp.place(i, 0, run.Work, true), run.Content{Value: json.RawMessage(`{}`)})
		}
		tp.returns()
		return tp
	}
	side("out/a.txt", "out/./a.txt").only(answers.SharedWrites, "step 0 and step 1 write w:out/a.txt, and neither waited for the other")
	side("out/a.txt", "out/b.txt").only(answers.SharedWrites, "")

	// One after the other is no conflict.
	tp := begin(t, `{}`)
	for range 2 {
		pos := tp.ask("tool", write("out/a.txt"))
		tp.finish(tp.place(pos, 0, run.Work, true), run.Content{Value: json.RawMessage(`{}`)})
	}
	tp.returns()
	tp.only(answers.SharedWrites, "")
}

func TestAnAuditFindsSharedWritesOfChildrenAndPlans(t *testing.T) {
	child := begin(t, `{}`)
	child.ask("tool", write("out/a.txt"))
	child.finish(child.place(0, 0, run.Work, true), run.Content{Value: json.RawMessage(`{}`)})
	child.returns()

	tp := begin(t, `{}`)
	tp.ask("spawn", `{"workflow":"w"}`, "spawn", `{"workflow":"w"}`)
	tp.do(run.Spawned{Pos: 0, Run: "c1"})
	tp.do(run.Spawned{Pos: 1, Run: "c2"})
	for i, id := range []string{"c1", "c2"} {
		tp.do(run.ChildEnded{Pos: i, End: run.ChildEnd{Run: id, Status: run.Completed}, Report: run.Content{Value: json.RawMessage(`{}`)}})
	}
	tp.returns()
	tp.onlyWith(answers.Around{Children: map[string]*run.State{"c1": child.s, "c2": child.s}}, answers.SharedWrites, "step 0 (run c1) and step 1 (run c2) write w:out/a.txt")

	plan := func(depends string) *tape {
		tp := begin(t, `{}`)
		tp.ask("plan", `{"goal":"g","model":"qwen3:8b"}`)
		tp.value(0, 0, `{"order":["a","b","c"],"steps":[{"depends_on":[],"id":"a","writes":["x"]},{"depends_on":["a"],"id":"b","writes":[]},{"depends_on":[`+depends+`],"id":"c","writes":["x"]}]}`)
		tp.returns()
		return tp
	}
	plan(``).only(answers.SharedWrites, "step 0 plans a and c, which both write x")
	plan(`"b"`).only(answers.SharedWrites, "")
}

func TestAnAuditFindsFailuresThatCannotBeReplayed(t *testing.T) {
	failed := func(kind, asked string) *tape {
		tp := begin(t, `{"file":{"bytes":9,"name":"a.md","ref":"`+docA+`"}}`)
		tp.ask("generate", `{"model":"qwen3:8b","prompt":"Say it"}`)
		tp.fail(0, 0, kind, run.Again, asked, "")
		tp.value(0, 0, `1`)
		tp.returns()
		return tp
	}
	tp := failed("schema_violation", prompt)
	tp.only(answers.Replayable, "")
	tp.onlyWith(answers.Around{Gone: map[string]string{prompt: "its body was dropped on 2026-03-02"}}, answers.Replayable,
		"the prompt of step 0, try 1: its body was dropped on 2026-03-02")
	tp.onlyWith(answers.Around{Gone: map[string]string{script: "it is not in this ledger"}}, answers.Replayable, "the script: it is not in this ledger")
	tp.onlyWith(answers.Around{Gone: map[string]string{docA: "it is not in this ledger"}}, answers.Replayable, "the input aaaa")
	failed("schema_violation", "").only(answers.Replayable, "what it was asked is not recorded")
	failed("node_lost", "").only(answers.Replayable, "") // nobody answered, so there is nothing to have

	r, err := answers.Fold(tp.recorded())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{script, docA, prompt} {
		has(t, "what is needed", r.Needs(), want)
	}
}

func TestAnAuditFindsOutputsWithoutASource(t *testing.T) {
	with := func(sources string) *tape {
		tp := begin(t, `{}`)
		tp.ask("generate", `{"model":"qwen3:8b","prompt":"Say it","retry":{"attempts":1}}`, "generate", `{"model":"qwen3:8b","prompt":"Count the sheep"}`)
		tp.fail(0, 0, "schema_violation", run.Changed, prompt, reply)
		tp.value(1, 0, `1`)
		tp.ask("waive", `{"reason":"it is not needed","step":0}`, "output", `{"name":"result","sources":`+sources+`,"value":1}`)
		tp.returns()
		return tp
	}
	with(`[1]`).only(answers.Sources, "")
	with(`[0,1]`).only(answers.Sources, "") // its failure is handled
	with(`[]`).only(answers.Sources, "output result names no step that it rests on")
	with(`[17]`).only(answers.Sources, "rests on step 17, which there is not")

	tp := begin(t, `{}`)
	tp.ask("generate", `{"model":"qwen3:8b","prompt":"Say it","retry":{"attempts":1}}`)
	tp.fail(0, 0, "schema_violation", run.Changed, prompt, reply)
	tp.ask("output", `{"name":"result","sources":[0],"value":1}`)
	tp.returns()
	has(t, "a failed source", tp.audit(answers.Around{})[answers.Sources].Findings, "rests on step 0 (generate), which is failed")

	tp = begin(t, `{}`)
	tp.ask("output", `{"name":"result","sources":[],"value":1}`)
	tp.returns()
	tp.only(answers.Sources, "") // code alone made it, and nothing hides that
}

func TestAnAuditFindsWhatIsNotCovered(t *testing.T) {
	two := func(items string) *tape {
		tp := begin(t, `{}`, run.Submitted{Key: "a.md"}, run.Submitted{Key: "b.md"})
		tp.ask("batch", `{"items":`+items+`,"keys":`+items+`,"model":"qwen3:8b","prompt":"Review {{item}}"}`)
		for i := range tp.s.Step(0).Items {
			tp.value(0, i, `1`)
		}
		tp.returns()
		return tp
	}
	two(`["a.md","b.md"]`).only(answers.Coverage, "")
	two(`["a.md"]`).only(answers.Coverage, "1 key is not covered: b.md")

	tp := begin(t, `{}`)
	tp.ask("generate", `{"model":"qwen3:8b","prompt":"Say it","retry":{"attempts":1}}`)
	tp.fail(0, 0, "schema_violation", run.Changed, prompt, reply)
	tp.returns()
	tp.only(answers.Coverage, "the script neither handled nor reported it")
}

func TestAnAuditFindsClaimsWithoutEvidence(t *testing.T) {
	judged := func(verdict string) *tape {
		tp := begin(t, `{}`)
		tp.ask("generate", `{"evaluate":{"criteria":["true"],"model":"judge:8b"},"model":"qwen3:8b","prompt":"Say it"}`)
		tp.value(0, 0, `1`)
		tp.judge(0, 0, verdict)
		tp.returns()
		return tp
	}
	judged(passed).only(answers.Evidence, "")
	judged(bare).only(answers.Evidence, "step 0 was passed on opinions alone")

	tp := begin(t, `{}`, run.Submitted{Key: "a.md"})
	tp.ask("cover", `{"keys":["a.md"]}`)
	tp.returns()
	tp.only(answers.Evidence, "1 key is covered by the word of the script alone")

	approval := func(end run.Command) *tape {
		tp := begin(t, `{}`)
		tp.ask("approve", `{"on_timeout":"approved","timeout_seconds":5,"title":"Go on?"}`)
		tp.now = tp.now.Add(time.Minute)
		tp.do(end)
		tp.returns()
		return tp
	}
	approval(run.Settle{Pos: 0, Outcome: run.Approved, By: "ada"}).only(answers.Evidence, "")
	approval(run.Fire{}).only(answers.Evidence, "step 0 was approved because the time was up: nobody said yes")
}

func TestAnAuditHoldsTheChainAgainstItsEnd(t *testing.T) {
	tp := twoSteps(t)
	tp.onlyWith(answers.Around{Head: answers.ChainEnd{Seq: 9, Hash: strings.Repeat("ab", 32)}, Computed: answers.ChainEnd{Seq: 9, Hash: strings.Repeat("cd", 32)}},
		answers.Chained, "the events end in cdcdcdcdcdcd at 9, the ledger says abababababab at 9")
}
