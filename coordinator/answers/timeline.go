package answers

import (
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// Timeline is a run over time: a lane for each node, and what it waited for.
type Timeline struct {
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"` // of the last event, where it goes on
	Lanes []*Lane   `json:"lanes"`
}

// Lane is what one node did, or one kind of waiting.
type Lane struct {
	Name  string        `json:"name"`
	Wait  bool          `json:"wait,omitempty"` // it is no node
	Spans []Span        `json:"spans"`
	Busy  time.Duration `json:"busy_nanos"` // time in which at least one span was open
}

// Span is one attempt, load or wait.
type Span struct {
	What  string    `json:"what"` // work, judge, load, failed or wait
	Step  int       `json:"step"`
	Item  int       `json:"item"`
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
}

// The kinds of spans.
const (
	Working = "work"
	Judging = "judge"
	Loading = "load"
	Failing = "failed"
	Waiting = "wait"
)

// Waited says what a step's calls waited for from some time on.
type Waited struct {
	Step int
	At   time.Time
	For  string // slot, memory, load, node, …
}

// leastLoad is how long a load within a call has to be to be shown: Ollama counts a few milliseconds where there was none.
const leastLoad = 250 * time.Millisecond

// Lay puts a run's attempts, loads and waits on lanes. waited, by time, tells apart what its calls waited for.
func Lay(events Events, nodes Names, waited ...Waited) (*Timeline, error) {
	l := &laying{state: &run.State{}, nodes: nodes, waited: map[int][]Waited{}, lanes: map[string]*Lane{}, open: map[run.AttemptID]open{}, since: map[Place]time.Time{}}
	for _, w := range waited {
		l.waited[w.Step] = append(l.waited[w.Step], w)
	}
	var last time.Time
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if err := run.Apply(l.state, e); err != nil {
			return nil, err
		}
		l.take(e)
		last = e.Time
	}
	t := &Timeline{Begin: l.state.Born, End: last}
	for id, o := range l.open {
		l.add(l.nodes.of(o.node), Span{Working, id.Pos, id.Item, o.since, last}, false)
	}
	l.parked(last)
	for _, lane := range l.lanes {
		slices.SortStableFunc(lane.Spans, func(a, b Span) int { return a.Begin.Compare(b.Begin) })
		lane.Busy = busy(lane.Spans)
		t.Lanes = append(t.Lanes, lane)
	}
	slices.SortFunc(t.Lanes, func(a, b *Lane) int {
		if a.Wait != b.Wait {
			if b.Wait {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return t, nil
}

// laying is a timeline while it is put together.
type laying struct {
	state *run.State
	nodes Names
	lanes map[string]*Lane
	open  map[run.AttemptID]open
	since map[Place]time.Time // since when an item waits for a place

	waited map[int][]Waited // by step
}

type open struct {
	node  string
	since time.Time
}

func (l *laying) add(lane string, s Span, wait bool) {
	if l.lanes[lane] == nil {
		l.lanes[lane] = &Lane{Name: lane, Wait: wait}
	}
	l.lanes[lane].Spans = append(l.lanes[lane].Spans, s)
}

// ForPlace is the lane of calls that wait for a node, where it is not known why.
const ForPlace = "for a place"

// reasons name the lanes of calls that wait for a node, by what is in the way.
var reasons = map[string]string{"slot": "for a slot", "load": "for a load", "memory": "for memory", "node": "for a machine", "model": "for a model", "cap": "for a resource",
	"rate": "for a rate", "faster": "for a faster one", "facts": "for facts"}

// wait puts the time between a request and its place on the lanes of what it waited for.
func (l *laying) wait(pos, item int, from, to time.Time) {
	lane, what := ForPlace, Waiting
	add := func(until time.Time) {
		if until.After(from) {
			l.add(lane, Span{what, pos, item, from, until}, true)
			from = until
		}
	}
	for _, w := range l.waited[pos] {
		if !w.At.Before(to) {
			break
		}
		add(w.At)
		if lane, what = reasons[w.For], Waiting; lane == "" {
			lane = "for " + w.For
		}
		if w.For == "load" {
			what = Loading
		}
	}
	add(to)
}

func (l *laying) take(e run.Event) {
	switch p := e.Data.(type) {
	case *run.Placed:
		l.open[p.AttemptID] = open{p.Node, e.Time}
		since, ok := l.since[Place{p.Pos, p.Item}]
		if st := l.state.Step(p.Pos); !ok && st != nil {
			since = st.Requested
		}
		delete(l.since, Place{p.Pos, p.Item})
		l.wait(p.Pos, p.Item, since, e.Time)
	case *run.AttemptSucceeded:
		l.ended(e, p.AttemptID, p.Evidence, "")
		l.again(e, p.Pos, p.Item, p.Consequence)
	case *run.AttemptFailed:
		l.ended(e, p.AttemptID, p.Evidence, Failing)
		l.again(e, p.Pos, p.Item, p.Consequence)
	case *run.AttemptLate:
		l.ended(e, p.AttemptID, p.Evidence, Failing)
	}
}

// again notes since when an item waits for its next attempt.
func (l *laying) again(e run.Event, pos, item int, c run.Consequence) {
	if c.Then == run.ThenRetry || c.Then == run.ThenJudge {
		l.since[Place{pos, item}] = e.Time
	}
}

// ended puts an attempt on its node's lane. The load that it began with is a span of its own.
func (l *laying) ended(e run.Event, id run.AttemptID, ev run.Evidence, what string) {
	o, ok := l.open[id]
	if !ok {
		return
	}
	delete(l.open, id)
	switch {
	case what != "":
	case id.Phase == run.Judge:
		what = Judging
	default:
		what = Working
	}
	lane, begin := l.nodes.of(o.node), o.since
	if load := time.Duration(ev.Report.LoadNanos); load >= leastLoad {
		until := begin.Add(load)
		if until.After(e.Time) {
			until = e.Time
		}
		l.add(lane, Span{Loading, id.Pos, id.Item, begin, until}, false)
		begin = until
	}
	l.add(lane, Span{what, id.Pos, id.Item, begin, e.Time}, false)
}

// waitLanes name the lanes of steps that wait for something else than a node.
var waitLanes = map[string]string{run.KindSleep: "for a time", run.KindApprove: "for a person", run.KindQuestion: "for a person", run.KindSpawn: "for a child"}

// parked adds the waits that are steps.
func (l *laying) parked(last time.Time) {
	for _, st := range l.state.Requests {
		lane := waitLanes[st.Kind]
		if lane == "" || st.Note || st.Detached {
			continue
		}
		end := st.Ended
		if end.IsZero() {
			end = last
		}
		l.add(lane, Span{Waiting, st.Pos, 0, st.Requested, end}, true)
	}
}

// busy is how long at least one of the spans, sorted by their beginning, was open.
func busy(spans []Span) (sum time.Duration) {
	var until time.Time
	for _, s := range spans {
		begin := s.Begin
		if begin.Before(until) {
			begin = until
		}
		if s.End.After(begin) {
			sum += s.End.Sub(begin)
			until = s.End
		}
	}
	return sum
}
