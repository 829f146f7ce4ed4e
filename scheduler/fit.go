package scheduler

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

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

// Slots is how many calls of a model a node runs at once.
func Slots(node Node, model Model) int { return slotsOf(&node, &model, model.Shape) }

// slotsOf is how many calls of a model the node runs at once. model may be nil.
func slotsOf(node *Node, model *Model, shape *Shape) int {
	if alone(model, shape) {
		return 1
	}
	return max(node.Slots, 1)
}

// mostAtOnce is how many calls at once are reckoned with, on a model or a node, whatever a report says: time and memory of a plan must not
// depend on a senseless figure. What the model needs is computed for the slots that are said.
const mostAtOnce = 1024

// parallel is how many calls at once are reckoned with.
func (f *fit) parallel() int { return min(f.slots, mostAtOnce) }

// alone reports whether Ollama runs one call of a model at a time. Both may be nil.
func alone(model *Model, shape *Shape) bool {
	return model != nil && model.Embedding || shape != nil && (shape.Pooling || slices.Contains(oneSlot, shape.Architecture))
}

// loadTime is how long a load takes until it is measured: 3 s and a second per GiB, a slow NVMe or a fast SATA disk.
func loadTime(weights uint64) time.Duration {
	return 3*time.Second + time.Duration(weights/(1<<20))*time.Second/1024
}

// fit is how one model at one context relates to one node, apart from what is loaded and running there now.
type fit struct {
	model   *Model // as pulled there; nil when it is not
	digest  string
	other   bool   // a model of the name is pulled there, but not the one of the digest that is asked for
	shape   *Shape // from any node; nil while unknown
	context int
	slots   int
	file    uint64 // size of its file; 0 when it is not there
	weights uint64
	needs   []Need   // for one device, two, ...; one entry on a host pool; nil while shape or memory is unknown
	units   []uint64 // pieces that stay together, when there are devices to split over
	predict uint64   // Ollama's own prediction when RulesRunner apply, else 0
	most    int      // largest context that fits an empty node; computed only when context does not
	room    room     // on an empty node
}

// room is the outcome of packing a model into the memory of a node, in bytes.
type room struct {
	ok        bool
	devices   int // that it is packed on
	need      uint64
	available uint64
	short     uint64
}

// fitOn looks at a model by name on one node; by digest too, unless that is empty.
func fitOn(h *host, name, digest string, asked int, shapes catalog, limits Limits) *fit {
	f := &fit{model: findName(h.Node, name), digest: cmp.Or(digest, shapes.digestByName[name])}
	if digest != "" && f.model != nil && f.model.Digest != digest {
		f.model, f.other = nil, true
	}
	if f.model != nil {
		f.digest, f.file = f.model.Digest, f.model.FileBytes
	}
	f.shape = shapes.byDigest[f.digest]
	f.slots = slotsOf(h.Node, f.model, f.shape)
	f.measure(h, contextOf(f.shape, asked, limits))
	if len(f.needs) > 0 && !f.room.ok {
		f.most = largestContext(f.context, func(context int) bool { return f.at(h, context).room.ok })
	}
	return f
}

// measure computes what the model takes at a context.
func (f *fit) measure(h *host, context int) {
	f.context, f.weights = context, f.file
	if !f.shape.believable() || !h.memory.known {
		return
	}
	if RuleSet(h.OllamaVersion) == RulesRunner {
		f.predict = predictRunner(f.file, *f.shape, context, f.slots)
	}
	f.weights = f.shape.WeightBytes
	f.needs = make([]Need, len(h.memory.pools))
	for n := range f.needs {
		opts := h.memory.options(h.Node, n+1, f.digest, context, f.slots)
		f.needs[n] = NeedFor(*f.shape, context, f.slots, opts)
		if n == 1 {
			f.units = units(*f.shape, context, f.slots, opts, f.needs[n])
		}
	}
	f.room = f.pack(h.memory.empties(), math.MaxUint64)
}

// at is the same model on the same node at another context.
func (f *fit) at(h *host, context int) *fit {
	other := &fit{model: f.model, digest: f.digest, shape: f.shape, slots: f.slots, file: f.file}
	other.measure(h, context)
	return other
}

// pack tries the fewest devices, those with the most room first, as Ollama does; all devices together have no more than
// bound. When nothing fits it reports the nearest miss. It sorts available.
func (f *fit) pack(available []uint64, bound uint64) room {
	slices.SortFunc(available, func(a, b uint64) int { return cmp.Compare(b, a) })
	var nearest room
	for n, need := range f.needs {
		r := f.packOn(available[:n+1], need, bound)
		if r.ok {
			return r
		}
		if n == 0 || r.short < nearest.short {
			nearest = r
		}
	}
	return nearest
}

// packOn packs the model onto all of the given devices. What whole layers leave over at the end of a device counts as not
// available.
func (f *fit) packOn(available []uint64, need Need, bound uint64) room {
	r := room{devices: len(available), need: need.Total()}
	var sum uint64
	for _, a := range available {
		sum += a
	}
	r.available = min(sum, bound)
	r.short = below(r.need, r.available)
	if r.short == 0 && len(available) > 1 {
		r.short = unplaced(f.units, available, (need.Graph+need.Constant+need.Margin)/uint64(len(available)))
		if r.short > 0 {
			r.available = below(r.need, r.short)
		}
	}
	r.ok = r.short == 0
	return r
}

// unplaced is how much of the units does not go onto the devices, bytes, when one after the other is put onto the first
// device that the ones before left room on. Every device gives each beforehand.
func unplaced(units, available []uint64, each uint64) uint64 {
	device, left := 0, below(available[0], each)
	for i, unit := range units {
		for unit > left {
			if device++; device == len(available) {
				var rest uint64
				for _, u := range units[i:] {
					rest += u
				}
				return rest
			}
			left = below(available[device], each)
		}
		left -= unit
	}
	return 0
}

// contextStep is the step in which a largest context is looked for, tokens.
const contextStep = 256

// largestContext is the largest context in tokens, up to most and in steps of contextStep or exactly most, that fits; 0
// when none does. What a model takes never shrinks with its context.
func largestContext(most int, fits func(context int) bool) int {
	if fits(most) {
		return most
	}
	low, high := 0, (most-1)/contextStep // low fits (0 trivially)
	for low < high {
		middle := (low + high + 1) / 2
		if fits(middle * contextStep) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low * contextStep
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
