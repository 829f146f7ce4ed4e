package api

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// findings are what is not as it should be between machines, or between them and the settings.
func (s *Server) findings(f known) []*coordinatorv1.Finding {
	out := digestConflicts(f.snap)
	for _, model := range sortedKeys(s.o.Limits.Pins) {
		for _, node := range s.o.Limits.Pins[model] {
			if one := s.checkPin(f, model, node); one != nil {
				out = append(out, one)
			}
		}
	}
	if len(f.views) == 0 {
		return out // none was ever seen: nothing is known to be wrong
	}
	out = append(out, largeReserves(f.snap)...)
	for _, node := range s.o.Settings {
		if !named(f.views, node) {
			out = append(out, &coordinatorv1.Finding{Code: "node_unknown", Node: node, Text: fmt.Sprintf("the settings speak of a machine %s, which was never seen", node),
				Next: []string{"loopkeeper nodes", "check nodes." + node + " in the settings: loopkeeper config show"}})
		}
	}
	return out
}

// largeReserves are pools of which as much is kept free as they have, so that no model is ever put there.
func largeReserves(snap scheduler.Snapshot) (out []*coordinatorv1.Finding) {
	for _, n := range snap.Nodes {
		for _, p := range n.Pools {
			if p.Total.Known && p.Reserve > 0 && p.Reserve >= p.Total.N {
				name := cmp.Or(n.Name, n.ID)
				out = append(out, &coordinatorv1.Finding{Code: "reserve_too_large", Node: name,
					Text: fmt.Sprintf("%s keeps %.1f GiB free in %s, which has %.1f: no model is put there", name, gibibytes(p.Reserve), p.ID, gibibytes(p.Total.N)),
					Next: []string{"lower nodes." + name + ".reserve in the settings, or the reserve of worker.hardware on that machine"}})
			}
		}
	}
	return out
}

func gibibytes(n uint64) float64 { return float64(n) / (1 << 30) }

func named(views []fleet.View, node string) bool {
	return slices.ContainsFunc(views, func(v fleet.View) bool { return v.ID == node || v.Name == node })
}

// madeHere helps where a model is in no registry.
const madeHere = "if it was made with `ollama create`, no pull helps: copy its manifest and blobs from one machine's folder of models to the others, " +
	"`ollama push` it to a registry that all reach, or give each its own name"

// digestConflicts are names that stand for different models on machines that are there.
func digestConflicts(snap scheduler.Snapshot) (out []*coordinatorv1.Finding) {
	on := map[string]map[string][]string{} // name → digest → machines
	for _, n := range snap.Nodes {
		if n.State == scheduler.NodeLost {
			continue
		}
		for _, m := range n.Models {
			name := ollamaName(m.Name)
			if on[name] == nil {
				on[name] = map[string][]string{}
			}
			on[name][m.Digest] = append(on[name][m.Digest], cmp.Or(n.Name, n.ID))
		}
	}
	for _, name := range sortedKeys(on) {
		if len(on[name]) < 2 {
			continue
		}
		var each []string
		for _, digest := range sortedKeys(on[name]) {
			each = append(each, fmt.Sprintf("%.12s on %s", digest, strings.Join(on[name][digest], " and ")))
		}
		out = append(out, &coordinatorv1.Finding{Code: "digest_conflict", Model: name, Next: []string{"loopkeeper models pull " + name + " --everywhere", madeHere},
			Text: fmt.Sprintf("%s is not the same model everywhere: %s; a run keeps to the one that it began with, and to the machines that have it", name, strings.Join(each, ", "))})
	}
	return out
}

// checkPin says why a pin cannot be kept, nil when it can.
func (s *Server) checkPin(f known, model, node string) *coordinatorv1.Finding {
	pin := func(code, text string, next ...string) *coordinatorv1.Finding {
		return &coordinatorv1.Finding{Code: code, Model: model, Node: node, Text: text, Next: next}
	}
	if !named(f.views, node) {
		if len(f.views) == 0 {
			return nil
		}
		return pin("pin_unknown", fmt.Sprintf("%s is pinned to %s, which was never seen", model, node), "loopkeeper nodes", "check models.pins in the settings: loopkeeper config show")
	}
	for _, n := range scheduler.Fit(f.snap, scheduler.FitQuestion{Model: model, Context: s.o.Context(f.snap, model)}, s.o.Limits).Nodes {
		switch {
		case n.Node != node && n.Name != node:
		case !n.Pulled:
			return pin("pin_missing", fmt.Sprintf("%s is pinned to %s, which does not have it", model, node), "loopkeeper models pull "+model+" --on "+node)
		case n.Verdict == scheduler.FitNo:
			return pin("pin_too_large", fmt.Sprintf("%s is pinned to %s, which it does not fit: it %s", model, node, n.Why), "loopkeeper fit "+model)
		}
	}
	return nil
}

// suggestions are downloads that would pay, and whether they are made already.
func (s *Server) suggestions(ctx context.Context) (out []*coordinatorv1.Suggestion, err error) {
	if s.o.Suggest == nil {
		return nil, nil
	}
	list, err := s.o.Suggest(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		_, under := s.o.Pulls.UnderWay(one.Node)[one.Model]
		out = append(out, &coordinatorv1.Suggestion{Model: one.Model, Node: one.Name, Why: one.Why, UnderWay: under,
			Command: fmt.Sprintf("loopkeeper models pull %s --on %s", one.Model, nodeWord(one.Name, one.Node))})
	}
	return out, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
