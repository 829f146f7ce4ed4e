package serve

import (
	"encoding/json"
	"slices"
	"strings"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
)

// outcome maps how a call ended; of several turns the report adds up, and prompt and raw reply are joined in order.
func (s *Server) outcome(o calls.Outcome) *workerv1.Outcome {
	s.paces.learn(o, s.fileBytes(o.Report().Model))
	out := &workerv1.Outcome{Text: o.Text, ValueJson: o.Value, Report: s.report(o)}
	if o.Value != nil {
		out.Text = ""
	}
	var prompts, raws, thoughts []string
	for _, t := range o.Turns {
		prompts, raws = append(prompts, t.Prompt), append(raws, t.Raw)
		if t.Thinking != "" {
			thoughts = append(thoughts, t.Thinking)
		}
	}
	out.Prompt, out.Raw, out.Thinking = strings.Join(prompts, turnRule), strings.Join(raws, turnRule), strings.Join(thoughts, turnRule)
	if o.Kind != calls.OK {
		out.Failure = &workerv1.Failure{Kind: string(o.Kind), Message: strings.ToValidUTF8(message(o), "\uFFFD"), Advice: advice(o.Kind.Advice()),
			Next: next(o.Kind, out.Report.GetModel())}
	}
	return out
}

// message is what went wrong, with every reason that it does not name yet.
func message(o calls.Outcome) string {
	var more []string
	for _, r := range o.Reasons {
		if !strings.Contains(o.Message, r) {
			more = append(more, r)
		}
	}
	return strings.Join(append([]string{o.Message}, more...), "; ")
}

// turnRule separates the turns of one call in its stored prompt and reply.
const turnRule = "\n\n-----\n\n"

func (s *Server) report(o calls.Outcome) *workerv1.Report {
	machine, r := s.Report(), o.Report()
	out := &workerv1.Report{OllamaVersion: machine.GetOllama().GetVersion(), Simulated: machine.GetSimulated(), Model: r.Model, Digest: r.Digest,
		Endpoint: r.Endpoint, DoneReason: r.DoneReason, PromptTokens: int64(r.Counts.PromptTokens), OutputTokens: int64(r.Counts.OutputTokens),
		LoadNanos: int64(r.Counts.LoadDuration), PromptNanos: int64(r.Counts.PromptDuration), OutputNanos: int64(r.Counts.EvalDuration),
		TotalNanos: int64(r.Counts.TotalDuration), OptionsJson: options(r)}
	if r.Mode.Known() {
		out.Mode = modeMessage(r.Mode)
	}
	out.Repaired = slices.Contains(o.Notes, "repaired")
	return out
}

// options are the settings as sent, for the ledger.
func options(r calls.Report) []byte {
	raw, err := json.Marshal(struct {
		NumCtx        int      `json:"num_ctx,omitempty"`
		NumPredict    int      `json:"num_predict,omitempty"`
		Seed          int64    `json:"seed"`
		Temperature   *float64 `json:"temperature,omitempty"`
		TopP          *float64 `json:"top_p,omitempty"`
		TopK          *int     `json:"top_k,omitempty"`
		RepeatPenalty *float64 `json:"repeat_penalty,omitempty"`
		Presence      *float64 `json:"presence_penalty,omitempty"`
		Frequency     *float64 `json:"frequency_penalty,omitempty"`
		Think         string   `json:"think,omitempty"`
		Format        bool     `json:"format,omitempty"`
	}{r.Sampling.NumCtx, r.Sampling.NumPredict, r.Sampling.Seed, r.Sampling.Temperature, r.Sampling.TopP, r.Sampling.TopK, r.Sampling.RepeatPenalty,
		r.Sampling.PresencePenalty, r.Sampling.FrequencyPenalty, string(r.Think), r.Structured})
	if err != nil { // cannot be: checkNumbers let them through; the ledger then lacks them
		return nil
	}
	return raw
}

func advice(a calls.Advice) workerv1.Advice {
	switch a {
	case calls.Again:
		return workerv1.Advice_ADVICE_AGAIN
	case calls.OtherNode:
		return workerv1.Advice_ADVICE_OTHER_NODE
	case calls.Changed:
		return workerv1.Advice_ADVICE_CHANGED
	default:
		return workerv1.Advice_ADVICE_NEVER
	}
}

// next says what a person can do after a failure that no further attempt cured.
func next(k calls.Kind, model string) []string {
	switch k {
	case calls.Truncated:
		return []string{"allow more tokens (max_tokens), or ask for a shorter answer"}
	case calls.InputTooLong:
		return []string{"split the document, or give the model a larger context (models.contexts)"}
	case calls.BadSchema:
		return []string{"repair or simplify the schema"}
	case calls.ModelMissing:
		return []string{"ollama pull " + model}
	case calls.OutOfMemory:
		return []string{"loopkeeper explain " + model}
	case calls.OllamaUnreachable:
		return []string{"start Ollama on that machine"}
	case calls.SchemaViolation, calls.TextInsteadOfStructure:
		return []string{"simplify the schema, or use a larger model"}
	default:
		return nil
	}
}

// setValue makes v the value of an outcome. One that is no JSON value, such as a vector with NaN, is a failure.
func setValue(out *workerv1.Outcome, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		out.Failure = internalFailure("the result is no JSON value: " + err.Error())
		return
	}
	out.ValueJson = raw
}
