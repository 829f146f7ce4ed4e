package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Workload is calls over a fleet, and what goes wrong meanwhile. Make gives the same calls for the same seed.
type Workload struct {
	Name    string
	About   string // one clause
	Fleet   Fleet
	Make    func(rnd *rand.Rand) []Call
	Faults  []Fault
	Error   float64             // the memory that a load takes is off from its need by up to this share, either way
	Unknown bool                // the policies start without knowing any speed, and learn
	Pins    map[string][]string // for the scheduler: models that a person pins to machines
	Rare    string              // in an adversarial workload: the model that must not starve
	Small   bool                // a small run is beside a huge one, and must not be blocked by it
	Fewest  int                 // loads that every schedule needs which is as fast: where another policy makes no more, ours need not be fewer; 0: none known
	Because string              // why the promise of fewer loads or of the shortest flow does not hold in full here
	MaxWait time.Duration       // scheduler.Limits.MaxWait; 0: the default
}

// Call is one call of a workload.
type Call struct {
	Run      string
	At       time.Duration // when it is submitted; one with After also waits until those have ended
	Model    string
	Prompt   int // tokens
	Output   int // tokens
	Guess    int // output tokens that the policies are told; 0 tells them Output
	After    []int
	Priority scheduler.Priority
	Affinity string // what shares the beginning of its prompt: a conversation, a document
	Shared   int    // tokens of the prompt that need no work where the call before it with the same Affinity is still in a slot
}

// calls builds the calls of one workload.
type calls struct {
	*rand.Rand
	list []Call
}

func (c *calls) add(call Call) int {
	c.list = append(c.list, call)
	return len(c.list) - 1
}

// between is a whole number from low to high, both included.
func (c *calls) between(low, high int) int { return low + c.IntN(high-low+1) }

// Orchestrated is the prototype's generator: a planner's call fans out to four to nine workers, some with an embedding, and a
// second planner's call sums them up.
func Orchestrated(rnd *rand.Rand) []Call {
	c := &calls{Rand: rnd}
	for i := range 6 {
		run, at := fmt.Sprint("run ", i), seconds(c.Float64()*900*0.4)
		plan := c.add(Call{Run: run, At: at, Model: "plan120", Prompt: c.between(800, 3000), Output: c.between(300, 900)})
		var workers []int
		for range c.between(4, 9) {
			model := []string{"w14", "w14", "w32", "w8"}[c.IntN(4)]
			workers = append(workers, c.add(Call{Run: run, At: at, Model: model, Prompt: c.between(500, 4000), Output: c.between(200, 800), After: []int{plan}}))
			if c.Float64() < 0.4 {
				c.add(Call{Run: run, At: at, Model: "emb", Prompt: c.between(500, 4000), After: []int{plan}})
			}
		}
		c.add(Call{Run: run, At: at, Model: "plan120", Prompt: c.between(2000, 5000), Output: c.between(200, 500), After: workers})
	}
	return c.list
}

// stream is calls of one model that arrive independently of each other.
type stream struct {
	model       string
	every       float64 // mean seconds between arrivals
	low, high   int     // output tokens
	prompt      [2]int
	run         string
	interactive bool
}

// mixed is the prototype's other generator: independent Poisson streams over a quarter of an hour.
func mixed(streams ...stream) func(*rand.Rand) []Call {
	return func(rnd *rand.Rand) []Call {
		c := &calls{Rand: rnd}
		for _, s := range streams {
			c.stream(s, 900)
		}
		return c.list
	}
}

func (c *calls) stream(s stream, horizon float64) {
	for t := c.ExpFloat64() * s.every; t <= horizon; t += c.ExpFloat64() * s.every {
		call := Call{Run: s.model + s.run, At: seconds(t), Model: s.model, Prompt: c.between(s.prompt[0], s.prompt[1])}
		if s.high > 0 {
			call.Output = c.between(s.low, s.high)
		}
		if s.interactive {
			call.Priority = scheduler.PriorityInteractive
		}
		c.add(call)
	}
}

// Mixed are the prototype's streams.
var Mixed = mixed(
	chat("w14", 14), chat("w8", 12), chat("w32", 60), chat("plan120", 90),
	stream{model: "emb", every: 10, prompt: [2]int{300, 3000}},
)

func chat(model string, every float64) stream {
	return stream{model: model, every: every, low: 80, high: 500, prompt: [2]int{300, 3000}}
}
