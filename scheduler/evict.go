package scheduler

import (
	"cmp"
	"slices"
)

// way is how room is made for a model on a node.
type way struct {
	ok      bool
	evict   []int  // Loaded indices to be unloaded
	pending bool   // memory of models that are leaving already is needed
	busy    int    // attempts that run on the evicted ones
	bytes   uint64 // size of the evicted ones
	room    room
}

// effort is 0 for a load that can start now, 1 for one that waits for unloads under way, 2 when something has to go.
func (w way) effort() int {
	switch {
	case len(w.evict) > 0:
		return 2
	case w.pending:
		return 1
	default:
		return 0
	}
}

// spare reports whether loaded model j may go at once, whoever asks: nothing runs on it and nothing waits for it.
func (h *host) spare(j int) bool {
	r := &h.residents[j]
	return h.movable(j) && r.busy == 0 && !r.queued
}

// spareFor reports whether loaded model j may go for a task of the priority at hand: nothing runs on it, nobody of this
// priority or above counts on it, and it had its time if anybody waits for it.
func (h *host) spareFor(j int) bool {
	r := &h.residents[j]
	return h.movable(j) && r.busy == 0 && !r.wanted && (!r.queued || r.since >= residency(r.pace.load))
}

// free reports whether loaded model j may go now for the task at hand.
func (h *host) free(j int) bool { return h.spareFor(j) || h.drained(j) }

// movable reports whether loaded model j may go once nothing runs on it and nothing waits for it.
func (h *host) movable(j int) bool {
	r := &h.residents[j]
	return !r.leaving && !h.stays(j)
}

// stays reports whether loaded model j is never unloaded for the model that room is looked for. A pin keeps a model, not its context.
func (h *host) stays(j int) bool {
	r := &h.residents[j]
	return r.foreign || r.pinned && r.digest != h.asks
}

// drained reports whether loaded model j was taken out of service for the group that the node is kept for, and has ended.
func (h *host) drained(j int) bool {
	r := &h.residents[j]
	return h.reserved != nil && r.leaving && !h.Loaded[j].Leaving && r.busy == 0
}

// stuckTries is how many unloads in a row may leave a model in memory until the node counts without that room: one can fail
// because of a request of somebody else's, or of a server that is slow.
const stuckTries = 3

// rooted reports whether loaded model j counts as staying until its unload is tried again: several left it in memory.
func (h *host) rooted(j int) bool { return h.residents[j].stuck && h.Loaded[j].Stuck >= stuckTries }

// blocked reports whether rooted models leave no room for the fit, were everything else gone.
func (h *host) blocked(f *fit) bool {
	for j := range h.Loaded {
		if h.rooted(j) {
			return !h.makeRoom(f, func(j int) bool { return !h.rooted(j) }).ok
		}
	}
	return false
}

// clear (rule 8) finds the smallest set of loaded models that has to go, among those that may and are not stuck.
func (h *host) clear(f *fit, may func(j int) bool) way {
	return h.makeRoom(f, func(j int) bool { return !h.residents[j].stuck && may(j) })
}

// makeRoom does it. A copy of the same model at another context always has to go: Ollama keeps one.
func (h *host) makeRoom(f *fit, may func(j int) bool) way {
	gone, w := h.none(), way{}
	h.asks = f.digest
	defer func() { h.asks = "" }()
	for j := range h.Loaded {
		l := &h.Loaded[j]
		if l.Digest != f.digest {
			continue
		}
		if !l.Leaving && !may(j) {
			w.room = f.roomAfter(h, gone)
			return w
		}
		gone[j] = true
		w.pending = w.pending || l.Leaving
	}
	if w.room = f.roomAfter(h, gone); !w.room.ok {
		for j := range h.Loaded {
			gone[j] = gone[j] || h.Loaded[j].Leaving
			w.pending = w.pending || h.Loaded[j].Leaving
		}
		w.room = h.sacrifice(f, gone, may)
	}
	w.ok = w.room.ok
	for j := range h.Loaded {
		if gone[j] && !h.Loaded[j].Leaving {
			w.evict = append(w.evict, j)
			w.busy += h.residents[j].busy
			w.bytes += h.Loaded[j].SizeBytes
		}
	}
	return w
}

// none marks no loaded model. It is the same memory every time.
func (h *host) none() []bool {
	h.gone = h.gone[:0]
	for range h.Loaded {
		h.gone = append(h.gone, false)
	}
	return h.gone
}

// sacrifice marks models as gone until the fit has room, the least valuable first, and then keeps those that need not
// have been. Order: demand × reload time per byte, longest unused, name.
func (h *host) sacrifice(f *fit, gone []bool, may func(j int) bool) room {
	order := h.order[:0]
	for j := range h.Loaded {
		if !gone[j] && may(j) && slices.ContainsFunc(h.memory.held[j].frees, func(n uint64) bool { return n > 0 }) {
			order = append(order, j)
		}
	}
	h.order = order
	r := f.roomAfter(h, gone)
	if r.ok || len(order) == 0 {
		return r
	}
	slices.SortStableFunc(order, h.compareValue)
	for _, j := range order {
		if r.ok {
			break
		}
		gone[j] = true
		r = f.roomAfter(h, gone)
	}
	for _, j := range slices.Backward(order) {
		if !r.ok || !gone[j] {
			continue
		}
		gone[j] = false
		if without := f.roomAfter(h, gone); without.ok {
			r = without
		} else {
			gone[j] = true
		}
	}
	return r
}

func (h *host) compareValue(a, b int) int {
	la, lb := h.Loaded[a], h.Loaded[b]
	return cmp.Or(
		compareBool(h.holds(a), h.holds(b)),
		cmp.Compare(h.value(a), h.value(b)),
		la.LastUsed.Compare(lb.LastUsed),
		cmp.Compare(la.Name, lb.Name),
	)
}

// value of keeping loaded model j: demand × seconds to reload it per byte that it holds.
func (h *host) value(j int) float64 {
	var size uint64
	for _, n := range h.memory.held[j].frees {
		size += n
	}
	return h.demand(j) * h.residents[j].pace.load.Seconds() / float64(max(size, 1))
}

// roomAfter (rules 2 and 3) packs the model beside what is left on the node. Ollama 0.30 would evict on its own account when its
// prediction is above 80 % of the free memory, so beside others that has to hold as well.
func (f *fit) roomAfter(h *host, gone []bool) room {
	if len(f.needs) == 0 {
		return room{}
	}
	r := f.after(h.memory, gone)
	beside := slices.Contains(gone, false)
	if limit := toBytes(runnerShare * float64(h.memory.freeSum(gone))); r.ok && beside && f.predict > limit {
		return room{need: f.predict, available: limit, short: f.predict - limit}
	}
	return r
}

// after packs the model into what the pools give. One pool needs no packing.
func (f *fit) after(m *memory, gone []bool) room {
	if len(m.pools) > 1 {
		return f.pack(m.availables(gone), m.unclaimed(gone))
	}
	r := room{devices: 1, need: f.needs[0].Total(), available: m.available(0, gone)}
	r.short = below(r.need, r.available)
	r.ok = r.short == 0
	return r
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
