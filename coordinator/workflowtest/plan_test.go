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
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

type shownStep struct{ ID, Status, Verdict string }

// goal is an input of plan; more is put over it.
func goal(more obj) string {
	input := obj{"goal": "Write release notes", "planner": "m", "model": "m", "judge": "j"}
	for name, v := range more {
		input[name] = v
	}
	return show(input)
}

func (c *coordinator) steps(id string) string {
	var steps []shownStep
	c.output(id, "steps", &steps)
	return fmt.Sprint(steps)
}

// count says how many calls had a label that holds the part.
func (s *staff) count(kind engine.CallKind, part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if c.Kind == kind && strings.Contains(c.Label, part) {
			n++
		}
	}
	return n
}

// yes is a person who agrees to everything, and notes what it was asked.
func yes(asked *[]string) func(engine.Wait) *engine.Answer {
	return func(w engine.Wait) *engine.Answer {
		*asked = append(*asked, w.Title)
		if w.Kind == engine.WaitApprove {
			return &engine.Answer{Outcome: "approved", By: "ann"}
		}
		return &engine.Answer{Value: []byte(`"the second quarter"`), By: "ann"}
	}
}

// TestAWallIsPlannedAnew: a worker says that a step cannot be done, and another step fails for good. What was done is kept and not
// planned again, the new plan is given the wall as a fact and the worker's word as a lead, and is only about what is open.
func TestAWallIsPlannedAnew(t *testing.T) {
	var first, again call
	given := ""
	c := newCoordinator(t, nil, func(c call) any {
		switch {
		case c.Label == "split":
			return obj{"parts": []string{"Write notes for 2 releases", "Translate them", "List the authors"}}
		case c.Label == "plan":
			first = c
			return planOf(step("s1", "", "notes.md"), step("s2", "notes.md", "german.md", obj{"parts": []string{"g2"}}),
				step("s3", "", "names.md", obj{"parts": []string{"g3"}}), step("s4", "names.md", "authors.md", obj{"parts": []string{"g3"}}))
		case c.Label == "plan 2":
			again = c
			return planOf(step("s1", "notes.md", "terms.md"), step("s2", "notes.md terms.md", "german2.md"), step("s3", "", "authors2.md", obj{"parts": []string{"g2"}}))
		case c.Kind == engine.CallEvaluate:
			return judged("passed", "as it should be")
		case c.Label == "s2":
			return "**CANNOT BE DONE:** there is no list of terms"
		case c.Label == "s3":
			return failure("schema_violation")
		case c.Label == "2.s1":
			given = show(c.Request["context"])
		}
		return "the result of " + c.Label
	})
	id := c.start("plan", goal(obj{"goal": "Write notes for 2 releases. Translate them. List the authors."}))
	v := c.end(id, nobody)
	if v.Status != run.Completed || v.Acceptance.Expected != 3 || v.Acceptance.Covered != 3 {
		t.Errorf("%s %s: %+v", v.Status, v.Error, v.Acceptance)
	}
	if got, want := show([]any{first.Request["parts"], first.Request["facts"]}), `[["Write notes for 2 releases","Translate them","List the authors"],null]`; got != want {
		t.Errorf("the first plan was asked for with %s", got)
	}
	r := again.Request
	if got, want := show([]any{r["goal"], r["parts"], r["inputs"]}), `["Translate them\nList the authors",["Translate them","List the authors"],["notes.md"]]`; got != want {
		t.Errorf("the new plan was asked for with %s", got)
	}
	if got, want := show(r["facts"]), `["step s1 (do s1) is done; it wrote notes.md","step s2 (do s2) is not done: its worker said that it cannot be","step s3 (do s3) is not done: schema_violation: it was schema_violation"]`; got != want {
		t.Errorf("facts %s\nwant  %s", got, want)
	}
	if got, want := show(r["leads"]), `["of step s2: there is no list of terms"]`; got != want {
		t.Errorf("leads %s", got)
	}
	if !strings.Contains(given, `"## notes.md"`) {
		t.Errorf("a step of the new plan was given %s", given)
	}
	if got, want := c.steps(id), "[{s1 succeeded passed} {s2 replaced cannot} {s3 replaced schema_violation} {s4 replaced skipped} {2.s1 succeeded passed} {2.s2 succeeded passed} {2.s3 succeeded passed}]"; got != want {
		t.Errorf("steps %s\nwant  %s", got, want)
	}
	if w := v.Acceptance.Waived; len(w) != 1 || w[0].Reason != "a new plan replaced step s3" {
		t.Errorf("waived %+v", w)
	}
	if got := c.staff.count(engine.CallEvaluate, "judge s1"); got != 1 {
		t.Errorf("what was done was judged %d times", got)
	}
	if replay, err := c.e.Replay(t.Context(), id); err != nil || replay.Divergence != nil {
		t.Errorf("its replay: %v, %+v", err, replay.Divergence)
	}
}

// TestAPartThatIsDroppedMakesTheRunIncomplete, although every step that was made and the whole are accepted.
func TestAPartThatIsDroppedMakesTheRunIncomplete(t *testing.T) {
	c := newCoordinator(t, nil, func(c call) any {
		switch c.Kind {
		case engine.CallPlan:
			if c.Label != "plan" {
				return failure("plan_invalid")
			}
			return planOf(step("s1", "", "a.md"))
		case engine.CallEvaluate:
			return judged("passed", "fine")
		}
		return "a text"
	})
	v := c.end(c.start("plan", goal(obj{"parts": []string{"One thing", "Another"}})), nobody)
	if a := v.Acceptance; v.Status != run.Incomplete || !slices.Equal(a.UncoveredKeys, []string{"g2: Another"}) || a.Covered != 1 {
		t.Errorf("%s: %+v", v.Status, a)
	}
}

// TestAPlanWhoseSplitLostAPartIsIncomplete: the split is doubted once, and in the end the whole is held to the goal as it was put.
func TestAPlanWhoseSplitLostAPartIsIncomplete(t *testing.T) {
	const rain = "Write a poem about rain. Translate the poem into German. List the hard words."
	for first, want := range map[string]string{"Write a poem about rain.": "incomplete, 2 splits, 1 part", rain: "completed, 1 splits, 1 part"} {
		var told []string
		c := newCoordinator(t, nil, func(c call) any {
			switch {
			case c.Label == "split":
				told = c.Said
				return obj{"parts": []string{first}}
			case c.Kind == engine.CallPlan:
				return planOf(step("s1", "", "poem.md"))
			case c.Label == "judge the whole" && strings.Contains(show(c.Request["criteria"]), show("It achieves the whole goal: "+rain)):
				return judged("sent_back", "no word of German")
			case c.Kind == engine.CallEvaluate:
				return judged("passed", "fine")
			}
			return fmt.Sprint("a poem ", c.Label, c.Said)
		})
		v := c.end(c.start("plan", goal(obj{"goal": rain})), nobody)
		got := fmt.Sprintf("%s, %d splits, %d part", v.Status, c.staff.count(engine.CallGenerate, "split"), v.Acceptance.Expected)
		if doubt := strings.Contains(show(told), "the goal has 3 sentences, but the number of parts is 1"); got != want || doubt != (first != rain) {
			t.Errorf("%q: %s, want %s; told %q", first, got, want, told)
		}
	}
	c := newCoordinator(t, nil, func(c call) any { // whoever says the parts answers for them
		if c.Label == "judge the whole" && strings.Contains(show(c.Request["criteria"]), "the whole goal") {
			return judged("sent_back", "no word of German")
		}
		if c.Kind == engine.CallEvaluate {
			return judged("passed", "fine")
		}
		if c.Kind == engine.CallPlan {
			return planOf(step("s1", "", "poem.md"))
		}
		return "a poem"
	})
	if v := c.end(c.start("plan", goal(obj{"goal": rain, "parts": []string{"Write a poem"}})), nobody); v.Status != run.Completed {
		t.Errorf("with parts of the user's own it is %s", v.Status)
	}
}

// TestAPlanHasAPartForEachThingThatItsGoalLists: a split with fewer is refused for good, and the goal planned as one part.
func TestAPlanHasAPartForEachThingThatItsGoalLists(t *testing.T) {
	for list, want := range map[string]string{
		"Write:\n1. a poem\n2. a letter\n":             "3 splits, 1 expected",
		"Write:\n- a poem\n  - of rain\n  - of snow\n": "1 splits, 1 expected",
	} {
		c := newCoordinator(t, nil, func(c call) any {
			switch {
			case c.Label == "split":
				return obj{"parts": []string{"Write a poem", "Write a poem."}}
			case c.Kind == engine.CallPlan:
				return planOf(step("s1", "", "poem.md"))
			case c.Kind == engine.CallEvaluate:
				return judged("passed", "fine")
			}
			return "a poem"
		})
		v := c.end(c.start("plan", goal(obj{"goal": list})), nobody)
		whole := len(v.Acceptance.Waived) == 1 && v.Acceptance.Waived[0].Reason == "the goal is planned as one part"
		if got := fmt.Sprintf("%d splits, %d expected", c.staff.count(engine.CallGenerate, "split"), v.Acceptance.Expected); got != want || v.Status != run.Completed || whole != strings.HasPrefix(want, "3") {
			t.Errorf("%q: %s, want %s; %s %+v", list, got, want, v.Status, v.Acceptance)
		}
	}
}

// TestAPlannerThatHasToKnowAsksAPerson, and the answers are facts of the next try. How often is bounded.
func TestAPlannerThatHasToKnowAsksAPerson(t *testing.T) {
	for needs, want := range map[int]string{1: "completed", 2: "completed", 3: "failed"} {
		var last call
		c := newCoordinator(t, nil, func(c call) any {
			switch c.Kind {
			case engine.CallPlan:
				if last = c; c.Label != fmt.Sprintf("plan %d", needs+1) {
					return outcome("need_info", "something is missing", "Which quarter?")
				}
				return planOf(step("s1", "", "a.md"))
			case engine.CallEvaluate:
				return judged("passed", "fine")
			}
			return "a text"
		})
		var asked []string
		v := c.end(c.start("plan", goal(nil)), yes(&asked))
		if string(v.Status) != want || len(asked) != min(needs, 2) {
			t.Errorf("after %d questions: %s %s, asked %q", needs, v.Status, v.Error, asked)
		}
		if facts := show(last.Request["facts"]); strings.Count(facts, `Which quarter?\" and answered: the second quarter`) != min(needs, 2) {
			t.Errorf("facts %s", facts)
		}
	}
	c := newCoordinator(t, nil, func(call) any { return outcome("need_info", "something is missing", "Which quarter?") })
	if v := c.end(c.start("plan", goal(obj{"people": false})), nobody); v.Status != run.Failed || !strings.Contains(v.Error, "the planner has to know: Which quarter?") {
		t.Errorf("without people it is %s: %s", v.Status, v.Error)
	}
	c = newCoordinator(t, nil, func(call) any { return outcome("impossible", "there is no such thing") })
	if v := c.end(c.start("plan", goal(nil)), nobody); v.Status != run.Failed || !strings.Contains(v.Error, "there is no such thing") {
		t.Errorf("what is impossible is %s: %s", v.Status, v.Error)
	}
}

// TestATemplateStepIsOneBatchOverItsList: code does it for each of 50, an element that is never accepted, or that
// its worker says cannot be done, leaves the run incomplete, and what comes after is given the others.
func TestATemplateStepIsOneBatchOverItsList(t *testing.T) {
	list := []string{}
	for i := range 50 {
		list = append(list, fmt.Sprint("chapter ", i))
	}
	const partly = "incomplete 0/1 [{s1 succeeded partly} {s2 succeeded passed}]"
	for bad, want := range map[string]string{"": "completed 1/1 [{s1 succeeded passed} {s2 succeeded passed}]", "chapter 7": partly, "chapter 8": partly} {
		given := 0
		var lists any
		c := newCoordinator(t, nil, func(c call) any {
			switch {
			case c.Kind == engine.CallPlan:
				lists = c.Request["lists"]
				return planOf(step("s1", "", "sums", obj{"each": "chapters", "instruction": "Sum up {{this}} chapter"}), step("s2", "sums", "all.md"))
			case c.Kind == engine.CallGenerate && bad != "" && c.Body == bad && bad == "chapter 8":
				return "CANNOT BE DONE: the chapter is missing"
			case c.Kind == engine.CallGenerate && bad != "" && c.Body == bad:
				return failure("empty_turn")
			case c.Kind == engine.CallEvaluate:
				return judged("passed", "fine")
			case c.Label == "s2":
				given = strings.Count(show(c.Request["context"]), `"ref"`)
				return "all of it"
			}
			return fmt.Sprintf("a sum of %v", c.Body)
		})
		id := c.start("plan", goal(obj{"lists": obj{"chapters": list}}))
		v := c.end(id, nobody)
		if got := fmt.Sprintf("%s %d/%d %s", v.Status, v.Acceptance.Covered, v.Acceptance.Expected, c.steps(id)); got != want {
			t.Errorf("%q: %s\nwant %s", bad, got, want)
		}
		if open := map[bool]int{true: 0, false: 1}[bad == ""]; given != 50-open || show(lists) != `[{"count":50,"name":"chapters"}]` {
			t.Errorf("%q: the next step was given %d texts, the planner %s", bad, given, show(lists))
		}
	}
}

// TestAListOfLinesIsNotOpened: its lines are the items of the batch, and covered by it.
func TestAListOfLinesIsNotOpened(t *testing.T) {
	c := newCoordinator(t, nil, func(c call) any {
		switch c.Kind {
		case engine.CallPlan:
			return planOf(step("s1", "", "sums", obj{"each": "chapters"}))
		case engine.CallEvaluate:
			return judged("passed", "fine")
		}
		return fmt.Sprintf("a sum of %v", c.Body)
	})
	a, err := c.store.PutArtifact(t.Context(), "list.jsonl", strings.NewReader("\"one\"\n\"two\"\n{\"n\":3}\n"))
	if err != nil {
		t.Fatal(err)
	}
	lines := obj{"chapters": obj{"lines": obj{"ref": a.SHA256, "name": "list.jsonl", "bytes": 20}}}
	id := c.start("plan", goal(obj{"lists": lines}), run.Submitted{Key: "list.jsonl:1"}, run.Submitted{Key: "list.jsonl:2"}, run.Submitted{Key: "list.jsonl:3"})
	v := c.end(id, nobody)
	var result []struct{ Name string }
	if c.output(id, "result", &result); v.Status != run.Completed || v.Acceptance.Covered != 4 || len(result) != 3 || result[2].Name != "list.jsonl:3" {
		t.Errorf("%s: %+v, %+v", v.Status, v.Acceptance, result)
	}
	c.staff.mu.Lock()
	if lists := show(c.staff.calls[0].Request["lists"]); lists != `[{"count":3,"name":"chapters"}]` {
		t.Errorf("the planner was given %s", lists)
	}
	c.staff.mu.Unlock()
}

// TestAWorkerMayBeAWorkflow: what its run delivers can be read, and a run that did not complete is a wall, which a new plan makes good.
func TestAWorkerMayBeAWorkflow(t *testing.T) {
	own := map[string]script.Program{"search": child(t, `if (input.site === "b") expect(["an offer"]); return ["an offer of " + input.site]`)}
	workers := obj{"write": obj{"about": "writes"}, "search": obj{"about": "finds offers", "workflow": "search", "schema": obj{"type": "object", "properties": obj{"site": obj{"type": "string"}}, "required": []string{"site"}}}}
	given := ""
	c := newCoordinator(t, own, func(c call) any {
		switch {
		case c.Kind == engine.CallPlan:
			at := strings.ReplaceAll(c.Label, " ", "")
			return planOf(step("s1", "", at+"/offers", obj{"worker": "search"}), step("s2", at+"/offers", at+"/letter"))
		case c.Kind == engine.CallEvaluate:
			return judged("passed", "fine")
		case strings.HasPrefix(c.Label, "input of"):
			return obj{"site": map[bool]string{true: "b", false: "a"}[c.Label == "input of s1"]}
		}
		given = show(c.Request["context"])
		return "a letter"
	})
	id := c.start("plan", goal(obj{"workers": workers}))
	v := c.end(id, nobody)
	if got, want := c.steps(id), "[{s1 replaced child_not_completed} {s2 replaced skipped} {2.s1 succeeded passed} {2.s2 succeeded passed}]"; got != want || v.Status != run.Completed {
		t.Errorf("%s %+v: %s", v.Status, v.Acceptance, got)
	}
	if want := `["## plan2/offers",["an offer of a"]]`; given != want {
		t.Errorf("the letter was given %s", given)
	}
}

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
