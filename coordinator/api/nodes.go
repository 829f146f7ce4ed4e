package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// ListNodes implements the service.
func (s *Server) ListNodes(ctx context.Context, _ *coordinatorv1.ListNodesRequest) (*coordinatorv1.ListNodesResponse, error) {
	snap, err := s.o.Engine.Snapshot(ctx)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	byID := map[string]scheduler.Node{}
	for _, n := range snap.Nodes {
		byID[n.ID] = n
	}
	nodes, candidates := s.o.Fleet.View()
	out := &coordinatorv1.ListNodesResponse{Candidates: candidates}
	for _, n := range nodes {
		m := &coordinatorv1.Node{Id: n.ID, Name: n.Name, Address: n.Address, State: string(n.State), LastSeen: stamp(n.LastSeen), Version: n.Version,
			Simulated: n.Simulated, FoundBy: n.FoundBy, Report: n.Report, Busy: int32(s.o.Engine.Busy(n.ID)), Problem: n.Problem}
		loading := byID[n.ID].Loading
		for _, l := range byID[n.ID].Loaded {
			if loading != nil && loading.Digest == l.Digest {
				continue // reported already, while its load has not returned: one model has one claim
			}
			m.Claims = append(m.Claims, &coordinatorv1.Claim{Model: l.Name, Bytes: l.SizeBytes, Context: int32(l.Context)})
		}
		if c := loading; c != nil {
			m.Claims = append(m.Claims, &coordinatorv1.Claim{Model: c.Name, Bytes: c.Need, Context: int32(c.Context), Loading: true})
		}
		out.Nodes = append(out.Nodes, m)
	}
	return out, nil
}

// Explain implements the service.
func (s *Server) Explain(ctx context.Context, r *coordinatorv1.ExplainRequest) (*coordinatorv1.ExplainResponse, error) {
	out := &coordinatorv1.ExplainResponse{}
	if m := r.GetModel(); m != "" {
		snap, err := s.o.Engine.Snapshot(ctx)
		if err != nil {
			return nil, apierr.ToStatus(err)
		}
		asked := int(r.GetContext())
		if asked == 0 {
			asked = s.o.Context(m)
		}
		if len(snap.Nodes) > 0 && !has(snap, m) {
			return nil, apierr.ToStatus(apierr.New(apierr.NotFound, "no machine has a model named %s", m).
				WithNext("loopkeeper nodes -o json lists the models of each", "ollama pull "+m+" on one of them"))
		}
		_, why := scheduler.Admit(snap, m, asked, s.o.Limits)
		e := explanation(m, why)
		e.Need, e.Note = s.need(snap, m, asked)
		out.Explanations = append(out.Explanations, e)
		return out, nil
	}
	step, err := position(r.GetStep())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	all, err := s.o.Engine.Explain(ctx, r.GetRunId(), step)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	for _, e := range all {
		m := explanation(e.Subject, e.Explanation)
		m.Attempt = e.Attempt
		out.Explanations = append(out.Explanations, m)
	}
	return out, nil
}

// has says whether a node knows a model, lost ones too.
func has(snap scheduler.Snapshot, name string) bool {
	return slices.ContainsFunc(snap.Nodes, func(n scheduler.Node) bool {
		return slices.ContainsFunc(n.Models, func(m scheduler.Model) bool { return ollamaName(m.Name) == ollamaName(name) })
	})
}

// need breaks a model's need down by part, from the first node that knows its shape, and says when the context that was asked
// for is more than the model takes.
func (s *Server) need(snap scheduler.Snapshot, name string, asked int) (*coordinatorv1.Need, string) {
	for _, n := range snap.Nodes {
		for _, m := range n.Models {
			if ollamaName(m.Name) != ollamaName(name) || m.Shape == nil {
				continue
			}
			c := scheduler.Context(m, asked, s.o.Limits)
			need := scheduler.NeedFor(*m.Shape, c, max(n.Slots, 1), scheduler.NeedOptions{GPUs: 1})
			note := ""
			if asked > c {
				note = fmt.Sprintf("a context of %d tokens was asked for, the model takes %d at most: it is capped", asked, c)
			}
			return &coordinatorv1.Need{WeightsBytes: need.Weights, KvBytes: need.KV, GraphBytes: need.Graph, ProjectorBytes: need.Projector,
				ConstantBytes: need.Constant, MarginBytes: need.Margin}, note
		}
	}
	return nil, ""
}

func explanation(subject string, e scheduler.Explanation) *coordinatorv1.Explanation {
	m := &coordinatorv1.Explanation{Subject: subject, Summary: e.Summary, WaitingFor: string(e.Wait)}
	for _, n := range e.Nodes {
		v := &coordinatorv1.NodeVerdict{Node: n.Name, Verdict: string(n.Verdict), NeedBytes: n.Need, ShortBytes: n.Short, LargestContext: int32(n.Largest), Evict: n.Evict, Why: n.Why}
		if n.Available.Known {
			v.AvailableBytes = &n.Available.N
		}
		m.Nodes = append(m.Nodes, v)
	}
	return m
}

// ollamaName is a model's name as Ollama knows it: without a tag it is the latest.
func ollamaName(name string) string {
	if strings.LastIndexByte(name, ':') > strings.LastIndexByte(name, '/') {
		return name
	}
	return name + ":latest"
}
