package workflowtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

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
			return planOf(step("count", "", "count.go"), step("main", "count.go", "main.go"))
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
	case len(w.Choices) > 0:
		return &engine.Answer{Value: []byte(`"pass"`), By: "ann"}
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
		"a step that writes nothing":     {"decompose", planOf(step("count", "", "")), 5, "clarify 1, design 2, decompose 2", "design", "step count writes no file"},
		"a plan that has to ask":         {"decompose", outcome("need_info", "it is not said which files", "Which files?"), 1, "clarify 1, design 2, decompose 2", "design", "it is not said which files Which files?"},
		"a step without a test":          {"test plan", obj{"cases": []obj{{"step": "count", "name": "n", "given": "g", "seen": "s"}}}, 3, "clarify 1, design 1, decompose 2, test_plan 2", "decompose", "step main has no case"},
		"a review that finds gaps":       {"review", obj{"findings": []obj{{"phase": "test_plan", "problem": "too few"}, {"phase": "design", "problem": "no errors"}}}, 1, "clarify 1, design 2, decompose 2, test_plan 2, review 2", "design", "review: test_plan: too few; design: no errors"},
		"a gap that the code finds":      {"implement main", obj{"files": []obj{}, "gap": "which exit code?"}, 1, "clarify 1, design 2, decompose 2, test_plan 2, review 2, implement 2", "design", "main: which exit code?"},
		"a file that is missing":         {"implement count", obj{"files": []obj{}}, 3, "clarify 1, design 1, decompose 2, test_plan 2, review 2, implement 2", "decompose", "the file count.go is missing"},
		"code that breaks a convention":  {"code quality", []obj{{"quote": "package", "problem": "no comment"}}, 1, "clarify 1, design 1, decompose 1, test_plan 1, review 1, implement 2, code_quality 2", "implement count", `no comment ("package")`},
		"an end-to-end test that fails":  {"end to end", judged("sent_back", "it counts 0"), 1, "clarify 1, design 1, decompose 1, test_plan 1, review 1, implement 2, code_quality 2, end_to_end 2", "implement count", "it counts 0"},
		"a result that is not accepted":  {"acceptance", judged("sent_back", "no help"), 1, "clarify 1, design 1, decompose 1, test_plan 1, review 1, implement 2, code_quality 2, end_to_end 2, acceptance 2", "implement count", `acceptance: not met: it counts words (subject, line 1: "no help")`},
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

// TestAPersonGoesBackInThePipeline in the middle of the end-to-end test, and sends back what is to be accepted.
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
		case len(w.Choices) > 0 && !no:
			no = true
			if got := strings.Join(w.Choices, ", "); got != "pass, back to clarify, stop" || !strings.Contains(w.Title, "phase acceptance: Every goal is achieved, says the judge") {
				t.Errorf("a person is asked %q: %s", w.Title, got)
			}
			return &engine.Answer{Value: []byte(`"back to clarify"`), Comment: "I meant lines", By: "ann"}
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
