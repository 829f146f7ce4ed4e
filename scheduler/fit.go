package scheduler

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rules names the behaviour of a generation of Ollama that a fit has to respect.
type Rules string

// The rule sets.
const (
	RulesClassic Rules = "classic" // 0.2x and older: Ollama estimates layer by layer, as NeedFor does
	RulesRunner  Rules = "runner"  // 0.30 and newer: it evicts when its own prediction exceeds 80 % of free memory
)

// RuleSet (rule 3) is the rule set of an Ollama version such as "0.17.4". A version that cannot be read gets RulesRunner, because
// a fit under those is a fit under both.
func RuleSet(version string) Rules {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errMajor := strconv.Atoi(major)
	b, errMinor := strconv.Atoi(minor)
	if errMajor == nil && errMinor == nil && a == 0 && b > 0 && b < 30 {
		return RulesClassic
	}
	return RulesRunner
}

// runnerShare is how much of the free memory Ollama 0.30 lets a model take beside others.
const runnerShare = 0.8

// predictRunner is what Ollama 0.30 takes a model for, in bytes: the file and an f16 cache, neither graph nor projector.
func predictRunner(fileBytes uint64, s Shape, context, slots int) uint64 {
	head := float64(s.EmbeddingLength / max(s.Heads, 1))
	kv := 2 * float64(s.Layers) * s.kvHeadsLeast() * head * float64(context) * float64(slots) * 2
	return toBytes(float64(max(fileBytes, s.WeightBytes)) + kv)
}

// Context is the number of tokens per slot that a model is loaded with: what was asked, else the default, and never
// more than the model's own maximum, because Ollama reloads when the unclamped numbers differ.
func Context(model Model, asked int, limits Limits) int {
	return contextOf(model.Shape, asked, limits)
}

func contextOf(shape *Shape, asked int, limits Limits) int {
	if asked <= 0 {
		asked = limits.DefaultContext
	}
	if asked <= 0 {
		asked = 8192
	}
	if shape != nil && shape.ContextLength > 0 {
		return min(asked, shape.ContextLength)
	}
	return asked
}

// oneSlot are the architectures that Ollama never runs in parallel.
var oneSlot = []string{"mllama", "qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe", "qwen3next", "lfm2", "lfm2moe", "nemotron_h", "nemotron_h_moe"}

// slotsOf is how many calls of a model the node runs at once. model may be nil.
func slotsOf(node *Node, model *Model, shape *Shape) int {
	if model != nil && model.Embedding || shape != nil && slices.Contains(oneSlot, shape.Architecture) {
		return 1
	}
	return max(node.Slots, 1)
}

// loadTime is how long a load takes until it is measured: 3 s and a second per GiB, a slow NVMe or a fast SATA disk.
func loadTime(weights uint64) time.Duration {
	return 3*time.Second + time.Duration(weights/(1<<20))*time.Second/1024
}

// maxWait is the bound after which a waiting model may displace a loaded one.
func (l Limits) maxWait(weights uint64) time.Duration {
	if l.MaxWait > 0 {
		return l.MaxWait
	}
	return max(time.Minute, 4*loadTime(weights))
}

// fit is how one model at one context relates to one node, apart from what is loaded and running there now.
type fit struct {
	model   *Model // as pulled there; nil when it is not
	digest  string
	shape   *Shape // from any node; nil while unknown
	context int
	slots   int
	weights uint64
	needs   []Need // for one device, two, ...; one entry on a host pool; nil while shape or memory is unknown
	predict uint64 // Ollama's own prediction when RulesRunner apply, else 0
	most    int    // largest context that fits an empty node; computed only when context does not
	room    room   // on an empty node
}

// room is the outcome of packing a model into the memory of a node, in bytes.
type room struct {
	ok        bool
	need      uint64
	available uint64
	short     uint64
}

// fitOn looks at a model by name on one node.
func fitOn(h *host, name string, asked int, shapes catalog, limits Limits) *fit {
	f := &fit{model: findName(h.Node, name), digest: shapes.digestByName[name]}
	if f.model != nil {
		f.digest = f.model.Digest
	}
	f.shape = shapes.byDigest[f.digest]
	f.context = contextOf(f.shape, asked, limits)
	f.slots = slotsOf(h.Node, f.model, f.shape)
	if f.model != nil {
		f.weights = f.model.FileBytes
	}
	if !f.shape.believable() || !h.memory.known {
		return f
	}
	f.weights = f.shape.WeightBytes
	f.needs = needsOn(h, f.shape, f.context, f.slots)
	if RuleSet(h.OllamaVersion) == RulesRunner {
		f.predict = predictRunner(f.weights, *f.shape, f.context, f.slots)
		if f.model != nil {
			f.predict = predictRunner(f.model.FileBytes, *f.shape, f.context, f.slots)
		}
	}
	f.room = f.pack(h.memory.empties(), math.MaxUint64)
	if !f.room.ok {
		f.most = largestContext(h, f)
	}
	return f
}

func needsOn(h *host, shape *Shape, context, slots int) []Need {
	needs := make([]Need, len(h.memory.pools))
	for n := range needs {
		needs[n] = NeedFor(*shape, context, slots, h.memory.options(h.Node, n+1))
	}
	return needs
}

// pack tries the fewest devices, those with the most room first, as Ollama does. Each further device may lose up to one
// layer of room, and all devices together have no more than bound. When nothing fits it reports the nearest miss. It
// sorts available.
func (f *fit) pack(available []uint64, bound uint64) room {
	slices.SortFunc(available, func(a, b uint64) int { return cmp.Compare(b, a) })
	var sum uint64
	var nearest room
	for n, need := range f.needs {
		sum += available[n]
		if n > 0 {
			sum = below(sum, f.shape.largestLayer())
		}
		r := room{need: need.Total(), available: min(sum, bound)}
		r.short = below(r.need, r.available)
		r.ok = r.short == 0
		if r.ok {
			return r
		}
		if n == 0 || r.short < nearest.short {
			nearest = r
		}
	}
	return nearest
}

// largestContext is the largest context in tokens, in steps of 256, that fits the empty node; 0 when none does.
func largestContext(h *host, f *fit) int {
	const step = 256
	available := h.memory.empties()
	fits := func(context int) bool {
		probe := fit{shape: f.shape, needs: needsOn(h, f.shape, context, f.slots)}
		return probe.pack(slices.Clone(available), math.MaxUint64).ok
	}
	low, high := 0, f.context/step // low fits (0 trivially), high+1 does not matter: f.context is known not to fit
	for low < high {
		middle := (low + high + 1) / 2
		if fits(middle * step) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low * step
}

// catalog knows the shapes of the fleet: a shape belongs to a digest, whichever node reported it.
type catalog struct {
	byDigest     map[string]*Shape
	digestByName map[string]string
}

// catalogOf reads nodes in order; the first believable shape of a digest wins, and the first such digest of a name.
func catalogOf(nodes []*Node) catalog {
	c := catalog{byDigest: map[string]*Shape{}, digestByName: map[string]string{}}
	for _, node := range nodes {
		for i := range node.Models {
			m := &node.Models[i]
			if !m.Shape.believable() {
				continue
			}
			if _, ok := c.byDigest[m.Digest]; !ok {
				c.byDigest[m.Digest] = m.Shape
			}
			if name := tagged(m.Name); c.digestByName[name] == "" {
				c.digestByName[name] = m.Digest
			}
		}
	}
	return c
}

// tagged is a model name with its tag: "llama3" is "llama3:latest".
func tagged(name string) string {
	if strings.LastIndexByte(name, ':') > strings.LastIndexByte(name, '/') {
		return name
	}
	return name + ":latest"
}

func findName(node *Node, name string) *Model {
	for i := range node.Models {
		if tagged(node.Models[i].Name) == name {
			return &node.Models[i]
		}
	}
	return nil
}

func findDigest(node *Node, digest string) *Model {
	for i := range node.Models {
		if node.Models[i].Digest == digest {
			return &node.Models[i]
		}
	}
	return nil
}
