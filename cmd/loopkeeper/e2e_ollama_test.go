package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/loopkeeper/loopkeeper/worker/ollama/tinymodel"
)

const summarySchema = `{"type":"object","additionalProperties":false,"required":["title","points"],"properties":{
	"title":{"type":"string","minLength":5,"maxLength":80},
	"points":{"type":"array","minItems":3,"maxItems":3,"items":{"type":"string","maxLength":120}}}}`

// ranOn is what of a finished run the tests look at.
type ranOn struct {
	Run struct {
		ID    string `json:"id"`
		State string `json:"state"`
		Error string `json:"error"`
		Nodes []struct {
			Name  string      `json:"name"`
			Items json.Number `json:"items"`
		} `json:"nodes"`
	} `json:"run"`
	Items []struct {
		Key   string          `json:"key"`
		State string          `json:"state"`
		Value json.RawMessage `json:"value"`
		Node  string          `json:"node"`
	} `json:"items"`
}

// Two real Ollama servers, a worker for each, one coordinator: a batch of 40 and a plan end completed, the work is
// shared, and every output is what was asked for.
func TestRealOllamaBatchAndPlanOverTwoServers(t *testing.T) {
	binary := os.Getenv("LOOPKEEPER_TEST_OLLAMA")
	// One folder of models: made twice, a model has two digests, and a run does not mix these.
	models := t.TempDir()
	first := tinymodel.Start(t, tinymodel.ServerOptions{Binary: binary, Models: models})
	second := tinymodel.Start(t, tinymodel.ServerOptions{Binary: binary, Models: models})
	first.Create(t, "tiny", tinymodel.Options{})
	program := buildProgram(t)
	up := []string{"up", "--no-worker", "--no-mdns", "--listen", "127.0.0.1:0"}
	for name, server := range map[string]*tinymodel.Server{"first": first, "second": second} {
		address := startDaemon(t, program, `--worker (\S+) there`, "worker", "--data-dir", t.TempDir(), "--name", name,
			"--ollama", server.URL, "--listen", "127.0.0.1:0", "--no-mdns")
		up = append(up, "--worker", address)
	}
	data := t.TempDir()
	startDaemon(t, program, `^(Next: )`, append(up, "--data-dir", data)...)

	t.Run("batch", func(t *testing.T) { batchOverTwo(t, program, data) })
	t.Run("plan", func(t *testing.T) {
		var done ranOn
		code := ask(t, program, &done, "plan", "--data-dir", data, "--model", "tiny", "Describe the pump in one sentence")
		if code != 0 || done.Run.State != "completed" {
			t.Errorf("the plan ended %s with exit code %d: %s", done.Run.State, code, done.Run.Error)
		}
	})
}

func batchOverTwo(t *testing.T, program, data string) {
	const items = 40
	folder := t.TempDir()
	lines, schema := filepath.Join(folder, "lines.txt"), filepath.Join(folder, "schema.json")
	var text strings.Builder
	for i := range items {
		fmt.Fprintf(&text, "Pump %d runs at %d bar.\n", i, i*7)
	}
	write(t, lines, text.String())
	write(t, schema, summarySchema)

	var done ranOn
	code := ask(t, program, &done, "map", "--data-dir", data, "--model", "tiny", "--prompt", "Summarise: {{item}}",
		"--schema", schema, "--each", "line", lines)
	if code != 0 || done.Run.State != "completed" || len(done.Items) != items {
		t.Fatalf("the batch ended %s with exit code %d and %d items: %s", done.Run.State, code, len(done.Items), done.Run.Error)
	}
	compiled := compileSchema(t, summarySchema)
	share := map[string]int{}
	for _, item := range done.Items {
		share[item.Node]++
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(item.Value))
		if err == nil {
			err = compiled.Validate(value)
		}
		if item.State != "succeeded" || err != nil {
			t.Errorf("item %s: %s, %v", item.Key, item.State, err)
		}
	}
	if len(share) != 2 {
		t.Errorf("the items ran on %v, want two workers", share)
	}
	for node, n := range share {
		if n < items/4 {
			t.Errorf("%s did %d of %d items, want at least a quarter", node, n, items)
		}
	}
	t.Logf("shares: %v", share)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func compileSchema(t *testing.T, text string) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}
