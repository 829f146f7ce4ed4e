package ui

import (
	"fmt"
	"strings"
	"time"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Calls are the steps of a run that somebody answers: a model, a tool, a person, or a child.
func Calls(r *coordinatorv1.Run) []*coordinatorv1.Step {
	var out []*coordinatorv1.Step
	for _, s := range r.GetSteps() {
		switch s.GetKind() {
		case "generate", "batch", "plan", "evaluate", "embed", "tool", "spawn", "approve", "question", "sleep":
			out = append(out, s)
		}
	}
	return out
}

// StepLine is one step: mark, position, kind, what it is about and how far it is.
func StepLine(s Style, step *coordinatorv1.Step, width int) string {
	what := Line(step.GetLabel())
	if what == "" {
		what = "step " + step.GetId()
	}
	var facts []string
	if c := step.GetItems(); c.GetTotal() > 1 {
		facts = append(facts, fmt.Sprintf("%d/%d", c.GetSucceeded(), c.GetTotal()))
	}
	for _, f := range []string{KindText(step.GetVerdict()), Line(step.GetNode()), waitText(step), Line(step.GetError())} {
		if f != "" {
			facts = append(facts, f)
		}
	}
	if step.GetEnded() != nil && step.GetStarted() != nil {
		facts = append(facts, Duration(step.GetEnded().AsTime().Sub(step.GetStarted().AsTime())))
	}
	end := strings.Join(facts, "  ")
	line := fmt.Sprintf("%s %2s  %-8s  %s  %s", s.Mark(step.GetState()), step.GetId(), step.GetKind(), Middle(what, max(width-22-len(end), 12)), end)
	return strings.TrimRight(line, " ")
}

func waitText(step *coordinatorv1.Step) string {
	if step.GetWaitingFor() == "" {
		return ""
	}
	text := "waiting for " + WaitText(step.GetWaitingFor())
	if until, err := time.Parse(time.RFC3339, step.GetUntil()); err == nil {
		text += " until " + Clock(until, time.Now())
	}
	return text
}

// Steps is the table of a run's steps.
func Steps(s Style, steps []*coordinatorv1.Step) string {
	t := Table{Width: s.Width, Columns: Columns(">STEP", "STATE", "KIND", "/MODEL", ">ITEMS", ">TOOK", "/NODE", "~ABOUT")}
	for _, st := range steps {
		items, took := "-", "-"
		if c := st.GetItems(); c.GetTotal() > 0 {
			items = fmt.Sprintf("%d/%d", c.GetSucceeded(), c.GetTotal())
		}
		if st.GetStarted() != nil && st.GetEnded() != nil {
			took = Duration(st.GetEnded().AsTime().Sub(st.GetStarted().AsTime()))
		}
		var about []string
		for _, text := range []string{Line(st.GetLabel()), ifAny("run ", st.GetChild()), Line(st.GetJudged()), Line(st.GetError()), waitText(st)} {
			if text != "" {
				about = append(about, text)
			}
		}
		t.Add(st.GetId(), s.State(st.GetState()), st.GetKind(), Line(orDash(st.GetModel())), items, took, Line(orDash(st.GetNode())), strings.Join(about, "; "))
	}
	return t.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
