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

// Nodes is the table of machines, the line under it, and what is wrong with them.
func Nodes(s Style, r *coordinatorv1.ListNodesResponse, discovery string, now time.Time) string {
	var b strings.Builder
	t := Table{Width: s.Width, Columns: Columns("/NODE", "STATE", "/DEVICE", "MEMORY, GiB", "", ">FREE", "~LOADED")}
	up, lost, simulated := 0, 0, 0
	for _, n := range r.GetNodes() {
		switch n.GetState() {
		case "up":
			up++
		case "lost":
			lost++
		}
		if n.GetSimulated() {
			simulated++
		}
		nodeRows(s, &t, n, now)
	}
	if len(r.GetNodes()) > 0 {
		b.WriteString(t.String())
	}
	fmt.Fprintf(&b, "%d up, %d lost%s. Discovery: %s.\n", up, lost, simulatedOf(simulated, len(r.GetNodes())), discovery)
	for _, n := range r.GetNodes() {
		problems(s, &b, n)
	}
	for _, c := range r.GetCandidates() {
		fmt.Fprintf(&b, "%s not a node of this fleet: %s\n", s.bad(), Line(c))
	}
	if len(r.GetNodes()) == 0 {
		b.WriteString("Next: loopkeeper worker --insecure-lan, on a machine with Ollama\n")
	}
	return b.String()
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
	loaded := loadedText(n)
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
		if c.GetLoading() {
			loading += c.GetBytes()
		} else if only {
			ours += c.GetBytes()
		}
	}
	ours = min(ours, taken)
	share := func(b uint64) float64 { return float64(b) / float64(total) }
	bar = s.Bar(memoryBar, Part{share(ours), Ours}, Part{share(taken - ours), Foreign}, Part{share(loading), Loading})
	return bar, GiB(taken) + "/" + GiB(total), GiB(p.GetFreeBytes())
}

func loadedText(n *coordinatorv1.Node) string {
	var out []string
	for _, c := range n.GetClaims() {
		text := Line(c.GetModel())
		if c.GetLoading() {
			text += " loading"
		}
		out = append(out, text)
	}
	text := orDash(strings.Join(out, ", "))
	if b := n.GetBusy(); b > 0 {
		text += fmt.Sprintf(" (%d busy)", b)
	}
	return text
}

func problems(s Style, b *strings.Builder, n *coordinatorv1.Node) {
	if p := n.GetProblem(); p != "" {
		fmt.Fprintf(b, "%s %s: %s\n", s.bad(), Line(n.GetName()), Line(p))
	}
	for _, w := range n.GetReport().GetWarnings() {
		fmt.Fprintf(b, "%s %s: %s\n", s.bad(), Line(n.GetName()), Line(w.GetText()))
		if w.GetNext() != "" {
			fmt.Fprintf(b, "  Next: %s\n", Line(w.GetNext()))
		}
	}
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
		return fmt.Sprintf("%s worker   %s, no Ollama answers at %s\n  Next: ollama serve, or --ollama URL; it is used as soon as it answers", s.bad(), device, ollama.GetUrl()), model
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
