package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/stats"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/configs"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/worker"
)

// teller says on a daemon's screen what changes, one line each with its time.
type teller struct {
	w     io.Writer
	lock  sync.Mutex
	nodes map[string]string // id → state
	away  map[string]bool   // addresses that were said not to answer
	runs  map[string]bool   // id → has not ended
	began bool

	settings configs.Config // what the coordinator was told
	looks    int            // at the fleet, until the settings were compared with it
}

// tellEvery is how often a daemon looks at what it has to tell.
const tellEvery = time.Second

func newTeller(w io.Writer) *teller {
	return &teller{w: w, nodes: map[string]string{}, away: map[string]bool{}, runs: map[string]bool{}}
}

func (t *teller) say(format string, args ...any) {
	t.lock.Lock()
	defer t.lock.Unlock()
	_, _ = fmt.Fprintf(t.w, time.Now().Format("15:04:05")+" "+format+"\n", args...) // a screen that is gone cannot be told
}

// coordinator follows the fleet and the runs of the coordinator at addr until ctx ends.
func (t *teller) coordinator(ctx context.Context, addr string) {
	conn, err := dial(addr)
	if err != nil {
		return
	}
	defer conn.Close()
	c := coordinatorv1.NewCoordinatorServiceClient(conn)
	every(ctx, func() {
		nodes, err := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
		if err != nil {
			return // it is stopping
		}
		runs, err := c.ListRuns(ctx, &coordinatorv1.ListRunsRequest{})
		if err != nil {
			return
		}
		t.fleet(nodes)
		t.compare(nodes)
		t.work(runs.GetRuns())
		t.began = true
	})
}

// every calls do at once and then again and again until ctx ends.
func every(ctx context.Context, do func()) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// compareAfter is how many looks the machines have to come in before the settings are compared with the models that they have.
const compareAfter = 10

// compare says once which models the settings speak of in vain.
func (t *teller) compare(r *coordinatorv1.ListNodesResponse) {
	if t.looks++; t.looks != compareAfter {
		return
	}
	for _, text := range strangers(t.settings, modelNames(r), "no machine has yet") {
		t.say("warning: %s", text)
	}
}

// fleet says which nodes came, went and came back, and which addresses do not answer.
func (t *teller) fleet(r *coordinatorv1.ListNodesResponse) {
	for _, n := range r.GetNodes() {
		before, known := t.nodes[n.GetId()]
		t.nodes[n.GetId()] = n.GetState()
		name, simulated := ui.Line(n.GetName()), ui.Simulated(n.GetSimulated())
		switch {
		case before == n.GetState() || n.GetFoundBy() == "local" && !known:
		case n.GetState() == "lost" && !known:
			t.say("node %s is not here yet: last seen %s", name, ui.Clock(n.GetLastSeen().AsTime(), time.Now()))
		case n.GetState() == "lost":
			t.say("node %s is lost: it no longer reports, and its work goes elsewhere", name)
		case n.GetState() == "degraded":
			t.say("node %s is here, but: %s", name, ui.Line(n.GetProblem()))
		case !known:
			t.say("node %s joined: %s, found by %s%s", name, n.GetAddress(), n.GetFoundBy(), simulated)
		case before == "lost":
			t.say("node %s is back: %s%s", name, n.GetAddress(), simulated)
		default:
			t.say("node %s is %s", name, n.GetState())
		}
	}
	now := map[string]bool{}
	for _, c := range r.GetCandidates() {
		if now[c] = true; !t.away[c] {
			t.say("not a node of this fleet: %s", ui.Line(c))
		}
	}
	t.away = now
}

// work says which runs go on at the start, which began since and which ended.
func (t *teller) work(runs []*coordinatorv1.Run) {
	for _, r := range runs {
		items := ""
		if c := r.GetItems(); c.GetTotal() > 0 {
			items = fmt.Sprintf(", %s of %s", ui.Count(c.GetSucceeded()), ui.Count(c.GetTotal()))
		}
		what := ui.Line(r.GetWorkflow()) + items + ui.Simulated(ui.SimulatedRun(r))
		before, known := t.runs[r.GetId()]
		open := r.GetEnded() == nil
		t.runs[r.GetId()] = open
		switch {
		case known && before == open || !known && !open && !t.began:
		case open && !t.began:
			t.say("run %s goes on: %s", r.GetId(), what)
		case open:
			t.say("run %s started: %s", r.GetId(), ui.Line(r.GetWorkflow()))
		default: // also one that was over before anybody looked
			t.say("run %s %s: %s", r.GetId(), r.GetState(), what)
		}
	}
}

// worker follows what only this machine knows: whether its Ollama answers.
func (t *teller) worker(ctx context.Context, w *worker.Worker) {
	before := w.Report().GetOllama().GetReachable()
	every(ctx, func() {
		o := w.Report().GetOllama()
		if o.GetReachable() == before {
			return
		}
		before = o.GetReachable()
		if before {
			t.say("Ollama %s answers at %s", o.GetVersion(), o.GetUrl())
		} else {
			t.say("no Ollama answers at %s: this machine takes no work until it does", o.GetUrl())
		}
	})
}

// callers tells of the coordinators that connect and leave. It is a stats.Handler of the worker's server.
type callers struct {
	t    *teller
	lock sync.Mutex
	open map[string]int // connections by host
}

type callerKey struct{}

// TagConn implements stats.Handler.
func (c *callers) TagConn(ctx context.Context, i *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, callerKey{}, hostOf(i.RemoteAddr))
}

// HandleConn implements stats.Handler.
func (c *callers) HandleConn(ctx context.Context, s stats.ConnStats) {
	host, _ := ctx.Value(callerKey{}).(string)
	c.lock.Lock()
	defer c.lock.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		if c.open[host]++; c.open[host] == 1 {
			c.t.say("%s is connected", caller(host))
		}
	case *stats.ConnEnd:
		if c.open[host]--; c.open[host] == 0 {
			delete(c.open, host)
			c.t.say("%s has left", caller(host))
		}
	}
}

// TagRPC implements stats.Handler.
func (c *callers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (c *callers) HandleRPC(context.Context, stats.RPCStats) {}

func caller(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return "a coordinator on this machine"
	}
	return "a coordinator at " + host
}
