package engine

import (
	"cmp"
	"slices"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// NodeLimits are what a person leaves of a node.
type NodeLimits struct {
	Reserve  uint64 // bytes kept free in each of its pools; 0 leaves that to the node and the scheduler's limits
	MaxCalls int    // calls at once, over all its models; 0: no cap

	// What its Ollama is set to, which no API tells: OLLAMA_KV_CACHE_TYPE ("" is f16) and OLLAMA_GPU_OVERHEAD (bytes per device).
	KVType      string
	GPUOverhead uint64
}

func (e *Engine) limitsOf(n *scheduler.Node) NodeLimits {
	if l, ok := e.o.Nodes[n.ID]; ok {
		return l
	}
	return e.o.Nodes[n.Name]
}

// fill puts the limits into a node. What its owner keeps free there is kept in any case.
func (l NodeLimits) fill(n *scheduler.Node) {
	n.MaxCalls = l.MaxCalls
	n.KVType, n.GPUOverhead = cmp.Or(l.KVType, n.KVType), max(n.GPUOverhead, l.GPUOverhead)
	if l.Reserve == 0 {
		return
	}
	n.Pools = slices.Clone(n.Pools)
	for i := range n.Pools {
		n.Pools[i].Reserve = max(n.Pools[i].Reserve, l.Reserve)
	}
}
