package relay

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ollama/ollama/api"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// Options is what a benchmark is made of. Model, Client, Ollama and Dir are required.
type Options struct {
	Model    string
	Client   *api.Client // of the same server as Ollama
	Ollama   string      // its URL
	Dir      string      // for the ledger of the arms with the loop in code; empty or not there
	Context  int         // tokens per slot, the same in all arms; 0 is DefaultContext
	Parallel int         // tasks at the same time; 0 is 1
	Families []Family    // nil: all
	Sizes    []int       // nil: 3, 5 and 8
	Arms     []Arm       // nil: all
	Tasks    int         // per family and size; 0 is 20
	Tries    int         // of each task, with another seed of the model; 0 is 1
	Log      *slog.Logger
	Done     func(r Record, done, of int) // told of each run; nil: nobody. It is called by one goroutine at a time
}

// DefaultContext is enough for the talk of a loop over 40 calls, tokens.
const DefaultContext = 16384

func (o Options) withDefaults() Options {
	if o.Context == 0 {
		o.Context = DefaultContext
	}
	if o.Families == nil {
		o.Families = Families
	}
	if o.Sizes == nil {
		o.Sizes = []int{3, 5, 8}
	}
	if o.Arms == nil {
		o.Arms = Arms
	}
	o.Parallel, o.Tasks, o.Tries = max(o.Parallel, 1), orDefault(o.Tasks, 20), max(o.Tries, 1)
	if o.Log == nil {
		o.Log = discard
	}
	if o.Done == nil {
		o.Done = func(Record, int, int) {}
	}
	return o
}

func orDefault(n, other int) int {
	if n > 0 {
		return n
	}
	return other
}

// Bench runs arms over tasks.
type Bench struct {
	o     Options
	floor *floor // nil without an arm that needs it
}

// Jobs is how many runs there will be, and how many turns or steps of a model they take at least.
func Jobs(o Options) (runs, steps int) {
	o = o.withDefaults()
	for _, size := range o.Sizes {
		n := len(o.Families) * o.Tasks * o.Tries * len(o.Arms)
		runs += n
		steps += n * (size + 1)
	}
	return runs, steps
}

// mostBroken is how many runs in a row may end without an outcome before the benchmark gives up: then it is the server.
const mostBroken = 3

// Result is what was run.
type Result struct {
	Records   []Record
	Context   int  // tokens per slot that it had
	Simulated bool // a stand-in answered
}

// Run does everything. When ctx ends it returns what was done until then with the context's error.
func Run(ctx context.Context, o Options) (Result, error) {
	b := &Bench{o: o.withDefaults()}
	var r Result
	var err error
	if r.Simulated, err = b.o.look(ctx); err != nil {
		return r, err
	}
	r.Context = b.o.Context
	if slices.ContainsFunc(b.o.Arms, Arm.ByCode) {
		if b.floor, err = newFloor(ctx, b.o); err != nil {
			return r, err
		}
	}
	r.Records, err = b.all(ctx)
	if b.floor != nil {
		err = errors.Join(err, b.floor.stop())
	}
	return r, err
}

// look asks the server who it is, and bounds the context by what the model was trained for, as loopkeeper does: with two contexts a
// server would load the model again for each arm.
func (o *Options) look(ctx context.Context) (simulated bool, err error) {
	c, err := ollama.New(ollama.Options{BaseURL: o.Ollama})
	if err != nil {
		return false, apierr.Wrap(err, apierr.InvalidArgument, "read the address of Ollama")
	}
	defer c.Close()
	server, err := c.Server(ctx)
	if err != nil {
		return false, apierr.Wrap(err, apierr.Unavailable, "ask the Ollama at %s", o.Ollama).WithNext("loopkeeper doctor")
	}
	r, err := o.Client.Show(ctx, &api.ShowRequest{Model: o.Model})
	if err != nil {
		return false, apierr.Wrap(err, apierr.NotFound, "ask %s about the model %s", o.Ollama, o.Model).WithNext("loopkeeper models pull " + o.Model)
	}
	family, _ := r.ModelInfo["general.architecture"].(string)
	if most, ok := r.ModelInfo[family+".context_length"].(float64); ok && most > 0 {
		o.Context = min(o.Context, int(most))
	}
	return server.Simulated, nil
}

// Tasks are those of a benchmark, each once.
func Tasks(o Options) (out []Task) {
	o = o.withDefaults()
	for seed := range o.Tasks {
		for _, size := range o.Sizes {
			for _, f := range o.Families {
				out = append(out, New(f, size, uint64(seed+1)))
			}
		}
	}
	return out
}

// jobs are in an order in which all arms do a task before the next one begins, so that an interrupted benchmark has pairs.
func (b *Bench) jobs() (out []job) {
	for try := 1; try <= b.o.Tries; try++ {
		for _, t := range Tasks(b.o) {
			for _, arm := range b.o.Arms {
				out = append(out, job{arm, t, try})
			}
		}
	}
	return out
}

// all works the jobs off, so many at a time.
func (b *Bench) all(ctx context.Context) ([]Record, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs := b.jobs()
	next := make(chan job)
	var mu sync.Mutex // of records and broken
	var records []Record
	broken := 0
	var work sync.WaitGroup
	for range b.o.Parallel {
		work.Go(func() {
			for j := range next {
				r, err := b.do(ctx, j)
				if err != nil {
					continue // ctx has ended
				}
				mu.Lock()
				records = append(records, r)
				if broken++; r.Error == "" {
					broken = 0
				}
				if broken == mostBroken {
					cancel(fmt.Errorf("%d runs in a row had no outcome; the last one, %s of arm %s: %s", mostBroken, j.task.Name(), j.arm, r.Error))
				}
				b.o.Done(r, len(records), len(jobs))
				mu.Unlock()
			}
		})
	}
feed:
	for _, j := range jobs {
		select {
		case next <- j:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	work.Wait()
	return records, context.Cause(ctx)
}

// Arm is a way to do a task.
type Arm string

// The arms. B against A is what the product does for a model, D against C what keeping the books alone does, D against B what is lost
// in planning.
const (
	InModel     Arm = "A" // the loop in the model, with a plan of its own
	InCode      Arm = "B" // the loop in code, planned once by the model
	InModelGold Arm = "C" // the loop in the model, with the right plan in the prompt
	InCodeGold  Arm = "D" // the loop in code, with the right plan
)

// Arms in the order of the table.
var Arms = []Arm{InModel, InCode, InModelGold, InCodeGold}

// About is what an arm is, in a few words.
func (a Arm) About() string {
	return map[Arm]string{InModel: "loop in the model, own plan", InCode: "loop in code, planned once by the model",
		InModelGold: "loop in the model, right plan given", InCodeGold: "loop in code, right plan given"}[a]
}

// ByCode says whether code keeps the arm's loop.
func (a Arm) ByCode() bool { return a == InCode || a == InCodeGold }

func (a Arm) gold() bool { return a == InModelGold || a == InCodeGold }

// Record is one run of one task by one arm.
type Record struct {
	Arm    Arm    `json:"arm"`
	Family Family `json:"family"`
	Size   int    `json:"size"`
	Task   uint64 `json:"task"` // seed of the task
	Try    int    `json:"try"`  // from 1: the same task with another seed of the model
	Score
	Cost     Cost           `json:"cost"`
	Failures map[string]int `json:"failures,omitempty"`
	Error    string         `json:"error,omitempty"` // why there is no outcome; it counts as no success
}

// job is one task for one arm.
type job struct {
	arm  Arm
	task Task
	try  int
}

// do runs a job. What a server or the product fails in is in the record; an error means that ctx ended.
func (b *Bench) do(ctx context.Context, j job) (Record, error) {
	r := Record{Arm: j.arm, Family: j.task.Family, Size: j.task.Size, Task: j.task.Seed, Try: j.try}
	began := time.Now()
	var o Outcome
	var err error
	if j.arm.ByCode() {
		o, err = b.floor.run(ctx, j, b.o)
	} else {
		o, err = inModel(ctx, j, b.o)
	}
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		r.Error = err.Error()
	}
	r.Score = Judge(j.task, o)
	r.Success = r.Success && err == nil
	r.Cost, r.Failures = o.Cost, o.Failures
	r.Cost.Seconds = time.Since(began).Seconds()
	return r, nil
}

// seed is the model's for a turn of a job: the same in each repetition of the benchmark.
func (j job) seed(turn int) int {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %d", j.task.Name(), j.try)
	return int(h.Sum32()>>2) + turn
}
