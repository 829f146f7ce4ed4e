package ui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Runs is the table of runs.
func Runs(s Style, runs []*coordinatorv1.Run, now time.Time) string {
	if len(runs) == 0 {
		return "No runs yet.\nNext: loopkeeper map --model MODEL --prompt 'Summarise: {{item}}' 'docs/*.md'\n"
	}
	t := Table{Width: s.Width, Columns: Columns("RUN", "/WORKFLOW", "STATE", ">ITEMS", ">DONE", ">TOOK", "STARTED", "~")}
	for _, r := range runs {
		c := r.GetItems()
		items := "-"
		if c.GetTotal() > 0 {
			items = Count(c.GetSucceeded()) + "/" + Count(c.GetTotal())
		}
		note, done := "", Percent(c.GetSucceeded(), c.GetTotal())
		completed := r.GetState() == "completed"
		switch {
		case c.GetFailed() > 0 && completed:
			note = Count(c.GetFailed()) + " " + onTheWay
		case c.GetFailed() > 0:
			note = Count(c.GetFailed()) + " failed"
		}
		switch {
		case completed && c.GetTotal() > 0:
			done = Percent(1, 1)
		case unfinished[r.GetState()] != "" && c.GetSucceeded() == c.GetTotal(): // of the items; of what would have come nobody knows
			done = "-"
		}
		if n := r.GetByCode(); n > 0 && completed {
			note = strings.TrimPrefix(note+", "+onlyByCode(n), ", ")
		}
		for _, p := range []string{WaitsText(r), ifAny("child of ", r.GetParent()), ifAny("from ", r.GetBase())} {
			note = strings.TrimPrefix(note+ifAny(", ", p), ", ")
		}
		if SimulatedRun(r) {
			note = strings.TrimPrefix(note+", simulated", ", ")
		}
		t.Add(r.GetId(), Line(r.GetWorkflow()), s.State(r.GetState()), items, done, Duration(Took(r, now)),
			Clock(r.GetCreated().AsTime(), now), note)
	}
	return t.String()
}

// Show is one run in full: what it is, how far it came, its steps and nodes.
func Show(s Style, r *coordinatorv1.Run, now time.Time) string {
	var b strings.Builder
	b.WriteString(s.headline([]string{s.what(r), Clock(r.GetCreated().AsTime(), now) + ", took " + Duration(Took(r, now))}))
	script := r.GetScriptSha256()
	for _, p := range [][2]string{
		{"reason", Line(r.GetCancelReason())},
		{"parked", Line(r.GetParkedBy())},
		{"asks", WaitsText(r)},
		{"phase", PhaseNow(r)},
		{"key", Line(r.GetKey())},
		{"script", script[:min(len(script), 12)] + ", the hash of what this run was started with"},
		{"seed", fmt.Sprintf("%d, which all random choices of the run and its calls follow from", r.GetSeed())},
		{"items", fmt.Sprintf("%s: %s", Count(r.GetItems().GetTotal()), strings.ReplaceAll(Tally(r), "  ", ", "))},
		{"tokens", fmt.Sprintf("%s in, %s out, %s", Tokens(r.GetPromptTokens()), Tokens(r.GetOutputTokens()), Plural(r.GetCalls(), "call", "calls"))},
		{"active", activeText(r, now)},
		{"error", Line(r.GetError())},
	} {
		b.WriteString(s.fact(p[0], p[1]))
	}
	b.WriteString(s.pins(r) + s.kin(r) + s.Budgets(r) + s.Accepted(r) + s.noRetry(r))
	for _, w := range r.GetWaiting() {
		if w.GetWaitingFor() == "human" { // what it asks stands above
			continue
		}
		b.WriteString(s.fact("waiting", fmt.Sprintf("%s for %s", Count(w.GetCount()), WaitText(w.GetWaitingFor()))+ifAny(": ", Line(w.GetWhy()))))
	}
	for _, l := range r.GetLogs() {
		b.WriteString(s.fact("log", Line(l)))
	}
	if steps := r.GetSteps(); len(steps) > 0 {
		b.WriteString("\n" + Steps(s, steps))
	}
	if len(r.GetPhases()) > 0 {
		b.WriteString("\n" + Phases(s, r.GetPhases()))
	}
	if len(r.GetNodes()) > 0 {
		b.WriteString("\n" + NodeShares(s, r))
	}
	if len(r.GetFailures()) > 0 {
		b.WriteString("\n" + Failures(s, r))
	}
	return b.String()
}

// pins is what a run keeps of the settings of its beginning.
func (s Style) pins(r *coordinatorv1.Run) string {
	var out string
	for _, role := range r.GetRoles() {
		out += s.fact("role", Line(role.GetName()+": "+strings.Join(role.GetModels(), ", ")))
	}
	var texts []string
	for _, p := range r.GetPrompts() {
		texts = append(texts, p.GetName()+" "+p.GetVersion())
	}
	if len(texts) > 0 {
		out += s.fact("prompts", Line(strings.Join(texts, ", "))+", which are not this release's own")
	}
	for _, j := range r.GetJudges() {
		out += s.fact("judge", Line(j))
	}
	return out
}

// activeText is how much of a run's time it was at work, where a part of it was parked.
func activeText(r *coordinatorv1.Run, now time.Time) string {
	active := time.Duration(r.GetActiveNanos())
	if active == 0 || Took(r, now)-active < time.Second { // 0: it is not known
		return ""
	}
	return Duration(active) + "; the rest it was parked, which no limit counts"
}

// what is a run's name and state.
func (s Style) what(r *coordinatorv1.Run) string {
	return fmt.Sprintf("run %s  %s  %s%s", r.GetId(), Line(r.GetWorkflow()), s.State(r.GetState()), Simulated(SimulatedRun(r)))
}

// SimulatedRun says whether a stand-in had to do with a run. Of one that has called no model yet nothing is known: it may never call one.
func SimulatedRun(r *coordinatorv1.Run) bool {
	return r.GetSimulated() && (r.GetEnded() != nil || r.GetCalls() > 0 || len(r.GetNodes()) > 0 || len(r.GetInFlight()) > 0 || r.GetBase() != "" || len(r.GetChildren()) > 0)
}

// headline is facts beside each other; where they have not room, all but the first stand in a line of their own.
func (s Style) headline(facts []string) string {
	line := strings.Join(facts, "  ")
	if s.Width > 0 && ansi.StringWidth(line) > s.Width {
		line = facts[0] + "\n" + strings.Join(facts[1:], "  ")
	}
	return line + "\n"
}

// fact is a line of what is known, "" when nothing is; a long one goes on under its beginning.
func (s Style) fact(name, text string) string {
	if text == "" {
		return ""
	}
	const indent = 9
	if s.Width > indent+leastCell && ansi.StringWidth(text) > s.Width-indent {
		text = strings.ReplaceAll(wrapped(text, s.Width-indent), "\n", "\n"+strings.Repeat(" ", indent))
	}
	return fmt.Sprintf("%-*s%s\n", indent, name, text)
}

// NodeShares is the table of which node did what.
func NodeShares(s Style, r *coordinatorv1.Run) string {
	t := Table{Width: s.Width, Columns: Columns("/NODE", ">ITEMS", ">TOKENS", ">TOK/S", ">FAILED TRIES", "")}
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

// Summary is what stands at the end of a run: its state, coverage, who did what, what failed, how long it took.
func Summary(s Style, r *coordinatorv1.Run, now time.Time, exit int) string {
	var b strings.Builder
	c := r.GetItems()
	facts := []string{s.what(r)}
	part, whole := c.GetSucceeded(), c.GetTotal()
	if a := r.GetAcceptance(); a.GetExpected() > 0 { // what was handed in counts, not what the script made of it
		part, whole = a.GetCovered(), a.GetExpected()
	}
	switch {
	case r.GetState() == "completed" && part < whole: // the rest was handled
		facts = append(facts, fmt.Sprintf("%s of %s, the rest %s", Count(part), Count(whole), onTheWay))
	case part == whole && whole > 0 && unfinished[r.GetState()] != "":
		facts = append(facts, fmt.Sprintf("%s of %s done, then %s", Count(part), Count(whole), unfinished[r.GetState()]))
	case whole > 0:
		facts = append(facts, fmt.Sprintf("coverage %s (%s of %s)", Percent(part, whole), Count(part), Count(whole)))
	}
	facts = append(facts, "took "+Duration(Took(r, now)))
	if exit != 0 {
		facts = append(facts, fmt.Sprintf("exit %d", exit))
	}
	b.WriteString(s.headline(facts))
	b.WriteString(s.fact("reason", Line(r.GetCancelReason())) + s.fact("parked", Line(r.GetParkedBy())) + s.fact("asks", WaitsText(r)))
	if r.GetError() != "" {
		fmt.Fprintf(&b, "%s\n", Line(r.GetError()))
		if stack := strings.TrimRight(Text(r.GetErrorStack()), "\n"); stack != "" {
			b.WriteString(withoutRepeats(stack) + "\n")
		}
	}
	b.WriteString(s.reached(r) + s.Accepted(r) + s.noRetry(r))
	if len(r.GetNodes()) > 0 {
		b.WriteString(NodeShares(s, r))
	}
	if len(r.GetFailures()) > 0 {
		b.WriteString(Failures(s, r))
	}
	return b.String()
}

// unfinished says of the ends that come before a script's own what happened: where all items were done by then, a full coverage alone would
// read as if nothing was missing.
var unfinished = map[string]string{"failed": "the run failed", "timed_out": "its time was used up", "exhausted": "a limit was used up",
	"cancelled": "it was cancelled", "diverged": "it diverged"}

// withoutRepeats says of equal lines that follow each other, as those of a deep recursion, how many there are.
func withoutRepeats(text string) string {
	var out []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		n := 1
		for i+n < len(lines) && lines[i+n] == lines[i] {
			n++
		}
		if out = append(out, lines[i]); n == 2 {
			out = append(out, lines[i])
		} else if n > 2 {
			out = append(out, fmt.Sprintf("    ... %d more of the same", n-1))
		}
		i += n
	}
	return strings.Join(out, "\n")
}

// noRetry says why to try the same again would change nothing.
func (s Style) noRetry(r *coordinatorv1.Run) string {
	if r.GetRetry() == nil || r.GetRetry().GetHelps() || r.GetState() == "completed" {
		return ""
	}
	return s.fact("retry", "would change nothing: "+Line(r.GetRetry().GetWhy()))
}
