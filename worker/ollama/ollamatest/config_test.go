package ollamatest

import (
	"strings"
	"testing"
	"time"
)

func TestParseConfig(t *testing.T) {
	c, err := ParseConfig("a.yaml", []byte(`
name: left
memory: 8GiB
load_speed: 500 MB
load_latency: 2s
host_memory: 17179869184
models:
  - name: qwen3:8b
  - name: mine:1b
    layers: 16
    embedding: 2048
    heads: 32
    kv_heads: 8
    capabilities: [completion]
faults:
  - kind: slow
    probability: 0.5
    delay: 3s
`))
	must(t, err)
	if c.Memory != 8<<30 || c.LoadSpeed != 5e8 || c.HostMemory != 16<<30 || c.LoadLatency != 2*time.Second || c.Faults[0].Delay != 3*time.Second {
		t.Errorf("%+v", c)
	}
	if s := New(c); len(s.models) != 2 || s.models[1].HeadDim != 64 {
		t.Errorf("%+v", s.models)
	}
	if _, err := ParseConfig("empty.yaml", nil); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

// Each mistake is named with file and key, and with the line where the reader knows it.
func TestParseConfigNamesTheMistake(t *testing.T) {
	for yaml, want := range map[string][]string{
		"name: a\nmemry: 8GiB\n":                            {"b.yaml:[2:1]", "memry"},
		"name: a\nmemory: much\n":                           {"b.yaml:[2:9]", `"much" is not a size`},
		"slots: two\n":                                      {"b.yaml:[1:8]", "slots"},
		"slots: -1\n":                                       {"b.yaml:1: slots: must not be negative"},
		"name: a\nname: b\n":                                {"b.yaml:[2:1]", "name"},
		"models:\n  - preset: gpt-9\n":                      {"b.yaml:2: models[0]", `"gpt-9" is unknown`},
		"models:\n  - name: own:1b\n":                       {"b.yaml:2: models[0]", "layers, embedding and heads"},
		"models:\n  - name: qwen3:8b\n  - name: qwen3:8b\n": {"b.yaml:3: models[1]", "twice"},
		"faults:\n  - kind: wrong\n":                        {"b.yaml:2: faults[0].kind", `"wrong"`},
		"faults:\n  - kind: slow\n    probability: 1.5\n":   {"b.yaml:3: faults[0].probability"},
		"faults:\n  - {kind: slow, probability: 0.6}\n  - {kind: hang, probability: 0.6}\n": {"b.yaml:2: faults", "add up to 1.2"},
		"memory: [\n": {"b.yaml:[1:"},
	} {
		_, err := ParseConfig("b.yaml", []byte(yaml))
		if err == nil {
			t.Errorf("%q is accepted", yaml)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v does not say %q", yaml, err, part)
			}
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{"8GiB": 8 << 30, "1.5 GiB": 3 << 29, "500MB": 5e8, "1024": 1024, "7b": 7, "0": 0} {
		got, err := ParseBytes(text)
		if err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
		written, err := got.MarshalText()
		must(t, err)
		if back, err := ParseBytes(string(written)); err != nil || back != got {
			t.Errorf("%d is written %s and read %d", got, written, back)
		}
	}
	for _, text := range []string{"", "GiB", "-1GiB", "8 gigs", "NaN", "1e30GiB"} {
		if v, err := ParseBytes(text); err == nil {
			t.Errorf("%q is read as %d", text, v)
		}
	}
}
