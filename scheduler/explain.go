package scheduler

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String renders the explanation for people: the summary, then a line per node.
func (e Explanation) String() string {
	var b strings.Builder
	b.WriteString(e.Summary)
	for _, v := range e.Nodes {
		fmt.Fprintf(&b, "\n  %s: %s: %s", v.Name, v.Verdict, v.Why())
	}
	return b.String()
}

// settleAll writes the decisions for the tasks that were not started. All tasks of a group share one explanation.
func (p *Planner) settleAll() {
	for i := range p.tasks {
		if p.begun[i] {
			continue
		}
		t, g := &p.tasks[i], p.groupOf(int32(i))
		if g.why == nil {
			g.why = p.shared(g)
		}
		action := Wait
		if g.why.Wait == "" {
			action = Impossible
		}
		p.decisions = append(p.decisions, Decision{Action: action, Task: t.Key, Model: t.Model, Context: g.tokens(), Why: *g.why})
	}
}

// shared is the explanation of a group, which is that of all groups that ask for the same model when nothing is special about it.
func (p *Planner) shared(g *group) *Explanation {
	if len(g.banned) > 0 || g.pinned != "" || g.faster != "" || p.closed(g) != nil {
		why := p.explain(g)
		return &why
	}
	if g.view.why == nil {
		why := p.explain(g)
		g.view.why = &why
	}
	return g.view.why
}

// tokens is the context of the view as its nodes see it, the first node's when they differ.
func (v *view) tokens() int {
	if len(v.sites) > 0 {
		return v.sites[0].fit.context
	}
	if len(v.fits) > 0 {
		return v.fits[0].context
	}
	return v.context
}

// explain says why the tasks of a group wait, or that no waiting helps. An empty Wait means impossible.
func (p *Planner) explain(g *group) Explanation {
	e := Explanation{Nodes: p.finalVerdicts(g)}
	if !g.anywhere() {
		e.Wait, e.Summary = p.outlook(g, e.Nodes)
		return e
	}
	if r := p.closed(g); r != nil {
		e.Wait, e.Summary = r.wait(g.model)
		return e
	}
	var loads, clears, slots, other, apart, memory some
	for s := range g.nodes {
		h := p.hosts[s.host]
		switch j := h.find(s.fit); {
		case h.loads(s.fit):
			loads.add(s.host)
		case h.clearing != nil && h.clearing.fits[s.host].digest == s.fit.digest:
			clears.add(s.host)
		case h.inMemory(j) && !h.residents[j].leaving:
			slots.add(s.host)
		case h.loading != nil:
			other.add(s.host)
		case e.Nodes[s.host].Reason == ReasonContext:
			apart.add(s.host)
		default:
			memory.add(s.host)
		}
	}
	name := func(i int) string { return p.hosts[i].name() }
	why := func(i int) string { return name(i) + " " + e.Nodes[i].Why() }
	busy := func(i int) string { return name(i) + " " + p.hosts[i].busyClause(p.hosts[i].find(g.fits[i])) }
	switch {
	case loads.n > 0:
		e.Wait, e.Summary = WaitLoad, fmt.Sprintf("%s is being loaded on %s", g.model, loads.list(name, ", ", " and "))
	case clears.n > 0:
		e.Wait, e.Summary = WaitLoad, fmt.Sprintf("room is being made for %s on %s", g.model, clears.list(name, ", ", " and "))
	case g.faster != "":
		e.Wait, e.Summary = WaitFaster, fmt.Sprintf("%s would end it sooner than a free slot elsewhere: %s", g.faster, slots.list(busy, ", ", ", "))
	case slots.n > 0:
		e.Wait, e.Summary = WaitSlot, fmt.Sprintf("every slot of %s is busy: %s", g.model, slots.list(busy, ", ", " and "))
	case apart.n > 0:
		e.Wait, e.Summary = WaitLoad, fmt.Sprintf("%s waits for another context: %s", g.model, apart.list(why, "; ", "; "))
	case memory.n > 0:
		e.Wait, e.Summary = WaitMemory, fmt.Sprintf("%s waits for memory: %s", g.model, memory.list(why, "; ", "; "))
	default:
		load := func(i int) string { return p.hosts[i].loading.Name + " on " + name(i) }
		e.Wait, e.Summary = WaitLoad, fmt.Sprintf("%s waits for another load to end: %s", g.model, other.list(load, ", ", " and "))
	}
	return e
}

// some are the first few of hosts that may be many.
type some struct {
	first [3]int
	n     int
}

func (s *some) add(host int) {
	if s.n < len(s.first) {
		s.first[s.n] = host
	}
	s.n++
}

func (s *some) list(say func(host int) string, between, last string) string {
	var b strings.Builder
	shown := min(s.n, len(s.first))
	for k, host := range s.first[:shown] {
		switch {
		case k == 0:
		case k == shown-1 && s.n == shown:
			b.WriteString(last)
		default:
			b.WriteString(between)
		}
		b.WriteString(say(host))
	}
	if s.n > shown {
		fmt.Fprintf(&b, "%s%d more", last, s.n-shown)
	}
	return b.String()
}

// wait is what a task waits for that this resource keeps.
func (r *resource) wait(model string) (WaitFor, string) {
	if r.Cap > 0 && r.InUse >= r.Cap {
		return WaitCap, fmt.Sprintf("%s waits for %s: %d of %d in use", model, r.name, r.InUse, r.Cap)
	}
	if d := r.next(); d > 0 {
		return WaitRate, fmt.Sprintf("%s waits for %s: %g a second, the next one in %s", model, r.name, r.Rate, span(d+time.Second-1))
	}
	return WaitCap, fmt.Sprintf("%s waits for %s: it is kept for a task that has waited longer", model, r.name)
}

// inMemory reports whether resident j is loaded, and not just on its way.
func (h *host) inMemory(j int) bool { return j >= 0 && j < len(h.Loaded) }

func (h *host) busyClause(j int) string {
	r := &h.residents[j]
	if h.MaxCalls > 0 && r.busy < r.slots && h.calls >= h.MaxCalls {
		return fmt.Sprintf("%d of %d calls", h.calls, h.MaxCalls)
	}
	return fmt.Sprintf("%d of %d", r.busy, r.slots)
}

// outlook (rule 9) is for a model that no node can take as things are: what would have to change, or "" when nothing known could.
func (p *Planner) outlook(g *group, verdicts []NodeVerdict) (WaitFor, string) {
	model := g.model
	if len(p.hosts) == 0 {
		return WaitNode, fmt.Sprintf("%s waits for a machine: none is known yet", model)
	}
	var away, unknown, blocked, pullUp, pullAway, kind, others []string
	first := "" // of pullUp, as commands name it
	for i, h := range p.hosts {
		f := g.fits[i]
		switch {
		case f.wrongKind(g.embed):
			kind = append(kind, h.name())
		case g.tooLarge(i):
		case g.pinned != "" && g.pinned != h.ID:
		case f.other:
			others = append(others, h.name())
		case f.model == nil && h.State == NodeUp:
			pullUp = append(pullUp, h.name())
			if first == "" {
				first = h.word()
			}
		case f.model == nil:
			pullAway = append(pullAway, h.name())
		case h.State == NodeUp && g.blocked(h, i):
			blocked = append(blocked, fmt.Sprintf("%s is stuck (%s)", h.name(), verdicts[i].Why()))
		case h.State != NodeUp || p.shunned(h, f):
			away = append(away, fmt.Sprintf("%s (%s)", h.name(), verdicts[i].Why()))
		default:
			unknown = append(unknown, fmt.Sprintf("%s (%s)", h.name(), verdicts[i].Why()))
		}
	}
	switch {
	case len(unknown) > 0:
		return WaitFacts, fmt.Sprintf("%s waits for facts about %s", model, and(unknown))
	case len(away) > 0:
		return WaitNode, fmt.Sprintf("%s waits for a machine: %s", model, and(away))
	case len(blocked) > 0:
		return WaitMemory, fmt.Sprintf("%s waits for memory: an unload on %s", model, strings.Join(blocked, "; on "))
	case len(kind) > 0:
		return "", fmt.Sprintf("%s only makes embeddings and answers no other call", model)
	case len(others) > 0:
		return WaitModel, fmt.Sprintf("no machine has the %s that the run began with, digest %.12s: %s has another model of that name, and a run never mixes two",
			model, g.digest, and(others))
	case len(pullUp) > 0:
		return WaitModel, fmt.Sprintf("no machine that could hold %s has it: run `loopkeeper models pull %s --on %s`%s", model, model, first, orOn(pullUp[1:]))
	case len(pullAway) > 0:
		return WaitNode, fmt.Sprintf("%s waits for a machine: none that is up could take it, and %s would have to pull it first", model, or(pullAway))
	case g.pinned != "" && !p.anyTooLarge(g):
		return WaitNode, fmt.Sprintf("%s waits for the machine that runs it, %s, which is not known now", model, g.pinned)
	default:
		return "", p.tooLargeEverywhere(g)
	}
}

func (p *Planner) anyTooLarge(g *group) bool {
	for i := range p.hosts {
		if g.tooLarge(i) {
			return true
		}
	}
	return false
}

// tooLarge reports whether the model is known not to fit the node even when that is empty.
func (v *view) tooLarge(i int) bool {
	return len(v.fits[i].needs) > 0 && !v.fits[i].room.ok
}

// blocked reports whether the model would fit the node, were it not for models that no unload removes.
func (v *view) blocked(h *host, i int) bool {
	return v.fits[i].model != nil && v.fits[i].room.ok && h.blocked(v.fits[i])
}

func (p *Planner) tooLargeEverywhere(g *group) string {
	parts := make([]string, 0, len(p.hosts))
	largest := 0
	for i, h := range p.hosts {
		r := g.fits[i].room
		parts = append(parts, fmt.Sprintf("%s needs %s, has %s, %s short", h.name(), gib(r.need), gib(r.available), gib(r.short)))
		largest = max(largest, g.fits[i].most)
	}
	advice := "no context is small enough"
	if largest > 0 {
		advice = fmt.Sprintf("the largest context that fits is %d tokens", largest)
	}
	return fmt.Sprintf("%s at %d tokens fits no known machine, even an empty one: %s; %s",
		g.model, g.tokens(), strings.Join(parts, "; "), advice)
}

func (p *Planner) whyStart(g *group, s *site) Explanation {
	h := p.hosts[s.host]
	e := Explanation{Nodes: p.verdicts(g)}
	chosen(e.Nodes, s.host)
	e.Summary = fmt.Sprintf("%s is loaded on %s, %d of %d slots were busy", g.model, h.name(), h.residents[s.at].busy, h.residents[s.at].slots)
	return e
}

func (p *Planner) whyLoad(g *group, s *site, w way) Explanation {
	h, f := p.hosts[s.host], s.fit
	e := Explanation{Nodes: p.verdicts(g)}
	v := chosen(e.Nodes, s.host)
	v.Reason, v.Evict, v.Stay = ReasonRoom, nil, nil
	v.Need, v.Available, v.Short = w.room.need, Bytes{N: w.room.available, Known: true}, 0
	e.Summary = fmt.Sprintf("load %s on %s: needs %s at %d tokens, %s available",
		g.model, h.name(), gib(w.room.need), f.context, gib(w.room.available))
	return e
}

func (p *Planner) whyUnload(g *group, s *site, j int) Explanation {
	h := p.hosts[s.host]
	e := Explanation{Nodes: p.verdicts(g)}
	if v := chosen(e.Nodes, s.host); v.Reason == ReasonHeld {
		v.Reason = ReasonRoom
	}
	e.Summary = fmt.Sprintf("unload %s from %s: nothing runs on it, and %s needs the room", h.Loaded[j].Name, h.name(), g.model)
	return e
}

// chosen puts a finding of its own, marked as chosen, into a list of verdicts.
func chosen(list []NodeVerdict, i int) *Finding {
	f := *list[i].Finding
	f.Verdict = VerdictChosen
	list[i].Finding = &f
	return &f
}

// gib is an amount of memory for people.
func gib(n uint64) string {
	return strconv.FormatFloat(float64(n)/(1<<30), 'f', 1, 64) + " GiB"
}

// span is a duration for people.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	default:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
}

func largest(tokens int) string {
	if tokens == 0 {
		return "no context is small enough"
	}
	return fmt.Sprintf("%d tokens would fit", tokens)
}

func and(names []string) string { return list(names, "and") }

func or(names []string) string { return list(names, "or") }

// word names the node in a command: by its id where its name is no single word.
func (h *host) word() string {
	if strings.ContainsAny(h.name(), " \t\"'`\\$&|;<>()[]{}*?~#!") {
		return h.ID
	}
	return h.name()
}

// orOn names the other machines on which it could be done.
func orOn(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", or on " + or(names)
}

// list is "a", "a and b", "a, b and c".
func list(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	n := len(names) - 1
	return strings.Join(names[:n], ", ") + " " + last + " " + names[n]
}

func ifSome(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
