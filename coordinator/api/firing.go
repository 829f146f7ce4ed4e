package api

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/schedule"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Fire submits what a schedule starts, checked as what a person submits. The same firing returns the same run, whatever its workflow's
// name stands for by now.
func (s *Server) Fire(ctx context.Context, spec schedule.Spec, f schedule.Firing) (string, error) {
	rows, err := s.o.Store.Runs(ctx, ledger.RunFilter{Key: f.Key, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(rows) > 0 {
		return rows[0].ID, nil
	}
	input := spec.Input
	if spec.Watch != nil {
		p, _, err := s.program(ctx, spec.Workflow, nil)
		if err != nil {
			return "", err
		}
		i, err := s.describe(ctx, p)
		if err != nil {
			return "", err
		}
		var files []any
		for _, file := range f.Files {
			files = append(files, map[string]any{"ref": file.SHA256, "name": file.Path, "bytes": file.Bytes})
		}
		if input, err = withFiles(i.ParamsSchema, input, files); err != nil {
			return "", err
		}
	}
	out, err := s.submit(ctx, &coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: spec.Workflow}, InputJson: input, Key: f.Key})
	return out.GetRunId(), err
}

// paramSchema is what matters here of a workflow's parameters.
type paramSchema struct {
	Properties map[string]struct {
		Type   any    `json:"type"`
		Format string `json:"format"`
		Items  struct {
			Format string `json:"format"`
		} `json:"items"`
	} `json:"properties"`
}

func readParams(params json.RawMessage) (s paramSchema) {
	_ = json.Unmarshal(params, &s) // one that says something else there has no such parameters
	return s
}

// filesParam is the parameter that takes the files of a watched folder: the one called files, or else the only one that takes several.
func filesParam(declared json.RawMessage) (string, error) {
	const usual = "files"
	if declared == nil {
		return usual, nil
	}
	schema := readParams(declared)
	var all []string
	for name, p := range schema.Properties {
		if p.Type == "array" && p.Items.Format == params.FileFormat {
			all = append(all, name)
		}
	}
	switch {
	case schema.Properties[usual].Items.Format == params.FileFormat:
		return usual, nil
	case len(all) == 1:
		return all[0], nil
	case len(all) == 0:
		return "", apierr.New(apierr.InvalidArgument, "the workflow takes no list of files, and the files of a folder are one").
			WithNext("give it a parameter files: t.files()", "loopkeeper schedule add … --workflow map")
	default:
		return "", apierr.New(apierr.InvalidArgument, "the workflow takes several lists of files (%s), and none is called files", strings.Join(all, ", ")).
			WithNext("call the one that takes the new files `files`")
	}
}

// withFiles puts files into an input.
func withFiles(params, input json.RawMessage, files []any) (json.RawMessage, error) {
	name, err := filesParam(params)
	if err != nil {
		return nil, err
	}
	in := map[string]json.RawMessage{}
	if len(input) > 0 {
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, apierr.New(apierr.InvalidArgument, "the input is no JSON object")
		}
	}
	if in[name] != nil {
		return nil, apierr.New(apierr.InvalidArgument, "the watched folder gives the parameter %s, and the input has one, too", name).WithNext("leave out --set " + name)
	}
	if in[name], err = json.Marshal(files); err != nil {
		return nil, apierr.Wrap(err, apierr.Internal, "name the files")
	}
	return json.Marshal(in)
}

// modelsOf are the models that an input names where the workflow says that it takes one.
func modelsOf(params, input json.RawMessage) []string {
	var in map[string]any
	if json.Unmarshal(input, &in) != nil {
		return nil
	}
	var out []string
	for name, p := range readParams(params).Properties {
		if model, ok := in[name].(string); ok && model != "" && p.Format == "model" {
			out = append(out, model)
		}
	}
	return out
}
