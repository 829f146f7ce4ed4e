package serve

import (
	"bytes"
	"encoding/json"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// settings is what may stand in a call's further options.
type settings struct {
	NumCtx      int      `json:"num_ctx"` // tokens; the coordinator has made it the model's context
	NumPredict  int      `json:"num_predict"`
	Seed        *int64   `json:"seed"`
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	TopK        *int     `json:"top_k"`
}

func readSettings(raw []byte) (s settings, err error) {
	if len(raw) == 0 {
		return s, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, apierr.New(apierr.InvalidArgument, "options: %v", err).
			WithNext("options may hold num_ctx, num_predict, seed, temperature, top_p and top_k")
	}
	return s, s.check()
}

// common maps what every generating call carries. What has a field of its own wins over the same thing in the options.
func (s *Server) common(c *workerv1.Call, m *workerv1.ModelSpec, p *workerv1.Sampling, system string, shared []string) (calls.Common, error) {
	more, err := readSettings(p.GetOptionsJson())
	if err != nil {
		return calls.Common{}, err
	}
	texts, err := s.prompts(c)
	if err != nil {
		return calls.Common{}, err
	}
	o := calls.Options{NumCtx: int(m.GetContext()), NumPredict: int(p.GetMaxTokens()), Seed: p.GetSeed(), Temperature: more.Temperature,
		TopP: more.TopP, TopK: more.TopK, Room: p.GetRoom()}
	if o.NumCtx == 0 {
		o.NumCtx = more.NumCtx
	}
	if o.NumPredict == 0 {
		o.NumPredict = more.NumPredict
	}
	if more.Seed != nil {
		o.Seed = *more.Seed
	}
	if p != nil && p.Temperature != nil {
		o.Temperature = p.Temperature
	}
	if o.Think, err = think(p.GetThink()); err != nil {
		return calls.Common{}, err
	}
	return calls.Common{Model: m.GetName(), Digest: m.GetDigest(), Attempt: int(c.GetAttempt()), System: system, Context: shared, Options: o, Prompts: texts,
		Pace: s.pace(m), Models: s.models, Mode: modeOf(m.GetMode())}, nil
}

func think(s string) (ollama.Think, error) {
	switch s {
	case "":
		return ollama.ThinkDefault, nil
	case "false":
		return ollama.ThinkOff, nil
	case "true":
		return ollama.ThinkOn, nil
	case "low", "medium", "high":
		return ollama.Think(s), nil
	default:
		return "", apierr.New(apierr.InvalidArgument, "think: want true, false, low, medium or high, got %q", s)
	}
}
