package run

import "bytes"

// Adoption is a result of the base run that a step takes over.
type Adoption struct {
	Reuse
	Event int64 // the base's event that has the result, when Reuse has none: see ResultOf
	// Doubt: it is unknown whether the base's write happened. Then Doubt is the command, and not Reuse.
	Doubt bool
}

// Adoptions are what the step at pos takes over from the run's base: of a step that asks for the same at the same position, the
// items that succeeded there, or the answer that it was given. All else is done anew.
func (s *State) Adoptions(base *State, pos int) []Adoption {
	b := s.Pinned.Base
	st, old := s.Step(pos), base.Step(pos)
	switch {
	case b == nil || b.Run != base.Pinned.ID || b.Before > 0 && pos >= b.Before:
		return nil
	case st == nil || old == nil || st.Note || old.Note || st.Kind != old.Kind || !bytes.Equal(st.Body, old.Body):
		return nil
	case st.Status.Ended() || len(st.Items) != len(old.Items):
		return nil
	case len(st.Items) == 0 && steps[st.Kind].waits != "":
		return old.adoption(base)
	}
	var out []Adoption
	for i := range old.Items {
		it := &old.Items[i]
		if it.Status != StepSucceeded && it.Status != StepUnknown || st.Items[i].Status != StepReady {
			continue
		}
		a := Adoption{Reuse: Reuse{Pos: pos, Item: i, From: From{base.Pinned.ID, pos, i}, Result: it.Result, Node: it.Node, Report: it.Report.report()}}
		switch {
		case it.Status == StepUnknown:
			a.Doubt = true
		case it.Result.Empty():
			a.Event = it.Event
		}
		out = append(out, a)
	}
	return out
}

// Adoptable counts the steps before a position, all of them with 0, of which a run that builds upon this one takes something over.
func (s *State) Adoptable(before int) (n int) {
	for _, st := range s.Requests {
		switch {
		case before > 0 && st.Pos >= before:
			return n
		case st.Note:
		case st.Counts.Succeeded > 0, len(st.Items) == 0 && steps[st.Kind].waits != "" && len(st.adoption(s)) > 0:
			n++
		}
	}
	return n
}

// adoption is the answer of a wait. A child is taken over only when it completed.
func (st *Step) adoption(base *State) []Adoption {
	if st.Status != StepSucceeded || st.Kind == KindSpawn && (st.Child == nil || st.Child.Status != Completed) {
		return nil
	}
	return []Adoption{{Reuse: Reuse{Pos: st.Pos, From: From{Run: base.Pinned.ID, Pos: st.Pos}, Result: st.Result, Child: st.Child}}}
}

// report is what is known of the call that made a result.
func (s Spent) report() Report {
	return Report{Model: s.Model, PromptTokens: s.PromptTokens, OutputTokens: s.OutputTokens, TotalNanos: s.Nanos, Simulated: s.Simulated}
}
