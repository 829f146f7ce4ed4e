package residency

import (
	"fmt"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// ollama#10948, llama-swap#612: two models that cannot be resident together, asked for in turns. They are batched, not alternated:
// 40 calls that arrive over a minute cost at most four loads. Two of 14B on a card of 12 GiB, from a SATA disk, so that a load takes
// 18 seconds, and calls of two seconds.
func TestTwoModelsOnOneCardAreBatchedAndNotAlternated(t *testing.T) {
	const first, second = "qwen2.5:14b", "phi:14b"
	slow := ollamatest.Config{Memory: 12 << 30, LoadSpeed: 480 << 20, PromptRate: 2000, DecodeRate: 10,
		Models: []ollamatest.Model{fourteen(first), fourteen(second)}}
	live(t, func(t *testing.T, h *house) {
		var runs []string
		for i := range 40 {
			runs = append(runs, h.submit([]string{first, second}[i%2], nil, report(i)))
			time.Sleep(1500 * time.Millisecond)
		}
		for _, id := range runs {
			h.end(id)
		}
		if n := h.loads(); n < 2 || n > 4 {
			t.Errorf("%d loads", n)
		}
		var longest time.Duration
		for _, c := range h.stands[0].Calls() {
			if c.DoneReason == "stop" {
				longest = max(longest, c.Ended.Sub(c.Started))
			}
		}
		if longest > 3*time.Second {
			t.Errorf("a call took %s: it waited in Ollama's own queue", longest)
		}
		if got := h.incidents(); len(got) > 0 {
			t.Errorf("%q", got)
		}
	}, slow)
}

// ollama#8903, #9977, Aider#4687: other options of a client, another context, another load. A run has one context for a model.
func TestOtherContextsWithinARunForceNoReload(t *testing.T) {
	live(t, func(t *testing.T, h *house) {
		for i, tokens := range []int{0, 4096, 0, 2048} {
			more := map[string]any{}
			if tokens > 0 {
				more["options"] = map[string]any{"num_ctx": tokens}
			}
			long := h.submit(writer, nil, reports(30)...) // it is open all the time
			short := h.submit(writer, more, report(i))
			h.end(short)
			h.end(long)
		}
		if n := h.loads(); n != 1 {
			t.Errorf("%d loads", n)
		}
		for _, c := range h.stands[0].Calls() {
			if c.Options["num_ctx"] != 8192.0 && c.DoneReason != "unload" {
				t.Errorf("call %d was sent with %v", c.N, c.Options["num_ctx"])
			}
		}
	}, card(8))
}

// ollama#13235: memory runs out when models are loaded one after another. Each is measured before the next is begun.
func TestVRAMDoesNotRunOutLoadingOneAfterAnother(t *testing.T) {
	live(t, func(t *testing.T, h *house) {
		a, b := h.submit(writer, nil, reports(5)...), h.submit(judge, nil, reports(5)...)
		h.end(a)
		h.end(b)
		if n := h.loads(); n != 2 {
			t.Errorf("%d loads", n)
		}
		var loading []string
		for _, c := range h.stands[0].Calls() {
			if c.DoneReason == "load" {
				loading = append(loading, fmt.Sprint(c.Started.Format("05"), "-", c.Ended.Format("05")))
				for _, o := range h.stands[0].Calls() {
					if o.DoneReason == "load" && o.N > c.N && o.Started.Before(c.Ended) {
						t.Errorf("two loads at once: %v", loading)
					}
				}
			}
		}
	}, card(24))
}

// fourteen is a model with the shape of qwen2.5:14b.
func fourteen(name string) ollamatest.Model {
	return ollamatest.Model{Name: name, Family: "qwen2", Parameters: "14.8B", Quant: "Q4_K_M", Layers: 48, Embedding: 5120, FeedForward: 13824, Heads: 40,
		KVHeads: 8, HeadDim: 128, Vocab: 152064, Context: 32768, Capabilities: []string{"completion"}}
}
