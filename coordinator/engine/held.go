package engine

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// held is a model in a node's memory that we loaded. Others are somebody else's, and stay. It is kept in the ledger from the
// decision to load on, so that a coordinator that comes back still knows it.
type held struct {
	Model    string    `json:"model"`
	Context  int       `json:"context"` // tokens per slot
	Since    time.Time `json:"since"`   // of the decision
	Observed uint64    `json:"observed,omitempty"`

	kept      time.Time // when Ollama was last asked to keep it
	checked   int       // calls whose rate was looked at
	slow      int       // of these, those that were far too slow
	condemned string    // why it is to go as soon as nothing runs on it, "" when it may stay
}

// unfit is a model that did not fit although by all figures it should have, or that was far too slow.
type unfit struct {
	Context int       `json:"context"` // the smallest that did not fit, tokens per slot
	Times   int       `json:"times"`   // in a row
	Until   time.Time `json:"until"`   // not tried again before
	Slow    bool      `json:"slow,omitempty"`
}

// unfitPause is how long a model is not tried again where it spilled. It doubles: what was in the way may be gone soon, and what
// is not gone after hours stays.
const (
	unfitPause     = time.Minute
	unfitPauseMost = 4 * time.Hour
)

// spilled marks a model as not fitting, and condemns the copy that is there.
func (m *moves) spilled(node, digest string, context int, slow bool, why string, now time.Time) unfit {
	n := m.of(node)
	u := n.unfit[digest]
	pause := unfitPauseMost
	if u.Times < 8 {
		pause = min(unfitPauseMost, unfitPause<<u.Times)
	}
	u.Times++
	if u.Context == 0 || context < u.Context {
		u.Context = context
	}
	u.Until, u.Slow = now.Add(pause), slow
	n.unfit[digest] = u
	m.dirty[fact{kindUnfit, node, digest}] = true
	if h := n.held[digest]; h != nil {
		h.condemned = why
	}
	return u
}

// unfitNow is what does not fit now.
func (n *nodeMoves) unfitNow(now time.Time) map[string]scheduler.Unfit {
	var out map[string]scheduler.Unfit
	for digest, u := range n.unfit {
		if u.Until.After(now) {
			if out == nil {
				out = map[string]scheduler.Unfit{}
			}
			out[digest] = scheduler.Unfit{Context: u.Context, Until: u.Until}
		}
	}
	return out
}

// warmed notes what ran on a model. Ollama keeps one prompt per slot, so a few are enough.
func (n *nodeMoves) warmed(digest, affinity string) {
	const most = 8
	if affinity == "" {
		return
	}
	list := []string{affinity}
	for _, a := range n.warm[digest] {
		if a != affinity && len(list) < most {
			list = append(list, a)
		}
	}
	n.warm[digest] = list
}

// vanished is a model of ours that a node stopped to show although nobody here unloaded it.
type vanished struct {
	node  scheduler.Node // as reported then
	held  held
	shown time.Time // since when it was there
	at    time.Time // when it was missed
	all   bool      // nothing else is left of what was there
	keep  time.Time // when it was last asked to be kept
}

// settleHeld compares what we hold with what a node shows. A node that cannot be asked shows what it showed last.
func (m *moves) settleHeld(n *nodeMoves, report scheduler.Node, calls []holding, now time.Time) {
	if report.State != scheduler.NodeUp && report.State != scheduler.NodeDraining {
		return
	}
	shown := func(digest string) bool {
		return slices.ContainsFunc(report.Loaded, func(l scheduler.Loaded) bool { return l.Digest == digest })
	}
	drop := func(digest string) {
		delete(n.held, digest)
		m.dirty[fact{kindHeld, report.ID, digest}] = true
	}
	for _, digest := range slices.Sorted(maps.Keys(n.held)) {
		h, mv := n.held[digest], n.leaving[digest]
		switch {
		case shown(digest), n.loading != nil && n.loading.Digest == digest:
		case slices.ContainsFunc(calls, func(c holding) bool { return c.on(digest, h.Model) }): // its call brings it back
		case mv != nil && !mv.ended.IsZero():
			drop(digest)
		case mv != nil: // the unload is under way, and it is gone already
		case !n.since[digest].IsZero():
			m.gone = append(m.gone, vanished{node: report, held: *h, shown: n.since[digest], at: now, all: len(report.Loaded) == 0, keep: h.kept})
			drop(digest)
		case now.Sub(h.Since) >= reportGrace: // it never came
			drop(digest)
		}
	}
	maps.DeleteFunc(n.warm, func(digest string, _ []string) bool { return !shown(digest) })
}

// rows are what the ledger has to be told of models that we hold and that did not fit.
func (m *moves) rows(now time.Time) (rows []ledger.Learned) {
	for _, k := range slices.SortedFunc(maps.Keys(m.dirty), fact.compare) {
		var value any
		if h := m.of(k.node).held[k.subject]; k.kind == kindHeld && h != nil {
			value = h
		}
		if u, marked := m.of(k.node).unfit[k.subject]; k.kind == kindUnfit && marked {
			value = u
		}
		rows = append(rows, learned(k, now, value))
	}
	clear(m.dirty)
	return rows
}

// restore takes in a row from an earlier life.
func (m *moves) restore(row ledger.Learned, now time.Time) error {
	n := m.of(row.Node)
	switch row.Kind {
	case kindHeld:
		h := &held{kept: now}
		if err := json.Unmarshal(row.Value, h); err != nil {
			return err
		}
		n.held[row.Subject] = h
	case kindUnfit:
		var u unfit
		if err := json.Unmarshal(row.Value, &u); err != nil {
			return err
		}
		n.unfit[row.Subject] = u
	}
	return nil
}

// newcomers are the models that a node holds, that we did not load, and that came after others were missed there.
func (n *nodeMoves) newcomers(loaded []scheduler.Loaded, missed time.Time) (names []string) {
	for _, l := range loaded {
		if n.held[l.Digest] == nil && !n.since[l.Digest].Before(missed) {
			names = append(names, l.Name)
		}
	}
	return names
}

// holding is an attempt that occupies a slot: one in flight, or one that was cancelled and whose worker has not confirmed it.
type holding struct {
	scheduler.Call
	node, digest, model string
	uses                []string
}

// on reports whether the attempt runs on a loaded model.
func (c holding) on(digest, name string) bool {
	return c.digest == digest || c.digest == "" && tagged(c.model) == tagged(name)
}

// tagged is a model's name as Ollama lists it: without a tag it is the latest.
func tagged(name string) string {
	if strings.LastIndexByte(name, ':') > strings.LastIndexByte(name, '/') {
		return name
	}
	return name + ":latest"
}
