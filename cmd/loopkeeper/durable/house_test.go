package durable

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/loopkeeper/loopkeeper/coordinator"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/tools"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// house is machines that stay, and a coordinator that comes and goes over a ledger that is given to it.
type house struct {
	t       testing.TB
	net     *network
	addrs   []string
	effects *tools.EffectLog
	name    string   // of the coordinator
	version string   // of the coordinator
	calls   sync.Map // keys of the calls that were made

	c      *coordinator.Coordinator
	conn   *grpc.ClientConn
	client coordinatorv1.CoordinatorServiceClient
	steer  coordinatorv1.SteerServiceClient
	shut   func() // of open
}

// newHouse has so many machines with so many slots each.
func newHouse(t testing.TB, machines int, slots int32) *house {
	h := &house{t: t, net: &network{}, name: "test", version: version}
	for i := range machines {
		addr := fmt.Sprintf("worker-%d:1", i+1)
		(&machine{id: fmt.Sprintf("n%d", i+1), slots: slots, reached: func(key string) { h.calls.Store(key, true) }}).serve(t, h.net.listen(addr))
		h.addrs = append(h.addrs, addr)
	}
	return h
}

// start starts a coordinator over a ledger, as a new process would.
func (h *house) start(store ledger.Store) error {
	l := h.net.listen("coordinator")
	c, err := coordinator.Start(h.t.Context(), coordinator.Options{Name: h.name, Fleet: fleetID, Version: h.version, Store: store, Host: script.NewHost(script.Limits{}),
		Listener: l, Dial: h.net.dial, Workers: h.addrs, LostAfter: 20 * time.Second, EffectLog: h.effects, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	h.c = c
	if h.conn, err = h.net.dial("coordinator"); err != nil {
		h.t.Fatal(err)
	}
	h.client, h.steer = coordinatorv1.NewCoordinatorServiceClient(h.conn), coordinatorv1.NewSteerServiceClient(h.conn)
	return nil
}

// asked is how many calls of models were made.
func (h *house) asked() (n int) {
	h.calls.Range(func(any, any) bool { n++; return true })
	return n
}

func (h *house) stop() {
	_ = h.conn.Close() // nobody asks any more
	h.c.Stop()
}

// submit starts a run of a script under a key, or finds the run that it started before.
func (h *house) submit(p script.Program, key string, input any) (string, error) {
	raw, err := json.Marshal(input)
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := h.client.Submit(h.t.Context(), &coordinatorv1.SubmitRequest{InputJson: raw, Key: key,
		Workflow: &coordinatorv1.SubmitRequest_Bundle{Bundle: &coordinatorv1.Bundle{Name: p.Name, Code: p.Code, SourceMap: p.SourceMap}}})
	return r.GetRunId(), err
}

// end waits until a run has ended or waits for a person, and returns its last view.
func (h *house) end(id string) (*coordinatorv1.Run, error) {
	stream, err := h.client.WatchRun(h.t.Context(), &coordinatorv1.WatchRunRequest{RunId: id})
	if err != nil {
		return nil, err
	}
	var last *coordinatorv1.Run
	for {
		msg, err := stream.Recv()
		if err == io.EOF {
			return last, nil
		}
		if err != nil {
			return last, err
		}
		last = msg.GetRun()
	}
}

// program bundles a script; call it outside of a bubble, because the bundler has goroutines of its own.
func program(t testing.TB, body string) script.Program {
	t.Helper()
	p, err := script.BundleText("flow.ts", `import { approve, batch, gate, generate, lines, log, output, pipeline, sleep, spawn, t, tool } from "loopkeeper";
const Answer = t.object({ of: t.string() });
export default async function flow(input: any) {`+body+`}`)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
