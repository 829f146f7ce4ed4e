package ui

import (
	"fmt"
	"strings"
	"time"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// memoryBar is how many cells a node's memory gets.
const memoryBar = 10

// Nodes is the table of machines, the line under it, what waits, and what is wrong.
func Nodes(s Style, r *coordinatorv1.ListNodesResponse, discovery string, now time.Time) string {
	var b strings.Builder
	t := Table{Width: s.Width, Columns: Columns("/NODE", "STATE", "/DEVICE", "MEMORY, GiB", "", ">FREE", "~LOADED (BUSY)")}
	for _, n := range r.GetNodes() {
		nodeRows(s, &t, n, now)
	}
	if len(r.GetNodes()) > 0 {
		b.WriteString(t.String())
	}
	b.WriteString(s.hanging("", "", fmt.Sprintf("%s. %sDiscovery: %s.", statesText(r.GetNodes()), slotsText(r.GetNodes()), discovery)))
	b.WriteString(waitingLines(s, r.GetWaiting()))
	b.WriteString(resourceTable(s, r.GetResources()))
	for _, n := range r.GetNodes() {
		problems(s, &b, n, now)
	}
	b.WriteString(Findings(s, r.GetFindings()))
	b.WriteString(Suggestions(s, r.GetSuggestions()))
	for _, c := range r.GetCandidates() {
		fmt.Fprintf(&b, "%s not a node of this fleet: %s\n", s.bad(), Line(c))
	}
	if len(r.GetNodes()) == 0 {
		b.WriteString("Next: loopkeeper worker --insecure-lan  # on a machine with Ollama\n")
	}
	return b.String()
}

// statesText counts the machines by state: "2 up, 1 paused, 0 lost, all simulated".
func statesText(nodes []*coordinatorv1.Node) string {
	count, simulated := map[string]int{}, 0
	for _, n := range nodes {
		count[n.GetState()]++
		if n.GetSimulated() {
			simulated++
		}
	}
	out := fmt.Sprintf("%d up", count["up"])
	for _, state := range []string{"draining", "paused", "degraded"} {
		if count[state] > 0 {
			out += fmt.Sprintf(", %d %s", count[state], state)
		}
	}
	return out + fmt.Sprintf(", %d lost", count["lost"]) + simulatedOf(simulated, len(nodes))
}

// slotsText is how many of the slots of what is loaded are busy.
func slotsText(nodes []*coordinatorv1.Node) string {
	var busy, slots int32
	for _, n := range nodes {
		for _, c := range n.GetClaims() {
			if n.GetState() != "lost" && !c.GetLoading() {
				busy, slots = busy+c.GetBusy(), slots+c.GetSlots()
			}
		}
	}
	if slots == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d slots busy. ", busy, slots)
}

func simulatedOf(n, all int) string {
	switch {
	case n == 0:
		return ""
	case n == all:
		return ", all simulated"
	default:
		return fmt.Sprintf(", %d simulated", n)
	}
}

// nodeRows adds a row for each pool that models load into; what is loaded stands in the first.
func nodeRows(s Style, t *Table, n *coordinatorv1.Node, now time.Time) {
	name, state := Line(n.GetName()), s.State(n.GetState())
	if n.GetSimulated() {
		state += ", simulated"
	}
	loaded := loadedText(n, now)
	if n.GetState() == "lost" {
		loaded = "last seen " + Age(now.Sub(n.GetLastSeen().AsTime())) + " ago"
	}
	pools := modelPools(n.GetReport())
	if len(pools) == 0 {
		t.Add(name, state, "?", "-", "?", "?", loaded)
		return
	}
	for _, p := range pools {
		bar, used, free := memory(s, n, p, len(pools) == 1)
		t.Add(name, state, deviceName(n, p), bar, used, free, loaded)
		name, state, loaded = "", "", ""
	}
}

// modelPools are the pools that models load into: those of devices, else main memory.
func modelPools(r *workerv1.NodeReport) []*workerv1.Pool {
	var out []*workerv1.Pool
	for _, p := range r.GetPools() {
		if p.GetKind() != "host" {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return r.GetPools()
	}
	return out
}

func deviceName(n *coordinatorv1.Node, p *workerv1.Pool) string {
	for _, d := range n.GetReport().GetDevices() {
		if d.GetPoolId() == p.GetId() {
			return Line(d.GetName())
		}
	}
	if p.GetKind() == "host" {
		return "CPU"
	}
	return Line(p.GetId())
}

// memory draws a pool: what models of ours hold, what others hold, what is loading.
func memory(s Style, n *coordinatorv1.Node, p *workerv1.Pool, only bool) (bar, used, free string) {
	total := p.GetTotalBytes()
	if p.TotalBytes == nil || total == 0 {
		return "-", "?", "?"
	}
	if p.FreeBytes == nil || n.GetState() == "lost" {
		return "-", "?/" + GiB(total), "?"
	}
	taken := total - min(p.GetFreeBytes(), total)
	var ours, loading uint64
	for _, c := range n.GetClaims() {
		switch {
		case c.GetLoading():
			loading += c.GetBytes()
		case only:
			ours += c.GetBytes()
		}
	}
	for _, u := range n.GetPools() {
		if u.GetId() == p.GetId() {
			ours = u.GetClaimsBytes() - min(loading, u.GetClaimsBytes())
		}
	}
	ours = min(ours, taken)
	share := func(b uint64) float64 { return float64(b) / float64(total) }
	bar = s.Bar(memoryBar, Part{share(ours), Ours}, Part{share(taken - ours), Foreign}, Part{share(loading), Loading})
	return bar, GiB(taken) + "/" + GiB(total), GiB(p.GetFreeBytes())
}

// loadedText is what is in a machine's memory: "qwen3:8b 1/2, bge-m3 loading 9s".
func loadedText(n *coordinatorv1.Node, now time.Time) string {
	var out []string
	for _, c := range n.GetClaims() {
		out = append(out, strings.TrimSpace(Line(c.GetModel())+" "+ClaimState(c, now)))
	}
	for _, p := range n.GetPulls() {
		out = append(out, fmt.Sprintf("%s downloading%s", Line(p.GetModel()), share(p)))
	}
	return orDash(strings.Join(out, ", "))
}

// ClaimState is how a model in memory is used: "1/2", "loading 9s", "leaving".
func ClaimState(c *coordinatorv1.Claim, now time.Time) string {
	switch {
	case c.GetLoading() && c.GetSince() != nil:
		return "loading " + Age(now.Sub(c.GetSince().AsTime()))
	case c.GetLoading():
		return "loading"
	case c.GetLeaving():
		return "leaving"
	case c.GetSlots() == 0:
		return ""
	default:
		return fmt.Sprintf("%d/%d", c.GetBusy(), c.GetSlots())
	}
}

func problems(s Style, b *strings.Builder, n *coordinatorv1.Node, now time.Time) {
	name := Line(n.GetName())
	if p := n.GetProblem(); p != "" {
		b.WriteString(s.Finding(s.bad(), name+": "+p))
	}
	if why := whyText(n, now); why != "" {
		b.WriteString(s.Finding(s.bad(), name+": "+why, resumeText(n)))
	}
	for _, w := range n.GetReport().GetWarnings() {
		b.WriteString(s.Finding(s.bad(), name+": "+w.GetText(), w.GetNext()))
	}
	for _, i := range n.GetIncidents() {
		if now.Sub(i.GetTime().AsTime()) < incidentNews && i.GetKind() != "use" && i.GetKind() != "pulled" {
			b.WriteString(s.Finding(s.bad(), fmt.Sprintf("%s, %s ago: %s", name, Age(now.Sub(i.GetTime().AsTime())), i.GetText()), "loopkeeper nodes "+name))
			return // the others stand on its page
		}
	}
}

// incidentNews is how long an incident is shown without being asked for.
const incidentNews = 15 * time.Minute

// Warnings are what a machine's own look at itself found.
func Warnings(s Style, r *workerv1.NodeReport) string {
	var b strings.Builder
	for _, w := range r.GetWarnings() {
		b.WriteString(s.Finding(s.bad(), w.GetText(), w.GetNext()))
	}
	return b.String()
}

// WorkerLine says in one line what a worker's machine is, and names a model to try.
func WorkerLine(s Style, r *workerv1.NodeReport) (line, model string) {
	device := "no GPU"
	if len(r.GetPools()) == 0 {
		device = "the hardware has not answered yet"
	}
	if len(r.GetDevices()) > 0 {
		device = Line(r.GetDevices()[0].GetName())
	}
	if pools := modelPools(r); len(pools) > 0 && pools[0].TotalBytes != nil {
		device += " " + GiB(pools[0].GetTotalBytes()) + " GiB"
	}
	ollama := r.GetOllama()
	model = "MODEL"
	if !ollama.GetReachable() {
		return fmt.Sprintf("%s worker   %s, no Ollama answers at %s\n  Next: ollama serve  # or give --ollama URL; it is used as soon as it answers", s.bad(), device, ollama.GetUrl()), model
	}
	for _, m := range r.GetModels() {
		if !m.GetEmbedding() {
			model = m.GetName()
			break
		}
	}
	simulated := ""
	if r.GetSimulated() {
		simulated = ", simulated"
	}
	return fmt.Sprintf("%s worker   %s, Ollama %s at %s, %s%s", s.good(), device, ollama.GetVersion(), ollama.GetUrl(),
		Plural(int64(len(r.GetModels())), "model", "models"), simulated), model
}
