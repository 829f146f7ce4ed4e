package relay

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"
)

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
