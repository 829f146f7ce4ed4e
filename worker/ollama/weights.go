package ollama

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/fs/ggml"
)

// Weights is the size of the tensors in bytes, grouped as Ollama places them.
type Weights struct {
	Layers     []int64 // blk.N.*, by N
	Experts    int64   // of Layers: routed experts
	OutputNorm int64
	Output     int64 // the output matrix; token_embd counts here when it is tied (no output.weight in the file)
	Input      int64 // the input embeddings: they stay on the CPU, so they count in no device's need
	Other      int64 // what belongs to none of these; counted with the need to be safe
}

// Need is what has to be in a device's memory for the whole model: every layer, output_norm, output and other tensors.
func (w Weights) Need() int64 {
	sum := w.OutputNorm + w.Output + w.Other
	for _, b := range w.Layers {
		sum += b
	}
	return sum
}

// tensor is one tensor of a file.
type tensor struct {
	name  string
	bytes int64
	known bool // its size is
}

// countWeights sums the tensors by group and returns the sum of all. The grouping is Ollama 0.17.4's (llm/server.go).
func (f *Facts) countWeights(tensors []tensor) int64 {
	var all int64
	if len(tensors) == 0 {
		f.noteUnknown("Weights")
	}
	untied := slices.ContainsFunc(tensors, func(t tensor) bool { return t.name == "output.weight" })
	f.Weights.Layers = make([]int64, max(f.BlockCount, 0))
	for _, t := range tensors {
		if !t.known || all > math.MaxInt64-t.bytes {
			f.noteUnknown("Weights")
			continue
		}
		all += t.bytes
		f.count(t.name, t.bytes, untied)
	}
	return all
}

func (f *Facts) count(name string, size int64, untied bool) {
	w := &f.Weights
	switch layer := layerOf(name); {
	case layer >= 0 && layer < len(w.Layers):
		w.Layers[layer] += size
		if strings.Contains(name, "_exps.") {
			w.Experts += size
		}
	case strings.HasPrefix(name, "output_norm."):
		w.OutputNorm += size
	case strings.HasPrefix(name, "output."):
		w.Output += size
	case strings.HasPrefix(name, "token_embd."):
		w.Input += size
		if !untied {
			w.Output += size
		}
	case isInput(name):
		w.Input += size
	case strings.HasPrefix(name, "v."), strings.HasPrefix(name, "mm."), strings.HasPrefix(name, "a."):
		f.ProjectorBytes += size
	default:
		w.Other += size
	}
}

// isInput reports whether a tensor is used with the input embedding, and so on the CPU (ml/backend/ggml of Ollama 0.17.4,
// llama.cpp the same).
func isInput(name string) bool {
	part, _, _ := strings.Cut(name, ".")
	return slices.Contains([]string{"position_embd", "token_embd_norm", "token_norm_embd", "token_types"}, part)
}

// layerOf is N of blk.N., else -1.
func layerOf(name string) int {
	rest, ok := strings.CutPrefix(name, "blk.")
	number, _, dot := strings.Cut(rest, ".")
	n, err := strconv.Atoi(number)
	if !ok || !dot || err != nil || n < 0 {
		return -1
	}
	return n
}

func (f *Facts) noteUnknown(field string) {
	if !slices.Contains(f.Unknown, field) {
		f.Unknown = append(f.Unknown, field)
	}
}

// tensorBytes is elements × bytes of the type's block / elements of the block, from Ollama's own table.
func tensorBytes(t api.Tensor) (int64, bool) {
	kind, err := ggml.ParseTensorType(t.Type)
	if err != nil {
		return 0, false
	}
	return sizeOf(t.Shape, kind)
}

// maxElements is more than any tensor has; sizes beyond it are not believed, so that none wraps around.
const maxElements = 1 << 48

func sizeOf(shape []uint64, kind ggml.TensorType) (int64, bool) {
	elements := uint64(1)
	for _, n := range shape {
		if n > 0 && elements > maxElements/n {
			return 0, false
		}
		elements *= n
	}
	return int64(elements * kind.TypeSize() / kind.BlockSize()), kind.TypeSize() > 0
}
