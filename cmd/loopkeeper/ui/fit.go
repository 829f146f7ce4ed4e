package ui

import (
	"fmt"
	"strings"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// FitNews is what placement knows beside sizes, by the name of the machine.
type FitNews struct {
	LeftOut map[string]string   // why it is left out now, such as after a spill, whatever has room there
	Stays   map[string][]string // what cannot be unloaded there
}

// Fit says for every machine what a model needs there and what is available, by part.
func Fit(s Style, r *coordinatorv1.FitResponse, news FitNews) string {
	var b strings.Builder
	b.WriteString(s.hanging("", "  ", fitHead(r)))
	t := Table{Width: s.Width, Columns: Columns("/NODE", "FITS", ">SLOTS", ">NEED", ">AVAILABLE", ">SHORT", ">MOST CONTEXT", ">IF EMPTY")}
	for _, n := range r.GetNodes() {
		fits := s.Mark(n.GetVerdict()) + " " + fitWord(n.GetVerdict())
		if news.LeftOut[n.GetNode()] != "" {
			fits = s.bad() + " " + fitWord(n.GetVerdict()) + ", left out"
		}
		if n.GetState() != "up" {
			fits += ", " + stateText(n.GetState())
		}
		need := "?"
		if n.GetNeed() != nil {
			need = GiB(needTotal(n.GetNeed()))
		}
		t.Add(Line(n.GetNode()), fits, Count(int64(n.GetSlots())), need, known(n.AvailableBytes), orDash(amount(n.GetShortBytes())), orDash(tokens(n.GetLargestContext())),
			orDash(tokens(n.GetLargestEmpty())))
	}
	b.WriteString(t.String())
	b.WriteString(needTable(s, r.GetNodes()))
	b.WriteString(fitPools(s, r.GetNodes()))
	for _, n := range r.GetNodes() {
		b.WriteString(fitNote(s, r, n, news))
	}
	return b.String()
}

func fitHead(r *coordinatorv1.FitResponse) string {
	text := fmt.Sprintf("%s at %s tokens per slot", Line(r.GetModel()), Count(int64(r.GetContext())))
	switch {
	case r.GetAsked() > r.GetContext():
		text += fmt.Sprintf(" (%s asked for; it takes no more)", Count(int64(r.GetAsked())))
	case r.GetTrained() > r.GetContext():
		text += fmt.Sprintf(", of %s", Count(int64(r.GetTrained())))
	}
	return text + ". Sizes in GiB."
}

// fitWord is a verdict in a word or two.
func fitWord(verdict string) string {
	return word(map[string]string{"evict": "after unloads", "blocked": "not now"}, verdict)
}

// needTable is the need by part, a row for each machine on which it differs.
func needTable(s Style, nodes []*coordinatorv1.NodeFit) string {
	t := Table{Width: s.Width, Columns: Columns("/NODE", ">WEIGHTS", ">KV CACHE", ">GRAPH", ">PROJECTOR", ">CONSTANT", ">MARGIN", ">GPUS")}
	for _, n := range nodes {
		if n.GetNeed() == nil {
			continue
		}
		row := []string{Line(n.GetNode())}
		for _, p := range needParts(n.GetNeed()) {
			row = append(row, orDash(amount(p.bytes)))
		}
		t.Add(append(row, orDash(tokens(n.GetDevices())))...)
	}
	if len(t.Rows) == 0 {
		return ""
	}
	return t.String()
}

// fitPools is what is in the pools that models go to.
func fitPools(s Style, nodes []*coordinatorv1.NodeFit) string {
	t := Table{Width: s.Width, Columns: Columns("/NODE, POOL", ">TOTAL", ">MODELS", ">OTHERS", ">RESERVE", ">AVAILABLE")}
	for _, n := range nodes {
		for _, p := range n.GetPools() {
			addPool(&t, Line(n.GetNode())+", "+Line(p.GetId()), p)
		}
	}
	if len(t.Rows) == 0 {
		return ""
	}
	return t.String()
}

// fitNote says in a sentence what the tables do not.
func fitNote(s Style, r *coordinatorv1.FitResponse, n *coordinatorv1.NodeFit, news FitNews) string {
	name := Line(n.GetNode())
	out := ""
	if why := news.LeftOut[n.GetNode()]; why != "" {
		out = s.Finding(s.bad(), name+" is left out: "+why, "loopkeeper nodes "+name)
	}
	switch n.GetVerdict() {
	case "evict":
		var each []string
		for _, e := range n.GetEvict() {
			one := fmt.Sprintf("%s (%s", Line(e.GetModel()), GiB(e.GetBytes()))
			if e.GetBusy() > 0 {
				one += ", once " + Plural(int64(e.GetBusy()), "call has ended", "calls have ended")
			}
			each = append(each, one+")")
		}
		return out + s.Finding(s.Mark(n.GetVerdict()), fmt.Sprintf("%s: after unloading %s", name, strings.Join(each, ", ")))
	case "blocked", "no", "unknown":
		if stays := news.Stays[n.GetNode()]; n.GetVerdict() == "blocked" && len(stays) > 0 {
			return out + s.Finding(s.Mark("blocked"), fmt.Sprintf("%s: needs %s, %s available; what stays there: %s", name, GiB(needTotal(n.GetNeed())),
				known(n.AvailableBytes), strings.Join(stays, "; ")), "")
		}
		return out + s.Finding(s.Mark(n.GetVerdict()), name+": "+n.GetWhy())
	}
	if !n.GetPulled() && r.GetDigest() != "" {
		return out + s.Finding(s.Mark("waiting"), name+" does not have it", fmt.Sprintf("loopkeeper models pull %s --on %s", Line(r.GetModel()), name))
	}
	return out
}
