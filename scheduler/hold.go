package scheduler

import "time"

// A model that is in use keeps its node from one that waits, although it is idle for the moment (rule 8): a swap at every such moment
// would have the node load all day, however fast it loads.
const (
	// floorLeast and floorLoads: for so long from its load on, the longer of a time and times its load.
	floorLeast = 20 * time.Second
	floorLoads = 2
	// lullLeast and lullLoads: while it was used so lately. After that the swap is hardly in vain.
	lullLeast = 5 * time.Second
	lullLoads = 0.5
	// worthLeast and worthLoads: from so much work that waits on, known and not guessed, the swap is worth it at once.
	worthLeast = floorLeast / 2
	worthLoads = 1
)

// hold is how much longer an idle model keeps its node.
func (r *resident) hold() time.Duration {
	if r.barred || r.since < 0 || r.idle < 0 { // a clock was set back
		return 0
	}
	floor := max(floorLeast, floorLoads*r.pace.load) - r.since
	lull := max(lullLeast, time.Duration(lullLoads*float64(r.pace.load))) - min(r.idle, r.since)
	return max(min(floor, lull), 0)
}

// holds reports whether loaded model j, idle for the moment, keeps the node.
func (h *host) holds(j int) bool { return h.residents[j].hold() > 0 }

// held is how much longer the models in the way of a group keep the node, on a site. A group that is interactive, overdue or worth it does not
// wait for that.
func (p *Planner) held(g *group, h *host, s *site) (rest time.Duration) {
	o, c := &s.option, &s.pace
	if len(o.way.evict) == 0 || g.priority >= PriorityInteractive || p.overdue(g) {
		return 0
	}
	for _, j := range o.way.evict {
		if h.residents[j].digest != s.fit.digest { // else it is in the way of itself, at a context that nobody waits for
			rest = max(rest, h.residents[j].hold())
		}
	}
	if rest > 0 && time.Duration(min(p.open(g), many))*c.surely(g.work, g.embed) >= max(worthLeast, worthLoads*o.takes) {
		return 0
	}
	return rest
}

// surely is how long a call takes at least, as far as that was measured; 0 while it is a guess.
func (c *pace) surely(w Work, embed bool) time.Duration {
	switch serve := c.serve(w, embed); {
	case c.counted:
		return min(c.service, serve)
	case c.known && (w.Output > 0 || embed):
		return serve
	default:
		return 0
	}
}
