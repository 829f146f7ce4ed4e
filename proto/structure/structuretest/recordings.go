// Package structuretest has what tests of structure share: the schemas that were tried on a real Ollama, a check that a
// format keeps to what was measured there, written from that table and not from our code, and random schemas.
package structuretest

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"
	"testing"
)

// Counts is what a real Ollama answered under one schema in its original form.
type Counts struct {
	Conforming, Violating, Truncated int
	NotJSON                          int `json:"not_json"`
	Errors                           map[string]int
}

// Recording is a schema that was tried on a real Ollama 0.17.4: with 25 seeds on the old engine, 10 on the new one and on chat.
type Recording struct {
	Name   string
	Schema json.RawMessage
	Old    *Counts `json:"old_engine"`
	New    *Counts `json:"new_engine"`
	Chat   *Counts `json:"chat_old_engine"`
}

// Text returns the schema; one was recorded as a string, because it has a key twice.
func (r Recording) Text() string {
	var s string
	if json.Unmarshal(r.Schema, &s) == nil {
		return s
	}
	return string(r.Schema)
}

func (r Recording) runs() []*Counts {
	return slices.DeleteFunc([]*Counts{r.Old, r.New, r.Chat}, func(c *Counts) bool { return c == nil })
}

// Harmful says that the schema as it is makes the server fail, die, hang or write what is no JSON.
func (r Recording) Harmful() bool {
	return slices.ContainsFunc(r.runs(), func(c *Counts) bool { return len(c.Errors) > 0 || c.NotJSON > 0 })
}

// Enforced says that every answer to the schema as it is conformed.
func (r Recording) Enforced() bool {
	return !slices.ContainsFunc(r.runs(), func(c *Counts) bool {
		return c.Conforming == 0 || c.Violating+c.Truncated+c.NotJSON+len(c.Errors) > 0
	})
}

// Ignored says that answers violated the schema as it is, although the server took it.
func (r Recording) Ignored() bool {
	return !r.Harmful() && slices.ContainsFunc(r.runs(), func(c *Counts) bool { return c.Violating > 0 })
}

//go:embed testdata/schemas-ollama-0.17.4.jsonl
var recorded []byte

// Recordings returns all that were recorded.
func Recordings(t testing.TB) []Recording {
	t.Helper()
	var all []Recording
	scanner := bufio.NewScanner(bytes.NewReader(recorded))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var r Recording
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
