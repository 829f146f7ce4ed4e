package params_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// What does not fit is named by its place in what was handed in, never by a place in a schema that nobody has seen.
func TestWhatDoesNotFitIsNamed(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"n":{"type":"integer","minimum":1},"f":{"format":"file"}}}`)
	for input, want := range map[string]string{
		`{"name":"a","n":2}`:           "",
		`{"n":0}`:                      "/: missing property 'name'; /n: minimum: got 0, want 1",
		`{"name":7}`:                   "/name: got number, want string",
		`{"name":"a","f":{"ref":"x"}}`: "/f: `ref` must be the SHA-256",
		`{`:                            "is not JSON",
		`{"name":"a","f":{"ref":"` + strings.Repeat("a", 64) + `"}}`: "",
	} {
		for what, err := range map[string]error{"input": params.Check(schema, json.RawMessage(input)), "answer": params.Fits(schema, json.RawMessage(input), "the answer")} {
			switch {
			case want == "":
				if err != nil {
					t.Errorf("%s %s: %v", what, input, err)
				}
			case apierr.CodeOf(err) != apierr.InvalidArgument || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "schema.json"):
				t.Errorf("%s %s: %v", what, input, err)
			}
		}
	}
	if err := params.Check(nil, json.RawMessage(`7`)); err != nil {
		t.Errorf("a workflow that declares nothing: %v", err)
	}
	for _, none := range []string{`{"type":"colour"}`, `{"$ref":"file:///etc/passwd"}`, `[`} {
		if apierr.CodeOf(params.Declared(json.RawMessage(none))) != apierr.InvalidArgument {
			t.Errorf("%s is taken for a schema", none)
		}
		if apierr.CodeOf(params.Fits(json.RawMessage(none), json.RawMessage(`1`), "the answer")) != apierr.InvalidArgument {
			t.Errorf("an answer fits %s", none)
		}
	}
}
