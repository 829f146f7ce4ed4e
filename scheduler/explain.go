package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// String renders the explanation for people: the summary, then a line per node.
func (e Explanation) String() string {
	var b strings.Builder
	b.WriteString(e.Summary)
	for _, v := range e.Nodes {
		fmt.Fprintf(&b, "\n  %s: %s: %s", v.Name, v.Verdict, v.Why)
	}
	return b.String()
}

// settleAll writes the decisions for the tasks that were not started. All tasks of a group share one explanation.
func (p *Planner) settleAll() {
	for i := range p.tasks {
		if p.begun[i] {
			continue
		}
		t, g := &p.tasks[i], p.of[i]
		if g.why == nil {
			why := p.explain(g)
			g.why = &why
		}
		action := Wait
		if g.why.Wait == "" {
			action = Impossible
		}
		p.decisions = append(p.decisions, Decision{Action: action, Task: t.Key, Model: t.Model, Context: g.context(), Why: *g.why})
	}
}

// context is the context of the group in tokens as its nodes see it, the first node's when they differ.
func (g *group) context() int {
	if len(g.sites) > 0 {
		return g.sites[0].fit.context
	}
	if len(g.fits) > 0 {
		return g.fits[0].context
	}
	return g.key.context
}

// explain says why the tasks of a group wait, or that no waiting helps. An empty Wait means impossible.
func (p *Planner) explain(g *group) Explanation {
	e := Explanation{Nodes: p.verdicts(g)}
	if len(g.sites) == 0 {
		e.Wait, e.Summary = p.outlook(g, e.Nodes)
		return e
	}
	if r := p.closed(g); r != nil {
		e.Wait, e.Summary = r.wait(g.key.model)
		return e
	}
	var loads, clears, slots, other, memory []string
	for k := range g.sites {
		s := &g.sites[k]
		h := p.hosts[s.host]
		switch j := h.find(s.fit); {
		case h.loads(s.fit):
			loads = append(loads, h.name())
		case h.clearing == g:
			clears = append(clears, h.name())
		case h.inMemory(j) && !h.residents[j].leaving:
			slots = append(slots, fmt.Sprintf("%s %s", h.name(), h.busyClause(j)))
		case h.loading != nil:
			other = append(other, fmt.Sprintf("%s on %s", h.loading.Name, h.name()))
		default:
			memory = append(memory, h.name()+" "+e.Nodes[s.host].Why)
		}
	}
	switch {
	case len(loads) > 0:
		e.Wait, e.Summary = WaitLoad, fmt.Sprintf("%s is being loaded on %s", g.key.model, and(loads))
	case len(clears) > 0:
		e.Wait, e.Summary = WaitLoad, fmt.Sprintf("room is being made for %s on %s", g.key.model, and(clears))
	case g.faster != "":
		e.Wait, e.Summary = WaitFaster, fmt.Sprintf("%s ends it sooner than a free slot elsewhere would: %s", g.faster, strings.Join(slots, ", "))
	case len(slots) > 0:
		e.Wait, e.Summary = WaitSlot, fmt.Sprintf("every slot of %s is busy: %s", g.key.model, and(slots))
	case len(memory) > 0:
		e.Wait, e.Summary = WaitMemory, fmt.Sprintf("%s waits for memory: %s", g.key.model, strings.Join(memory, "; "))
	default:
		e.Wait, e.Summary = WaitLoad, fmt.Sprintf("%s waits for another load to end: %s", g.key.model, and(other))
	}
	return e
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
	model := g.key.model
	if len(p.hosts) == 0 {
		return WaitNode, fmt.Sprintf("%s waits for a machine: none is known yet", model)
	}
	var away, unknown, blocked, pullUp, pullAway, kind, others []string
	for i, h := range p.hosts {
		f := g.fits[i]
		switch {
		case f.wrongKind(g.key.embed):
			kind = append(kind, h.name())
		case g.tooLarge(i):
		case g.key.pinned != "" && g.key.pinned != h.ID:
		case f.other:
			others = append(others, h.name())
		case f.model == nil && h.State == NodeUp:
			pullUp = append(pullUp, h.name())
		case f.model == nil:
			pullAway = append(pullAway, h.name())
		case h.State == NodeUp && g.blocked(h, i):
			blocked = append(blocked, fmt.Sprintf("%s: %s", h.name(), verdicts[i].Why))
		case h.State != NodeUp || p.shunned(h, f):
			away = append(away, fmt.Sprintf("%s (%s)", h.name(), verdicts[i].Why))
		default:
			unknown = append(unknown, fmt.Sprintf("%s (%s)", h.name(), verdicts[i].Why))
		}
	}
	switch {
	case len(unknown) > 0:
		return WaitFacts, fmt.Sprintf("%s waits for facts about %s", model, and(unknown))
	case len(away) > 0:
		return WaitNode, fmt.Sprintf("%s waits for a machine: %s", model, and(away))
	case len(blocked) > 0:
		return "", fmt.Sprintf("no machine has room for %s: %s", model, strings.Join(blocked, "; "))
	case len(kind) > 0:
		return "", fmt.Sprintf("%s only makes embeddings and answers no other call", model)
	case len(others) > 0:
		return WaitModel, fmt.Sprintf("no machine has the %s that the run began with, digest %.12s: %s has another model of that name, and a run never mixes two",
			model, g.key.digest, and(others))
	case len(pullUp) > 0:
		return WaitModel, fmt.Sprintf("no machine that could hold %s has it: run `loopkeeper models pull %s --on %s`%s", model, model, pullUp[0], orOn(pullUp[1:]))
	case len(pullAway) > 0:
		return WaitNode, fmt.Sprintf("%s waits for a machine: none that is up could take it, and %s would have to pull it first", model, or(pullAway))
	case g.key.pinned != "" && !p.anyTooLarge(g):
		return WaitNode, fmt.Sprintf("%s waits for the machine that runs it, %s, which is not known now", model, g.key.pinned)
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
func (g *group) tooLarge(i int) bool {
	return len(g.fits[i].needs) > 0 && !g.fits[i].room.ok
}

// blocked reports whether the model would fit the node, were it not for models that no unload removes.
func (g *group) blocked(h *host, i int) bool {
	return g.fits[i].model != nil && g.fits[i].room.ok && h.blocked(g.fits[i])
}

// rootedClause says what keeps the memory of the node, and what helps.
func (h *host) rootedClause() string {
	var names []string
	tries := 0
	for j, l := range h.Loaded {
		if h.rooted(j) {
			names, tries = append(names, l.Name), max(tries, l.Stuck)
		}
	}
	return fmt.Sprintf("its Ollama keeps %s in memory, which %d unloads did not remove: restart Ollama there", and(names), tries)
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
		g.key.model, g.context(), strings.Join(parts, "; "), advice)
}

// verdicts are how every node looks to the group now.
func (p *Planner) verdicts(g *group) []NodeVerdict {
	out := make([]NodeVerdict, len(p.hosts))
	for i := range p.hosts {
		out[i] = p.verdict(g, i)
	}
	return out
}

func (p *Planner) verdict(g *group, i int) NodeVerdict {
	h, f := p.hosts[i], g.fits[i]
	v := NodeVerdict{Node: h.ID, Name: h.name(), Largest: f.most}
	if len(f.needs) > 0 {
		v.Need, v.Available, v.Short = f.room.need, Bytes{N: f.room.available, Known: true}, f.room.short
	}
	if v.Verdict, v.Why = p.static(g, i); v.Verdict == "" {
		p.dynamic(&v, g, i)
	}
	return v
}

// static is the verdict as far as it does not depend on what runs there now; "" when it does.
func (p *Planner) static(g *group, i int) (Verdict, string) {
	h, f := p.hosts[i], g.fits[i]
	candidate := slices.Contains(g.candidates, i)
	switch {
	case f.wrongKind(g.key.embed):
		return VerdictTooLarge, "it only makes embeddings"
	case g.tooLarge(i) && !candidate:
		return VerdictTooLarge, fmt.Sprintf("needs %s at %d tokens, has %s when empty, %s short; %s",
			gib(f.room.need), f.context, gib(f.room.available), gib(f.room.short), largest(f.most))
	case h.State != NodeUp && !candidate:
		return VerdictExcluded, p.stateClause(h)
	case f.other:
		return VerdictNoModel, fmt.Sprintf("another model of that name is there; the run began with digest %.12s", f.digest)
	case f.model == nil:
		return VerdictNoModel, "the model is not pulled there"
	case g.key.pinned != "" && g.key.pinned != h.ID:
		return VerdictExcluded, "the attempt already runs on another machine"
	case p.shunned(h, f):
		return VerdictExcluded, fmt.Sprintf("it did not fit there a short while ago; not tried again for %s", span(h.shunnedUntil(f).Sub(p.now)))
	case candidate:
		return "", ""
	case g.blocked(h, i):
		return VerdictExcluded, h.rootedClause()
	case len(f.needs) == 0 && !h.memory.known:
		return VerdictUnknown, "its memory is not known"
	case len(f.needs) == 0:
		return VerdictUnknown, "the model's shape is not known yet"
	default:
		return VerdictExcluded, "an earlier attempt failed there"
	}
}

// dynamic is the verdict on a candidate: what is loaded, loading and running there.
func (p *Planner) dynamic(v *NodeVerdict, g *group, i int) {
	h, f := p.hosts[i], g.fits[i]
	j := h.find(f)
	v.Verdict = VerdictWait
	switch {
	case h.clearing == g:
		v.Why = "room is being made for it there" + p.stuckClause(h)
	case h.loads(f):
		v.Why = "it is being loaded there"
	case h.inMemory(j) && h.residents[j].leaving:
		v.Why = "it makes room there for a model that has waited longer"
	case h.inMemory(j) && (h.residents[j].busy >= h.residents[j].slots || h.MaxCalls > 0 && h.calls >= h.MaxCalls):
		v.Why = fmt.Sprintf("loaded, %s slots busy", h.busyClause(j))
	case h.inMemory(j):
		v.Verdict, v.Why = VerdictFits, fmt.Sprintf("loaded, %s slots busy", h.busyClause(j))
	case h.loading != nil:
		v.Why = fmt.Sprintf("%s is being loaded there", h.loading.Name)
	case h.clearing != nil || h.reserved != nil && h.reserved != g:
		v.Why = fmt.Sprintf("room is being made there for %s", cmp.Or(h.clearing, h.reserved).key.model)
	default:
		p.memoryVerdict(v, h, f)
		if v.Verdict == VerdictWait {
			v.Why += p.stuckClause(h)
		}
	}
}

func (p *Planner) memoryVerdict(v *NodeVerdict, h *host, f *fit) {
	w := h.clear(f, h.spare)
	v.Need, v.Available, v.Short = w.room.need, Bytes{N: w.room.available, Known: true}, w.room.short
	for _, j := range w.evict {
		v.Evict = append(v.Evict, h.Loaded[j].Name)
	}
	v.Why = fmt.Sprintf("needs %s, %s available", gib(w.room.need), gib(w.room.available))
	if len(v.Evict) > 0 {
		v.Why += " once " + and(v.Evict) + ifSome(len(v.Evict), " is unloaded", " are unloaded")
	}
	if w.ok {
		v.Verdict = VerdictFits
		return
	}
	v.Why += fmt.Sprintf(", %s short", gib(w.room.short))
	v.Why += h.inTheWay()
}

// inTheWay says which loaded models stay, and why.
func (h *host) inTheWay() string {
	var b strings.Builder
	for _, kind := range []struct {
		of        func(j int) bool
		one, many string
	}{
		{func(j int) bool { return h.Loaded[j].Foreign }, " is not ours to unload", " are not ours to unload"},
		{func(j int) bool { return !h.Loaded[j].Foreign && h.residents[j].kept }, " is pinned", " are pinned"},
		{func(j int) bool { return !h.residents[j].kept && !h.spare(j) }, " is in use", " are in use"},
	} {
		var names []string
		for j, l := range h.Loaded {
			if kind.of(j) {
				names = append(names, l.Name)
			}
		}
		if len(names) > 0 {
			b.WriteString(cmp.Or(map[bool]string{true: " while "}[b.Len() == 0], ", ") + and(names) + ifSome(len(names), kind.one, kind.many))
		}
	}
	return b.String()
}

// stuckClause says which models unloads left in memory, and when it is tried again; "" when there are none.
func (p *Planner) stuckClause(h *host) string {
	var b strings.Builder
	for j, l := range h.Loaded {
		if l.Stuck == 0 {
			continue
		}
		fmt.Fprintf(&b, "; %s stayed in memory after %d unload%s", l.Name, l.Stuck, ifSome(l.Stuck, "", "s"))
		if h.residents[j].stuck {
			fmt.Fprintf(&b, ", tried again in %s", span(l.Retry.Sub(p.now)+time.Second))
		}
	}
	return b.String()
}

func (p *Planner) stateClause(h *host) string {
	switch h.State {
	case NodeLost:
		if h.LastSeen.IsZero() {
			return "lost"
		}
		return fmt.Sprintf("lost, last seen %s ago", span(p.now.Sub(h.LastSeen)))
	case NodeDraining:
		return "draining: it takes nothing new"
	case NodeDegraded:
		return "degraded: its Ollama does not answer or its accelerator is lost"
	case NodePaused:
		return "paused: outside its hours of use, or by a person"
	default:
		return fmt.Sprintf("its state %q is not known here", string(h.State))
	}
}

func (p *Planner) whyStart(g *group, s *site) Explanation {
	h := p.hosts[s.host]
	e := Explanation{Nodes: p.verdicts(g)}
	e.Nodes[s.host].Verdict = VerdictChosen
	e.Summary = fmt.Sprintf("%s is loaded on %s, %d of %d slots were busy", g.key.model, h.name(), h.residents[s.at].busy, h.residents[s.at].slots)
	return e
}

func (p *Planner) whyLoad(g *group, s *site) Explanation {
	h, f, w := p.hosts[s.host], s.fit, s.option.way
	e := Explanation{Nodes: p.verdicts(g)}
	v := &e.Nodes[s.host]
	v.Verdict, v.Need, v.Available, v.Short = VerdictChosen, w.room.need, Bytes{N: w.room.available, Known: true}, 0
	v.Why = fmt.Sprintf("needs %s at %d tokens, %s available", gib(w.room.need), f.context, gib(w.room.available))
	e.Summary = fmt.Sprintf("load %s on %s: %s", g.key.model, h.name(), v.Why)
	return e
}

func (p *Planner) whyUnload(g *group, s *site, j int) Explanation {
	h := p.hosts[s.host]
	e := Explanation{Nodes: p.verdicts(g)}
	e.Nodes[s.host].Verdict = VerdictChosen
	e.Summary = fmt.Sprintf("unload %s from %s: nothing runs on it, and %s needs the room", h.Loaded[j].Name, h.name(), g.key.model)
	return e
}

// gib is an amount of memory for people.
func gib(n uint64) string {
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
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
