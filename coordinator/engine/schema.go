package engine

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/structure"
)

// refuseSchema refuses a request whose schema no answer can be held to, or that the question's own answer for the time-out does not fit,
// before a machine or a person is asked.
func refuseSchema(r *run.Request) {
	var asked struct {
		Schema    json.RawMessage `json:"schema"`
		OnTimeout json.RawMessage `json:"on_timeout"`
	}
	switch {
	case r.Note, r.Refused != "", r.Kind != run.KindGenerate && r.Kind != run.KindBatch && r.Kind != run.KindQuestion:
	case !bytes.Contains(r.Body, []byte(`"schema":`)), json.Unmarshal(r.Body, &asked) != nil, asked.Schema == nil, string(asked.Schema) == "null":
	default:
		if _, err := structure.Compile(asked.Schema); err != nil {
			r.Refused = fmt.Sprintf("%s: %v", r.Kind, err)
		} else if r.Kind == run.KindQuestion && asked.OnTimeout != nil {
			if err := params.Fits(asked.Schema, asked.OnTimeout, "question: on_timeout"); err != nil {
				r.Refused = err.Error()
			}
		}
	}
}
