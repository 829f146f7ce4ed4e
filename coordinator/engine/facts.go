package engine

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine/learn"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// The kinds under which the ledger keeps what was learned of nodes.
const (
	kindSpeed  = "speed"  // of a model on a node, by digest
	kindRate   = "rate"   // at which a node loads
	kindMargin = "margin" // measured loads, by what they were measured for
	kindHeld   = "held"   // a model that we loaded, by digest
	kindUnfit  = "unfit"  // a model that did not fit although it should have, by digest
	kindUse    = "use"    // drained or paused by a person
)

// observationsKept is how many loads of one kind are remembered, of 20 the 95th percentile leaves the largest out, and
// observationsMost how many of one node: models come and go.
const (
	observationsKept = 20
	observationsMost = 200
)

// factPause is how often one fact is written at most: measurements of every call ride along, and a crash costs a few of them.
const factPause = 5 * time.Second

// fact names a row of the ledger.
type fact struct{ kind, node, subject string }

// facts is what was measured of nodes and models. The engine's loop owns it; the maps that it gives out are never changed.
type facts struct {
	speed    map[string]map[string]learn.Speed // by node and digest
	rate     map[string]learn.Rate             // by node
	loads    map[string][]scheduler.Observation
	speeds   map[string]map[string]scheduler.Speed // estimates of speed
	margins  map[string]margins
	changed  map[fact]bool
	recorded map[fact]time.Time
}

// margins are those of a node as it was when they were computed.
type margins struct {
	version, device string
	known           map[scheduler.MarginKey]uint64
}

func newFacts() facts {
	return facts{speed: map[string]map[string]learn.Speed{}, rate: map[string]learn.Rate{}, loads: map[string][]scheduler.Observation{},
		speeds: map[string]map[string]scheduler.Speed{}, margins: map[string]margins{}, changed: map[fact]bool{}, recorded: map[fact]time.Time{}}
}

// of is what was measured of a model on a node.
func (f *facts) of(node, digest string) learn.Speed { return f.speed[node][digest] }

// setSpeed replaces it.
func (f *facts) setSpeed(node, digest string, s learn.Speed) {
	if digest == "" {
		return
	}
	if f.speed[node] == nil {
		f.speed[node] = map[string]learn.Speed{}
	}
	f.speed[node][digest] = s
	estimates := maps.Clone(f.speeds[node])
	if estimates == nil {
		estimates = map[string]scheduler.Speed{}
	}
	estimates[digest] = s.Estimate()
	f.speeds[node] = estimates
	f.changed[fact{kindSpeed, node, digest}] = true
}

// loaded takes in a load: how long it took, of a file of so many bytes, and what it took of the device, where that was measured.
func (f *facts) loaded(n scheduler.Node, m Move, fileBytes uint64) {
	f.setSpeed(n.ID, m.Digest, f.of(n.ID, m.Digest).Loaded(m.Took))
	f.rate[n.ID] = f.rate[n.ID].Loaded(fileBytes, m.Took)
	f.changed[fact{kindRate, n.ID, ""}] = true
	if taken, known := m.taken(); known {
		if o, ok := scheduler.Observe(n, m.Decision, taken); ok {
			f.observe(n.ID, o)
		}
	}
}

// taken is what a load needed, as far as it tells: what the device lost to it, or of one that spilled what Ollama set aside in all.
func (m Move) taken() (uint64, bool) {
	if m.Spilled {
		return m.Size, m.Size > 0
	}
	return m.Observed.N, m.Observed.Known
}

func (f *facts) observe(node string, o scheduler.Observation) {
	if o.Observed < o.Need/2 { // not the load: something else gave memory back meanwhile
		return
	}
	same := func(p scheduler.Observation) bool {
		return p.MarginKey == o.MarginKey && p.Version == o.Version && p.Device == o.Device
	}
	all := append(slices.Clone(f.loads[node]), o)
	count := 0
	for _, p := range all {
		if same(p) {
			count++
		}
	}
	if count > observationsKept {
		i := slices.IndexFunc(all, same)
		all = slices.Delete(all, i, i+1)
	}
	all = all[max(0, len(all)-observationsMost):]
	f.loads[node] = all
	delete(f.margins, node)
	f.changed[fact{kindMargin, node, ""}] = true
}

// fill adds to a node what was learned of it.
func (f *facts) fill(n *scheduler.Node) {
	n.Speeds, n.LoadRate = f.speeds[n.ID], f.rate[n.ID].Estimate()
	if len(f.loads[n.ID]) == 0 {
		return
	}
	device := n.Accelerator()
	m := f.margins[n.ID]
	if m.known == nil || m.version != n.OllamaVersion || m.device != device {
		m = margins{n.OllamaVersion, device, scheduler.LearnedMargins(f.loads[n.ID], n.OllamaVersion, device)}
		f.margins[n.ID] = m
	}
	n.Margins = m.known
}

// rows are the facts that changed and were not written a moment ago; with all, every one that changed.
func (f *facts) rows(now time.Time, all bool) []ledger.Learned {
	var out []ledger.Learned
	for _, k := range slices.SortedFunc(maps.Keys(f.changed), fact.compare) {
		if !all && now.Sub(f.recorded[k]) < factPause {
			continue
		}
		delete(f.changed, k)
		f.recorded[k] = now
		var value any
		switch k.kind {
		case kindSpeed:
			value = f.speed[k.node][k.subject]
		case kindRate:
			value = f.rate[k.node]
		default:
			value = f.loads[k.node]
		}
		out = append(out, learned(k, now, value))
	}
	return out
}

func (k fact) compare(o fact) int {
	return cmp.Or(cmp.Compare(k.kind, o.kind), cmp.Compare(k.node, o.node), cmp.Compare(k.subject, o.subject))
}

// learned is a row of the ledger; a nil value removes it.
func learned(k fact, now time.Time, value any) ledger.Learned {
	row := ledger.Learned{Kind: k.kind, Node: k.node, Subject: k.subject, Time: now}
	if value != nil {
		row.Value, _ = json.Marshal(value) // plain values: they always marshal
	}
	return row
}

// restore takes in a row from an earlier life. One that does not parse was written by another version and is measured anew.
func (f *facts) restore(row ledger.Learned) error {
	switch row.Kind {
	case kindSpeed:
		var s learn.Speed
		if err := json.Unmarshal(row.Value, &s); err != nil {
			return err
		}
		f.setSpeed(row.Node, row.Subject, s)
	case kindRate:
		var r learn.Rate
		if err := json.Unmarshal(row.Value, &r); err != nil {
			return err
		}
		f.rate[row.Node] = r
	case kindMargin:
		var loads []scheduler.Observation
		if err := json.Unmarshal(row.Value, &loads); err != nil {
			return err
		}
		f.loads[row.Node] = loads
	}
	clear(f.changed)
	return nil
}
