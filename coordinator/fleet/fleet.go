// Package fleet knows which workers exist: it finds them, checks who they are, keeps a connection and the newest report
// of each, and says when one is lost. A worker once seen is never forgotten; a lost one comes back by itself.
package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sort"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Memory keeps nodes over restarts; a ledger.Store is one.
type Memory interface {
	Meta(ctx context.Context, prefix string) (map[string]json.RawMessage, error)
	Append(ctx context.Context, c ledger.Commit) error
}

// Options is what a Fleet needs from outside.
type Options struct {
	Fleet     string                                      // fleet id; workers of others are refused
	Version   string                                      // loopkeeper version of this coordinator, semantic
	Static    []string                                    // worker addresses to connect to, host:port
	Local     string                                      // address of the worker in this process; "" when there is none
	Find      func(ctx context.Context) (Found, error)    // one round of discovery, such as MDNS.Find; nil: off
	Interval  time.Duration                               // between rounds of discovery; 0 is 30 s
	Dial      func(addr string) (*grpc.ClientConn, error) // with the credentials to use
	LostAfter time.Duration                               // silence after which a node is lost; 0 is 15 s
	Memory    Memory
	Lost      func(nodeID string)       // called once when a node is lost; may be nil
	Note      func(nodeID, text string) // called when a report says what cannot be, once for each field; may be nil, must not block
	Log       *slog.Logger
}

// Fleet is every worker ever seen. Make one with New, then Start it.
type Fleet struct {
	o       Options
	changed chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu      sync.Mutex
	nodes   map[string]*node  // by node id
	links   map[string]string // address → how it was found; one goroutine each
	reasons map[string]string // address → why it is not a node
	found   Found             // by the last round of discovery
}

// New returns a Fleet that remembers the nodes in o.Memory.
func New(ctx context.Context, o Options) (*Fleet, error) {
	if o.Interval <= 0 {
		o.Interval = 30 * time.Second
	}
	if o.LostAfter <= 0 {
		o.LostAfter = 15 * time.Second
	}
	f := &Fleet{o: o, changed: make(chan struct{}, 1), nodes: map[string]*node{}, links: map[string]string{}, reasons: map[string]string{}}
	if err := f.remember(ctx); err != nil {
		return nil, fmt.Errorf("read the known nodes: %w", err)
	}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return f, nil
}

// Start connects to every address known and begins discovery. It returns at once.
func (f *Fleet) Start() {
	f.mu.Lock()
	known := map[string]string{} // address → node id
	for _, n := range f.nodes {
		if n.address != "" {
			known[n.address] = n.id
		}
	}
	f.mu.Unlock()
	if f.o.Local != "" {
		f.want(f.o.Local, byLocal, known[f.o.Local])
	}
	for _, a := range f.o.Static {
		f.want(a, byStatic, known[a])
	}
	for a, id := range known {
		f.want(a, byMemory, id)
	}
	if f.o.Find != nil {
		f.work.Go(f.discover)
	}
}

// Stop ends all connections and returns when they are gone. It may be called more than once.
func (f *Fleet) Stop() {
	f.mu.Lock()
	f.cancel()
	for _, n := range f.nodes {
		if n.silence != nil {
			n.silence.Stop()
		}
	}
	f.mu.Unlock()
	f.work.Wait()
}

// Changed receives a value after something changed that placement may depend on.
func (f *Fleet) Changed() <-chan struct{} { return f.changed }

// Nodes returns every node ever seen, sorted by id, as last reported.
func (f *Fleet) Nodes() []scheduler.Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]scheduler.Node, 0, len(f.nodes))
	for _, n := range f.nodes {
		out = append(out, n.snapshot())
	}
	sort.Slice(out, func(a, b int) bool { return out[a].ID < out[b].ID })
	return out
}

// Client returns the connection to a node; ok is false while there is none.
func (f *Fleet) Client(nodeID string) (c workerv1.WorkerServiceClient, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[nodeID]
	if n == nil || n.client == nil {
		return nil, false
	}
	return n.client, true
}

// State returns a node's state, NodeLost for one never seen.
func (f *Fleet) State(nodeID string) scheduler.NodeState {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes[nodeID]; n != nil {
		return n.state()
	}
	return scheduler.NodeLost
}

// Answering returns since when a node's Ollama has answered every question with the same version; zero when that is not known.
func (f *Fleet) Answering(nodeID string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes[nodeID]; n != nil && n.report.GetOllama().GetSince() != nil {
		return n.report.GetOllama().GetSince().AsTime()
	}
	return time.Time{}
}

// View is a node as people see it.
type View struct {
	ID, Name, Address, Version, FoundBy, Problem string
	State                                        scheduler.NodeState
	LastSeen                                     time.Time
	Simulated                                    bool
	Report                                       *workerv1.NodeReport // as last received; do not change it
}

// View returns every node sorted by name and id, and for each address that answered or was announced but is no node why.
func (f *Fleet) View() (nodes []View, candidates []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.nodes {
		nodes = append(nodes, View{ID: n.id, Name: n.name, Address: n.address, Version: n.version, FoundBy: n.foundBy, Problem: n.problem(),
			State: n.state(), LastSeen: n.lastSeen, Simulated: n.simulated, Report: n.report})
	}
	sort.Slice(nodes, func(a, b int) bool {
		if nodes[a].Name != nodes[b].Name {
			return nodes[a].Name < nodes[b].Name
		}
		return nodes[a].ID < nodes[b].ID
	})
	for addr, why := range f.reasons {
		candidates = append(candidates, addr+": "+why)
	}
	for name, why := range f.found.Rejected {
		if why != otherService {
			candidates = append(candidates, name+": "+why)
		}
	}
	sort.Strings(candidates)
	return nodes, candidates
}

func (f *Fleet) notify() {
	select {
	case f.changed <- struct{}{}:
	default: // a notice that nobody took yet says the same
	}
}
