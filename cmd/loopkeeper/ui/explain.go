package ui

import (
	"fmt"
	"strings"
	"time"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Explain says why something is placed where it is, or not, machine by machine. A decision as it was taken says when.
func Explain(s Style, e *coordinatorv1.Explanation, now time.Time) string {
	var b strings.Builder
	lead := Line(e.GetSubject())
	if e.GetAt() != nil {
		lead = fmt.Sprintf("%s  %s", clockSeconds(e.GetAt().AsTime(), now), lead)
		if e.GetAction() != "" {
			lead += ", " + actionText(e.GetAction())
		}
	}
	b.WriteString(s.hanging("", "  ", lead+": "+Line(e.GetSummary())))
	if e.GetNote() != "" {
		b.WriteString(s.Finding(s.bad(), e.GetNote()))
	}
	if n := e.GetNeed(); n != nil {
		b.WriteString(s.hanging("", "  ", needText(n)))
	}
	if e.GetWaitingFor() != "" {
		fmt.Fprintf(&b, "waiting for %s\n", WaitText(e.GetWaitingFor()))
	}
	if len(e.GetNodes()) > 0 {
		b.WriteString(verdicts(s, e.GetNodes()))
	}
	return b.String()
}

// Decisions are decisions as they were taken, oldest first.
func Decisions(s Style, list []*coordinatorv1.Explanation, now time.Time) string {
	var b strings.Builder
	for _, d := range list {
		b.WriteString(Explain(s, d, now))
	}
	return b.String()
}

// Incidents are what happened, newest first.
func Incidents(s Style, list []*coordinatorv1.Incident, now time.Time) string {
	if len(list) == 0 {
		return ""
	}
	t := Table{Width: s.Width, Columns: Columns("WHEN", "~WHAT HAPPENED")}
	for _, i := range list {
		t.Add(Clock(i.GetTime().AsTime(), now), Line(i.GetText()))
	}
	return t.String()
}

// actionText is a decision in a word or two.
func actionText(action string) string {
	return word(map[string]string{"start": "started", "wait": "waited", "load": "a load was begun", "unload": "an unload was begun", "impossible": "given up"}, action)
}

// clockSeconds is a time of today to the second, and of another day as Clock has it.
func clockSeconds(t, now time.Time) string {
	if text := Clock(t, now); len(text) > len("15:04") {
		return text
	}
	return t.Local().Format("15:04:05")
}

// needText is a need with the parts that it has.
func needText(n *coordinatorv1.Need) string {
	var parts []string
	for _, p := range needParts(n) {
		if p.bytes > 0 {
			parts = append(parts, p.name+" "+GiB(p.bytes))
		}
	}
	return fmt.Sprintf("needs %s GiB: %s", GiB(needTotal(n)), strings.Join(parts, ", "))
}

// needPart is one part of a need.
type needPart struct {
	name  string
	bytes uint64
}

func needParts(n *coordinatorv1.Need) []needPart {
	return []needPart{{"weights", n.GetWeightsBytes()}, {"KV cache", n.GetKvBytes()}, {"graph", n.GetGraphBytes()}, {"projector", n.GetProjectorBytes()},
		{"constant", n.GetConstantBytes()}, {"margin", n.GetMarginBytes()}}
}

func needTotal(n *coordinatorv1.Need) (total uint64) {
	for _, p := range needParts(n) {
		total += p.bytes
	}
	return total
}

// verdicts is how each machine looks. What no machine has a number for has no column.
func verdicts(s Style, nodes []*coordinatorv1.NodeVerdict) string {
	columns := []column{
		{"/NODE", func(n *coordinatorv1.NodeVerdict) string { return Line(n.GetNode()) }, "-"},
		{"VERDICT", func(n *coordinatorv1.NodeVerdict) string { return s.State(n.GetVerdict()) }, "-"},
		{">NEED", func(n *coordinatorv1.NodeVerdict) string { return amount(n.GetNeedBytes()) }, "?"},
		{">AVAILABLE", func(n *coordinatorv1.NodeVerdict) string { return amountOf(n.AvailableBytes) }, "?"},
		{">SHORT", func(n *coordinatorv1.NodeVerdict) string { return amount(n.GetShortBytes()) }, "-"},
		{">MOST CONTEXT", func(n *coordinatorv1.NodeVerdict) string { return tokens(n.GetLargestContext()) }, "-"},
		{">ENDS IN", ends, "-"},
		{"~WHY", why, "-"},
	}
	return columnTable(s, columns, nodes)
}

// column is a head and what a row has under it, "" for nothing, and what stands for that.
type column struct {
	head    string
	cell    func(*coordinatorv1.NodeVerdict) string
	nothing string
}

func columnTable(s Style, columns []column, nodes []*coordinatorv1.NodeVerdict) string {
	var heads []string
	var used []column
	for _, c := range columns {
		for _, n := range nodes {
			if c.cell(n) != "" {
				heads, used = append(heads, c.head), append(used, c)
				break
			}
		}
	}
	t := Table{Width: s.Width, Columns: Columns(heads...)}
	for _, n := range nodes {
		row := make([]string, len(used))
		for i, c := range used {
			if row[i] = c.cell(n); row[i] == "" {
				row[i] = c.nothing
			}
		}
		t.Add(row...)
	}
	return t.String()
}

func amount(bytes uint64) string {
	if bytes == 0 {
		return ""
	}
	return GiB(bytes)
}

func amountOf(bytes *uint64) string {
	if bytes == nil {
		return ""
	}
	return GiB(*bytes)
}

func tokens(n int32) string {
	if n == 0 {
		return ""
	}
	return Count(int64(n))
}

// ends is when a call would end on a machine, an estimate.
func ends(n *coordinatorv1.NodeVerdict) string {
	total := n.GetWaitNanos() + n.GetLoadNanos() + n.GetServeNanos()
	if total == 0 {
		return ""
	}
	return Duration(time.Duration(total))
}

// why is the clause of a verdict, with what would go and the parts of the estimate.
func why(n *coordinatorv1.NodeVerdict) string {
	text := Line(n.GetWhy())
	if len(n.GetEvict()) > 0 && !strings.Contains(text, n.GetEvict()[0]) {
		text += "; unloads " + strings.Join(n.GetEvict(), ", ")
	}
	var parts []string
	for _, p := range []struct {
		what  string
		nanos int64
	}{{"wait", n.GetWaitNanos()}, {"load", n.GetLoadNanos()}, {"call", n.GetServeNanos()}} {
		if p.nanos > 0 {
			parts = append(parts, p.what+" "+Duration(time.Duration(p.nanos)))
		}
	}
	if len(parts) > 1 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}
