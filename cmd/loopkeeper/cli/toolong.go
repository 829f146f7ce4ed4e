package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// tokenBytes is how many bytes of text a token is taken to be before a model has counted: about four letters of English. Other languages
// and tables of numbers need more tokens than that.
const tokenBytes = 4

// tooLong is what a model's context has too little room for, by an estimate.
type tooLong struct {
	Model    string     `json:"model"`
	Context  int32      `json:"context"` // tokens
	Of       int        `json:"of"`      // items that were looked at
	Items    []longItem `json:"items"`
	Estimate string     `json:"estimate"`
}

// longItem is one item, with what is asked about it, in tokens.
type longItem struct {
	Key    string `json:"key"`
	Tokens int64  `json:"tokens"`
}

// tooLong compares what each item is asked with, as it is uploaded, with the context that its model would be loaded with. Images are no
// text, and are left out. It returns nil where all fit, and where nobody knows the context: then the dry run itself says what is wrong.
func (a *app) tooLong(ctx context.Context, c *client, o mapOptions, base map[string]any, items []input, bodies []any) *tooLong {
	fit, err := c.Fit(ctx, &coordinatorv1.FitRequest{Model: o.model})
	if err != nil || fit.GetContext() == 0 {
		return nil
	}
	around := textBytes(base["prompt"]) + textBytes(base["system"])
	shared, _ := base["context"].([]any)
	for _, s := range shared {
		around += textBytes(s)
	}
	out := &tooLong{Model: o.model, Context: fit.GetContext(), Of: len(items), Estimate: fmt.Sprintf("%d bytes are a token", tokenBytes)}
	for i, item := range items {
		if item.path != "" && run.ImageName(item.key) {
			continue
		}
		if tokens := (around + textBytes(bodies[i])) / tokenBytes; tokens > int64(out.Context) {
			out.Items = append(out.Items, longItem{item.key, tokens})
		}
	}
	if len(out.Items) == 0 {
		return nil
	}
	return out
}

// textBytes is how many bytes of text a part of an input becomes.
func textBytes(v any) int64 {
	switch v := v.(type) {
	case nil:
		return 0
	case string:
		return int64(len(v))
	case ref:
		return int64(v.Bytes)
	default:
		text, _ := json.Marshal(v) // what cannot be written was refused before
		return int64(len(text))
	}
}

// text says it for people.
func (t *tooLong) text() string {
	var names []string
	for _, i := range t.Items[:min(len(t.Items), 5)] {
		names = append(names, fmt.Sprintf("%s (about %s)", ui.Line(i.Key), ui.Tokens(i.Tokens)))
	}
	if more := len(t.Items) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d of %s would not fit into the context of %s, %s tokens, by an estimate (%s): %s", len(t.Items),
		ui.Plural(int64(t.Of), "item", "items"), t.Model, ui.Count(int64(t.Context)), t.Estimate, strings.Join(names, ", "))
}
