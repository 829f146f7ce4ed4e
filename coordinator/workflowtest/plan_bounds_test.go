package workflowtest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// TestWithoutProgressAPersonIsAskedAtOnce: a new plan that leaves the same parts open and has done nothing more.
func TestWithoutProgressAPersonIsAskedAtOnce(t *testing.T) {
	for _, people := range []string{"none", "no", "yes"} {
		c := newCoordinator(t, nil, func(c call) any {
			if c.Kind == engine.CallPlan {
				return planOf(step("s1", "", fmt.Sprint("a", c.Label[len(c.Label)-1:], ".md")))
			}
			return failure("empty_turn")
		})
		asked := 0
		v := c.end(c.start("plan", goal(obj{"people": people != "none"})), func(w engine.Wait) *engine.Answer {
			asked++
			return &engine.Answer{Outcome: map[string]string{"no": "rejected", "yes": "approved"}[people], Comment: "use the other file", By: "ann"}
		})
		plans := c.staff.count(engine.CallPlan, "plan")
		if want := map[string][2]int{"none": {2, 0}, "no": {2, 1}, "yes": {3, 2}}[people]; plans != want[0] || asked != want[1] || v.Status != run.Incomplete {
			t.Errorf("%s: %d plans, %d questions, %s", people, plans, asked, v.Status)
		}
		c.staff.mu.Lock()
		if facts := show(c.staff.calls[len(c.staff.calls)-2].Request["facts"]); people == "yes" && !strings.Contains(facts, "A person says: use the other file") {
			t.Errorf("facts %s", facts)
		}
		c.staff.mu.Unlock()
	}
}

// TestPlansAreBounded: a part that meets a wall is planned anew twice, although each plan does something, and a run has three new plans.
func TestPlansAreBounded(t *testing.T) {
	for parts, plans := range map[int]int{1: 3, 2: 4} {
		c := newCoordinator(t, nil, func(c call) any {
			switch {
			case c.Kind == engine.CallPlan: // the second part waits for what only the third plan gets
				n := strings.ReplaceAll(c.Label, " ", "")
				list, _ := c.Request["parts"].([]any)
				steps := []obj{step("s1", "", n+"/ok", obj{"instruction": "do well " + n}), step("s2", "", n+"/bad", obj{"instruction": "fail " + n})}
				if len(list) > 1 {
					steps = append(steps, step("s3", n+"/bad", "", obj{"instruction": "fail later " + n, "parts": []string{"g2"}}))
				}
				return planOf(steps...)
			case c.Kind == engine.CallEvaluate:
				return judged("passed", "fine")
			case strings.HasSuffix(c.Label, "s2") && (parts == 1 || c.Label != "3.s2") || strings.HasSuffix(c.Label, "s3"):
				return failure("empty_turn")
			}
			return "a text of " + c.Label
		})
		v := c.end(c.start("plan", goal(obj{"parts": []string{"one", "two"}[:parts]})), nobody)
		if got := c.staff.count(engine.CallPlan, "plan"); got != plans || v.Status != run.Incomplete || !slices.Contains(v.Outputs, "result") || v.Acceptance.Covered != parts-1 {
			t.Errorf("%d parts: %d plans, %s with %v, %+v", parts, got, v.Status, v.Outputs, v.Acceptance)
		}
	}
}

// TestTheSameOfTheSameIsALoop: a worker that makes the same text again is stopped before anybody judges it again.
func TestTheSameOfTheSameIsALoop(t *testing.T) {
	c := newCoordinator(t, nil, func(c call) any {
		switch c.Kind {
		case engine.CallPlan:
			return planOf(step("s1", "", c.Label[:4]+fmt.Sprint(len(c.Label))+".md", obj{"instruction": "Write  the Notes."}))
		case engine.CallEvaluate:
			return judged("sent_back", "a line that is wrong")
		}
		return "always the same"
	})
	id := c.start("plan", goal(obj{"people": false}))
	c.end(id, nobody)
	if made, judgements := c.staff.count(engine.CallGenerate, "s1"), c.staff.count(engine.CallEvaluate, ""); made != 3 || judgements != 1 {
		t.Errorf("%d texts and %d judgements", made, judgements)
	}
	if got, want := c.steps(id), "[{s1 replaced loop} {2.s1 failed loop}]"; got != want {
		t.Errorf("steps %s", got)
	}
}

// TestWhatIsSentBackIsBounded: a step is done again with the lines that were found, twice at most, and a run six times.
func TestWhatIsSentBackIsBounded(t *testing.T) {
	for size, again := range map[int]int{1: 4, 4: 6} { // the steps of one plan, of which there are two
		var said [][]string
		n := 0
		c := newCoordinator(t, nil, func(c call) any {
			switch {
			case c.Kind == engine.CallPlan:
				var steps []obj
				for i := range size {
					steps = append(steps, step(fmt.Sprint("s", i+1), "", fmt.Sprintf("%d-%d", len(c.Label), i), obj{"instruction": fmt.Sprint("do ", i, c.Label)}))
				}
				return planOf(steps...)
			case c.Kind == engine.CallEvaluate:
				return judged("sent_back", fmt.Sprint("line ", n))
			case c.Label == "s1":
				said = append(said, c.Said)
			}
			n++
			return fmt.Sprint("text ", n)
		})
		v := c.end(c.start("plan", goal(obj{"people": false})), nobody)
		fact := func(n int) string {
			return fmt.Sprintf("not met: s1 is there (subject, line 1: %q)", fmt.Sprint("line ", n))
		}
		if want := [][]string{nil, {fact(1)}, {fact(1), fact(2)}}; size == 1 && show(said) != show(want) {
			t.Errorf("the first step was told %s", show(said))
		}
		if got := n - size*c.staff.count(engine.CallPlan, ""); got != again || v.Status != run.Incomplete {
			t.Errorf("%d steps: %s after %d texts, %d of them again", size, v.Status, n, got)
		}
	}
}

// TestWhatCannotBeUndoneIsAllowedFirst: a person sees what a tool is given before it acts; after a no it does not.
func TestWhatCannotBeUndoneIsAllowedFirst(t *testing.T) {
	schema := obj{"type": "object", "properties": obj{"path": obj{"type": "string"}, "body": obj{"type": "string"}}, "required": []string{"path", "body"}, "additionalProperties": false}
	workers := obj{"write": obj{"about": "writes"}, "save": obj{"about": "saves a text", "tool": "file.write", "schema": schema, "irreversible": true, "input": obj{"workspace": "notes"}}}
	for _, says := range []string{"approved", "rejected", "nobody"} {
		c := newCoordinator(t, nil, func(c call) any {
			switch {
			case c.Label == "plan":
				return planOf(step("s1", "", "notes.md"), step("s2", "notes.md", "", obj{"worker": "save", "depends_on": []string{"s1"}}))
			case c.Kind == engine.CallPlan:
				return failure("plan_invalid")
			case c.Kind == engine.CallEvaluate:
				return judged("passed", "fine")
			case c.Label == "input of s2" && len(c.Said) == 0:
				return obj{"path": "out.md", "body": "@nots.md"}
			case c.Label == "input of s2":
				return obj{"path": "out.md", "body": "@notes.md"}
			}
			return "the notes"
		})
		shown := ""
		id := c.start("plan", goal(obj{"workers": workers, "people": says != "nobody"}))
		v := c.end(id, func(w engine.Wait) *engine.Answer {
			shown += w.Title
			return &engine.Answer{Outcome: says, Comment: "not today", By: "ann"}
		})
		want := map[string]string{"approved": "completed [{s1 succeeded passed} {s2 succeeded passed}]", "rejected": "incomplete [{s1 succeeded passed} {s2 failed rejected}]",
			"nobody": "incomplete [{s1 succeeded passed} {s2 failed needs_human}]"}[says]
		if got := fmt.Sprint(v.Status, " ", c.steps(id)); got != want {
			t.Errorf("%s: %s, want %s; %s", says, got, want, v.Error)
		}
		if (shown == "Step s2: do s2") != (says != "nobody") {
			t.Errorf("%s: asked %q", says, shown)
		}
		if result := c.outputs(id); !strings.Contains(result, `"name": "s1"`) {
			t.Errorf("%s: the result is not the text: %s", says, result)
		}
	}
}

// TestAJudgeThatNeedsAPersonGetsOne: a yes takes the step as done, a no sends it back, without people it is not done.
func TestAJudgeThatNeedsAPersonGetsOne(t *testing.T) {
	for says, want := range map[string]string{"approved": "completed [{s1 succeeded passed}] 1", "rejected": "completed [{s1 succeeded passed}] 2", "nobody": "incomplete [{s1 replaced needs_human} {2.s1 failed needs_human}] 2"} {
		n := 0
		c := newCoordinator(t, nil, func(c call) any {
			switch {
			case c.Kind == engine.CallPlan:
				return planOf(step("s1", "", fmt.Sprint("a", len(c.Label))))
			case c.Kind == engine.CallEvaluate && (says == "nobody" || n == 1) && strings.HasSuffix(c.Label, "s1"):
				return judged("needs_human", "")
			case c.Kind == engine.CallEvaluate:
				return judged("passed", "fine")
			}
			n++
			return fmt.Sprint("text ", n)
		})
		asked := []string{}
		id := c.start("plan", goal(obj{"people": says != "nobody"}))
		v := c.end(id, func(w engine.Wait) *engine.Answer {
			asked = append(asked, w.Title)
			return &engine.Answer{Outcome: says, Comment: "say which", By: "ann"}
		})
		if got := fmt.Sprint(v.Status, " ", c.steps(id), " ", n); got != want || says != "nobody" && !slices.Equal(asked, []string{"Is step s1 done?"}) {
			t.Errorf("%s: %s, want %s; asked %q", says, got, want, asked)
		}
	}
}

// TestTheWholeIsPutTogetherAgain with the reasons, within the bounds of a step, when it lacks no part and is sent back.
func TestTheWholeIsPutTogetherAgain(t *testing.T) {
	for accepted, want := range map[int]string{2: "completed assemble 1", 9: "incomplete assemble 2"} {
		asked := 0
		var told []string
		c := newCoordinator(t, nil, func(c call) any {
			switch {
			case c.Kind == engine.CallPlan:
				return planOf(step("s1", "", "a.md"))
			case c.Label == "judge the whole":
				if asked++; asked < accepted {
					return judged("sent_back", fmt.Sprint("fault ", asked))
				}
				fallthrough
			case c.Kind == engine.CallEvaluate:
				return judged("passed", "fine")
			case c.Label == "assemble":
				told = c.Said
			}
			return fmt.Sprint("text ", c.Label, c.Said)
		})
		v := c.end(c.start("plan", goal(nil)), nobody)
		if got := fmt.Sprint(v.Status, " assemble ", c.staff.count(engine.CallGenerate, "assemble")); got != want || !strings.Contains(show(told), `fault`) {
			t.Errorf("%s, want %s; told %q", got, want, told)
		}
	}
}

// TestWithoutAJudgeAPersonDecides: its failure is accepted then, and without people the step is planned anew.
func TestWithoutAJudgeAPersonDecides(t *testing.T) {
	for _, people := range []bool{true, false} {
		c := newCoordinator(t, nil, func(c call) any {
			switch {
			case c.Kind == engine.CallPlan:
				return planOf(step("s1", "", fmt.Sprint(len(c.Label))))
			case c.Label == "judge s1":
				return failure("stall")
			case c.Kind == engine.CallEvaluate:
				return judged("passed", "fine")
			}
			return "text " + c.Label
		})
		var asked []string
		id := c.start("plan", goal(obj{"people": people}))
		v := c.end(id, yes(&asked))
		if got, want := fmt.Sprint(v.Status, c.steps(id), asked), map[bool]string{true: "completed[{s1 succeeded passed}][Is step s1 done?]", false: "completed[{s1 replaced stall} {2.s1 succeeded passed}][]"}[people]; got != want {
			t.Errorf("%s, want %s", got, want)
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
		made := 0
		c := newCoordinator(t, nil, func(c call) any {
			bad := rng.Float64() < harm
			switch c.Kind {
			case engine.CallPlan:
				if bad {
					return failure("plan_invalid")
				}
				at := "/" + strings.ReplaceAll(c.Label, " ", "")
				return planOf(step("s1", "", "a"+at), step("s2", "a"+at, "b"+at), step("s3", "", "c"+at), step("s4", "b"+at+" c"+at, "d"+at))
			case engine.CallEvaluate:
				if bad {
					return []any{failure("stall"), judged("sent_back", "it is short"), judged("needs_human", "")}[rng.IntN(3)]
				}
				accepted[strings.TrimPrefix(c.Label, "judge ")] = true
				return judged("passed", "fine")
			}
			if bad {
				return []any{failure("empty_turn"), "CANNOT BE DONE: something is missing"}[rng.IntN(2)]
			}
			made++
			return fmt.Sprint("the result of ", c.Label, made)
		})
		id := c.start("plan", goal(obj{"people": false}))
		v := c.end(id, nobody)
		ends[v.Status]++
		texts, again := map[string]int{}, 0
		for _, c := range c.staff.calls {
			if texts[fmt.Sprint(c.Kind, c.Label)]++; c.Kind == engine.CallGenerate && (texts[fmt.Sprint(c.Kind, c.Label)] > 1 || c.Label == "assemble") {
				again++
			}
		}
		if most := slices.Max(slices.Collect(maps.Values(texts))); most > 3 || again > 6 || c.staff.count(engine.CallPlan, "") > 4 {
			t.Errorf("seed %d: a bound was exceeded: %v", seed, texts)
		}
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
