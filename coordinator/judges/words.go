package judges

import (
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
