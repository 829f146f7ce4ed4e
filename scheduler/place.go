package scheduler

import (
	"fmt"
	"slices"
	"time"
)

// Planner makes plans, and keeps what it can use again between them. The zero value is ready. A plan depends on the snapshot and
// the limits alone, whatever was planned before; its Decisions are valid until the next one. One goroutine at a time.
type Planner struct {
	now       time.Time
	limits    Limits
	caps      map[string]Resource
	received  map[string]time.Duration
	tasks     []Task
	nodes     []*Node // sorted by id
	hosts     []*host
	shapes    catalog
	measured  map[measured]Speed // by model and kind of memory
	asked     bool               // measured is of this plan
	plans     uint64             // made
	lore      uint64             // changes with the shapes and names of models
	ends      []time.Duration    // see places
	saved     []time.Duration
	all       []time.Duration    // scratch: when the calls of a host end
	facts     map[string]*facts  // by node id
	warmth    map[string]bool    // contexts that are warm anywhere
	views     map[string][]*view // by the model's name as asked for
	promised  map[string]int32   // tasks that room was made for, by key
	groups    []*group           // in the order of their oldest task
	pool      []*group           // groups of earlier plans, to be used again
	of        []int32            // by task: index of its group
	begun     []bool             // by task
	order     []rank
	cold      []*group
	offers    []bid
	stale     []int           // scratch of verdictsOn
	epoch     uint64          // of forecasts
	runs      []int32         // by task: index of its run's share
	ages      []time.Duration // by task
	byRun     map[string]int
	shares    []share
	resources []resource
	decisions []Decision // starts, then what waits
	moves     []Decision // loads and unloads
}

// Place decides what to do now for every waiting task. It is a pure function: the same snapshot gives the same plan,
// whatever the order of the nodes. The rules are numbered in README.md; the phases of Planner.Place carry the same numbers.
func Place(s Snapshot, limits Limits) Plan { return new(Planner).Place(s, limits) }

// Place is the function Place with memory that is used again.
func (p *Planner) Place(s Snapshot, limits Limits) Plan {
	p.begin(&s, limits)
	p.keepResources()
	p.line()
	p.keepPromises()
	for _, g := range p.groups {
		p.turn(g)
	}
	p.reattach()
	p.loadPins()
	for priority := PriorityInteractive; priority >= PriorityBatch; priority-- {
		p.forecast(priority)
		p.load(priority)
		p.restore()
		p.start(priority)
	}
	p.tidy()
	p.decisions = append(p.decisions, p.moves...)
	p.settleAll()
	return Plan{Decisions: p.decisions, Queues: p.queues()}
}

// begin takes up a snapshot.
func (p *Planner) begin(s *Snapshot, limits Limits) {
	if p.views == nil {
		p.views, p.byRun, p.measured = map[string][]*view{}, map[string]int{}, map[measured]Speed{}
		p.facts, p.warmth, p.promised = map[string]*facts{}, map[string]bool{}, map[string]int32{}
	}
	p.now, p.limits, p.caps, p.received, p.tasks = s.Now, limits, s.Resources, s.Received, s.Waiting
	p.resources, p.decisions, p.moves = p.resources[:0], p.decisions[:0], p.moves[:0]
	p.begun = slices.Grow(p.begun[:0], len(p.tasks))[:len(p.tasks)]
	clear(p.begun)
	p.furnish(s.Nodes)
	p.countShares()
	p.newGroups()
}

// Admit says whether a run that needs the model may be submitted. context is in tokens per slot, 0 for the default.
//
//   - true and an empty Wait: a node that is up can take it, now or once others end.
//   - true and a Wait of WaitNode, WaitFacts or WaitMemory: it will wait, for a machine that is lost, draining or not known yet, or
//     that has a model in memory which unloads do not remove.
//   - false and WaitModel: machines are up and could hold it, but none has it; the summary says where to pull it.
//   - false and an empty Wait: it fits no known machine even when empty, lost ones counted; the explanation has need,
//     available and shortfall per machine and the largest context that would fit.
func Admit(s Snapshot, model string, context int, limits Limits) (bool, Explanation) {
	s.Waiting = []Task{{Model: model, Context: context, Embed: true}}
	p := new(Planner)
	p.begin(&s, limits)
	g := p.groups[0]
	e := Explanation{Nodes: p.verdicts(g)}
	if g.anywhere() {
		e.Summary = fmt.Sprintf("%s at %d tokens can run on %s", g.model, g.tokens(), and(p.names(g)))
		return true, e
	}
	e.Wait, e.Summary = p.outlook(g, e.Nodes)
	return e.Wait != "" && e.Wait != WaitModel, e
}

func (p *Planner) names(g *group) (names []string) {
	for s := range g.nodes {
		names = append(names, p.hosts[s.host].name())
	}
	return names
}
