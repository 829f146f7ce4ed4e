package ollama

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// showing serves one answer to /api/show and counts how often it was asked.
func showing(t *testing.T, body string) (*Client, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return client(t, s.URL), &asked
}

// Block sizes are those of the GGUF format: Q4_K has 144 bytes for 256 elements, Q6_K 210, Q8_0 34 for 32, F16 2, F32 4.
func TestWeightsByGroup(t *testing.T) {
	const body = `{"details":{"quantization_level":"Q4_K_M"},"capabilities":["completion","thinking"],
		"parameters":"num_ctx                        8192\nstop                           \"<|im_end|>\"\nstop                           \"x y\"",
		"model_info":{"general.architecture":"qwen3","qwen3.block_count":2,"qwen3.embedding_length":512,"qwen3.attention.head_count":8,
			"qwen3.attention.head_count_kv":[2,0],"qwen3.attention.key_length":64,"qwen3.attention.value_length":64,"qwen3.context_length":40960,
			"qwen3.attention.sliding_window":1024,"qwen3.attention.sliding_window_pattern":[true,false],
			"qwen3.feed_forward_length":1024,"tokenizer.ggml.tokens":["a","b","c"]},
		"tensors":[
			{"name":"token_embd.weight","type":"Q4_K","shape":[512,1000]},
			{"name":"blk.0.attn_q.weight","type":"Q4_K","shape":[512,512]},
			{"name":"blk.0.attn_norm.weight","type":"F32","shape":[512]},
			{"name":"blk.1.ffn_up.weight","type":"Q8_0","shape":[512,1024]},
			{"name":"output_norm.weight","type":"F32","shape":[512]},
			{"name":"output.weight","type":"Q6_K","shape":[512,1000]},
			{"name":"v.blk.0.attn_q.weight","type":"F16","shape":[10,10]},
			{"name":"rope_freqs.weight","type":"F32","shape":[64]}]}`
	c, asked := showing(t, body)
	m := Model{Name: "q", Digest: "d1", Size: 10 << 20}
	f, err := c.Facts(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	want := Weights{
		Layers:     []int64{512*512/256*144 + 512*4, 512 * 1024 / 32 * 34},
		OutputNorm: 512 * 4, Output: 512 * 1000 / 256 * 210, Input: 512 * 1000 / 256 * 144, Other: 64 * 4,
	}
	if !slices.Equal(f.Weights.Layers, want.Layers) || f.Weights.OutputNorm != want.OutputNorm || f.Weights.Output != want.Output ||
		f.Weights.Input != want.Input || f.Weights.Other != want.Other {
		t.Errorf("%+v, want %+v", f.Weights, want)
	}
	if need := want.Layers[0] + want.Layers[1] + want.OutputNorm + want.Output + want.Other; f.Weights.Need() != need {
		t.Errorf("need %d, want %d: the input embedding stays on the CPU", f.Weights.Need(), need)
	}
	if f.ProjectorBytes != 200 || f.BlockCount != 2 || f.EmbeddingLength != 512 || f.ContextLength != 40960 || f.VocabSize != 3 || f.NumCtx != 8192 ||
		f.SlidingWindow != 1024 || !slices.Equal(f.SlidingWindowPattern, []bool{true, false}) || f.Architecture != "qwen3" || f.KeyLength != 64 ||
		!slices.Equal(f.HeadCount, []int{8}) || !slices.Equal(f.HeadCountKV, []int{2, 0}) || !slices.Equal(f.FeedForwardLength, []int{1024}) || f.Quantisation != "Q4_K_M" {
		t.Errorf("%+v", f)
	}
	if !slices.Equal(f.Parameters["stop"], []string{"<|im_end|>", "x y"}) || !slices.Equal(f.Capabilities, []string{"completion", "thinking"}) || f.Unknown != nil {
		t.Errorf("parameters %q, capabilities %q, unknown %q", f.Parameters, f.Capabilities, f.Unknown)
	}
	m.Name = "other-name"
	if again, err := c.Facts(t.Context(), m); err != nil || again.Name != "other-name" || asked.Load() != 1 {
		t.Errorf("asked %d times for one digest: %v", asked.Load(), err)
	}
}

func TestTiedOutputCountsTheEmbedding(t *testing.T) {
	c, _ := showing(t, `{"model_info":{"general.architecture":"llama","llama.block_count":1},"tensors":[{"name":"token_embd.weight","type":"F16","shape":[8,10]}]}`)
	f, err := c.Facts(t.Context(), Model{Name: "m", Digest: "d"})
	if err != nil || f.Weights.Output != 160 || f.Weights.Need() != 160 {
		t.Errorf("%+v %v", f.Weights, err)
	}
}

func TestWhatIsNotToldIsUnknown(t *testing.T) {
	c, _ := showing(t, `{"model_info":{"general.architecture":"llama","llama.block_count":1,"llama.attention.head_count_kv":null},
		"tensors":[{"name":"blk.0.x","type":"IQ9_ZZ","shape":[256]}]}`)
	f, err := c.Facts(t.Context(), Model{Name: "m", Digest: "d"})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"HeadCountKV", "EmbeddingLength", "ContextLength", "KeyLength", "VocabSize", "Weights"} {
		if !slices.Contains(f.Unknown, field) {
			t.Errorf("%s is not among the unknown: %q", field, f.Unknown)
		}
	}
	if slices.Contains(f.Unknown, "BlockCount") || slices.Contains(f.Unknown, "SlidingWindow") {
		t.Errorf("unknown: %q", f.Unknown)
	}
}

func TestProjectorAndAdapterAreBoundedByTheBlobs(t *testing.T) {
	const tensors = `"tensors":[{"name":"blk.0.x","type":"F32","shape":[100]}],"model_info":{"general.architecture":"llama","llama.block_count":1}`
	for name, c := range map[string]struct {
		body               string
		projector, adapter int64
	}{
		"projector": {`{"projector_info":{"general.architecture":"clip"},` + tensors + `}`, 600, 0},
		"adapter":   {`{"modelfile":"FROM /x\nADAPTER /blobs/sha256-1\n",` + tensors + `}`, 0, 600},
		"neither":   {`{"modelfile":"FROM /x\n",` + tensors + `}`, 0, 0},
	} {
		client, _ := showing(t, c.body)
		f, err := client.Facts(t.Context(), Model{Name: "m", Digest: "d", Size: 1000})
		if err != nil || f.ProjectorBytes != c.projector || f.AdapterBytes != c.adapter {
			t.Errorf("%s: projector %d, adapter %d, %v", name, f.ProjectorBytes, f.AdapterBytes, err)
		}
	}
}

func TestRemoteModelHasNoFacts(t *testing.T) {
	c, _ := showing(t, `{"remote_host":"https://ollama.com","remote_model":"big","model_info":{}}`)
	if _, err := c.Facts(t.Context(), Model{Name: "big-cloud", Digest: "d"}); KindOf(err) != ModelMissing || !strings.Contains(err.Error(), "remote") {
		t.Errorf("%v", err)
	}
}

// The stand-in has the published shape of the real model: 4.58 GiB of file at Q4_K_M (measured from the real header).
func TestFactsOfARealShape(t *testing.T) {
	_, c := start(t, ollamatest.Config{Models: []ollamatest.Model{{Name: "llama3.1:8b"}}})
	m, err := c.Resolve(t.Context(), "llama3.1:8b")
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.Facts(t.Context(), m)
	if err != nil || f.Unknown != nil || f.BlockCount != 32 || len(f.Weights.Layers) != 32 {
		t.Fatalf("%+v %v", f, err)
	}
	if gib := float64(f.Weights.Need()+f.Weights.Input) / (1 << 30); gib < 4.3 || gib > 4.9 {
		t.Errorf("%.2f GiB of tensors, the real file has 4.58", gib)
	}
	// KV cache of the real model: 128 KiB per token (research on memory need).
	if kv := f.BlockCount * f.HeadCountKV[0] * (f.KeyLength + f.ValueLength) * 2; kv != 128<<10 {
		t.Errorf("%d bytes per token, want 128 KiB", kv)
	}
}
