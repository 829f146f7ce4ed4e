package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// verdicts are how every node looks to the group now.
func (p *Planner) verdicts(g *group) []NodeVerdict {
	out := make([]NodeVerdict, len(p.hosts))
	if g.pinned != "" {
		for i := range p.hosts {
			out[i].Finding = new(Finding)
			p.find(out[i].Finding, g.view, i, g.pinned)
		}
		return out
	}
	p.see(g.view)
	for i, h := range p.hosts {
		out[i].Finding = g.sights[i][0].Finding
		if k := g.at[i]; k >= 0 {
			out[i].Expect = g.sites[k].expect(h)
		}
	}
	for _, i := range g.banned {
		h := p.hosts[i]
		out[i] = NodeVerdict{Finding: &Finding{Node: h.ID, Name: h.name(), State: h.State, Verdict: VerdictExcluded, Reason: ReasonFailed}}
	}
	return out
}

// finalVerdicts are the verdicts once all is decided. Groups that may use the same nodes share them.
func (p *Planner) finalVerdicts(g *group) []NodeVerdict {
	switch v := g.view; {
	case g.pinned != "" || len(g.banned) > 0:
		return p.verdicts(g)
	case v.final == nil:
		v.final = p.verdicts(g)
		fallthrough
	default:
		return v.final
	}
}

// see looks with the eyes of a model at the nodes where something changed, also from plan to plan. Calls that start there change only
// what is found for their own model, see launch.
func (p *Planner) see(v *view) {
	p.stale = p.stale[:0]
	for i, h := range p.hosts {
		condition, busy := h.condition(), 0
		if k := v.at[i]; k >= 0 && v.sites[k].at >= 0 {
			busy = h.residents[v.sites[k].at].busy
		}
		s := &v.sights[i]
		if s[0].holds(h, condition, busy) {
			continue
		}
		if s[0], s[1] = s[1], s[0]; !s[0].holds(h, condition, busy) {
			s[0] = sight{condition: condition, busy: busy, version: h.version}
			p.stale = append(p.stale, i)
		}
	}
	found := make([]Finding, len(p.stale)) // what is found together is kept together
	for k, i := range p.stale {
		p.find(&found[k], v, i, "")
		v.sights[i][0].Finding = &found[k]
	}
}

// find fills in what is found on a node for a model.
func (p *Planner) find(out *Finding, v *view, i int, pinned string) {
	h, f := p.hosts[i], v.fits[i]
	out.Node, out.Name, out.State, out.Note, out.Context, out.Largest = h.ID, h.name(), h.State, h.Why, f.context, f.most
	if len(f.needs) > 0 {
		out.Need, out.Available, out.Short = f.room.need, Bytes{N: f.room.available, Known: true}, f.room.short
	}
	if !p.static(out, v, i, pinned) {
		p.dynamic(out, v, i)
	}
}

// expect is when a call would end on a site, as things are.
func (s *site) expect(h *host) Expect {
	e := Expect{Serve: s.serve}
	if s.at >= 0 {
		e.Wait = h.begins(&h.residents[s.at])
	} else {
		e.Wait, e.Load = h.token, s.pace.load
	}
	return e
}

func (v *Finding) is(verdict Verdict, r Reason) { v.Verdict, v.Reason = verdict, r }

// static finds what does not depend on what runs there now, and reports whether that decides.
func (p *Planner) static(out *Finding, v *view, i int, pinned string) bool {
	h, f := p.hosts[i], v.fits[i]
	candidate := pinned == "" && v.at[i] >= 0 || pinned != "" && p.eligible(h, f, h.find(f), v.embed, pinned)
	switch {
	case f.wrongKind(v.embed):
		out.is(VerdictTooLarge, ReasonEmbeds)
	case v.tooLarge(i) && !candidate:
		out.is(VerdictTooLarge, ReasonLarge)
	case h.State != NodeUp && !candidate:
		out.is(VerdictExcluded, ReasonState)
		if !h.LastSeen.IsZero() {
			out.For = p.now.Sub(h.LastSeen)
		}
	case f.other:
		out.is(VerdictNoModel, ReasonAnother)
		out.Model = f.digest
	case f.model == nil:
		out.is(VerdictNoModel, ReasonMissing)
	case pinned != "" && pinned != h.ID:
		out.is(VerdictExcluded, ReasonPinned)
	case p.shunned(h, f):
		out.is(VerdictExcluded, ReasonSpilled)
		out.For = h.shunnedUntil(f.digest, f.context).Sub(p.now)
	case candidate:
		return false
	case v.blocked(h, i):
		out.is(VerdictExcluded, ReasonRooted)
		out.Stay = p.stay(h, h.rooted)
	case len(f.needs) == 0 && !h.memory.known:
		out.is(VerdictUnknown, ReasonMemory)
	default:
		out.is(VerdictUnknown, ReasonShape)
	}
	return true
}

// dynamic is the verdict on a candidate: what is loaded, loading and running there.
func (p *Planner) dynamic(out *Finding, v *view, i int) {
	h, f := p.hosts[i], v.fits[i]
	j := h.find(f)
	out.is(VerdictWait, "")
	switch {
	case h.clearing != nil && h.clearing.fits[i].digest == f.digest:
		out.Reason, out.Stay = ReasonMaking, p.stay(h, h.lingers)
	case h.loads(f):
		out.Reason = ReasonLoading
	case h.inMemory(j) && h.residents[j].leaving:
		out.Reason = ReasonYields
	case h.inMemory(j):
		p.slotVerdict(out, h, j)
	case h.loading != nil:
		out.Reason, out.Model = ReasonOther, h.loading.Name
	case h.clearing != nil || h.reserved != nil && h.reserved.fits[i].digest != f.digest:
		out.Reason, out.Model = ReasonReserved, cmp.Or(h.clearing, h.reserved).model
	case h.apart(f) >= 0:
		out.Reason, out.At = ReasonContext, h.Loaded[h.apart(f)].Context
	default:
		p.roomVerdict(out, h, f)
	}
}

func (p *Planner) slotVerdict(out *Finding, h *host, j int) {
	r := &h.residents[j]
	out.Busy, out.Of = r.busy, r.slots
	switch {
	case r.busy >= r.slots:
		out.Reason = ReasonBusy
	case h.MaxCalls > 0 && h.calls >= h.MaxCalls:
		out.Reason, out.Busy, out.Of = ReasonCalls, h.calls, h.MaxCalls
	default:
		out.is(VerdictFits, ReasonSlot)
	}
}

func (p *Planner) roomVerdict(out *Finding, h *host, f *fit) {
	w := h.clear(f, h.spare)
	out.Need, out.Available, out.Short = w.room.need, Bytes{N: w.room.available, Known: true}, w.room.short
	for _, j := range w.evict {
		out.Evict = append(out.Evict, h.Loaded[j].Name)
	}
	switch {
	case w.ok && slices.ContainsFunc(w.evict, h.holds):
		out.Reason = ReasonHeld
		return
	case w.ok:
		out.is(VerdictFits, ReasonRoom)
		return
	}
	if h.stayed != h.version { // the same for every model
		h.stay, h.stayed = p.stay(h, func(j int) bool { return !h.spare(j) || h.lingers(j) }), h.version
	}
	out.Reason, out.Stay = ReasonShort, h.stay
}

// apart is the loaded model that a fit is, at another context at which it is still in use or waited for, or -1.
func (h *host) apart(f *fit) int {
	return slices.IndexFunc(h.residents[:len(h.Loaded)], func(r resident) bool {
		return r.digest == f.digest && r.context != f.context && !r.foreign && (r.busy > 0 || r.queued)
	})
}

// lingers reports whether an unload left loaded model j in memory.
func (h *host) lingers(j int) bool { return h.Loaded[j].Stuck > 0 }

// stay lists loaded models that stay, and why.
func (p *Planner) stay(h *host, which func(j int) bool) (list []Stay) {
	for j := range h.Loaded {
		if !which(j) {
			continue
		}
		l := &h.Loaded[j]
		one := Stay{Model: l.Name, Cause: "in use"}
		switch {
		case l.Stuck > 0:
			one.Cause, one.Times = "stuck", l.Stuck
			if h.residents[j].stuck {
				one.Retry = l.Retry.Sub(p.now)
			}
		case l.Foreign:
			one.Cause = "foreign"
		case h.residents[j].pinned:
			one.Cause = "pinned"
		}
		list = append(list, one)
	}
	return list
}

// Why is the reason in one clause for people.
func (v *Finding) Why() string {
	switch v.Reason {
	case ReasonSlot, ReasonBusy:
		return fmt.Sprintf("loaded, %d of %d slots busy", v.Busy, v.Of)
	case ReasonCalls:
		return fmt.Sprintf("loaded, and the machine runs %d of %d calls", v.Busy, v.Of)
	case ReasonRoom:
		return v.room()
	case ReasonHeld:
		return v.room() + ", which was used just now and keeps the machine for a moment"
	case ReasonShort:
		return fmt.Sprintf("%s, %s short%s", v.room(), gib(v.Short), v.stays())
	case ReasonLoading:
		return "it is being loaded there"
	case ReasonMaking:
		return "room is being made for it there" + v.stays()
	case ReasonYields:
		return "it makes room there for a model that has waited longer"
	case ReasonContext:
		return fmt.Sprintf("has it loaded at %d tokens, and loads it anew at %d once what runs there has ended", v.At, v.Context)
	case ReasonOther:
		return v.Model + " is being loaded there"
	case ReasonReserved:
		return "room is being made there for " + v.Model
	case ReasonLarge:
		return fmt.Sprintf("needs %s at %d tokens, has %s when empty, %s short; %s",
			gib(v.Need), v.Context, gib(v.Available.N), gib(v.Short), largest(v.Largest))
	case ReasonAnother:
		return fmt.Sprintf("another model of that name is there; the run began with digest %.12s", v.Model)
	case ReasonState:
		return v.state()
	case ReasonSpilled:
		return fmt.Sprintf("it did not fit there a short while ago; not tried again for %s", span(v.For))
	case ReasonRooted:
		return v.rooted()
	default:
		return cmp.Or(reasons[v.Reason], string(v.Reason))
	}
}

var reasons = map[Reason]string{
	ReasonEmbeds:  "it only makes embeddings",
	ReasonMissing: "the model is not pulled there",
	ReasonPinned:  "the attempt already runs on another machine",
	ReasonMemory:  "its memory is not known",
	ReasonShape:   "the model's shape is not known yet",
	ReasonFailed:  "an earlier attempt failed there",
}

func (v *Finding) room() string {
	s := fmt.Sprintf("needs %s, %s available", gib(v.Need), gib(v.Available.N))
	if len(v.Evict) > 0 {
		s += " once " + and(v.Evict) + ifSome(len(v.Evict), " is unloaded", " are unloaded")
	}
	return s
}

func (v *Finding) state() string {
	if v.Note != "" {
		return v.Note
	}
	switch v.State {
	case NodeLost:
		if v.For == 0 {
			return "lost"
		}
		return fmt.Sprintf("lost, last seen %s ago", span(v.For))
	case NodeDraining:
		return "draining: it takes nothing new"
	case NodeDegraded:
		return "degraded: its Ollama does not answer or its accelerator is lost"
	case NodePaused:
		return "paused: outside its hours of use, or by a person"
	default:
		return fmt.Sprintf("its state %q is not known here", string(v.State))
	}
}

// rooted says what keeps the memory of the node, when it is tried again, and what helps.
func (v *Finding) rooted() string {
	names, tries, soonest := []string{}, 0, longest
	for _, s := range v.Stay {
		names, tries, soonest = append(names, s.Model), max(tries, s.Times), min(soonest, s.Retry)
	}
	return fmt.Sprintf("its Ollama keeps %s in memory, which %d unloads did not remove, tried again in %s: restart Ollama there", and(names), tries, span(soonest+time.Second))
}

// stays says which models stay, and why.
func (v *Finding) stays() string {
	var b strings.Builder
	before := " while "
	for _, cause := range []struct{ name, one, many string }{
		{"foreign", " is not ours to unload", " are not ours to unload"},
		{"pinned", " is pinned", " are pinned"},
		{"in use", " is in use", " are in use"},
	} {
		var names []string
		for _, s := range v.Stay {
			if s.Cause == cause.name {
				names = append(names, s.Model)
			}
		}
		if len(names) > 0 {
			b.WriteString(before + and(names) + ifSome(len(names), cause.one, cause.many))
			before = ", "
		}
	}
	for _, s := range v.Stay {
		if s.Cause != "stuck" {
			continue
		}
		fmt.Fprintf(&b, "; %s stayed in memory after %d unload%s", s.Model, s.Times, ifSome(s.Times, "", "s"))
		if s.Retry > 0 {
			fmt.Fprintf(&b, ", tried again in %s", span(s.Retry+time.Second))
		}
	}
	return b.String()
}
