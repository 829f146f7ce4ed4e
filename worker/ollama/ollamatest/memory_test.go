package ollamatest

import (
	"math"
	"testing"
)

// The figures are Ollama 0.17.4's own, measured with header-only files (research: scheduling §2.2), GiB.
func TestFootprintAgreesWithOllama(t *testing.T) {
	for _, c := range []struct {
		preset           string
		file, at4k, at8k float64
		at32k            float64
	}{
		{"llama3.1:8b", 4.58, 5.54, 6.29, 10.84},
		{"qwen2.5:7b", 4.36, 5.03, 5.42, 8.09},
		{"llama3.3:70b", 39.55, 41.27, 43.03, 53.57},
	} {
		m, ok := Preset(c.preset)
		if !ok {
			t.Fatalf("no preset %s", c.preset)
		}
		m, err := m.complete()
		if err != nil {
			t.Fatal(err)
		}
		near := func(what string, got int64, want float64) {
			t.Helper()
			if g := float64(got) / (1 << 30); math.Abs(g-want) > 0.01*want {
				t.Errorf("%s %s: %.2f GiB, Ollama says %.2f", c.preset, what, g, want)
			}
		}
		near("file", m.fileSize(), c.file)
		near("4k", m.footprintOf(4096, 1).total(), c.at4k)
		near("8k", m.footprintOf(8192, 1).total(), c.at8k)
		near("32k", m.footprintOf(32768, 1).total(), c.at32k)
		near("8k in four slots", m.footprintOf(8192, 4).total(), c.at32k)
	}
}

// 0.30's prediction counts file and cache only (research: scheduling §2.5); llama3.1:8b has 128 KiB of cache a token.
func TestModernPrediction(t *testing.T) {
	m, _ := Preset("llama3.1:8b")
	m, err := m.complete()
	if err != nil {
		t.Fatal(err)
	}
	want := m.fileSize() + 8192*128<<10
	for _, c := range []struct {
		batch int
		extra int64
	}{{512, 0}, {1024, 768 << 20}, {2048, 2 << 30}} {
		if got := m.predictModern(8192, 1, c.batch); got != want+c.extra {
			t.Errorf("batch %d: %d bytes, want %d", c.batch, got, want+c.extra)
		}
	}
}
