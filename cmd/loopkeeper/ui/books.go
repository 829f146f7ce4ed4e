package ui

import (
	"fmt"
	"strings"
	"time"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// kin says which runs a run belongs to.
func (s Style) kin(r *coordinatorv1.Run) string {
	return s.fact("parent", ifAny("run ", r.GetParent())) + s.fact("children", strings.Join(r.GetChildren(), ", ")) +
		s.fact("base", ifAny("takes over what succeeded in run ", r.GetBase()))
}

// WaitsText says how many steps of a run wait for a person, "" for none.
func WaitsText(r *coordinatorv1.Run) string {
	switch n := r.GetWaits(); {
	case n == 0 || r.GetEnded() != nil:
		return ""
	case n == 1:
		return "1 step waits for a person"
	default:
		return Count(int64(n)) + " steps wait for a person"
	}
}

// Budgets says how much of each limit is spent, and what could have been at most of one that was reached.
func (s Style) Budgets(r *coordinatorv1.Run) string {
	var b strings.Builder
	for _, l := range r.GetLimits() {
		b.WriteString(s.fact("limit", limitText(l)))
	}
	return b.String()
}

// reached is Budgets of those that were used up.
func (s Style) reached(r *coordinatorv1.Run) string {
	var b strings.Builder
	for _, l := range r.GetLimits() {
		if l.GetOvershoot() > 0 || l.GetWorst() > 0 {
			b.WriteString(s.fact("limit", limitText(l)))
		}
	}
	return b.String()
}

var limitNames = map[string]string{"active_seconds": "active time", "artifact_bytes": "bytes of a result", "spawn_depth": "depth of children"}

func limitText(l *coordinatorv1.Limit) string {
	amount := Count
	if l.GetName() == "active_seconds" {
		amount = func(n int64) string { return Duration(time.Duration(n) * time.Second) }
	}
	text := word(limitNames, l.GetName()) + ": "
	switch l.GetName() {
	case "artifact_bytes", "spawn_depth": // nothing is spent of these
		text += "at most " + amount(l.GetLimit())
	default:
		text += fmt.Sprintf("%s of %s spent", amount(l.GetSpent()), amount(l.GetLimit()))
	}
	if l.GetOvershoot() > 0 {
		text += fmt.Sprintf(", %s too much", amount(l.GetOvershoot()))
	}
	if l.GetWorst() > 0 {
		text += fmt.Sprintf(", at most %s were possible", amount(l.GetWorst()))
	}
	return text + ifAny(", set by ", setBy[l.GetSetBy()])
}

var setBy = map[string]string{"run": "this run", "workflow": "its workflow", "default": "the default", "parent": "its parent", "base": "the run that it builds on"}

// Accepted says what was expected against what was done, and what counts as done although it failed, or failed unseen.
func (s Style) Accepted(r *coordinatorv1.Run) string {
	a, unseen := r.GetAcceptance(), "the script caught this failure and did not waive it: "
	if r.GetBuiltIn() { // there is no script of the user's that could
		unseen = "it went on after this failure, which counts: "
	}
	var b strings.Builder
	if a.GetExpected() > 0 {
		text := fmt.Sprintf("%s expected: %s covered", Count(a.GetExpected()), Count(a.GetCovered()))
		for _, p := range []struct {
			n    int64
			word string
		}{{a.GetHandled(), "handled"}, {a.GetFailed(), "failed"}, {a.GetUncovered(), "never done"}} {
			if p.n > 0 {
				text += fmt.Sprintf(", %s %s", Count(p.n), p.word)
			}
		}
		if a.GetByCode() > 0 {
			text += "; " + onlyByCode(a.GetByCode())
		}
		b.WriteString(s.fact("accepted", text))
	}
	b.WriteString(s.fact("missing", named(a.GetUncoveredKeys(), a.GetUncovered())))
	for _, h := range a.GetHandledBy() {
		b.WriteString(s.fact("handled", Line(h)))
	}
	for _, f := range a.GetSwallowed() {
		b.WriteString(s.fact("unseen", unseen+Line(f)))
	}
	if more := a.GetSwallowedAll() - int64(len(a.GetSwallowed())); more > 0 {
		b.WriteString(s.fact("unseen", fmt.Sprintf("and %s more", Count(more))))
	}
	return b.String()
}

// onlyByCode says how many of what was expected nothing but the script's word covers.
func onlyByCode(n int64) string {
	return fmt.Sprintf("of %s only the script says so", Count(n))
}

// named lists the first of so many names.
func named(names []string, all int64) string {
	var out []string
	for _, n := range names[:min(len(names), namedItems)] {
		out = append(out, Line(n))
	}
	if more := all - int64(len(out)); more > 0 && len(out) > 0 {
		out = append(out, fmt.Sprintf("and %s more", Count(more)))
	}
	return strings.Join(out, ", ")
}

// Phases is the table of a pipeline's phases.
func Phases(s Style, phases []*coordinatorv1.Phase) string {
	t := Table{Width: s.Width, Columns: Columns("/PIPELINE", "PHASE", "STATE", ">ROUND", "~REASONS")}
	for _, p := range phases {
		var reasons []string
		for _, r := range p.GetReasons() {
			reasons = append(reasons, Line(r))
		}
		t.Add(Line(p.GetPipeline()), Line(p.GetName()), s.State(p.GetState()), Count(int64(p.GetRound())), strings.Join(reasons, "; "))
	}
	return t.String()
}

// PhaseNow is the phase in progress with its place among the others, "" for none.
func PhaseNow(r *coordinatorv1.Run) string {
	for i, p := range r.GetPhases() {
		if p.GetState() == "in_progress" {
			text := fmt.Sprintf("%s: phase %s (%d of %d)", Line(p.GetPipeline()), Line(p.GetName()), i+1, len(r.GetPhases()))
			if p.GetRound() > 1 {
				text += fmt.Sprintf(", round %d", p.GetRound())
			}
			return text
		}
	}
	return ""
}
