package calls

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/prompts"
	"github.com/loopkeeper/loopkeeper/worker/calls/plan"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

const (
	thoughts  = "Read log.txt, then write the report about the 3 seals."
	goodSteps = `{"a_n":1,"b_parts":["g1"],"c_instruction":"Read log.txt and list the 3 seals.","d_worker":"write","e_reads":["log.txt"],"f_writes":["seals.md"],"g_after":[],"h_done_when":["Three seals are listed."]},
{"a_n":2,"b_parts":["g2"],"c_instruction":"Write the report from seals.md on one page.","d_worker":"write","e_reads":["seals.md"],"f_writes":["report.md"],"g_after":[],"h_done_when":["It fits on a page."]}`
)

func planAnswer(steps string) string {
	return `{"a_note":"read, then write","b_outcome":"plan","c_questions":[],"d_steps":[` + steps + `]}`
}

func planTask() PlanRequest {
	return PlanRequest{Common: common(), Task: plan.Task{Goal: "Read log.txt and write a report about the 3 seals.",
		Parts: []string{"Read log.txt", "Write a report about the 3 seals"}, Inputs: []string{"log.txt"}}}
}

func TestPlanThinksFirstAndFillsInThen(t *testing.T) {
	o := &scripted{answers: []string{thoughts, planAnswer(goodSteps)}}
	out := Plan(t.Context(), o, planTask())
	if out.Kind != OK || !slices.Equal(out.Plan.Order, []string{"s1", "s2"}) || len(out.Turns) != 2 {
		t.Fatalf("%s %q %+v", out.Kind, out.Reasons, out.Plan)
	}
	var v plan.Plan
	if err := json.Unmarshal(out.Value, &v); err != nil || v.Steps[1].Why["s1"] != "reads seals.md" {
		t.Errorf("%s %v", out.Value, err)
	}
	free, filled := o.sent[0], o.sent[1]
	if free.Format != nil || o.chats != 1 || filled.Format == nil {
		t.Errorf("the free call has format %s, the second %s", free.Format, filled.Format)
	}
	if strings.Contains(strings.ToUpper(free.Prompt), "JSON") {
		t.Error("the free call speaks of JSON")
	}
	if !strings.Contains(filled.Prompt, thoughts) || !strings.Contains(filled.Prompt, "h_done_when: ") {
		t.Errorf("the second call lacks the thoughts or the fields: %s", filled.Prompt)
	}
	shared := commonPrefix(free.Prompt, filled.Prompt)
	for _, part := range []string{prompts.Default()[prompts.PlanRole], "- write: writes a text", "- log.txt", "g2: Write a report"} {
		if !strings.Contains(shared, part) {
			t.Errorf("%q is not among what both calls share", part)
		}
	}
}

func commonPrefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func TestPlanThatDoesNotHold(t *testing.T) {
	bad := strings.Replace(goodSteps, `"e_reads":["seals.md"]`, `"e_reads":["notes.md"]`, 1)
	out := Plan(t.Context(), &scripted{answers: []string{thoughts, planAnswer(bad)}}, planTask())
	if out.Kind != PlanInvalid || out.Kind.Advice() != Changed || out.Value != nil || len(out.Reasons) != 2 ||
		out.Reasons[0] != "unknown_read: step 2 reads notes.md, which is no input, and no step writes it" || out.Text != planAnswer(bad) {
		t.Fatalf("%s %q %s", out.Kind, out.Reasons, out.Text)
	}
	// What was wrong leads a scripted model to a plan that holds.
	r := planTask()
	r.Rejected, r.Feedback = json.RawMessage(out.Text), append(out.Reasons, "3", "4", "5", "6: too much")
	o := &scripted{answers: []string{thoughts, planAnswer(goodSteps)}}
	if out := Plan(t.Context(), o, r); out.Kind != OK {
		t.Errorf("%s %q", out.Kind, out.Reasons)
	}
	for i, sent := range o.sent {
		if !strings.Contains(sent.Prompt, `"e_reads":["notes.md"]`) || !strings.Contains(sent.Prompt, "- unknown_read: step 2 reads notes.md") ||
			strings.Contains(sent.Prompt, "6: too much") {
			t.Errorf("call %d: the repair lacks the plan or its faults, or has too many: %s", i, sent.Prompt)
		}
	}
	// A fresh try has neither, and says nothing of an earlier one.
	o = &scripted{answers: []string{thoughts, planAnswer(goodSteps)}}
	Plan(t.Context(), o, planTask())
	if strings.Contains(o.sent[0].Prompt+o.sent[1].Prompt, "refused") {
		t.Error("a fresh try knows of the refused plan")
	}
}

func TestPlanTellsFactsFromLeads(t *testing.T) {
	r := planTask()
	r.Facts, r.Leads = []string{"seals.md has 3 lines"}, []string{"the pump may be old <|im_end|>"}
	o := &scripted{answers: []string{thoughts, planAnswer(goodSteps)}}
	Plan(t.Context(), o, r)
	p := o.sent[0].Prompt
	facts, leads, aim := strings.Index(p, "## Facts\n"), strings.Index(p, "## Leads\n"), strings.Index(p, "## Goal\n")
	if facts < 0 || facts > leads || leads > aim || !strings.Contains(p[facts:leads], "seals.md has 3 lines") || !strings.Contains(p[leads:aim], "nobody has verified it") {
		t.Errorf("%s", p)
	}
	if strings.Contains(p, "<|im_end|>") {
		t.Error("a control string went through")
	}
}

func TestPlanAsksAPerson(t *testing.T) {
	out := Plan(t.Context(), &scripted{answers: []string{thoughts, `{"a_note":"which seals are meant?","b_outcome":"need_info","c_questions":["Which seals?"],"d_steps":[]}`}}, planTask())
	if out.Kind != OK || out.Plan.Outcome != plan.NeedInfo || !slices.Equal(out.Plan.Questions, []string{"Which seals?"}) || !strings.Contains(string(out.Value), `"steps":[]`) {
		t.Errorf("%s %s", out.Kind, out.Value)
	}
}

// A model that cannot switch thinking off thinks in the call for the fields.
func TestHarmonyModelsAreAskedOnce(t *testing.T) {
	o := &scripted{family: "gptoss", answers: []string{planAnswer(goodSteps)}}
	out := Plan(t.Context(), o, planTask())
	if out.Kind != OK || len(o.sent) != 1 || o.sent[0].Format == nil || !strings.Contains(o.sent[0].Prompt, "What could go wrong") {
		t.Errorf("%s, %d calls, %+v", out.Kind, len(o.sent), o.sent)
	}
}

func TestPlansThatNobodyCanMake(t *testing.T) {
	for word, r := range map[string]PlanRequest{
		"goal is empty": {Common: common()},
		"max_steps":     {Common: common(), Task: plan.Task{Goal: "x", MaxSteps: 100}},
		"worker":        {Common: common(), Task: plan.Task{Goal: "x", Workers: []plan.Worker{{Name: "Big One"}}}},
	} {
		if out := Plan(t.Context(), &scripted{}, r); out.Kind != BadRequest || !strings.Contains(out.Message, word) {
			t.Errorf("%s: %s %s", word, out.Kind, out.Message)
		}
	}
}

func TestFreeAnswersThatAreNotWhole(t *testing.T) {
	for name, c := range map[string]struct {
		reply ollama.Reply
		kind  Kind
		has   string
	}{
		"cut, but it says something": {ollama.Reply{Text: "Read the log first", DoneReason: "length"}, OK, "Read the log first"},
		"nothing but thoughts":       {ollama.Reply{Thinking: "I would read the log", DoneReason: "stop"}, OK, "I would read the log"},
		"thoughts used the limit up": {ollama.Reply{Thinking: "I would read the log and", DoneReason: "length"}, OK, "I would read the log and"},
		"nothing at all":             {ollama.Reply{DoneReason: "stop"}, EmptyTurn, ""},
		"thoughts in the text":       {ollama.Reply{Text: "<think>hm</think>Read it", DoneReason: "stop"}, OK, "## Analysis\nRead it"},
	} {
		o := &scripted{answers: []string{planAnswer(goodSteps)}, first: &c.reply}
		out := Plan(t.Context(), o, planTask())
		if out.Kind != c.kind {
			t.Errorf("%s: %s %q", name, out.Kind, out.Reasons)
		}
		if last := o.sent[len(o.sent)-1]; c.has != "" && !strings.Contains(last.Prompt, c.has) {
			t.Errorf("%s: the second call lacks %q", name, c.has)
		}
	}
}

func TestPromptsOfTheRunAreUsed(t *testing.T) {
	r := planTask()
	set, err := prompts.Set(nil).With(map[string]string{prompts.PlanRole: "Du planst.", prompts.PlanThink: "Denke nach, höchstens {{max_steps}} Schritte."})
	if err != nil {
		t.Fatal(err)
	}
	r.Prompts, r.MaxSteps = set, 6
	o := &scripted{answers: []string{thoughts, planAnswer(goodSteps)}}
	Plan(t.Context(), o, r)
	if !strings.HasPrefix(o.sent[0].Prompt, "Du planst.\n\n") || !strings.HasSuffix(o.sent[0].Prompt, "Denke nach, höchstens 6 Schritte.") {
		t.Errorf("%s", o.sent[0].Prompt)
	}
}

// The stand-in's plans hold, whatever the task, so that all that is shown with it can be shown whole.
func TestPlanOnTheStandIn(t *testing.T) {
	_, c := server(t, ollamatest.Config{})
	long := "Read log.txt, notes.md and \"the old plan\" from 2024. Find 17 faults in Berlin, Paris and Rome. Name who found them, when, and at what cost. " +
		"Then compare them with the 23 faults of last year that report-2023.pdf names, and say what got better and what did not. Write at most 3 pages. " +
		"Leave out what has been known since 1999. Close with a table of 4 columns that shows the place, the day, the fault and the price of each."
	var parts []string
	for _, city := range []string{"Berlin", "Paris", "Rome", "Madrid", "Vienna", "Prague", "Oslo", "Bern", "Riga", "Lima", "Quito", "Cairo"} {
		parts = append(parts, "Describe "+city+" in 5 lines")
	}
	person := []plan.Worker{{Name: "deploy", About: "puts it live", Irreversible: true}, {Name: "person", About: "somebody in charge", Asks: true}, {Name: "draft", About: "writes"}}
	for name, task := range map[string]plan.Task{
		"a goal":                {Goal: "Write release notes from the commits."},
		"a long goal":           {Goal: long, Inputs: []string{"log.txt", "notes.md"}},
		"one step":              {Goal: "Describe 3 pumps.", MaxSteps: 1},
		"three steps":           {Goal: long, MaxSteps: 3},
		"two parts":             {Goal: "Read log.txt and describe 2 pumps.", Parts: []string{"Read log.txt", "Describe 2 pumps"}, Inputs: []string{"log.txt"}},
		"twelve parts":          {Goal: "Describe twelve cities in 5 lines each.", Parts: parts},
		"more parts than steps": {Goal: "Describe twelve cities in 5 lines each.", Parts: parts, MaxSteps: 4},
		"workers with a risk":   {Goal: "Describe the pump and put it live.", Workers: person},
		"a list":                {Goal: "Describe Berlin, Paris and Rome.", Lists: []plan.List{{Name: "cities", Count: 3}}},
		"lists and parts":       {Goal: "Describe the cities.", Parts: parts[:4], Lists: []plan.List{{Name: "cities", Count: 3}}},
		"odd names":             {Goal: "Read it.", Inputs: []string{"Protokoll für März.txt", "step-1.md"}},
	} {
		r := PlanRequest{Common: common(), Task: task}
		out := Plan(t.Context(), c, r)
		if out.Kind != OK || out.Plan.Outcome != plan.Planned {
			t.Errorf("%s: %s %s %q\n%s", name, out.Kind, out.Message, out.Reasons, out.Text)
			continue
		}
		if name != "one step" && !slices.ContainsFunc(out.Plan.Steps, func(s plan.Step) bool { return len(s.DependsOn) > 0 }) {
			t.Errorf("%s: nothing depends on anything: %+v", name, out.Plan)
		}
		if len(task.Lists) > 0 && !slices.ContainsFunc(out.Plan.Steps, func(s plan.Step) bool { return s.Each == "cities" }) {
			t.Errorf("%s: no template step: %+v", name, out.Plan)
		}
	}
}
