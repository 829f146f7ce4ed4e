package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Ollama reloads a model whenever a call asks for another context. So at any time a model has one, for all its calls on all nodes:
// the largest that an open run needs. A run's need never shrinks while it is open, whatever its later steps ask for, and grows only
// when one of them asks for more than it had.

// contexts collects what the runs need of each model.
type contexts struct {
	e     *Engine
	nodes []scheduler.Node
	now   time.Time
	need  map[string]int // by name with tag, tokens per slot
}

// base is the context of a model where nothing asks for one, as it was computed last.
type base struct {
	tokens int
	at     time.Time
}

// baseAge is how long it holds: the fleet may have changed.
const baseAge = 10 * time.Second

func (e *Engine) contexts(nodes []scheduler.Node, now time.Time) *contexts {
	c := &contexts{e: e, nodes: nodes, now: now, need: map[string]int{}}
	for _, a := range e.order {
		for model, tokens := range a.state.Contexts {
			c.want(a.uses(model), tokens)
		}
	}
	return c
}

// want says that a call of a model needs so many tokens; 0 leaves it to the fleet.
func (c *contexts) want(model string, tokens int) {
	name := tagged(model)
	if tokens == 0 {
		b, known := c.e.bases[name]
		if !known || c.now.Sub(b.at) > baseAge {
			b = base{c.e.baseContext(model, c.nodes), c.now}
			c.e.bases[name] = b
		}
		tokens = b.tokens
	}
	c.need[name] = max(c.need[name], tokens)
}

// of is the context of a model's calls now, 0 for the scheduler's default.
func (c *contexts) of(model string) int { return c.need[tagged(model)] }

// Context is the context of a model where a run asks for none, in tokens per slot: the configured one, else the default, or the
// largest that fits where the default fits no machine of the snapshot, as Snapshot gives it: what is kept free there and what loads
// were seen to take is known to the engine alone. 0: nothing useful is known.
func (e *Engine) Context(s scheduler.Snapshot, model string) int {
	return e.baseContext(model, s.Nodes)
}

func (e *Engine) baseContext(model string, nodes []scheduler.Node) int {
	if c := e.configured(model); c > 0 {
		return c
	}
	ok, why := scheduler.Admit(scheduler.Snapshot{Nodes: nodes}, model, 0, e.o.Limits)
	for _, n := range nodes {
		i := slices.IndexFunc(n.Models, func(m scheduler.Model) bool { return tagged(m.Name) == tagged(model) && m.Shape != nil })
		if ok && i >= 0 {
			return scheduler.Context(n.Models[i], 0, e.o.Limits)
		}
	}
	largest := 0
	for _, v := range why.Nodes {
		largest = max(largest, v.Largest)
	}
	if largest < leastContext {
		return 0
	}
	return largest
}

// leastContext is the smallest context, in tokens, that is chosen where nobody says one: a call needs room for a prompt and its answer.
const leastContext = 2048

// configured is the configured context of a model, 0 for none.
func (e *Engine) configured(model string) int {
	all := e.o.Limits.Contexts
	if c, ok := all[model]; ok {
		return c
	}
	if base, latest := strings.CutSuffix(model, ":latest"); latest {
		return all[base]
	}
	return all[model+":latest"]
}
