package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Explain implements the service.
func (s *Server) Explain(ctx context.Context, r *coordinatorv1.ExplainRequest) (*coordinatorv1.ExplainResponse, error) {
	explain := s.explainRun
	if r.GetModel() != "" {
		explain = s.explainModel
	}
	out, err := explain(ctx, r)
	return out, apierr.ToStatus(err)
}

// explainModel says how a call of a model would be placed now, and what was decided on the calls of it that are under way.
func (s *Server) explainModel(ctx context.Context, r *coordinatorv1.ExplainRequest) (*coordinatorv1.ExplainResponse, error) {
	model, asked := r.GetModel(), int(r.GetContext())
	f, err := s.fleet(ctx)
	if err != nil {
		return nil, err
	}
	if asked == 0 {
		asked = s.o.Context(f.snap, model)
	}
	if len(f.snap.Nodes) > 0 && !has(f.snap, model) {
		return nil, apierr.New(apierr.NotFound, "no machine has a model named %s", model).
			WithNext("loopkeeper models", "loopkeeper models pull "+model+" --everywhere")
	}
	_, why := scheduler.Admit(f.snap, model, asked, s.o.Limits)
	e := explanation(model, why)
	e.Need, e.Note = s.need(f.snap, model, asked, why)
	out := &coordinatorv1.ExplainResponse{Explanations: []*coordinatorv1.Explanation{e}}
	if out.Decisions, err = s.decisionsOn(ctx, model); err != nil {
		return nil, err
	}
	if out.Incidents, err = s.incidentsOf(ctx, model); err != nil {
		return nil, err
	}
	all, err := s.suggestions(ctx)
	if err != nil {
		return nil, err
	}
	out.Suggestions = slices.DeleteFunc(all, func(s *coordinatorv1.Suggestion) bool { return ollamaName(s.GetModel()) != ollamaName(model) })
	out.Findings = slices.DeleteFunc(s.findings(f), func(f *coordinatorv1.Finding) bool { return ollamaName(f.GetModel()) != ollamaName(model) })
	return out, nil
}

func (s *Server) explainRun(ctx context.Context, r *coordinatorv1.ExplainRequest) (*coordinatorv1.ExplainResponse, error) {
	step, err := position(r.GetStep())
	if err != nil {
		return nil, err
	}
	all, err := s.o.Engine.Explain(ctx, r.GetRunId(), step)
	if err != nil {
		return nil, err
	}
	out := &coordinatorv1.ExplainResponse{}
	for _, e := range all {
		m := explanation(e.Subject, e.Explanation)
		m.Attempt = e.Attempt
		out.Explanations = append(out.Explanations, m)
	}
	id, err := s.o.Engine.Resolve(ctx, r.GetRunId())
	if err != nil {
		return nil, err
	}
	taken, err := s.o.Engine.Decisions(ctx, id, step)
	if err != nil {
		return nil, err
	}
	for _, d := range taken {
		out.Decisions = append(out.Decisions, decision(id, d))
	}
	return out, nil
}

// decision is one as it was taken.
func decision(runID string, d engine.Explanation) *coordinatorv1.Explanation {
	m := explanation(d.Subject, d.Explanation)
	m.At, m.Action, m.RunId = stamp(d.At), string(d.Action), runID
	return m
}

// decidedRuns is how many runs a model is explained by.
const decidedRuns = 5

// decisionsOn is the newest decision on a model's calls in each of the newest open runs that use it, oldest first.
func (s *Server) decisionsOn(ctx context.Context, model string) ([]*coordinatorv1.Explanation, error) {
	open, err := s.o.Engine.Runs(ctx, engine.Filter{States: openStates(), Limit: 10 * decidedRuns})
	if err != nil {
		return nil, err
	}
	var out []*coordinatorv1.Explanation
	for _, row := range open {
		v, err := s.o.Engine.Run(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		newest, at := engine.Explanation{}, time.Time{}
		for _, st := range v.Steps {
			if st.Model == "" || ollamaName(st.Model) != ollamaName(model) {
				continue
			}
			taken, err := s.o.Engine.Decisions(ctx, v.ID, st.Pos)
			if err != nil {
				return nil, err
			}
			if n := len(taken); n > 0 && taken[n-1].At.After(at) {
				newest, at = taken[n-1], taken[n-1].At
			}
		}
		if !at.IsZero() {
			out = append(out, decision(v.ID, newest))
		}
		if len(out) == decidedRuns {
			break
		}
	}
	slices.Reverse(out)
	return out, nil
}

func openStates() (open []run.Status) {
	for _, st := range run.Statuses() {
		if !st.Ended() {
			open = append(open, st)
		}
	}
	return open
}

// incidentsOf are the newest incidents that are about a model.
func (s *Server) incidentsOf(ctx context.Context, model string) ([]*coordinatorv1.Incident, error) {
	all, err := s.o.Engine.Incidents(ctx, "", 0)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(i engine.Incident) bool { return i.Model == "" || ollamaName(i.Model) != ollamaName(model) })
	return incidentMessages(all[:min(len(all), incidentsShown)]), nil
}

// has says whether a node knows a model, lost ones too.
func has(snap scheduler.Snapshot, name string) bool {
	return slices.ContainsFunc(snap.Nodes, func(n scheduler.Node) bool {
		return slices.ContainsFunc(n.Models, func(m scheduler.Model) bool { return ollamaName(m.Name) == ollamaName(name) })
	})
}

// need breaks a model's need down by part on the machine that a call of it would go to, else on the first whose memory is known, and
// says when the context that was asked for is more than the model takes.
func (s *Server) need(snap scheduler.Snapshot, name string, asked int, why scheduler.Explanation) (need *coordinatorv1.Need, note string) {
	r := scheduler.Fit(snap, scheduler.FitQuestion{Model: name, Context: asked}, s.o.Limits)
	if r.Known && asked > r.Context {
		note = fmt.Sprintf("a context of %d tokens was asked for, the model takes %d at most: it is capped", asked, r.Context)
	}
	best := soonest(why)
	for _, n := range r.Nodes {
		if n.Need.Total() > 0 && (need == nil || n.Node == best) {
			need = needMessage(n.Need)
		}
	}
	return need, note
}

// soonest is the id of the node on which a call would end first, "" when none could take it.
func soonest(why scheduler.Explanation) (id string) {
	var end time.Duration
	for _, n := range why.Nodes {
		switch n.Verdict {
		case scheduler.VerdictFits, scheduler.VerdictWait, scheduler.VerdictChosen:
			if f := n.Expect.Finish(); id == "" || f < end {
				id, end = n.Node, f
			}
		}
	}
	return id
}

func needMessage(n scheduler.Need) *coordinatorv1.Need {
	return &coordinatorv1.Need{WeightsBytes: n.Weights, KvBytes: n.KV, GraphBytes: n.Graph, ProjectorBytes: n.Projector, ConstantBytes: n.Constant, MarginBytes: n.Margin}
}

func explanation(subject string, e scheduler.Explanation) *coordinatorv1.Explanation {
	m := &coordinatorv1.Explanation{Subject: subject, Summary: e.Summary, WaitingFor: string(e.Wait)}
	for _, n := range e.Nodes {
		m.Nodes = append(m.Nodes, &coordinatorv1.NodeVerdict{Node: n.Name, Verdict: string(n.Verdict), NeedBytes: n.Need, AvailableBytes: optional(n.Available), ShortBytes: n.Short,
			LargestContext: int32(n.Largest), Evict: n.Evict, Why: n.Why(), WaitNanos: int64(n.Expect.Wait), LoadNanos: int64(n.Expect.Load), ServeNanos: int64(n.Expect.Serve)})
	}
	return m
}
