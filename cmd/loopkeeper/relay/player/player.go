// Package player is a stand-in model that plays the number relay by code, with faults of stated rates. What it makes is simulated: it
// shows that the benchmark counts right and what the faults of a loop cost, and says nothing about any model.
package player

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"sync"

	"github.com/ollama/ollama/api"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay"
	"github.com/loopkeeper/loopkeeper/coordinator/judges"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// Rates are how often something goes wrong.
type Rates struct {
	Drop      float64 // of the calls of a task: it is never made
	Duplicate float64 // of these: it is made again
	Invent    float64 // of these: the report has another number
	Text      float64 // of the turns of a loop in the model: the call is printed as text
	Empty     float64 // of these: nothing comes
	BadPlan   float64 // of the plans: a rule that code checks is broken
	Schema    float64 // of the answers in a format: it does not hold
	Argument  float64 // of the arguments that are filled in: a number that nobody said
	Miss      float64 // of the defects: it says that the criterion is met
	Alarm     float64 // of the good subjects: it says that it is not
	Abstain   float64 // of both: it says that it cannot tell
}

// Usual are the rates of the page.
var Usual = Rates{Drop: 0.10, Duplicate: 0.05, Invent: 0.03, Text: 0.08, Empty: 0.05, BadPlan: 0.10, Schema: 0.05, Argument: 0.03,
	Miss: 0.30, Alarm: 0.05, Abstain: 0.10}

// Player plays tasks that it knows. It is safe for concurrent use.
type Player struct {
	rates Rates
	tasks map[string]relay.Task // by goal
	set   []judges.Subject      // that it judges

	mu    sync.Mutex
	times map[string]int // how often a prompt came; the seeds of a coordinator are other ones in each run, and these draws are not
}

// New makes a player of tasks, and a judge of subjects.
func New(rates Rates, tasks []relay.Task, set []judges.Subject) *Player {
	p := &Player{rates: rates, set: set, tasks: map[string]relay.Task{}, times: map[string]int{}}
	for _, t := range tasks {
		p.tasks[t.Goal] = t
	}
	return p
}

// Play answers a request about a task that it knows; it is an ollamatest.Player.
func (p *Player) Play(a ollamatest.Asked) (ollamatest.Said, bool) {
	switch {
	case strings.Contains(string(a.Format), `"z_argument"`):
		return p.inFormat(a, p.fillIn), true
	case strings.Contains(string(a.Format), `"d_steps"`):
		return p.inFormat(a, p.plan), true
	case strings.Contains(string(a.Format), `"d_result"`):
		return p.inFormat(a, p.judge), true
	case a.Format != nil:
		return ollamatest.Said{}, false
	case strings.Contains(a.Prompt, planned):
		return ollamatest.Said{Content: "Each worker is asked once, after those whose numbers its argument is made of."}, true
	}
	for _, m := range a.Messages {
		if m.Role != "user" {
			continue
		}
		goal, _, _ := strings.Cut(m.Content, "\n\n")
		t, known := p.tasks[goal]
		if !known {
			break
		}
		return p.turn(t, a), true
	}
	return ollamatest.Said{}, false
}

// inFormat is an answer in a format, or one that breaks it. time is how often the prompt came.
func (p *Player) inFormat(a ollamatest.Asked, answer func(a ollamatest.Asked, time int) string) ollamatest.Said {
	p.mu.Lock()
	p.times[a.Prompt]++
	time := p.times[a.Prompt]
	p.mu.Unlock()
	if p.strikes(p.rates.Schema, "schema", time, a.Prompt) {
		return ollamatest.Said{Content: `{"unexpected":true}`}
	}
	return ollamatest.Said{Content: answer(a, time)}
}

// turn is one turn of a loop that the player keeps.
func (p *Player) turn(t relay.Task, a ollamatest.Asked) ollamatest.Said {
	if len(a.Tools) == 0 {
		return ollamatest.Said{Content: "I ask each worker in the order of the task, and report what they say."}
	}
	l := p.listen(t, a)
	call := l.next()
	dice := p.dice("turn", a.Seed)
	switch {
	case dice < p.rates.Text:
		return ollamatest.Said{Content: "```json\n" + fmt.Sprintf(`{"tool": %q, "parameters": %s}`, call.Function.Name, call.Function.Arguments.String()) + "\n```"}
	case dice < p.rates.Text+p.rates.Empty:
		return ollamatest.Said{Thinking: "What was it again?"}
	}
	return ollamatest.Said{Calls: []api.ToolCall{call}}
}

// strikes says whether something that happens at a rate happens here. The same place gives the same answer.
func (p *Player) strikes(rate float64, place ...any) bool { return p.dice(place...) < rate }

// dice is a number from 0 to below 1.
func (p *Player) dice(place ...any) float64 {
	return float64(mix(place...)>>11) / float64(uint64(1)<<53)
}

// invented is a number that nobody said; that it is right by chance happens once in 900,000 times.
func invented(place ...any) int { return 100_000 + int(mix(append(place, "invented")...)%900_000) }

// mix hashes a place; FNV's low bits are weak for short texts, so MurmurHash3's finaliser follows.
func mix(place ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, place...)
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x & math.MaxUint64
}
