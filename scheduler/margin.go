package scheduler

import (
	"cmp"
	"slices"
	"strings"
)

// The margin before anything was observed: a share of the need, and no less than so many bytes.
const (
	marginShare = 0.03
	marginLeast = 256 << 20
)

// Observation is one load that was measured: what the model was taken for, and by how much the free memory of the device
// went down meanwhile. It is kept by all of its fields but the two sizes.
type Observation struct {
	MarginKey
	Version  string // of Ollama
	Device   string // Node.Accelerator
	Need     uint64 // bytes, without margin
	Observed uint64 // bytes
}

// LearnedMargins is what a node with this Ollama and these devices needs beyond the computed need, by load: the 95th
// percentile of observed − need, by nearest rank, and never below zero. Loads that were never observed are not in it.
func LearnedMargins(loads []Observation, version, device string) map[MarginKey]uint64 {
	excess := map[MarginKey][]uint64{}
	for _, o := range loads {
		if o.Version == version && o.Device == device {
			excess[o.MarginKey] = append(excess[o.MarginKey], below(o.Observed, o.Need))
		}
	}
	margins := make(map[MarginKey]uint64, len(excess))
	for key, all := range excess {
		slices.Sort(all)
		margins[key] = all[(95*len(all)+99)/100-1]
	}
	return margins
}

// marginOf is what is set aside beyond a need in bytes: what was learned, else a guess.
func marginOf(need uint64, learned Bytes) uint64 {
	if learned.Known {
		return learned.N
	}
	return max(toBytes(float64(need)*marginShare), marginLeast)
}

// learned is the margin of a load on the node, unknown until one was observed.
func (n *Node) learned(digest string, context, slots int) Bytes {
	margin, ok := n.Margins[MarginKey{Digest: digest, Context: context, Slots: slots}]
	return Bytes{N: margin, Known: ok}
}

// Accelerator names the devices that models of the node go to, in the order of their names; empty when it has none.
func (n *Node) Accelerator() string {
	pools, kind := modelPools(n)
	if kind == PoolHost {
		return ""
	}
	var names []string
	for _, d := range n.Devices {
		if d.Usable && slices.ContainsFunc(pools, func(p Pool) bool { return p.ID == d.Pool }) {
			names = append(names, d.Name)
		}
	}
	slices.SortFunc(names, cmp.Compare[string])
	return strings.Join(names, " + ")
}
