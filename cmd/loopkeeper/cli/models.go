package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newModels(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "models", Short: "Show the models, who has them and where they are loaded; pull them", Args: cobra.NoArgs,
		Example: "  loopkeeper models\n  loopkeeper models -o json\n  loopkeeper models pull qwen3:8b --everywhere",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error {
				r, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
				if err != nil {
					return err
				}
				return a.printModels(r)
			})
		},
	}
	c.AddCommand(newPull(a))
	return c
}

// model is one model over all machines that are there.
type model struct {
	Name         string        `json:"name"`
	SizeBytes    uint64        `json:"size_bytes"` // of the file; where machines differ, the largest
	Quantization string        `json:"quantization"`
	Embedding    bool          `json:"embedding"`
	Nodes        []string      `json:"nodes"`
	Digests      []string      `json:"digests"` // of the name; more than one are different models
	Loaded       []loadedModel `json:"loaded"`
	Modes        []modelMode   `json:"modes"`   // how values are asked for, as far as that was found out
	Pins         []string      `json:"pins"`    // machines that keep it loaded, as in the settings
	Roles        []string      `json:"roles"`   // that it plays, as in the settings
	Waiting      int64         `json:"waiting"` // items
	WaitingFor   string        `json:"waiting_for"`
	Simulated    bool          `json:"simulated"`
}

// modelMode is how a machine was found to give values of a model.
type modelMode struct {
	Node          string `json:"node"`
	Endpoint      string `json:"endpoint"`
	Think         string `json:"think"`
	Field         string `json:"field"`
	Ordered       bool   `json:"ordered"`
	ServerVersion string `json:"server_version"`
	Probed        string `json:"probed"`
	None          bool   `json:"none"` // no way was found

	words string
}

// loadedModel is where a model is in memory or on its way there, and with which context, tokens per slot; 0 is unknown.
type loadedModel struct {
	Node    string `json:"node"`
	Context int32  `json:"context"`
	Busy    int32  `json:"busy"`
	Slots   int32  `json:"slots"`
	Loading bool   `json:"loading"`

	claim *coordinatorv1.Claim
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
				one = &model{Name: m.GetName(), Quantization: m.GetQuantization(), Embedding: m.GetEmbedding(), Nodes: []string{}, Loaded: []loadedModel{}, Modes: []modelMode{}, Pins: []string{}, Roles: []string{}}
				byName[m.GetName()] = one
			}
			one.SizeBytes = max(one.SizeBytes, m.GetFileBytes())
			one.Nodes = append(one.Nodes, n.GetName())
			if !slices.Contains(one.Digests, m.GetDigest()) {
				one.Digests = append(one.Digests, m.GetDigest())
			}
			if k := m.GetMode(); k != nil {
				one.Modes = append(one.Modes, modelMode{n.GetName(), k.GetEndpoint(), k.GetThink(), k.GetField(), k.GetOrdered(), k.GetServerVersion(),
					k.GetTime().AsTime().Format(time.RFC3339), k.GetNone(), ui.Mode(k)})
			}
			one.Simulated = one.Simulated || n.GetSimulated()
			for _, c := range n.GetClaims() {
				if tagged(c.GetModel()) == tagged(m.GetName()) {
					one.Loaded = append(one.Loaded, loadedModel{n.GetName(), c.GetContext(), c.GetBusy(), c.GetSlots(), c.GetLoading(), c})
				}
			}
		}
	}
	for _, q := range r.GetWaiting() {
		if one := byName[q.GetModel()]; one != nil {
			one.Waiting, one.WaitingFor = q.GetWaiting(), q.GetWaitingFor()
		}
	}
	for _, p := range r.GetPins() {
		if one := byName[tagged(p.GetModel())]; one != nil {
			one.Pins = p.GetNodes()
		}
	}
	for _, role := range r.GetRoles() {
		for _, name := range role.GetModels() {
			if one := byName[tagged(name)]; one != nil {
				one.Roles = append(one.Roles, role.GetName())
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

func (a *app) printModels(r *coordinatorv1.ListNodesResponse) error {
	all := models(r)
	switch a.flags.output {
	case "json":
		return a.printJSON(map[string]any{"models": append([]model{}, all...), "findings": aboutModels(r), "suggestions": ui.Plain(r)["suggestions"]})
	case "jsonl":
		for _, m := range all {
			if err := a.printJSON(m); err != nil {
				return err
			}
		}
		return nil
	}
	s := a.style(a.stdout)
	if len(all) == 0 {
		a.next("loopkeeper models pull qwen3:8b --on MACHINE", "loopkeeper nodes")
		return a.printText("No machine that is up has a model.\n" + ui.Findings(s, r.GetFindings()))
	}
	var findings []*coordinatorv1.Finding
	for _, f := range r.GetFindings() {
		if f.GetModel() != "" || aboutRoles(f) {
			findings = append(findings, f)
		}
	}
	return a.printText(modelTable(s, all, time.Now()) + ui.Notes(s, modelNotes(all, r)) + ui.Findings(s, findings) + ui.Suggestions(s, r.GetSuggestions()))
}

func modelTable(s ui.Style, all []model, now time.Time) string {
	heads := []string{"/MODEL", ">SIZE, GB", "QUANT", "~NODES", "~LOADED (BUSY)", ">CONTEXT"}
	wait := slices.ContainsFunc(all, func(m model) bool { return m.Waiting > 0 })
	if wait {
		heads = append(heads, ">WAITING")
	}
	formats := (s.Width == 0 || s.Width >= formatsWidth) && slices.ContainsFunc(all, func(m model) bool { return len(m.Modes) > 0 })
	if formats {
		heads = append(heads, "~FORMATS")
	}
	t := ui.Table{Width: s.Width, Columns: ui.Columns(heads...)}
	for _, m := range all {
		row := m.row(now)
		if wait {
			row = append(row, ui.Count(m.Waiting))
		}
		if formats {
			row = append(row, m.formats())
		}
		t.Add(row...)
	}
	return t.String()
}

// formatsWidth is how wide a screen has to be for the column that says how values are asked for.
const formatsWidth = 110

// formats are the ways in which machines give values of a model.
func (m model) formats() string {
	var words []string
	for _, k := range m.Modes {
		if !slices.Contains(words, k.words) {
			words = append(words, k.words)
		}
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, "; ")
}

// aboutRoles says whether a finding is about those who play a role.
func aboutRoles(f *coordinatorv1.Finding) bool {
	return strings.HasPrefix(f.GetCode(), "role_") || strings.HasPrefix(f.GetCode(), "judges_")
}

// modelNotes are what models are beside their numbers: what is pinned and where, which only make embeddings, which are simulated.
func modelNotes(all []model, r *coordinatorv1.ListNodesResponse) (notes []string) {
	list := func(lead string, is func(model) bool) {
		var names []string
		for _, m := range all {
			if is(m) {
				names = append(names, m.Name)
			}
		}
		switch {
		case len(names) == len(all) && len(all) > 1:
			notes = append(notes, lead+": all")
		case len(names) > 0:
			notes = append(notes, lead+": "+strings.Join(names, ", "))
		}
	}
	var pinned []string
	for _, p := range r.GetPins() {
		pinned = append(pinned, p.GetModel()+" to "+strings.Join(p.GetNodes(), " and "))
	}
	if len(pinned) > 0 {
		notes = append(notes, "Pinned: "+strings.Join(pinned, ", "))
	}
	for _, role := range r.GetRoles() {
		notes = append(notes, "Role "+role.GetName()+": "+strings.Join(role.GetModels(), ", "))
	}
	list("Embeddings only", func(m model) bool { return m.Embedding })
	list("Simulated", func(m model) bool { return m.Simulated })
	return notes
}

// aboutModels are the findings that are about a model, as JSON.
func aboutModels(r *coordinatorv1.ListNodesResponse) []any {
	out := []any{}
	for _, f := range r.GetFindings() {
		if f.GetModel() != "" {
			out = append(out, ui.Plain(f))
		}
	}
	return out
}

func (m model) row(now time.Time) []string {
	size, quant, on, context := "?", "?", "-", "-"
	if m.SizeBytes > 0 {
		size = fmt.Sprintf("%.1f", float64(m.SizeBytes)/1e9) // GB as the registry shows it
	}
	if m.Quantization != "" {
		quant = m.Quantization
	}
	var nodes, contexts []string
	for _, l := range m.Loaded {
		nodes = append(nodes, strings.TrimSpace(ui.Line(l.Node)+" "+ui.ClaimState(l.claim, now)))
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
	return []string{ui.Line(m.Name), size, ui.Line(quant), ui.Line(strings.Join(m.Nodes, ", ")), on, context}
}
