package calls

import "github.com/loopkeeper/loopkeeper/worker/ollama"

// Report sums up all turns of a call: counts and durations are added, the rest is the last turn's.
func (o Outcome) Report() Report {
	var r Report
	var sum ollama.Counts
	for _, t := range o.Turns {
		r = t.Report
		sum.PromptTokens += r.Counts.PromptTokens
		sum.OutputTokens += r.Counts.OutputTokens
		sum.LoadDuration += r.Counts.LoadDuration
		sum.PromptDuration += r.Counts.PromptDuration
		sum.EvalDuration += r.Counts.EvalDuration
		sum.TotalDuration += r.Counts.TotalDuration
	}
	r.Counts = sum
	return r
}
