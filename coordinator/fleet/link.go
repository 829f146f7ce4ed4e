package fleet

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/discovery"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

const (
	describeTimeout = 5 * time.Second
	firstRetry      = 250 * time.Millisecond
	lastRetry       = 5 * time.Second
	// candidateTries is how often an address that nobody answered at is tried before it is dropped until it is announced
	// again.
	candidateTries = 5
	// mostLinks is how many addresses are tried at once because somebody on the network announces them.
	mostLinks = 512
)

// How an address came to be known. Those that a person or this process named are tried for ever.
const (
	byLocal  = "local"
	byStatic = "static"
	byMDNS   = "mdns"
	byMemory = "known" // of an earlier life
)

// errTaken says that another link holds the node that answered.
var errTaken = errors.New("reached by another address already")

// want makes sure that a link to addr runs. id is the node that was there before, "" when none is known.
func (f *Fleet) want(addr, foundBy, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, runs := f.links[addr]; runs || f.ctx.Err() != nil || foundBy == byMDNS && len(f.links) >= mostLinks {
		return
	}
	f.links[addr] = foundBy
	f.work.Go(func() {
		f.link(addr, foundBy, id)
		f.mu.Lock()
		delete(f.links, addr)
		f.mu.Unlock()
	})
}

// link keeps a connection to one address for as long as it makes sense.
func (f *Fleet) link(addr, foundBy, id string) {
	fixed := foundBy == byLocal || foundBy == byStatic
	wait := firstRetry
	for tries := 1; ; tries++ {
		served, err := f.serve(addr, foundBy)
		if served != "" {
			id, wait, tries = served, firstRetry, 0
		}
		if id != "" && unanswered(err) {
			err = nil // the node's own state tells about this
		}
		f.because(addr, err)
		switch {
		case f.ctx.Err() != nil:
			return
		case fixed:
		case errors.Is(err, errTaken), f.moved(id, addr):
			f.because(addr, nil)
			return
		case id == "" && tries >= candidateTries:
			return
		}
		if errors.Is(err, errTaken) {
			wait = lastRetry
		}
		pause(f.ctx, wait/2+rand.N(wait/2+1))
		wait = min(2*wait, lastRetry)
	}
}

// moved says whether the node that was at addr is held at another address by now.
func (f *Fleet) moved(id, addr string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[id]
	return n != nil && n.client != nil && n.address != addr
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// unanswered says whether nobody was there to say who it is.
func unanswered(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded
}

// because notes why an address is not a node, or forgets it.
func (f *Fleet) because(addr string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil || f.ctx.Err() != nil || errors.Is(err, errTaken) {
		delete(f.reasons, addr)
		return
	}
	e := apierr.As(apierr.FromStatus(err))
	why := e.Error()
	if len(e.Next) > 0 {
		why += " (next: " + e.Next[0] + ")"
	}
	if f.reasons[addr] != why {
		level := slog.LevelInfo
		if e.Code == apierr.Conflict { // somebody has to change something
			level = slog.LevelWarn
		}
		f.o.Log.Log(f.ctx, level, "no worker at address", "address", addr, "reason", why)
	}
	f.reasons[addr] = why
}

// serve connects, asks who is there, and follows its reports until the connection ends. It returns the node's id when
// that reported at least once.
func (f *Fleet) serve(addr, foundBy string) (id string, err error) {
	conn, err := f.o.Dial(addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	client := workerv1.NewWorkerServiceClient(conn)
	d, err := f.describe(client)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	if !f.adopt(d, addr, foundBy, client, cancel) {
		return "", f.taken(d)
	}
	defer f.release(d.GetNodeId(), client)
	f.because(addr, nil)
	f.store(d.GetNodeId())
	stream, err := client.Watch(ctx, &workerv1.WatchRequest{})
	if err != nil {
		return "", err
	}
	for {
		msg, err := stream.Recv()
		if err != nil && id != "" {
			return id, nil // the node's own state tells about this
		}
		if err != nil {
			return "", err
		}
		id = d.GetNodeId()
		f.take(id, msg.GetReport())
	}
}

// describe asks who is there and refuses who is not ours.
func (f *Fleet) describe(client workerv1.WorkerServiceClient) (*workerv1.DescribeResponse, error) {
	ctx, cancel := context.WithTimeout(f.ctx, describeTimeout)
	defer cancel()
	d, err := client.Describe(ctx, &workerv1.DescribeRequest{CoordinatorVersion: f.o.Version, Fleet: f.o.Fleet})
	switch {
	case err != nil:
		return nil, err
	case d.GetFleet() != f.o.Fleet:
		return nil, apierr.New(apierr.Conflict, "%s belongs to fleet %q, this is %q", d.GetName(), d.GetFleet(), f.o.Fleet).
			WithNext("set the same `fleet` on both machines")
	case !discovery.ValidLabel(d.GetNodeId()):
		return nil, apierr.New(apierr.InvalidArgument, "%s says its node id is %q, which is none", d.GetName(), d.GetNodeId()).
			WithNext("install the same release of loopkeeper on both machines")
	}
	return d, compatible(f.o.Version, d.GetVersion(), d.GetName())
}

// adopt makes the link the holder of the node; false when another link holds it.
func (f *Fleet) adopt(d *workerv1.DescribeResponse, addr, foundBy string, client workerv1.WorkerServiceClient, drop context.CancelFunc) bool {
	faults := append(bound(d.GetReport()), bound(d)...)
	var tell []string
	defer func() { f.tell(d.GetNodeId(), tell) }()
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[d.GetNodeId()]
	if n == nil {
		n = &node{id: d.GetNodeId()}
		f.nodes[n.id] = n
	} else if n.client != nil {
		return false
	}
	tell = n.bounded(d.GetReport(), faults)
	if n.foundBy == "" || foundBy != byMemory {
		n.foundBy = foundBy
	}
	n.name, n.address, n.version, n.simulated = d.GetName(), addr, d.GetVersion(), d.GetSimulated()
	n.client, n.drop = client, drop
	n.set(d.GetReport())
	f.heard(n)
	f.o.Log.Info("node up", "node", n.id, "name", n.name, "address", addr, "found_by", n.foundBy)
	f.notify()
	return true
}

// taken says why the node that answers is held already: it has two addresses, or two workers were started on one data folder
// and are taken for each other.
func (f *Fleet) taken(d *workerv1.DescribeResponse) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[d.GetNodeId()]
	if n == nil || n.name == d.GetName() && n.report.GetOllama().GetUrl() == d.GetReport().GetOllama().GetUrl() {
		return errTaken
	}
	return apierr.New(apierr.Conflict, "the worker %s has the id of %s at %s: both were started on the same data folder", d.GetName(), n.name, n.address).
		WithNext("loopkeeper worker --data-dir ANOTHER_FOLDER  # one for each worker on a machine")
}

// heard notes a sign of life; mu is held.
func (f *Fleet) heard(n *node) {
	n.lost, n.lastSeen = false, time.Now()
	switch {
	case f.ctx.Err() != nil: // no timer outlives Stop
	case n.silence == nil:
		n.silence = time.AfterFunc(f.o.LostAfter, func() { f.silent(n.id) })
	default:
		n.silence.Reset(f.o.LostAfter)
	}
}

// release lets go of a node whose connection ended; it is lost only when it stays silent.
func (f *Fleet) release(id string, client workerv1.WorkerServiceClient) {
	f.mu.Lock()
	if n := f.nodes[id]; n.client == client {
		n.client, n.drop = nil, nil
	}
	f.mu.Unlock()
	f.store(id)
	f.notify()
}

// take applies a report.
func (f *Fleet) take(id string, r *workerv1.NodeReport) {
	faults := bound(r)
	f.mu.Lock()
	n := f.nodes[id]
	tell := n.bounded(r, faults)
	news := n.set(r)
	n.simulated = r.GetSimulated()
	f.heard(n)
	f.mu.Unlock()
	f.tell(id, tell)
	if news {
		f.store(id)
	}
	f.notify()
}

// silent marks a node lost that has not reported for too long.
func (f *Fleet) silent(id string) {
	f.mu.Lock()
	n := f.nodes[id]
	if n.lost || f.ctx.Err() != nil || time.Since(n.lastSeen) < f.o.LostAfter { // a report came while the timer fired
		f.mu.Unlock()
		return
	}
	f.work.Add(1) // Stop waits for this, too
	defer f.work.Done()
	n.lost = true
	if n.drop != nil {
		n.drop() // the stream hangs: dial again
	}
	f.mu.Unlock()
	f.o.Log.Warn("node lost", "node", id, "silent_for", f.o.LostAfter)
	if f.o.Lost != nil {
		f.o.Lost(id)
	}
	f.notify()
}
