package run

import (
	"fmt"
	"slices"
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
	By     string `json:"by"`   // the person, else ByGate
	From   string `json:"from"` // the phase that found it
	Reason string `json:"reason"`
}

type span struct{ from, to int } // to is exclusive

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
