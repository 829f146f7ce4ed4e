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
	shareQuantum = 90 * time.Second
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
	service time.Duration // received, and expected of the calls that run and, one after the other, of the tasks that wait
	flying  int           // calls that run
	seen    bool          // a task of it waits
	last    *group        // of its task before
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
				s.service += r.pace.serve(c.Work, r.embeds)
				s.flying++
			}
		}
	}
}

// class is the priority of a task. A run that got nothing for long goes with the first, one task at a time.
func (p *Planner) class(t *Task, run int) Priority {
	s := &p.shares[run]
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
		t, g := &p.tasks[i], p.groupOf(int32(i))
		if g.swift == nil || g.pinned != "" {
			continue
		}
		age := p.ages[i]
		serve := g.swift.serve(t.Work, t.Embed) - p.saving(g, t)
		r := rank{task: int32(i), key: serve - age/patience, late: age >= max(g.bound, g.drain)}
		if runs > 1 {
			s := &p.shares[p.runs[i]]
			s.service += max(serve, 0)
			r.share = uint8(bits.Len64(uint64(float64(s.service) / weight(t.Weight) / float64(shareQuantum))))
		}
		g.insert(r)
	}
}

func weight(w float64) float64 {
	if w <= 0 || math.IsNaN(w) {
		return 1
	}
	return w
}

// insert keeps the first tasks of a group in order. What could start is among them, and some that may prefer to wait.
func (g *group) insert(r rank) {
	at := len(g.head)
	for at > 0 && r.compare(g.head[at-1]) < 0 {
		at--
	}
	switch {
	case len(g.head) < g.most:
		g.head = append(g.head, rank{})
	case at == g.most:
		return
	}
	copy(g.head[at+1:], g.head[at:])
	g.head[at] = r
}

// saving is the prompt time that a task saves where its context is warm, if it is warm anywhere.
func (p *Planner) saving(g *group, t *Task) time.Duration {
	if t.Affinity == "" || !p.warmth[t.Affinity] {
		return 0
	}
	for s, r := range g.placed(p) {
		h := p.hosts[s.host]
		if h.warm(s.at, r, t) {
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
	return product(tokens, c.prompt)
}
