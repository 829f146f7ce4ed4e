package formats

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// counts is what a real Ollama answered under one schema, in its original form.
type counts struct {
	Conforming, Violating, Truncated int
	NotJSON                          int `json:"not_json"`
	Errors                           map[string]int
}

// recording is a schema that was tried on a real Ollama 0.17.4: 25 seeds on the old engine, 10 on the new one and on chat.
type recording struct {
	Name   string
	Schema json.RawMessage
	Old    *counts `json:"old_engine"`
	New    *counts `json:"new_engine"`
	Chat   *counts `json:"chat_old_engine"`
}

// text returns the schema; one was recorded as a string, because it has a key twice.
func (r recording) text() string {
	var s string
	if json.Unmarshal(r.Schema, &s) == nil {
		return s
	}
	return string(r.Schema)
}

func (r recording) runs() []*counts {
	return slices.DeleteFunc([]*counts{r.Old, r.New, r.Chat}, func(c *counts) bool { return c == nil })
}

func (r recording) enforced() bool {
	return !slices.ContainsFunc(r.runs(), func(c *counts) bool {
		return c.Conforming == 0 || c.Violating+c.Truncated+c.NotJSON+len(c.Errors) > 0
	})
}

func recordings(t testing.TB) []recording {
	t.Helper()
	f, err := os.Open("../../../proto/structure/testdata/schemas-ollama-0.17.4.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []recording
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var r recording
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := scanner.Err(); err != nil || len(all) != 130 {
		t.Fatalf("%d recordings, want 130, %v", len(all), err)
	}
	return all
}
