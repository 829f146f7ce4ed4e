package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The outcomes of a phase.
const (
	PhasePassed     = "passed"
	PhaseSentBack   = "sent_back"
	PhaseNeedsHuman = "needs_human"
)

// PhaseStatus is where a phase of a pipeline stands.
type PhaseStatus string

// The statuses of a phase. At most one phase of a run is in progress, and it is the current one of its pipeline.
const (
	// PhasePending: its turn has not come, or it has to be done again because an earlier one was opened again.
	PhasePending PhaseStatus = "pending"
	// PhaseInProgress: it is the current phase; it stays so while a person is asked. Only phase.moved ends it.
	PhaseInProgress PhaseStatus = "in_progress"
	// PhaseCompleted: it passed in this run; a rollback may open it again.
	PhaseCompleted PhaseStatus = "completed"
)

// PhaseStatuses lists the statuses of a phase.
func PhaseStatuses() []PhaseStatus {
	return []PhaseStatus{PhasePending, PhaseInProgress, PhaseCompleted}
}

// Transitions returns the statuses that can follow s.
func (s PhaseStatus) Transitions() []PhaseStatus { return phaseTransitions[s] }

var phaseTransitions = map[PhaseStatus][]PhaseStatus{
	PhasePending:    {PhaseInProgress},
	PhaseInProgress: {PhaseCompleted, PhasePending},
	PhaseCompleted:  {PhaseInProgress, PhasePending},
}

// Pipeline is a sequence of phases with a pointer to the current one.
type Pipeline struct {
	Name         string
	Phases       []PipelinePhase
	Current      int // -1 once the last has passed
	Rollbacks    int // of the script; a person's are not bounded
	MaxRollbacks int

	entered int    // the position from which on steps belong to the current phase
	stale   bool   // a person moved the pointer, and the script has not heard of it
	undone  []span // positions whose work a rollback has made void
}

// PipelinePhase is one phase of a pipeline.
type PipelinePhase struct {
	Name    string
	Status  PhaseStatus
	Round   int           // how often it was begun
	Reasons []PhaseReason // why it was opened again, or needs a person

	first int // the position from which on its first round's steps are
}

// PhaseReason is one reason that is attached to a phase's input.
type PhaseReason struct {
	By     string `json:"by"`   // the person, "" for the script
	From   string `json:"from"` // the phase that found it
	Reason string `json:"reason"`
}

type span struct{ from, to int } // to is exclusive

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

// Pipeline returns the pipeline of a name, nil when there is none.
func (s *State) Pipeline(name string) *Pipeline {
	for _, p := range s.Pipelines {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Phase is the phase in progress, nil when there is none.
func (p *Pipeline) Phase() *PipelinePhase {
	if p.Current < 0 {
		return nil
	}
	return &p.Phases[p.Current]
}

func (p *Pipeline) index(phase string) int {
	return slices.IndexFunc(p.Phases, func(f PipelinePhase) bool { return f.Name == phase })
}

// target finds a phase that may be opened again: an earlier one that has completed in this run.
func (p *Pipeline) target(name string) error {
	i := p.index(name)
	switch {
	case p.Current < 0:
		return fmt.Errorf("pipeline %q has ended", p.Name)
	case i < 0:
		return fmt.Errorf("pipeline %q has no phase %q", p.Name, name)
	case i >= p.Current:
		return fmt.Errorf("phase %q is not earlier than %q", name, p.Phase().Name)
	case p.Phases[i].Status != PhaseCompleted:
		return fmt.Errorf("phase %q has not completed in this run", name)
	}
	return nil
}

// stalePhase says whether a person moved a pointer and the script has not heard of it.
func (s *State) stalePhase() bool {
	return slices.ContainsFunc(s.Pipelines, func(p *Pipeline) bool { return p.stale })
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
			return nil, KindRollbacks, fmt.Errorf("%q was to be sent back to %q after %d rollbacks, the most that are allowed: %s", now.Name, d.Target, p.Rollbacks, d.Reason)
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
	return []Payload{&PhaseMoved{Pipeline: p.Name, Pos: len(s.Requests), From: p.Phase().Name, Outcome: PhaseSentBack, To: c.Phase, Reason: c.Reason, By: c.By}}, nil
}

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
		p.Phase().Reasons = append(p.Phase().Reasons, PhaseReason{m.By, m.From, m.Reason})
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
	target.Reasons = append(target.Reasons, PhaseReason{m.By, m.From, m.Reason})
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
