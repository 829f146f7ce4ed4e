package panel

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// One criterion, "dated", and judges of three families in order.
var (
	dated = []Criterion{{Text: "dated", Must: true}}
	three = []Candidate{{Model: "qwen3:8b", Family: "qwen"}, {Model: "llama3.1:8b", Family: "llama"}, {Model: "gemma3:12b", Family: "gemma"}}
	line  = []Quote{{Text: "Monday, 3 May", In: "subject", Line: 2}}
)

func met() Answer { return Answer{Criterion: "dated", Said: Met, Counted: Met, Quotes: line} }
func notMet() Answer {
	return Answer{Criterion: "dated", Said: NotMet, Counted: NotMet, Quotes: line, Reason: "R", Against: "A"}
}
func missing() Answer { return Answer{Criterion: "dated", Said: NotMet, Counted: CannotTell} }
func forged() Answer {
	return Answer{Criterion: "dated", Said: NotMet, Counted: CannotTell, Missing: []string{"never written"}}
}
func fromSource() Answer {
	return Answer{Criterion: "dated", Said: Met, Counted: Met, Quotes: []Quote{{Text: "Monday, 3 May", In: "source 1", Line: 1}}}
}
func unsure() Answer { return Answer{Criterion: "dated", Said: CannotTell, Counted: CannotTell} }

// asked lets the candidates answer in turn.
func asked(from []Candidate, answers ...Answer) []Asked {
	var out []Asked
	for i, a := range answers {
		out = append(out, Asked{Candidate: from[min(i, len(from)-1)], Judgement: Judgement{Answers: []Answer{a}}})
	}
	return out
}

func same(digest string, all []Asked) []Asked {
	for i := range all {
		all[i].Digest = digest
	}
	return all
}

func flagged(all []Asked, flags ...string) []Asked {
	for i := range all {
		all[i].Flags = flags
	}
	return all
}

// The rules of the research (judgement.md §6.2) in their order, each with what it must not be confused with.
func TestTheRulesInOrder(t *testing.T) {
	one, two := three[:1], three[:2]
	deaf := []Candidate{{Model: "qwen3:8b", Family: "qwen", Calibration: Calibration{N: 30, TPR: 0.95, TNR: 0.3}}}
	jumpy := []Candidate{{Model: "qwen3:8b", Family: "qwen", Calibration: Calibration{N: 30, TPR: 0.5, TNR: 0.9}}, three[1], three[2]}
	// Below its line on other types, and measured on this one.
	typed := []Candidate{{Model: "qwen3:8b", Family: "qwen", Calibration: Calibration{N: 30, TPR: 0.9, TNR: 0.2}, Types: map[string]Calibration{"dates": {N: 30, TPR: 0.9, TNR: 0.9}}}, three[1]}
	for _, c := range []struct {
		name          string
		in            Case
		verdict, rule string // "" for another judge
		judge         int
	}{
		{"a: code fails, nobody is asked", Case{Code: []Code{{Name: "tests", Detail: "exit code 1"}}, Candidates: three}, SentBack, RuleCode, 0},
		{"a: code that holds passes nothing", Case{Code: []Code{{Name: "tests", Passed: true}}, Candidates: three}, "", "", 0},
		{"a: code comes before an empty subject", Case{Code: []Code{{Name: "size"}}, Candidates: three, Asked: []Asked{{Judgement: Judgement{Empty: true}}}}, SentBack, RuleCode, 0},
		{"b: nothing to judge", Case{Candidates: three, Asked: []Asked{{Candidate: three[0], Judgement: Judgement{Empty: true}}}}, SentBack, RuleEmpty, 0},
		{"c: a subject that talks to its judge is not passed", Case{Candidates: two, Asked: flagged(asked(two, met(), met()), "injection")}, NeedsHuman, RuleFlagged, 0},
		{"c: but sent back", Case{Candidates: two, Asked: flagged(asked(two, notMet()), "control_strings")}, SentBack, RuleNotMet, 0},
		{"d: a forged quote is no evidence, so another is asked", Case{Candidates: two, Asked: asked(two, forged())}, "", "", 1},
		{"d: nor is it when both forge", Case{Candidates: two, Asked: asked(two, forged(), forged())}, NeedsHuman, RuleCannotTell, 0},
		{"e: one line decides", Case{Candidates: three, Asked: asked(three, notMet())}, SentBack, RuleNotMet, 0},
		{"e: also of the second", Case{Candidates: three, Asked: asked(three, met(), notMet())}, SentBack, RuleNotMet, 0},
		{"e: not of one with too many false alarms", Case{Candidates: jumpy, Asked: asked(jumpy, notMet())}, "", "", 1},
		{"f: one is not enough where there are two", Case{Candidates: two, Asked: asked(two, met())}, "", "", 1},
		{"f: two families", Case{Candidates: two, Asked: asked(two, met(), met())}, Passed, RuleMet, 0},
		{"f: the only one there is", Case{Candidates: one, Asked: asked(one, met())}, Passed, RuleMetOne, 0},
		{"f: the only one there is, of the author's family", Case{Candidates: one, Author: "qwen", Asked: asked(one, met())}, Passed, RuleMetAuthor, 0},
		{"f: the author's family is passed over", Case{Candidates: three, Author: "qwen"}, "", "", 1},
		{"g: two disagree", Case{Candidates: three, Asked: asked(three, met(), missing())}, "", "", 2},
		{"g: the third agrees with neither line nor person", Case{Candidates: three, Asked: asked(three, met(), missing(), met())}, NeedsHuman, RuleDisagree, 0},
		{"g: two say it is missing", Case{Candidates: three, Asked: asked(three, met(), missing(), missing())}, SentBack, RuleMissing, 0},
		{"g: two disagree, and there is no third", Case{Candidates: two, Asked: asked(two, met(), missing())}, NeedsHuman, RuleDisagree, 0},
		{"h: nobody can tell", Case{Candidates: three, Asked: asked(three, unsure(), unsure(), unsure())}, NeedsHuman, RuleCannotTell, 0},
		{"h: the only one is asked once more", Case{Candidates: one, Asked: asked(one, unsure())}, "", "", 0},
		{"h: once", Case{Candidates: one, Asked: asked(one, unsure(), unsure())}, NeedsHuman, RuleCannotTell, 0},
		{"h: and may know better", Case{Candidates: one, Asked: asked(one, unsure(), met())}, Passed, RuleMetOne, 0},
		{"h: two of three will do", Case{Candidates: three, Asked: asked(three, unsure(), met(), met())}, Passed, RuleMet, 0},
		{"i: a judge that waves through passes nothing", Case{Candidates: deaf, Asked: asked(deaf, met())}, NeedsHuman, RuleCalibration, 0},
		{"i: but what it finds is found", Case{Candidates: deaf, Asked: asked(deaf, notMet())}, SentBack, RuleNotMet, 0},
		{"a line of a source alone proves nothing about the subject", Case{Candidates: one, Asked: asked(one, fromSource(), fromSource())}, NeedsHuman, RuleCannotTell, 0},
		{"a copy of a model under another name is one voice", Case{Candidates: two, Asked: same("d1", asked(two, met(), met()))}, Passed, RuleMetOne, 0},
		{"and where there is a third, it is asked", Case{Candidates: three, Asked: same("d1", asked(three, met(), met()))}, "", "", 2},
		{"the only judge misses something", Case{Candidates: one, Asked: asked(one, missing())}, SentBack, RuleMissing, 0},
		{"another sits in the place of one who gives nothing", Case{Candidates: three, Out: []int{1}, Asked: asked(three, met())}, "", "", 2},
		{"one judge less is not enough", Case{Candidates: two, Out: []int{0}, Asked: asked(two[1:], met())}, NeedsHuman, RuleCannotTell, 0},
		{"nor is none", Case{Candidates: one, Out: []int{0}}, NeedsHuman, RuleCannotTell, 0},
		{"a judge's word is worth what it is on that type", Case{Candidates: typed, Asked: asked(typed, met(), met())}, Passed, RuleMet, 0},
		{"an answer left out is none", Case{Candidates: one, Asked: []Asked{{Candidate: one[0]}, {Candidate: one[0]}}}, NeedsHuman, RuleCannotTell, 0},
	} {
		c.in.Criteria = []Criterion{{Text: "dated", Must: true, Type: "dates"}}
		n := Decide(c.in)
		switch {
		case n.Verdict == nil && (c.verdict != "" || n.Judge != c.judge):
			t.Errorf("%s: asks %d, want %q %d", c.name, n.Judge, c.verdict, c.judge)
		case n.Verdict != nil && (n.Verdict.Verdict != c.verdict || n.Verdict.Rule != c.rule):
			t.Errorf("%s: %s by %s, want %s by %s", c.name, n.Verdict.Verdict, n.Verdict.Rule, c.verdict, c.rule)
		case n.Verdict != nil && c.verdict != Passed && len(n.Verdict.Reasons) == 0:
			t.Errorf("%s: no reason is given", c.name)
		}
	}
}

// What a judge thinks goes among the opinions; what is sent back names lines and criteria only.
func TestFactsAndOpinionsAreApart(t *testing.T) {
	v := Decide(Case{Criteria: dated, Candidates: three, Asked: asked(three, notMet())}).Verdict
	if want := `not met: dated (subject, line 2: "Monday, 3 May")`; len(v.Reasons) != 1 || v.Reasons[0] != want {
		t.Errorf("reasons %q, want %q", v.Reasons, want)
	}
	if len(v.Facts) != 1 || v.Facts[0].Text != "Monday, 3 May" {
		t.Errorf("facts %+v", v.Facts)
	}
	if !slices.Equal(v.Opinions, []string{"dated: R", "dated: A"}) {
		t.Errorf("opinions %q", v.Opinions)
	}
	if strings.Contains(strings.Join(v.Reasons, ""), "R") {
		t.Error("the judge's words are in a reason")
	}
}

// A criterion that need not hold is reported, and changes nothing.
func TestWhatNeedNotHoldIsOnlyReported(t *testing.T) {
	criteria := append(dated, Criterion{Text: "short"})
	judged := []Asked{{Candidate: three[0], Judgement: Judgement{Answers: []Answer{met(), {Criterion: "short", Said: NotMet, Counted: NotMet, Quotes: line}}}}}
	n := Decide(Case{Criteria: criteria, Candidates: three[:1], Asked: judged})
	if n.Verdict == nil || n.Verdict.Verdict != Passed || n.Verdict.Criteria[1].By[0].Counted != NotMet {
		t.Errorf("%+v", n.Verdict)
	}
}

func TestEveryVerdictSaysWhatItsJudgesAreWorth(t *testing.T) {
	measured := Candidate{Model: "llama3.1:8b", Family: "llama", Calibration: Calibration{N: 30, TPR: 0.9, TNR: 0.85}}
	all := []Candidate{three[0], measured}
	v := Decide(Case{Criteria: dated, Candidates: all, Asked: asked(all, met(), met())}).Verdict
	if len(v.Judges) != 2 || v.Judges[0].Calibration != "none" || v.Judges[1].Calibration != "good" || v.Judges[1].TNR != 0.85 {
		t.Errorf("judges %+v", v.Judges)
	}
}

// Requests have a criterion as a text or as an object, and one that says no more than its text is written as that.
func TestCriteriaAsRequestsHaveThem(t *testing.T) {
	for in, want := range map[string]Criterion{
		`"dated"`:                       {Text: "dated", Must: true},
		`{"must":false,"text":"short"}`: {Text: "short"},
		`{"text":"a < b","must":true,"absence":true,"type":"names"}`: {Text: "a < b", Must: true, Absence: true, Type: "names"},
	} {
		var got, again Criterion
		if err := json.Unmarshal([]byte(in), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
		out, err := json.Marshal(got)
		if err != nil || json.Unmarshal(out, &again) != nil || again != want || (in[0] == '"') != (out[0] == '"') {
			t.Errorf("%s becomes %s, %v", in, out, err)
		}
	}
	if v := Decide(Case{Criteria: dated, Candidates: three[:1], Asked: asked(three, missing())}).Verdict; v.Criteria[0].Result != NotMet || v.Criteria[0].By[0].Counted != CannotTell {
		t.Errorf("%+v", v.Criteria)
	}
}

// One or two subjects say nothing about a judge, neither good nor bad.
func TestTooFewSubjectsAreNoMeasurement(t *testing.T) {
	for _, c := range []struct {
		in   Calibration
		want string
	}{{Calibration{N: 1, TPR: 1, TNR: 1}, "none"}, {Calibration{N: 1, TPR: 1}, "none"}, {Calibration{N: 30, TPR: 1, TNR: 1}, "good"}, {Calibration{N: 30, TPR: 1}, "advisory"}} {
		if got := c.in.Word(); got != c.want {
			t.Errorf("%+v is %s, want %s", c.in, got, c.want)
		}
	}
}

func TestWhoSits(t *testing.T) {
	of := func(models ...string) (out []Candidate) {
		for _, m := range models {
			out = append(out, Candidate{Model: m, Family: Family(m)})
		}
		return out
	}
	for _, c := range []struct {
		name   string
		in     []Candidate
		author string
		want   []int
	}{
		{"two families first, then the rest", of("qwen3:8b", "qwen3:14b", "gemma3:12b"), "", []int{0, 2, 1}},
		{"never more than three", of("a", "b", "c", "d"), "", []int{0, 1, 2}},
		{"nobody of the author's family", of("qwen3:8b", "llama3.1:8b"), "qwen", []int{1}},
		{"unless there is nobody else", of("qwen3:8b", "qwen2.5:7b"), "qwen", []int{0}},
		{"a second of the same family is no second family", of("qwen3:8b", "qwen3:14b"), "", []int{0}},
		{"nobody", nil, "qwen", nil},
	} {
		if got := Panel(c.in, c.author); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Names as Ollama's library has them.
func TestFamilies(t *testing.T) {
	for model, want := range map[string]string{
		"qwen3:8b": "qwen", "qwen2.5-coder:32b": "qwen", "llama3.1": "llama", "gpt-oss:20b": "gpt-oss", "gemma3:12b-it-qat": "gemma",
		"mistral-small:24b": "mistral", "hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M": "qwen", "phi4": "phi", "deepseek-r1:8b": "deepseek", "my-tune-2:latest": "my-tune",
		"registry.local:5000/team/llama3:latest": "llama", "": "",
	} {
		if got := Family(model); got != want {
			t.Errorf("%q is of %q, want %q", model, got, want)
		}
	}
}

// Whatever is answered: no more than three are asked, and then there is a verdict with a reason or a pass that two gave.
func TestThereIsAlwaysAnEnd(t *testing.T) {
	kinds := []func() Answer{met, notMet, missing, forged, unsure}
	var walk func(candidates []Candidate, answers []Answer)
	walk = func(candidates []Candidate, answers []Answer) {
		c := Case{Criteria: dated, Candidates: candidates}
		for i, a := range answers {
			panel := Panel(candidates, "")
			c.Asked = append(c.Asked, Asked{Candidate: candidates[panel[min(i, len(panel)-1)]], Judgement: Judgement{Answers: []Answer{a}}})
		}
		n := Decide(c)
		if n.Verdict != nil {
			if n.Verdict.Verdict == Passed && len(candidates) > 1 && len(n.Verdict.Facts) < 2 {
				t.Errorf("%v passed by one: %+v", answers, n.Verdict)
			}
			return
		}
		if len(answers) >= Most {
			t.Fatalf("%d have answered, and another is asked", len(answers))
		}
		for _, k := range kinds {
			walk(candidates, append(slices.Clone(answers), k()))
		}
	}
	for n := 1; n <= 3; n++ {
		walk(three[:n], nil)
	}
}
