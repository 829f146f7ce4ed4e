package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// phaseSpec is what a phase request says.
type phaseSpec struct {
	Pipeline     string   `json:"pipeline"`
	Phases       []string `json:"phases"`
	MaxRollbacks *int     `json:"max_rollbacks"`
	Done         *struct {
		Phase   string `json:"phase"`
		Outcome string `json:"outcome"`
		Target  string `json:"target"`
		Reason  string `json:"reason"`
	} `json:"done"`
}

const defaultRollbacks = 3

func (p *phaseSpec) checkPhase(string) error {
	if p.Pipeline == "" {
		return errors.New("phase: no pipeline is named")
	}
	names := slices.Sorted(slices.Values(p.Phases))
	if slices.Contains(names, "") || len(slices.Compact(names)) != len(p.Phases) {
		return errors.New("phase: the phases need names that differ")
	}
	d := p.Done
	switch {
	case d == nil:
		return nil
	case d.Outcome != PhasePassed && d.Outcome != PhaseSentBack && d.Outcome != PhaseNeedsHuman:
		return fmt.Errorf("phase: the outcome is %q", d.Outcome)
	case d.Outcome == PhaseSentBack && (d.Target == "" || d.Reason == ""):
		return errors.New("phase: sent_back needs a target and a reason")
	case d.Outcome != PhaseSentBack && d.Target != "":
		return fmt.Errorf("phase: %s has no target", d.Outcome)
	}
	return nil
}

// phase settles a phase request: first the move that it makes, if any, then its answer from the state that the move led to.
func (s *State) phase(st *Step) Payload {
	refused := func(kind string, err error) Payload {
		return &StepEnded{Pos: st.Pos, Status: StepFailed, Failure: &Failure{Kind: kind, Message: "phase: " + err.Error(), Advice: Never}}
	}
	p, sp := s.Pipeline(st.spec.Pipeline), st.spec.phaseSpec
	if !st.moved {
		move, kind, err := s.phaseMove(p, sp)
		if err != nil {
			return refused(kind, err)
		}
		if move != nil {
			move.Pos = st.Pos + 1
			return move
		}
	}
	value, err := p.answer()
	if err != nil {
		return refused(KindBadRequest, err)
	}
	return &StepEnded{Pos: st.Pos, Status: StepSucceeded, Result: Content{Value: value}}
}

// phaseMove is the move that a request makes: nil when it only asks where the pipeline stands.
func (s *State) phaseMove(p *Pipeline, sp phaseSpec) (move *PhaseMoved, kind string, err error) {
	if p == nil {
		move, err = s.firstPhase(sp)
		return move, KindBadRequest, err
	}
	named := func(f PipelinePhase) string { return f.Name }
	if len(sp.Phases) > 0 && !slices.EqualFunc(p.Phases, sp.Phases, func(f PipelinePhase, n string) bool { return named(f) == n }) {
		return nil, KindBadRequest, fmt.Errorf("pipeline %q has begun with other phases", p.Name)
	}
	d := sp.Done
	if d == nil || p.stale {
		return nil, "", nil
	}
	now := p.Phase()
	if now == nil || now.Name != d.Phase {
		return nil, KindBadRequest, fmt.Errorf("phase %q of pipeline %q is not in progress", d.Phase, p.Name)
	}
	move = &PhaseMoved{Pipeline: p.Name, From: now.Name, Outcome: d.Outcome, Reason: d.Reason}
	switch d.Outcome {
	case PhaseNeedsHuman:
		move.To = now.Name
	case PhasePassed:
		if p.Current+1 < len(p.Phases) {
			move.To = p.Phases[p.Current+1].Name
		}
	default:
		move.To = d.Target
		if err := p.target(d.Target); err != nil {
			return nil, KindBadRequest, err
		}
		if p.Rollbacks >= p.MaxRollbacks {
			return nil, KindRollbacks, fmt.Errorf("%q was to be sent back to %q after %d rollbacks, the most that are allowed: %s", now.Name,
				d.Target, p.Rollbacks, d.Reason)
		}
	}
	return move, "", nil
}

func (s *State) firstPhase(sp phaseSpec) (*PhaseMoved, error) {
	for _, other := range s.Pipelines {
		if now := other.Phase(); now != nil {
			return nil, fmt.Errorf("pipeline %q is in its phase %q; a run has one pipeline at a time, another goes into a child", other.Name, now.Name)
		}
	}
	switch {
	case len(sp.Phases) == 0:
		return nil, fmt.Errorf("pipeline %q begins with its phases", sp.Pipeline)
	case sp.Done != nil:
		return nil, fmt.Errorf("pipeline %q has not begun", sp.Pipeline)
	}
	move := &PhaseMoved{Pipeline: sp.Pipeline, Phases: sp.Phases, MaxRollbacks: defaultRollbacks, To: sp.Phases[0]}
	if sp.MaxRollbacks != nil {
		move.MaxRollbacks = *sp.MaxRollbacks
	}
	return move, nil
}

// answer is what the script is told of the phase in progress.
func (p *Pipeline) answer() (json.RawMessage, error) {
	var a struct {
		Phase   *string       `json:"phase"`
		Reasons []PhaseReason `json:"reasons"`
		Round   int           `json:"round"`
	}
	a.Reasons = []PhaseReason{}
	if now := p.Phase(); now != nil {
		a.Phase, a.Round, a.Reasons = &now.Name, now.Round, append(a.Reasons, now.Reasons...)
	}
	return marshal(a)
}

func (c Rollback) decide(s *State, _ time.Time) ([]Payload, error) {
	p := s.Pipeline(c.Pipeline)
	if p == nil {
		return nil, fmt.Errorf("the run has no pipeline %q", c.Pipeline)
	}
	if err := p.target(c.Phase); err != nil {
		return nil, err
	}
	if c.By == "" || c.Reason == "" {
		return nil, errors.New("a rollback needs a person and a reason")
	}
	return []Payload{&PhaseMoved{Pipeline: p.Name, Pos: len(s.Requests), From: p.Phase().Name, Outcome: PhaseSentBack, To: c.Phase,
		Reason: c.Reason, By: c.By}}, nil
}
