package scheduler

import (
	"math"
	"time"
)

// option is what it would take to load a model on a site.
type option struct {
	ok    bool
	now   bool // as far as other loads and the memory go
	way   way
	begin time.Duration // when the load could begin
	takes time.Duration // with the unloads before it
	cost  time.Duration // what reloading what it displaces is expected to cost
}

// bid is what a load on a site would give a group.
type bid struct {
	s     *site
	o     *option
	now   bool          // can be begun at once
	held  bool          // by a model that has not had its time
	ready time.Duration // when the model would be loaded
	serve time.Duration // a call of the group
}

// bids are what the sites of the group offer.
func (p *Planner) bids(g *group) []bid {
	out := p.offers[:0]
	for s := range g.nodes {
		h := p.hosts[s.host]
		if h.reserved != nil && h.reserved != g {
			continue
		}
		serve := g.serve(s)
		if now := p.epoch<<32 | uint64(h.version); s.seen != now {
			if g.rate > 0 && p.tooLate(h, s, g.level-serve) {
				continue
			}
			s.option, s.seen = p.option(h, s), now
		}
		if o := &s.option; o.ok {
			server := p.serverFor(g, h)
			held := p.held(g, h, s)
			out = append(out, bid{s: s, o: o, now: o.now && server == 0 && held == 0, held: held > 0, ready: max(o.begin, server, held) + o.takes, serve: serve})
		}
	}
	p.offers = out
	return out
}

// score is when a call would end after the load, and what that costs others.
func (b *bid) score() time.Duration { return b.ready + b.serve + b.o.cost }

// many is from how many tasks on a sum grows no more.
const many = 500

// total is the sum of the ends of n tasks after the load, and what that costs others.
func (b *bid) total(n int) time.Duration {
	n = min(n, many)
	return time.Duration(n)*(b.ready+(b.rounds(n)+1)*b.serve/2) + b.o.cost
}

// rounds is how often the slots are filled for n tasks.
func (b *bid) rounds(n int) time.Duration {
	slots := b.s.fit.parallel()
	return time.Duration((n + slots - 1) / slots)
}

// option is what a load on a site would take, apart from what depends on the group. It holds until something changes on the node.
func (p *Planner) option(h *host, s *site) option {
	f := s.fit
	if j := h.find(f); j >= 0 && !(h.inMemory(j) && h.Loaded[j].Leaving) {
		return option{}
	}
	if !f.room.ok || h.State != NodeUp || f.exceeds(h, p.slack(h).later) {
		return option{}
	}
	o := option{begin: h.token, takes: s.pace.load}
	if h.clearing == nil && !f.exceeds(h, p.slack(h).free) {
		o.way = h.clear(f, h.free)
	}
	o.now = o.way.ok && h.loading == nil
	if !o.way.ok {
		if o.way = h.clearLater(f); !o.way.ok {
			return option{}
		}
		o.begin = max(o.begin, p.vacated(h, o.way))
	}
	o.ok = true
	if o.way.effort() > 0 {
		o.takes += unloadTime
	}
	for _, j := range o.way.evict {
		o.cost += h.regret(j)
	}
	return o
}

// slack is an upper bound of what a load could take of a node with one pool, in bytes: once what may go now is gone, and once all
// that may ever go is. It spares most of the searches for what has to go.
type slack struct {
	seen        uint64
	free, later uint64
	soonest     time.Duration // when the first of the models that may go is expected to be idle
}

func (p *Planner) slack(h *host) slack {
	if now := p.epoch<<32 | uint64(h.version); h.slack.seen != now {
		h.slack = slack{seen: now, free: h.bound(h.free, h.memory.loading), later: h.bound(h.later, 0), soonest: math.MaxInt64}
		for j := range h.residents {
			if r := &h.residents[j]; !r.foreign {
				h.slack.soonest = min(h.slack.soonest, p.last(r.ends))
			}
		}
	}
	return h.slack
}

// tooLate reports whether a load on a site surely ends after a time: something has to go first that is busy for too long.
func (p *Planner) tooLate(h *host, s *site, at time.Duration) bool {
	x := p.slack(h)
	return s.fit.exceeds(h, x.free) && at-s.pace.load <= x.soonest
}

// bound is what the first pool could give once what may go is gone, with another load in flight that claims so much.
func (h *host) bound(may func(j int) bool, claim uint64) uint64 {
	gone := h.none()
	for j := range gone {
		gone[j] = h.Loaded[j].Leaving || !h.residents[j].stuck && (may(j) || h.own(j))
	}
	if len(h.memory.pools) == 0 {
		return 0
	}
	loading := h.memory.loading
	h.memory.loading = claim
	n := h.memory.available(0, gone)
	h.memory.loading = loading
	return n
}

// exceeds reports whether the model surely needs more than that of a node's only pool.
func (f *fit) exceeds(h *host, n uint64) bool {
	return len(h.memory.pools) == 1 && len(f.needs) > 0 && f.needs[0].Total() > n
}

// own reports whether loaded model j may have to go for itself alone.
func (h *host) own(j int) bool { return h.residents[j].pinned && !h.residents[j].foreign }

// later reports whether loaded model j may go once what runs and waits has ended.
func (h *host) later(j int) bool { return !h.stays(j) }

// clearLater is how room could be made then, what is coming included.
func (h *host) clearLater(f *fit) way {
	claim := h.memory.loading
	h.memory.loading = 0
	w := h.clear(f, h.later)
	h.memory.loading = claim
	return w
}

// serverFor is when a load for the group could begin on a node with a cap on calls, as which a load counts: after the calls that count
// on it, unless the group is overdue or of a run that got less.
func (p *Planner) serverFor(g *group, h *host) time.Duration {
	at := h.next
	if at > 0 && (p.overdue(g) || len(g.head) > 0 && g.head[0].share < h.front) {
		at = p.saved[h.servers.from]
		for k := h.servers.from; k < h.servers.to; k++ {
			at = min(at, p.saved[k])
		}
	}
	return at
}

// regret is the expected cost of reloading a model that is displaced: all of the load when somebody waits for it, else less the
// longer it was not used.
func (h *host) regret(j int) time.Duration {
	return time.Duration(h.demand(j) * float64(h.residents[j].pace.load))
}

// recent is how long a use of a model keeps half of its weight.
const recent = 2 * time.Minute

// demand is how likely a model is needed again soon.
func (h *host) demand(j int) float64 {
	r := &h.residents[j]
	if r.wanted {
		return 1
	}
	return 0.5 / (1 + float64(max(r.idle, 0))/float64(recent))
}
