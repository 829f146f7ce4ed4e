package judges

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/run/panel"
)

// rulesInWords say why a verdict is what it is.
var rulesInWords = map[string]string{
	panel.RuleCode:        "code found a fault, and no model was asked",
	panel.RuleEmpty:       "there was nothing to judge",
	panel.RuleNotMet:      "a line shows that a criterion is not met",
	panel.RuleMissing:     "what was asked for is missing, as far as judges can see",
	panel.RuleFlagged:     "the text talks to its judge, so no model may pass it",
	panel.RuleMet:         "judges of two families see every criterion met",
	panel.RuleMetOne:      "the only judge sees every criterion met, and nobody of another family was there to ask",
	panel.RuleMetAuthor:   "the only judge sees every criterion met, and it is of the author's family",
	panel.RuleCalibration: "the judges' words are not known to be worth it",
	panel.RuleDisagree:    "the judges contradict each other",
	panel.RuleCannotTell:  "no judge can show it",
}

// RuleText is a rule of verdicts in words, as in docs/judging.md; the name itself where it is of another version.
func RuleText(rule string) string {
	if text := rulesInWords[rule]; text != "" {
		return text
	}
	return strings.ReplaceAll(rule, "_", " ")
}

// Worth is what is known of a judge, in brackets behind its name: "uncalibrated", "30 subjects: finds 9 of 10 defects".
func Worth(j panel.Judge) string {
	if j.Calibration == "" || j.Calibration == "none" {
		return "uncalibrated"
	}
	text := fmt.Sprintf("%d subjects: finds %s of 10 defects", j.N, tenths(j.TNR))
	if j.TPR < panel.VetoTPR {
		text += fmt.Sprintf(", passes %s of 10 good ones", tenths(j.TPR))
	}
	if j.Calibration == "advisory" {
		text += "; its word is advice"
	}
	return text
}

// tenths is a share in tenths, with a half where it is nearer to one.
func tenths(share float64) string {
	halves := int(math.Round(share * 20))
	if halves%2 == 1 {
		return fmt.Sprintf("%d½", halves/2)
	}
	return fmt.Sprint(halves / 2)
}

// By names the judges of a verdict, each with its worth: "qwen3:8b (uncalibrated) and llama3.1:8b (30 subjects: …)".
func By(list []panel.Judge) string {
	var names []string
	for _, j := range list {
		name := fmt.Sprintf("%s (%s)", j.Model, Worth(j))
		if n := len(names); n > 0 && names[n-1] == name { // asked twice
			continue
		}
		names = append(names, name)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// Conclusion is a verdict in words.
type Conclusion struct {
	Verdict string // as it is stored, such as sent_back; "" for what is no verdict
	By      string // the judges with their worth, "" where none was asked, or nobody recorded it
	Rule    string // why, in words; "" where nobody recorded it
}

var verdicts = map[string]string{panel.Passed: "passed", panel.SentBack: "sent back", panel.NeedsHuman: "needs a person"}

// Conclude reads a verdict as it is stored; one of before there were panels has neither judges nor a rule.
func Conclude(raw []byte) Conclusion {
	var v struct {
		Verdict string        `json:"verdict"`
		Rule    string        `json:"rule"`
		Judges  []panel.Judge `json:"judges"`
	}
	if json.Unmarshal(raw, &v) != nil || verdicts[v.Verdict] == "" {
		return Conclusion{}
	}
	c := Conclusion{Verdict: v.Verdict, By: By(v.Judges)}
	if v.Rule != "" {
		c.Rule = RuleText(v.Rule)
	}
	return c
}

// String is "passed by qwen3:8b (uncalibrated): the only judge sees …".
func (c Conclusion) String() string {
	text := verdicts[c.Verdict]
	switch {
	case c.By != "" && c.Verdict == panel.NeedsHuman:
		text += " after " + c.By
	case c.By != "":
		text += " by " + c.By
	}
	if c.Rule != "" {
		text += ": " + c.Rule
	}
	return text
}
