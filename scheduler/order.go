package scheduler

import (
	"cmp"
	"math"
	"math/bits"
	"time"
)

// The order in which tasks get slots (rule 5).
const (
	// shareQuantum: runs whose shares differ by less than this, or by less than a factor of two, count as equal.
	shareQuantum = time.Minute
	// patience is how many seconds of age weigh as much as a second less of work.
	patience = 5
	// neglect is how many bounds a run may get nothing before its oldest task counts as interactive.
	neglect = 5
)

// rank is the place of a task in the order.
type rank struct {
	task  int32
	share uint8         // of its run: 0 for up to a shareQuantum, then one more for each doubling
	late  bool          // waited beyond the bound, and for longer than all before it take
	key   time.Duration // its work less a share of its age
}

func (a rank) compare(b rank) int {
	if a.share != b.share {
		return cmp.Compare(a.share, b.share)
	}
	if a.late != b.late {
		if a.late {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.task, b.task))
}

// share is what a run received and is about to receive.
type share struct {
	service time.Duration
	flying  int  // calls that run
	seen    bool // a task of it waits
}

// share is the index of a run's share.
func (p *Planner) share(run string) int {
	i, ok := p.byRun[run]
	if !ok {
		i = len(p.shares)
		p.shares = append(p.shares, share{service: p.received[run]})
		p.byRun[run] = i
	}
	return i
}

// countShares adds up what the runs received.
func (p *Planner) countShares() {
	clear(p.byRun)
	p.shares = p.shares[:0]
	for _, h := range p.hosts {
		for j := range h.Loaded {
			r := &h.residents[j]
			for _, c := range h.Loaded[j].Calls {
				s := &p.shares[p.share(c.Run)]
				s.service += r.pace.serve(c.Work, false)
				s.flying++
			}
		}
	}
}

// class is the priority of a task. A run that got nothing for long goes with the first, one task at a time.
func (p *Planner) class(t *Task) Priority {
	s := &p.shares[p.share(t.Run)]
	first := !s.seen
	s.seen = true
	priority := min(max(t.Priority, PriorityBatch), PriorityInteractive)
	if first && s.flying == 0 && s.service < time.Second && p.age(t.Ready) >= neglect*p.limits.bound(0) {
		return PriorityInteractive
	}
	return priority
}

// line ranks the tasks of every group and keeps those that come first.
func (p *Planner) line() {
	runs := 0
	for i := range p.shares {
		if p.shares[i].seen {
			runs++
		}
	}
	for i := range p.tasks {
		t, g := &p.tasks[i], p.of[i]
		if len(g.sites) == 0 || g.key.pinned != "" {
			continue
		}
		serve := g.swift.serve(t.Work, t.Embed) - p.saving(g, t)
		r := rank{task: int32(i), key: serve - p.age(t.Ready)/patience}
		if runs > 1 {
			s := &p.shares[p.share(t.Run)]
			s.service += time.Duration(float64(serve) / weight(t.Weight))
			r.share = uint8(bits.Len64(uint64(max(s.service, 0) / shareQuantum)))
		}
		r.late = p.age(t.Ready) >= max(g.bound, p.drain(g))
		g.insert(r, p.headOf(g))
	}
}

func weight(w float64) float64 {
	if w <= 0 || math.IsNaN(w) {
		return 1
	}
	return w
}

// drain is how long all tasks of the group take on what is loaded for it.
func (p *Planner) drain(g *group) time.Duration {
	return time.Duration(g.tasks) * g.swift.serve(g.work, g.key.embed) / time.Duration(max(g.slots(p), 1))
}

// slots is how many calls of the group what is loaded and coming runs at once.
func (g *group) slots(p *Planner) int {
	sum := 0
	for k := range g.sites {
		if s := &g.sites[k]; s.at >= 0 {
			sum += p.hosts[s.host].residents[s.at].slots
		}
	}
	return sum
}

// headOf is how many tasks of a group are looked at one by one: those that could start, and as many that may prefer to wait.
func (p *Planner) headOf(g *group) int {
	if g.most == 0 {
		g.most = 8 + 2*g.slots(p)
	}
	return g.most
}

// insert keeps the first n of a group in order.
func (g *group) insert(r rank, n int) {
	at := len(g.head)
	for at > 0 && r.compare(g.head[at-1]) < 0 {
		at--
	}
	switch {
	case len(g.head) < n:
		g.head = append(g.head, rank{})
	case at == n:
		return
	}
	copy(g.head[at+1:], g.head[at:])
	g.head[at] = r
}

// saving is the prompt time that a task saves where its context is warm, on the fastest site of the group, if it is warm anywhere.
func (p *Planner) saving(g *group, t *Task) time.Duration {
	if t.Affinity == "" {
		return 0
	}
	for k := range g.sites {
		if s := &g.sites[k]; p.warm(s, t) {
			return s.pace.shared(t)
		}
	}
	return 0
}

// shared is the time that the shared part of a prompt takes. A part of unknown size counts as half of the prompt.
func (c *pace) shared(t *Task) time.Duration {
	tokens := t.Work.Shared
	if tokens == 0 {
		tokens = cmp.Or(t.Work.Prompt, typicalPrompt) / 2
	}
	return time.Duration(float64(tokens) * c.prompt)
}
