package engine

import (
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// limitViews are the budgets that a run has, with what it has spent of them.
func limitViews(s *run.State, now time.Time) []LimitView {
	l := s.Pinned.Limits
	active := int64(s.Budget() / time.Second)
	tokens, calls := s.Spent()
	all := []LimitView{
		{Name: run.LimitActive, Limit: active, Spent: int64(s.Active(now) / time.Second)},
		{Name: run.LimitTokens, Limit: l.Tokens, Spent: tokens},
		{Name: run.LimitCalls, Limit: l.Calls, Spent: calls},
		{Name: run.LimitArtifact, Limit: l.ArtifactBytes},
		{Name: run.LimitDepth, Limit: int64(l.SpawnDepth)},
	}
	if p := s.Pinned.Parent; p != nil {
		all[4].Spent = int64(p.Depth)
	}
	var out []LimitView
	for _, v := range all {
		if v.Limit == 0 {
			continue
		}
		v.SetBy = s.Pinned.SetBy[v.Name]
		if s.Limit != nil && s.Limit.Limit == v.Name {
			v.Worst = s.Limit.Worst
		}
		if s.End != nil && s.End.Limit != nil && s.End.Limit.Name == v.Name {
			v.Spent, v.Overshoot, v.Worst = s.End.Limit.Spent, s.End.Limit.Overshoot, s.End.Limit.Worst
		}
		out = append(out, v)
	}
	return out
}

// acceptanceShown is up to how many items the books of a run that goes on are added up for each view of it.
const acceptanceShown = 10_000

// acceptanceOf is what was expected against what was done, nil while that is not worth its cost.
func acceptanceOf(s *run.State) *run.Acceptance {
	switch {
	case s.End != nil:
		return s.End.Acceptance
	case s.Counts.Total > acceptanceShown:
		return nil
	}
	for _, sub := range s.Pinned.Submitted {
		if sub.Lines > acceptanceShown {
			return nil
		}
	}
	return s.Acceptance()
}

// phaseViews are the phases of the pipeline in progress, or of the last one.
func phaseViews(s *run.State) []PhaseView {
	if len(s.Pipelines) == 0 {
		return nil
	}
	shown := s.Pipelines[len(s.Pipelines)-1]
	for _, p := range s.Pipelines {
		if p.Current >= 0 {
			shown = p
		}
	}
	var out []PhaseView
	for _, f := range shown.Phases {
		out = append(out, PhaseView{Pipeline: shown.Name, Name: f.Name, Status: f.Status, Round: f.Round, Reasons: append([]run.PhaseReason(nil), f.Reasons...)})
	}
	return out
}

// childrenOf are the runs that a run has spawned.
func childrenOf(s *run.State) []string {
	var out []string
	for _, st := range s.Requests {
		if st.Child != nil && st.From == nil {
			out = append(out, st.Child.Run)
		}
	}
	return out
}
