// Package worker is the daemon that wraps one Ollama on one machine: it wires the client, the hardware probe, the gRPC
// server and the announcement together and holds no logic of its own.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/probe"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/announce"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/serve"
)

// Options is what a Worker is made of.
type Options struct {
	NodeID     string // stable over restarts, a DNS label
	Name       string // for people
	Fleet      string // fleet id
	Version    string // semantic
	Ollama     string // URL of the local Ollama
	Slots      int
	Overrides  hwprobe.Overrides // what the owner of the machine says about its hardware
	Heartbeat  time.Duration
	Listener   net.Listener // for the coordinator
	Server     []grpc.ServerOption
	Announce   bool     // by mDNS
	Interfaces []string // for mDNS; empty: every usable one
	Log        *slog.Logger
}

// Worker is the running daemon.
type Worker struct {
	o        Options
	client   *ollama.Client
	serve    *serve.Server
	server   *grpc.Server
	announce *announce.Announcer // nil when off
	done     chan struct{}       // closed when the listener is served no more
	failure  error               // of the listener; read after done
	stop     func()
}

// Start looks at the machine once, then answers. An Ollama that does not answer is reported, not fatal: it may come.
func Start(ctx context.Context, o Options) (*Worker, error) {
	client, err := ollama.New(ollama.Options{BaseURL: o.Ollama})
	if err != nil {
		return nil, err
	}
	w := &Worker{o: o, client: client, done: make(chan struct{})}
	w.stop = sync.OnceFunc(w.end)
	prober := probe.New(probe.Options{Machine: probe.ThisMachine(), Overrides: o.Overrides})
	w.serve = serve.New(ctx, serve.Options{NodeID: o.NodeID, Name: o.Name, Version: o.Version, Fleet: o.Fleet, Ollama: client, Slots: o.Slots,
		Prober: prober, Heartbeat: o.Heartbeat, Log: o.Log.With("part", "worker")})
	// Stop waits for the calls: what they use must not end before them.
	options := append(slices.Clone(o.Server), grpc.WaitForHandlers(true))
	w.server = grpc.NewServer(append(options, serve.Recovery(o.Log.With("part", "worker"))...)...)
	workerv1.RegisterWorkerServiceServer(w.server, w.serve)
	h := health.NewServer()
	h.SetServingStatus(workerv1.WorkerService_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(w.server, h)
	reflection.Register(w.server)
	go func() {
		defer close(w.done)
		w.failure = w.server.Serve(o.Listener)
	}()
	if err := w.beFound(); err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

func (w *Worker) beFound() (err error) {
	addr, ok := w.o.Listener.Addr().(*net.TCPAddr)
	if !w.o.Announce || !ok {
		return nil
	}
	w.announce, err = announce.Start(announce.Options{NodeID: w.o.NodeID, Fleet: w.o.Fleet, Version: w.o.Version, Port: addr.Port, IP: addr.IP,
		Interfaces: w.o.Interfaces, Log: w.o.Log.With("part", "mdns")})
	if err != nil {
		return fmt.Errorf("announce this worker: %w", err)
	}
	return nil
}

// Report returns what the machine looks like now. It must not be changed.
func (w *Worker) Report() *workerv1.NodeReport { return w.serve.Report() }

// Addr is where the worker listens.
func (w *Worker) Addr() net.Addr { return w.o.Listener.Addr() }

// Wait returns when the worker cannot go on, with the reason, or when ctx ends, with nil.
func (w *Worker) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-w.done:
		return w.failure
	}
}

// Stop ends everything; calls in flight are cancelled. It may be called more than once.
func (w *Worker) Stop() { w.stop() }

func (w *Worker) end() {
	if w.announce != nil {
		w.announce.Stop()
	}
	w.server.Stop()
	<-w.done
	if w.failure != nil && !errors.Is(w.failure, grpc.ErrServerStopped) {
		w.o.Log.Error("the listener failed", "error", w.failure)
	}
	w.serve.Stop()
	w.client.Close()
}
