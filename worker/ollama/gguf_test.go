package ollama

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ggufheader"
)

// tiny has few tokens, so that a fuzzer can change what matters.
var tiny = ggufheader.Model{Name: "tiny", Arch: "llama", Layers: 2, Embedding: 256, Heads: 4, KVHeads: 2, FF: 512, Vocab: 8, Context: 2048}

func headerOf(m ggufheader.Model) []byte {
	raw, _ := ggufheader.Encode(m.Keys(), m.Tensors())
	return raw
}

func decoded(raw []byte) (Facts, error) { return DecodeGGUF(bytes.NewReader(raw), int64(len(raw))) }

func TestReadGGUF(t *testing.T) {
	f, err := ReadGGUF(ggufheader.Write(t, ggufheader.Qwen3MoE))
	if err != nil {
		t.Fatal(err)
	}
	if f.Architecture != "qwen3moe" || f.BlockCount != 48 || f.VocabSize != 151936 || f.ContextLength != 40960 || f.Experts != 128 || f.ExpertsUsed != 8 ||
		!slices.Equal(f.HeadCountKV, []int{4}) || f.KeyLength != 128 || f.Quantisation != "Q4_K_M" || f.Name != "qwen3-30b-a3b" {
		t.Errorf("%+v", f)
	}
	// 48 layers × 128 experts × 3 matrices of 2048 × 768 elements at 4.5 to 6.6 bits
	if experts := float64(48 * 128 * 3 * 2048 * 768); float64(f.Weights.Experts) < experts*4.5/8 || float64(f.Weights.Experts) > experts*5.2/8 {
		t.Errorf("%d bytes of experts", f.Weights.Experts)
	}
	if f.Size < f.Weights.Need() || f.Size > 19<<30 {
		t.Errorf("size %d, weights %d", f.Size, f.Weights.Need())
	}
}

// The first megabytes of a file are enough, as a range request fetches them.
func TestAHeaderAloneIsEnough(t *testing.T) {
	whole, err := ReadGGUF(ggufheader.Write(t, tiny))
	if err != nil {
		t.Fatal(err)
	}
	alone, err := decoded(headerOf(tiny))
	if err != nil || alone.Size != whole.Size || alone.Weights.Need() != whole.Weights.Need() {
		t.Errorf("%+v %v", alone, err)
	}
}

func TestWhatIsNoModelFileIsRefused(t *testing.T) {
	if _, err := ReadGGUF(filepath.Join(t.TempDir(), "none.gguf")); apierr.As(err).Code != apierr.NotFound {
		t.Errorf("missing: %v", err)
	}
	if _, err := ReadGGUF(t.TempDir()); apierr.As(err).Code != apierr.InvalidArgument {
		t.Errorf("a folder: %v", err)
	}
	path := filepath.Join(t.TempDir(), "page.gguf")
	if err := os.WriteFile(path, []byte("<!DOCTYPE html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *apierr.Error
	if _, err := ReadGGUF(path); !errors.As(err, &refused) || !strings.Contains(err.Error(), "not a GGUF file") || len(refused.Next) == 0 {
		t.Errorf("a page: %v", err)
	}
}

// patched is a header with so many bytes written over at a place that is found by what stands before it.
func patched(raw []byte, after string, with ...byte) []byte {
	raw = slices.Clone(raw)
	i := bytes.Index(raw, []byte(after)) + len(after)
	copy(raw[i:], with)
	return raw
}

func u64(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// Each of these makes Ollama 0.17.4's decoder panic, allocate without bound or turn for ever.
func TestHostileHeadersAreRefused(t *testing.T) {
	good := headerOf(tiny)
	clip, parts := tiny, tiny
	clip.Layers = 0
	parts.Extra = map[string]any{}
	split := parts.Keys()
	split["split.count"] = uint32(3)
	ofParts, _ := ggufheader.Encode(split, parts.Tensors())
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"empty":                       {nil, "not a GGUF file"},
		"another version":             {patched(good, "GGUF", 1), "version 1"},
		"more tensors than there are": {patched(good, "GGUF\x03\x00\x00\x00", u64(1<<40)...), "tensors"},
		"a negative count of tensors": {patched(good, "GGUF\x03\x00\x00\x00", u64(math.MaxUint64)...), "tensors"},
		"a few tensors too many":      {patched(good, "GGUF\x03\x00\x00\x00", u64(100)...), "ends within its header"},
		"a text of a terabyte":        {patched(good, "general.name\x08\x00\x00\x00", u64(1<<40)...), "text"},
		"a text of negative length":   {patched(good, "general.name\x08\x00\x00\x00", u64(math.MaxUint64-7)...), "text"},
		"a list without end":          {patched(good, "tokenizer.ggml.tokens\x09\x00\x00\x00\x08\x00\x00\x00", u64(1<<60)...), "list"},
		"a list of lists":             {patched(good, "tokenizer.ggml.tokens\x09\x00\x00\x00", 9), "list of type 9"},
		"an unknown type":             {patched(good, "general.name", 77), "type 77"},
		"alignment of zero":           {patched(good, "general.alignment\x04\x00\x00\x00", 0), "damaged"},
		"a tensor of many dimensions": {patched(good, "token_embd.weight", 0xff, 0xff), "dimensions"},
		"a tensor larger than memory": {patched(good, "token_embd.weight\x02\x00\x00\x00", u64(1<<62)...), "damaged"},
		"more layers than memory":     {patched(good, "llama.block_count\x04\x00\x00\x00", 0xff, 0xff, 0xff, 0x7f), "no layers"},
		"no layers":                   {headerOf(clip), "no layers"},
		"one part of several":         {ofParts, "3 parts"},
	} {
		f, err := decoded(c.raw)
		if name == "a tensor larger than memory" && err == nil && slices.Contains(f.Unknown, "Weights") {
			continue // read, and not believed
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for cut := range good[:len(good)-64] { // the last bytes are padding
		if _, err := decoded(good[:cut]); err == nil {
			t.Fatalf("a header cut off after %d of %d bytes was read", cut, len(good))
		}
	}
}

func FuzzDecodeGGUF(f *testing.F) {
	f.Add(headerOf(tiny))
	moe, hybrid := tiny, tiny
	moe.Arch, moe.Experts, moe.Used, moe.ExpertFF = "qwen3moe", 4, 2, 256
	hybrid.Arch, hybrid.KVByLayer, hybrid.State = "jamba", []uint32{0, 2}, true
	hybrid.Extra = map[string]any{"ssm.conv_kernel": uint32(4), "ssm.inner_size": uint32(512), "ssm.state_size": uint32(16)}
	f.Add(headerOf(moe))
	f.Add(headerOf(hybrid))
	f.Add(headerOf(tiny)[:300])
	f.Add([]byte("GGUF"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		facts, err := decoded(raw)
		if err != nil {
			return
		}
		if facts.BlockCount <= 0 || facts.Weights.Need() < 0 || facts.Weights.Experts < 0 || facts.ProjectorBytes < 0 {
			t.Errorf("%+v", facts)
		}
		for _, n := range facts.StateBytes {
			if n < 0 {
				t.Errorf("a state of %d bytes", n)
			}
		}
	})
}
