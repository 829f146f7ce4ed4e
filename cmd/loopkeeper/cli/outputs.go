package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// mainOutput is the name under which a run keeps what its script returned.
const mainOutput = "result"

// showOutputs prints the outputs of a run and how it ended. With out the main one is written to that file instead.
func (a *app) showOutputs(ctx context.Context, c *client, r *coordinatorv1.Run, out string) error {
	result, err := c.GetResult(ctx, &coordinatorv1.GetResultRequest{RunId: r.GetId()})
	if err != nil {
		return err
	}
	outputs, err := a.outputs(ctx, c, result)
	if err != nil {
		return err
	}
	end := conclusion{runs: []*coordinatorv1.Run{result.GetRun()}}
	if out != "" {
		if end.wrote, err = saveMain(out, outputs); err != nil {
			return unwrittenOf(result.GetRun(), r.GetId(), err)
		}
	}
	if a.json() {
		end.extra = map[string]any{"outputs": outputs}
		return a.conclude(end)
	}
	for _, o := range outputs {
		if out != "" && o.Name == mainOutput {
			continue
		}
		if err := a.printText(ui.Output(o.Name, o.Value, o.Sources, o.Inferred)); err != nil {
			return unwrittenOf(result.GetRun(), r.GetId(), err)
		}
	}
	return a.conclude(end)
}

// saveMain writes the main output's text. A run that has none leaves the file as it is, and says so.
func saveMain(path string, outputs []output) (wrote []string, err error) {
	for _, o := range outputs {
		if o.Name == mainOutput {
			return []string{path + ": the output " + mainOutput}, saveText(path, o.text())
		}
	}
	return []string{path + " is not written: the run has no output " + mainOutput}, nil
}

func saveText(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return unwritten{apierr.Wrap(err, apierr.InvalidArgument, "write the result").WithNext("--out FILE in a folder that you may write")}
	}
	return nil
}

// text is an output as a file of its own: a text as it is, anything else as JSON. It ends with a newline.
func (o output) text() string {
	switch v := o.Value.(type) {
	case string:
		return strings.TrimRight(v, "\n") + "\n"
	case map[string]any:
		if text, ok := v["text"].(string); ok && v["ref"] != nil {
			return strings.TrimRight(text, "\n") + "\n"
		}
	}
	raw, _ := json.Marshal(o.Value) // it came as JSON
	return ui.Indent(raw) + "\n"
}

// output is a key result with the texts that it refers to.
type output struct {
	Name    string   `json:"name"`
	Value   any      `json:"value"`
	Sources []string `json:"sources"`
	// Inferred says that the sources were not traced: they are all steps that had succeeded by then.
	Inferred bool `json:"inferred,omitempty"`
}

// fetchLimit is how many bodies are fetched for one answer; a batch's texts come with its items instead.
const fetchLimit = 200

// outputs opens what the outputs of a run refer to.
func (a *app) outputs(ctx context.Context, c *client, r *coordinatorv1.GetResultResponse) ([]output, error) {
	out := []output{}
	left := fetchLimit
	for _, o := range r.GetOutputs() {
		raw := o.GetValueJson()
		if ref := o.GetRef(); ref != nil {
			text, err := fetch(ctx, c, ref.GetSha256())
			if err != nil {
				return nil, err
			}
			raw = []byte(text)
			if !json.Valid(raw) {
				raw, _ = json.Marshal(text) // a string always marshals
			}
		}
		var v any // stays nil, in JSON null, for an output without a value
		if len(raw) > 0 {
			if err := decode(raw, &v); err != nil {
				return nil, fmt.Errorf("read the output %s: %w", o.GetName(), err)
			}
		}
		if err := open(ctx, c, v, &left); err != nil {
			return nil, err
		}
		out = append(out, output{o.GetName(), v, append([]string{}, o.GetSources()...), o.GetInferred()})
	}
	return out, nil
}

// open puts the text beside every reference in v.
func open(ctx context.Context, c *client, v any, left *int) error {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			if err := open(ctx, c, x, left); err != nil {
				return err
			}
		}
	case map[string]any:
		if sha, ok := v["ref"].(string); ok && len(sha) == 64 && *left > 0 {
			*left--
			text, err := fetch(ctx, c, sha)
			if err != nil {
				return err
			}
			v["text"] = text
			return nil
		}
		for _, name := range sorted(v) {
			if err := open(ctx, c, v[name], left); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetch reads a stored body.
func fetch(ctx context.Context, c *client, sha string) (string, error) {
	stream, err := c.GetArtifact(ctx, &coordinatorv1.GetArtifactRequest{Sha256: sha})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
		b.Write(msg.GetChunk())
	}
}
