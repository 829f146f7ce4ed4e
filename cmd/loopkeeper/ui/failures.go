package ui

import (
	"fmt"
	"slices"
	"strings"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// namedItems is how many items of a failure are named in a table; -o json names them all.
const namedItems = 5

// Failures is the table of what failed and why, with what can be done under it.
func Failures(s Style, r *coordinatorv1.Run) string {
	t := Table{Width: s.Width, Columns: Columns(">FAILED", "KIND", "HELPS", "~LAST ERROR", "~ITEMS")}
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
			if line := Line(n); !slices.Contains(next, line) {
				next = append(next, line)
			}
		}
	}
	if len(next) == 0 {
		return t.String()
	}
	return t.String() + "Next: " + strings.Join(next, "\n      ") + "\n"
}
