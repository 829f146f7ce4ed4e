package cli

import (
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// conclusion is what a command has to say at its end about the runs that it showed.
type conclusion struct {
	runs  []*coordinatorv1.Run // one, or the two of --first; the last is the newest
	left  int                  // items that were given and not asked for
	extra map[string]any       // fields of the JSON object, such as items
	wrote []string             // files and folders that hold results, with how many
	next  []string             // before what follows from the run's state
}

// end is what the process exits with: an end that is not good counts, the newest first.
func (c conclusion) end() error {
	var end error
	for _, r := range c.runs {
		if e := ended(r); e != nil {
			end = e
		}
	}
	if end == nil && c.left > 0 {
		end = exitWith(exitIncomplete)
	}
	return end
}

// summarise says how a run ended and returns what the process exits with.
func (a *app) summarise(r *coordinatorv1.Run, extra map[string]any) error {
	return a.conclude(conclusion{runs: []*coordinatorv1.Run{r}, extra: extra})
}

// conclude says how the runs ended and where the results are, and returns what the process exits with.
func (a *app) conclude(c conclusion) error {
	end := c.end()
	last := c.runs[len(c.runs)-1]
	if a.json() {
		return firstError(unwrittenOf(last, last.GetId(), a.printJSON(c.object(a.flags.output == "jsonl", exitCode(end)))), end)
	}
	for _, r := range c.runs {
		a.note("%s", trimNewline(ui.Summary(a.style(a.stderr), r, time.Now(), exitCode(ended(r)))))
	}
	if len(c.runs) > 1 {
		a.note("%s", together(c.runs))
	}
	if c.left > 0 {
		a.note("%s not asked for yet  exit %d", ui.Plural(int64(c.left), "item was", "items were"), exitCode(end))
	}
	for _, w := range c.wrote {
		a.note("results  %s", w)
	}
	a.next(append(c.next, a.afterwards(last)...)...)
	return end
}

// object is the JSON of it; as a line it is the summary that ends all lines.
func (c conclusion) object(line bool, exit int) map[string]any {
	all := map[string]any{"run": ui.Plain(c.runs[len(c.runs)-1]), "exit_code": exit}
	if line {
		all["type"] = "summary"
	}
	if len(c.runs) > 1 {
		runs := []any{}
		for _, r := range c.runs {
			runs = append(runs, ui.Plain(r))
		}
		all["runs"] = runs
	}
	if c.left > 0 {
		all["left"], all["next"] = c.left, c.next
	}
	for k, v := range c.extra {
		all[k] = v
	}
	return all
}

// together is what two runs did.
func together(runs []*coordinatorv1.Run) string {
	var ids []string
	var succeeded, total int64
	for _, r := range runs {
		ids = append(ids, r.GetId())
		succeeded, total = succeeded+r.GetItems().GetSucceeded(), total+r.GetItems().GetTotal()
	}
	return "together  runs " + strings.Join(ids, " and ") + ": " + ui.Count(succeeded) + " of " + ui.Plural(total, "item", "items")
}

func trimNewline(s string) string { return strings.TrimRight(s, "\n") }

// afterwards is what to look at when a run did not end as it should.
func (a *app) afterwards(r *coordinatorv1.Run) []string {
	id := r.GetId()
	switch {
	case r.GetEnded() != nil:
	case r.GetState() == "suspended":
		return []string{"loopkeeper resume " + id, "loopkeeper cancel " + id}
	case r.GetWaits() > 0:
		return []string{"loopkeeper approvals " + id, "loopkeeper watch " + id}
	default:
		return []string{"loopkeeper watch " + id, "loopkeeper explain " + id}
	}
	var next []string
	if r.GetRetry().GetHelps() {
		next = append(next, r.GetRetry().GetNext()...)
	}
	switch r.GetState() {
	case "completed":
		return nil
	case "incomplete":
		if hasBatch(r) && r.GetItems().GetFailed() > 0 {
			next = append(next, "loopkeeper result "+id+" --failed-to failed.txt")
		}
		if a.command != "result" {
			next = append(next, "loopkeeper result "+id)
		}
	default:
		if a.command != "show" {
			next = append(next, "loopkeeper show "+id)
		}
	}
	return append(next, "loopkeeper trace "+id)
}
