package oracle

import (
	"math"
	"os"
	"testing"

	parser "github.com/gpustack/gguf-parser-go"
	"github.com/ollama/ollama/fs/ggml"
	"github.com/ollama/ollama/ml"

	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/scheduler"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ggufheader"
	"github.com/loopkeeper/loopkeeper/worker/serve"
)

// load is one way to load a model.
type load struct {
	context, slots int
	kvType         string
}

// loads are the columns that every model is asked for.
var loads = []load{{4096, 1, "f16"}, {8192, 1, "f16"}, {8192, 4, "f16"}, {32768, 1, "f16"}, {32768, 1, "q8_0"}}

// parts is what an oracle says about a load, bytes.
type parts struct{ weights, kv, graph uint64 }

// subject is a model's file as all three read it.
type subject struct {
	ollama *ggml.GGML
	parser *parser.GGUFFile
	shape  scheduler.Shape
}

func open(t *testing.T, m ggufheader.Model) subject {
	t.Helper()
	path := ggufheader.Write(t, m)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := subject{}
	if s.ollama, err = ggml.Decode(file, 1024); err != nil {
		t.Fatalf("Ollama reads %s: %v", m.Name, err)
	}
	if s.parser, err = parser.ParseGGUFFile(path, parser.SkipLargeMetadata(), parser.UseMMap()); err != nil {
		t.Fatalf("gguf-parser reads %s: %v", m.Name, err)
	}
	facts, err := ollama.ReadGGUF(path)
	if err != nil {
		t.Fatal(err)
	}
	shape := fleet.Shape(serve.Shape(facts)) // the whole way that it goes from a worker to the scheduler
	if shape == nil {
		t.Fatalf("%s has no shape: %+v", m.Name, facts)
	}
	s.shape = *shape
	return s
}

// byOllama is Ollama 0.17.4's own estimate with every layer on one device: llm/server.go and GraphSize in fs/ggml.
func (s subject) byOllama(l load) parts {
	flash := ml.FlashAttentionDisabled
	if l.kvType != "f16" || s.ollama.FlashAttention() {
		flash = ml.FlashAttentionEnabled
	}
	kv, partial, full := s.ollama.GraphSize(uint64(l.context), 512, l.slots, l.kvType, flash)
	var p parts
	for _, n := range kv {
		p.kv += n
	}
	layers := s.ollama.Tensors().GroupLayers()
	output := "output"
	if _, ok := layers[output]; !ok {
		output = "token_embd"
	}
	for name, layer := range layers {
		if name == output || name == "output_norm" || len(name) > 4 && name[:4] == "blk." {
			p.weights += layer.Size()
		}
	}
	if p.graph = full; p.graph == 0 {
		p.graph = partial
	}
	if p.graph == 0 {
		p.graph = s.ollama.KV().HeadCountMax() / max(s.ollama.KV().HeadCountKVMin(), 1) * p.kv / 6
	}
	return p
}

// byParser is gguf-parser's estimate of llama.cpp with every layer on one device.
func (s subject) byParser(l load) parts {
	opts := []parser.GGUFRunEstimateOption{
		parser.WithLLaMACppContextSize(int32(l.context * l.slots)), parser.WithParallelSize(int32(l.slots)),
		parser.WithLLaMACppLogicalBatchSize(512), parser.WithLLaMACppPhysicalBatchSize(512), parser.WithFlashAttention(),
	}
	if l.kvType == "q8_0" {
		opts = append(opts, parser.WithLLaMACppCacheKeyType(parser.GGMLTypeQ8_0), parser.WithLLaMACppCacheValueType(parser.GGMLTypeQ8_0))
	}
	device := s.parser.EstimateLLaMACppRun(opts...).Devices[1]
	return parts{weights: uint64(device.Weight.Compute + device.Weight.Output), kv: uint64(device.KVCache.Key + device.KVCache.Value)}
}

func (s subject) ours(l load, rules scheduler.Rules) scheduler.Need {
	return scheduler.NeedFor(s.shape, l.context, l.slots, scheduler.NeedOptions{GPUs: 1, KVType: l.kvType, Rules: rules})
}

// near reports whether two sizes are within a share of the second one.
func near(a, b uint64, share float64) bool {
	return math.Abs(float64(a)-float64(b)) <= share*float64(b)
}
