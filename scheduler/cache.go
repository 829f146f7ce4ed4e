package scheduler

import (
	"cmp"
	"math"
)

// windowing is how a family of models mixes layers that keep all tokens with layers that keep a window.
type windowing struct {
	period int  // of so many layers the last keeps all
	first  bool // not the last does, but the first
	engine bool // Ollama's own engine up to 0.2x runs the family and keeps windows; its llama.cpp runner keeps full caches (swa_full)
	least  int  // tokens that the engine keeps whatever the window
	window int  // tokens, where the file does not say it
}

// windowings are the families whose files say only how large the window is. Sources: kvcache and model/models of Ollama
// v0.17.4; for the rest, which only llama-server windows (Ollama 0.30), src/models of llama.cpp.
var windowings = map[string]windowing{
	"gemma3":       {period: 6, engine: true},
	"gemma3n":      {period: 5, engine: true},
	"gptoss":       {period: 2, engine: true, least: 4096},
	"gpt-oss":      {period: 2, engine: true, least: 4096},
	"olmo3":        {period: 4, engine: true},
	"afmoe":        {period: 4},
	"cohere2":      {period: 4},
	"exaone-moe":   {period: 4, window: 128},
	"gemma2":       {period: 2, window: 4096},
	"llama4":       {period: 4, window: 8192},
	"olmo2":        {period: 4},
	"plamo3":       {period: 8},
	"smallthinker": {period: 4, first: true, window: 4096},
}

// padding is what llama.cpp rounds the tokens of a cache up to.
const padding = 256

// checkpoints is how many copies of a recurrent state Ollama's own engine reserves for each slot beside the one in use
// (kvcache.DefaultCheckpointCount, v0.17.4); llama-server keeps its own in the host's memory.
const checkpoints = 24

// checkpointed are the families that the engine runs with such copies.
var checkpointed = map[string]bool{
	"lfm2": true, "lfm2moe": true, "nemotron_h": true, "nemotron_h_moe": true, "qwen35": true, "qwen35moe": true, "qwen3next": true,
}

// cache is what a model keeps between tokens on one node.
type cache struct {
	shape   Shape
	element float64 // bytes of one key or value element
	all     float64 // tokens of a layer that keeps all
	window  float64 // tokens of a layer that keeps a window: that per slot, and one batch
	family  windowing
	windows bool // windowed layers keep only their window
	slots   float64
	copies  float64 // of a recurrent state, for each slot
}

func newCache(s Shape, context, slots int, opts NeedOptions) cache {
	c := cache{shape: s, element: elementBytes(s, opts), slots: float64(slots), copies: 1, all: float64(context) * float64(slots)}
	c.family = windowings[s.Architecture]
	window := float64(cmp.Or(s.SlidingWindow, c.family.window))
	c.windows = window > 0 && (c.family.engine || opts.Rules == RulesRunner)
	if opts.Rules != RulesRunner {
		window = max(window, float64(c.family.least))
		if checkpointed[s.Architecture] {
			c.copies += checkpoints
		}
	}
	c.window = window*c.slots + float64(s.batch(context, opts.Rules))
	if opts.Rules == RulesRunner {
		c.all, c.window = math.Ceil(c.all/padding)*padding, math.Ceil(c.window/padding)*padding
	}
	c.window = min(c.window, c.all)
	return c
}

// total is the sum over all layers, bytes.
func (c cache) total() float64 {
	sum := 0.0
	for i := range c.shape.Layers {
		sum += c.layer(i)
	}
	return sum
}

// layer is what one layer keeps, bytes.
func (c cache) layer(i int) float64 {
	key, value, tokens := c.shape.keyLength(), c.shape.valueLength(), c.all
	if c.windows && c.windowed(i) {
		tokens = c.window
		if c.shape.WindowKey > 0 {
			key = float64(c.shape.WindowKey)
		}
		if c.shape.WindowValue > 0 {
			value = float64(c.shape.WindowValue)
		}
	}
	kept := tokens * (key + value) * c.element * float64(c.shape.kvHeads(i))
	switch state := c.shape.StateBytes; {
	case i < len(state):
		kept += float64(state[i]) * c.slots * c.copies
	case len(state) == 1:
		kept += float64(state[0]) * c.slots * c.copies
	}
	return kept
}

// windowed reports whether a layer keeps only the window: as the file says, else as its family does. Of an unknown
// family every layer counts in full.
func (c cache) windowed(layer int) bool {
	period := c.family.period
	if c.shape.SlidingPattern > 0 {
		period = c.shape.SlidingPattern
	}
	switch {
	case layer < len(c.shape.Windowed):
		return c.shape.Windowed[layer]
	case period <= 1:
		return false
	case c.family.first:
		return layer%period != 0
	default:
		return (layer+1)%period != 0
	}
}

// elementBytes is the size of one KV element; a quantised block of 32 carries its 2-byte scale. Up to 0.2x Ollama falls back
// to f16 for models that it does not run with flash attention (SupportsFlashAttention in fs/ggml).
func elementBytes(s Shape, opts NeedOptions) float64 {
	if opts.Rules != RulesRunner && (s.Pooling || s.Architecture == "gemma2" || s.keyLength() != s.valueLength()) {
		return 2
	}
	switch opts.KVType {
	case "q8_0":
		return 34.0 / 32
	case "q4_0":
		return 18.0 / 32
	default:
		return 2
	}
}
