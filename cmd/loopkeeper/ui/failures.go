package ui

import (
	"fmt"
	"slices"
	"strings"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// namedItems is how many items of a failure are named in a table; -o json names them all.
const namedItems = 5

// onTheWay says of failures that they were handled, rolled back or caught: the run completed.
const onTheWay = "failed on the way"

// Failures is the table of what failed and why, with what can be done under it. Of a run that completed all the same, such as by a
// fallback, nothing is to be done.
func Failures(s Style, r *coordinatorv1.Run) string {
	head, completed := ">FAILED", r.GetState() == "completed"
	if completed {
		head = ">" + strings.ToUpper(onTheWay)
	}
	t := Table{Width: s.Width, Columns: Columns(head, "KIND", "HELPS", "~LAST ERROR", "~ITEMS")}
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
		message := Line(g.GetMessage())
		if g.GetSimulated() {
			message += " (simulated)"
		}
		t.Add(Count(g.GetCount()), KindText(g.GetKind()), helps, message, strings.Join(names, ", "))
		for _, n := range g.GetNext() {
			if completed {
				break
			}
			if line := Line(n); !slices.Contains(next, line) {
				next = append(next, line)
			}
		}
	}
	return t.String() + s.nextLines(next)
}
