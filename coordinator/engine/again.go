package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// Retry says what another run that takes over what succeeded in an ended one can change.
type Retry struct {
	Possible bool     // there is something to do again
	Helps    bool     // and it may go better as things are
	Why      string   // one sentence
	Next     []string // commands, the best first
}

// retryOf is what a retry of a run can change. The script, its seed and its clock stay what they were: a run of which every step
// succeeded ends the same way again.
func retryOf(s *run.State) Retry {
	id := s.Pinned.ID
	retry := "loopkeeper retry " + id + " --failed"
	switch s.Status {
	case run.Completed:
		return Retry{Why: "nothing of run " + id + " failed"}
	case run.Cancelled:
		return Retry{true, true, "it was cancelled before it was done", []string{retry}}
	case run.Diverged:
		return Retry{true, true, "its replay went wrong, and not its work", []string{retry}}
	case run.TimedOut, run.Exhausted:
		return Retry{true, true, "it ended by a limit", []string{retry + more(s.End.Limit), retry}}
	}
	var open, hopeful, cut int
	var next []string
	count := func(f *run.Failure) {
		if open++; f.Advice != run.Never {
			hopeful++
			return
		}
		for _, n := range f.Next {
			if len(next) < mostNext && !slices.Contains(next, n) {
				next = append(next, n)
			}
		}
	}
	for _, st := range s.Requests {
		switch {
		case len(st.Items) > 0:
			for _, i := range st.Failed {
				count(st.Items[i].Failure)
			}
			cut += st.Counts.Cancelled
		case st.Failure != nil:
			count(st.Failure)
		case !st.Detached && st.Child != nil && st.Child.Status.Ended() && st.Child.Status != run.Completed:
			open, hopeful = open+1, hopeful+1 // it begins anew, with other seeds
		case !st.Note && st.Status != run.StepSucceeded:
			cut++
		}
	}
	switch {
	case open == 0 && cut > 0:
		return Retry{Possible: true, Why: "its script ended while steps of it were open; they are all that there is to do again", Next: []string{retry}}
	case open == 0:
		return Retry{Why: "every step of run " + id + " succeeded, so a retry takes all of them over and ends the same way"}
	case hopeful == 0:
		return Retry{Possible: true, Why: fmt.Sprintf("%s of run %s says that something else has to change first", all(open, "failure"), id), Next: append(next, retry)}
	default:
		return Retry{true, true, fmt.Sprintf("%d of %s may not come again", hopeful, plural(open, "failure")), []string{retry}}
	}
}

// mostNext is how many of the things to do first are named.
const mostNext = 3

// more is the flag that gives a run twice what it used up.
func more(l *run.LimitEnd) string {
	switch {
	case l == nil:
		return ""
	case l.Name == run.LimitActive:
		return " --time-limit " + (2 * time.Duration(l.Limit) * time.Second).String()
	default:
		return fmt.Sprintf(" --limit %s=%d", l.Name, 2*l.Limit)
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func all(n int, what string) string {
	if n == 1 {
		return "the only " + what
	}
	return "every " + what
}
