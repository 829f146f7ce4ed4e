package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Suite is the workloads of docs/placement.md. Those of the prototype tell the policies exact sizes, as it did; in the others they
// are told the mean of the model's outputs.
var Suite = []Workload{
	{Name: "orchestrated, A+B", About: "the prototype's fan-out: planner, four to nine workers, summary", Fleet: Prototype().only("A", "B"), Make: Orchestrated},
	{Name: "orchestrated, A+B, pinned", About: "the same, planner pinned to A", Fleet: Prototype().only("A", "B"), Make: Orchestrated, Pins: map[string][]string{"plan120": {"A"}}},
	{Name: "orchestrated, A+B+C", About: "the same with the third machine", Fleet: Prototype(), Make: Orchestrated},
	{Name: "orchestrated, cold", About: "on A+B+C, and no speed is known at the start", Fleet: Prototype(), Make: vague(Orchestrated), Unknown: true},
	{Name: "mixed, A+B", About: "the prototype's independent streams", Fleet: Prototype().only("A", "B"), Make: Mixed},
	{Name: "mixed, A+B+C", About: "the same with the third machine", Fleet: Prototype(), Make: Mixed},
	{Name: "home", About: "independent streams on four real machines with two slots each", Fleet: Home(), Make: vague(homeStreams)},
	{Name: "conversations", About: "40 conversations of six turns on the same machines, each with its past in the prompt", Fleet: Home(), Make: vague(conversations)},
	{Name: "alternation", About: "A B A B: 40 calls in a minute for two models of which one card holds one", Fleet: Prototype().only("B"), Make: vague(alternation)},
	{Name: "alternation, short calls", About: "A B A B: 40 calls of a fifth of a second in a minute, for two models that take 3.7 s to load and of which one card holds one",
		Fleet: quick(), Make: shortAlternation},
	{Name: "wave", About: "a text every ten seconds, written by one model and judged by another, on one card that holds one of them", Fleet: Prototype().only("B"), Make: vague(waveOf(10))},
	{Name: "batch in waves", About: "the same with 100 texts at once", Fleet: Prototype().only("B"), Make: vague(waveOf(0)), Fewest: 2,
		Because: "who writes all texts first and then judges them makes two loads, one for each model, and fewer there cannot be. In waves the first results are there after a minute " +
			"and the mean flow time is shorter; the bound on waiting sets how long a wave is, see below"},
	{Name: "embedding storm", About: "chat on A+B+C, and 120 embeddings at once every three minutes", Fleet: Prototype(), Make: vague(storm)},
	{Name: "adversary", About: "a model in steady demand and a rare one, on one card that holds one of them", Fleet: Prototype().only("B"), Make: vague(adversary), Rare: "w14", Fewest: 11,
		Because: "five rare calls are further apart than the bound on waiting: each costs a load there and one back, whoever places it, and with the first that makes eleven"},
	{Name: "adversary, A+B", About: "workers in steady demand on both machines, and a planner that only A can hold, with nothing beside it but a small worker", Fleet: Prototype().only("A", "B"),
		Make: vague(crowd), Rare: "plan120"},
	{Name: "machine lost", About: "orchestrated on A+B+C; B is lost in the middle of its first load after two minutes, and back at 400 s", Fleet: Prototype(), Make: vague(Orchestrated),
		Faults: []Fault{{At: 120 * time.Second, Machine: "B", Kind: LoseLoad}, {At: 400 * time.Second, Machine: "B", Kind: Back}}},
	{Name: "estimates ±15 %", About: "mixed on A+B+C; a load takes up to 15 % more or less memory than its need", Fleet: Prototype(), Make: vague(Mixed), Error: 0.15},
	{Name: "foreign memory", About: "mixed on A+B+C; for five minutes another program wants 10 GB of B", Fleet: Prototype(), Make: vague(Mixed),
		Faults: []Fault{{At: 200 * time.Second, Machine: "B", Kind: Foreign, Bytes: 10 * gb}, {At: 500 * time.Second, Machine: "B", Kind: Foreign}}},
	{Name: "huge batch", About: "400 calls of one run on A+B+C, and a run of ten calls, one after the other, beside them", Fleet: Prototype(), Make: vague(beside(0, 0)), Fewest: 4, Small: true, Because: fair},
	{Name: "huge batch, priorities", About: "the same, the small run interactive and the other a batch", Fleet: Prototype(),
		Make: vague(beside(scheduler.PriorityInteractive, scheduler.PriorityBatch)), Fewest: 4, Small: true, Because: fair},
}

// fair is why neither promise holds in full beside a huge batch.
const fair = "each machine needs the batch's model and one of them the small run's other one: with fewer than four loads a machine stands idle. " +
	"By call, whoever forgets the small run is the fastest, because ten calls that go first delay some four hundred; it is promised by run, and by call within 5 %"

// vague tells the policies the mean output of each model, since nobody knows the size of an answer before it is there.
func vague(make func(*rand.Rand) []Call) func(*rand.Rand) []Call {
	return func(rnd *rand.Rand) []Call {
		list := make(rnd)
		sum, count := map[string]int{}, map[string]int{}
		for _, c := range list {
			sum[c.Model] += c.Output
			count[c.Model]++
		}
		for i, c := range list {
			list[i].Guess = sum[c.Model] / count[c.Model]
		}
		return list
	}
}

func homeStreams(rnd *rand.Rand) []Call {
	return mixed(chat("coder30", 6), chat("w14", 8), chat("w8", 5), chat("w32", 40), chat("plan120", 45),
		stream{model: "emb", every: 4, prompt: [2]int{300, 3000}})(rnd)
}

func conversations(rnd *rand.Rand) []Call {
	c := &calls{Rand: rnd}
	for i := range 40 {
		name, model := fmt.Sprint("conversation ", i), []string{"coder30", "coder30", "w14"}[c.IntN(3)]
		at, past := c.Float64()*600, 0
		var before []int
		for range 6 {
			call := Call{Run: name, At: seconds(at), Model: model, Prompt: past + c.between(300, 2500), Output: c.between(80, 500),
				After: before, Affinity: name, Shared: past}
			before = []int{c.add(call)}
			past = call.Prompt
			at += 20 + c.ExpFloat64()*30
		}
	}
	return c.list
}

func alternation(rnd *rand.Rand) []Call {
	c := &calls{Rand: rnd}
	for i := range 40 {
		c.add(Call{Run: "run", At: time.Duration(i) * 1500 * time.Millisecond, Model: []string{"w32", "w14"}[i%2], Prompt: c.between(300, 800), Output: c.between(30, 80)})
	}
	return c.list
}

// quick is a fast card and two small models of which it holds one.
func quick() Fleet {
	rates := map[string]Rate{"a": {4000, 200}, "b": {4000, 200}}
	return Fleet{
		Machines: []Machine{{Name: "card", Kind: scheduler.PoolDevice, Usable: 7 * gb, LoadRate: 5 * gb, Fixed: 2900 * time.Millisecond, Unload: 500 * time.Millisecond,
			Lag: 500 * time.Millisecond, Rates: rates}},
		Models: []Model{{Name: "a", Need: 5 * gb, File: 4 * gb}, {Name: "b", Need: 5 * gb, File: 4 * gb}},
	}
}

func shortAlternation(rnd *rand.Rand) []Call {
	c := &calls{Rand: rnd}
	for i := range 40 {
		c.add(Call{Run: "run", At: time.Duration(i)*1500*time.Millisecond + seconds(c.Float64()/2), Model: []string{"a", "b"}[i%2], Prompt: c.between(200, 400), Output: c.between(20, 30)})
	}
	return c.list
}

// waveOf is 100 texts that arrive so many seconds apart on average.
func waveOf(every float64) func(*rand.Rand) []Call {
	return func(rnd *rand.Rand) []Call {
		c := &calls{Rand: rnd}
		at := 0.0
		for range 100 {
			text := c.add(Call{Run: "run", At: seconds(at), Model: "w14", Prompt: c.between(300, 800), Output: c.between(200, 400)})
			c.add(Call{Run: "run", Model: "w32", At: seconds(at), Prompt: c.between(600, 1200), Output: c.between(30, 100), After: []int{text}})
			at += c.ExpFloat64() * every
		}
		return c.list
	}
}

func storm(rnd *rand.Rand) []Call {
	c := &calls{Rand: rnd}
	for _, s := range []stream{chat("w14", 14), chat("w8", 12), chat("w32", 60)} {
		c.stream(s, 900)
	}
	for burst := range 4 {
		at := seconds(60 + 180*float64(burst) + 20*c.Float64())
		for range 120 {
			c.add(Call{Run: fmt.Sprint("storm ", burst), At: at, Model: "emb", Prompt: c.between(500, 4000)})
		}
	}
	return c.list
}

// adversary keeps the card busy for nine tenths of the time with one model.
func adversary(rnd *rand.Rand) []Call {
	c := &calls{Rand: rnd}
	c.stream(stream{model: "w32", run: " stream", every: 2.5, low: 40, high: 80, prompt: [2]int{200, 500}}, 1200)
	for i := range 5 {
		c.add(Call{Run: "rare", At: seconds(100 + 200*float64(i) + 50*c.Float64()), Model: "w14", Prompt: c.between(300, 800), Output: c.between(50, 100)})
	}
	return c.list
}

func crowd(rnd *rand.Rand) []Call {
	c := &calls{Rand: rnd}
	for _, s := range []stream{chat("w14", 9), chat("w8", 9), chat("w32", 50)} {
		c.stream(s, 1200)
	}
	for i := range 5 {
		c.add(Call{Run: "rare", At: seconds(100 + 200*float64(i) + 50*c.Float64()), Model: "plan120", Prompt: c.between(300, 800), Output: c.between(50, 100)})
	}
	return c.list
}

// beside is a small run beside a huge one.
func beside(small, huge scheduler.Priority) func(*rand.Rand) []Call {
	return func(rnd *rand.Rand) []Call {
		c := &calls{Rand: rnd}
		for range 400 {
			c.add(Call{Run: "batch", Model: "w14", Prompt: c.between(300, 1000), Output: c.between(100, 300), Priority: huge})
		}
		var before []int
		for i := range 10 {
			model := []string{"w14", "w8"}[i%2]
			id := c.add(Call{Run: "small", At: 60 * time.Second, Model: model, Prompt: c.between(300, 1000), Output: c.between(100, 300), After: before, Priority: small})
			before = []int{id}
		}
		return c.list
	}
}

// Tiny are workloads small enough for Optimum: four to eight calls at once, two machines, three models.
var Tiny = []Workload{
	{Name: "tiny, A+B", Fleet: Prototype().only("A", "B"), Make: tiny("plan120", "w32", "w14")},
	{Name: "tiny, B+C", Fleet: Prototype().only("B", "C"), Make: tiny("w32", "w14", "w8")},
	{Name: "tiny, A+C", Fleet: Prototype().only("A", "C"), Make: tiny("plan120", "w14", "w8")},
}

func tiny(models ...string) func(*rand.Rand) []Call {
	return func(rnd *rand.Rand) []Call {
		c := &calls{Rand: rnd}
		for range c.between(4, 8) {
			c.add(Call{Run: "run", Model: models[c.IntN(len(models))], Prompt: c.between(500, 4000), Output: c.between(200, 800)})
		}
		return c.list
	}
}
