package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// writeFailed writes down which items of a run's first batch failed, and says how to do only those again.
func (a *app) writeFailed(ctx context.Context, c *client, r *coordinatorv1.Run, path string) error {
	if err := needBatch(r); err != nil {
		return err
	}
	keys := &failedKeys{}
	items := &collector{c: c, run: r.GetId(), sink: keys}
	fetch := items.advance
	if r.GetEnded() != nil {
		fetch = items.rest
	}
	if err := fetch(ctx, r); err != nil {
		return err
	}
	end := conclusion{runs: []*coordinatorv1.Run{r}}
	if len(keys.keys) == 0 {
		end.wrote = []string{path + " is not written: no item failed"}
		return a.conclude(end)
	}
	if err := saveText(path, strings.Join(keys.keys, "\n")+"\n"); err != nil {
		return err
	}
	again, err := redo(ctx, c, r, path)
	if err != nil {
		return err
	}
	end.wrote, end.next = []string{fmt.Sprintf("%s: the keys of %d that failed", path, len(keys.keys))}, []string{again}
	if a.json() {
		end.extra = map[string]any{"failed": keys.keys, "next": end.next}
	}
	return a.conclude(end)
}

// failedKeys is a sink that keeps the keys of what has ended and not succeeded.
type failedKeys struct{ keys []string }

func (k *failedKeys) put(i *coordinatorv1.Item) error {
	if i.GetState() != "succeeded" {
		k.keys = append(k.keys, i.GetKey())
	}
	return nil
}

func (k *failedKeys) begin() error { return nil }
func (k *failedKeys) flush() error { return nil }
func (k *failedKeys) close() error { return nil }

// redo is the command that does only the items whose keys stand in path, for a run of the workflow map. The ledger keeps the
// input of every run; what of it has no flag is said in words.
func redo(ctx context.Context, c *client, r *coordinatorv1.Run, path string) (string, error) {
	same := fmt.Sprintf("give the command of run %s the flag --only %s and another --out", r.GetId(), quote(path))
	in, err := inputOf(ctx, c, r.GetId())
	if err != nil || in == nil || !isMap(r) {
		return same, err
	}
	prompt := strings.TrimSuffix(in.Prompt, appended)
	if len(prompt) > longPrompt || len(in.Schema) > 0 || len(in.Context) > 0 || in.Evaluate != nil || len(in.Options) > 0 {
		return same, nil
	}
	words := []string{"loopkeeper", "map", "--model", in.Model, "--prompt", prompt}
	if in.System != "" {
		words = append(words, "--system", in.System)
	}
	if in.MaxTokens > 0 {
		words = append(words, "--max-tokens", fmt.Sprint(in.MaxTokens))
	}
	if in.Temperature != nil {
		words = append(words, "--temperature", fmt.Sprint(*in.Temperature))
	}
	if len(in.Items) > 0 && in.Items[0][0] != '{' || len(in.Items) > 0 && !strings.Contains(string(in.Items[0]), `"ref"`) {
		words = append(words, "--each", "line")
	}
	for i, w := range words {
		words[i] = quote(w)
	}
	return strings.Join(words, " ") + " --only " + quote(path) + " --out redone.jsonl", nil
}

const (
	appended   = "\n\n{{item}}" // what map puts behind a prompt without a place for the item
	longPrompt = 300            // bytes: more does not fit a line that people read
)

// mapInput is the part of a map's input that its flags say.
type mapInput struct {
	Model       string            `json:"model"`
	Prompt      string            `json:"prompt"`
	System      string            `json:"system"`
	Schema      json.RawMessage   `json:"schema"`
	Context     []json.RawMessage `json:"context"`
	Evaluate    *struct{}         `json:"evaluate"`
	Options     json.RawMessage   `json:"options"`
	Items       []json.RawMessage `json:"items"`
	Keys        []string          `json:"keys"`
	MaxTokens   int               `json:"max_tokens"`
	Temperature *float64          `json:"temperature"`
}

// inputOf reads a run's input from its trace; nil when that does not hold it.
func inputOf(ctx context.Context, c *client, id string) (*mapInput, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the input is among the first events
	stream, err := c.GetTrace(ctx, &coordinatorv1.GetTraceRequest{RunId: id})
	if err != nil {
		return nil, err
	}
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		var born struct {
			Input *mapInput `json:"input"`
		}
		if json.Unmarshal(e.GetPayloadJson(), &born) == nil && born.Input != nil && born.Input.Model != "" {
			return born.Input, nil
		}
	}
}

// keepsInputsOf refuses a destination that would overwrite an input of a run of the workflow map, as those names are read here.
func keepsInputsOf(ctx context.Context, c *client, r *coordinatorv1.Run, to destination) error {
	_, err := os.Stat(to.out)
	if err != nil && to.dir == "" || !isMap(r) { // nothing is there to be overwritten
		return nil
	}
	in, err := inputOf(ctx, c, r.GetId())
	if err != nil || in == nil {
		return err
	}
	files := slices.Clone(in.Keys)
	for _, key := range in.Keys {
		files = append(files, lineNumber.ReplaceAllString(key, "")) // of an item that is a line
	}
	slices.Sort(files)
	files = slices.Compact(files)
	for _, raw := range in.Context {
		var shared ref
		if json.Unmarshal(raw, &shared) == nil {
			files = append(files, shared.Name)
		}
	}
	return to.keepsInputs(files)
}
