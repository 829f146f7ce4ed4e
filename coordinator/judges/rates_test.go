package judges

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run/panel"
)

// The figures are those of R: prop.test(27, 30, correct = FALSE), and so on.
func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		r         Rate
		low, high float64
	}{{Rate{27, 30}, 0.7438, 0.9654}, {Rate{0, 10}, 0, 0.2775}, {Rate{10, 10}, 0.7225, 1}, {Rate{15, 30}, 0.3315, 0.6685}, {Rate{}, 0, 1}} {
		if low, high := c.r.Interval(); math.Abs(low-c.low) > 5e-5 || math.Abs(high-c.high) > 5e-5 {
			t.Errorf("%v: %.4f..%.4f, want %.4f..%.4f", c.r, low, high, c.low, c.high)
		}
	}
	if m := (Rate{24, 30}).Margin(); math.Abs(m-0.14) > 0.01 {
		t.Errorf("margin of 24 of 30 is %.3f", m)
	}
}

// answered has a judge answer a set: it takes every nth defect for met, and every mth good one for not met.
func answered(set []Subject, judge string, miss, alarm int, pass string) (out []Answer) {
	goods, bads := 0, 0
	for i, s := range set {
		a := Answer{Judge: judge, Digest: "d-" + judge, Subject: i, Pass: pass, Said: s.Expected, Counted: s.Expected, Quoted: true}
		if s.Expected == Met {
			if goods++; goods%alarm == 0 {
				a.Said, a.Counted = NotMet, NotMet
			}
		} else if bads++; bads%miss == 0 {
			a.Said, a.Counted = Met, Met
		}
		out = append(out, a)
	}
	return out
}

func TestRates(t *testing.T) {
	set, err := Build(nil, Plan{Type: Coverage})
	if err != nil {
		t.Fatal(err)
	}
	answers := append(answered(set, "a", 10, 5, First), answered(set, "b", 5, 31, First)...)
	answers = append(answers, answered(set, "a", 31, 5, Reversed)...)
	answers = append(answers, Answer{Judge: "a", Subject: 0, Pass: Again, Failed: "deadline"}, Answer{Judge: "a", Subject: 900, Pass: First}, Answer{Judge: "a", Pass: "third"})
	all, pairs := Measure(set, answers)
	if len(all) != 2 || all[0].Judge != "a" || all[0].Type != Coverage || all[0].Digest != "d-a" {
		t.Fatalf("%+v", all)
	}
	a, b := all[0], all[1]
	for name, c := range map[string][2]Rate{
		"a passed": {a.Passed, {24, 30}}, "a found": {a.Found, {27, 30}}, "b passed": {b.Passed, {30, 30}}, "b found": {b.Found, {24, 30}},
		"a abstained": {a.Abstained, {0, 60}}, "a lines": {a.Lines, {60, 60}}, "a flipped": {a.Flipped, {3, 60}}, "b flipped": {b.Flipped, {}},
		"a same": {a.Same, {}}, "a failed": {a.Failed, {1, 121}}, "together": {pairs[0].Missed, {3, 30}},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %v, want %v", name, c[0], c[1])
		}
	}
	if math.Abs(pairs[0].Alone-0.1*0.2) > 1e-9 {
		t.Errorf("alone they would miss %g together", pairs[0].Alone)
	}
	if got := a.Defects[Injection]; got.Of != 5 {
		t.Errorf("injections: %v", got)
	}
	if one, two := (Record{Measured: a}).Calibration(), (Record{Measured: b}).Calibration(); one.Vetoes() || !one.Counts() || two.Word() != "good" {
		t.Errorf("%+v is %s, %+v is %s", one, one.Word(), two, two.Word())
	}
}

func TestWhatAnAnswerCountsFor(t *testing.T) {
	for _, c := range []struct {
		a    Answer
		want string
	}{
		{Answer{Said: NotMet, Counted: NotMet, Quoted: true}, NotMet},
		{Answer{Said: NotMet, Counted: CannotTell}, NotMet},                   // what is missing cannot be quoted
		{Answer{Said: NotMet, Counted: CannotTell, Forged: true}, CannotTell}, // words that stand nowhere show nothing
		{Answer{Said: Met, Counted: CannotTell, Forged: true}, CannotTell},
		{Answer{Said: CannotTell, Counted: CannotTell}, CannotTell},
		{Answer{Said: Met, Counted: Met, Quoted: true}, Met},
	} {
		if got := c.a.outcome(); got != c.want || c.a.abstains() != (c.want == CannotTell) {
			t.Errorf("%+v counts as %s, want %s", c.a, got, c.want)
		}
	}
}

func TestARecordHoldsForItsDigestPromptsAndServer(t *testing.T) {
	r := Record{Measured: Measured{Digest: "d1"}, Prompts: "p1", Servers: []string{"0.17.4"}, Time: time.Unix(0, 0)}
	for want, n := range map[string]Now{
		"":                              {Prompts: "p1", Digests: []string{"d1", "d2"}, Servers: map[string][]string{"d1": {"0.18.0", "0.17.4"}}},
		"the prompts":                   {Prompts: "p2", Digests: []string{"d1"}},
		"another model":                 {Prompts: "p1", Digests: []string{"d2"}},
		"was 0.17.4, and is 0.18.0 now": {Prompts: "p1", Digests: []string{"d1"}, Servers: map[string][]string{"d1": {"0.18.0"}}},
	} {
		if got := r.Stale(n); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := r.Stale(Now{Prompts: "p1"}); got != "" {
		t.Errorf("with no machine there: %q", got)
	}
}

func TestVerdictsInWords(t *testing.T) {
	list := []panel.Judge{{Model: "qwen3:8b", Calibration: "none"}, {Model: "llama3.1:8b", Calibration: "good", N: 30, TPR: 0.93, TNR: 0.9}}
	if got, want := By(list), "qwen3:8b (uncalibrated) and llama3.1:8b (30 subjects: finds 9 of 10 defects)"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for want, j := range map[string]panel.Judge{
		"30 subjects: finds 3½ of 10 defects; its word is advice":                          {Calibration: "advisory", N: 30, TPR: 0.9, TNR: 0.34},
		"30 subjects: finds 9 of 10 defects, passes 6 of 10 good ones; its word is advice": {Calibration: "advisory", N: 30, TPR: 0.6, TNR: 0.9},
		"uncalibrated": {},
	} {
		if got := Worth(j); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := By([]panel.Judge{list[0], list[0]}); strings.Contains(got, "and") {
		t.Errorf("one that was asked twice: %s", got)
	}
	for raw, want := range map[string]string{
		`{"verdict":"passed","rule":"all_met_one_judge","judges":[{"model":"a:1b","calibration":"none"}]}`:         "passed by a:1b (uncalibrated): the only judge sees every criterion met, and nobody of another family was there to ask",
		`{"verdict":"needs_human","rule":"disagreement","judges":[{"model":"a:1b"},{"model":"b:1b"}]}`:             "needs a person after a:1b (uncalibrated) and b:1b (uncalibrated): the judges contradict each other",
		`{"verdict":"sent_back","rule":"code_failed","judges":[]}`:                                                 "sent back: code found a fault, and no model was asked",
		`{"verdict":"sent_back","reasons":["r"],"facts":[{"quote":"q","in":"a.md"}],"opinions":[{"opinion":"o"}]}`: "sent back",
		`{"verdict":"fine"}`: "", `[1]`: "",
	} {
		if got := Conclude([]byte(raw)).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for _, rule := range []string{panel.RuleCode, panel.RuleEmpty, panel.RuleNotMet, panel.RuleMissing, panel.RuleFlagged, panel.RuleMet, panel.RuleMetOne,
		panel.RuleMetAuthor, panel.RuleCalibration, panel.RuleDisagree, panel.RuleCannotTell} {
		if RuleText(rule) == strings.ReplaceAll(rule, "_", " ") {
			t.Errorf("%s has no words", rule)
		}
	}
}
