package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// task is one to which each rule has something to say.
func task() Task {
	return Task{
		Goal:  `Compare log.txt with 3 older logs, write "weekly report" and send it to the team.`,
		Parts: []string{"Compare log.txt with 3 older logs", `Write "weekly report"`, "Send it to the team"},
		Workers: []Worker{{Name: "write", About: "writes texts"}, {Name: "ask_person", About: "asks", Asks: true},
			{Name: "send", About: "sends mail", Irreversible: true}},
		Inputs: []string{"log.txt", "old/"},
		Lists:  []List{{Name: "chapters", Count: 12, About: "of the handbook"}},
	}
}

// sound is a draft that holds.
func sound() draft {
	return draft{Note: "Compare, write, ask, send.", Outcome: Planned, Steps: []draftStep{
		{N: 1, Parts: []string{"g1"}, Instruction: "Compare log.txt with the 3 older logs and list what is new.", Worker: "write",
			Reads: []string{"log.txt"}, Writes: []string{"new.md"}, DoneWhen: []string{"Every entry of the list names its line."}},
		{N: 2, Parts: []string{"g2"}, Instruction: `Write the "weekly report" from new.md, on one page.`, Worker: "write",
			Reads: []string{"new.md"}, Writes: []string{"report.md"}, DoneWhen: []string{"It fits on one page."}},
		{N: 3, Parts: []string{"g3"}, Instruction: "Ask whether report.md may go out to the team.", Worker: "ask_person",
			Reads: []string{"report.md"}, DoneWhen: []string{"A person said yes or no."}},
		{N: 4, Parts: []string{"g3"}, Instruction: "Send report.md to the team.", Worker: "send",
			Reads: []string{"report.md"}, After: []int{3}, DoneWhen: []string{"The mail is out."}},
	}}
}

func read(t *testing.T, task Task, d draft) (Plan, []string) {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	p, reasons, err := Read(task, raw)
	if err != nil {
		t.Fatal(err)
	}
	return p, reasons
}

// Each rule rejects a planted plan that no other rule minds, with a message that names the steps.
func TestEachRuleRejectsItsOwnPlan(t *testing.T) {
	for rule, c := range map[string]struct {
		plant   func(*draft)
		message string
	}{
		RuleNumbers: {func(d *draft) { d.Steps[3].N = 5 },
			"the steps are numbered 1, 2, 3, 5; they have to be 1 to 4 in order"},
		RuleUnknownWorker: {func(d *draft) { d.Steps[0].Worker = "browser" },
			`step 1 has the worker "browser"; there are write, ask_person, send`},
		RulePartUncovered: {func(d *draft) { d.Steps[1].Parts = []string{"g1"} },
			`no step serves part g2: Write "weekly report"`},
		RuleUnknownRead: {func(d *draft) { d.Steps[1].Reads = append(d.Steps[1].Reads, "notes.md") },
			"step 2 reads notes.md, which is no input, and no step writes it"},
		RuleTwoWriters: {func(d *draft) {
			d.Steps[0].Writes, d.Steps[2].Writes = []string{"new.md", "more.md"}, []string{"./more.md"}
		},
			"steps 1 and 3 both write more.md; let one of them write another name"},
		RuleCycle: {func(d *draft) { d.Steps[0].After = []int{2} },
			"steps 1, 2 wait for each other by what they read or come after"},
		RuleIrreversible: {func(d *draft) { d.Steps[3].After = nil },
			"step 4 uses send, which cannot be undone; put a step of ask_person before it"},
		RuleTooLarge: {func(d *draft) {
			for _, what := range []string{"dates", "people", "machines", "costs and what they were made of"} {
				s := draftStep{N: len(d.Steps) + 1, Parts: []string{"g1"}, Worker: "write", Instruction: "Work out " + what + ".", DoneWhen: []string{"It is written down."}}
				d.Steps = append(d.Steps, s)
			}
			d.Steps[4].Instruction, d.Steps[5].Instruction = "List every date that log.txt has.", "Who is named? Say it in a table."
			d.Steps = append(d.Steps, draftStep{N: 9, Parts: []string{"g1"}, Worker: "write", Instruction: "Read how much disk space is left.", DoneWhen: []string{"A number."}})
		}, "9 steps are more than the 8 allowed"},
		RuleDuplicateStep: {func(d *draft) {
			d.Steps = append(d.Steps, draftStep{N: 5, Parts: []string{"g1"}, Worker: "write", Reads: []string{"log.txt"}, Writes: []string{"again.md"},
				Instruction: "Please list what is new, and compare the 3 older logs with log.txt!", DoneWhen: []string{"Nothing is left."}})
		}, "steps 1 and 5 ask write for the same work; keep one of them"},
		RuleReadsUnnamed: {func(d *draft) { d.Steps[2].Instruction = "Ask whether the mail may go out to the team." },
			"the instruction of step 3 names none of what it reads: report.md"},
		RuleDoneWhenCopied: {func(d *draft) { d.Steps[0].DoneWhen = []string{"compare log.txt with the 3 older logs"} },
			"done_when of step 1 repeats its instruction; say how one can see that it is done"},
		RuleLiteralDropped: {func(d *draft) { d.Steps[0].Instruction = "Compare log.txt with the older logs and list what is new." },
			"the goal names 3, and no instruction does; name it in the instruction of the step that it is about"},
		RuleOutcome: {func(d *draft) { d.Outcome = NeedInfo },
			"the outcome is need_info, so there has to be a question and no step; there are 0 questions and 4 steps"},
		RuleFanOut: {func(d *draft) {
			for i, chapter := range []string{"one", "two", "three"} {
				d.Steps = append(d.Steps, draftStep{N: 5 + i, Parts: []string{"g1"}, Worker: "write", Instruction: "Summarise chapter " + chapter + " of the handbook.", DoneWhen: []string{"It is one page."}})
			}
		}, "steps 5, 6, 7 give write the same work for one element each; make one step of them, with the list in i_each (chapters)"},
	} {
		d := sound()
		c.plant(&d)
		_, reasons := read(t, task(), d)
		if want := rule + ": " + c.message; !slices.Equal(reasons, []string{want}) {
			t.Errorf("%s:\n got %q\nwant %q", rule, reasons, want)
		}
	}
	if n := len(rules) + 1; n != 14 { // the outcome is tried before all others
		t.Errorf("%d rules", n)
	}
}

// The other faults that a rule knows.
func TestMoreFaults(t *testing.T) {
	for name, c := range map[string]struct {
		rule  string
		word  string
		plant func(*Task, *draft)
	}{
		"after a step that is not there":  {RuleNumbers, "step 9, which is not there", func(_ *Task, d *draft) { d.Steps[1].After = []int{9} }},
		"no part":                         {RulePartUncovered, "step 4 serves no part", func(_ *Task, d *draft) { d.Steps[3].Parts = nil }},
		"a part too many":                 {RulePartUncovered, "g4", func(_ *Task, d *draft) { d.Steps[0].Parts = []string{"g1", "g4"} }},
		"a part with another spelling":    {RulePartUncovered, "g01", func(_ *Task, d *draft) { d.Steps[0].Parts = []string{"g1", "g01"} }},
		"an absolute name":                {RuleTwoWriters, "/etc/passwd", func(_ *Task, d *draft) { d.Steps[2].Writes = []string{"/etc/passwd"} }},
		"a name outside":                  {RuleTwoWriters, "../x", func(_ *Task, d *draft) { d.Steps[2].Writes = []string{"a/../../x"} }},
		"an input is written":             {RuleTwoWriters, "old, which is an input", func(_ *Task, d *draft) { d.Steps[2].Writes = []string{"./old"} }},
		"a step that waits for itself":    {RuleCycle, "step 3 waits for itself", func(_ *Task, d *draft) { d.Steps[2].After = []int{3} }},
		"a step that reads what it makes": {RuleCycle, "step 1 waits for itself", func(_ *Task, d *draft) { d.Steps[0].Reads = []string{"log.txt", "new.md"} }},
		"nobody to ask":                   {RuleIrreversible, "do without it", func(k *Task, d *draft) { k.Workers[1].Asks = false }},
		"asked afterwards":                {RuleIrreversible, "step 4", func(_ *Task, d *draft) { d.Steps[3].After, d.Steps[2].After = nil, []int{4} }},
		"no sign of being done":           {RuleDoneWhenCopied, "does not say", func(_ *Task, d *draft) { d.Steps[0].DoneWhen = []string{" "} }},
		"a plan of nothing":               {RuleOutcome, "no step", func(_ *Task, d *draft) { d.Steps = nil }},
		"impossible, but with steps":      {RuleOutcome, "impossible", func(_ *Task, d *draft) { d.Outcome = Impossible }},
		"a question that is no text":      {RuleOutcome, "0 questions", func(_ *Task, d *draft) { d.Outcome, d.Steps, d.Questions = NeedInfo, nil, []string{" "} }},
		"an outcome that is none":         {RuleOutcome, "passed", func(_ *Task, d *draft) { d.Outcome = "passed" }},
		"a list that is not there":        {RuleFanOut, "pages", func(_ *Task, d *draft) { d.Steps[0].Each = "pages" }},
		"a list where there are none":     {RuleFanOut, "chapters", func(k *Task, d *draft) { k.Lists, d.Steps[0].Each = nil, "chapters" }},
		"a file that is not named":        {RuleLiteralDropped, "log.txt", func(_ *Task, d *draft) { d.Steps[0].Instruction = "Compare the log with the 3 older ones." }},
	} {
		k, d := task(), sound()
		c.plant(&k, &d)
		_, reasons := read(t, k, d)
		if len(reasons) != 1 || !strings.HasPrefix(reasons[0], c.rule+": ") || !strings.Contains(reasons[0], c.word) {
			t.Errorf("%s: %q, want %s about %q", name, reasons, c.rule, c.word)
		}
	}
}

// What looks like a fault and is none.
func TestPlansThatHold(t *testing.T) {
	for name, plant := range map[string]func(*Task, *draft){
		"as it is":            func(*Task, *draft) {},
		"numbers as words":    func(_ *Task, d *draft) { d.Steps[0].Instruction = "Compare log.txt with the three older logs." },
		"the ending left out": func(_ *Task, d *draft) { d.Steps[2].Instruction = "Ask whether the report may go out." },
		"asked two steps before": func(_ *Task, d *draft) {
			d.Steps[2].Writes, d.Steps[3].After, d.Steps[3].Reads = []string{"yes.md"}, nil, []string{"report.md", "yes.md"}
		},
		"the same work twice alike is an accident": func(_ *Task, d *draft) {
			for i, chapter := range []string{"one", "two"} {
				d.Steps = append(d.Steps, draftStep{N: 5 + i, Parts: []string{"g1"}, Worker: "write", Instruction: "Summarise chapter " + chapter + " of the handbook.", DoneWhen: []string{"One page."}})
			}
		},
		"without lists the elements are steps": func(k *Task, d *draft) {
			k.Lists = nil
			for i, chapter := range []string{"one", "two", "three"} {
				d.Steps = append(d.Steps, draftStep{N: 5 + i, Parts: []string{"g1"}, Worker: "write", Instruction: "Summarise chapter " + chapter + " of the handbook.", DoneWhen: []string{"One page."}})
			}
		},
		"a step over a list names its elements": func(k *Task, d *draft) {
			k.Goal += " Describe Berlin, Paris and Rome."
			k.Lists, d.Steps[0].Each = []List{{Name: "cities", Count: 3}}, "cities"
		},
		"odd names of inputs": func(k *Task, d *draft) {
			k.Inputs, d.Steps[0].Reads = append(k.Inputs, "Protokoll für März.txt"), []string{"Protokoll für März.txt", "log.txt"}
		},
	} {
		k, d := task(), sound()
		plant(&k, &d)
		if _, reasons := read(t, k, d); reasons != nil {
			t.Errorf("%s: %q", name, reasons)
		}
	}
}

func TestEdgesAndTheirReasons(t *testing.T) {
	d := sound()
	d.Steps[1].After = []int{1}
	d.Steps = append(d.Steps[:0:0], d.Steps...)
	p, reasons := read(t, task(), d)
	if reasons != nil {
		t.Fatal(reasons)
	}
	if !slices.Equal(p.Order, []string{"s1", "s2", "s3", "s4"}) || p.Outcome != Planned {
		t.Errorf("%+v", p)
	}
	last := p.Steps[3]
	if !slices.Equal(last.DependsOn, []string{"s2", "s3"}) || last.Why["s2"] != "reads report.md" || last.Why["s3"] != "said to come after it" || !slices.Equal(last.After, []string{"s3"}) {
		t.Errorf("%+v", last)
	}
	if why := p.Steps[1].Why["s1"]; why != "reads new.md; said to come after it" {
		t.Error(why)
	}
	raw, err := json.Marshal(p)
	if err != nil || strings.Contains(string(raw), "null") {
		t.Errorf("%s %v", raw, err)
	}
}

// A step that is written early and waits for one that is written late comes behind it; the ids stay.
func TestOrder(t *testing.T) {
	d := sound()
	d.Steps[0], d.Steps[1] = d.Steps[1], d.Steps[0]
	d.Steps[0].N, d.Steps[1].N = 1, 2
	p, reasons := read(t, task(), d)
	if reasons != nil || !slices.Equal(p.Order, []string{"s2", "s1", "s3", "s4"}) || p.Steps[0].ID != "s2" || !slices.Equal(p.Steps[1].DependsOn, []string{"s2"}) {
		t.Errorf("%q %+v", reasons, p)
	}
}

func TestQuestionsInsteadOfSteps(t *testing.T) {
	p, reasons := read(t, task(), draft{Outcome: NeedInfo, Note: "unclear", Questions: []string{"Which team?"}})
	if reasons != nil || p.Outcome != NeedInfo || !slices.Equal(p.Questions, []string{"Which team?"}) || len(p.Steps) != 0 || p.Order == nil {
		t.Errorf("%q %+v", reasons, p)
	}
	if p, reasons := read(t, task(), draft{Outcome: Impossible, Note: "no mail here"}); reasons != nil || p.Note != "no mail here" {
		t.Errorf("%q %+v", reasons, p)
	}
}

func FuzzRead(f *testing.F) {
	good, err := json.Marshal(sound())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good), task().Goal)
	f.Add(`{"b_outcome":"plan","d_steps":[{"a_n":1,"g_after":[1,-1],"e_reads":[".."],"f_writes":["/",""]}]}`, "Read a, b and C, D or E: \"x\", 1,000.")
	f.Add(`{"b_outcome":"need_info","c_questions":["why?"]}`, "Read a, b and C, D or E: \"x\", 1,000.")
	f.Add(strings.ReplaceAll(string(good), "report.md", "./new.md"), "- one\n- two; `three`\n1. four")
	f.Add(strings.ReplaceAll(string(good), `"g_after":[3]`, `"g_after":[4,3,1]`), "„x“ «y» 'z' Ä, Ö und Ü")
	f.Fuzz(func(t *testing.T, value, goal string) {
		k := task()
		k.Goal = goal
		p, reasons, err := Read(k, json.RawMessage(value))
		if err != nil || reasons != nil || p.Outcome != Planned {
			return
		}
		done, parts, writers := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for i, s := range p.Steps {
			for _, d := range s.DependsOn {
				if !done[d] || s.Why[d] == "" {
					t.Errorf("%s waits for %s, which does not come before it or has no reason (%q)", s.ID, d, s.Why[d])
				}
			}
			if done[s.ID] || p.Order[i] != s.ID {
				t.Errorf("order %v, step %d is %s", p.Order, i, s.ID)
			}
			done[s.ID] = true
			for _, g := range s.Parts {
				parts[g] = true
			}
			for _, w := range s.Writes {
				if writers[w] {
					t.Errorf("%s has two writers", w)
				}
				writers[w] = true
			}
		}
		if !parts["g1"] || !parts["g2"] || !parts["g3"] {
			t.Errorf("parts %v of three are served", parts)
		}
	})
}
