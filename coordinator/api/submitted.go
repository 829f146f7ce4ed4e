package api

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// onlyRead are parameters whose files are no work but what the work is done with: the words of the library and of the workflows. Any
// other parameter says so with "covered": false.
var onlyRead = []string{"context", "knowledge"}

// param is the part of a parameter's schema that says whether it holds work.
type param struct {
	Format  string  `json:"format"`
	Covered *bool   `json:"covered"`
	Items   *param  `json:"items"`
	AnyOf   []param `json:"anyOf"`
}

// file says whether a value of this schema can be a file.
func (p *param) file() bool {
	return p != nil && (p.Format == params.FileFormat || slices.ContainsFunc(p.AnyOf, func(o param) bool { return o.file() }))
}

// Submitted lists the work that an input hands in, which a run must cover: each file of a list, each item that has a key, and each line
// of an artifact of lines. A single file is something to read.
func Submitted(ctx context.Context, bodies engine.Bodies, params, input json.RawMessage) ([]run.Submitted, error) {
	var schema struct {
		Properties map[string]param `json:"properties"`
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(params, &schema) != nil || json.Unmarshal(input, &in) != nil { // it declares nothing, or is no object
		return nil, nil
	}
	var out []run.Submitted
	for _, name := range slices.Sorted(maps.Keys(in)) {
		p, declared := schema.Properties[name]
		switch {
		case !declared, slices.Contains(onlyRead, name), p.Covered != nil && !*p.Covered:
		case p.Format == linesFormat:
			lines, err := submittedLines(ctx, bodies, in[name])
			if err != nil {
				return nil, err
			}
			out = append(out, lines)
		case p.Items.file():
			out = append(out, keysOf(name, in)...)
		}
	}
	return out, nil
}

// keysOf are the keys of a list: those that the input names for its items, else the names of files. A value without a name has none.
func keysOf(name string, in map[string]json.RawMessage) (out []run.Submitted) {
	var items []json.RawMessage
	var keys []string
	if json.Unmarshal(in[name], &items) != nil {
		return nil
	}
	if name == "items" {
		_ = json.Unmarshal(in["keys"], &keys) // it was checked against the schema
	}
	for i, item := range items {
		var ref engine.Ref
		switch {
		case len(keys) == len(items):
			out = append(out, run.Submitted{Key: keys[i]})
		case json.Unmarshal(item, &ref) == nil && params.IsDigest(ref.SHA256) && ref.Name != "":
			out = append(out, run.Submitted{Key: ref.Name})
		}
	}
	return out
}

// linesFormat marks a parameter that holds the reference to lines, see docs/requests.md.
const linesFormat = "lines"

func submittedLines(ctx context.Context, bodies engine.Bodies, value json.RawMessage) (out run.Submitted, err error) {
	var over struct {
		Lines engine.Ref `json:"lines"`
	}
	if err := json.Unmarshal(value, &over); err != nil {
		return out, apierr.Wrap(err, apierr.InvalidArgument, "read the lines of the input")
	}
	body, _, err := bodies.OpenArtifact(ctx, over.Lines.SHA256)
	if err != nil {
		return out, err
	}
	defer body.Close() //nolint:errcheck // only read
	n, err := engine.IndexLines(body, io.Discard, func(int, string) {})
	switch {
	case err != nil:
		return out, apierr.Wrap(err, apierr.Unavailable, "count the lines of %s", over.Lines.Name)
	case n == 0:
		return out, apierr.New(apierr.InvalidArgument, "%s has no lines", over.Lines.Name).WithNext("give a file of one JSON value a line, or a folder with files")
	}
	return run.Submitted{Key: over.Lines.Name, Ref: over.Lines.SHA256, Lines: n}, nil
}
