package ui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/doctor"
)

// Doctor prints findings, what is well first and what is broken last, where it is seen, and how many there are.
func Doctor(s Style, found []doctor.Finding) string {
	marks := map[doctor.Level]string{doctor.OK: s.good(), doctor.Warning: s.bad(), doctor.Error: s.Mark("failed")}
	part := 0
	for _, f := range found {
		part = max(part, ansi.StringWidth(f.Part))
	}
	var b strings.Builder
	for _, level := range []doctor.Level{doctor.OK, doctor.Warning, doctor.Error} {
		for _, f := range found {
			if f.Level != level {
				continue
			}
			indent := strings.Repeat(" ", part+4)
			b.WriteString(s.hanging(fmt.Sprintf("%s %-*s  ", marks[level], part, f.Part), indent, Line(f.Text)))
			b.WriteString(s.advice(indent, []string{f.Next}))
		}
	}
	fmt.Fprintf(&b, "%d ok, %s, %s\n", doctor.Count(found, doctor.OK), Plural(int64(doctor.Count(found, doctor.Warning)), "warning", "warnings"),
		Plural(int64(doctor.Count(found, doctor.Error)), "error", "errors"))
	return b.String()
}
