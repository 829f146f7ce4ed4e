// Package serve answers the coordinator: it says what this machine is and holds, and runs stateless calls on its Ollama.
// A call belongs to its key, not to its connection: a coordinator that comes back joins it or gets the kept result.
package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe/probe"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// Options is what a Server answers from.
type Options struct {
	NodeID    string
	Name      string // for people
	Version   string
	Fleet     string
	Ollama    *ollama.Client
	Prober    *probe.Prober // of this machine; the Server watches with it as long as it lives
	Slots     int           // generations per model at once
	Heartbeat time.Duration // between reports when nothing changes; 0 is 3 s
	Keep      time.Duration // how long a result waits to be fetched; 0 is 10 minutes
	Orphan    time.Duration // how long a call runs on with nobody listening; 0 is 5 minutes
	Log       *slog.Logger
}

// Server implements workerv1.WorkerServiceServer.
type Server struct {
	workerv1.UnimplementedWorkerServiceServer
	o       Options
	monitor *monitor
	calls   *registry
	bodies  *bodyCache
	paces   paces
	models  *calls.Models // what has been found out about them
	moving  chan struct{} // holds one while a model is moved; capacity one
}

// New returns a Server that has looked at its machine once.
func New(ctx context.Context, o Options) *Server {
	if o.Heartbeat <= 0 {
		o.Heartbeat = 3 * time.Second
	}
	if o.Keep == 0 {
		o.Keep = 10 * time.Minute
	}
	if o.Orphan == 0 {
		o.Orphan = 5 * time.Minute
	}
	s := &Server{o: o, bodies: newBodyCache(bodyCacheBytes), models: calls.NewModels(o.Log), moving: make(chan struct{}, 1)}
	s.calls = newRegistry(o.Keep, o.Orphan)
	s.monitor = newMonitor(ctx, o, s.calls, s.models.Modes)
	return s
}

// Stop cancels what runs and returns when nothing does. It may be called more than once.
func (s *Server) Stop() {
	s.monitor.stop()
	s.calls.stop()
}

// Describe implements the service.
func (s *Server) Describe(_ context.Context, r *workerv1.DescribeRequest) (*workerv1.DescribeResponse, error) {
	if r.GetFleet() != s.o.Fleet {
		return nil, apierr.ToStatus(apierr.New(apierr.Conflict, "%s belongs to fleet %q, not to %q", s.o.Name, s.o.Fleet, r.GetFleet()).
			WithNext("set the same `fleet` on both machines"))
	}
	report, _ := s.monitor.latest()
	return &workerv1.DescribeResponse{NodeId: s.o.NodeID, Name: s.o.Name, Version: s.o.Version, Fleet: s.o.Fleet, Simulated: report.GetSimulated(), Report: report}, nil
}

// Report returns the newest report. It must not be changed.
func (s *Server) Report() *workerv1.NodeReport {
	report, _ := s.monitor.latest()
	return report
}

// holds says whether the newest report shows the model in memory.
func (s *Server) holds(model string) bool {
	for _, l := range s.Report().GetLoaded() {
		if ollama.Name(l.GetName()) == ollama.Name(model) {
			return true
		}
	}
	return false
}

// Watch implements the service.
func (s *Server) Watch(_ *workerv1.WatchRequest, stream workerv1.WorkerService_WatchServer) error {
	for {
		report, changed := s.monitor.latest()
		if err := stream.Send(&workerv1.WatchResponse{Report: report}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-s.monitor.done:
			return apierr.ToStatus(apierr.New(apierr.Unavailable, "%s is stopping", s.o.Name))
		}
	}
}

// Cancel implements the service.
func (s *Server) Cancel(_ context.Context, r *workerv1.CancelRequest) (*workerv1.CancelResponse, error) {
	s.calls.cancel(r.GetKey())
	return &workerv1.CancelResponse{}, nil
}
