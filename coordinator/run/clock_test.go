package run

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// The first bug of the loomcycle story: a budget that ticks while parked, and blames an innocent line.
func TestTimeParkedInAFanOutIsNotActive(t *testing.T) {
	tp := newTapeOf(t, Created{Limits: Limits{ActiveSeconds: 600}})
	var y Yield
	for i := range 32 {
		y.Requests = append(y.Requests, Request{Pos: i, Kind: KindApprove, Body: json.RawMessage(fmt.Sprintf(`{"title":"number %d"}`, i))})
	}
	tp.do(y)
	before := tp.s.Active(tp.now)
	for i := range 32 {
		tp.now = tp.now.Add(10 * time.Minute)
		if _, err := tp.try(Expire{}); err == nil {
			t.Fatalf("the budget ran out while %d approvals were waited for", 32-i)
		}
		tp.do(Settle{Pos: i, Outcome: Approved, By: "ada"})
	}
	if got := tp.s.Active(tp.now); got != before {
		t.Errorf("%s of more than five parked hours are active", got-before)
	}
	tp.returns()
	tp.want(Completed)
}

// One branch that works makes the run active, however many others wait.
func TestActiveIsAnyBranchThatWorks(t *testing.T) {
	tp := newTapeOf(t, Created{Limits: Limits{ActiveSeconds: 100}})
	began := tp.now
	tp.ask(KindGenerate, `{"model":"m","prompt":"p"}`)
	tp.ask(KindSleep, `{"seconds":3600}`)
	if got, want := tp.s.Deadline(), began.Add(100*time.Second); !got.Equal(want) {
		t.Errorf("the deadline is %s, want %s", got, want)
	}
	id := tp.place(0, 0, "n1")
	tp.now = tp.now.Add(40 * time.Second)
	tp.succeed(id, `1`)
	tp.want(Waiting)
	if !tp.s.Deadline().IsZero() {
		t.Error("a parked run has a deadline")
	}
	active := tp.now.Sub(began)
	tp.now = tp.s.NextTimer()
	tp.do(Fire{})
	woke := tp.now
	if got := tp.s.Active(woke); got != active {
		t.Errorf("%s are active, want %s", got, active)
	}
	if got, want := tp.s.Deadline(), woke.Add(100*time.Second-active); !got.Equal(want) {
		t.Errorf("the deadline is %s, want %s", got, want)
	}
}

func TestTheDefaultBudgetGrowsWithTheFanOut(t *testing.T) {
	for _, tt := range []struct {
		items int
		scale Scale
		want  time.Duration
	}{
		{items: 1, scale: Scale{}, want: 0},
		{items: 1, scale: Scale{CallSeconds: 1800, Width: 4}, want: 30 * time.Minute},
		{items: 9, scale: Scale{CallSeconds: 1800, Width: 4}, want: 90 * time.Minute}, // three waves
		{items: 9, scale: Scale{CallSeconds: 60, Width: 4, Least: 3600}, want: time.Hour},
		{items: 90, scale: Scale{CallSeconds: 1800, Most: 7200}, want: 2 * time.Hour},
	} {
		tp := newTapeOf(t, Created{Limits: Limits{Scale: tt.scale}})
		items, _ := json.Marshal(make([]int, tt.items))
		tp.ask(KindBatch, `{"items":`+string(items)+`,"model":"m","prompt":"p"}`)
		if got := tp.s.Budget(); got != tt.want {
			t.Errorf("%d items with %+v: %s, want %s", tt.items, tt.scale, got, tt.want)
		}
	}
	judged := newTapeOf(t, Created{Limits: Limits{Scale: Scale{CallSeconds: 1800, Width: 4}}})
	judged.ask(KindBatch, `{"evaluate":{"criteria":["c"],"model":"j"},"items":[1,2,3,4,5],"model":"m","prompt":"p"}`)
	if got := judged.s.Budget(); got != 90*time.Minute { // ten calls
		t.Errorf("a judged batch has %s", got)
	}
	if tp := newTapeOf(t, Created{Limits: Limits{ActiveSeconds: 5, Scale: Scale{CallSeconds: 1800}}}); tp.s.Budget() != 5*time.Second {
		t.Error("the default overrides what was set")
	}
}

func TestTimersFireInTheirOrder(t *testing.T) {
	tp := newTape(t)
	for _, seconds := range []int{300, 100, 200, 100} {
		tp.ask(KindSleep, fmt.Sprintf(`{"seconds":%d}`, seconds))
	}
	var order []int
	for !tp.s.NextTimer().IsZero() {
		tp.now = tp.s.NextTimer()
		for _, e := range tp.do(Fire{}) {
			order = append(order, e.Data.(*StepEnded).Pos)
		}
	}
	if fmt.Sprint(order) != "[1 3 2 0]" {
		t.Errorf("they fire as %v", order)
	}
}
