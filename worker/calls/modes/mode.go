package modes

import (
	"time"

	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// The endpoints that a Mode may name.
const (
	Generate = "generate"
	Chat     = "chat"
)

// The fields of an answer in which a value may arrive.
const (
	Content  = "content"
	Thinking = "thinking"
)

// Mode is a way of calling on which a server was seen to apply a format with a model. It holds for one version of the
// server and one digest. The zero Mode says that nothing is known.
type Mode struct {
	Endpoint      string // Generate or Chat
	Think         ollama.Think
	Field         string    // Content or Thinking: where the value arrives
	Ordered       bool      // the keys came in the order of the schema
	ServerVersion string    // of Ollama
	Time          time.Time // of the probe
	None          bool      // no way passed: a format is sent, but every value is taken out of text
}

// Known says whether something is known at all.
func (m Mode) Known() bool { return m.Endpoint != "" }

// Applied says whether a format is known to hold: what comes then is the value and nothing else.
func (m Mode) Applied() bool { return m.Known() && !m.None }

// Assumed is the way taken where nobody probes: it passed for every kind of model but the harmony ones (research:
// judgement §2.1).
func Assumed() Mode { return Mode{Endpoint: Generate, Think: ollama.ThinkOff, Field: Content} }

// same says whether two modes call in the same way.
func same(a, b Mode) bool {
	return a.Endpoint == b.Endpoint && a.Think == b.Think && a.Field == b.Field && a.None == b.None
}

// Budgets of a probe in tokens. The answer has about fifteen; a model that thinks needs room for that as well, since
// thoughts and answer are counted together on some ways.
const (
	budget         = 20
	thinkingBudget = 300
)

// way is a candidate: what is tried, with how many tokens.
type way struct {
	endpoint string
	think    ollama.Think
	budget   int
}

// candidates in the order in which they are tried: the cheap ones, and those that passed for most models, first. levels
// says that the model takes levels of thinking only (gpt-oss).
func candidates(levels bool) []way {
	thinking := way{Chat, ollama.ThinkOn, thinkingBudget}
	if levels {
		thinking.think = ollama.ThinkLow
	}
	return []way{{Generate, ollama.ThinkOff, budget}, {Chat, ollama.ThinkOff, budget}, thinking, {Generate, ollama.ThinkDefault, budget}}
}
