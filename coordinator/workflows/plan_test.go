package workflows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

const planInput = `{"goal":"Write release notes","planner":"big","model":"small","context":[{"bytes":9,"name":"commits.txt","ref":"c0"}]}`

type obj = map[string]any

// planned is a coordinator for plan.ts: a graph, texts that name their step, and verdicts by label.
func planned(t *testing.T, steps string, verdicts map[string][]string) *world {
	w := &world{t: t}
	made := 0
	w.answer = func(kind string, body map[string]any) (string, *script.CallError) {
		label, _ := body["label"].(string)
		switch kind {
		case "plan":
			return steps, nil
		case "read":
			return `"a result"`, nil
		case "generate":
			made++
			return fmt.Sprintf(`{"ref":"%s-%d","bytes":1,"name":"%s","facts":{"node":"n","model":"small","prompt_tokens":1,"output_tokens":1,"seconds":1,"simulated":true}}`, label, made, label), nil
		case "approve":
			return `{"outcome":"rejected","comment":"not like this","by":"ann","timed_out":false}`, nil
		case "evaluate":
			verdict := "passed"
			if queue := verdicts[label]; len(queue) > 0 {
				verdict, verdicts[label] = queue[0], queue[1:]
			}
			if verdict == "fails" {
				return "", &script.CallError{Kind: "deadline", Message: "the judge was too slow"}
			}
			return fmt.Sprintf(`{"verdict":%q,"rule":"r","reasons":["because of %s"],"facts":[],"opinions":["it seems %s"],"criteria":[],"judges":[]}`, verdict, verdict, verdict), nil
		}
		t.Fatalf("unexpected %s", kind)
		return "", nil
	}
	return w
}

// step is one step that writes a text, reads what it needs, and says more where a test wants that.
func step(id, writes string, needs []string, more obj) obj {
	s := obj{"id": id, "parts": []string{"g1"}, "instruction": "do " + id, "worker": "write", "reads": []string{}, "writes": strings.Fields(writes), "after": append([]string{}, needs...),
		"depends_on": append([]string{}, needs...), "done_when": []string{id + " is there"}, "each": "", "why": obj{}}
	for name, v := range more {
		s[name] = v
	}
	return s
}

func graph(steps ...obj) string {
	order := []any{}
	for _, s := range steps {
		order = append(order, s["id"])
	}
	return show(obj{"outcome": "plan", "note": "a note", "questions": []string{}, "steps": steps, "order": order})
}

func TestPlanRunsTheGraphInParallel(t *testing.T) {
	w := planned(t, graph(step("a", "", nil, nil), step("b", "", []string{"a"}, nil), step("c", "", []string{"a"}, nil), step("d", "", []string{"b", "c"}, nil)), nil)
	end := w.run("plan", planInput)
	if end.Failure != nil {
		t.Fatal(end.Failure, end.Failure.Stack)
	}
	if got, want := show(w.waves), `[["plan"],["a"],["judge a"],["b","c"],["judge b"],["judge c"],["d"],["judge d"],["judge the whole"]]`; got != want {
		t.Errorf("waves %s, want %s", got, want)
	}
	if got := string(end.Value); got != `{"bytes":1,"name":"d","ref":"d-4"}` {
		t.Errorf("result = %s", got)
	}
	if got := show(w.output("evaluation")); !strings.Contains(got, `"verdict":"passed"`) {
		t.Errorf("evaluation = %s", got)
	}
	if len(w.notes["collected"]) != 0 || !strings.Contains(show(w.notes["cover"]), `"g1: Write release notes"`) {
		t.Errorf("collected %s, covered %s", show(w.notes["collected"]), show(w.notes["cover"]))
	}
}

// TestPlanGivesAStepWhatItReads, by name, and asks its judges with who wrote it and what code has found.
func TestPlanGivesAStepWhatItReads(t *testing.T) {
	w := planned(t, graph(step("a", "list.md", nil, obj{"reads": []string{"log.txt"}}), step("b", "", []string{"a"}, obj{"reads": []string{"list.md"}})), nil)
	answer := w.answer
	var contexts, judged []string
	var asked obj
	w.answer = func(kind string, body map[string]any) (string, *script.CallError) {
		switch kind {
		case "plan":
			asked = body
		case "generate":
			contexts = append(contexts, show(body["context"]))
		case "evaluate":
			judged = append(judged, show([]any{body["author"], body["criteria"], body["code"], body["sources"]}))
		}
		return answer(kind, body)
	}
	w.run("plan", strings.Replace(planInput, "{", `{"inputs":[{"bytes":2,"name":"log.txt","ref":"c1"}],`, 1))
	const commits = `"## commits.txt",{"bytes":9,"name":"commits.txt","ref":"c0"}`
	want := []string{`[` + commits + `,"## log.txt",{"bytes":2,"name":"log.txt","ref":"c1"}]`, `[` + commits + `,"## list.md",{"bytes":1,"name":"a","ref":"a-1"}]`}
	if !slices.Equal(contexts, want) {
		t.Errorf("contexts %q, want %q", contexts, want)
	}
	if got, want := show([]any{asked["inputs"], asked["workers"]}), `[["commits.txt","log.txt"],[{"about":"writes a text: reads, works out, compares, sums up, drafts and checks","name":"write"}]]`; got != want {
		t.Errorf("the planner was given %s", got)
	}
	if got, want := judged[0], `["small",["a is there"],[{"detail":"1 bytes","name":"list.md is written","passed":true}],[{"bytes":2,"name":"log.txt","ref":"c1"}]]`; got != want {
		t.Errorf("the judge was given %s\nwant %s", got, want)
	}
	if got := show(w.notes["cover"]); !strings.Contains(got, `{"keys":["log.txt"],"step":2}`) {
		t.Errorf("covered %s", got)
	}
}

// TestPlanShowsImages to who reads them, and gives them to nobody as texts.
func TestPlanShowsImages(t *testing.T) {
	w := planned(t, graph(step("a", "", nil, obj{"reads": []string{"House.PNG", "notes.md"}}), step("b", "b.png", nil, nil), step("c", "", []string{"b"}, obj{"reads": []string{"b.png"}})), nil)
	answer := w.answer
	var given []string
	w.answer = func(kind string, body map[string]any) (string, *script.CallError) {
		if kind == "plan" || kind == "generate" {
			given = append(given, show([]any{body["context"], body["images"]}))
		}
		return answer(kind, body)
	}
	w.run("plan", show(obj{"goal": "g", "planner": "p", "model": "m", "context": []obj{{"bytes": 1, "name": "logo.gif", "ref": "c"}},
		"inputs": []obj{{"bytes": 1, "name": "House.PNG", "ref": "a"}, {"bytes": 1, "name": "notes.md", "ref": "b"}}}))
	given = append(given[:2], given[3]) // of the planner, a and c
	if want := []string{`[null,null]`, `[["## notes.md",{"bytes":1,"name":"notes.md","ref":"b"}],[{"bytes":1,"name":"logo.gif","ref":"c"},{"bytes":1,"name":"House.PNG","ref":"a"}]]`, `[["## b.png",{"bytes":1,"name":"b","ref":"b-2"}],[{"bytes":1,"name":"logo.gif","ref":"c"}]]`}; !slices.Equal(given, want) {
		t.Errorf("given were %q, want %q", given, want)
	}
}

// TestTwoStepsRunTogetherOnlyIfAllHolds: each of the five conditions, broken alone, has the second wait and says why.
func TestTwoStepsRunTogetherOnlyIfAllHolds(t *testing.T) {
	about := func(id, instruction, writes string, more obj) obj {
		s := step(id, writes, nil, more)
		s["instruction"] = instruction
		return s
	}
	post := obj{"worker": "post"}
	cases := map[string]struct {
		first, second obj
		why           string
	}{
		"all hold":                        {about("a", "write docs/a.md", "docs/a.md", post), about("b", "write docs/b.md", "docs/b.md", nil), ""},
		"names that only begin alike":     {about("a", "write src", "src", nil), about("b", "write src2/b", "src2/b", nil), ""},
		"a word that contains a name":     {about("a", "x", "log", nil), about("b", "make a catalog.", "", nil), ""},
		"an input is not determined":      {about("a", "x", "list.txt", nil), about("b", "sort list.txt.", "", nil), "it needs list.txt, which a writes"},
		"an input lies in what it writes": {about("a", "x", "data", nil), about("b", "y", "", obj{"reads": []string{"data/list.txt"}}), "it needs data, which a writes"},
		"it changes what another reads":   {about("a", "sort", "", obj{"reads": []string{"list.txt"}}), about("b", "x", "list.txt", nil), "it writes list.txt, which a needs"},
		"one depends on the other":        {about("a", "x", "", nil), step("b", "", []string{"a"}, nil), "-"},
		"a shared write":                  {about("a", "x", "f g", nil), about("b", "y", "g", nil), "both write g"},
		"no places of their own":          {about("a", "x", "docs", nil), about("b", "y", "docs/b.md", nil), "docs/b.md and docs are not places of their own"},
		"failures are not independent":    {about("a", "x", "", post), about("b", "y", "", post), "neither can be undone, and what one did would stay when the other fails"},
	}
	for name, c := range cases {
		w := planned(t, graph(c.first, c.second), nil)
		w.run("plan", strings.Replace(planInput, "{", `{"workers":{"write":{"about":"writes"},"post":{"about":"posts","irreversible":true}},`, 1))
		first := show(w.waves[1])
		both := strings.Contains(first, "a") && (strings.Contains(first, `"b`) || strings.Contains(first, "allow b"))
		if text := show(w.notes["log"]); both != (c.why == "") || c.why != "" && c.why != "-" && !strings.Contains(text, "step b waits for a: "+c.why) || (c.why == "" || c.why == "-") && strings.Contains(text, "waits") {
			t.Errorf("%s: the first wave is %s, the log says %s", name, first, text)
		}
	}
}

// TestPlanSendsBackWithReasonsWithinTheBounds: two times a step, six times a run, with what was verified; then it is a wall.
func TestPlanSendsBackWithReasonsWithinTheBounds(t *testing.T) {
	back := slices.Repeat([]string{"sent_back"}, 40)
	w := planned(t, graph(step("a", "", nil, nil)), map[string][]string{"judge a": {"sent_back"}})
	answer := w.answer
	var feedback []string
	w.answer = func(kind string, body map[string]any) (string, *script.CallError) {
		if kind == "generate" {
			feedback = append(feedback, show(body["feedback"]))
		}
		return answer(kind, body)
	}
	end := w.run("plan", planInput)
	if want := []string{"null", `["because of sent_back"]`}; !slices.Equal(feedback, want) {
		t.Errorf("feedback %q, want %q", feedback, want)
	}
	if string(end.Value) != `{"bytes":1,"name":"a","ref":"a-2"}` || len(w.notes["collected"]) != 0 {
		t.Errorf("result %s, collected %s", end.Value, show(w.notes["collected"]))
	}

	w = planned(t, graph(step("a", "", nil, nil), step("b", "", nil, nil), step("c", "", nil, nil), step("d", "", nil, nil)), map[string][]string{"judge a": back, "judge b": back, "judge c": back, "judge d": back})
	w.run("plan", strings.Replace(planInput, "{", `{"people":false,`, 1))
	count := map[string]int{}
	for _, asked := range w.asked {
		count[asked]++
	}
	made := count["generate a"] + count["generate b"] + count["generate c"] + count["generate d"]
	if count["generate a"] > 3 || made != 4+6 {
		t.Errorf("of four steps %d texts were made, of the first %d", made, count["generate a"])
	}
}

func TestPlanCollectsFailuresAndSkipsWhatNeedsThem(t *testing.T) {
	w := planned(t, graph(step("a", "", nil, nil), step("b", "", []string{"a"}, nil), step("c", "", []string{"b"}, nil), step("d", "", nil, nil)),
		map[string][]string{"judge a": {"sent_back", "sent_back", "sent_back"}, "judge the whole": {"sent_back"}})
	answer := w.answer
	w.answer = func(kind string, body map[string]any) (string, *script.CallError) {
		if body["label"] == "plan 2" {
			return "", &script.CallError{Kind: "plan_invalid", Message: "no plan holds", Step: 3}
		}
		return answer(kind, body)
	}
	end := w.run("plan", planInput)
	if end.Failure != nil || string(end.Value) != `{"bytes":1,"name":"d","ref":"d-2"}` {
		t.Fatalf("end = %+v", end)
	}
	if got, want := statuses(w), "a failed sent_back, b skipped skipped, c skipped skipped, d succeeded passed"; got != want {
		t.Errorf("steps %q, want %q", got, want)
	}
	got := show(w.notes["collected"])
	for _, want := range []string{
		`{"key":"a","kind":"sent_back","message":"because of sent_back"}`,
		`{"key":"b","kind":"skipped","message":"skipped, because it needs step a: because of sent_back"}`,
		`{"key":"c","kind":"skipped","message":"skipped, because it needs step b: `,
		`{"key":"whole","kind":"sent_back","message":"because of sent_back"}`,
		`{"key":"plan 2","kind":"plan_invalid"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("collected %s\nlacks %s", got, want)
		}
	}
	if covered := show(w.notes["cover"]); strings.Contains(covered, "g1") {
		t.Errorf("a part with open steps is covered: %s", covered)
	}
}

func statuses(w *world) string {
	var states []string
	for _, s := range w.output("steps").([]any) {
		s := s.(map[string]any)
		states = append(states, fmt.Sprintf("%s %s %s", s["id"], s["status"], s["verdict"]))
	}
	return strings.Join(states, ", ")
}

func TestPlanPutsSeveralEndsTogether(t *testing.T) {
	w := planned(t, graph(step("a", "", nil, nil), step("b", "", nil, nil)), nil)
	end := w.run("plan", planInput)
	if string(end.Value) != `{"bytes":1,"name":"assemble","ref":"assemble-3"}` {
		t.Errorf("result = %s", end.Value)
	}
}

func TestPlanWithoutASuccessfulStepHasNoResult(t *testing.T) {
	w := planned(t, graph(step("a", "", nil, nil)), map[string][]string{"judge a": {"needs_human"}, "judge 2.a": {"needs_human"}})
	if end := w.run("plan", strings.Replace(planInput, "{", `{"people":false,`, 1)); end.Failure != nil || string(end.Value) != "null" {
		t.Errorf("end = %+v", end)
	}
	if got := show(w.notes["collected"]); !strings.Contains(got, "needs_human") {
		t.Errorf("collected %s", got)
	}
}

func TestPlanKeepsItsResultWhenTheLastJudgeFails(t *testing.T) {
	w := planned(t, graph(step("a", "", nil, nil)), map[string][]string{"judge the whole": {"fails"}})
	if end := w.run("plan", strings.Replace(planInput, "{", `{"people":false,`, 1)); end.Failure != nil || string(end.Value) != `{"bytes":1,"name":"a","ref":"a-1"}` {
		t.Errorf("end = %+v", end)
	}
	if got := show(w.notes["collected"]); !strings.Contains(got, `"kind":"deadline"`) {
		t.Errorf("collected %s", got)
	}
}

// TestAGoalOfOnePartIsNotSplit: code sees whether there is more than one.
func TestAGoalOfOnePartIsNotSplit(t *testing.T) {
	for goal, split := range map[string]bool{
		"Write release notes":                              false,
		"Compare a.txt with b.md, e.g. by length. ":        false,
		"Write notes for v1.2.3 of the tool":               false,
		"Write notes. Then translate them into German.":    true,
		"- notes\n- a letter":                              true,
		"Write:\n1. the notes\n2. the letter to \"Ann\"\n": true,
	} {
		w := planned(t, graph(step("a", "", nil, obj{"parts": []string{"g1", "g2"}})), nil)
		answer := w.answer
		asked := ""
		w.answer = func(kind string, body map[string]any) (string, *script.CallError) {
			if body["label"] == "split" {
				asked = body["prompt"].(string)
				return `{"parts":["Write the notes",` + show(goal) + `,"Write the letter","write the notes."]}`, nil
			}
			return answer(kind, body)
		}
		w.run("plan", show(obj{"goal": goal, "planner": "p", "model": "m"}))
		if (asked != "") != split {
			t.Errorf("%q is split: %v", goal, asked != "")
		}
		if got := show(w.notes["expect"]); split != strings.Contains(got, `"g2: Write the letter"`) {
			t.Errorf("%q: expected is %s", goal, got)
		}
	}
}
