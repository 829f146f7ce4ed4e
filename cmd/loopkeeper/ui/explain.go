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
	if n := e.GetNeed(); n != nil {
		total := n.GetWeightsBytes() + n.GetKvBytes() + n.GetGraphBytes() + n.GetProjectorBytes() + n.GetConstantBytes() + n.GetMarginBytes()
		fmt.Fprintf(&b, "needs %s GiB: weights %s, KV cache %s, graph %s, projector %s, constant %s, margin %s\n", GiB(total), GiB(n.GetWeightsBytes()),
			GiB(n.GetKvBytes()), GiB(n.GetGraphBytes()), GiB(n.GetProjectorBytes()), GiB(n.GetConstantBytes()), GiB(n.GetMarginBytes()))
	}
	if e.GetWaitingFor() != "" {
		fmt.Fprintf(&b, "waiting for %s\n", e.GetWaitingFor())
	}
	if len(e.GetNodes()) > 0 {
		b.WriteString(verdicts(s, e.GetNodes()))
	}
	return b.String()
}

func verdicts(s Style, nodes []*coordinatorv1.NodeVerdict) string {
	t := Table{Columns: Columns("NODE", "VERDICT", ">NEED", ">AVAILABLE", ">SHORT", ">LARGEST CONTEXT", "WHY")}
	for _, n := range nodes {
		available, short, largest := "?", "-", "-"
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
		if len(n.GetEvict()) > 0 {
			why += "; unloads " + strings.Join(n.GetEvict(), ", ")
		}
		t.Add(Line(n.GetNode()), s.State(n.GetVerdict()), GiB(n.GetNeedBytes()), available, short, largest, why)
	}
	return t.String()
}
