package ui

import (
	"fmt"
	"strings"
	"time"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Node is the page of one machine: what it is, its memory by use, what is loaded, and what happened there.
func Node(s Style, n *coordinatorv1.Node, now time.Time) string {
	var b strings.Builder
	state := s.State(n.GetState())
	if n.GetSimulated() {
		state += ", simulated"
	}
	fmt.Fprintf(&b, "%s  %s\n", Line(n.GetName()), state)
	b.WriteString(s.hanging("  ", "  ", strings.Join(nodeFacts(n, now), ", ")))
	b.WriteString(poolTable(s, "POOL, GiB", n.GetPools()))
	b.WriteString(claimTable(s, n.GetClaims(), now))
	for _, p := range n.GetPulls() {
		fmt.Fprintf(&b, "%s downloading %s%s\n", s.Mark("running"), Line(p.GetModel()), share(p))
	}
	problems(s, &b, withoutIncidents(n), now)
	if len(n.GetIncidents()) > 0 {
		t := Table{Width: s.Width, Columns: Columns("WHEN", "~WHAT HAPPENED")}
		for _, i := range n.GetIncidents() {
			t.Add(Clock(i.GetTime().AsTime(), now), Line(i.GetText()))
		}
		b.WriteString(t.String())
	}
	return b.String()
}

// withoutIncidents is a node whose incidents are shown elsewhere.
func withoutIncidents(n *coordinatorv1.Node) *coordinatorv1.Node {
	return &coordinatorv1.Node{Name: n.GetName(), State: n.GetState(), Problem: n.GetProblem(), Why: n.GetWhy(), Until: n.GetUntil(), Report: n.GetReport()}
}

// nodeFacts are what a machine is, in a few words each.
func nodeFacts(n *coordinatorv1.Node, now time.Time) []string {
	r := n.GetReport()
	var out []string
	for _, d := range r.GetDevices() {
		out = append(out, Line(d.GetName()))
	}
	if len(out) == 0 {
		out = append(out, "no accelerator")
	}
	if v := r.GetOllama().GetVersion(); v != "" {
		out = append(out, "Ollama "+Line(v))
	}
	if r.GetSlots() > 0 {
		out = append(out, Plural(int64(r.GetSlots()), "slot", "slots")+" per model")
	}
	if n.GetMaxCalls() > 0 {
		out = append(out, "at most "+Plural(int64(n.GetMaxCalls()), "call", "calls")+" at once")
	}
	out = append(out, Plural(int64(len(r.GetModels())), "model", "models"), Line(n.GetAddress())+" ("+Line(n.GetFoundBy())+")")
	if n.GetState() == "lost" {
		out = append(out, "last seen "+Age(now.Sub(n.GetLastSeen().AsTime()))+" ago")
	}
	return out
}

// poolTable says what the memory of each pool is used for, in GiB.
func poolTable(s Style, head string, pools []*coordinatorv1.PoolUse) string {
	if len(pools) == 0 {
		return ""
	}
	t := Table{Width: s.Width, Columns: Columns("/"+head, ">TOTAL", ">MODELS", ">OTHERS", ">RESERVE", ">AVAILABLE")}
	for _, p := range pools {
		addPool(&t, Line(p.GetId()), p)
	}
	return t.String()
}

func addPool(t *Table, name string, p *coordinatorv1.PoolUse) {
	others := GiB(p.GetForeignBytes())
	if p.FreeBytes == nil {
		others = "?"
	} else if p.GetStale() {
		others += "?"
	}
	t.Add(name, known(p.TotalBytes), GiB(p.GetClaimsBytes()), others, GiB(p.GetReserveBytes()), known(p.AvailableBytes))
}

// known is an amount in GiB, or a question mark.
func known(bytes *uint64) string {
	if bytes == nil {
		return "?"
	}
	return GiB(*bytes)
}

// claimTable is what is in memory or on its way there. Its sizes are Ollama's own; what is counted, which fit and explain show as well, is
// the pool's MODELS.
func claimTable(s Style, claims []*coordinatorv1.Claim, now time.Time) string {
	if len(claims) == 0 {
		return ""
	}
	t := Table{Width: s.Width, Columns: Columns("/MODEL", ">OLLAMA SAYS", ">CONTEXT", ">BUSY", "~STATE")}
	for _, c := range claims {
		size, busy, context := "-", "-", "?" // of a load Ollama says nothing yet
		if !c.GetLoading() {
			size, busy = GiB(c.GetBytes()), fmt.Sprintf("%d/%d", c.GetBusy(), c.GetSlots())
		}
		if c.GetContext() > 0 {
			context = Count(int64(c.GetContext()))
		}
		t.Add(Line(c.GetModel()), size, context, busy, strings.Join(claimWords(c, now), ", "))
	}
	return t.String()
}

func claimWords(c *coordinatorv1.Claim, now time.Time) []string {
	var out []string
	since := func(what string) string {
		if c.GetSince() == nil {
			return what
		}
		return what + " " + Age(now.Sub(c.GetSince().AsTime())) + " ago"
	}
	switch {
	case c.GetLoading():
		return []string{ClaimState(c, now) + ", counted with " + GiB(c.GetBytes())}
	case c.GetLeaving():
		out = append(out, "is being unloaded")
	case c.GetForeign():
		out = append(out, "loaded by somebody else, never unloaded by us")
	default:
		out = append(out, since("loaded"))
	}
	if c.VramBytes != nil && c.GetVramBytes() > 0 && c.GetVramBytes() < c.GetBytes() {
		out = append(out, fmt.Sprintf("%s GiB of it beside the accelerator", GiB(c.GetBytes()-c.GetVramBytes())))
	}
	if c.GetPinned() {
		out = append(out, "pinned")
	}
	if c.GetIdle() != nil && c.GetBusy() == 0 {
		out = append(out, "idle for "+Age(now.Sub(c.GetIdle().AsTime())))
	}
	if c.GetCondemned() != "" {
		out = append(out, "goes when idle: "+Line(c.GetCondemned()))
	}
	return out
}

// whyText is why a machine takes no work although it is there, and for how long yet.
func whyText(n *coordinatorv1.Node, now time.Time) string {
	why := n.GetWhy()
	if why != "" && n.GetUntil() != nil {
		why += ", for another " + Duration(n.GetUntil().AsTime().Sub(now))
	}
	return why
}

// resumeText is the command that ends what a person began.
func resumeText(n *coordinatorv1.Node) string {
	if strings.HasPrefix(n.GetWhy(), "paused") || n.GetState() == "draining" {
		return "loopkeeper nodes resume " + Line(n.GetName())
	}
	return ""
}

// share is how much of a download is there: " 42 %".
func share(p *coordinatorv1.Pull) string {
	if p.GetTotalBytes() == 0 {
		return ""
	}
	return " " + Percent(int64(p.GetCompletedBytes()), int64(p.GetTotalBytes()))
}
