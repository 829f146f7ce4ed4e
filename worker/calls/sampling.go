package calls

import (
	"github.com/loopkeeper/loopkeeper/worker/calls/modes"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// defaultNumPredict is how many tokens an answer may have where a request says nothing; it also ends one that loops.
const defaultNumPredict = 4096

// thinkingRoom is what a value may take in tokens, thoughts before it included, where its mode thinks first and the request
// does not say: used up by thoughts, a smaller limit would leave nothing of the answer.
const thinkingRoom = 2048

// sampling settles what the request left open. The first try of a structured call is greedy. Greedy answers do not
// depend on the seed and sampled ones do, so every later try gets a new seed and at least the next temperature. A call for
// text takes what the makers of the model recommend.
func (r turnRequest) sampling(k knowledge, think ollama.Think) ollama.Sampling {
	o := r.common.Options
	s := ollama.Sampling{
		NumCtx: o.NumCtx, NumPredict: o.NumPredict, Seed: o.Seed, Temperature: o.Temperature, TopP: o.TopP, TopK: o.TopK,
	}
	ours := s.NumPredict <= 0
	if ours {
		s.NumPredict = r.room(think)
	}
	if o.Room {
		s.NumPredict *= 2
	}
	if (ours || o.Room) && o.NumCtx > 0 {
		s.NumPredict = min(s.NumPredict, o.NumCtx)
	}
	switch {
	case r.format != nil:
		greedy(&s)
	case k.known && k.thinking(think):
		k.family.thinking.fill(&s, k.parameters)
	case k.known:
		k.family.plain.fill(&s, k.parameters)
	}
	vary(&s, r.common.Attempt)
	s.Seed &= 1<<31 - 1 // the runners take 32 bits, and -1 would mean random
	return s
}

// room is how many tokens an answer may have where the request does not say.
func (r turnRequest) room(think ollama.Think) int {
	switch {
	case r.budget <= 0:
		return defaultNumPredict
	case think != ollama.ThinkOff:
		return r.budget + thinkingRoom
	default:
		return r.budget
	}
}

// greedy are the values of a call with a format. The default penalties would punish JSON's own punctuation, and every field
// name that comes twice.
func greedy(s *ollama.Sampling) {
	zero, one := 0.0, 1.0
	s.RepeatPenalty, s.PresencePenalty, s.FrequencyPenalty = &one, &zero, &zero
	if s.Temperature == nil {
		s.Temperature = &zero
	}
}

// vary makes a later try another one: the same prompt, seed and temperature give the same bytes.
func vary(s *ollama.Sampling, attempt int) {
	retry := attempt - 1
	if retry <= 0 {
		return
	}
	s.Seed += int64(retry)
	floor := []float64{0.3, 0.6}[min(retry, 2)-1]
	if s.Temperature != nil && *s.Temperature < floor {
		s.Temperature = &floor
	}
}

// thinking says whether the model will think when it is told so.
func (k knowledge) thinking(think ollama.Think) bool {
	return k.family.levels || k.thinks && think != ollama.ThinkOff
}

// thinkFreely is what a call for text says about thinking. What the request says counts; a call that is to think first asks
// for it where the model can.
func (r turnRequest) thinkFreely(k knowledge) ollama.Think {
	asked := r.common.Options.Think
	switch {
	case !r.thinks || asked != ollama.ThinkDefault:
		return asked
	case k.family.levels:
		return ollama.ThinkMedium
	case k.thinks:
		return ollama.ThinkOn
	default:
		return ollama.ThinkDefault
	}
}

// thinkIn is what a call for a value says about thinking: what the format needs, at the level that was asked for.
func thinkIn(m modes.Mode, asked ollama.Think) ollama.Think {
	if isLevel(m.Think) && isLevel(asked) {
		return asked
	}
	return m.Think
}

func isLevel(t ollama.Think) bool {
	return t == ollama.ThinkLow || t == ollama.ThinkMedium || t == ollama.ThinkHigh
}
