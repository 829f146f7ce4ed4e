package serve

import (
	"sync"
	"time"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// What is too short says nothing about a rate.
const (
	leastLoad   = time.Second
	leastPrompt = 256 // tokens
)

// paces holds the slowest rates that were measured here, by model. They only bound how long a call may be silent, and a
// call that stalled forgets them: a load from the page cache or a prompt found in Ollama's cache may have made them up.
type paces struct {
	mu     sync.Mutex
	byName map[string]calls.Pace
}

func (p *paces) of(model string) calls.Pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[ollama.Name(model)]
}

// learn takes in how a call went; size is that of the model, bytes, 0 when unknown.
func (p *paces) learn(o calls.Outcome, size uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range o.Turns {
		name := ollama.Name(t.Report.Model)
		if o.Kind == calls.Stalled {
			delete(p.byName, name)
			continue
		}
		pace, c := p.byName[name], t.Report.Counts
		if c.LoadDuration >= leastLoad {
			pace.LoadRate = slower(pace.LoadRate, float64(size)/c.LoadDuration.Seconds())
		}
		if c.PromptTokens >= leastPrompt && c.PromptDuration > 0 {
			pace.PromptRate = slower(pace.PromptRate, float64(c.PromptTokens)/c.PromptDuration.Seconds())
		}
		if p.byName == nil {
			p.byName = map[string]calls.Pace{}
		}
		p.byName[name] = pace
	}
}

// slower is the lower of two rates of which 0 is unknown.
func slower(a, b float64) float64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// pace is what is known about how soon a model's first token comes. A model that is in memory with another context is
// loaded again.
func (s *Server) pace(m *workerv1.ModelSpec) calls.Pace {
	p := s.paces.of(m.GetName())
	for _, l := range s.Report().GetLoaded() {
		if ollama.Name(l.GetName()) == ollama.Name(m.GetName()) && (m.GetContext() == 0 || m.GetContext() == l.GetContext()) {
			p.Loaded = true
		}
	}
	return p
}

// fileBytes is the size of a model by the newest report; 0 when it is not there.
func (s *Server) fileBytes(model string) uint64 {
	for _, m := range s.Report().GetModels() {
		if ollama.Name(m.GetName()) == ollama.Name(model) {
			return m.GetFileBytes()
		}
	}
	return 0
}
