package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

const (
	describeTimeout = 5 * time.Second
	firstRetry      = 250 * time.Millisecond
	lastRetry       = 5 * time.Second
	// candidateTries is how often an announced address is tried before it is dropped until it is announced again.
	candidateTries = 5
)

// errTaken says that another link holds the node that answered.
var errTaken = errors.New("reached by another address already")

// want makes sure that a link to addr runs. A lasting link tries for ever, another gives up when the address is no node.
func (f *Fleet) want(addr, foundBy string, lasting bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, runs := f.links[addr]; runs || f.ctx.Err() != nil {
		return
	}
	f.links[addr] = foundBy
	f.work.Go(func() {
		f.link(addr, foundBy, lasting)
		f.mu.Lock()
		delete(f.links, addr)
		f.mu.Unlock()
	})
}

// link keeps a connection to one address.
func (f *Fleet) link(addr, foundBy string, lasting bool) {
	wait := firstRetry
	for tries := 0; f.ctx.Err() == nil; {
		served, err := f.serve(addr, foundBy)
		f.because(addr, err)
		if served {
			wait, tries, lasting = firstRetry, 0, true
		}
		if tries++; !lasting && tries >= candidateTries {
			return
		}
		if errors.Is(err, errTaken) {
			wait = lastRetry
		}
		pause(f.ctx, wait/2+rand.N(wait/2+1))
		wait = min(2*wait, lastRetry)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
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
		f.o.Log.Info("no worker at address", "address", addr, "reason", why)
	}
	f.reasons[addr] = why
}

// serve connects, asks who is there, and follows its reports until the connection ends. served says that a node was held.
func (f *Fleet) serve(addr, foundBy string) (served bool, err error) {
	conn, err := f.o.Dial(addr)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	client := workerv1.NewWorkerServiceClient(conn)
	d, err := f.describe(client)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	if !f.adopt(d, addr, foundBy, client, cancel) {
		return false, errTaken
	}
	defer f.release(d.GetNodeId(), client)
	f.because(addr, nil)
	f.store(d.GetNodeId())
	stream, err := client.Watch(ctx, &workerv1.WatchRequest{})
	if err != nil {
		return true, err
	}
	for {
		msg, err := stream.Recv()
		if err != nil {
			return true, nil // the node's own state tells about this
		}
		f.take(d.GetNodeId(), msg.GetReport())
	}
}

func (f *Fleet) describe(client workerv1.WorkerServiceClient) (*workerv1.DescribeResponse, error) {
	ctx, cancel := context.WithTimeout(f.ctx, describeTimeout)
	defer cancel()
	d, err := client.Describe(ctx, &workerv1.DescribeRequest{CoordinatorVersion: f.o.Version, Fleet: f.o.Fleet})
	if err != nil {
		return nil, err
	}
	if d.GetFleet() != f.o.Fleet {
		return nil, apierr.New(apierr.Conflict, "%s belongs to fleet %q, this is %q", d.GetName(), d.GetFleet(), f.o.Fleet).
			WithNext("set the same `fleet` on both machines")
	}
	return d, compatible(f.o.Version, d.GetVersion(), d.GetName())
}

// adopt makes the link the holder of the node; false when another link holds it.
func (f *Fleet) adopt(d *workerv1.DescribeResponse, addr, foundBy string, client workerv1.WorkerServiceClient, drop context.CancelFunc) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[d.GetNodeId()]
	if n == nil {
		n = &node{id: d.GetNodeId()}
		n.silence = time.AfterFunc(f.o.LostAfter, func() { f.silent(n.id) })
		f.nodes[n.id] = n
	} else if n.client != nil {
		return false
	}
	if n.foundBy == "" || foundBy != "known" {
		n.foundBy = foundBy
	}
	if n.lost {
		n.silence = time.AfterFunc(f.o.LostAfter, func() { f.silent(n.id) })
	}
	n.name, n.address, n.version, n.simulated = d.GetName(), addr, d.GetVersion(), d.GetSimulated()
	n.client, n.drop, n.lost, n.lastSeen = client, drop, false, time.Now()
	n.report = d.GetReport()
	f.o.Log.Info("node up", "node", n.id, "name", n.name, "address", addr, "found_by", n.foundBy)
	f.notify()
	return true
}

// release lets go of a node whose connection ended; it is lost only when it stays silent.
func (f *Fleet) release(id string, client workerv1.WorkerServiceClient) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes[id]; n.client == client {
		n.client, n.drop = nil, nil
	}
	f.notify()
}

// take applies a report.
func (f *Fleet) take(id string, r *workerv1.NodeReport) {
	f.mu.Lock()
	n := f.nodes[id]
	n.silence.Reset(f.o.LostAfter)
	news := len(n.report.GetModels()) != len(r.GetModels())
	n.report, n.lastSeen, n.lost, n.simulated = r, time.Now(), false, r.GetSimulated()
	f.mu.Unlock()
	if news {
		f.store(id)
	}
	f.notify()
}

// silent marks a node lost that has not reported for too long.
func (f *Fleet) silent(id string) {
	f.mu.Lock()
	n := f.nodes[id]
	if n.lost || f.ctx.Err() != nil {
		f.mu.Unlock()
		return
	}
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
