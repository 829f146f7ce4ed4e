package workflowtest_test

import (
	"fmt"
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
