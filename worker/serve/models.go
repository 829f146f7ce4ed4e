package serve

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// unloadWait bounds how long an unload waits for the model to be gone: its running requests end first.
const unloadWait = 2 * time.Minute

// models moves models in and out of memory, one at a time: concurrent loads on one Ollama race for memory.
type models struct {
	client *ollama.Client
	moving sync.Mutex
}

// Load implements the service.
func (s *Server) Load(ctx context.Context, r *workerv1.LoadRequest) (*workerv1.LoadResponse, error) {
	s.models.moving.Lock()
	defer s.models.moving.Unlock()
	defer s.monitor.refresh()
	m := r.GetModel()
	if d := m.GetDigest(); d != "" {
		have, err := s.o.Ollama.Resolve(ctx, m.GetName())
		if err != nil {
			return nil, apierr.ToStatus(moveError("load", m.GetName(), err))
		}
		if have.Digest != d {
			return nil, apierr.ToStatus(apierr.New(apierr.NotFound, "%s has %s with digest %.12s, asked for %.12s", s.o.Name, m.GetName(), have.Digest, d).
				WithNext("ollama pull " + m.GetName()))
		}
	}
	l, err := s.o.Ollama.Load(ctx, m.GetName(), int(m.GetContext()))
	if err != nil {
		return nil, apierr.ToStatus(moveError("load", m.GetName(), err))
	}
	return &workerv1.LoadResponse{Loaded: loadedMessage(l.Loaded), LoadNanos: int64(l.Duration), Spilled: s.spilled(l.Loaded)}, nil
}

// spilled says whether part of a model lies outside the accelerator, where there is one. Without an accelerator nothing
// is on it, and that is no spill.
func (s *Server) spilled(l ollama.Loaded) bool {
	for _, p := range s.Report().GetPools() {
		if p.GetKind() == "device" {
			return l.SizeVRAM < l.Size
		}
	}
	return false
}

// Unload implements the service.
func (s *Server) Unload(ctx context.Context, r *workerv1.UnloadRequest) (*workerv1.UnloadResponse, error) {
	s.models.moving.Lock()
	defer s.models.moving.Unlock()
	defer s.monitor.refresh()
	if err := s.o.Ollama.Unload(ctx, r.GetName(), unloadWait); err != nil {
		return nil, apierr.ToStatus(moveError("unload", r.GetName(), err))
	}
	return &workerv1.UnloadResponse{}, nil
}

// Pull implements the service.
func (s *Server) Pull(r *workerv1.PullRequest, stream workerv1.WorkerService_PullServer) error {
	defer s.monitor.refresh()
	var sent error
	err := s.o.Ollama.Pull(stream.Context(), r.GetName(), func(p ollama.Progress) {
		if sent == nil {
			sent = stream.Send(&workerv1.PullResponse{Status: p.Status, CompletedBytes: uint64(p.Completed), TotalBytes: uint64(p.Total)})
		}
	})
	if err != nil {
		return apierr.ToStatus(moveError("pull", r.GetName(), err))
	}
	return sent
}

func moveError(op, model string, err error) error {
	switch ollama.KindOf(err) {
	case ollama.ModelMissing:
		return apierr.Wrap(err, apierr.NotFound, "%s %s", op, model).WithNext("ollama pull " + model)
	case ollama.OutOfMemory:
		return apierr.Wrap(err, apierr.CannotFit, "%s %s", op, model)
	case ollama.BadRequest:
		return apierr.Wrap(err, apierr.InvalidArgument, "%s %s", op, model)
	}
	if errors.Is(err, context.Canceled) {
		return apierr.Wrap(err, apierr.Cancelled, "%s %s", op, model)
	}
	return apierr.Wrap(err, apierr.Unavailable, "%s %s", op, model)
}

func loadedMessage(l ollama.Loaded) *workerv1.LoadedModel {
	return &workerv1.LoadedModel{Name: l.Name, Digest: l.Digest, SizeBytes: uint64(l.Size), VramBytes: uint64(l.SizeVRAM), Context: int32(l.Context), Expires: timestamppb.New(l.ExpiresAt)}
}
