package ollama

import (
	"context"
	"strings"

	"github.com/ollama/ollama/api"
)

// Facts is what a model's file says about itself, enough to compute its memory need. Everything is per digest and
// never changes; callers share it and must not write to it. A number that the file does not tell is 0, and its name is
// in Unknown: unknown is not zero.
type Facts struct {
	Name         string // the name it was asked under
	Digest       string
	Size         int64    // bytes of all blobs on disk
	Architecture string   // such as llama, qwen3, gemma3
	Quantisation string   // such as Q4_K_M
	Capabilities []string // Ollama's words: completion, embedding, thinking, tools, vision, insert
	Parameters   map[string][]string
	Control      []string // texts that the tokenizer turns into control tokens wherever they stand; nil: the file does not tell
	Weights      Weights

	BlockCount        int   // layers
	EmbeddingLength   int   // width of the model
	FeedForwardLength []int // per layer, or one for all
	HeadCount         []int // attention heads: per layer, or one for all
	HeadCountKV       []int // heads with a KV cache: per layer (0 on layers without), or one for all
	KeyLength         int   // per head; when unknown it is embedding length / heads
	ValueLength       int
	ContextLength     int   // tokens that the model was trained for
	Experts           int   // routed experts per layer; 0: none
	ExpertsUsed       int   // of those, for one token
	StateBytes        []int // what each layer keeps per slot whatever the context: recurrent state, pictures; nil: nothing
	Pooling           bool  // makes embeddings
	VocabSize         int
	NumCtx            int // num_ctx from the Modelfile; 0: it sets none
	NumBatch          int // num_batch from the Modelfile; 0: it sets none

	SlidingWindow        int    // tokens that a windowed layer keeps; 0 and not in Unknown: no such layers
	SlidingWindowPattern []bool // which layers are windowed, where the file says it per layer
	SlidingWindowPeriod  int    // every so many layers one is global, where the file says that
	WindowKeyLength      int    // per head on windowed layers; 0: KeyLength
	WindowValueLength    int

	ProjectorBytes int64 // vision or audio part: tensors in the file, else an upper bound from the blob sizes
	AdapterBytes   int64 // upper bound from the blob sizes, when the Modelfile names adapters

	Unknown []string // names of the fields above that the file does not tell
}

// Known returns the facts of a model if Facts has read them before; it asks nobody.
func (c *Client) Known(m Model) (Facts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.facts[m.Digest]
	f.Name = m.Name
	return f, ok && m.Digest != ""
}

// Facts returns the facts of a model, asking the server once per digest. A remote model is ModelMissing.
func (c *Client) Facts(ctx context.Context, m Model) (Facts, error) {
	if f, ok := c.Known(m); ok {
		return f, nil
	}
	op := "show " + m.Name
	show, err := c.api.Show(ctx, &api.ShowRequest{Model: m.Name, Verbose: true})
	if err != nil {
		return Facts{}, classify(ctx, op, err)
	}
	if show.RemoteHost != "" || show.RemoteModel != "" {
		return Facts{}, &Error{Kind: ModelMissing, Op: op, Message: "it is a remote model"}
	}
	f := factsOf(m, show)
	c.mu.Lock()
	c.facts[m.Digest] = f
	c.mu.Unlock()
	return f, nil
}

// factsOf reads an answer to /api/show with verbose set; without verbose the arrays would be missing.
func factsOf(m Model, show *api.ShowResponse) Facts {
	f := Facts{Name: m.Name, Digest: m.Digest, Size: m.Size, Parameters: parameters(show.Parameters),
		Quantisation: firstNonEmpty(show.Details.QuantizationLevel, m.Quantisation)}
	for _, c := range show.Capabilities {
		f.Capabilities = append(f.Capabilities, string(c))
	}
	f.NumCtx, f.NumBatch = firstInt(f.Parameters["num_ctx"]), firstInt(f.Parameters["num_batch"])
	f.readInfo(show.ModelInfo)
	f.Control = controlStrings(show.ModelInfo)
	tensors := make([]tensor, len(show.Tensors))
	for i, t := range show.Tensors {
		tensors[i].name = t.Name
		tensors[i].bytes, tensors[i].known = tensorBytes(t)
	}
	f.countExtras(show, f.countWeights(tensors))
	return f
}

// countExtras attributes what is on disk beyond the main file's tensors. A projector or an adapter is a blob of its own
// whose size no API tells; the rest of the blobs (vocabulary, template, licence) is small, so the difference is an upper bound.
func (f *Facts) countExtras(show *api.ShowResponse, tensors int64) {
	rest := max(0, f.Size-tensors)
	switch {
	case len(show.ProjectorInfo) > 0:
		f.ProjectorBytes += rest
	case strings.Contains(show.Modelfile, "\nADAPTER "):
		f.AdapterBytes = rest
	}
}
