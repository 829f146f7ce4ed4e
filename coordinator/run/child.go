package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

func (s *spec) checkSpawn(string) error {
	if s.Workflow == "" {
		return errors.New("spawn: no workflow is named")
	}
	return nil
}

// depth is how many runs this one is below the first.
func (s *State) depth() int {
	if s.Pinned.Parent == nil {
		return 0
	}
	return s.Pinned.Parent.Depth
}

// Spawns calls yield for every step that is to start a child and has not. Nothing starts in a run that is not under way.
func (s *State) Spawns(yield func(*Step) bool) {
	if s.Status != Running && s.Status != Waiting || s.Limit != nil {
		return
	}
	for st := range s.Open {
		if st.Kind == KindSpawn && st.spec != nil && st.Child == nil && !yield(st) {
			return
		}
	}
}

// Children calls yield for every step that has started a child which is not known to have ended: those that an end, a cancel or a
// rollback must reach, unless they are detached.
func (s *State) Children(yield func(*Step) bool) {
	for _, pos := range s.spawns {
		if st := s.Requests[pos]; st.Child != nil && st.Child.Status == "" && st.From == nil && !yield(st) {
			return
		}
	}
}

// hasChildren says whether children that are waited for are under way.
func (s *State) hasChildren() bool {
	for st := range s.Children {
		if !st.Detached && !st.Status.Ended() {
			return true
		}
	}
	return false
}

func (c Spawned) decide(s *State, _ time.Time) ([]Payload, error) {
	st := s.Step(c.Pos)
	switch {
	case st == nil || st.Kind != KindSpawn:
		return nil, fmt.Errorf("position %d spawns nothing", c.Pos)
	case st.Status.Ended() || st.spec == nil || st.Child != nil || s.Limit != nil || s.Status == Suspended:
		return nil, ErrStale
	}
	started := &ChildStarted{Pos: c.Pos, Run: c.Run}
	if !st.Detached {
		return []Payload{started}, nil
	}
	id, err := marshal(map[string]string{"run": c.Run})
	end := &StepEnded{Pos: c.Pos, Status: StepSucceeded, Result: Content{Value: id}}
	return []Payload{started, end}, err
}

func (s *State) childStarted(p *ChildStarted) error {
	st := s.Step(p.Pos)
	if st == nil || st.Kind != KindSpawn || st.Status.Ended() || st.Child != nil {
		return errors.New("no step waits for a child")
	}
	st.Child = &ChildEnd{Run: p.Run}
	return nil
}

func (c ChildEnded) decide(s *State, _ time.Time) ([]Payload, error) {
	st := s.Step(c.Pos)
	switch {
	case st == nil || st.Kind != KindSpawn:
		return nil, fmt.Errorf("position %d spawns nothing", c.Pos)
	case st.Status.Ended() || st.spec == nil:
		return nil, ErrStale
	case c.Failure != nil:
		return []Payload{&StepEnded{Pos: c.Pos, Status: StepFailed, Failure: c.Failure}}, nil
	case st.Child == nil || st.Child.Run != c.End.Run:
		return nil, fmt.Errorf("step %d has not started the run %s", c.Pos, c.End.Run)
	case c.Report.Ref == "" && !json.Valid(c.Report.Value):
		return nil, errors.New("the child's report is not JSON")
	}
	end := c.End
	return []Payload{&StepEnded{Pos: c.Pos, Status: StepSucceeded, Result: c.Report, Child: &end}}, nil
}
