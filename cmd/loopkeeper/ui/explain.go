package ui

import (
	"fmt"
	"strings"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Explain says why something is placed where it is, or not, machine by machine.
func Explain(s Style, e *coordinatorv1.Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", Line(e.GetSubject()), Line(e.GetSummary()))
	if e.GetNote() != "" {
		fmt.Fprintf(&b, "%s %s\n", s.bad(), Line(e.GetNote()))
	}
	if n := e.GetNeed(); n != nil {
		b.WriteString(needText(n))
	}
	if e.GetWaitingFor() != "" {
		fmt.Fprintf(&b, "waiting for %s\n", WaitText(e.GetWaitingFor()))
	}
	if len(e.GetNodes()) > 0 {
		b.WriteString(verdicts(s, e.GetNodes()))
	}
	return b.String()
}

// needText is a need with the parts that it has.
func needText(n *coordinatorv1.Need) string {
	var total uint64
	var parts []string
	for _, p := range []struct {
		name  string
		bytes uint64
	}{{"weights", n.GetWeightsBytes()}, {"KV cache", n.GetKvBytes()}, {"graph", n.GetGraphBytes()}, {"projector", n.GetProjectorBytes()},
		{"constant", n.GetConstantBytes()}, {"margin", n.GetMarginBytes()}} {
		total += p.bytes
		if p.bytes > 0 {
			parts = append(parts, p.name+" "+GiB(p.bytes))
		}
	}
	return fmt.Sprintf("needs %s GiB: %s\n", GiB(total), strings.Join(parts, ", "))
}

func verdicts(s Style, nodes []*coordinatorv1.NodeVerdict) string {
	t := Table{Width: s.Width, Columns: Columns("/NODE", "VERDICT", ">NEED", ">AVAILABLE", ">SHORT", ">LARGEST CONTEXT", "~WHY")}
	for _, n := range nodes {
		need, available, short, largest := "?", "?", "-", "-"
		if n.GetNeedBytes() > 0 {
			need = GiB(n.GetNeedBytes())
		}
		if n.AvailableBytes != nil {
			available = GiB(n.GetAvailableBytes())
		}
		if n.GetShortBytes() > 0 {
			short = GiB(n.GetShortBytes())
		}
		if n.GetLargestContext() > 0 {
			largest = Count(int64(n.GetLargestContext()))
		}
		why := Line(n.GetWhy())
		if len(n.GetEvict()) > 0 && !strings.Contains(why, n.GetEvict()[0]) {
			why += "; unloads " + strings.Join(n.GetEvict(), ", ")
		}
		t.Add(Line(n.GetNode()), s.State(n.GetVerdict()), need, available, short, largest, why)
	}
	return t.String()
}
