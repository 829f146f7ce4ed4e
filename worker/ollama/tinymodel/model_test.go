package tinymodel

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ollama/ollama/fs/ggml"
)

// Ollama's own reader understands the file and finds in it the network that the constants promise.
func TestOllamaReadsTheFile(t *testing.T) {
	file := Bytes(Options{})
	if len(file) > 512<<10 {
		t.Errorf("the model has %d bytes; a test's upload should stay under half a megabyte", len(file))
	}
	model, err := ggml.Decode(bytes.NewReader(file), -1)
	if err != nil {
		t.Fatal(err)
	}
	if model.Length != int64(len(file)) {
		t.Errorf("the tensors end at byte %d of %d", model.Length, len(file))
	}
	kv := model.KV()
	if kv.Architecture() != "llama" || kv.BlockCount() != defaultLayers || kv.EmbeddingLength() != width || kv.HeadCountMax() != heads {
		t.Errorf("read %s with %d layers of width %d and %d heads", kv.Architecture(), kv.BlockCount(), kv.EmbeddingLength(), kv.HeadCountMax())
	}
	if got, want := len(model.Tensors().Items()), 3+9*defaultLayers; got != want {
		t.Errorf("%d tensors, want %d", got, want)
	}
	if got, want := len(kv.Strings("tokenizer.ggml.tokens")), firstPhrase+len(phrases()); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
}

func TestAnotherSeedIsAnotherModel(t *testing.T) {
	first := Bytes(Options{Seed: 1})
	if !bytes.Equal(first, Bytes(Options{Seed: 1})) {
		t.Error("the same options made two different files")
	}
	if bytes.Equal(first, Bytes(Options{Seed: 2})) {
		t.Error("two seeds made the same file")
	}
}

// The byte alphabet is GPT-2's: its vocabulary writes a space as U+0120, a newline as U+010A, and é (C3 A9) as Ã©.
func TestByteAlphabet(t *testing.T) {
	for text, want := range map[string]string{" a": "\u0120a", "\n": "\u010a", "é": "Ã©", "\x00": "\u0100", "\xad": "\u0143"} {
		if got := inByteAlphabet(text); got != want {
			t.Errorf("%q is written %q, want %q", text, got, want)
		}
	}
}

// What the model quotes can be found in what it wrote, whichever sentences it left out: each value is part of one.
func TestValuesOccurInSentences(t *testing.T) {
	for i, value := range values {
		if !strings.Contains(sentences[i], value) {
			t.Errorf("%q does not occur in %q", value, sentences[i])
		}
	}
}

// Every class leaves its own mark in a token's vector, and there is room beside the marks for noise.
func TestClassesFitTheWidth(t *testing.T) {
	seen := map[class]bool{}
	for token := range firstPhrase + len(phrases()) {
		seen[classOf(token)] = true
	}
	if len(seen) != classes() {
		t.Errorf("%d classes are used of %d", len(seen), classes())
	}
	if classes() > width/2 {
		t.Errorf("%d classes leave too little of width %d for noise", classes(), width)
	}
}
