package workflowtest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func show(v any) string {
	text, _ := json.Marshal(v) // made of JSON's own types
	return string(text)
}

// described is what a built-in workflow says of itself.
func described(t *testing.T, name string) script.Interface {
	t.Helper()
	program, _ := workflows.Lookup(name)
	about, err := script.NewHost(script.Limits{}).Describe(context.Background(), program)
	if err != nil {
		t.Fatal(err)
	}
	return about
}

func compiled(t *testing.T, text json.RawMessage) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("params.json", value(t, string(text))); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("params.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func value(t *testing.T, text string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
