package formats

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/structure"
	"github.com/loopkeeper/loopkeeper/proto/structure/structuretest"
	"github.com/loopkeeper/loopkeeper/worker/ollama/tinymodel"
)

// serverOfFuzzing tells the processes that fuzz where the one server is; it dies with the process that started it.
const serverOfFuzzing = "LOOPKEEPER_TEST_FUZZ_SERVER"

// FuzzFormatOnServer sends what we send for any schema to a real server: it must not fail, die or take for ever, and what it
// answers keeps to the format.
func FuzzFormatOnServer(f *testing.F) {
	for _, r := range structuretest.Recordings(f) {
		f.Add(r.Text(), []byte(r.Name))
	}
	url := os.Getenv(serverOfFuzzing)
	if url == "" {
		server := tinymodel.Start(f, tinymodel.ServerOptions{Binary: os.Getenv("LOOPKEEPER_TEST_OLLAMA")})
		server.Create(f, "tiny", tinymodel.Options{})
		url = server.URL
		f.Setenv(serverOfFuzzing, url)
	}
	m := connect(f, url)
	f.Fuzz(func(t *testing.T, written string, entropy []byte) {
		m.try(t, json.RawMessage(written))
		m.try(t, structuretest.Schema(entropy))
	})
}

// TestRealServerStandsRandomSchemas is a short part of that.
func TestRealServerStandsRandomSchemas(t *testing.T) {
	m := newTiny(t)
	random := rand.New(rand.NewPCG(1, 2))
	sent := 0
	for range 600 {
		entropy := make([]byte, 20+random.IntN(200))
		for i := range entropy {
			entropy[i] = byte(random.Uint32())
		}
		if m.try(t, structuretest.Schema(entropy)) {
			sent++
		}
	}
	if sent < 60 {
		t.Errorf("only %d schemas were sent", sent)
	}
}

// try sends what we send for a schema, sorted and not, unless it is refused.
func (m tiny) try(t *testing.T, raw json.RawMessage) (sent bool) {
	t.Helper()
	s, err := structure.Compile(raw)
	if err != nil {
		return false
	}
	sorted, _ := s.Ordered()
	for i, format := range []json.RawMessage{s.Format(), sorted} {
		if i > 0 && string(sorted) == string(s.Format()) {
			break
		}
		accepts, err := structuretest.Accepts(format)
		if err != nil {
			t.Fatalf("%s became %s: %v", raw, format, err)
		}
		reply, err := m.ask(t.Context(), format, int64(len(raw)), 40)
		if died(err) {
			t.Fatalf("%s became %s: %v", raw, format, err)
		}
		if reply.DoneReason == "stop" {
			if err := accepts(reply.Text); err != nil && !lenient(format) {
				t.Errorf("%s became %s, and the answer %q does not keep to it: %v", raw, format, reply.Text, err)
			}
		}
	}
	return true
}

// lenient formats have other keys beside known ones, which the grammar lets have any character.
func lenient(format json.RawMessage) bool {
	var walk func(v any) bool
	walk = func(v any) bool {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				if walk(one) {
					return true
				}
			}
		case map[string]any:
			_, known := v["properties"].(map[string]any)
			if other, open := v["additionalProperties"]; known && open && other != false {
				return true
			}
			for _, one := range v {
				if walk(one) {
					return true
				}
			}
		}
		return false
	}
	var v any
	return json.Unmarshal(format, &v) == nil && walk(v)
}
