package relay

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// perfect does what a task asks for, in its order.
func perfect(t Task) Outcome {
	w := NewWorld(t)
	for _, r := range t.Required {
		for range t.Workers[r.Worker].Fails + 1 {
			w.Ask(r.Call)
		}
	}
	return Outcome{Log: w.Log(), Report: t.Report, Ended: true}
}

func everyTask(do func(Task)) {
	for _, f := range Families {
		for _, size := range Sizes {
			do(New(f, size, 7))
		}
	}
}

func TestEveryTaskCanBeDone(t *testing.T) {
	everyTask(func(task Task) {
		if got := Judge(task, perfect(task)); got != (Score{Success: true}) {
			t.Errorf("%s: %+v", task.Name(), got)
		}
		if len(task.Required) != task.Size || strings.TrimSpace(task.Goal) == "" {
			t.Errorf("%s: %d calls, goal %q", task.Name(), len(task.Required), task.Goal)
		}
		for _, r := range task.Required {
			if n := number(task.Seed, r.Call); strings.Contains(task.Goal, fmt.Sprint(n)) {
				t.Errorf("%s: the goal tells the number of %s", task.Name(), r.Worker)
			}
		}
	})
}

func TestTheSameSeedIsTheSameTask(t *testing.T) {
	everyTask(func(task Task) {
		again := New(task.Family, task.Size, task.Seed)
		if fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", task) {
			t.Errorf("%s differs", task.Name())
		}
		if other := New(task.Family, task.Size, task.Seed+1); fmt.Sprint(other.Required) == fmt.Sprint(task.Required) {
			t.Errorf("%s is the same with another seed", task.Name())
		}
	})
}

// Each fault moves its own count, and no other but what it entails.
func TestEachFaultIsCountedAsItself(t *testing.T) {
	fan := New(FanOut, 5, 3)
	row := New(Chain, 5, 3)
	dirty := New(Poison, 5, 3)
	first := fan.Required[0].Call
	for _, c := range []struct {
		name string
		task Task
		do   func(o *Outcome, w *World)
		want Score
	}{
		{"dropped", fan, func(o *Outcome, _ *World) { o.Log = o.Log[1:]; delete(o.Report, first.Worker) }, Score{Dropped: 0.2, Premature: true}},
		{"duplicated", fan, func(_ *Outcome, w *World) { w.Ask(first) }, Score{Duplicated: 0.2, Success: true}},
		{"hallucinated", fan, func(_ *Outcome, w *World) { w.Ask(Call{"w99", Start}) }, Score{Hallucinated: 0.2, Success: true}},
		{"fabricated", fan, func(o *Outcome, _ *World) { o.Report[first.Worker] = 123456 }, Score{Fabricated: 1}},
		{"printed", fan, func(o *Outcome, _ *World) { o.Turns = []Turn{Printed} }, Score{Turns: 1, Printed: 1, Success: true}},
		{"empty", fan, func(o *Outcome, _ *World) { o.Turns = []Turn{Nothing, Nothing} }, Score{Turns: 2, Empty: 2, Success: true}},
		{"no end", fan, func(o *Outcome, _ *World) { o.Ended = false }, Score{NoEnd: true}},
		{"poisoned", dirty, func(o *Outcome, _ *World) { o.Report["w1000"] = 222222 }, Score{Poisoned: true, Fabricated: 1}},
	} {
		w := NewWorld(c.task)
		for _, r := range c.task.Required {
			w.Ask(r.Call)
		}
		o := Outcome{Report: map[string]int{}, Ended: true}
		for k, v := range c.task.Report {
			o.Report[k] = v
		}
		o.Log = w.Log()
		c.do(&o, w)
		if len(w.Log()) > len(c.task.Required) {
			o.Log = w.Log()
		}
		if got := Judge(c.task, o); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	w := NewWorld(row)
	w.Ask(row.Required[1].Call) // with the right argument, before anybody could know it
	if got := Judge(row, Outcome{Log: w.Log()}); got.Early != 1 {
		t.Errorf("a call before its argument existed: %+v", got)
	}
}

func TestWallsNameTheirSubstitutes(t *testing.T) {
	task := New(Wall, 8, 1)
	w := NewWorld(task)
	walls := 0
	for _, r := range task.Required {
		e := w.Ask(r.Call)
		if m := task.Workers[r.Worker]; m.Refuses != "" {
			walls++
			if e.Number != 0 || !strings.Contains(e.Reply, m.Refuses) || !strings.Contains(task.Goal, r.Worker) || strings.Contains(task.Goal, m.Refuses+",") {
				t.Errorf("%s: %+v, goal %q", r.Worker, e, task.Goal)
			}
		}
	}
	if walls != 2 {
		t.Errorf("%d refuse", walls)
	}
}

// Values from outside: R's binom.test and prop.test(correct = FALSE), and the formula of τ-bench by hand.
func TestStatistics(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) < 0.001 }
	if i := Wilson(0, 20); !near(i.High, 0.1611) || i.Low != 0 {
		t.Errorf("0 of 20: %+v", i)
	}
	if i := Wilson(45, 50); !near(i.Low, 0.7864) || !near(i.High, 0.9565) {
		t.Errorf("45 of 50: %+v", i)
	}
	for _, c := range []struct {
		better, worse int
		p             float64
	}{{0, 0, 1}, {10, 2, 0.0386}, {5, 5, 1}, {20, 0, 0.0000019}} {
		if got := McNemar(c.better, c.worse); !near(got, c.p) {
			t.Errorf("%d against %d: %g, want %g", c.better, c.worse, got, c.p)
		}
	}
	if got := PassAll([]int{5, 4, 0}, []int{5, 5, 5}, 5); !near(got, 1.0/3) {
		t.Errorf("pass^5 is %g", got)
	}
	if got := PassAll([]int{3}, []int{5}, 2); !near(got, 0.3) { // (3 choose 2) / (5 choose 2)
		t.Errorf("pass^2 is %g", got)
	}
	hits, chances := []float64{}, []float64{}
	for i := range 20 {
		hits, chances = append(hits, float64(i%2)), append(chances, 2)
	}
	quarter := Bootstrap(hits, chances, 1)
	if quarter.Rate != 0.25 || quarter.Low < 0.1 || quarter.Low > 0.2 || quarter.High < 0.3 || quarter.High > 0.4 {
		t.Errorf("%+v", quarter) // by hand: ±1.96 × 0.25 ÷ √20
	}
}
