package ui

import (
	"fmt"
	"strings"
	"time"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Runs is the table of runs.
func Runs(s Style, runs []*coordinatorv1.Run, now time.Time) string {
	if len(runs) == 0 {
		return "No runs yet.\nNext: loopkeeper map --model MODEL --prompt 'Summarise: {{item}}' 'docs/*.md'\n"
	}
	t := Table{Columns: Columns("RUN", "WORKFLOW", "STATE", ">ITEMS", ">COVERAGE", ">TOOK", "STARTED", "")}
	for _, r := range runs {
		c := r.GetItems()
		items := "-"
		if c.GetTotal() > 0 {
			items = Count(c.GetSucceeded()) + "/" + Count(c.GetTotal())
		}
		note := ""
		if c.GetFailed() > 0 {
			note = Count(c.GetFailed()) + " failed"
		}
		if r.GetSimulated() {
			note = strings.TrimPrefix(note+", simulated", ", ")
		}
		t.Add(r.GetId(), Line(r.GetWorkflow()), s.State(r.GetState()), items, Percent(c.GetSucceeded(), c.GetTotal()), Duration(Took(r, now)),
			Clock(r.GetCreated().AsTime(), now), note)
	}
	return t.String()
}

// Show is one run in full: what it is, how far it came, its steps and nodes.
func Show(s Style, r *coordinatorv1.Run, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s  %s  %s%s  %s, took %s\n", r.GetId(), Line(r.GetWorkflow()), s.State(r.GetState()), Simulated(r.GetSimulated()),
		Clock(r.GetCreated().AsTime(), now), Duration(Took(r, now)))
	if r.GetKey() != "" {
		fmt.Fprintf(&b, "key      %s\n", Line(r.GetKey()))
	}
	script := r.GetScriptSha256()
	fmt.Fprintf(&b, "script   %s, seed %d\n", script[:min(len(script), 12)], r.GetSeed())
	fmt.Fprintf(&b, "items    %s: %s\n", Count(r.GetItems().GetTotal()), Tally(r))
	fmt.Fprintf(&b, "tokens   %s in, %s out, %s\n", Tokens(r.GetPromptTokens()), Tokens(r.GetOutputTokens()), Plural(r.GetCalls(), "call", "calls"))
	if r.GetError() != "" {
		fmt.Fprintf(&b, "error    %s\n", r.GetError())
	}
	for _, w := range r.GetWaiting() {
		fmt.Fprintf(&b, "waiting  %s for %s: %s\n", Count(w.GetCount()), w.GetWaitingFor(), Line(w.GetWhy()))
	}
	for _, l := range r.GetLogs() {
		fmt.Fprintf(&b, "log      %s\n", Line(l))
	}
	if steps := r.GetSteps(); len(steps) > 0 {
		b.WriteString("\n")
		b.WriteString(Steps(s, steps))
	}
	if len(r.GetNodes()) > 0 {
		b.WriteString("\n" + NodeShares(r))
	}
	if len(r.GetFailures()) > 0 {
		b.WriteString("\n" + Failures(r))
	}
	return b.String()
}

// Steps is the table of a run's steps.
func Steps(s Style, steps []*coordinatorv1.Step) string {
	t := Table{Columns: Columns(">STEP", "STATE", "KIND", "MODEL", ">ITEMS", ">TOOK", "NODE", "ABOUT")}
	for _, st := range steps {
		items, took, node := "-", "-", st.GetNode()
		if c := st.GetItems(); c.GetTotal() > 0 {
			items = fmt.Sprintf("%d/%d", c.GetSucceeded(), c.GetTotal())
		}
		if st.GetStarted() != nil && st.GetEnded() != nil {
			took = Duration(st.GetEnded().AsTime().Sub(st.GetStarted().AsTime()))
		}
		if node == "" {
			node = "-"
		}
		about := Line(st.GetLabel())
		if st.GetError() != "" {
			about = strings.TrimSpace(about + "  " + Line(st.GetError()))
		}
		if w := waitText(st); w != "" {
			about = strings.TrimSpace(about + "  " + w)
		}
		t.Add(st.GetId(), s.State(st.GetState()), st.GetKind(), Line(orDash(st.GetModel())), items, took, Line(node), Middle(about, 60))
	}
	return t.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// NodeShares is the table of which node did what.
func NodeShares(r *coordinatorv1.Run) string {
	t := Table{Columns: Columns("NODE", ">ITEMS", ">TOKENS", ">TOK/S", ">FAILED TRIES", "")}
	for _, n := range r.GetNodes() {
		speed, note := "?", ""
		if n.GetOutputNanos() > 0 {
			speed = fmt.Sprintf("%.1f", float64(n.GetOutputTokens())/(float64(n.GetOutputNanos())/1e9))
		}
		if n.GetSimulated() {
			note = "simulated"
		}
		t.Add(Line(n.GetName()), Count(n.GetItems()), Tokens(n.GetOutputTokens()), speed, Count(n.GetFailedTries()), note)
	}
	return t.String()
}

// namedItems is how many items of a failure are named in a table; -o json names them all.
const namedItems = 5

// Failures is the table of what failed and why, with what can be done under it.
func Failures(r *coordinatorv1.Run) string {
	t := Table{Columns: Columns(">FAILED", "KIND", "HELPS", "LAST ERROR", "ITEMS")}
	var next []string
	for _, g := range r.GetFailures() {
		helps := "change"
		if g.GetRetryHelps() {
			helps = "retry"
		}
		var names []string
		for _, n := range g.GetItems()[:min(len(g.GetItems()), namedItems)] {
			names = append(names, Line(n))
		}
		if more := len(g.GetItems()) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		t.Add(Count(g.GetCount()), g.GetKind(), helps, Middle(Line(g.GetMessage()), 70), strings.Join(names, ", "))
		for _, n := range g.GetNext() {
			next = append(next, "  "+g.GetKind()+": "+Line(n))
		}
	}
	if len(next) == 0 {
		return t.String()
	}
	return t.String() + "Next:\n" + strings.Join(next, "\n") + "\n"
}

// Summary is what stands at the end of a run: its state, coverage, who did what, what failed, how long it took.
func Summary(s Style, r *coordinatorv1.Run, now time.Time, exit int) string {
	var b strings.Builder
	c := r.GetItems()
	fmt.Fprintf(&b, "run %s  %s  %s%s", r.GetId(), Line(r.GetWorkflow()), s.State(r.GetState()), Simulated(r.GetSimulated()))
	if c.GetTotal() > 0 {
		fmt.Fprintf(&b, "  coverage %s (%s of %s)", Percent(c.GetSucceeded(), c.GetTotal()), Count(c.GetSucceeded()), Count(c.GetTotal()))
	}
	fmt.Fprintf(&b, "  took %s", Duration(Took(r, now)))
	if exit != 0 {
		fmt.Fprintf(&b, "  exit %d", exit)
	}
	b.WriteString("\n")
	if r.GetError() != "" {
		fmt.Fprintf(&b, "%s\n", r.GetError())
		if stack := strings.TrimRight(r.GetErrorStack(), "\n"); stack != "" {
			b.WriteString(stack + "\n")
		}
	}
	if len(r.GetNodes()) > 0 {
		b.WriteString(NodeShares(r))
	}
	if len(r.GetFailures()) > 0 {
		b.WriteString(Failures(r))
	}
	return b.String()
}
