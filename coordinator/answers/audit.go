package answers

import (
	"fmt"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// The questions of an audit.
const (
	RoundTrips   = "round_trips"
	SharedWrites = "shared_writes"
	Replayable   = "replayable"
	Sources      = "sources"
	Coverage     = "coverage"
	Evidence     = "evidence"
	Chained      = "chain"
)

// Check is one question with its answer. It passed when there are no findings.
type Check struct {
	Code     string
	Question string
	Answer   string   // one sentence with the numbers
	Findings []string // what is wrong, each with its step
}

// Passed says whether nothing is wrong.
func (c Check) Passed() bool { return len(c.Findings) == 0 }

// Around is what an audit has to know beyond the run's own events.
type Around struct {
	Gone     map[string]string     // of the bodies that Needs names: why one cannot be opened; one that can is not in it
	Children map[string]*run.State // states of the runs that this one spawned, as far as they are here
	Head     ChainEnd              // the end of the chain as the ledger has it
	Computed ChainEnd              // and as it follows from the events
}

// ChainEnd is the end of a chain of events.
type ChainEnd struct {
	Seq  int64
	Hash string
}

// mostFindings bounds how many findings of one question are listed.
const mostFindings = 20

// found lists findings, and counts what it does not list.
type found struct {
	list []string
	more int
}

func (f *found) add(format string, args ...any) {
	if len(f.list) == mostFindings {
		f.more++
		return
	}
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

func (f *found) all() []string {
	if f.more > 0 {
		return append(f.list, fmt.Sprintf("and %d more", f.more))
	}
	return f.list
}

// Audit asks a run's record all questions.
func (r *Record) Audit(a Around) []Check {
	return []Check{r.roundTrips(), r.sharedWrites(a.Children), r.replayable(a.Gone), r.sources(), r.coverage(), r.evidence(), chain(a)}
}

// sources asks whether every output can be traced to steps that succeeded.
func (r *Record) sources() Check {
	c := Check{Code: Sources, Question: "Can every output be traced to a step that succeeded?"}
	var f found
	s, inferred, byCode := r.State, 0, 0
	made := 0
	for _, st := range s.Requests {
		if !st.Note {
			made++
		}
	}
	for _, o := range s.Outputs {
		switch {
		case len(o.Sources) == 0 && made == 0:
			byCode++
		case len(o.Sources) == 0:
			f.add("output %s names no step that it rests on", o.Name)
		case o.Inferred:
			inferred++
		}
		for _, pos := range o.Sources {
			st := s.Step(pos)
			switch {
			case st == nil:
				f.add("output %s rests on step %d, which there is not", o.Name, pos)
			case st.Note || st.Status == run.StepSucceeded || r.handled(pos):
			case st.Counts.Succeeded > 0:
				f.add("output %s rests on step %d (%s), of which %d of %d items did not succeed", o.Name, pos, st.Kind, st.Counts.Total-st.Counts.Succeeded, st.Counts.Total)
			default:
				f.add("output %s rests on step %d (%s), which is %s", o.Name, pos, st.Kind, st.Status)
			}
		}
	}
	c.Findings = f.all()
	switch n := len(s.Outputs); {
	case n == 0:
		c.Answer = "There are no outputs."
	default:
		c.Answer = fmt.Sprintf("%s.", plural(n, "output", "outputs"))
		if inferred > 0 {
			c.Answer = fmt.Sprintf("%s; of %d nobody could see where the value comes from, so every step that had succeeded counts as its source.", plural(n, "output", "outputs"), inferred)
		}
		if byCode > 0 {
			c.Answer = fmt.Sprintf("%s, of which %d came from the script's code alone.", plural(n, "output", "outputs"), byCode)
		}
	}
	return c
}

// handled says whether all failures of a step were waived or made good.
func (r *Record) handled(pos int) bool {
	a := r.acceptance()
	items := map[int]bool{}
	for _, h := range append(append([]run.Handled(nil), a.Waived...), a.Fallbacks...) {
		if h.Step == pos {
			if h.Item < 0 {
				return true
			}
			items[h.Item] = true
		}
	}
	st := r.State.Step(pos)
	for _, i := range st.Failed {
		if !items[i] {
			return false
		}
	}
	return len(st.Failed) > 0
}

// coverage asks whether everything that was handed in or expected is done.
func (r *Record) coverage() Check {
	c := Check{Code: Coverage, Question: "Is everything that was handed in or expected done, or known to be missing?"}
	var f found
	a := r.acceptance()
	if a.Uncovered > 0 {
		f.add("%s not covered: %s", plural(a.Uncovered, "key is", "keys are"), some(a.UncoveredKeys, a.Uncovered))
	}
	if a.Failed > 0 {
		f.add("%s failed: %s", plural(a.Failed, "key", "keys"), some(a.FailedKeys, a.Failed))
	}
	for _, m := range a.Swallowed {
		what := fmt.Sprintf("step %d", m.Step)
		if m.Key != "" {
			what += ", " + m.Key
		}
		f.add("%s failed (%s: %s), and the script neither handled nor reported it", what, m.Kind, m.Message)
	}
	f.more += a.SwallowedAll - len(a.Swallowed)
	for _, col := range r.State.Collected {
		for _, x := range col.Failures {
			f.add("%s: %s: %s", col.Label, x.Key, x.Message)
		}
	}
	c.Findings = f.all()
	switch {
	case a.Expected > 0:
		c.Answer = fmt.Sprintf("%d of %d expected keys are covered, %d handled, %d failed, %d not covered.", a.Covered, a.Expected, a.Handled, a.Failed, a.Uncovered)
	default:
		n := r.State.Counts
		c.Answer = fmt.Sprintf("No keys were expected; %d of %d items succeeded.", n.Succeeded, n.Total)
	}
	return c
}

// chain asks whether the events are the ones that were written.
func chain(a Around) Check {
	c := Check{Code: Chained, Question: "Are the events those that were written?", Answer: fmt.Sprintf("%d events, and each fits the one before it.", a.Head.Seq)}
	if a.Head != a.Computed {
		c.Answer = fmt.Sprintf("The chain of %d events does not end as the ledger says.", a.Computed.Seq)
		c.Findings = []string{fmt.Sprintf("the events end in %.12s at %d, the ledger says %.12s at %d: loopkeeper verify names the first that does not fit",
			a.Computed.Hash, a.Computed.Seq, a.Head.Hash, a.Head.Seq)}
	}
	return c
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// some lists the first of n names.
func some(names []string, n int) string {
	if len(names) > mostListed {
		names = names[:mostListed]
	}
	text := strings.Join(names, ", ")
	if n > len(names) {
		text += ", ..."
	}
	return text
}
