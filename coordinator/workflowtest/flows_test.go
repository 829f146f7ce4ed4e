package workflowtest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

type obj = map[string]any

func judged(verdict, reason string) obj {
	reasons := []string{}
	if reason != "" {
		reasons = append(reasons, reason)
	}
	return obj{"verdict": verdict, "reasons": reasons, "facts": []any{}, "opinions": []any{}}
}

// planOf is a plan of steps, each "id: what it needs".
func planOf(prefix string, steps ...string) obj {
	var list []obj
	var order []string
	for _, s := range steps {
		id, needs, _ := strings.Cut(s, ":")
		order = append(order, id)
		list = append(list, obj{"id": id, "goal": "do " + prefix + id, "depends_on": append([]string{}, strings.Fields(needs)...), "model": "", "writes": []string{}, "external": false})
	}
	return obj{"steps": list, "order": order}
}

type shownStep struct{ ID, Status, Verdict string }

const planned2 = `{"goal":"Write release notes","planner":"m","model":"m","judge":"j","attempts":2}`

// TestPlanIsMadeAnewAtAWall: an executor says that the next step is not in the plan, and another step fails for good. What was done
// is kept and given to the new plan's steps.
func TestPlanIsMadeAnewAtAWall(t *testing.T) {
	var again call
	given := ""
	c := newCoordinator(t, nil, func(c call) any {
		switch {
		case c.Label == "plan":
			return planOf("", "a:", "b: a", "c:", "d: c")
		case c.Label == "plan 2":
			again = c
			return planOf("new ", "a:", "b: a")
		case c.Kind == engine.CallEvaluate:
			return judged("passed", "")
		case c.Label == "b":
			return "**NOT IN THE PLAN:** list the breaking changes first"
		case c.Label == "c":
			return failure("schema_violation")
		case c.Label == "2.a":
			given = show(c.Request["context"])
		}
		return "the result of " + c.Label
	})
	id := c.start("plan", planned2)
	v := c.end(id, nobody)
	if v.Status != run.Completed {
		t.Errorf("%s: %+v", v.Status, v.Acceptance)
	}
	if text := show(again.Request["context"]); !strings.Contains(text, `"name":"a"`) || !strings.Contains(text, `- a: do a`) || strings.Contains(text, "do b") {
		t.Errorf("the planner was told as facts: %s", text)
	}
	if text, want := strings.Join(again.Said, "\n"), "do b: something has to be done before: list the breaking changes first\ndo c: it was schema_violation\ndo d: skipped, because it needs step c: it was schema_violation"; text != want {
		t.Errorf("the planner was told %q, want %q", text, want)
	}
	if !strings.Contains(given, `"name":"a"`) {
		t.Errorf("a step of the new plan was given %s", given)
	}
	var steps []shownStep
	c.output(id, "steps", &steps)
	if got, want := fmt.Sprint(steps), "[{a succeeded passed} {b replaced not_in_plan} {c replaced schema_violation} {d replaced skipped} {2.a succeeded passed} {2.b succeeded passed}]"; got != want {
		t.Errorf("steps %s\nwant  %s", got, want)
	}
	if w := v.Acceptance.Waived; len(w) != 1 || w[0].Reason != "a new plan replaced step c" {
		t.Errorf("waived %+v", w)
	}
	if got := strings.Count(c.staff.labels(), "judge a"); got != 1 {
		t.Errorf("what was done was judged %d times", got)
	}
}

func TestPlansAreBounded(t *testing.T) {
	for input, plans := range map[string]int{`"replans":0`: 1, `"replans":1`: 2, `"replans":5`: 4} {
		c := newCoordinator(t, nil, func(c call) any {
			switch {
			case c.Kind == engine.CallPlan && c.Label == "plan 4":
				return failure("plan_invalid")
			case c.Kind == engine.CallPlan:
				return planOf(c.Label+" ", "a:", "b:")
			case c.Kind == engine.CallEvaluate:
				return judged("passed", "")
			case strings.HasSuffix(c.Label, "b"):
				return failure("empty_turn")
			}
			return "done"
		})
		id := c.start("plan", strings.Replace(planned2, "{", "{"+input+",", 1))
		v := c.end(id, nobody)
		if got := strings.Count(c.staff.labels(), "plan"); got != plans || v.Status != run.Incomplete || !slices.Contains(v.Outputs, "result") {
			t.Errorf("%s: %d plans, %s with %v", input, got, v.Status, v.Outputs)
		}
	}
}

// TestAPlanNeverClaimsAStepThatNobodyAccepted: completed means that the last plan was done to its end and the whole was accepted.
func TestAPlanNeverClaimsAStepThatNobodyAccepted(t *testing.T) {
	ends := map[run.Status]int{}
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		harm := rng.Float64() / 3
		accepted := map[string]bool{}
		c := newCoordinator(t, nil, func(c call) any {
			bad := rng.Float64() < harm
			switch c.Kind {
			case engine.CallPlan:
				if bad {
					return failure("plan_invalid")
				}
				return planOf(c.Label+" ", "a:", "b: a", "c:", "d: b c")
			case engine.CallEvaluate:
				if bad {
					return []any{failure("stall"), judged("sent_back", "it is short"), judged("needs_human", "it is odd")}[rng.IntN(3)]
				}
				accepted[strings.TrimPrefix(c.Label, "judge ")] = true
				return judged("passed", "")
			}
			if bad {
				return []any{failure("empty_turn"), "NOT IN THE PLAN: something else"}[rng.IntN(2)]
			}
			return "the result of " + c.Label
		})
		id := c.start("plan", planned2)
		v := c.end(id, nobody)
		ends[v.Status]++
		if v.Status == run.Failed {
			continue // the first plan could not be made
		}
		var steps []shownStep
		c.output(id, "steps", &steps)
		open := 0
		for _, s := range steps {
			if (s.Status == "succeeded") != (s.Verdict == "passed") || s.Status == "succeeded" && !accepted[s.ID] {
				t.Errorf("seed %d: %+v, accepted are %v", seed, s, accepted)
			}
			if s.Status == "failed" || s.Status == "skipped" {
				open++
			}
		}
		if a := v.Acceptance; v.Status != run.Completed && a != nil && len(a.Waived) > 0 {
			t.Errorf("seed %d: %s, and %+v count as made good", seed, v.Status, a.Waived)
		}
		if complete := open == 0 && accepted["the whole"]; (v.Status == run.Completed) != complete {
			t.Errorf("seed %d: %s with %d steps open, the whole accepted: %v\n%+v", seed, v.Status, open, accepted["the whole"], v.Acceptance)
		}
	}
	if ends[run.Completed] < 2 || ends[run.Incomplete] < 2 {
		t.Errorf("the seeds show too little: %v", ends)
	}
}

func ref(name string) obj { return obj{"ref": strings.Repeat("a", 64), "name": name, "bytes": 9} }

func development(t *testing.T, more obj) (string, []run.Submitted) {
	input := obj{"request": "Count words", "model": "m", "judge": "j"}
	var knowledge []obj
	var submitted []run.Submitted
	for _, name := range []string{"project", "architecture", "conventions", "testing"} {
		knowledge = append(knowledge, ref("knowledge/"+name+".md"))
		submitted = append(submitted, run.Submitted{Key: "knowledge/" + name + ".md"})
	}
	input["knowledge"] = knowledge
	for name, v := range more {
		input[name] = v
	}
	return show(input), submitted
}

// developers answer every phase as it should be; wrong, where it has something for a call, is what they say instead.
func developers(wrong func(c call) any) func(call) any {
	return func(c call) any {
		if said := wrong(c); said != nil {
			return said
		}
		if c.Kind == engine.CallEvaluate {
			return judged("passed", "")
		}
		switch label, _, _ := strings.Cut(c.Label, " "); label {
		case "clarify":
			return obj{"goals": []string{"it counts words"}, "questions": []string{"Which language?"}}
		case "design":
			return "One function in count.go, one in main.go."
		case "decompose":
			p := planOf("", "count:", "main: count")
			for i, name := range []string{"count.go", "main.go"} {
				p["steps"].([]obj)[i]["writes"] = []string{name}
			}
			return p
		case "test":
			return obj{"cases": []obj{{"step": "count", "name": "empty", "given": "", "seen": "0"}, {"step": "main", "name": "help", "given": "-h", "seen": "usage"}}}
		case "review":
			return obj{"findings": []obj{}}
		case "implement":
			return obj{"files": []obj{{"path": strings.TrimPrefix(c.Label, "implement ") + ".go", "text": "package main"}}}
		case "code":
			return []obj{}
		}
		return failure("unexpected " + c.Label)
	}
}

func agreeable(w engine.Wait) *engine.Answer {
	switch {
	case w.Kind == engine.WaitApprove:
		return &engine.Answer{Outcome: "approved", By: "ann"}
	case w.Schema != nil:
		return &engine.Answer{Value: []byte(`{"passed":true,"seen":"all green"}`), By: "ann"}
	default:
		return &engine.Answer{Value: []byte(`"Go"`), By: "ann"}
	}
}

func rounds(v engine.View) string {
	var out []string
	for _, p := range v.Phases {
		out = append(out, fmt.Sprintf("%s %d", p.Name, p.Round))
	}
	return strings.Join(out, ", ")
}

func TestThePipelineDevelops(t *testing.T) {
	answered := ""
	c := newCoordinator(t, nil, developers(func(c call) any {
		if c.Label == "design" {
			answered = show(c.Body)
		}
		return nil
	}))
	input, submitted := development(t, nil)
	id := c.start("pipeline", input, submitted...)
	v := c.end(id, agreeable)
	if v.Status != run.Completed || v.Acceptance.Covered != 4 {
		t.Fatalf("%s %s: %+v", v.Status, v.Error, v.Acceptance)
	}
	if got, want := rounds(v), "clarify 1, design 1, decompose 1, test_plan 1, review 1, implement 1, code_quality 1, end_to_end 1, acceptance 1, archive 1"; got != want {
		t.Errorf("phases %s", got)
	}
	if !strings.Contains(answered, `"answer":"Go","question":"Which language?"`) {
		t.Errorf("the design was given %s", answered)
	}
	var result struct {
		Files    []string
		Written  bool
		EndToEnd struct {
			Passed bool
			By     string
		} `json:"end_to_end"`
		Acceptance string
	}
	c.output(id, "result", &result)
	if got, want := show(result), `{"Files":["count.go","main.go"],"Written":false,"end_to_end":{"Passed":true,"By":"ann"},"Acceptance":"passed"}`; got != want {
		t.Errorf("result %s", got)
	}
}

// TestEveryPhaseGoesBackWithItsReason: what a phase finds wrong goes to the phase that can repair it, which is given the reason.
func TestEveryPhaseGoesBackWithItsReason(t *testing.T) {
	cases := map[string]struct {
		label  string // the call that goes wrong, each time in the first round
		says   any
		tries  int // how often it has to, because it is tried again first
		phases string
		told   string // whose next call is told
		reason string
	}{
		"a design that no judge accepts": {"", judged("sent_back", "goal one is not achieved"), 3, "clarify 2, design 2", "clarify", "goal one is not achieved"},
		"steps that write one file":      {"decompose", twice(), 3, "clarify 1, design 2, decompose 2", "design", "both write a.go"},
		"steps that leave the project":   {"decompose", outside(), 3, "clarify 1, design 2, decompose 2", "design", "../a.go does not lie within the project"},
		"a step without a test":          {"test plan", obj{"cases": []obj{{"step": "count", "name": "n", "given": "g", "seen": "s"}}}, 3, "clarify 1, design 1, decompose 2, test_plan 2", "decompose", "step main has no case"},
		"a review that finds gaps":       {"review", obj{"findings": []obj{{"phase": "test_plan", "problem": "too few"}, {"phase": "design", "problem": "no errors"}}}, 1, "clarify 1, design 2, decompose 2, test_plan 2, review 2", "design", "review: test_plan: too few; design: no errors"},
		"a gap that the code finds":      {"implement main", obj{"files": []obj{}, "gap": "which exit code?"}, 1, "clarify 1, design 2, decompose 2, test_plan 2, review 2, implement 2", "design", "main: which exit code?"},
		"a file that is missing":         {"implement count", obj{"files": []obj{}}, 3, "clarify 1, design 1, decompose 2, test_plan 2, review 2, implement 2", "decompose", "the file count.go is missing"},
		"code that breaks a convention":  {"code quality", []obj{{"quote": "package", "problem": "no comment"}}, 1, "clarify 1, design 1, decompose 1, test_plan 1, review 1, implement 2, code_quality 2", "implement count", `no comment ("package")`},
		"an end-to-end test that fails":  {"end to end", judged("sent_back", "it counts 0"), 1, "clarify 1, design 1, decompose 1, test_plan 1, review 1, implement 2, code_quality 2, end_to_end 2", "implement count", "it counts 0"},
		"a result that is not accepted":  {"acceptance", judged("sent_back", "no help"), 1, "clarify 1, design 1, decompose 1, test_plan 1, review 1, implement 2, code_quality 2, end_to_end 2, acceptance 2", "implement count", "acceptance: no help"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wrong := 0
			var told []string
			c := newCoordinator(t, nil, developers(func(c call) any {
				isDesign := tc.label == "" && c.Kind == engine.CallEvaluate && c.Label != "end to end" && c.Label != "acceptance"
				if c.Label == tc.told && wrong == tc.tries && told == nil {
					told = c.Said
				}
				if (isDesign || tc.label != "" && c.Label == tc.label) && wrong < tc.tries {
					wrong++
					return tc.says
				}
				return nil
			}))
			input, submitted := development(t, obj{"people": false})
			v := c.end(c.start("pipeline", input, submitted...), nobody)
			if v.Status != run.Completed || !strings.HasPrefix(rounds(v), tc.phases) {
				t.Errorf("%s %s: %s\n%+v", v.Status, v.Error, rounds(v), v.Acceptance)
			}
			if !strings.Contains(strings.Join(told, "; "), tc.reason) {
				t.Errorf("%s was told %q, want %s", tc.told, told, tc.reason)
			}
		})
	}
}

func twice() obj {
	p := planOf("", "a:", "b:")
	p["steps"].([]obj)[0]["writes"], p["steps"].([]obj)[1]["writes"] = []string{"a.go"}, []string{"a.go"}
	return p
}

func outside() obj {
	p := planOf("", "a:")
	p["steps"].([]obj)[0]["writes"] = []string{"../a.go"}
	return p
}

// TestAPersonGoesBackInThePipeline in the middle of the end-to-end test, and says no to what is to be accepted.
func TestAPersonGoesBackInThePipeline(t *testing.T) {
	c := newCoordinator(t, nil, developers(func(call) any { return nil }))
	input, submitted := development(t, nil)
	id := c.start("pipeline", input, submitted...)
	back, no := false, false
	v := c.end(id, func(w engine.Wait) *engine.Answer {
		switch {
		case w.Kind == engine.WaitQuestion && w.Schema != nil && !back:
			back = true
			if _, err := c.e.Rollback(t.Context(), id, "", "design", "think of Unicode", "ann"); err != nil {
				t.Error(err)
			}
			return nil
		case w.Kind == engine.WaitApprove && !no:
			no = true
			return &engine.Answer{Outcome: "rejected", Comment: "I meant lines", By: "ann"}
		}
		return agreeable(w)
	})
	if want := "clarify 2, design 3, decompose 3, test_plan 3, review 3, implement 3, code_quality 3, end_to_end 3, acceptance 2, archive 1"; v.Status != run.Completed || rounds(v) != want {
		t.Errorf("%s %s: %s", v.Status, v.Error, rounds(v))
	}
	reasons := []string{}
	c.staff.mu.Lock()
	for _, call := range c.staff.calls {
		if call.Label == "design" || call.Label == "clarify" {
			reasons = append(reasons, strings.Join(call.Said, ";"))
		}
	}
	c.staff.mu.Unlock()
	if got := strings.Join(reasons, "|"); !strings.Contains(got, "think of Unicode") || !strings.Contains(got, "I meant lines") {
		t.Errorf("the phases were told %s", got)
	}
}

func TestThePipelineGoesBackOnlySoOften(t *testing.T) {
	c := newCoordinator(t, nil, developers(func(c call) any {
		if c.Label == "review" {
			return obj{"findings": []obj{{"phase": "design", "problem": "never good"}}}
		}
		return nil
	}))
	input, submitted := development(t, obj{"people": false, "max_rollbacks": 2})
	v := c.end(c.start("pipeline", input, submitted...), nobody)
	if got := strings.Count(c.staff.labels(), "review"); v.Status != run.Failed || got != 3 || !strings.Contains(v.Error, "rollback") {
		t.Errorf("%s after %d reviews: %s", v.Status, got, v.Error)
	}
}

// TestAnotherProjectIsAnotherFolder: what is missing is named with the phases that need it, what nobody needs is waived.
func TestAnotherProjectIsAnotherFolder(t *testing.T) {
	c := newCoordinator(t, nil, developers(func(call) any { return nil }))
	v := c.end(c.start("pipeline", show(obj{"request": "r", "model": "m", "knowledge": []obj{ref("a/project.md"), ref("b/testing.txt")}})), nobody)
	if v.Status != run.Failed || !strings.Contains(v.Error, "the project's texts lack architecture (for design), conventions (for review, implement, code_quality)") {
		t.Errorf("%s: %s", v.Status, v.Error)
	}
	input, submitted := development(t, obj{"people": false})
	input = strings.Replace(input, `"knowledge":[`, `"knowledge":[`+show(ref("README.md"))+`,`, 1)
	v = c.end(c.start("pipeline", input, append(submitted, run.Submitted{Key: "README.md"})...), nobody)
	if v.Status != run.Completed || v.Acceptance.Covered != 4 || v.Acceptance.Handled != 1 {
		t.Errorf("%s: %+v", v.Status, v.Acceptance)
	}
}
