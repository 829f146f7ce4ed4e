package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// follow folds one event and checks that the moves that it makes are in the tables.
func (h *history) follow(e Event) {
	was, steps := h.shadow.Status, map[int]StepStatus{}
	for st := range h.shadow.Open {
		steps[st.Pos] = st.Status
	}
	var phases []PipelinePhase
	for _, p := range h.shadow.Pipelines {
		phases = append(phases, p.Phases...)
	}
	if err := Apply(h.shadow, e); err != nil {
		h.Fatal(err)
	}
	if now := h.shadow.Status; was != "" && was != now && !slices.Contains(was.Transitions(), now) {
		h.Fatalf("%s moved the run from %s to %s, which the table does not have", e.Data.Kind(), was, now)
	}
	for pos, was := range steps {
		if now := h.shadow.Requests[pos].Status; was != now && !slices.Contains(was.Transitions(), now) {
			h.Fatalf("%s moved step %d from %s to %s, which the table does not have", e.Data.Kind(), pos, was, now)
		}
	}
	for _, p := range h.shadow.Pipelines {
		for i, f := range p.Phases[:min(len(p.Phases), len(phases))] {
			if was := phases[i].Status; was != f.Status && !slices.Contains(was.Transitions(), f.Status) {
				h.Fatalf("%s moved phase %s from %s to %s, which the table does not have", e.Data.Kind(), f.Name, was, f.Status)
			}
		}
		phases = phases[min(len(p.Phases), len(phases)):]
	}
}

// note checks that no item is committed twice and that nothing happens to one that has ended.
func (h *history) note(e Event) {
	end := func(pos, item int) {
		key := fmt.Sprint(pos, "/", item)
		if h.ended[key] {
			h.Fatalf("item %s ended twice", key)
		}
		h.ended[key] = true
	}
	switch p := e.Data.(type) {
	case *Placed:
		if h.ended[fmt.Sprint(p.Pos, "/", p.Item)] {
			h.Fatalf("item %d/%d is called again after its end", p.Pos, p.Item)
		}
		h.flying = append(h.flying, p.AttemptID)
		h.writes(p)
	case *ItemResolved:
		h.wrote[fmt.Sprint(p.Pos, "/", p.Item)] = string(p.Then)
		if p.Then == ThenSucceeded {
			end(p.Pos, p.Item)
		}
	case *ItemDoubted:
		h.wrote[fmt.Sprint(p.Pos, "/", p.Item)] = "unknown"
	case *ItemReused:
		if p.Then == ThenSucceeded {
			end(p.Pos, p.Item)
		}
	case *ItemChecked:
		if p.Then == ThenSucceeded || p.Then == ThenFailed {
			end(p.Pos, p.Item)
		}
	case *AttemptSucceeded:
		h.wrote[fmt.Sprint(p.Pos, "/", p.Item)] = "succeeded"
		if p.Then == ThenSucceeded || p.Then == ThenFailed {
			end(p.Pos, p.Item)
		}
	case *AttemptFailed:
		h.wrote[fmt.Sprint(p.Pos, "/", p.Item)] = "failed"
		if p.Then == ThenUnknown {
			h.wrote[fmt.Sprint(p.Pos, "/", p.Item)] = "unknown"
		}
		if p.Then == ThenFailed {
			end(p.Pos, p.Item)
		}
	case *ItemFailed:
		end(p.Pos, p.Item)
	}
}

// writes checks that nothing is written outside again while it is not known that it has not happened.
func (h *history) writes(p *Placed) {
	key := fmt.Sprint(p.Pos, "/", p.Item)
	if p.External {
		switch was := h.wrote[key]; was {
		case "", "failed", string(ThenRetry):
		default:
			h.Fatalf("item %s is written again, and before it was %s", key, was)
		}
		h.wrote[key] = "in flight"
	}
}

// check counts everything anew and compares.
func (h *history) check(t *rapid.T) {
	var all Counts
	flights, open, checks, parked := 0, 0, 0, 0
	for _, st := range h.s.Requests {
		var c Counts
		for i := range st.Items {
			it := &st.Items[i]
			*c.of(it.Status)++
			if it.Flight != nil {
				flights++
			}
			checking := it.Status == StepRunning && it.phase() == Check
			if checking {
				checks++
			}
			if (it.Flight != nil) != (it.Status == StepPlaced || it.Status == StepRunning && !checking) {
				t.Fatalf("item %d/%d is %s, in flight: %v", st.Pos, i, it.Status, it.Flight != nil)
			}
		}
		c.Total, c.Retried, c.Reused = len(st.Items), st.Counts.Retried, st.Counts.Reused
		if c != st.Counts {
			t.Fatalf("step %d counts %+v, is %+v", st.Pos, st.Counts, c)
		}
		if !st.Status.Ended() && !h.s.Status.Ended() {
			open++
			if st.WaitingFor() != "" {
				parked++
			}
		}
		all.Total += c.Total
		all.Succeeded += c.Succeeded
		all.Failed += c.Failed
		all.Running += c.Running
		all.Waiting += c.Waiting
		all.Cancelled += c.Cancelled
		all.Retried += c.Retried
		all.Reused += c.Reused
	}
	if checks != h.s.checks || parked != h.s.parked {
		t.Fatalf("the run counts %d checks, %d parked; is %d, %d", h.s.checks, h.s.parked, checks, parked)
	}
	h.parked(t)
	h.progress(t)
	if all != h.s.Counts || flights != h.s.flights || open != h.s.open.n {
		t.Fatalf("the run counts %+v, %d flights, %d open; is %+v, %d, %d", h.s.Counts, h.s.flights, h.s.open.n, all, flights, open)
	}
	if sum := all.Succeeded + all.Failed + all.Running + all.Waiting + all.Cancelled; sum != all.Total {
		t.Fatalf("%+v does not add up", all)
	}
	if h.s.Status == Completed {
		h.complete(t)
	}
	h.reachable(t)
}

// reachable checks that no waiting item is forgotten: every one is offered now or when its backoff is over.
func (h *history) reachable(t *rapid.T) {
	if h.s.Status != Running || h.s.Limit != nil {
		return
	}
	tickets, _ := h.s.Ready(h.now.Add(time.Hour), 1<<20)
	more, _ := h.s.ReadyTools(h.now.Add(time.Hour), 1<<20)
	tickets = append(tickets, more...)
	if len(tickets) != h.s.Counts.Waiting {
		t.Fatalf("%d items wait, %d are offered", h.s.Counts.Waiting, len(tickets))
	}
}

// progress checks that at most one phase is in progress, and that it is the current one of its pipeline.
func (h *history) progress(t *rapid.T) {
	n := 0
	for _, p := range h.s.Pipelines {
		for i, f := range p.Phases {
			if f.Status == PhaseInProgress {
				if n++; i != p.Current {
					t.Fatalf("phase %s is in progress and not the current one", f.Name)
				}
			}
		}
	}
	if n > 1 {
		t.Fatalf("%d phases are in progress", n)
	}
}

// complete checks a completed run against a second reading of the rules: whatever did not succeed is void, waived or made good.
func (h *history) complete(t *rapid.T) {
	excused := map[int]bool{}
	for _, st := range h.s.Requests {
		var n struct{ Step, By *int }
		if st.Note && (st.Kind == KindWaive || st.Kind == KindFallback) && json.Unmarshal(st.Body, &n) == nil {
			if by := n.By; by == nil || h.s.Step(*by) != nil && !h.s.Step(*by).Note {
				excused[*n.Step] = true
			}
		}
	}
	for _, st := range h.s.Requests {
		good := st.Note || st.Status == StepSucceeded || st.Status == StepSkipped || h.s.undone(st.Pos) || excused[st.Pos]
		if st.Child != nil && st.Child.Status != Completed && !excused[st.Pos] && !h.s.undone(st.Pos) || !good {
			t.Fatalf("completed, and step %d (%s) is %s", st.Pos, st.Kind, st.Status)
		}
	}
}

// parked checks what a run waits for against a second count.
func (h *history) parked(t *rapid.T) {
	open, parked, first := 0, 0, time.Time{}
	for st := range h.s.Open {
		open++
		if st.WaitingFor() != "" {
			parked++
		}
		if st.WaitingFor() != "" && !st.Due.IsZero() && (first.IsZero() || st.Due.Before(first)) {
			first = st.Due
		}
	}
	waits := open > 0 && parked == open
	if h.s.Limit != nil {
		waits = parked > 0 && h.s.flights == 0 && h.s.checks == 0
	}
	if h.s.Status == Waiting != waits && (h.s.Status == Running || h.s.Status == Waiting) {
		t.Fatalf("%d of %d open steps are parked, and the run is %s", parked, open, h.s.Status)
	}
	if got := h.s.NextTimer(); !got.Equal(first) {
		t.Fatalf("the next timer is %s, want %s", got, first)
	}
	if now := h.s.Active(h.now); now < h.active || now > h.now.Sub(birth) {
		t.Fatalf("active time went from %s to %s", h.active, now)
	}
	h.active = h.s.Active(h.now)
}
