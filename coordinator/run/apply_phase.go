package run

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// phaseMoved folds in the one write that ends a phase, opens its target, moves the pointer and attaches the reason.
func (s *State) phaseMoved(m *PhaseMoved, now time.Time) error {
	p := s.Pipeline(m.Pipeline)
	if p == nil {
		p = &Pipeline{Name: m.Pipeline, Current: -1, MaxRollbacks: m.MaxRollbacks}
		for _, name := range m.Phases {
			p.Phases = append(p.Phases, PipelinePhase{Name: name, Status: PhasePending})
		}
		s.Pipelines = append(s.Pipelines, p)
	} else if from := p.Phase(); from == nil || from.Name != m.From {
		return fmt.Errorf("phase %q is not in progress", m.From)
	}
	to := p.index(m.To)
	if to < 0 && m.To != "" {
		return fmt.Errorf("pipeline %q has no phase %q", m.Pipeline, m.To)
	}
	if m.By == "" {
		if st := s.Step(m.Pos - 1); st != nil {
			st.moved = true
		}
	}
	switch m.Outcome {
	case PhaseNeedsHuman:
		p.Phase().Reasons = append(p.Phase().Reasons, PhaseReason{cmp.Or(m.By, ByGate), m.From, m.Reason})
		return nil
	case PhaseSentBack:
		s.sendBack(p, to, m, now)
	case PhasePassed:
		p.Phase().Status = PhaseCompleted
	}
	p.begin(to, m.Pos)
	return nil
}

// begin moves the pointer to a phase, -1 for behind the last.
func (p *Pipeline) begin(i, pos int) {
	p.Current, p.entered = i, pos
	if f := p.Phase(); f != nil {
		f.Status = PhaseInProgress
		if f.Round++; f.Round == 1 {
			f.first = pos
		}
	}
}

// sendBack makes void what was done since the target began. After a person's the open steps of the phase end.
func (s *State) sendBack(p *Pipeline, to int, m *PhaseMoved, now time.Time) {
	entered := p.entered
	for i := to; i <= p.Current; i++ {
		p.Phases[i].Status = PhasePending
	}
	target := &p.Phases[to]
	target.Reasons = append(target.Reasons, PhaseReason{cmp.Or(m.By, ByGate), m.From, m.Reason})
	p.undone = append(p.undone, span{target.first, m.Pos})
	if m.By == "" {
		p.Rollbacks++
		return
	}
	p.stale = true
	for st := range s.Open {
		if st.Pos >= entered && st.Failure == nil {
			s.rollBack(st, m)
		}
	}
}

// rollBack ends what an open step does and makes its end due.
func (s *State) rollBack(st *Step, m *PhaseMoved) {
	if len(st.Items) > 0 && st.low == len(st.Items) || len(st.Items) == 0 && slices.Contains(s.due, st.Pos) {
		return // it has ended, and only its event is missing
	}
	if st.Status == StepUnknown || st.writing() {
		return // what is written outside is not undone by looking away
	}
	s.stop(st, StepCancelled)
	st.Failure = &Failure{Kind: KindRolledBack, Message: fmt.Sprintf("%s sent the pipeline back to %q: %s", m.By, m.To, m.Reason), Advice: Never}
	s.due = append(s.due, st.Pos)
}

// answered notes that the script has been told where its pipeline stands. What it asked for before, it asked in the old phase.
func (s *State) answered(st *Step) {
	if st.spec == nil {
		return
	}
	if p := s.Pipeline(st.spec.Pipeline); p != nil && p.stale {
		p.stale, p.entered = false, st.Pos+1
		p.undone[len(p.undone)-1].to = st.Pos
	}
}

// undone says whether a rollback made a step's work void.
func (s *State) undone(pos int) bool {
	for _, p := range s.Pipelines {
		for _, u := range p.undone {
			if pos >= u.from && pos < u.to {
				return true
			}
		}
	}
	return false
}
