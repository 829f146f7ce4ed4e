package api

import (
	"context"

	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// mostContext is more than any model takes, tokens.
const mostContext = 1 << 28

// Fit implements the service.
func (s *Server) Fit(ctx context.Context, r *coordinatorv1.FitRequest) (*coordinatorv1.FitResponse, error) {
	out, err := s.fit(ctx, r)
	return out, apierr.ToStatus(err)
}

func (s *Server) fit(ctx context.Context, r *coordinatorv1.FitRequest) (*coordinatorv1.FitResponse, error) {
	q := scheduler.FitQuestion{Model: r.GetModel(), Context: int(r.GetContext()), Slots: int(r.GetSlots()), Shape: fleet.Shape(r.GetShape()), FileBytes: r.GetFileBytes()}
	switch {
	case q.Model == "":
		return nil, apierr.New(apierr.InvalidArgument, "no model is named").WithNext("loopkeeper models")
	case q.Context < 0 || q.Context > mostContext:
		return nil, apierr.New(apierr.InvalidArgument, "a context of %d tokens makes no sense", q.Context).WithNext("leave it out for the one that is configured")
	case q.Slots < 0 || q.Slots > 1024:
		return nil, apierr.New(apierr.InvalidArgument, "%d slots make no sense", q.Slots).WithNext("leave it out for those of each machine")
	}
	snap, err := s.o.Engine.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if q.Shape == nil && len(snap.Nodes) > 0 && !has(snap, q.Model) {
		return nil, apierr.New(apierr.NotFound, "no machine has a model named %s, so nothing tells its size", q.Model).
			WithNext("loopkeeper fit " + q.Model + " --gguf FILE  # the file or its first megabytes")
	}
	if q.Context == 0 && q.Shape == nil {
		q.Context = s.o.Context(snap, q.Model)
	}
	report := scheduler.Fit(snap, q, s.o.Limits)
	out := &coordinatorv1.FitResponse{Model: report.Model, Digest: report.Digest, Context: int32(report.Context), Asked: int32(q.Context), Trained: int32(trained(snap, q))}
	for _, n := range report.Nodes {
		out.Nodes = append(out.Nodes, fitMessage(n))
	}
	return out, nil
}

// trained is the most tokens that the model takes, 0 for unknown.
func trained(snap scheduler.Snapshot, q scheduler.FitQuestion) int {
	if q.Shape != nil {
		return q.Shape.ContextLength
	}
	for _, n := range snap.Nodes {
		for _, m := range n.Models {
			if ollamaName(m.Name) == ollamaName(q.Model) && m.Shape != nil {
				return m.Shape.ContextLength
			}
		}
	}
	return 0
}

func fitMessage(n scheduler.NodeFit) *coordinatorv1.NodeFit {
	m := &coordinatorv1.NodeFit{NodeId: n.Node, Node: n.Name, State: string(n.State), Pulled: n.Pulled, Verdict: string(n.Verdict), Slots: int32(n.Slots), Devices: int32(n.Devices),
		AvailableBytes: optional(n.Available), ShortBytes: n.Short, PredictedBytes: n.Predicted, LargestContext: int32(n.Largest), LargestEmpty: int32(n.Empty), Why: n.Why}
	if n.Need.Total() > 0 {
		m.Need = needMessage(n.Need)
	}
	for _, p := range n.Pools {
		m.Pools = append(m.Pools, poolMessage(p))
	}
	for _, e := range n.Evict {
		m.Evict = append(m.Evict, &coordinatorv1.Eviction{Model: e.Model, Bytes: e.Bytes, Busy: int32(e.Busy)})
	}
	return m
}
