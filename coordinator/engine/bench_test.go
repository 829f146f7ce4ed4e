package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// flow bundles a script that uses more than calls of models; call it outside of a bubble, as program.
func flow(t testing.TB, body string) script.Program {
	t.Helper()
	p, err := script.BundleText("flow.ts", `import { all, approve, batch, each, generate, log, now, output, pipeline, question, sleep, spawn, t, tool, uuid } from "loopkeeper";
const Answer = t.object({ of: t.string() });
export default async function flow(input: any) {`+body+`}`)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// library is workflows that can be spawned, by name.
type library map[string]script.Program

func (l library) find(_ context.Context, name string) (script.Program, error) {
	p, ok := l[name]
	if !ok {
		return p, fmt.Errorf("no workflow is named %q", name)
	}
	return p, nil
}

// workbench stands in for the tools of a machine. Like the machine it outlives the engine: what was done stays done, and the records of
// calls are durable. "look" has no effect, "file" a local one and "mail" one outside.
type workbench struct {
	mu       sync.Mutex
	effects  map[string][]string // texts by key of their call: more than one is an effect that was repeated
	records  map[string]*ToolOutcome
	calls    int
	running  int
	most     int
	blind    bool // nobody can tell afterwards
	stubborn bool // it acts although it was cancelled
	takes    func(c ToolCall) time.Duration
	fails    func(c ToolCall) *Failure
}

func newBench() *workbench {
	return &workbench{effects: map[string][]string{}, records: map[string]*ToolOutcome{}}
}

func (b *workbench) Effect(tool string) (ToolEffect, bool) {
	e, ok := map[string]ToolEffect{"look": EffectNone, "file": EffectLocal, "mail": EffectExternal}[tool]
	return e, ok
}

func (b *workbench) Run(ctx context.Context, c ToolCall) (ToolOutcome, error) {
	b.mu.Lock()
	b.calls++
	if b.running++; b.running > b.most {
		b.most = b.running
	}
	old, began := b.records[c.Key]
	if c.Tool != "look" && !began {
		b.records[c.Key] = nil
	}
	takes, fails := b.takes, b.fails
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.running--
		b.mu.Unlock()
	}()
	switch {
	case old != nil:
		return *old, nil
	case began:
		return ToolOutcome{Failure: &Failure{Kind: run.KindUnknown, Message: c.Tool + ": it had begun before", Advice: run.Again}}, nil
	}
	d := time.Second
	if takes != nil {
		d = takes(c)
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		if !b.stubborn {
			return ToolOutcome{}, ctx.Err()
		}
	}
	var out ToolOutcome
	if fails != nil {
		out.Failure = fails(c)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if out.Failure == nil {
		var in struct{ Text string }
		_ = json.Unmarshal(c.Input, &in)
		out = ToolOutcome{Value: json.RawMessage(fmt.Sprintf(`{"did":%q}`, in.Text)), Before: json.RawMessage(`[{"kind":"entry"}]`), After: json.RawMessage(`[{"kind":"entry","exists":true}]`)}
		b.effects[c.Key] = append(b.effects[c.Key], in.Text)
	}
	if ctx.Err() != nil {
		return ToolOutcome{}, ctx.Err() // nobody hears of it
	}
	if c.Tool != "look" {
		b.records[c.Key] = &out
	}
	return out, nil
}

func (b *workbench) Check(_ context.Context, c ToolCall) (ToolChecked, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out, began := b.records[c.Key]
	switch {
	case !began:
		return ToolChecked{State: ToolNotDone, Why: "it had not begun"}, nil
	case out != nil:
		return ToolChecked{State: ToolDone, Outcome: out, Why: "how it ended was recorded"}, nil
	case b.blind:
		return ToolChecked{State: ToolUnknown, Why: "nobody can tell"}, nil
	case len(b.effects[c.Key]) > 0:
		return ToolChecked{State: ToolDone, Why: "it is there", Outcome: &ToolOutcome{Value: json.RawMessage(`{"did":"before"}`)}}, nil
	default:
		return ToolChecked{State: ToolNotDone, Why: "it is not there"}, nil
	}
}

// did is how often something happened, whatever it was called, by text.
func (b *workbench) did() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]int{}
	for _, texts := range b.effects {
		for _, text := range texts {
			out[text]++
		}
	}
	return out
}

// until runs the bubble on until something is so, and fails after a day.
func (r *rig) until(what string, so func() bool) {
	r.t.Helper()
	for range 24 * 60 * 4 {
		if so() {
			return
		}
		time.Sleep(15 * time.Second)
	}
	r.t.Fatalf("it never came to this: %s", what)
}

func (r *rig) view(id string) View {
	r.t.Helper()
	v, err := r.e.Run(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

func (r *rig) waits(id string) []Wait {
	r.t.Helper()
	w, err := r.e.Waits(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}
