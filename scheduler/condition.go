package scheduler

import (
	"slices"
	"time"
)

// condition is what findings about a node depend on, apart from the calls that run there on the model that is asked for.
type condition struct {
	number    uint32 // that names it
	lasting   bool   // what is found then changes with nothing else, time included
	facts     *facts
	ledger    uint64 // facts.ledgers
	why       string
	claim     Claim    // of the load in flight
	reserved  *view    // for which the node is kept
	clearing  *view    // for which something is unloaded
	calls     int      // where there is a cap on them
	residents []uint32 // in memory, packed
}

// change notes that what was found on the node, or what a load there would take, may hold no more.
func (h *host) change() { h.version++ }

// condition is the number of the node's condition. It is that of one of the last two, of this plan or before, when that is the same:
// nothing happened since, or what was decided was carried out.
func (h *host) condition() uint32 {
	if h.described == h.version {
		return h.known[0].number
	}
	h.described = h.version
	now := h.describe()
	switch {
	case now.same(&h.known[0]):
		h.order32 = now.residents
	case now.same(&h.known[1]):
		h.order32 = now.residents
		h.known[0], h.known[1] = h.known[1], h.known[0]
	default:
		h.conditions++
		now.number, h.order32 = h.conditions, h.known[1].residents
		h.known[0], h.known[1] = now, h.known[0]
	}
	return h.known[0].number
}

func (h *host) describe() condition {
	c := condition{facts: h.facts, ledger: h.facts.ledgers, why: h.Why, residents: h.order32[:0]}
	c.lasting = h.State == NodeUp && len(h.Avoid) == 0 && len(h.Unfit) == 0
	if h.loading != nil {
		c.claim = *h.loading
		c.claim.Since = time.Time{}
	}
	if h.reserved != nil {
		c.reserved = h.reserved.view
	}
	if h.clearing != nil {
		c.clearing = h.clearing.view
	}
	if h.MaxCalls > 0 {
		c.calls = h.calls
	}
	for j := range h.Loaded {
		r := &h.residents[j]
		packed := uint32(r.slots) << 5
		for bit, is := range [...]bool{r.busy > 0 || r.queued, r.leaving, r.foreign, r.pinned, r.hold() > 0} {
			if is {
				packed |= 1 << bit
			}
		}
		c.residents = append(c.residents, packed)
		c.lasting = c.lasting && h.Loaded[j].Stuck == 0
	}
	return c
}

func (c *condition) same(o *condition) bool {
	return c.lasting && o.lasting && c.facts == o.facts && c.ledger == o.ledger && c.why == o.why && c.claim == o.claim &&
		c.reserved == o.reserved && c.clearing == o.clearing && c.calls == o.calls && slices.Equal(c.residents, o.residents)
}

// sight is what was found on a node, and when that holds.
type sight struct {
	*Finding
	condition uint32
	busy      int    // calls that ran on the model there
	version   uint32 // of the host, when something would have to go: which that is depends on more
}

// holds reports whether it is what would be found now.
func (s *sight) holds(h *host, condition uint32, busy int) bool {
	return s.Finding != nil && s.condition == condition && s.busy == busy && (len(s.Evict) == 0 || s.version == h.version)
}
