package scheduler

import (
	"fmt"
	"strings"
	"time"
)

// Builders for snapshots, and a readable form of a plan, shared by the tests.

const giB = 1 << 30

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func known(n float64) Bytes { return Bytes{N: uint64(n * giB), Known: true} }

// gpuNode has one discrete card of total GiB of which free are free.
func gpuNode(id string, total, free float64, models ...Model) Node {
	return Node{
		ID: id, Name: id, State: NodeUp, LastSeen: noon, OllamaVersion: "0.17.4", Slots: 1, Models: models,
		Pools: []Pool{
			{ID: "host", Kind: PoolHost, Total: known(64), Free: known(50)},
			{ID: "gpu0", Kind: PoolDevice, Total: known(total), Free: known(free)},
		},
		Devices: []Device{{Name: "card", Pool: "gpu0", Usable: true}},
	}
}

func hostNode(id string, total, free float64, models ...Model) Node {
	return Node{
		ID: id, Name: id, State: NodeUp, LastSeen: noon, OllamaVersion: "0.17.4", Slots: 1, Models: models,
		Pools: []Pool{{ID: "host", Kind: PoolHost, Total: known(total), Free: known(free)}},
	}
}

func model(name string, shape Shape) Model {
	return Model{Name: name, Digest: "sha256:" + name, FileBytes: shape.WeightBytes, Shape: &shape}
}

// loadedAt is the model wholly in device memory at the default context, as Ollama would report it.
func loadedAt(m Model, context, slots, busy int, since time.Duration) Loaded {
	need := NeedFor(*m.Shape, context, slots, NeedOptions{GPUs: 1})
	size := need.Total() - need.Margin
	return Loaded{
		Digest: m.Digest, Name: m.Name, Context: context, SizeBytes: size, VRAMBytes: size, Busy: busy,
		Since: noon.Add(-since), LastUsed: noon.Add(-since / 2),
	}
}

// load puts a model into the node's card and takes it off the free memory.
func (n Node) load(l Loaded) Node {
	n.Loaded = append(n.Loaded, l)
	for i := range n.Pools {
		if n.Pools[i].Kind == PoolDevice || len(n.Pools) == 1 {
			n.Pools[i].Free.N = below(n.Pools[i].Free.N, l.SizeBytes)
			break
		}
	}
	return n
}

func tasks(n int, model string, age time.Duration) []Task {
	out := make([]Task, n)
	for i := range out {
		out[i] = Task{Key: fmt.Sprintf("%s/%d", model, i+1), Run: "run", Model: model, Ready: noon.Add(-age)}
	}
	return out
}

// transcript is a plan for people: what a reviewer reads in testdata.
func transcript(plan Plan) string {
	var b strings.Builder
	for _, d := range plan.Decisions {
		fmt.Fprintf(&b, "%s", d.Action)
		if d.Node != "" {
			fmt.Fprintf(&b, " on %s", d.Node)
		}
		fmt.Fprintf(&b, " %s", d.Model)
		if d.Action == Load {
			fmt.Fprintf(&b, " (claims %s)", gib(d.Need))
		}
		fmt.Fprintf(&b, " for %s", d.Task)
		if d.Why.Wait != "" {
			fmt.Fprintf(&b, " [%s]", d.Why.Wait)
		}
		fmt.Fprintf(&b, "\n%s\n", d.Why)
	}
	return b.String()
}

// actions is a plan in short: "start alpha a/1", "wait slot a/2".
func actions(plan Plan) []string {
	var out []string
	for _, d := range plan.Decisions {
		switch d.Action {
		case Start:
			out = append(out, "start "+d.Node+" "+d.Task)
		case Load, Unload:
			out = append(out, string(d.Action)+" "+d.Node+" "+d.Model)
		case Wait:
			out = append(out, "wait "+string(d.Why.Wait)+" "+d.Task)
		case Impossible:
			out = append(out, "impossible "+d.Task)
		}
	}
	return out
}
