package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newModels(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "models", Short: "Show the models, which machines have them and where they are loaded", Args: cobra.NoArgs,
		Example: "  loopkeeper models\n  loopkeeper models -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				r, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
				if err != nil {
					return err
				}
				return a.printModels(models(r))
			})
		},
	}
}

// model is one model over all machines that are there.
type model struct {
	Name         string        `json:"name"`
	SizeBytes    uint64        `json:"size_bytes"` // of the file; where machines differ, the largest
	Quantization string        `json:"quantization"`
	Embedding    bool          `json:"embedding"`
	Nodes        []string      `json:"nodes"`
	Loaded       []loadedModel `json:"loaded"`
	Simulated    bool          `json:"simulated"`
}

// loadedModel is where a model is in memory, and with which context, tokens per slot; 0 is unknown.
type loadedModel struct {
	Node    string `json:"node"`
	Context int32  `json:"context"`
}

// models gathers what the machines report; one that is lost has nothing to offer.
func models(r *coordinatorv1.ListNodesResponse) []model {
	byName := map[string]*model{}
	for _, n := range r.GetNodes() {
		if n.GetState() == "lost" {
			continue
		}
		for _, m := range n.GetReport().GetModels() {
			one := byName[m.GetName()]
			if one == nil {
				one = &model{Name: m.GetName(), Quantization: m.GetQuantization(), Embedding: m.GetEmbedding(), Nodes: []string{}, Loaded: []loadedModel{}}
				byName[m.GetName()] = one
			}
			one.SizeBytes = max(one.SizeBytes, m.GetFileBytes())
			one.Nodes = append(one.Nodes, n.GetName())
			one.Simulated = one.Simulated || n.GetSimulated()
			for _, l := range n.GetReport().GetLoaded() {
				if l.GetName() == m.GetName() {
					one.Loaded = append(one.Loaded, loadedModel{n.GetName(), l.GetContext()})
				}
			}
		}
	}
	var out []model
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, *byName[name])
	}
	return out
}

func modelNames(r *coordinatorv1.ListNodesResponse) []string {
	var out []string
	for _, m := range models(r) {
		out = append(out, m.Name)
	}
	return out
}

func (a *app) printModels(all []model) error {
	if a.json() {
		list := []any{}
		for _, m := range all {
			list = append(list, m)
		}
		return a.printList("models", list)
	}
	if len(all) == 0 {
		a.next("ollama pull qwen3:8b, on a machine of the fleet", "loopkeeper nodes")
		return a.printText("No machine that is up has a model.\n")
	}
	t := ui.Table{Columns: ui.Columns("MODEL", ">SIZE, GB", "QUANT", "NODES", "LOADED", ">CONTEXT", "")}
	for _, m := range all {
		t.Add(m.row()...)
	}
	return a.printText(t.String())
}

func (m model) row() []string {
	size, quant, on, context, note := "?", "?", "-", "-", ""
	if m.SizeBytes > 0 {
		size = fmt.Sprintf("%.1f", float64(m.SizeBytes)/1e9) // GB as the registry shows it
	}
	if m.Quantization != "" {
		quant = m.Quantization
	}
	var nodes, contexts []string
	for _, l := range m.Loaded {
		nodes = append(nodes, ui.Line(l.Node))
		text := "?"
		if l.Context > 0 {
			text = ui.Count(int64(l.Context))
		}
		if !slices.Contains(contexts, text) {
			contexts = append(contexts, text)
		}
	}
	if len(nodes) > 0 {
		on, context = strings.Join(nodes, ", "), strings.Join(contexts, ", ")
	}
	switch {
	case m.Embedding && m.Simulated:
		note = "embeddings only, simulated"
	case m.Embedding:
		note = "embeddings only"
	case m.Simulated:
		note = "simulated"
	}
	return []string{ui.Line(m.Name), size, ui.Line(quant), ui.Line(strings.Join(m.Nodes, ", ")), on, context, note}
}
